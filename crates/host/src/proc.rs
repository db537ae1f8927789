//! Facts from `/proc` about other processes: descendants, memory and processor time.

use std::fs;
use std::time::Duration;

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

/// Returns the memory that these processes hold together, shared pages counted once. A process that cannot be
/// inspected counts with its resident set, which is more, so a process gains nothing by hiding.
pub fn memory_bytes(pids: &[i32]) -> u64 {
    pids.iter().map(|pid| process_memory(*pid)).sum()
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

fn process_memory(pid: i32) -> u64 {
    fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))
        .ok()
        .and_then(|text| parse_pss(&text))
        .or_else(|| {
            let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
            Some(parse_resident_pages(&text)? * rustix::param::page_size() as u64)
        })
        .unwrap_or(0)
}

fn parse_children(text: &str) -> impl Iterator<Item = i32> + '_ {
    text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok())
}

fn parse_pss(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Parses fields 14 to 17, counted after the name, which may hold anything.
fn parse_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok()).sum()
}

fn parse_resident_pages(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_texts_are_read() {
        let rollup = "55d0-7ffd ---p 00000000 00:00 0 [rollup]\nRss:  1234 kB\nPss:   567 kB\nPss_Dirty: 9 kB\n";
        assert_eq!(parse_pss(rollup), Some(567 * 1024));
        assert_eq!(parse_pss(""), None);
        assert_eq!(parse_resident_pages("100 42 7 1 0 9 0\n"), Some(42));
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
        assert!(memory_bytes(&all[..1]) > 100_000);
    }
}
