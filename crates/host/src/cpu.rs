//! Processor affinity. Without a control group this is the only processor limit that an ordinary user can set
//! and that children inherit.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Runs `act` while the calling thread may use only `count` of its processors. Processes started by `act`
/// inherit the limit.
pub fn with_processors<T>(count: usize, act: impl FnOnce() -> T) -> io::Result<T> {
    let before = sched_getaffinity(None)?;
    sched_setaffinity(None, &first(&before, count.max(1)))?;
    let outcome = act();
    sched_setaffinity(None, &before)?;
    Ok(outcome)
}

/// Returns the number of processors that the calling thread may use.
pub fn available() -> io::Result<usize> {
    Ok(sched_getaffinity(None)?.count() as usize)
}

fn first(all: &CpuSet, count: usize) -> CpuSet {
    let mut some = CpuSet::new();
    (0..CpuSet::MAX_CPU).filter(|cpu| all.is_set(*cpu)).take(count).for_each(|cpu| some.set(cpu));
    some
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_holds_inside_and_is_lifted_after() {
        let before = available().expect("known");
        let inside = with_processors(1, available).expect("set").expect("known");
        assert_eq!((inside, available().expect("known")), (1, before));
    }
}
