//! Reading of a whole tree in an order that is the same for the same tree: parents first, entries by their bytes.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat,
};
use rustix::io::Errno;

use crate::file::FileError;

/// Folders inside one another that are read at most: each of them is an open descriptor.
const DEPTH_MAX: usize = 512;

/// An entry of a tree that is read.
#[derive(Debug)]
pub struct FoundEntry<'a> {
    /// Path below the root; empty for the root itself.
    pub path: &'a Path,
    pub kind: TreeEntryKind,
    /// Permission bits, with set-user-id and the like.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// Seconds and nanoseconds of the last change of its content.
    pub modified: (i64, u32),
    /// Number of its names.
    pub links: u64,
    /// Device and number, by which two names of one file are known.
    pub identity: (u64, u64),
}

#[derive(Debug)]
pub enum TreeEntryKind {
    Dir,
    File {
        file: File,
        size: u64,
        /// Bytes taken on disk; fewer than the size in a file with holes.
        taken: u64,
    },
    Symlink {
        target: OsString,
    },
    /// A socket, a FIFO or a device.
    Special,
}

/// Calls `visit` for everything beneath `root`, and for `root` itself, which may be a single file. Follows no link and leaves
/// the file system of the root nowhere. What its owner took the rights of is read all the same, and keeps its mode.
pub fn read_tree<E: From<FileError>>(
    root: &Path,
    mut visit: impl FnMut(FoundEntry<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut path = PathBuf::new();
    let failed = |at: &Path, errno: io::Error| {
        let at = if at.as_os_str().is_empty() { root.to_path_buf() } else { root.join(at) };
        E::from(FileError::io("read", &at)(errno))
    };
    let name =
        CString::new(root.as_os_str().as_bytes()).map_err(|error| failed(&path, error.into()))?;
    let (entry, dir) = look(CWD, &name, &path).map_err(|error| failed(&path, error))?;
    let device = entry.identity.0;
    visit(entry)?;
    let mut levels = Vec::new();
    if let Some(dir) = dir {
        levels.push(OpenFolder::open(dir).map_err(|error| failed(&path, error))?);
    }
    while let Some(level) = levels.last_mut() {
        let Some(name) = level.pending.pop() else {
            levels.pop();
            path.pop();
            continue;
        };
        path.push(OsStr::from_bytes(name.to_bytes()));
        let (entry, dir) =
            look(level.dir.as_fd(), &name, &path).map_err(|error| failed(&path, error))?;
        let is_here = entry.identity.0 == device;
        visit(entry)?;
        match dir.filter(|_| is_here) {
            None => {
                path.pop();
            }
            Some(_) if levels.len() >= DEPTH_MAX => {
                let why = format!("it is more than {DEPTH_MAX} folders deep");
                return Err(failed(&path, io::Error::other(why)));
            }
            Some(dir) => levels.push(OpenFolder::open(dir).map_err(|error| failed(&path, error))?),
        }
    }
    Ok(())
}

struct OpenFolder {
    dir: OwnedFd,
    /// Names that are left, last one first.
    pending: Vec<CString>,
}

impl OpenFolder {
    fn open(dir: OwnedFd) -> io::Result<Self> {
        let mut pending = Vec::new();
        for found in Dir::read_from(&dir)? {
            let name = found?.file_name().to_owned();
            if name.as_c_str() != c"." && name.as_c_str() != c".." {
                pending.push(name);
            }
        }
        pending.sort_unstable_by(|one, other| other.cmp(one));
        Ok(Self { dir, pending })
    }
}

/// Looks at an entry; a directory comes open as well.
fn look<'a>(
    dir: BorrowedFd<'_>,
    name: &CStr,
    path: &'a Path,
) -> io::Result<(FoundEntry<'a>, Option<OwnedFd>)> {
    let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => {
            let opened = open_readable(dir, name, OFlags::DIRECTORY, &stat)?;
            return Ok((entry_of(path, TreeEntryKind::Dir, &stat), Some(opened)));
        }
        FileType::RegularFile => {
            let file = File::from(open_readable(dir, name, OFlags::NONBLOCK, &stat)?);
            let taken = u64::try_from(stat.st_blocks).unwrap_or_default().saturating_mul(512);
            let size = u64::try_from(stat.st_size).unwrap_or_default();
            TreeEntryKind::File { file, size, taken }
        }
        FileType::Symlink => {
            let target = readlinkat(dir, name, Vec::new())?;
            TreeEntryKind::Symlink { target: OsString::from_vec(target.into_bytes()) }
        }
        _ => TreeEntryKind::Special,
    };
    Ok((entry_of(path, kind, &stat), None))
}

