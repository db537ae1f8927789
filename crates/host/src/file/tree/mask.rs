//! Masking of secrets in the files of a tree.
//!
//! The files belong to other programs, so each keeps its length and everything around the secret: a database stays one.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use model::redact::SecretMask;
use rustix::fs::{FileType, Mode, OFlags, SeekFrom, Stat, fstat, openat, seek};
use rustix::io::{Errno, pread, pwrite};

use super::walk::{TreeAccess, TreeWalkEntry, Visit, walk};
use crate::file::FileError;

/// Bytes of a file that are searched at a time.
const PART: usize = 256 << 10;

/// Masks secrets in every regular file of `path` that changed since `reference` was written, and returns the number of files
/// that had one. Follows no link. A file that cannot be read does not protect the next one: the first error comes at the
/// end.
pub fn mask_tree(path: &Path, mask: &SecretMask, reference: &Path) -> Result<u64, FileError> {
    if mask.is_empty() || !path.exists() {
        return Ok(0);
    }
    // Both times are the kernel's, which no other clock can contradict.
    let reference = rustix::fs::stat(reference)
        .map_err(|errno| FileError::io("look at", reference)(errno.into()))?;
    let mut visit = Mask { mask, since: changed_at(&reference), files: 0, failed: None };
    walk(path, TreeAccess::MakeWritable, &mut visit)?;
    match visit.failed {
        Some(error) => Err(FileError::io(Mask::ACTION, path)(error)),
        None => Ok(visit.files),
    }
}

struct Mask<'a> {
    mask: &'a SecretMask,
    since: (i64, u64),
    files: u64,
    failed: Option<io::Error>,
}

impl Visit for Mask<'_> {
    const ACTION: &'static str = "mask secrets in";

    fn entry(&mut self, entry: &TreeWalkEntry<'_>) -> io::Result<bool> {
        let stat = &entry.stat;
        let is_file = FileType::from_raw_mode(stat.st_mode).is_file() && stat.st_size > 0;
        if is_file && entry.same_file_system && changed_at(stat) >= self.since {
            match mask_file(entry.dir, entry.name, stat, self.mask) {
                Ok(has_secret) => self.files += u64::from(has_secret),
                Err(error) => self.failed = self.failed.take().or(Some(error)),
            }
        }
        Ok(true)
    }
}

/// Seconds and nanoseconds of the last change, which a program cannot set back.
fn changed_at(stat: &Stat) -> (i64, u64) {
    (stat.st_ctime, stat.st_ctime_nsec)
}

fn mask_file(dir: BorrowedFd<'_>, name: &CStr, stat: &Stat, mask: &SecretMask) -> io::Result<bool> {
    let file = open_same(dir, name, OFlags::RDONLY, stat)?;
    let mut writer = None;
    let mut at = 0;
    // Holes cost nothing on disk and would take for ever to read.
    while let Some(start) = next(&file, SeekFrom::Data(at))? {
        let end = next(&file, SeekFrom::Hole(start))?.unwrap_or(u64::MAX);
        at = mask_range(&file, start, end, mask, |bytes, offset| {
            if writer.is_none() {
                writer = Some(open_same(dir, name, OFlags::RDWR, stat)?);
            }
            writer.as_ref().map_or(Ok(()), |writer| write_at(writer, bytes, offset))
        })?;
    }
    Ok(writer.is_some())
}

