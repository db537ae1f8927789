//! Facts from `/proc` about other processes: descendants, memory, files without a name and processor time.

mod held;
mod memory;

use std::fs;
use std::time::Duration;

pub use held::{FileBytes, HeldFiles, observe_held};
pub use memory::{ProcessMemory, observe_memory};

/// Returns the process and everything below it, found by walking the kernel's lists of children.
pub fn descendants(root: i32) -> Vec<i32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        next += 1;
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        for task in tasks.flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(parse_children(&children));
        }
    }
    found
}

/// Returns the processor time of these processes and of the children they waited for. Processes that ended
/// between two calls are missing, so the sum may fall.
pub fn cpu_time(pids: &[i32]) -> Duration {
    let ticks: u64 = pids
        .iter()
        .filter_map(|pid| parse_ticks(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?))
        .sum();
    Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
}

/// Returns the id of this boot of the machine: seconds since boot have no meaning after the next one.
pub fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// Returns whether a process is there and has not ended.
pub fn is_running(pid: u32) -> bool {
    i32::try_from(pid).is_ok_and(|pid| !is_dead(pid))
}

fn is_dead(id: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

/// Returns a thread of the process by which its memory and descriptors can be seen. That is the process itself, unless its
/// first thread has ended before the others: then it looks empty.
fn seen_thread(pid: i32) -> i32 {
    if !is_dead(pid) {
        return pid;
    }
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let ids = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
    ids.into_iter().find(|id| !is_dead(*id)).unwrap_or(pid)
}

fn parse_children(text: &str) -> impl Iterator<Item = i32> + '_ {
    text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok())
}

/// Parses fields 14 to 17, counted after the name, which may hold anything.
fn parse_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_children_is_read() {
        assert_eq!(parse_children("12 13 \n").collect::<Vec<_>>(), [12, 13]);
    }

    #[test]
    fn ticks_are_counted_behind_a_name_that_may_hold_anything() {
        let stat = "42 (a) R 1 (b) S 1 42 42 0 -1 4194304 10 0 0 0 7 5 3 2 20 0 1 0 100";
        assert_eq!(parse_ticks(stat), Some(17));
        assert_eq!(parse_ticks("42 (a) S 1"), None);
    }

    #[test]
    fn this_process_is_its_own_first_descendant_and_has_memory() {
        let me = i32::try_from(std::process::id()).expect("small");
        let all = descendants(me);
        assert_eq!(all[0], me);
        assert!(observe_memory(&all[..1]).bytes > 100_000);
    }
}
