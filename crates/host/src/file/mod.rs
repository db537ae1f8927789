//! Files that this program owns, written so that a crash leaves the old or the new content, never half.
//!
//! `safe_read` reads files that others wrote; `tree` walks whole trees.

mod private;
mod tree;
mod write;

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

pub use private::{is_pipe, read_private, read_private_or_pipe};
pub use tree::{
    EntryAttributes, FoundEntry, TreeBuilder, TreeEntryKind, TreeSize, find_long_path, lchown_tree,
    mask_tree, read_tree, remove_tree_safely, tree_size,
};
pub use write::{append_line, create_dir_exclusive, write_atomic, write_transient};

/// A file operation that failed. `action` is a verb.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    #[error("could not {action} {path}", path = path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("{path} exists already and is never reused", path = path.display())]
    Exists { path: PathBuf },
    /// A file with secrets is a FIFO, a socket, a directory or a device.
    #[error("{path} is not a regular file", path = path.display())]
    NotRegular { path: PathBuf },
    /// A file with secrets can be read by other users.
    #[error("{path} can be read by others (mode {mode:03o}); run: chmod 600 {path}", path = path.display())]
    TooOpen { path: PathBuf, mode: u32 },
    #[error("{path} is larger than {limit} bytes", path = path.display())]
    TooLarge { path: PathBuf, limit: u64 },
}

impl FileError {
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Turns the error of an attempt into one that names the action and the path.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}

/// Creates a folder with those above it. A failure names the folder.
pub fn create_dirs(path: impl AsRef<Path>) -> Result<(), FileError> {
    let path = path.as_ref();
    std::fs::create_dir_all(path).map_err(FileError::io("create", path))
}

/// Returns how many bytes an ordinary user may still write to the file system of `path`.
pub fn free_space(path: &Path) -> Result<u64, FileError> {
    let stat = rustix::fs::statvfs(path)
        .map_err(io::Error::from)
        .map_err(FileError::io("ask for the free space of", path))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Bytes that the kernel keeps for a file in memory beside its content.
const MEMORY_FILE_BYTES: u64 = 1024;

/// Returns how much memory the file system in memory at `path` takes, files without a name and without content included.
pub fn memory_file_system_bytes(path: &Path) -> Result<u64, FileError> {
    let stat = rustix::fs::statvfs(path)
        .map_err(io::Error::from)
        .map_err(FileError::io("ask for the use of", path))?;
    let content = stat.f_blocks.saturating_sub(stat.f_bfree).saturating_mul(stat.f_frsize);
    let files = stat.f_files.saturating_sub(stat.f_ffree).saturating_mul(MEMORY_FILE_BYTES);
    Ok(content.saturating_add(files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_space_is_known_for_a_directory_and_refused_for_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert!(free_space(dir.path()).unwrap() > 0);
        let error = free_space(&dir.path().join("gone")).unwrap_err();
        assert!(error.is_not_found());
        assert!(error.to_string().contains("ask for the free space of"));
    }
}