fn next(file: &OwnedFd, from: SeekFrom) -> io::Result<Option<u64>> {
    match seek(file, from) {
        Ok(at) => Ok(Some(at)),
        Err(Errno::NXIO) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Searches one range and hands each changed part to `write`. Returns where it ended.
fn mask_range(
    file: &OwnedFd,
    start: u64,
    end: u64,
    mask: &SecretMask,
    mut write: impl FnMut(&[u8], u64) -> io::Result<()>,
) -> io::Result<u64> {
    let (mut held, mut at) = (Vec::new(), start);
    loop {
        let offset = at - held.len() as u64;
        let wanted = usize::try_from(end - at).unwrap_or(PART).min(PART);
        let begin = held.len();
        held.resize(begin + wanted, 0);
        let read = pread(file, &mut held[begin..], at)?;
        held.truncate(begin + read);
        at += read as u64;
        let (ready, is_changed) = match read {
            0 => (held.len(), mask.mask(&mut held)),
            _ => mask.mask_start(&mut held),
        };
        if is_changed {
            write(&held[..ready], offset)?;
        }
        if read == 0 {
            return Ok(at.max(start + 1));
        }
        held.drain(..ready);
    }
}

fn write_at(file: &OwnedFd, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = pwrite(file, bytes, offset)?;
        bytes = &bytes[written..];
        offset += written as u64;
    }
    Ok(())
}

/// Opens the file that the walk saw and no other. Its owner may have taken its own rights away.
fn open_same(dir: BorrowedFd<'_>, name: &CStr, access: OFlags, seen: &Stat) -> io::Result<OwnedFd> {
    let safe = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match openat(dir, name, access | safe, Mode::empty()) {
        Err(Errno::ACCESS) => {
            let handle = openat(dir, name, OFlags::PATH | safe, Mode::empty())?;
            let through = format!("/proc/self/fd/{}", handle.as_raw_fd());
            let mode = Mode::from_raw_mode(fstat(&handle)?.st_mode) | Mode::RUSR | Mode::WUSR;
            rustix::fs::chmod(through, mode)?;
            openat(dir, name, access | safe, Mode::empty())?
        }
        opened => opened?,
    };
    let opened = fstat(&file)?;
    if (opened.st_dev, opened.st_ino) == (seen.st_dev, seen.st_ino) {
        Ok(file)
    } else {
        Err(io::Error::other("a file was replaced while it was being read"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, Permissions};
    use std::io::{Seek, SeekFrom, Write};
    use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};

    use model::secret::Secret;

    use super::*;

    const KEY: &str = "sk-0123456789abcdef";

    fn masked(root: &Path) -> u64 {
        let mask = SecretMask::new([&Secret::new(KEY)]);
        mask_tree(root, &mask, root.parent().unwrap()).unwrap()
    }

    /// A tree whose parent is older than all of it.
    fn tree() -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("state");
        fs::create_dir_all(root.join("logs")).unwrap();
        (dir, root)
    }

    #[test]
    fn secrets_go_and_everything_around_them_stays() {
        let (_dir, root) = tree();
        let log = root.join("logs/agent.log");
        let start = "x".repeat(PART - 5);
        fs::write(&log, format!("{start}{KEY} and {KEY}\n")).unwrap();
        fs::write(root.join("clean"), "nothing").unwrap();
        let before = fs::metadata(root.join("clean")).unwrap().modified().unwrap();
        assert_eq!(masked(&root), 1);
        let stars = "*".repeat(KEY.len());
        assert_eq!(fs::read_to_string(&log).unwrap(), format!("{start}{stars} and {stars}\n"));
        assert_eq!(fs::metadata(root.join("clean")).unwrap().modified().unwrap(), before);
        assert_eq!(masked(&root), 0);
    }

    #[test]
    fn a_link_is_not_followed() {
        let (dir, root) = tree();
        let outside = dir.path().join("outside");
        fs::write(&outside, KEY).unwrap();
        symlink(&outside, root.join("logs/agent.log")).unwrap();
        symlink(dir.path(), root.join("logs/dir")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("fifo"), Mode::RUSR).unwrap();
        assert_eq!(masked(&root), 0);
        assert_eq!(fs::read_to_string(&outside).unwrap(), KEY);
    }

    #[test]
    fn files_without_rights_are_masked_too() {
        let (_dir, root) = tree();
        let locked = root.join("logs/locked");
        fs::write(&locked, KEY).unwrap();
        fs::set_permissions(&locked, Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(root.join("logs"), Permissions::from_mode(0o500)).unwrap();
        assert_eq!(masked(&root), 1);
        assert_eq!(fs::metadata(&locked).unwrap().mode() & 0o077, 0);
    }

    #[test]
    fn a_hole_is_skipped() {
        let (_dir, root) = tree();
        let mut file = File::create(root.join("sparse")).unwrap();
        file.write_all(KEY.as_bytes()).unwrap();
        // To read so much would take hours.
        file.seek(SeekFrom::Start(1 << 42)).unwrap();
        file.write_all(KEY.as_bytes()).unwrap();
        assert_eq!(masked(&root), 1);
        let mut end = vec![0; KEY.len()];
        File::open(root.join("sparse")).unwrap().read_exact_at(&mut end, 1 << 42).unwrap();
        assert_eq!(end, "*".repeat(KEY.len()).as_bytes());
    }

    #[test]
    fn older_files_are_not_searched() {
        let (dir, root) = tree();
        fs::write(root.join("old"), KEY).unwrap();
        let reference = dir.path().join("reference");
        // The kernel's clock has ticks, so the first moment may be the same.
        wait_until(|| {
            fs::write(&reference, "").unwrap();
            fs::metadata(&reference).unwrap().ctime_nsec()
                != fs::metadata(root.join("old")).unwrap().ctime_nsec()
        });
        fs::write(root.join("new"), KEY).unwrap();
        let mask = SecretMask::new([&Secret::new(KEY)]);
        assert_eq!(mask_tree(&root, &mask, &reference).unwrap(), 1);
        assert_eq!(fs::read_to_string(root.join("old")).unwrap(), KEY);
    }

    fn wait_until(mut is_true: impl FnMut() -> bool) {
        while !is_true() {
            std::thread::yield_now();
        }
    }
}
