//! Writing: whole files at once, lines at the end, directories that must be new.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::FileError;

/// Replaces `path` with `bytes`. A reader sees the old content or the new one at any moment and after any
/// crash, with the permission bits `mode` from the start.
pub fn write_atomic(path: &Path, bytes: &[u8], mode: u32) -> Result<(), FileError> {
    replace(path, bytes, mode, File::sync_all)?;
    sync_dir(parent_of(path))
}

/// Like [`write_atomic`] as long as the machine runs, but faster because it does not wait for the disk. For
/// files that have no use after a power failure, such as the record of a process's supervisor.
pub fn write_transient(path: &Path, bytes: &[u8], mode: u32) -> Result<(), FileError> {
    replace(path, bytes, mode, |_| Ok(()))
}

fn replace(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    settle: impl FnOnce(&File) -> io::Result<()>,
) -> Result<(), FileError> {
    let dir = parent_of(path);
    let permissions = Permissions::from_mode(mode);
    let mut temp = tempfile::Builder::new()
        .prefix(".new-")
        .permissions(Permissions::from_mode(mode & 0o700))
        .tempfile_in(dir)
        .map_err(FileError::io("make a temporary file beside", path))?;
    // Set again because the umask applies at creation.
    temp.as_file()
        .set_permissions(permissions)
        .and_then(|()| temp.write_all(bytes))
        .and_then(|()| settle(temp.as_file()))
        .map_err(FileError::io("write", path))?;
    temp.persist(path)
        .map_err(|error| error.error)
        .map_err(FileError::io("move the new content into", path))?;
    Ok(())
}

/// Appends a line to `path` and waits until it is on disk. A tail torn by a crash is ended first, so that it
/// spoils one line and not two.
pub fn append_line(path: &Path, line: &str) -> Result<(), FileError> {
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(FileError::io("open", path))?;
    let mut text = String::with_capacity(line.len() + 2);
    if ends_torn(&mut file).map_err(FileError::io("read the end of", path))? {
        text.push('\n');
    }
    text.push_str(line);
    text.push('\n');
    // One write, so that lines of two writers do not mix.
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_data())
        .map_err(FileError::io("append to", path))
}

/// Creates a directory that only its owner can enter; an existing one is an error.
pub fn create_dir_exclusive(path: &Path) -> Result<(), FileError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => sync_dir(parent_of(path)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(FileError::Exists { path: path.to_path_buf() })
        }
        Err(error) => Err(FileError::io("make the directory", path)(error)),
    }
}

fn ends_torn(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// Syncs a directory. A rename is on disk only when its directory is.
fn sync_dir(dir: &Path) -> Result<(), FileError> {
    File::open(dir)
        .and_then(|handle| handle.sync_all())
        .map_err(FileError::io("bring to disk the directory", dir))
}

fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        Some(_) | None => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[test]
    fn the_new_content_replaces_the_old_and_leaves_nothing_beside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.json");
        write_atomic(&path, b"old", 0o644).unwrap();
        write_atomic(&path, b"new", 0o600).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_in_the_place_is_replaced_and_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (target, path) = (dir.path().join("target"), dir.path().join("state.json"));
        fs::write(&target, "mine").unwrap();
        symlink(&target, &path).unwrap();
        write_atomic(&path, b"new", 0o600).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"mine");
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
    }

    #[test]
    fn a_failed_write_says_what_it_was_doing_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("taken")).unwrap();
        let error = write_atomic(&dir.path().join("taken"), b"x", 0o600).unwrap_err();
        assert!(error.to_string().starts_with("could not move the new content into"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_torn_tail_spoils_one_line_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        append_line(&path, "first").unwrap();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"to").unwrap();
        append_line(&path, "third").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "first\nto\nthird\n");
    }

    #[test]
    fn a_directory_is_private_and_made_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        create_dir_exclusive(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        assert!(matches!(create_dir_exclusive(&path), Err(FileError::Exists { .. })));
    }
}
