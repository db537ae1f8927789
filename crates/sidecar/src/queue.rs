//! Signal that the work is done, as a file in a folder: a reader sees it whole or not at all, in order.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use host::clock;
use host::file::{FileError, write_atomic};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::call::DoneStatus;

const SUFFIX: &str = "-done.json";

/// The queue cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum QueueError {
    #[error("could not {action} {path}", path = path.display())]
    Io {
        /// Action being attempted, as a verb.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error(transparent)]
    Write(#[from] FileError),
    #[error("{path} is no event of a queue; remove it", path = path.display())]
    NotAnEvent { path: PathBuf, source: serde_json::Error },
}

/// Signal of an agent that its work is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoneEvent {
    pub run: String,
    pub status: DoneStatus,
    pub summary: String,
    pub at: Timestamp,
}

/// The queue of one run.
#[derive(Debug)]
pub struct DoneQueue {
    dir: PathBuf,
    run: String,
    /// The first signal, which counts.
    signalled: Mutex<Option<DoneEvent>>,
}

impl DoneQueue {
    /// Opens the folder, which must exist. A signal of this run that is still in it counts.
    pub fn open(dir: &Path, run: &str) -> Result<Self, QueueError> {
        let signalled =
            load_events(dir)?.into_iter().map(|(_, event)| event).find(|event| event.run == run);
        Ok(Self { dir: dir.to_path_buf(), run: run.to_owned(), signalled: Mutex::new(signalled) })
    }

    /// Puts the signal into the queue, once. Returns the one that counts: a second changes nothing.
    pub(crate) fn signal(
        &self,
        status: DoneStatus,
        summary: &str,
    ) -> Result<DoneEvent, QueueError> {
        let mut signalled = self.signalled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(event) = signalled.as_ref() {
            return Ok(event.clone());
        }
        let at = clock::now();
        let event = DoneEvent { run: self.run.clone(), status, summary: summary.to_owned(), at };
        let name = next_name(at, &self.run, last_place(&self.dir)?);
        let text = serde_json::to_string(&event).unwrap_or_default();
        write_atomic(&self.dir.join(name), format!("{text}\n").as_bytes(), 0o600)?;
        *signalled = Some(event.clone());
        Ok(event)
    }
}

/// The events in a queue, oldest first, each with its file, which is removed once the event is handled.
pub fn load_events(dir: &Path) -> Result<Vec<(PathBuf, DoneEvent)>, QueueError> {
    let load = |name: String| {
        let path = dir.join(name);
        let failed = |source| QueueError::Io { action: "read", path: path.clone(), source };
        let bytes = fs::read(&path).map_err(failed)?;
        match serde_json::from_slice(&bytes) {
            Ok(event) => Ok((path, event)),
            Err(source) => Err(QueueError::NotAnEvent { path, source }),
        }
    };
    names(dir)?.into_iter().map(load).collect()
}

fn names(dir: &Path) -> Result<Vec<String>, QueueError> {
    let failed = |source| QueueError::Io { action: "list", path: dir.to_path_buf(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        // A file that is being written begins with a dot.
        if name.ends_with(SUFFIX) && !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn last_place(dir: &Path) -> Result<Option<u64>, QueueError> {
    let last = names(dir)?.pop();
    Ok(last.and_then(|name| name.split('-').next()?.parse().ok()))
}

/// Names sort by time, also where the clock was set back in between.
fn next_name(at: Timestamp, run: &str, last: Option<u64>) -> String {
    let now = u64::try_from(at.as_microsecond()).unwrap_or_default();
    let place = last.map_or(now, |last| now.max(last + 1));
    format!("{place:017}-{run}{SUFFIX}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_counts_also_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let queue = DoneQueue::open(dir.path(), "app_1").unwrap();
        let first = queue.signal(DoneStatus::Success, "all done").unwrap();
        assert_eq!(queue.signal(DoneStatus::Success, "all done").unwrap(), first);
        assert_eq!(queue.signal(DoneStatus::Failure, "or not").unwrap(), first);
        let again = DoneQueue::open(dir.path(), "app_1").unwrap();
        assert_eq!(again.signal(DoneStatus::Failure, "or not").unwrap(), first);
        let events = load_events(dir.path()).unwrap();
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].1, first);
    }

    #[test]
    fn events_of_several_runs_lie_in_order() {
        let dir = tempfile::tempdir().unwrap();
        for run in ["c", "a", "b"] {
            DoneQueue::open(dir.path(), run).unwrap().signal(DoneStatus::Success, "").unwrap();
        }
        let runs: Vec<String> =
            load_events(dir.path()).unwrap().into_iter().map(|(_, event)| event.run).collect();
        assert_eq!(runs, ["c", "a", "b"]);
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_change_the_order() {
        let at: Timestamp = "2026-11-15T08:00:00Z".parse().unwrap();
        let first = next_name(at, "a", None);
        assert_eq!(first, "01794729600000000-a-done.json");
        let place = first.split('-').next().and_then(|text| text.parse().ok());
        let earlier = at - jiff::SignedDuration::from_hours(1);
        assert!(next_name(earlier, "b", place) > first);
    }

    #[test]
    fn what_is_no_event_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("1-x-done.json"), "{").unwrap();
        let error = DoneQueue::open(dir.path(), "x").unwrap_err();
        assert!(error.to_string().contains("1-x-done.json is no event"), "{error}");
        assert!(DoneQueue::open(&dir.path().join("none"), "x").is_err());
    }
}
