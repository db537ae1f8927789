//! Time: the wall clock, and timers that no clock change or suspend can stretch.
//!
//! Records carry wall-clock time. Deadlines never do: they run on the boot-time clock, which keeps counting
//! while the machine sleeps and cannot be set.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use thiserror::Error;
use tokio::io::unix::AsyncFd;

use crate::async_fd::watch_readable;

#[derive(Debug, Error)]
#[error("could not {action} a boot-time timer")]
pub struct ClockError {
    action: &'static str,
    source: io::Error,
}

/// Returns the wall-clock time, for records.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// Renders a time as `YYYYMMDD_HHMMSS` in UTC, as run directories and branches are named.
pub fn stamp_utc(time: Timestamp) -> String {
    time.strftime("%Y%m%d_%H%M%S").to_string()
}

/// Renders a time in the zone of this machine, for people.
pub fn local(time: Timestamp) -> String {
    let zoned = time.to_zoned(jiff::tz::TimeZone::system());
    zoned.strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
}

/// Returns an instant of the monotonic clock, for durations and short waits.
pub fn monotonic() -> Instant {
    Instant::now()
}

/// Returns the time since boot, sleep included.
pub fn boottime() -> Duration {
    let spec = clock_gettime(ClockId::Boottime);
    Duration::try_from(spec).unwrap_or_default()
}

/// A point on the boot-time clock that can be waited for.
#[derive(Debug)]
pub struct BootTimer {
    deadline: Duration,
    timer: AsyncFd<OwnedFd>,
}

impl BootTimer {
    /// Sets a timer to run out after `delay`. Must be called inside a tokio runtime.
    pub fn after(delay: Duration) -> Result<Self, ClockError> {
        Self::at(boottime().saturating_add(delay))
    }

    /// Sets a timer to run out when [`boottime`] reaches `deadline`. A restarted supervisor restores its old
    /// deadline with this.
    pub fn at(deadline: Duration) -> Result<Self, ClockError> {
        let failed = |action| move |source: io::Error| ClockError { action, source };
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Boottime, flags)
            .map_err(io::Error::from)
            .map_err(failed("make"))?;
        timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &once_at(deadline))
            .map_err(io::Error::from)
            .map_err(failed("set"))?;
        let timer = watch_readable(timer).map_err(failed("watch"))?;
        Ok(Self { deadline, timer })
    }

    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Returns the time until the timer runs out; zero once it has.
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_sub(boottime())
    }

    /// Waits until the timer has run out. Every call after that returns at once.
    pub async fn wait(&self) -> Result<(), ClockError> {
        while !self.remaining().is_zero() {
            let mut ready = self
                .timer
                .readable()
                .await
                .map_err(|source| ClockError { action: "wait for", source })?;
            ready.clear_ready();
        }
        Ok(())
    }
}

/// Builds the timer value. Zero would disarm the timer, so a deadline of zero is moved.
fn once_at(deadline: Duration) -> Itimerspec {
    let at = deadline.max(Duration::from_nanos(1));
    let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
    let far = Timespec { tv_sec: i64::MAX, tv_nsec: 0 };
    Itimerspec { it_interval: zero, it_value: Timespec::try_from(at).unwrap_or(far) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_in_utc_and_sorts_by_time() {
        let time: Timestamp = "2024-03-01T23:59:58+02:00".parse().unwrap();
        assert_eq!(stamp_utc(time), "20240301_215958");
    }

    #[test]
    fn a_deadline_of_zero_is_still_a_deadline() {
        let spec = once_at(Duration::ZERO);
        assert_eq!((spec.it_value.tv_sec, spec.it_value.tv_nsec), (0, 1));
    }

    #[test]
    fn boot_time_goes_forward() {
        let before = boottime();
        assert!(before > Duration::ZERO);
        assert!(boottime() >= before);
    }
}
