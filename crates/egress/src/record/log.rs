//! The egress log open for appending: turns each entry into the next line, and writes the lines off the traffic's path.
//!
//! The line is built at once and under one lock, so that the numbers and the chain are in the order of the
//! file; only the writing happens elsewhere.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use host::chain::{ChainFile, ChainFileError};
use host::clock;
use model::chain::ChainHead;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::chain::read_log;
use super::summary::EgressTally;
use super::{EgressEntry, EgressSummary};

/// Time to wait for another writer, which can only be a supervisor that is about to end.
const LOCK_WAIT: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(crate) struct EgressLog {
    run: String,
    state: Mutex<LogState>,
    writer: Mutex<Option<JoinHandle<bool>>>,
}

#[derive(Debug)]
struct LogState {
    head: ChainHead,
    tally: EgressTally,
    complete: bool,
    lines: Option<mpsc::UnboundedSender<String>>,
}

impl EgressLog {
    /// Opens a log, or continues an existing one: after a crash of the supervisor the run is still the same.
    /// Returns the old lines, so that their usage still counts.
    pub(crate) fn open(run: &str, path: &Path) -> Result<(Self, Vec<EgressEntry>), ChainFileError> {
        let (mut file, bytes) = ChainFile::open_or_create(path, LOCK_WAIT)?;
        let chain = read_log(run, &bytes).map_err(|fault| file.broken(fault))?;
        let torn = file.cut_torn_end()?.is_some();
        let mut tally = EgressTally::default();
        chain.lines.iter().for_each(|entry| tally.absorb(entry));
        let (lines, inbox) = mpsc::unbounded_channel();
        let state = LogState { head: chain.head, tally, complete: !torn, lines: Some(lines) };
        let writer = tokio::spawn(write_lines(File::from_std(file.into_file()), inbox));
        let log = Self {
            run: run.to_owned(),
            state: Mutex::new(state),
            writer: Mutex::new(Some(writer)),
        };
        Ok((log, chain.lines))
    }

    /// Appends `entry` as the next line. Its run, number, time and back reference are filled in here.
    pub(crate) fn add(&self, mut entry: EgressEntry) {
        let mut state = self.state();
        entry.run.clone_from(&self.run);
        entry.seq = state.head.seq + 1;
        entry.ts = clock::now();
        entry.prev.clone_from(&state.head.head);
        let Ok(mut line) = serde_json::to_string(&entry) else {
            state.complete = false;
            return;
        };
        state.head = state.head.after(line.as_bytes());
        state.tally.absorb(&entry);
        line.push('\n');
        let is_written = state.lines.as_ref().is_some_and(|lines| lines.send(line).is_ok());
        state.complete &= is_written;
    }

    pub(crate) fn count_unlogged(&self) {
        self.state().tally.totals.unlogged += 1;
    }

    pub(crate) fn summary(&self) -> EgressSummary {
        let state = self.state();
        state.tally.summary(&state.head.head, state.complete)
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

    fn state(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes lines as they arrive, many at once when they arrive fast; returns whether all of them are on disk.
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
    use crate::record::{EgressVerdict, TrafficKind};

    fn entry(host: &str) -> EgressEntry {
        EgressEntry {
            run: String::new(),
            seq: 0,
            ts: jiff::Timestamp::UNIX_EPOCH,
            kind: TrafficKind::Connect,
            host: host.to_owned(),
            port: 443,
            address: None,
            verdict: EgressVerdict::Denied,
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
        let (first, old) = EgressLog::open("r1", &path).unwrap();
        assert!(old.is_empty());
        first.add(entry("a.example"));
        first.add(entry("b.example"));
        assert!(first.finish().await.complete);

        let (second, old) = EgressLog::open("r1", &path).unwrap();
        assert_eq!(old.len(), 2);
        second.add(entry("a.example"));
        let summary = second.finish().await;
        assert_eq!((summary.totals.denied, summary.totals.bytes_down), (3, 6));
        let replay = read_log("r1", &std::fs::read(&path).unwrap()).unwrap();
        assert_eq!((replay.lines.len(), &replay.head.head), (3, &summary.log_head));
    }

    #[tokio::test]
    async fn a_torn_line_is_cut_off_and_admitted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("egress.jsonl");
        std::fs::write(&path, "{\"run\":\"r1\",\"se").unwrap();
        let (log, _) = EgressLog::open("r1", &path).unwrap();
        log.add(entry("a.example"));
        assert!(!log.finish().await.complete);
        assert_eq!(read_log("r1", &std::fs::read(&path).unwrap()).unwrap().lines.len(), 1);
    }

    #[tokio::test]
    async fn a_log_of_another_run_is_not_touched() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("egress.jsonl");
        let (log, _) = EgressLog::open("r1", &path).unwrap();
        log.add(entry("a.example"));
        log.finish().await;
        let error = EgressLog::open("r2", &path).unwrap_err();
        assert!(matches!(error, ChainFileError::Broken { .. }));
    }
}
