//! What was done to the world, in a log that shows when somebody changed it.
//!
//! The log is JSON lines. Each carries the SHA-256 of the line before it, and the first that of the
//! run's name, so a line cannot be changed, dropped or moved without breaking the chain
//! ([`verify`]). Lines dropped from the end leave a shorter chain that is whole: whoever keeps the
//! [`ChainHead`] elsewhere, as the final metadata does, notices that too.
//!
//! Bytes are hashed as they were written, so no canonical form of JSON is needed.

mod chain;
mod line;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use model::redact::Redactor;
use serde_json::json;

use crate::error::StoreError;
use crate::run_dir::RunDir;

pub use chain::{ChainFault, ChainHead, Fault, verify};
pub use line::{Operation, Outcome};

/// The operation log in a run directory.
pub const OPERATIONS: &str = "operations.jsonl";

/// The operation that records a cut.
pub const OP_CUT: &str = "log.cut";

const MODE: u32 = 0o600;
const LOOKS: u32 = 5;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// The operation log of one run, open for writing. There is one writer at a time, in all processes;
/// threads may share it.
#[derive(Debug)]
pub struct OperationLog {
    run: RunDir,
    path: PathBuf,
    redactor: Arc<Redactor>,
    tail: Mutex<Tail>,
}

/// Where the next line goes and what it follows.
#[derive(Debug)]
struct Tail {
    file: File,
    /// Bytes up to the end of the last line that was confirmed.
    len: u64,
    head: ChainHead,
}

impl OperationLog {
    /// Starts the log of a new run.
    pub fn create(run: &RunDir, redactor: Arc<Redactor>) -> Result<Self, StoreError> {
        run.ensure_open()?;
        let path = run.operations();
        let file = match options().create_new(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(StoreError::LogExists { path });
            }
            Err(error) => return Err(StoreError::io("make", &path)(error)),
        };
        lock(&file, &path)?;
        let tail = Tail { file, len: 0, head: ChainHead::genesis(run.id()) };
        Ok(Self { run: run.clone(), path, redactor, tail: Mutex::new(tail) })
    }

    /// Goes on with the log of a run that is not closed. Half a line at the end is what a crash
    /// leaves: it is passed over, and cut off when the next line is written. Any other fault means
    /// that somebody changed the log, and it is not continued.
    pub fn open(run: &RunDir, redactor: Arc<Redactor>) -> Result<Self, StoreError> {
        run.ensure_open()?;
        let path = run.operations();
        let mut file = options().open(&path).map_err(StoreError::io("open", &path))?;
        lock(&file, &path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(StoreError::io("read", &path))?;
        let whole = chain::whole_lines(&bytes);
        let head = chain::verify_bytes(whole, run.id())
            .map_err(|source| StoreError::Chain { path: path.clone(), source })?;
        let tail = Tail { file, len: whole.len() as u64, head };
        Ok(Self { run: run.clone(), path, redactor, tail: Mutex::new(tail) })
    }

    /// Adds a line and waits until it is on disk. Returns the chain's new end.
    pub fn append(&self, operation: &Operation) -> Result<ChainHead, StoreError> {
        self.append_at(operation, host::clock::now())
    }

    /// The chain's end, to be kept where the log is not.
    pub fn head(&self) -> ChainHead {
        self.tail().head.clone()
    }

    fn append_at(&self, operation: &Operation, now: Timestamp) -> Result<ChainHead, StoreError> {
        let mut tail = self.tail();
        self.run.ensure_open()?;
        if let Some(cut) = self.cut_torn_end(&mut tail)? {
            self.write(&mut tail, &cut, now)?;
        }
        self.write(&mut tail, operation, now)?;
        Ok(tail.head.clone())
    }

    fn write(
        &self,
        tail: &mut Tail,
        operation: &Operation,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let seq = tail.head.seq + 1;
        let line = line::redact(operation, &self.redactor)
            .and_then(|shown| line::render_line(seq, now, &tail.head.head, &shown))
            .map_err(StoreError::json(&self.path))?;
        let bytes = format!("{line}\n");
        tail.file
            .write_all(bytes.as_bytes())
            .and_then(|()| tail.file.sync_data())
            .map_err(StoreError::io("append to", &self.path))?;
        if tail.head == ChainHead::genesis(self.run.id()) {
            self.run.settle()?;
        }
        tail.len += bytes.len() as u64;
        tail.head = ChainHead { seq, head: chain::digest(line.as_bytes()) };
        Ok(())
    }

    /// Cuts what stands after the last confirmed line, be it from a crash before this process or
    /// from a write of ours that failed, and says what was cut.
    fn cut_torn_end(&self, tail: &mut Tail) -> Result<Option<Operation>, StoreError> {
        let mut torn = Vec::new();
        tail.file
            .seek(SeekFrom::Start(tail.len))
            .and_then(|_| tail.file.read_to_end(&mut torn))
            .map_err(StoreError::io("read the end of", &self.path))?;
        if torn.is_empty() {
            return Ok(None);
        }
        tail.file.set_len(tail.len).map_err(StoreError::io("cut the torn end of", &self.path))?;
        let detail = json!({ "bytes": torn.len(), "sha256": chain::digest(&torn) });
        Ok(Some(Operation::new(OP_CUT, OPERATIONS, Outcome::Done).with_detail(detail)))
    }

    /// A thread that panicked while it wrote leaves at worst a torn end, which the next one cuts.
    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A child may carry our descriptor, and the lock with it, from its fork to its exec; so a lock that
/// is held is looked at a few times before it counts as held.
fn lock(file: &File, path: &Path) -> Result<(), StoreError> {
    for _ in 0..LOOKS {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(BETWEEN_LOOKS),
            Err(TryLockError::Error(source)) => return Err(StoreError::io("lock", path)(source)),
        }
    }
    Err(StoreError::LogBusy { path: path.to_path_buf() })
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).append(true).mode(MODE);
    options
}

#[cfg(test)]
mod tests;
