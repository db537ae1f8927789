//! Reading of one file in an untrusted tree.
//!
//! After a run the workspace is data. A note left there may be a link to a secret, a FIFO that blocks for
//! ever, or a file of ten gigabytes. The kernel resolves the path under rules that admit none of this, so
//! there is no moment between checking and opening.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use thiserror::Error;

/// The beginning of a file found beneath a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SafeFile {
    /// The first bytes, up to the requested number.
    pub bytes: Vec<u8>,
    /// True if the file continues after `bytes`.
    pub truncated: bool,
    /// The size the file claims to have.
    pub size: u64,
}

/// A file of an untrusted tree that was not read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SafeReadError {
    #[error("refused to read {relative} in {root}: a symbolic link is on the way", root = root.display())]
    Symlink { root: PathBuf, relative: String },
    /// The path leaves the tree, or enters another file system.
    #[error("refused to read {relative} in {root}: it leads out of the tree", root = root.display())]
    Outside { root: PathBuf, relative: String },
    #[error("refused to read {relative} in {root}: it is a {kind}, not a regular file", root = root.display())]
    NotRegular { root: PathBuf, relative: String, kind: &'static str },
    #[error("refused to read {relative:?} in {root}: not a usable path", root = root.display())]
    BadPath { root: PathBuf, relative: String },
    #[error("could not read {relative} in {root}", root = root.display())]
    Io { root: PathBuf, relative: String, source: io::Error },
}

/// Reads the first `cap` bytes of `relative` beneath `root`. A missing file is `None`, not an error; anything
/// but a regular file reached without links is refused with its type.
pub fn read_beneath(
    root: &Path,
    relative: &str,
    cap: usize,
) -> Result<Option<SafeFile>, SafeReadError> {
    let request = ReadRequest { root, relative };
    if relative.is_empty() || relative.contains('\0') {
        let (root, relative) = request.names();
        return Err(SafeReadError::BadPath { root, relative });
    }
    let Some(file) = request.open()? else { return Ok(None) };
    let stat = rustix::fs::fstat(&file).map_err(|errno| request.io(errno.into()))?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    if !kind.is_file() {
        return Err(request.not_regular(name_of(kind)));
    }
    let (bytes, truncated) = read_start(file, cap).map_err(|source| request.io(source))?;
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    Ok(Some(SafeFile { bytes, truncated, size }))
}

/// Limits of a search in a tree: entries that are visited, files that are returned, and folders that are descended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FindLimits {
    pub visited: usize,
    pub found: usize,
    pub deep: usize,
}

/// Files that a search found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundFiles {
    /// Sorted.
    pub paths: Vec<String>,
    /// A limit ended the search: there may be more.
    pub is_cut: bool,
}

/// Lists regular files beneath `root` whose names end with `suffix`. Links are not followed, git's own files and installed
/// packages are left out, and so is what cannot be read or is not UTF-8. No process may be at work in the tree.
pub fn find_within(root: &Path, suffix: &str, limits: FindLimits) -> FoundFiles {
    let (mut found, mut visited) = (FoundFiles::default(), 0);
    let mut open = vec![(String::new(), 0)];
    'search: while let Some((folder, depth)) = open.pop() {
        let Ok(entries) = std::fs::read_dir(root.join(&folder)) else { continue };
        for entry in entries.flatten() {
            visited += 1;
            if visited > limits.visited || found.paths.len() >= limits.found {
                found.is_cut = true;
                break 'search;
            }
            let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else {
                continue;
            };
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            if kind.is_dir() && name != ".git" && name != "node_modules" {
                found.is_cut |= depth >= limits.deep;
                open.extend((depth < limits.deep).then(|| (path, depth + 1)));
            } else if kind.is_file() && name.ends_with(suffix) {
                found.paths.push(path);
            }
        }
    }
    found.paths.sort();
    found
}

/// Root and path of the request, for error messages.
struct ReadRequest<'a> {
    root: &'a Path,
    relative: &'a str,
}

