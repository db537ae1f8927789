//! Watchdogs for what the kernel does not limit: the memory of a box without a control group, the disk space of workspace
//! and harness state, and silence.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use egress::EgressState;
use sandbox::backend::BoxControl;
use sandbox::spec::{BoxLimits, BoxSpec};
use tokio::task::JoinHandle;

use crate::box_dir::BoxDir;

/// Time of the box's last output. The first output is the guest's report.
#[derive(Debug, Clone, Default)]
pub(super) struct LastOutput(Arc<Mutex<Option<Instant>>>);

impl LastOutput {
    pub(super) fn set_now(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(host::clock::monotonic());
    }

    fn get(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Time between two checks for the first output.
const FIRST_OUTPUT_PAUSE: Duration = Duration::from_millis(200);

/// Waits until the box was silent for as long as the spec allows: no output, and no traffic either, because some agents
/// print nothing while they wait for their model. Without such a limit it waits for ever. A box that is still being built
/// is not silent; the deadline limits that.
pub(super) async fn watch_silence(
    spec: &BoxSpec,
    last_output: &LastOutput,
    traffic: Option<Arc<EgressState>>,
) {
    let Some(limit) = spec.silence_secs.map(Duration::from_secs) else {
        return std::future::pending().await;
    };
    loop {
        let Some(printed) = last_output.get() else {
            tokio::time::sleep(FIRST_OUTPUT_PAUSE).await;
            continue;
        };
        let moved = traffic.as_ref().map_or(printed, |state| state.last_activity());
        let quiet = printed.max(moved).elapsed();
        if quiet >= limit {
            return;
        }
        tokio::time::sleep(limit - quiet).await;
    }
}

/// Time between two looks at the processor time of a box.
const PULSE_PAUSE: Duration = Duration::from_secs(10);

/// A box that computes less than this share of the time only waits: event loops wake up now and then.
const PULSE_SHARE: u32 = 20;

/// Touches the pulse of a box whenever it has computed since the last look. Never ends by itself.
pub(super) async fn keep_pulse(control: &impl BoxControl, box_dir: &BoxDir) -> Infallible {
    let mut before = Some(Duration::ZERO);
    loop {
        tokio::time::sleep(PULSE_PAUSE).await;
        let now = control.cpu_time().await;
        if let (Some(before), Some(now)) = (before, now)
            && has_computed(before, now, PULSE_PAUSE)
        {
            // Without a pulse the box is judged by its output.
            drop(host::file::write_transient(&box_dir.pulse(), b"", 0o600));
        }
        before = now;
    }
}

/// Processes that ended take their time with them, so less time means computing too.
fn has_computed(before: Duration, now: Duration, pause: Duration) -> bool {
    now < before || now - before >= pause / PULSE_SHARE
}

/// Memory is looked at often when it is near its limit and seldom when it is far: two hundred sleeping boxes must
/// not keep a processor busy.
const MEMORY_NEAR: Duration = Duration::from_millis(50);
const MEMORY_FAR: Duration = Duration::from_millis(400);

/// Disk is looked at this often at most; a walk over a large tree makes the pauses longer.
const SPACE_PAUSE: Duration = Duration::from_secs(1);

/// After a walk that came to nothing the next one follows sooner.
const SPACE_PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(100);

/// A walk may take this share of the time at most: one in twenty.
const WALK_SHARE: u32 = 20;

/// Most entries of a walk; growth beyond it is not seen.
const MOST_ENTRIES: u64 = 5_000_000;

pub(super) fn next_memory_look(used: u64, limit: u64) -> Duration {
    if used >= limit / 2 { MEMORY_NEAR } else { MEMORY_FAR }
}

pub(super) fn exceeds_memory(used: u64, limits: &BoxLimits) -> bool {
    used > limits.memory_bytes
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Disk {
    /// `None` if it could not be measured: the tree may change under the walk.
    taken: Option<DiskUse>,
    free: u64,
}

/// Size of workspace and harness state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct DiskUse {
    bytes: u64,
    entries: u64,
}

impl DiskUse {
    fn since(self, before: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(before.bytes),
            entries: self.entries.saturating_sub(before.entries),
        }
    }
}

fn is_full(growth: DiskUse, free: u64, limits: &BoxLimits) -> bool {
    growth.bytes > limits.workspace_bytes
        || growth.entries > limits.workspace_entries
        || free < limits.free_floor_bytes
}

/// A walk that is under way on another thread.
pub(super) struct DiskScan(JoinHandle<Disk>);

/// Begins a walk. The first one begins before the box does, or what an agent writes in its first moments would count as
/// having been there before.
pub(super) fn begin_disk_scan(spec: &BoxSpec) -> DiskScan {
    let folders = [spec.workspace.clone(), spec.harness_state.clone()];
    DiskScan(tokio::task::spawn_blocking(move || observe_disk(&folders)))
}

/// Waits until the disk is too full.
pub(super) async fn watch_space(spec: &BoxSpec, mut scan: DiskScan) {
    let mut before = None;
    loop {
        let begun = tokio::time::Instant::now();
        let mut pause = SPACE_PAUSE_AFTER_FAILURE;
        if let Ok(disk) = scan.0.await {
            let growth = disk.taken.map(|taken| taken.since(*before.get_or_insert(taken)));
            if is_full(growth.unwrap_or_default(), disk.free, &spec.limits) {
                return;
            }
            if growth.is_some() {
                pause = SPACE_PAUSE;
            }
        }
        tokio::time::sleep((begun.elapsed() * WALK_SHARE).max(pause)).await;
        scan = begin_disk_scan(spec);
    }
}

/// The size of both folders, and the free space where the first of them is.
fn observe_disk(folders: &[PathBuf; 2]) -> Disk {
    let taken = folders.iter().try_fold(DiskUse::default(), |sum, folder| {
        let size = host::file::tree_size(folder, MOST_ENTRIES).ok()?;
        Some(DiskUse { bytes: sum.bytes + size.bytes, entries: sum.entries + size.entries })
    });
    Disk { taken, free: host::file::free_space(&folders[0]).unwrap_or(u64::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> BoxLimits {
        BoxLimits {
            memory_bytes: 100,
            workspace_bytes: 1000,
            workspace_entries: 50,
            free_floor_bytes: 10,
            ..BoxLimits::default()
        }
    }

    #[test]
    fn memory_is_watched_closely_only_when_it_is_near_its_limit() {
        assert_eq!(next_memory_look(10, 100), MEMORY_FAR);
        assert_eq!(next_memory_look(50, 100), MEMORY_NEAR);
        assert!(!exceeds_memory(100, &limits()));
        assert!(exceeds_memory(101, &limits()));
    }

    #[test]
    fn a_box_that_only_wakes_up_now_and_then_does_not_compute() {
        let (secs, millis) = (Duration::from_secs, Duration::from_millis);
        assert!(!has_computed(secs(5), secs(5) + millis(400), secs(10)));
        assert!(has_computed(secs(5), secs(5) + millis(500), secs(10)));
        assert!(has_computed(secs(5), secs(1), secs(10)), "a compiler ended");
    }

    #[test]
    fn growth_and_a_low_floor_both_count_as_full() {
        let check = |bytes, entries, free, expected| {
            let growth = DiskUse { bytes, entries };
            assert_eq!(is_full(growth, free, &limits()), expected, "{growth:?} {free}");
        };
        check(1000, 50, 10, false);
        check(1001, 0, 10, true);
        check(0, 51, 10, true);
        check(0, 0, 9, true);
    }

    #[test]
    fn what_was_there_before_does_not_count() {
        let before = DiskUse { bytes: 500, entries: 7 };
        let now = DiskUse { bytes: 600, entries: 5 };
        assert_eq!(now.since(before), DiskUse { bytes: 100, entries: 0 });
    }

    /// A walk that failed is not a walk over nothing, by which all growth would be forgotten.
    #[test]
    fn a_tree_that_cannot_be_measured_is_not_empty() {
        let dir = tempfile::tempdir().expect("a folder");
        let (here, gone) = (dir.path().to_path_buf(), dir.path().join("gone"));
        assert_eq!(observe_disk(&[here.clone(), gone]).taken, None);
        assert_eq!(observe_disk(&[here.clone(), here]).taken, Some(DiskUse::default()));
    }
}
