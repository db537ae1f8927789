//! Building of a tree from names that come from elsewhere: everything is made below one directory descriptor, and no link
//! inside is followed.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, ResolveFlags, Timespec, Timestamps, Uid, chownat, linkat,
    mkdirat, openat, openat2, statat, symlinkat, syncfs, utimensat,
};

use crate::file::FileError;

/// A tree that is being built in a new directory.
#[derive(Debug)]
pub struct TreeBuilder {
    root: OwnedFd,
    path: PathBuf,
    /// The directory of the last entry.
    parent: Option<(PathBuf, OwnedFd)>,
}

/// Properties of an entry, which it gets once its content is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryAttributes {
    /// Permission bits; others are left out.
    pub mode: u32,
    /// User and group; `None` leaves the caller's.
    pub owner: Option<(u32, u32)>,
    pub modified: (i64, u32),
}

impl TreeBuilder {
    /// A builder below `path`, which exists.
    pub fn new(path: &Path) -> Result<Self, FileError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let root = openat(CWD, path, flags, Mode::empty())
            .map_err(|errno| FileError::io("open the directory", path)(errno.into()))?;
        Ok(Self { root, path: path.to_path_buf(), parent: None })
    }

    pub fn create_dir(&mut self, path: &Path) -> Result<(), FileError> {
        self.make("make the directory", path, |parent, name| Ok(mkdirat(parent, name, Mode::RWXU)?))
    }

    pub fn create_file(&mut self, path: &Path) -> Result<File, FileError> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.make("make", path, |parent, name| {
            Ok(File::from(openat(parent, name, flags, Mode::RUSR | Mode::WUSR)?))
        })
    }

    /// Makes a link whose text is kept as it is. It is data: nothing here follows it.
    pub fn create_symlink(&mut self, path: &Path, target: &OsStr) -> Result<(), FileError> {
        self.make("make the link", path, |parent, name| Ok(symlinkat(target, parent, name)?))
    }

    /// Gives a regular file that this builder made one more name.
    pub fn create_hard_link(&mut self, path: &Path, existing: &Path) -> Result<(), FileError> {
        let failed =
            |source: io::Error| FileError::io("link to", &self.path.join(existing))(source);
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = self.open_beneath(existing, flags).map_err(failed)?;
        let stat = rustix::fs::fstat(&file).map_err(|errno| failed(errno.into()))?;
        if !rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file() {
            return Err(failed(io::Error::other("it is not a regular file")));
        }
        let through = format!("/proc/self/fd/{}", file.as_raw_fd());
        self.make("link", path, |parent, name| {
            Ok(linkat(CWD, &through, parent, name, AtFlags::SYMLINK_FOLLOW)?)
        })
    }

    /// Sets mode, owner and time of an entry. A link has no mode.
    pub fn set_attributes(
        &mut self,
        path: &Path,
        attributes: &EntryAttributes,
    ) -> Result<(), FileError> {
        let EntryAttributes { mode, owner, modified } = *attributes;
        self.make("set the properties of", path, |parent, name| {
            if let Some((uid, gid)) = owner {
                let owner = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
                chownat(parent, name, owner.0, owner.1, AtFlags::SYMLINK_NOFOLLOW)?;
            }
            let stat = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
            if !rustix::fs::FileType::from_raw_mode(stat.st_mode).is_symlink() {
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let handle = openat(parent, name, flags, Mode::empty())?;
                let through = format!("/proc/self/fd/{}", handle.as_raw_fd());
                rustix::fs::chmod(through, Mode::from_raw_mode(mode & 0o777))?;
            }
            let time = Timespec { tv_sec: modified.0, tv_nsec: i64::from(modified.1) };
            let times = Timestamps { last_access: time, last_modification: time };
            Ok(utimensat(parent, name, &times, AtFlags::SYMLINK_NOFOLLOW)?)
        })
    }

    /// Brings everything to disk, so that a rename of the root makes a whole tree appear.
    pub fn sync(&self) -> Result<(), FileError> {
        syncfs(&self.root).map_err(|errno| FileError::io("bring to disk", &self.path)(errno.into()))
    }

    fn make<T>(
        &mut self,
        action: &'static str,
        path: &Path,
        act: impl FnOnce(std::os::fd::BorrowedFd<'_>, &OsStr) -> io::Result<T>,
    ) -> Result<T, FileError> {
        let full = self.path.join(path);
        let made = self.enter_parent(path).and_then(|name| {
            let parent = self.parent.as_ref().map_or(&self.root, |(_, parent)| parent);
            act(parent.as_fd(), name)
        });
        made.map_err(FileError::io(action, &full))
    }

    /// Opens the directory of an entry, and returns the entry's name in it.
    fn enter_parent<'a>(&mut self, path: &'a Path) -> io::Result<&'a OsStr> {
        let outside = || io::Error::other("its name leads out of the folder");
        if !path.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(outside());
        }
        let name = path.file_name().ok_or_else(outside)?;
        let parent = path.parent().unwrap_or(Path::new(""));
        if self.parent.as_ref().is_some_and(|(known, _)| known == parent) {
            return Ok(name);
        }
        self.parent = None;
        if !parent.as_os_str().is_empty() {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = self.open_beneath(parent, flags)?;
            self.parent = Some((parent.to_path_buf(), opened));
        }
        Ok(name)
    }

    fn open_beneath(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        Ok(openat2(&self.root, path, flags, Mode::empty(), resolve)?)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn nothing_is_made_through_a_link_or_out_of_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), "mine").unwrap();
        let mut tree = TreeBuilder::new(&root).unwrap();
        tree.create_symlink(Path::new("out"), outside.as_os_str()).unwrap();
        for path in ["out/new", "../outside/new", "/etc/new", "a/../../new", "."] {
            tree.create_file(Path::new(path)).unwrap_err();
            tree.create_dir(Path::new(path)).unwrap_err();
            tree.create_symlink(Path::new(path), OsStr::new("x")).unwrap_err();
        }
        for existing in ["out", "out/secret", "../outside/secret"] {
            tree.create_hard_link(Path::new("name"), Path::new(existing)).unwrap_err();
        }
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        assert_eq!(fs::read_dir(&root).unwrap().count(), 1);
    }
}
