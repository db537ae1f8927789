//! Memory of processes that no control group counts.

use std::fs;

use super::held::{HeldFiles, observe_held};
use super::seen_thread;

/// Bytes that the kernel needs for an open descriptor, at least, and for a pipe by default.
const DESCRIPTOR_BYTES: u64 = 256;
const PIPE_BYTES: u64 = 64 * 1024;

/// Memory of a set of processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    pub bytes: u64,
    /// Processes that may hold more, because their descriptors cannot be listed.
    pub hidden: Vec<i32>,
}

/// Returns the memory that these processes hold together, shared pages counted once: their own pages and page tables,
/// memory files whether mapped or not, pipes and descriptors. A process that cannot be inspected counts with its
/// resident set, which is more, so a process gains nothing by hiding.
pub fn observe_memory(pids: &[i32]) -> ProcessMemory {
    let own = pids.iter().map(|pid| process_memory(seen_thread(*pid))).sum::<u64>();
    let HeldFiles { memory, descriptors, pipes, hidden, .. } = observe_held(pids);
    let files = memory.values().fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
    let kernel = descriptors * DESCRIPTOR_BYTES + pipes.len() as u64 * PIPE_BYTES;
    ProcessMemory { bytes: own.saturating_add(files).saturating_add(kernel), hidden }
}

/// Pages of shared memory are counted with their files, so they are left out here where the kernel tells them apart.
fn process_memory(pid: i32) -> u64 {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
    let resident = read("smaps_rollup").and_then(|text| parse_rollup(&text)).or_else(|| {
        Some(parse_resident_pages(&read("statm")?)? * rustix::param::page_size() as u64)
    });
    let tables = read("status").and_then(|text| parse_kib(&text, "VmPTE:"));
    resident.unwrap_or(0) + tables.unwrap_or(0)
}

fn parse_rollup(text: &str) -> Option<u64> {
    let swap = parse_kib(text, "SwapPss:").unwrap_or(0);
    let apart = parse_kib(text, "Pss_Anon:").zip(parse_kib(text, "Pss_File:"));
    let resident = apart.map(|(own, file)| own + file).or_else(|| parse_kib(text, "Pss:"))?;
    Some(resident + swap)
}

fn parse_kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

fn parse_resident_pages(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_texts_are_read() {
        let old = "55d0-7ffd ---p 00000000 00:00 0 [rollup]\nRss:  1234 kB\nPss:   567 kB\nPss_Dirty: 9 kB\n";
        assert_eq!(parse_rollup(old), Some(567 * 1024));
        let new =
            "Pss: 600 kB\nPss_Anon: 100 kB\nPss_File: 20 kB\nPss_Shmem: 480 kB\nSwapPss: 3 kB\n";
        assert_eq!(parse_rollup(new), Some(123 * 1024));
        assert_eq!(parse_rollup(""), None);
        assert_eq!(parse_resident_pages("100 42 7 1 0 9 0\n"), Some(42));
        assert_eq!(parse_kib("VmLck:\t 0 kB\nVmPTE:\t      68 kB\n", "VmPTE:"), Some(68 * 1024));
    }

    #[test]
    fn memory_that_nobody_maps_counts() {
        let me = i32::try_from(std::process::id()).expect("small");
        let before = observe_memory(&[me]).bytes;
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let file = rustix::fs::memfd_create("unmapped", flags).expect("a file");
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 32 << 20)
            .expect("pages");
        assert!(observe_memory(&[me]).bytes >= before + (24 << 20), "{before} before");
    }
}
