//! Watchdogs for what the kernel does not limit: the memory of a box without a control group, the disk space of workspace
//! and harness state, and silence.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use egress::EgressState;
use sandbox::backend::{BoxControl, MemoryUse};
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
const MEMORY_NEAR: Duration = Duration::from_millis(20);
const MEMORY_FAR: Duration = Duration::from_millis(400);

/// Speed at which a box can fill memory, in bytes per second: the next look comes before the limit can be reached.
const FILL_RATE: u64 = 4 << 30;

/// Disk is looked at this often when it is near its limit, and when it is far; a walk over a large tree makes the pauses
/// longer.
const SPACE_NEAR: Duration = Duration::from_millis(100);
const SPACE_FAR: Duration = Duration::from_secs(1);

/// Speed at which a box can fill a disk, in bytes per second.
const WRITE_RATE: u64 = 1 << 30;

/// Free space is looked at this often between two walks.
const FREE_PAUSE: Duration = Duration::from_millis(100);

/// Part of the limit by which free space must have fallen before a walk comes early.
const EARLY_SHARE: u64 = 32;

/// After a walk that came to nothing the next one follows sooner.
const SPACE_PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(100);

/// A walk may take this share of the time at most: one in twenty, and one in four when little is left.
const WALK_SHARE: u32 = 20;
const NEAR_WALK_SHARE: u32 = 4;

/// Part of the limit that counts as little.
const LITTLE: u64 = 8;

/// Most entries of a walk; growth beyond it is not seen.
const MOST_ENTRIES: u64 = 5_000_000;

/// Waits until the box holds more memory than it may, and keeps the highest count. Where the engine limits memory it
/// waits for ever.
pub(super) async fn watch_memory(
    control: &impl BoxControl,
    limits: &BoxLimits,
    peak: &Cell<Option<u64>>,
) {
    loop {
        let used = match control.memory().await {
            None => return std::future::pending().await,
            Some(MemoryUse::Exceeded) => return,
            Some(MemoryUse::Bytes(used)) => used,
        };
        peak.set(peak.get().max(Some(used)));
        if used > limits.memory_bytes {
            return;
        }
        tokio::time::sleep(next_memory_look(used, limits.memory_bytes)).await;
    }
}

fn next_memory_look(used: u64, limit: u64) -> Duration {
    let left_ms = limit.saturating_sub(used) / (FILL_RATE / 1000);
    Duration::from_millis(left_ms).clamp(MEMORY_NEAR, MEMORY_FAR)
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
    begin_scan(spec, None)
}

fn begin_scan(spec: &BoxSpec, init: Option<i32>) -> DiskScan {
    let folders = [spec.workspace.clone(), spec.harness_state.clone()];
    DiskScan(tokio::task::spawn_blocking(move || observe_disk(&folders, init)))
}

/// Waits until the disk is too full.
pub(super) async fn watch_space(spec: &BoxSpec, control: &impl BoxControl, mut scan: DiskScan) {
    let (mut before, mut init, mut free) = (None, None, u64::MAX);
    loop {
        let begun = tokio::time::Instant::now();
        let mut growth = None;
        if let Ok(disk) = scan.0.await {
            growth = disk.taken.map(|taken| taken.since(*before.get_or_insert(taken)));
            if is_full(growth.unwrap_or_default(), disk.free, &spec.limits) {
                return;
            }
            free = disk.free;
        }
        match growth {
            Some(growth) => {
                let left = spec.limits.workspace_bytes.saturating_sub(growth.bytes);
                let pause = next_walk(begun.elapsed(), left, spec.limits.workspace_bytes);
                pause_between_walks(spec, pause, free, left).await;
            }
            None => {
                let pause = (begun.elapsed() * WALK_SHARE).max(SPACE_PAUSE_AFTER_FAILURE);
                tokio::time::sleep(pause).await;
            }
        }
        if init.is_none() {
            init = control.init_pid().await;
        }
        scan = begin_scan(spec, init);
    }
}

/// Pause after a walk that took this long and found so much left of the limit.
fn next_walk(walk: Duration, left: u64, limit: u64) -> Duration {
    let share = if left < limit / LITTLE { NEAR_WALK_SHARE } else { WALK_SHARE };
    let until_full = Duration::from_millis(left / (WRITE_RATE / 1000));
    (walk * share).max(until_full.clamp(SPACE_NEAR, SPACE_FAR))
}

