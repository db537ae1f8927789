//! Waiting for what another process or thread brings about.
//!
//! A test never sleeps in the hope that something has happened meanwhile: it waits for what it needs. [`PATIENCE`] only
//! ends a hang. It says nothing about speed, and is far above what a machine under load needs.

use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for something that has to come.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// Pause between two looks.
const INTERVAL: Duration = Duration::from_millis(20);

/// Waits until `look` finds something, and returns it.
///
/// # Panics
/// When nothing is found within [`PATIENCE`]; `what` names it.
#[track_caller]
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "{what} did not come within {PATIENCE:?}");
        thread::sleep(INTERVAL);
    }
}

/// Waits until a condition holds.
///
/// # Panics
/// When it does not hold within [`PATIENCE`]; `what` names it.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(what, || holds().then_some(()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_thing_found_is_returned() {
        let mut looks = 0;
        let found = wait_for("the third look", || {
            looks += 1;
            (looks == 3).then_some("found")
        });
        assert_eq!((found, looks), ("found", 3));
    }
}