impl ReadRequest<'_> {
    fn open(&self) -> Result<Option<File>, SafeReadError> {
        let root = rustix::fs::open(
            self.root,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|errno| self.io(errno.into()))?;
        match resolve(&root, self.relative) {
            Ok(file) => Ok(Some(File::from(file))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(Errno::LOOP) => {
                let (root, relative) = self.names();
                Err(SafeReadError::Symlink { root, relative })
            }
            Err(Errno::XDEV) => {
                let (root, relative) = self.names();
                Err(SafeReadError::Outside { root, relative })
            }
            // Opening a socket, or a device without a driver, fails with this.
            Err(Errno::NXIO | Errno::NODEV) => Err(self.not_regular("socket or device")),
            Err(errno) => Err(self.io(errno.into())),
        }
    }

    fn names(&self) -> (PathBuf, String) {
        (self.root.to_path_buf(), self.relative.to_owned())
    }

    fn not_regular(&self, kind: &'static str) -> SafeReadError {
        let (root, relative) = self.names();
        SafeReadError::NotRegular { root, relative, kind }
    }

    fn io(&self, source: io::Error) -> SafeReadError {
        let (root, relative) = self.names();
        SafeReadError::Io { root, relative, source }
    }
}

/// Opens the path beneath the root. The kernel returns EAGAIN when a rename happened elsewhere during the
/// lookup, so the call is retried a few times.
fn resolve(root: &OwnedFd, relative: &str) -> Result<OwnedFd, Errno> {
    const ATTEMPTS: u32 = 16;
    let flags =
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
    let rules = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_XDEV
        | ResolveFlags::NO_MAGICLINKS;
    let mut answer = Err(Errno::AGAIN);
    for _ in 0..ATTEMPTS {
        answer = rustix::fs::openat2(root, relative, flags, Mode::empty(), rules);
        if answer.as_ref().err() != Some(&Errno::AGAIN) {
            break;
        }
    }
    answer
}

/// Reads one byte more than requested, because the size in the inode is only a claim.
fn read_start(file: File, cap: usize) -> io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(cap).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit).read_to_end(&mut bytes)?;
    let truncated = bytes.len() > cap;
    bytes.truncate(cap);
    Ok((bytes, truncated))
}

