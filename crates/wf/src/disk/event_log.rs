//! Event log of a run: one line for the start and the end of each stage, in a hash-chained log.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use host::chain::ChainFile;
use jiff::Timestamp;
use model::chain::{BareLine, ChainDefect, ChainHead, verify_chain};
use serde::Serialize;

use super::run_dir::{EVENTS, WfRunDir};
use super::{DiskResult, read_optional};

/// Events of one run. A lost line does not affect the run, so writes do not wait for the disk.
#[derive(Debug)]
pub(crate) struct EventLog {
    file: File,
    head: ChainHead,
}

#[derive(Serialize)]
struct EventLine<'a> {
    seq: u64,
    ts: Timestamp,
    prev: &'a str,
    stage: &'a str,
    status: &'a str,
    duration: f64,
}

impl EventLog {
    /// Starts the log of a new run. Renaming the run's directory does not disturb it.
    pub(crate) fn create(run: &WfRunDir) -> DiskResult<Self> {
        let file = ChainFile::create(&run.file(EVENTS), Duration::ZERO)?.into_file();
        Ok(Self { file, head: genesis(run.stem()) })
    }

    /// Appends an event, with the seconds since the start of the stage. A failed write is ignored.
    pub(crate) fn append(&mut self, stage: &str, status: &str, duration: f64) {
        let (seq, ts, prev) = (self.head.seq + 1, host::clock::now(), &self.head.head);
        let line = EventLine { seq, ts, prev, stage, status, duration };
        let Ok(line) = serde_json::to_string(&line) else { return };
        if writeln!(self.file, "{line}").is_ok() {
            self.head = self.head.after(line.as_bytes());
        }
    }
}

/// The chain starts with the part of the run's name that never changes.
fn genesis(stem: &str) -> ChainHead {
    ChainHead::genesis(format!("wf run {stem}").as_bytes())
}

/// State of a run's event log, for people: verified, broken, or from a version that did not chain its events.
pub(crate) fn describe_events(run: &Path) -> DiskResult<Option<String>> {
    let Some(bytes) = read_optional(&run.join(EVENTS))? else { return Ok(None) };
    let name = run.file_name().unwrap_or_default().to_string_lossy();
    // The topic at the end of the name has no underscore.
    let stem = name.rsplit_once('_').map_or(&*name, |(stem, _)| stem);
    Ok(Some(match verify_chain::<BareLine>(&bytes, genesis(stem)) {
        Ok(chain) => format!("{} events, chain verified", chain.lines.len()),
        Err(fault) if fault.line == 1 && matches!(fault.what, ChainDefect::NotAnEntry(_)) => {
            format!("{} events, not chained", bytes.iter().filter(|&&byte| byte == b'\n').count())
        }
        Err(fault) => format!("chain broken: {fault}"),
    }))
}
