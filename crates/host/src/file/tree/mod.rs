//! Trees with untrusted content: measured, given to another user, freed of secrets, removed.
//!
//! The walk is in `walk` and follows no link; this module has the operation on each entry.

mod build;
mod mask;
mod read;
mod walk;

use std::ffi::{CStr, OsString};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Gid, Stat, Uid, chownat, fchown, unlinkat};

pub use build::{EntryAttributes, TreeBuilder};
pub use mask::mask_tree;
pub use read::{FoundEntry, TreeEntryKind, read_tree};

use super::FileError;
use walk::{TreeAccess, TreeWalkEntry, Visit, walk};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeSize {
    /// Bytes taken on disk; holes cost nothing.
    pub bytes: u64,
    /// Files, links and directories, without the root.
    pub entries: u64,
    /// True if counting stopped early because there were more entries than allowed.
    pub stopped: bool,
}

/// Measures a tree, counting at most `max_entries`. The content is untrusted, so the count needs a bound.
pub fn tree_size(path: &Path, max_entries: u64) -> Result<TreeSize, FileError> {
    let mut size = Measure { max_entries, size: TreeSize::default() };
    walk(path, TreeAccess::AsItIs, &mut size)?;
    Ok(size.size)
}

/// Gives a tree to another user in one pass. Links themselves change owner, never their targets, and file
/// systems mounted inside stay as they are.
pub fn lchown_tree(path: &Path, uid: u32, gid: u32) -> Result<(), FileError> {
    walk(path, TreeAccess::AsItIs, &mut Give { uid, gid })
}

/// Removes a tree with everything in it, read-only directories included, following no link. A missing tree is
/// success.
pub fn remove_tree_safely(path: &Path) -> Result<(), FileError> {
    if let Err(error) = std::fs::symlink_metadata(path) {
        let missing = error.kind() == io::ErrorKind::NotFound;
        return if missing { Ok(()) } else { Err(FileError::io("look at", path)(error)) };
    }
    walk(path, TreeAccess::MakeWritable, &mut Remove)?;
    std::fs::remove_dir(path).map_err(FileError::io("remove the directory", path))
}

/// Finds a path below `root` that has more than `limit` bytes, counted from the root.
pub fn find_long_path(root: &Path, limit: usize) -> Result<Option<PathBuf>, FileError> {
    let mut search = LongPath { limit, here: Vec::new(), found: None };
    walk(root, TreeAccess::AsItIs, &mut search)?;
    Ok(search.found)
}

struct LongPath {
    limit: usize,
    /// The current directory below the root, with a slash at its end.
    here: Vec<u8>,
    found: Option<PathBuf>,
}

impl Visit for LongPath {
    const ACTION: &'static str = "search";

    fn enter(&mut self, name: &CStr) {
        self.here.extend_from_slice(name.to_bytes());
        self.here.push(b'/');
    }

    fn entry(&mut self, entry: &TreeWalkEntry<'_>) -> io::Result<bool> {
        let is_long = self.here.len() + entry.name.count_bytes() > self.limit;
        if is_long {
            let path = [self.here.as_slice(), entry.name.to_bytes()].concat();
            self.found = Some(OsString::from_vec(path).into());
        }
        Ok(!is_long)
    }

    fn leave(&mut self, _parent: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
        self.here.truncate(self.here.len() - name.count_bytes() - 1);
        Ok(())
    }
}

struct Measure {
    max_entries: u64,
    size: TreeSize,
}

impl Visit for Measure {
    const ACTION: &'static str = "measure";

    fn entry(&mut self, entry: &TreeWalkEntry<'_>) -> io::Result<bool> {
        if self.size.entries >= self.max_entries {
            self.size.stopped = true;
            return Ok(false);
        }
        let blocks = u64::try_from(entry.stat.st_blocks).unwrap_or_default();
        self.size.bytes = self.size.bytes.saturating_add(blocks.saturating_mul(512));
        self.size.entries += 1;
        Ok(true)
    }
}

struct Give {
    uid: u32,
    gid: u32,
}

impl Give {
    fn is_owner_of(&self, stat: &Stat) -> bool {
        (stat.st_uid, stat.st_gid) == (self.uid, self.gid)
    }

    fn owner(&self) -> (Option<Uid>, Option<Gid>) {
        (Some(Uid::from_raw(self.uid)), Some(Gid::from_raw(self.gid)))
    }
}

impl Visit for Give {
    const ACTION: &'static str = "change the owner of";

    fn root(&mut self, dir: BorrowedFd<'_>) -> io::Result<()> {
        let (uid, gid) = self.owner();
        Ok(fchown(dir, uid, gid)?)
    }

    fn entry(&mut self, entry: &TreeWalkEntry<'_>) -> io::Result<bool> {
        if entry.same_file_system && !self.is_owner_of(&entry.stat) {
            let (uid, gid) = self.owner();
            chownat(entry.dir, entry.name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        Ok(true)
    }
}

struct Remove;

impl Visit for Remove {
    const ACTION: &'static str = "remove";

    fn entry(&mut self, entry: &TreeWalkEntry<'_>) -> io::Result<bool> {
        if !entry.is_dir() {
            unlinkat(entry.dir, entry.name, AtFlags::empty())?;
        }
        Ok(true)
    }

    fn leave(&mut self, parent: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
        Ok(unlinkat(parent, name, AtFlags::REMOVEDIR)?)
    }
}

#[cfg(test)]
mod tests;
