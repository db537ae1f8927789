//! Hash-chained logs in files: opened by one writer at a time, appended line by line, each line on disk before the
//! next. The chain itself is in `model::chain`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::chain::{ChainFault, whole_lines};
use thiserror::Error;

use crate::file::FileError;
use crate::lock::{LockError, lock_open_file};

const MODE: u32 = 0o600;

/// A log that could not be opened or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ChainFileError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{path} exists already; open it to continue it", path = path.display())]
    Exists { path: PathBuf },
    /// Another process writes to the log. Two writers would each continue the same line.
    #[error("{path} is being written by another process; try again when that process has ended", path = path.display())]
    Busy { path: PathBuf },
    #[error("{path} cannot be continued because its chain is broken; keep it as evidence", path = path.display())]
    Broken { path: PathBuf, source: ChainFault },
}

/// A log open for appending. The lock on it is held until the file is closed.
#[derive(Debug)]
pub struct ChainFile {
    path: PathBuf,
    file: File,
    /// Bytes up to the end of the last line that is on disk.
    len: u64,
}

impl ChainFile {
    /// Creates a log that must not exist yet.
    pub fn create(path: &Path, wait: Duration) -> Result<Self, ChainFileError> {
        let file = match options().create_new(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(ChainFileError::Exists { path: path.to_path_buf() });
            }
            Err(error) => return Err(FileError::io("create", path)(error).into()),
        };
        lock(&file, path, wait)?;
        Ok(Self { path: path.to_path_buf(), file, len: 0 })
    }

    /// Opens a log that exists, and returns its bytes for the caller to verify.
    pub fn open(path: &Path, wait: Duration) -> Result<(Self, Vec<u8>), ChainFileError> {
        Self::open_with(&options(), path, wait)
    }

    /// Opens a log, and creates an empty one if there is none.
    pub fn open_or_create(path: &Path, wait: Duration) -> Result<(Self, Vec<u8>), ChainFileError> {
        Self::open_with(options().create(true), path, wait)
    }

    fn open_with(
        options: &OpenOptions,
        path: &Path,
        wait: Duration,
    ) -> Result<(Self, Vec<u8>), ChainFileError> {
        let mut file = options.open(path).map_err(FileError::io("open", path))?;
        lock(&file, path, wait)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(FileError::io("read", path))?;
        let len = whole_lines(&bytes).len() as u64;
        Ok((Self { path: path.to_path_buf(), file, len }, bytes))
    }

    /// Appends a line, given without its line break, and waits until it is on disk.
    pub fn append(&mut self, line: &str) -> Result<(), ChainFileError> {
        let bytes = format!("{line}\n");
        self.file
            .write_all(bytes.as_bytes())
            .and_then(|()| self.file.sync_data())
            .map_err(FileError::io("append to", &self.path))?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Cuts the bytes after the last line that is on disk, which a crash or a failed write left there, and returns
    /// them.
    pub fn cut_torn_end(&mut self) -> Result<Option<Vec<u8>>, ChainFileError> {
        let mut torn = Vec::new();
        self.file
            .seek(SeekFrom::Start(self.len))
            .and_then(|_| self.file.read_to_end(&mut torn))
            .map_err(FileError::io("read the end of", &self.path))?;
        if torn.is_empty() {
            return Ok(None);
        }
        self.file.set_len(self.len).map_err(FileError::io("cut the torn end of", &self.path))?;
        Ok(Some(torn))
    }

    /// Builds the error for a chain that does not verify.
    pub fn broken(&self, source: ChainFault) -> ChainFileError {
        ChainFileError::Broken { path: self.path.clone(), source }
    }

    /// Returns the locked file, for a writer that does not wait for the disk at each line.
    pub fn into_file(self) -> File {
        self.file
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).append(true).mode(MODE);
    options
}

fn lock(file: &File, path: &Path, wait: Duration) -> Result<(), ChainFileError> {
    lock_open_file(file, path, wait).map_err(|error| match error {
        LockError::Io { action, path, source } => FileError::Io { action, path, source }.into(),
        LockError::Held { path, .. } | LockError::NotTheFile { path } => {
            ChainFileError::Busy { path }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_WAIT: Duration = Duration::ZERO;

    #[test]
    fn a_line_that_was_appended_is_read_back_and_a_torn_end_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = ChainFile::create(&path, NO_WAIT).unwrap();
        log.append("one").unwrap();
        drop(log);
        std::fs::write(&path, "one\ntw").unwrap();
        let (mut log, bytes) = ChainFile::open(&path, NO_WAIT).unwrap();
        assert_eq!(bytes, b"one\ntw");
        assert_eq!(log.cut_torn_end().unwrap().as_deref(), Some(b"tw".as_slice()));
        assert_eq!(log.cut_torn_end().unwrap(), None);
        log.append("two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n");
    }

    #[test]
    fn a_log_has_one_writer_and_is_created_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        assert!(matches!(ChainFile::open(&path, NO_WAIT), Err(ChainFileError::File(_))));
        let first = ChainFile::create(&path, NO_WAIT).unwrap();
        let exists = ChainFile::create(&path, NO_WAIT);
        assert!(matches!(exists, Err(ChainFileError::Exists { .. })));
        let busy = ChainFile::open_or_create(&path, NO_WAIT);
        assert!(matches!(busy, Err(ChainFileError::Busy { .. })));
        drop(first);
        assert!(ChainFile::open(&path, NO_WAIT).is_ok());
    }
}
