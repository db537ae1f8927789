//! Processes as the host sees them, found by what stands on their command line or in their environment.

use std::fs;

/// The command lines on this host that contain `text`.
pub(crate) fn words_with(text: &str) -> Vec<String> {
    pids().filter_map(words_of).filter(|words| words.contains(text)).collect()
}

/// The command line of a process, with blanks between its words; none if it has ended.
fn words_of(pid: i32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    Some(String::from_utf8_lossy(&bytes).replace('\0', " "))
}

/// The processes on this host whose environment we can read and which contains `text`.
pub(crate) fn environs_with(text: &str) -> Vec<i32> {
    let holds = |pid: &i32| {
        let bytes = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).contains(text)
    };
    pids().filter(holds).collect()
}

fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").expect("a list of processes");
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