fn name_of(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "regular file",
        FileType::Directory => "directory",
        FileType::Symlink => "symbolic link",
        FileType::Fifo => "FIFO",
        FileType::Socket => "socket",
        FileType::CharacterDevice => "character device",
        FileType::BlockDevice => "block device",
        FileType::Unknown => "thing of unknown kind",
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, mkfifoat};

    use super::*;

    const CAP: usize = 64 * 1024;

    fn tree() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn refusal(root: &Path, relative: &str) -> SafeReadError {
        read_beneath(root, relative, CAP).unwrap_err()
    }

    #[test]
    fn files_are_found_by_their_ends_and_links_are_not_followed() {
        let dir = tree();
        for folder in ["a/b", ".git", "node_modules/x"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
            fs::write(dir.path().join(folder).join("r.xml"), "").unwrap();
        }
        symlink("/etc", dir.path().join("out")).unwrap();
        symlink("a/b/r.xml", dir.path().join("link.xml")).unwrap();
        fs::write(dir.path().join("top.xml"), "").unwrap();
        let limits = FindLimits { visited: 100, found: 10, deep: 3 };
        let find = |limits| find_within(dir.path(), ".xml", limits);
        let all =
            FoundFiles { paths: vec!["a/b/r.xml".to_owned(), "top.xml".to_owned()], is_cut: false };
        assert_eq!(find(limits), all);
        assert_eq!(find_within(&dir.path().join("none"), ".xml", limits), FoundFiles::default());
        assert!(find(FindLimits { visited: 2, ..limits }).is_cut);
        assert!(find(FindLimits { found: 1, ..limits }).is_cut);
        assert!(find(FindLimits { deep: 1, ..limits }).is_cut);
    }

    #[test]
    fn a_plain_note_is_read() {
        let dir = tree();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("sub/STUCK.md"), "which flow?").unwrap();
        let file = read_beneath(dir.path(), "sub/STUCK.md", CAP).unwrap().unwrap();
        assert_eq!(file.bytes, b"which flow?");
        assert_eq!((file.truncated, file.size), (false, 11));
    }

    #[test]
    fn a_missing_note_is_an_answer() {
        let dir = tree();
        fs::write(dir.path().join("file"), "x").unwrap();
        assert_eq!(read_beneath(dir.path(), "STUCK.md", CAP).unwrap(), None);
        assert_eq!(read_beneath(dir.path(), "file/STUCK.md", CAP).unwrap(), None);
    }

    #[test]
    fn a_link_to_a_secret_is_refused() {
        let dir = tree();
        symlink("/etc/passwd", dir.path().join("STUCK.md")).unwrap();
        assert!(matches!(refusal(dir.path(), "STUCK.md"), SafeReadError::Symlink { .. }));
    }

    #[test]
    fn a_linked_directory_on_the_way_is_refused() {
        let dir = tree();
        symlink("/etc", dir.path().join("sub")).unwrap();
        assert!(matches!(refusal(dir.path(), "sub/passwd"), SafeReadError::Symlink { .. }));
    }

    #[test]
    fn a_link_that_stays_inside_is_refused_too() {
        let dir = tree();
        fs::write(dir.path().join("real"), "x").unwrap();
        symlink("real", dir.path().join("STUCK.md")).unwrap();
        assert!(matches!(refusal(dir.path(), "STUCK.md"), SafeReadError::Symlink { .. }));
    }

    #[test]
    fn a_fifo_is_refused_without_waiting_for_a_writer() {
        let dir = tree();
        mkfifoat(CWD, dir.path().join("STUCK.md"), Mode::RUSR | Mode::WUSR).unwrap();
        let error = refusal(dir.path(), "STUCK.md");
        assert!(matches!(error, SafeReadError::NotRegular { kind: "FIFO", .. }), "{error}");
    }

    #[test]
    fn a_directory_and_a_socket_are_refused() {
        let dir = tree();
        fs::create_dir(dir.path().join("dir")).unwrap();
        let _listener = UnixListener::bind(dir.path().join("sock")).unwrap();
        let error = refusal(dir.path(), "dir");
        assert!(matches!(error, SafeReadError::NotRegular { kind: "directory", .. }), "{error}");
        assert!(matches!(refusal(dir.path(), "sock"), SafeReadError::NotRegular { .. }));
    }

    #[test]
    fn a_device_is_refused() {
        let error = refusal(Path::new("/dev"), "null");
        let kind = "character device";
        assert!(matches!(error, SafeReadError::NotRegular { kind: k, .. } if k == kind), "{error}");
    }

    #[test]
    fn traversal_and_absolute_paths_are_refused() {
        let dir = tree();
        fs::create_dir(dir.path().join("root")).unwrap();
        fs::write(dir.path().join("secret"), "x").unwrap();
        let root = dir.path().join("root");
        for path in ["../secret", "/etc/passwd", "x/../../secret"] {
            let answer = read_beneath(&root, path, CAP);
            assert!(!matches!(answer, Ok(Some(_))), "{path} was read");
        }
        assert!(matches!(refusal(&root, "../secret"), SafeReadError::Outside { .. }));
        assert!(matches!(refusal(&root, "/etc/passwd"), SafeReadError::Outside { .. }));
        assert!(matches!(refusal(&root, ""), SafeReadError::BadPath { .. }));
    }

    #[test]
    fn ten_gigabytes_of_nothing_cost_only_the_cap() {
        let dir = tree();
        let file = File::create(dir.path().join("STUCK.md")).unwrap();
        file.set_len(10 << 30).unwrap();
        let read = read_beneath(dir.path(), "STUCK.md", CAP).unwrap().unwrap();
        assert_eq!(read.bytes.len(), CAP);
        assert_eq!((read.truncated, read.size), (true, 10 << 30));
    }
}
