//! Files without a name that processes keep by an open descriptor or a mapping: memory files, and files of a disk that
//! were unlinked. No walk over a tree finds them, and what is not mapped is in no process's resident set.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Dev, MemfdFlags, fstat, makedev, memfd_create};

/// Bytes by device and inode, so that a file counts once however many descriptors lead to it.
pub type FileBytes = BTreeMap<(Dev, u64), u64>;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldFiles {
    /// Files that have no disk and no mount: `memfd_create` and shared anonymous mappings. System V segments are not
    /// among them: only a process of the same namespace can see those that are detached.
    pub memory: FileBytes,
    /// Files with no link left, on any file system.
    pub unlinked: FileBytes,
    pub descriptors: u64,
    /// Pipes by inode.
    pub pipes: Vec<u64>,
    /// Processes that run and whose descriptors cannot be listed.
    pub hidden: Vec<i32>,
}

/// Looks at the descriptors and mappings of these processes.
pub fn observe_held(pids: &[i32]) -> HeldFiles {
    let memory_device = memory_device();
    let mut held = HeldFiles::default();
    for pid in pids.iter().map(|pid| super::seen_thread(*pid)) {
        held.add_descriptors(pid, memory_device);
    }
    for pid in pids.iter().map(|pid| super::seen_thread(*pid)) {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        held.add_mappings(&maps, memory_device);
    }
    held.pipes.sort_unstable();
    held.pipes.dedup();
    held
}

/// Device of the kernel's own mount for files in memory.
fn memory_device() -> Option<Dev> {
    let file = memfd_create("device", MemfdFlags::CLOEXEC).ok()?;
    Some(fstat(file).ok()?.st_dev)
}

impl HeldFiles {
    fn add_descriptors(&mut self, pid: i32, memory_device: Option<Dev>) {
        let entries = match fs::read_dir(format!("/proc/{pid}/fd")) {
            Ok(entries) => entries,
            Err(error) => {
                if error.kind() == ErrorKind::PermissionDenied {
                    self.hidden.push(pid);
                }
                return;
            }
        };
        for entry in entries.flatten() {
            self.descriptors += 1;
            let Ok(target) = fs::read_link(entry.path()) else { continue };
            let target = target.to_string_lossy();
            if let Some(inode) = parse_pipe(&target) {
                self.pipes.push(inode);
            } else if is_nameless(&target) {
                self.add_file(&entry.path(), memory_device);
            }
        }
    }

    fn add_file(&mut self, link: &Path, memory_device: Option<Dev>) {
        let Ok(meta) = fs::metadata(link) else { return };
        let (key, bytes) = ((meta.dev(), meta.ino()), meta.blocks().saturating_mul(512));
        if Some(meta.dev()) == memory_device {
            self.memory.insert(key, bytes);
        } else if meta.is_file() && meta.nlink() == 0 {
            self.unlinked.insert(key, bytes);
        }
    }

    /// Adds files that are only mapped. Their size on disk or in memory cannot be seen by an ordinary user, so they count
    /// as far as they are mapped: pages that were given up by the mapping stay in the file.
    fn add_mappings(&mut self, maps: &str, memory_device: Option<Dev>) {
        for line in maps.lines() {
            let Some(mapping) = parse_mapping(line) else { continue };
            let key = (mapping.device, mapping.inode);
            let files = match Some(mapping.device) == memory_device {
                true if mapping.path.starts_with("/SYSV") => continue,
                true => &mut self.memory,
                false if mapping.path.ends_with(DELETED) => &mut self.unlinked,
                false => continue,
            };
            files.entry(key).or_insert(mapping.end_in_file);
        }
    }
}

const DELETED: &str = " (deleted)";

fn is_nameless(target: &str) -> bool {
    target.starts_with("/memfd:") || target.ends_with(DELETED)
}

fn parse_pipe(target: &str) -> Option<u64> {
    target.strip_prefix("pipe:[")?.strip_suffix(']')?.parse().ok()
}

#[derive(Debug, PartialEq, Eq)]
struct Mapping<'a> {
    /// Offset of its end in the file.
    end_in_file: u64,
    device: Dev,
    inode: u64,
    path: &'a str,
}

/// Parses a line of `maps`; `None` for memory without a file.
fn parse_mapping(line: &str) -> Option<Mapping<'_>> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let offset = fields.nth(1)?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let inode = fields.next()?.parse().ok().filter(|inode| *inode != 0)?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let part = |text| u32::from_str_radix(text, 16).ok();
    let length = hex(end)?.checked_sub(hex(start)?)?;
    Some(Mapping {
        end_in_file: hex(offset)?.saturating_add(length),
        device: makedev(part(major)?, part(minor)?),
        inode,
        path: fields.next().unwrap_or_default().trim_start(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use super::*;

    fn me() -> i32 {
        i32::try_from(std::process::id()).expect("small")
    }

    #[test]
    fn a_memory_file_counts_once_by_its_pages() {
        let mut file = File::from(memfd_create("held", MemfdFlags::CLOEXEC).expect("a file"));
        file.write_all(&[1; 1 << 20]).expect("written");
        file.set_len(1 << 30).expect("a hole");
        let again = file.try_clone().expect("a second descriptor");
        let meta = file.metadata().expect("a file");
        let held = observe_held(&[me()]);
        assert_eq!(held.memory.get(&(meta.dev(), meta.ino())), Some(&(1 << 20)), "{held:?}");
        assert!(held.descriptors > 4 && held.hidden.is_empty(), "{held:?}");
        drop(again);
    }

    #[test]
    fn an_unlinked_file_counts_as_long_as_it_is_open() {
        let mut file = tempfile::tempfile().expect("a file without a name");
        file.write_all(&[1; 1 << 20]).expect("written");
        file.sync_all().expect("on disk");
        let meta = file.metadata().expect("a file");
        let bytes = |held: HeldFiles| held.unlinked.get(&(meta.dev(), meta.ino())).copied();
        assert!(bytes(observe_held(&[me()])) >= Some(1 << 20));
        drop(file);
        assert_eq!(bytes(observe_held(&[me()])), None);
    }

    #[test]
    fn a_file_that_is_only_mapped_counts_as_far_as_it_is_mapped() {
        let device = makedev(0, 1);
        let mut held = HeldFiles::default();
        let maps = "7f00-9f00 rw-s 00001000 00:01 77 /memfd:x (deleted)\n\
            7f00-9f00 rw-s 00000000 00:01 78 /dev/zero (deleted)\n\
            7f00-9f00 rw-s 00000000 00:01 5 /SYSV00000000 (deleted)\n\
            7f00-9f00 r--s 00000000 08:01 9 /workspace/a b (deleted)\n\
            7f00-9f00 r-xp 00000000 08:01 10 /usr/bin/perl\n\
            7f00-9f00 rw-p 00000000 00:00 0 [heap]\n";
        held.memory.insert((device, 78), 4096);
        held.add_mappings(maps, Some(device));
        assert_eq!(held.memory, FileBytes::from([((device, 77), 0x3000), ((device, 78), 4096)]));
        assert_eq!(held.unlinked, FileBytes::from([((makedev(8, 1), 9), 0x2000)]));
    }
}
