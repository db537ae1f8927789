//! Reading of files that hold secrets, refusing those that other users can read.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::FileError;

/// Size limit of a file of keys. A larger file is a mistake or an attack.
const LIMIT: u64 = 1 << 20;

/// Reads a file of secrets. It must be a regular file, and only its owner may have any right to it: a key
/// that others can read counts as leaked, so reading it is an error.
pub fn read_private(path: &Path) -> Result<Vec<u8>, FileError> {
    let file = open_without_waiting(path)?;
    // The descriptor is checked and not the path, which could be exchanged in between.
    let facts = file.metadata().map_err(FileError::io("look at", path))?;
    if !facts.is_file() {
        return Err(FileError::NotRegular { path: path.to_path_buf() });
    }
    read_owned(path, file, facts.mode())
}

/// Reads a file on which only its owner has any right.
fn read_owned(path: &Path, file: File, mode: u32) -> Result<Vec<u8>, FileError> {
    let mode = mode & 0o777;
    if mode & 0o077 != 0 {
        return Err(FileError::TooOpen { path: path.to_path_buf(), mode });
    }
    let mut bytes = Vec::new();
    file.take(LIMIT + 1).read_to_end(&mut bytes).map_err(FileError::io("read", path))?;
    if bytes.len() as u64 > LIMIT {
        return Err(FileError::TooLarge { path: path.to_path_buf(), limit: LIMIT });
    }
    Ok(bytes)
}

/// True if the path leads to a pipe, such as `/dev/fd/63` of a shell's process substitution.
pub fn is_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|facts| facts.file_type().is_fifo())
}

/// Like [`read_private`], and reads a pipe to its end, waiting for its writer. A pipe can be read once.
pub fn read_private_or_pipe(path: &Path) -> Result<Vec<u8>, FileError> {
    if !is_pipe(path) {
        return read_private(path);
    }
    let file = File::open(path).map_err(FileError::io("open", path))?;
    let facts = file.metadata().map_err(FileError::io("look at", path))?;
    if !facts.file_type().is_fifo() {
        return Err(FileError::NotRegular { path: path.to_path_buf() });
    }
    read_owned(path, file, facts.mode())
}

/// Opens without blocking: a FIFO would otherwise block until it has a writer. A link is followed, since
/// users keep the real file elsewhere; the mode of the real file is checked.
fn open_without_waiting(path: &Path) -> Result<File, FileError> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|error| {
        // The system reports a socket this way.
        if Errno::from_io_error(&error) == Some(Errno::NXIO) {
            FileError::NotRegular { path: path.to_path_buf() }
        } else {
            FileError::io("open", path)(error)
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, Mode, mkfifoat};

    use super::*;

    fn with_mode(mode: u32) -> Result<Vec<u8>, FileError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.env");
        fs::write(&path, "KEY=1").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        read_private(&path)
    }

    #[test]
    fn a_file_of_the_owner_alone_is_read() {
        assert_eq!(with_mode(0o600).unwrap(), b"KEY=1");
        assert_eq!(with_mode(0o400).unwrap(), b"KEY=1");
    }

    #[test]
    fn a_file_others_can_read_is_refused_with_the_remedy() {
        for mode in [0o640, 0o604, 0o660, 0o601] {
            let message = with_mode(mode).unwrap_err().to_string();
            assert!(message.contains("run: chmod 600 /"), "{message}");
        }
    }

    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        mkfifoat(CWD, at("fifo"), Mode::RUSR | Mode::WUSR).unwrap();
        let _listener = UnixListener::bind(at("socket")).unwrap();
        fs::create_dir(at("dir")).unwrap();
        for name in ["fifo", "socket", "dir"] {
            let error = read_private(&at(name)).unwrap_err();
            assert!(matches!(error, FileError::NotRegular { .. }), "{name}: {error}");
        }
    }

    #[test]
    fn a_pipe_of_the_owner_alone_is_read_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        for (mode, expected) in [(Mode::RUSR | Mode::WUSR, true), (Mode::from(0o644), false)] {
            let path = dir.path().join(if expected { "good" } else { "open" });
            mkfifoat(CWD, &path, mode).unwrap();
            let writer = path.clone();
            let writer = std::thread::spawn(move || fs::write(writer, "KEY=1").is_ok());
            let read = read_private_or_pipe(&path);
            assert_eq!(read.is_ok_and(|bytes| bytes == b"KEY=1"), expected);
            assert!(writer.join().is_ok());
        }
    }

    #[test]
    fn a_missing_file_says_so() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read_private(&dir.path().join("none")).unwrap_err().is_not_found());
    }

    #[test]
    fn an_endless_file_is_not_read_to_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.env");
        File::create(&path).unwrap().set_len(10 << 30).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(read_private(&path), Err(FileError::TooLarge { .. })));
    }
}
