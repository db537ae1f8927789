//! The operation log: each effect on the world, written down before and after it happens, in a hash-chained log
//! ([`model::chain`]) whose first line is bound to the run's name. The final metadata keeps its [`ChainHead`].

mod line;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use host::chain::{ChainFile, ChainFileError};
use jiff::Timestamp;
use model::chain::{BareLine, ChainDefect, verify_chain};
use model::digest::sha256;
use model::id::RunId;
use model::redact::Redactor;
use serde_json::json;

use crate::error::StoreError;
use crate::run_dir::RunDir;

pub use line::{Operation, OperationOutcome};
pub use model::chain::{ChainFault, ChainHead};

/// File name of the operation log in a run directory.
pub const OPERATIONS: &str = "operations.jsonl";

/// Name of the operation that records a cut.
const OP_CUT: &str = "log.cut";

/// A child may carry our descriptor, and the lock with it, from its fork to its exec.
const LOCK_WAIT: Duration = Duration::from_millis(50);

/// The operation log of one run, open for writing. One process writes at a time; its threads may share the log.
#[derive(Debug)]
pub struct OperationLog {
    /// The run that the log belongs to; `None` for a log that outlives single runs.
    run: Option<RunDir>,
    path: PathBuf,
    redactor: Arc<Redactor>,
    tail: Mutex<Tail>,
}

/// Position of the next line and the line that it follows.
#[derive(Debug)]
struct Tail {
    file: ChainFile,
    head: ChainHead,
}

impl OperationLog {
    /// Starts the log of a new run.
    pub fn create(run: &RunDir, redactor: Arc<Redactor>) -> Result<Self, StoreError> {
        Self::of(run, redactor, |path, wait| Ok((ChainFile::create(path, wait)?, Vec::new())))
    }

    /// Continues the log of a run that is not closed. A torn line at the end is what a crash leaves: it is skipped,
    /// and cut off when the next line is written. With any other fault the log was changed, and is not continued.
    pub fn open(run: &RunDir, redactor: Arc<Redactor>) -> Result<Self, StoreError> {
        Self::of(run, redactor, ChainFile::open)
    }

    /// Continues the log of a run as [`open`](Self::open) does, and starts it if there is none.
    pub fn open_or_create(run: &RunDir, redactor: Arc<Redactor>) -> Result<Self, StoreError> {
        Self::of(run, redactor, ChainFile::open_or_create)
    }

    /// Opens a log that several commands share, one writer at a time; creates it if there is none. `seed` binds the
    /// log to what it is about, and `wait` limits the wait for another writer.
    pub fn open_shared(
        path: &Path,
        seed: &str,
        redactor: Arc<Redactor>,
        wait: Duration,
    ) -> Result<Self, StoreError> {
        let tail = Tail::verified(
            ChainFile::open_or_create(path, wait)?,
            ChainHead::genesis(seed.as_bytes()),
        )?;
        Ok(Self { run: None, path: path.to_path_buf(), redactor, tail })
    }

    fn of(
        run: &RunDir,
        redactor: Arc<Redactor>,
        open: impl FnOnce(&Path, Duration) -> Result<(ChainFile, Vec<u8>), ChainFileError>,
    ) -> Result<Self, StoreError> {
        run.ensure_open()?;
        let path = run.operations();
        let tail = Tail::verified(open(&path, LOCK_WAIT)?, genesis(run.id()))?;
        Ok(Self { run: Some(run.clone()), path, redactor, tail })
    }

    /// Appends a line and waits until it is on disk. Returns the chain's new end.
    pub fn append(&self, operation: &Operation) -> Result<ChainHead, StoreError> {
        self.append_at(operation, host::clock::now())
    }

    /// Returns the end of the chain, to be kept outside the log.
    pub fn head(&self) -> ChainHead {
        self.tail().head.clone()
    }

    fn append_at(&self, operation: &Operation, now: Timestamp) -> Result<ChainHead, StoreError> {
        let mut tail = self.tail();
        if let Some(run) = &self.run {
            run.ensure_open()?;
        }
        if let Some(torn) = tail.file.cut_torn_end()? {
            let detail = json!({ "bytes": torn.len(), "sha256": sha256(&torn) });
            let cut =
                Operation::new(OP_CUT, OPERATIONS, OperationOutcome::Done).with_detail(detail);
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
        let line = line::redact(operation, &self.redactor)
            .and_then(|shown| line::render_line(tail.head.seq + 1, now, &tail.head.head, &shown))
            .map_err(StoreError::json(&self.path))?;
        // The names of the run's directory and of this log are on disk before the first line is.
        if let (0, Some(run)) = (tail.head.seq, &self.run) {
            run.fsync()?;
        }
        tail.file.append(&line)?;
        tail.head = tail.head.after(line.as_bytes());
        Ok(())
    }

    /// A thread that panicked while it wrote leaves at worst a torn end, which the next one cuts.
    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Verifies the operation log of a run from its first line to its last, and returns its end. A comparison with the
/// end that the metadata recorded shows whether lines were dropped from the end.
pub fn verify(path: &Path, run: &RunId) -> Result<ChainHead, ChainFault> {
    let bytes = fs::read(path)
        .map_err(|error| ChainFault { line: 0, what: ChainDefect::Unreadable(error) })?;
    verify_chain::<BareLine>(&bytes, genesis(run))?.complete_head(&bytes)
}

impl Tail {
    fn verified(
        (file, bytes): (ChainFile, Vec<u8>),
        genesis: ChainHead,
    ) -> Result<Mutex<Self>, StoreError> {
        let chain =
            verify_chain::<BareLine>(&bytes, genesis).map_err(|fault| file.broken(fault))?;
        Ok(Mutex::new(Self { file, head: chain.head }))
    }
}

/// The end of a run's log before its first line: it binds the log to the run.
fn genesis(run: &RunId) -> ChainHead {
    ChainHead::genesis(format!("bottleworks run {run}").as_bytes())
}

#[cfg(test)]
mod tests;