fn entry_of<'a>(path: &'a Path, kind: TreeEntryKind, stat: &Stat) -> FoundEntry<'a> {
    FoundEntry {
        path,
        kind,
        mode: stat.st_mode & 0o7777,
        uid: stat.st_uid,
        gid: stat.st_gid,
        modified: (stat.st_mtime, u32::try_from(stat.st_mtime_nsec).unwrap_or_default()),
        links: stat.st_nlink,
        identity: (stat.st_dev, stat.st_ino),
    }
}

/// Opens what was looked at and nothing else. Rights that its owner took away are given for the moment of opening.
fn open_readable(
    dir: BorrowedFd<'_>,
    name: &CStr,
    kind: OFlags,
    seen: &Stat,
) -> io::Result<OwnedFd> {
    let safe = kind | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = match openat(dir, name, OFlags::RDONLY | safe, Mode::empty()) {
        Err(Errno::ACCESS) => {
            let handle = openat(dir, name, OFlags::PATH | safe, Mode::empty())?;
            let through = format!("/proc/self/fd/{}", handle.as_raw_fd());
            let mode = Mode::from_raw_mode(seen.st_mode);
            rustix::fs::chmod(&through, mode | Mode::RUSR | Mode::XUSR)?;
            let opened = openat(dir, name, OFlags::RDONLY | safe, Mode::empty());
            rustix::fs::chmod(&through, mode)?;
            opened?
        }
        opened => opened?,
    };
    let found = fstat(&opened)?;
    match (found.st_dev, found.st_ino) == (seen.st_dev, seen.st_ino) {
        true => Ok(opened),
        false => Err(io::Error::other("it was replaced while it was being read")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    fn paths(root: &Path) -> Vec<String> {
        let mut found = Vec::new();
        read_tree::<FileError>(root, |entry| {
            found.push(entry.path.display().to_string());
            Ok(())
        })
        .unwrap();
        found
    }

    #[test]
    fn parents_come_first_and_names_in_order() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("b/a")).unwrap();
        for name in ["b/z", "a", "c", "b/a/x"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        symlink("/etc", dir.path().join("link")).unwrap();
        assert_eq!(paths(dir.path()), ["", "a", "b", "b/a", "b/a/x", "b/z", "c", "link"]);
    }

    #[test]
    fn what_its_owner_may_not_read_is_read_and_keeps_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let (closed, file) = (dir.path().join("closed"), dir.path().join("closed/file"));
        fs::create_dir(&closed).unwrap();
        fs::write(&file, "x").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(&closed, Permissions::from_mode(0o100)).unwrap();
        assert_eq!(paths(dir.path()), ["", "closed", "closed/file"]);
        assert_eq!(fs::metadata(&closed).unwrap().mode() & 0o777, 0o100);
        assert_eq!(fs::symlink_metadata(&file).unwrap().mode() & 0o777, 0o000);
    }

    #[test]
    fn a_tree_that_is_too_deep_is_refused_by_its_path() {
        let dir = tempfile::tempdir().unwrap();
        let deep: PathBuf = std::iter::repeat_n("d", DEPTH_MAX + 5).collect();
        fs::create_dir_all(dir.path().join(deep)).unwrap();
        let error = read_tree::<FileError>(dir.path(), |_| Ok(())).unwrap_err();
        assert!(model::error_chain(&error).contains("folders deep"), "{error}");
    }
}
