//! Watchdogs for what the kernel does not limit by itself: the memory of a box without a control group, and the
//! disk that workspace and harness state take.

use std::path::PathBuf;
use std::time::Duration;

use sandbox::spec::{BoxSpec, Limits};

/// Why a watchdog barks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alarm {
    Memory,
    Space,
}

/// Memory is looked at often when it is near its limit and seldom when it is far: two hundred sleeping boxes must
/// not keep a processor busy.
const MEMORY_NEAR: Duration = Duration::from_millis(50);
const MEMORY_FAR: Duration = Duration::from_millis(400);

/// Disk is looked at this often at most; a walk over a large tree makes the pauses longer.
const SPACE_PAUSE: Duration = Duration::from_secs(1);

/// A walk may take this share of the time at most: one in twenty.
const WALK_SHARE: u32 = 20;

/// A walk goes no further than this; a tree of so many entries is full in another way.
const MOST_ENTRIES: u64 = 5_000_000;

/// How long to wait before the next look at the memory.
pub(super) fn next_memory_look(used: u64, limit: u64) -> Duration {
    if used >= limit / 2 { MEMORY_NEAR } else { MEMORY_FAR }
}

/// Barks when the box holds more than it may.
pub(super) fn judge_memory(used: u64, limits: &Limits) -> Option<Alarm> {
    (used > limits.memory_bytes).then_some(Alarm::Memory)
}

/// What the disk looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Disk {
    growth: u64,
    free: u64,
}

fn judge_space(disk: Disk, limits: &Limits) -> Option<Alarm> {
    let full = disk.growth > limits.workspace_bytes || disk.free < limits.free_floor_bytes;
    full.then_some(Alarm::Space)
}

/// Looks at the disk until it is too full. Walks happen on another thread.
pub(super) async fn watch_space(spec: &BoxSpec) -> Alarm {
    let places = [spec.workspace.clone(), spec.harness_state.clone()];
    let limits = spec.limits.clone();
    let mut first = None;
    loop {
        let begun = tokio::time::Instant::now();
        let places = places.clone();
        let walk = tokio::task::spawn_blocking(move || observe_disk(&places));
        if let Ok((size, free)) = walk.await {
            let base = *first.get_or_insert(size);
            let disk = Disk { growth: size.saturating_sub(base), free };
            if let Some(alarm) = judge_space(disk, &limits) {
                return alarm;
            }
        }
        tokio::time::sleep((begun.elapsed() * WALK_SHARE).max(SPACE_PAUSE)).await;
    }
}

/// Bytes below all places, and free bytes where the first of them stands.
fn observe_disk(places: &[PathBuf; 2]) -> (u64, u64) {
    let size = places
        .iter()
        .map(|place| host::file::tree_size(place, MOST_ENTRIES).map_or(0, |tree| tree.bytes));
    let free = host::file::free_space(&places[0]).unwrap_or(u64::MAX);
    (size.sum(), free)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits { memory_bytes: 100, workspace_bytes: 1000, free_floor_bytes: 10, ..Limits::default() }
    }

    #[test]
    fn memory_is_watched_closely_only_when_it_is_near_its_limit() {
        assert_eq!(next_memory_look(10, 100), MEMORY_FAR);
        assert_eq!(next_memory_look(50, 100), MEMORY_NEAR);
        assert_eq!(judge_memory(100, &limits()), None);
        assert_eq!(judge_memory(101, &limits()), Some(Alarm::Memory));
    }

    #[test]
    fn growth_and_a_low_floor_both_bark() {
        let check = |growth, free, expected| {
            assert_eq!(judge_space(Disk { growth, free }, &limits()), expected, "{growth} {free}");
        };
        check(1000, 10, None);
        check(1001, 10, Some(Alarm::Space));
        check(0, 9, Some(Alarm::Space));
    }
}
