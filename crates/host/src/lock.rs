//! Locks between processes, by `flock` on a file that is not removed while others may wait for it.
//!
//! The file is opened without truncation, so that a waiter does not erase the holder's name. A holder that
//! finds its file unlinked (a run removes its lock when it ends) starts over: otherwise one process could hold the old
//! inode and another the new one. The lock belongs to the
//! open file and not to the process, so it can be passed to a child and lives as long as any copy of the
//! descriptor. The kernel releases it when the last holder dies.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use thiserror::Error;

use crate::clock;

/// Pause between two attempts of a waiter.
const POLL: Duration = Duration::from_millis(50);
/// [`is_held`] holds a lock for an instant, and a child may carry our descriptor from its fork to
/// its exec. An attempt therefore lasts this long before it reports the lock as held.
const GRACE: Duration = Duration::from_millis(16);
const GRACE_POLL: Duration = Duration::from_millis(4);
const HOLDER_LIMIT: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind<'a> {
    /// One holder, which leaves its process id and this note in the file for waiters.
    Exclusive {
        /// Purpose of the lock, in one line.
        note: &'a str,
    },
    /// Any number of holders, and no exclusive one.
    Shared,
}

/// Inheritance of a lock by the programs that are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassLock {
    Yes,
    No,
}

/// The holder of a lock, as recorded in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    /// Purpose of the lock.
    pub note: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({})", self.pid, self.note)
    }
}

/// A lock that could not be acquired. `action` is a verb.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LockError {
    #[error("{path} is locked by {who}", path = path.display(), who = name_of(holder.as_ref()))]
    Held {
        path: PathBuf,
        /// The holder, if the file names one.
        holder: Option<Holder>,
    },
    #[error("the inherited descriptor is not {path}", path = path.display())]
    NotTheFile { path: PathBuf },
    #[error("could not {action} the lock file {path}", path = path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
}

impl LockError {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}

/// A lock that is held until this and every copy of its descriptor are gone.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    path: PathBuf,
}

impl FileLock {
    /// Acquires the lock, waiting up to `timeout` on the monotonic clock; zero is one attempt.
    pub async fn acquire(
        path: &Path,
        kind: LockKind<'_>,
        timeout: Duration,
    ) -> Result<Self, LockError> {
        let start = clock::monotonic();
        loop {
            match attempt(path, kind)? {
                Some(lock) => return Ok(lock),
                None if start.elapsed() >= timeout => return Self::try_acquire(path, kind),
                None => tokio::time::sleep(POLL.min(timeout - start.elapsed().min(timeout))).await,
            }
        }
    }

    /// Acquires the lock if it is free now.
    pub fn try_acquire(path: &Path, kind: LockKind<'_>) -> Result<Self, LockError> {
        poll(path, Duration::ZERO, || attempt(path, kind))
    }

    /// Takes over an exclusive lock from the process that started this one: `file` is the inherited
    /// descriptor, usually standard input. The new holder's id goes into the file.
    pub fn from_inherited(file: File, path: &Path, note: &str) -> Result<Self, LockError> {
        if !is_same_file(&file, path)? {
            return Err(LockError::NotTheFile { path: path.to_path_buf() });
        }
        // Locking again succeeds if this open file already has the lock, and fails otherwise.
        if !try_flock(&file, FlockOperation::NonBlockingLockExclusive, "take over", path)? {
            return Err(LockError::Held { path: path.to_path_buf(), holder: holder_of(path) });
        }
        let lock = Self { file, path: path.to_path_buf() };
        lock.write_holder(note)?;
        Ok(lock)
    }

    /// Lets programs that are started from now on hold the lock too, or no longer. A program that outlives this process
    /// then keeps others out until it has finished what it was started for.
    pub fn pass_to_children(&self, pass: PassLock) -> Result<(), LockError> {
        let flags = match pass {
            PassLock::Yes => FdFlags::empty(),
            PassLock::No => FdFlags::CLOEXEC,
        };
        fcntl_setfd(&self.file, flags)
            .map_err(|errno| LockError::io("pass on", &self.path)(errno.into()))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the locked descriptor; a copy of it holds the same lock.
    pub fn as_file(&self) -> &File {
        &self.file
    }

    /// Returns the locked descriptor by value, to become a child's standard input.
    pub fn into_file(self) -> File {
        self.file
    }

    fn write_holder(&self, note: &str) -> Result<(), LockError> {
        let note = note.replace(['\n', '\r'], " ");
        let text = format!("{} {note}\n", std::process::id());
        let mut file = &self.file;
        file.set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(text.as_bytes()))
            .map_err(LockError::io("write the holder into", &self.path))
    }
}

/// Returns whether a process holds the lock exclusively. The answer may be outdated by the time it is read,
/// so it is for display and not for deciding which process may write.
pub fn is_held(path: &Path) -> Result<bool, LockError> {
    let Some(file) = open_existing(path)? else { return Ok(false) };
    Ok(!try_flock(&file, FlockOperation::NonBlockingLockShared, "look at", path)?)
}

