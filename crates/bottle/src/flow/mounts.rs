//! Checks of host folders that a bottle mounts into its box.

use std::fs::{self, File, FileType};
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use model::redact::Redactor;
use sandbox::spec::ProgramMount;

use crate::exit::{Failure, OrGeneral};
use crate::rules::bottle_manifest::{BottleManifest, MountTable};
use crate::rules::mount::{EntryKind, judge_entry, judge_place};

/// Largest number of entries: more take too long to check.
const ENTRIES_MAX: usize = 100_000;
/// Searched part of a file.
const SEARCHED_BYTES: u64 = 64 * 1024;

/// The mounts of a bottle, each checked.
pub(crate) fn check_mounts(bottle: &BottleManifest) -> Result<Vec<ProgramMount>, Failure> {
    bottle.mounts.iter().map(check_mount).collect()
}

fn check_mount(mount: &MountTable) -> Result<ProgramMount, Failure> {
    let shown = mount.host.display();
    let refuse = |why: String| Failure::usage(format!("{shown} cannot be lent to a box: {why}"));
    // Resolved first: a link could lead anywhere.
    let host = fs::canonicalize(&mount.host).map_err(|error| refuse(error.to_string()))?;
    if let Some(why) = judge_place(&host, host::env::home().as_deref()) {
        return Err(refuse(why));
    }
    if let Some((path, why)) = find_fault(&host)? {
        return Err(refuse(format!("{} {why}", path.display())));
    }
    Ok(ProgramMount { host, inside: mount.inside.clone() })
}

fn find_fault(root: &Path) -> Result<Option<(PathBuf, &'static str)>, Failure> {
    let redactor = Redactor::new([]);
    let mut waiting = vec![root.to_path_buf()];
    let mut seen = 0;
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).or_general()? {
            let entry = entry.or_general()?;
            seen += 1;
            if seen > ENTRIES_MAX {
                return Ok(Some((root.to_path_buf(), "holds too much to be looked through")));
            }
            let (path, kind) = (entry.path(), kind_of(entry.file_type().or_general()?));
            if let Some(why) = judge_entry(&path, kind) {
                return Ok(Some((path, why)));
            }
            match kind {
                EntryKind::Folder => waiting.push(path),
                EntryKind::File if holds_secret(&path, &redactor) => {
                    return Ok(Some((path, "holds a secret")));
                }
                EntryKind::File | EntryKind::Link | EntryKind::Socket | EntryKind::Other => {}
            }
        }
    }
    Ok(None)
}

fn kind_of(kind: FileType) -> EntryKind {
    match kind {
        kind if kind.is_dir() => EntryKind::Folder,
        kind if kind.is_symlink() => EntryKind::Link,
        kind if kind.is_file() => EntryKind::File,
        kind if kind.is_socket() => EntryKind::Socket,
        _ => EntryKind::Other,
    }
}

/// An unreadable file holds none: the box has the same user.
fn holds_secret(path: &Path, redactor: &Redactor) -> bool {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(SEARCHED_BYTES).read_to_end(&mut bytes));
    read.is_ok() && redactor.redact_bytes(&bytes) != bytes
}
