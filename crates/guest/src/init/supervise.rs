//! Supervision of the command: starts it, reaps children, and watches signals and the clock until the box may end.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::{Duration, Instant};

use guest::config::{GuestConfig, RlimitSpec};
use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{WaitOptions, WaitStatus, wait};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};

use super::link::HostLink;
use super::stage::{EndTimeouts, InitAction, InitEvent, InitStage, next_stage};
use super::terminal::GuestTerminal;
use crate::exec::{self, SessionKind};

/// Target of signals to all processes: for pid 1 all of the box but itself. Anywhere else it would be half
/// the machine, which is why the preflight insists on pid 1.
const EVERYONE: i32 = -1;

/// Signals as a readable descriptor. Blocked before the first thread starts, or that thread would take them.
pub(crate) struct SignalQueue(SignalFd);

impl SignalQueue {
    /// Blocks the signals so that they queue. Pid 1 would otherwise never see those without a handler.
    pub(crate) fn block() -> nix::Result<Self> {
        let watched = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGCHLD];
        let mask: SigSet = watched.into_iter().collect();
        mask.thread_block()?;
        Ok(Self(SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?))
    }

    /// Empties the queue; returns whether one of the signals requests a stop.
    fn drain(&self) -> nix::Result<bool> {
        let mut stop = false;
        while let Some(signal) = self.0.read_signal()? {
            stop |= i32::try_from(signal.ssi_signo) != Ok(Signal::SIGCHLD as i32)
                && is_from_outside(signal.ssi_code, signal.ssi_pid);
        }
        Ok(stop)
    }
}

/// Returns whether a signal comes from the host, which alone may stop a box. A sender outside the namespace
/// has no pid in here; a signal that a process forges has another code.
fn is_from_outside(code: i32, sender: u32) -> bool {
    const SENT_BY_KILL: i32 = 0;
    code == SENT_BY_KILL && sender == 0
}

pub(crate) fn run(
    config: &GuestConfig,
    command_limits: &RlimitSpec,
    signals: &SignalQueue,
    terminal: Option<GuestTerminal>,
    link: &mut HostLink,
) -> io::Result<u8> {
    let timeouts = EndTimeouts {
        linger: Duration::from_millis(config.linger_ms),
        grace: Duration::from_millis(config.grace_ms),
    };
    let backstop = start_backstop(config.backstop_secs)?;
    let command = launch(config, command_limits, terminal.as_ref())?;
    let serving = terminal.map(GuestTerminal::serve).transpose().map_err(io::Error::other)?;
    let status = wait_for_end(command, signals, &backstop, timeouts, link)?;
    if let Some(serving) = serving {
        serving.finish();
    }
    Ok(status)
}

/// Watches until the box may end and returns its status.
fn wait_for_end(
    command: i32,
    signals: &SignalQueue,
    backstop: &OwnedFd,
    timeouts: EndTimeouts,
    link: &mut HostLink,
) -> io::Result<u8> {
    let mut stage = InitStage::Running;
    loop {
        let rang = wait_for_events(&signals.0, backstop, stage, link)?;
        link.answer();
        let mut events = reap(command)?;
        if signals.drain()? {
            events.push(InitEvent::StopAsked);
        }
        if rang {
            events.push(InitEvent::BackstopReached);
        }
        if matches!(stage, InitStage::Ending { until, .. } if until <= Instant::now()) {
            events.push(InitEvent::TimeUp);
        }
        for event in events {
            let (next, act) = next_stage(stage, event, Instant::now(), timeouts);
            stage = next;
            match act {
                InitAction::Wait => {}
                InitAction::TerminateAll => terminate_all()?,
                InitAction::Leave(status) => return Ok(u8::try_from(status).unwrap_or(u8::MAX)),
            }
        }
    }
}

fn launch(
    config: &GuestConfig,
    limits: &RlimitSpec,
    terminal: Option<&GuestTerminal>,
) -> io::Result<i32> {
    let argv = config.argv.iter().map(String::as_str);
    let session = if terminal.is_some() { SessionKind::AtTerminal } else { SessionKind::Plain };
    let mut command = exec::command(session, limits, argv)?;
    command.env_clear().envs(&config.env).current_dir(&config.cwd);
    match terminal {
        Some(terminal) => {
            let [stdin, stdout, stderr] = terminal.streams()?;
            command.stdin(stdin).stdout(stdout).stderr(stderr);
        }
        None => drop(command.stdin(Stdio::null())),
    }
    Ok(command.spawn()?.id().cast_signed())
}

/// Starts a timer on the clock that keeps counting while the machine sleeps: a deadline is in real time.
fn start_backstop(secs: u64) -> io::Result<OwnedFd> {
    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
    let timer = rustix::time::timerfd_create(TimerfdClockId::Boottime, flags)?;
    let never = Timespec { tv_sec: 0, tv_nsec: 0 };
    // Zero would disarm the timer, and the box would never end.
    let once = Timespec { tv_sec: i64::try_from(secs.max(1)).unwrap_or(i64::MAX), tv_nsec: 0 };
    let setting = Itimerspec { it_interval: never, it_value: once };
    rustix::time::timerfd_settime(&timer, TimerfdTimerFlags::empty(), &setting)?;
    Ok(timer)
}

/// Sleeps until a signal, a question of the host, the backstop or the end of the stage; returns whether it was the
/// backstop.
fn wait_for_events(
    signals: &SignalFd,
    backstop: &OwnedFd,
    stage: InitStage,
    link: &HostLink,
) -> io::Result<bool> {
    let mut fds = vec![PollFd::new(signals, PollFlags::IN)];
    let link = link.fd();
    fds.extend(link.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
    let before_backstop = fds.len();
    let timeout = match stage {
        InitStage::Running => {
            fds.push(PollFd::new(backstop, PollFlags::IN));
            None
        }
        // The end has begun: the backstop is no longer needed, and would only cause wake-ups.
        InitStage::Ending { until, .. } => Some(until.saturating_duration_since(Instant::now())),
    };
    let timeout = timeout.map(Timespec::try_from).transpose().map_err(io::Error::other)?;
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    Ok(fds.get(before_backstop).is_some_and(|fd| !fd.revents().is_empty()))
}

/// Reaps all dead children. Orphans become children of pid 1, so this covers every process of the box in the end.
fn reap(command: i32) -> io::Result<Vec<InitEvent>> {
    let mut events = Vec::new();
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == command => {
                events.extend(status_code(status).map(InitEvent::CommandEnded));
            }
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return Ok(events),
            Err(rustix::io::Errno::CHILD) => {
                events.push(InitEvent::NobodyLeft);
                return Ok(events);
            }
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Returns the status by the convention of shells: the code, or 128 and the signal.
fn status_code(status: WaitStatus) -> Option<i32> {
    status.exit_status().or(status.terminating_signal().map(|signal| 128 + signal))
}

fn terminate_all() -> io::Result<()> {
    match kill(Pid::from_raw(EVERYONE), Signal::SIGTERM) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
