//! The journal: takes what happened, makes it the next line, and has it written beside the traffic.
//!
//! The line is made at once and under one lock, so that the numbers and the chain are in the order
//! of the file; only the writing happens elsewhere.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use host::clock;
use thiserror::Error;
use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::chain::{self, ChainError, read_log};
use super::summary::Tally;
use super::{EgressSummary, Entry};

/// The log could not be opened, or is not as it was left.
#[derive(Debug, Error)]
pub enum JournalError {
    /// The system refused.
    #[error("could not {action} the egress log {path}", path = path.display())]
    Io {
        /// What was being done, as a verb.
        action: &'static str,
        /// The log.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is there already, and its chain does not hold.
    #[error("the egress log {path} was changed", path = path.display())]
    Chain {
        /// The log.
        path: PathBuf,
        /// Where.
        source: ChainError,
    },
}

/// The log of one run, open for adding.
#[derive(Debug)]
pub(crate) struct Journal {
    run: String,
    state: Mutex<State>,
    writer: Mutex<Option<JoinHandle<bool>>>,
}

#[derive(Debug)]
struct State {
    next_seq: u64,
    head: String,
    tally: Tally,
    complete: bool,
    lines: Option<mpsc::UnboundedSender<String>>,
}

impl Journal {
    /// Opens a log, and goes on with it if it is there already: after a crash of the supervisor the
    /// run is still the same. The old lines are returned, so that what they used up stays used up.
    pub(crate) async fn open(run: &str, path: &Path) -> Result<(Self, Vec<Entry>), JournalError> {
        let failed =
            |action| move |source| JournalError::Io { action, path: path.to_path_buf(), source };
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        let mut file = options.open(path).await.map_err(failed("open"))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).await.map_err(failed("read"))?;
        let replay = read_log(run, &bytes)
            .map_err(|source| JournalError::Chain { path: path.to_path_buf(), source })?;
        let torn = replay.whole_bytes < bytes.len();
        if torn {
            file.set_len(replay.whole_bytes as u64).await.map_err(failed("mend"))?;
        }
        let mut tally = Tally::default();
        replay.entries.iter().for_each(|entry| tally.absorb(entry));
        let (lines, inbox) = mpsc::unbounded_channel();
        let state = State {
            next_seq: replay.entries.len() as u64 + 1,
            head: replay.head,
            tally,
            complete: !torn,
            lines: Some(lines),
        };
        let writer = tokio::spawn(write_lines(file, inbox));
        let journal = Self {
            run: run.to_owned(),
            state: Mutex::new(state),
            writer: Mutex::new(Some(writer)),
        };
        Ok((journal, replay.entries))
    }

    /// Makes `entry` the next line. Its run, number, time and back reference are filled in here.
    pub(crate) fn add(&self, mut entry: Entry) {
        let mut state = self.state();
        entry.run.clone_from(&self.run);
        entry.seq = state.next_seq;
        entry.ts = clock::now();
        entry.prev.clone_from(&state.head);
        let Ok(mut line) = serde_json::to_string(&entry) else {
            state.complete = false;
            return;
        };
        state.next_seq += 1;
        state.head = chain::hash(line.as_bytes());
        state.tally.absorb(&entry);
        line.push('\n');
        let is_written = state.lines.as_ref().is_some_and(|lines| lines.send(line).is_ok());
        state.complete &= is_written;
    }

    /// Counts something that gets no line.
    pub(crate) fn count_unlogged(&self) {
        self.state().tally.totals.unlogged += 1;
    }

    /// The summary as it stands.
    pub(crate) fn summary(&self) -> EgressSummary {
        let state = self.state();
        state.tally.summary(&state.head, state.complete)
    }

    /// Ends the log and waits until it is on disk.
    pub(crate) async fn finish(&self) -> EgressSummary {
        self.state().lines = None;
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let is_whole = match writer {
            Some(writer) => writer.await.unwrap_or(false),
            None => true,
        };
        self.state().complete &= is_whole;
        self.summary()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes lines as they come, many at once when they come fast; says whether all of them are on disk.
async fn write_lines(mut file: File, mut inbox: mpsc::UnboundedReceiver<String>) -> bool {
    let mut waiting = Vec::new();
    let mut is_whole = true;
    while inbox.recv_many(&mut waiting, 256).await > 0 {
        let text = waiting.concat();
        waiting.clear();
        is_whole &= file.write_all(text.as_bytes()).await.is_ok() && file.flush().await.is_ok();
    }
    is_whole && file.sync_data().await.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Kind, Verdict};

    fn entry(host: &str) -> Entry {
        Entry {
            run: String::new(),
            seq: 0,
            ts: jiff::Timestamp::UNIX_EPOCH,
            kind: Kind::Connect,
            host: host.to_owned(),
            port: 443,
            address: None,
            verdict: Verdict::Denied,
            reason: Some("not_allowed".to_owned()),
            bytes_up: 1,
            bytes_down: 2,
            ms: 3,
            status: None,
            spend: None,
            prev: String::new(),
        }
    }

    #[tokio::test]
    async fn a_log_is_gone_on_with_after_a_crash() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("egress.jsonl");
        let (first, old) = Journal::open("r1", &path).await.unwrap();
        assert!(old.is_empty());
        first.add(entry("a.example"));
        first.add(entry("b.example"));
        assert!(first.finish().await.complete);

        let (second, old) = Journal::open("r1", &path).await.unwrap();
        assert_eq!(old.len(), 2);
        second.add(entry("a.example"));
        let summary = second.finish().await;
        assert_eq!((summary.totals.denied, summary.totals.bytes_down), (3, 6));
        let replay = read_log("r1", &std::fs::read(&path).unwrap()).unwrap();
        assert_eq!((replay.entries.len(), &replay.head), (3, &summary.log_head));
    }

    #[tokio::test]
    async fn a_torn_line_is_cut_off_and_admitted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("egress.jsonl");
        std::fs::write(&path, "{\"run\":\"r1\",\"se").unwrap();
        let (journal, _) = Journal::open("r1", &path).await.unwrap();
        journal.add(entry("a.example"));
        assert!(!journal.finish().await.complete);
        assert_eq!(read_log("r1", &std::fs::read(&path).unwrap()).unwrap().entries.len(), 1);
    }

    #[tokio::test]
    async fn a_log_of_another_run_is_not_touched() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("egress.jsonl");
        let (journal, _) = Journal::open("r1", &path).await.unwrap();
        journal.add(entry("a.example"));
        journal.finish().await;
        let error = Journal::open("r2", &path).await.unwrap_err();
        assert!(matches!(error, JournalError::Chain { .. }));
    }
}
