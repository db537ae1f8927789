//! Walk over a tree by directory descriptors, which no link can redirect.
//!
//! It keeps a single directory open and returns to the parent by `..`, checking that it arrives where it came
//! from: a tree nested ten thousand deep needs neither descriptors nor a long path.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

use crate::file::FileError;

/// Callbacks of a walk. Each is called with the directory that holds the entry.
pub(super) trait Visit {
    /// The verb for error messages.
    const ACTION: &'static str;

    /// Called once with the root itself.
    fn root(&mut self, _dir: BorrowedFd<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Called when a directory beneath the root is entered.
    fn enter(&mut self, _name: &CStr) {}

    /// Called for each entry, before a directory is entered; `false` ends the walk.
    fn entry(&mut self, entry: &TreeWalkEntry<'_>) -> io::Result<bool>;

    /// Called when a directory has been walked, from its parent.
    fn leave(&mut self, _parent: BorrowedFd<'_>, _name: &CStr) -> io::Result<()> {
        Ok(())
    }
}

/// One entry of a directory, examined without following it.
pub(super) struct TreeWalkEntry<'a> {
    pub(super) dir: BorrowedFd<'a>,
    pub(super) name: &'a CStr,
    pub(super) stat: Stat,
    pub(super) same_file_system: bool,
}

impl TreeWalkEntry<'_> {
    pub(super) fn is_dir(&self) -> bool {
        FileType::from_raw_mode(self.stat.st_mode).is_dir()
    }
}

/// Permission changes that the walk may make to directories it cannot enter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TreeAccess {
    /// None: such a directory is an error.
    AsItIs,
    /// Gives the owner all rights first, which removal needs.
    MakeWritable,
}

/// Visits everything beneath `root`, which must be a directory and not a link to one.
pub(super) fn walk<V: Visit>(
    root: &Path,
    access: TreeAccess,
    visit: &mut V,
) -> Result<(), FileError> {
    let mut trail = Vec::new();
    walk_from(root, access, visit, &mut trail)
        .map_err(|source| FileError::io(V::ACTION, &path_of(root, &trail))(source))
}

struct Level {
    name: CString,
    identity: FileIdentity,
    pending: Vec<CString>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct FileIdentity {
    device: u64,
    inode: u64,
}

impl From<&Stat> for FileIdentity {
    fn from(stat: &Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }
}

fn walk_from<V: Visit>(
    root: &Path,
    access: TreeAccess,
    visit: &mut V,
    trail: &mut Vec<Level>,
) -> io::Result<()> {
    let root = CString::new(root.as_os_str().as_bytes())?;
    let mut here = enter(CWD, &root, access)?;
    visit.root(here.as_fd())?;
    if !push_level(here.as_fd(), root, visit, trail)? {
        return Ok(());
    }
    while let Some(level) = trail.last_mut() {
        if let Some(name) = level.pending.pop() {
            here = enter(here.as_fd(), &name, access)?;
            visit.enter(&name);
            if !push_level(here.as_fd(), name, visit, trail)? {
                return Ok(());
            }
        } else {
            let Some(done) = trail.pop() else { break };
            if let Some(parent) = trail.last() {
                here = climb(here.as_fd(), parent.identity)?;
                visit.leave(here.as_fd(), &done.name)?;
            }
        }
    }
    Ok(())
}

/// Visits the entries of one directory and remembers the directories among them.
fn push_level<V: Visit>(
    dir: BorrowedFd<'_>,
    name: CString,
    visit: &mut V,
    trail: &mut Vec<Level>,
) -> io::Result<bool> {
    let identity = FileIdentity::from(&fstat(dir)?);
    trail.push(Level { name, identity, pending: Vec::new() });
    let mut pending = Vec::new();
    for found in Dir::read_from(dir)? {
        let found = found?;
        let name = found.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let stat = match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            // Another process removed it in between, so there is nothing left to visit.
            Err(Errno::NOENT) => continue,
            Err(errno) => return Err(errno.into()),
        };
        let same_file_system = stat.st_dev == identity.device;
        let entry = TreeWalkEntry { dir, name, stat, same_file_system };
        if !visit.entry(&entry)? {
            return Ok(false);
        }
        if entry.is_dir() && same_file_system {
            pending.push(name.to_owned());
        }
    }
    if let Some(level) = trail.last_mut() {
        level.pending = pending;
    }
    Ok(true)
}

fn enter(parent: BorrowedFd<'_>, name: &CStr, access: TreeAccess) -> io::Result<OwnedFd> {
    if access == TreeAccess::MakeWritable {
        make_writable(parent, name)?;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(parent, name, flags, Mode::empty())?)
}

/// Changes the mode through a descriptor that names the directory itself, since a change by name
/// would follow a link put there in between.
fn make_writable(parent: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat(parent, name, flags, Mode::empty())?;
    if fstat(&handle)?.st_mode & 0o700 == 0o700 {
        return Ok(());
    }
    let through = format!("/proc/self/fd/{}", handle.as_raw_fd());
    Ok(rustix::fs::chmod(through, Mode::RWXU)?)
}

fn climb(from: BorrowedFd<'_>, expected: FileIdentity) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let parent = openat(from, c"..", flags, Mode::empty())?;
    if FileIdentity::from(&fstat(&parent)?) != expected {
        return Err(io::Error::other("a directory was moved while its tree was being walked"));
    }
    Ok(parent)
}

fn path_of(root: &Path, trail: &[Level]) -> PathBuf {
    let below = trail.iter().skip(1).map(|level| OsStr::from_bytes(level.name.to_bytes()));
    std::iter::once(root.as_os_str()).chain(below).collect()
}