/// Waits for the next walk, but no longer than until the file system has lost what the box may still take.
async fn pause_between_walks(spec: &BoxSpec, pause: Duration, free: u64, left: u64) {
    let end = tokio::time::Instant::now() + pause;
    let worth_a_walk = left.max(spec.limits.workspace_bytes / EARLY_SHARE);
    while tokio::time::Instant::now() < end {
        let left_of_pause = end.saturating_duration_since(tokio::time::Instant::now());
        tokio::time::sleep(FREE_PAUSE.min(left_of_pause)).await;
        let now = host::file::free_space(&spec.workspace).unwrap_or(u64::MAX);
        if free.saturating_sub(now) >= worth_a_walk || now < spec.limits.free_floor_bytes {
            return;
        }
    }
}

/// The size of both folders with the files of the box that have no name, and the free space where the first of them is.
fn observe_disk(folders: &[PathBuf; 2], init: Option<i32>) -> Disk {
    let taken = folders.iter().try_fold(DiskUse::default(), |sum, folder| {
        let size = host::file::tree_size(folder, MOST_ENTRIES).ok()?;
        Some(DiskUse { bytes: sum.bytes + size.bytes, entries: sum.entries + size.entries })
    });
    let unlinked = init.map_or(0, |init| unlinked_bytes(folders, init));
    let taken = taken.map(|taken| DiskUse { bytes: taken.bytes.saturating_add(unlinked), ..taken });
    Disk { taken, free: host::file::free_space(&folders[0]).unwrap_or(u64::MAX) }
}

/// Bytes in files of the folders' file systems that processes of the box hold open and that have no name any more.
fn unlinked_bytes(folders: &[PathBuf; 2], init: i32) -> u64 {
    let device = |folder: &PathBuf| std::fs::metadata(folder).ok().map(|meta| meta.dev());
    let devices: BTreeSet<u64> = folders.iter().filter_map(device).collect();
    let held = host::proc::observe_held(&host::proc::descendants(init));
    let here = held.unlinked.iter().filter(|((device, _), _)| devices.contains(device));
    here.fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
}

/// Returns the folder of the box whose file system has too little free space to begin, and that space.
pub(super) fn find_full_folder(spec: &BoxSpec) -> Option<(&Path, u64)> {
    [spec.workspace.as_path(), &spec.harness_state].into_iter().find_map(|folder| {
        let free = host::file::free_space(folder).ok()?;
        (free < spec.limits.free_floor_bytes).then_some((folder, free))
    })
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
        let limit = 4 << 30;
        assert_eq!(next_memory_look(0, limit), MEMORY_FAR);
        assert_eq!(next_memory_look(limit - (1 << 30), limit).as_millis(), 250);
        assert_eq!(next_memory_look(limit, limit), MEMORY_NEAR);
        assert_eq!(next_memory_look(limit + 1, limit), MEMORY_NEAR);
    }

    #[test]
    fn disk_is_walked_often_only_when_little_is_left() {
        let (secs, millis, limit) = (Duration::from_secs, Duration::from_millis, 8 << 30);
        assert_eq!(next_walk(millis(1), limit, limit), SPACE_FAR);
        assert_eq!(next_walk(millis(1), 1 << 29, limit).as_millis(), 500);
        assert_eq!(next_walk(millis(1), 0, limit), SPACE_NEAR);
        assert_eq!(next_walk(secs(1), limit, limit), secs(20), "a large tree");
        assert_eq!(next_walk(secs(1), 0, limit), secs(4));
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
        assert_eq!(observe_disk(&[here.clone(), gone], None).taken, None);
        assert_eq!(observe_disk(&[here.clone(), here], None).taken, Some(DiskUse::default()));
    }

    #[test]
    fn a_file_without_a_name_counts_while_a_process_holds_it() {
        use std::io::Write;
        let dir = tempfile::tempdir().expect("a folder");
        let folders = [dir.path().to_path_buf(), dir.path().to_path_buf()];
        let me = i32::try_from(std::process::id()).expect("small");
        let bytes = |init| observe_disk(&folders, init).taken.expect("measured").bytes;
        let mut file = tempfile::tempfile_in(dir.path()).expect("a file");
        file.write_all(&vec![1; 4 << 20]).expect("written");
        file.sync_all().expect("on disk");
        assert_eq!(bytes(None), 0);
        assert!(bytes(Some(me)) >= 4 << 20);
    }
}