/// Waits until the lock is not held exclusively, which is how the end of a supervisor is observed.
///
/// The kernel does the waiting, on a separate thread and not one of the runtime's: those must end before the
/// program can, and a user who interrupts the wait should not have to sit it out.
pub async fn wait_released(path: &Path) -> Result<(), LockError> {
    let Some(file) = open_existing(path)? else { return Ok(()) };
    let (done, released) = tokio::sync::oneshot::channel();
    std::thread::Builder::new()
        .name("lock-wait".to_owned())
        .spawn(move || {
            let answer = rustix::io::retry_on_intr(|| flock(&file, FlockOperation::LockShared));
            drop(file);
            // The receiver may be gone, and then the result is not needed.
            done.send(answer).ok();
        })
        .map_err(LockError::io("start a thread to wait for", path))?;
    match released.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(errno)) => Err(LockError::io("wait for", path)(errno.into())),
        Err(gone) => Err(LockError::io("wait for", path)(io::Error::other(gone))),
    }
}

/// Returns the holder last recorded in the lock file, which may have released the lock since.
pub fn holder_of(path: &Path) -> Option<Holder> {
    let mut text = String::new();
    File::open(path).ok()?.take(HOLDER_LIMIT).read_to_string(&mut text).ok()?;
    parse_holder(&text)
}

/// Locks an open file exclusively, waiting up to `timeout`, without a holder's note: for files whose content is not
/// the lock's own. The lock lives as long as the open file.
pub(crate) fn lock_open_file(file: &File, path: &Path, timeout: Duration) -> Result<(), LockError> {
    poll(path, timeout, || {
        let locked = try_flock(file, FlockOperation::NonBlockingLockExclusive, "lock", path)?;
        Ok(locked.then_some(()))
    })
}

/// Locks without waiting; `false` means that another process has the lock.
fn try_flock(
    file: &File,
    operation: FlockOperation,
    action: &'static str,
    path: &Path,
) -> Result<bool, LockError> {
    match flock(file, operation) {
        Ok(()) => Ok(true),
        Err(Errno::AGAIN) => Ok(false),
        Err(errno) => Err(LockError::io(action, path)(errno.into())),
    }
}

/// Repeats an attempt on this thread until it succeeds or `timeout` and the grace period are over.
fn poll<T>(
    path: &Path,
    timeout: Duration,
    attempt: impl Fn() -> Result<Option<T>, LockError>,
) -> Result<T, LockError> {
    let start = clock::monotonic();
    loop {
        if let Some(locked) = attempt()? {
            return Ok(locked);
        }
        if start.elapsed() >= timeout.max(GRACE) {
            return Err(LockError::Held { path: path.to_path_buf(), holder: holder_of(path) });
        }
        std::thread::sleep(GRACE_POLL);
    }
}

/// One attempt; `None` means that another process has the lock.
fn attempt(path: &Path, kind: LockKind<'_>) -> Result<Option<FileLock>, LockError> {
    let operation = match kind {
        LockKind::Exclusive { .. } => FlockOperation::NonBlockingLockExclusive,
        LockKind::Shared => FlockOperation::NonBlockingLockShared,
    };
    loop {
        let file = open_or_create(path)?;
        if !try_flock(&file, operation, "lock", path)? {
            return Ok(None);
        }
        // The end of a run or a user may have unlinked it: a lock on a file that no other process can find is
        // worthless, so start over with the current file.
        if !is_same_file(&file, path)? {
            continue;
        }
        let lock = FileLock { file, path: path.to_path_buf() };
        if let LockKind::Exclusive { note } = kind {
            lock.write_holder(note)?;
        }
        return Ok(Some(lock));
    }
}

fn open_or_create(path: &Path) -> Result<File, LockError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(LockError::io("open", path))
}

fn open_existing(path: &Path) -> Result<Option<File>, LockError> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LockError::io("open", path)(error)),
    }
}

fn is_same_file(file: &File, path: &Path) -> Result<bool, LockError> {
    let ours = file.metadata().map_err(LockError::io("look at", path))?;
    match std::fs::metadata(path) {
        Ok(theirs) => Ok((ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(LockError::io("look at", path)(error)),
    }
}

fn parse_holder(text: &str) -> Option<Holder> {
    let (pid, note) = text.lines().next()?.split_once(' ')?;
    Some(Holder { pid: pid.parse().ok()?, note: note.to_owned() })
}

fn name_of(holder: Option<&Holder>) -> String {
    holder.map_or_else(|| "another process".to_owned(), Holder::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_read_from_its_line() {
        let holder = parse_holder("42 run 7 of main\nrest").unwrap();
        assert_eq!(holder.to_string(), "process 42 (run 7 of main)");
        assert_eq!(parse_holder("42 \n").unwrap().note, "");
    }

    #[test]
    fn a_torn_or_foreign_line_names_nobody() {
        for text in ["", "\n", "forty two", "42", "-1 x"] {
            assert_eq!(parse_holder(text), None, "{text:?}");
        }
    }
}
