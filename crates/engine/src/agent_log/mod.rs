//! Log of an agent while it works: followed line by line, each line parsed by its provider's rules.
//!
//! - `text`: the log as a person reads it

mod text;

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent::{AgentReport, EventReader, Progress, Provider, Usage};
use host::process::{LogSegment, find_segments, parse_left_out};

pub use text::{LogCall, LogEntry, LogText};

/// Time between two reads.
const PAUSE: Duration = Duration::from_millis(200);

/// A line longer than this is parsed before its end; the reader cuts it anyway.
const LINE_CAP: usize = 4 << 20;

/// Follows the log of one agent. A long one goes on in segments beside it, and has its last part when it is closed.
pub struct Listener {
    path: PathBuf,
    file: Option<File>,
    /// The segment that `file` is; `None` for the log itself.
    segment: Option<LogSegment>,
    /// Place in the whole output.
    position: u64,
    rest: Vec<u8>,
    reader: EventReader,
}

impl Listener {
    /// Begins at the start of the log, whether it is there yet or not.
    pub fn new(provider: Provider, log: &Path) -> Self {
        Self::resuming(provider, log, Usage::default())
    }

    /// As [`Listener::new`], for a resumed conversation. `earlier` is its last [`AgentReport::thread_usage`], which some
    /// agents count again.
    pub fn resuming(provider: Provider, log: &Path, earlier: Usage) -> Self {
        Self {
            path: log.to_path_buf(),
            file: None,
            segment: None,
            position: 0,
            rest: Vec::new(),
            reader: EventReader::resuming(provider, earlier),
        }
    }

    /// Reports progress for ever. To be dropped when the box has ended.
    pub async fn follow(&mut self, mut report: impl FnMut(Progress)) -> Infallible {
        loop {
            // A log that cannot be read now may be readable in a moment; in the end `finish` reads it again.
            if let Ok(progress) = self.catch_up() {
                progress.into_iter().for_each(&mut report);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Reads the rest of the log and returns the agent's report.
    pub fn finish(mut self, exit: Option<i32>, mut report: impl FnMut(Progress)) -> AgentReport {
        if let Ok(progress) = self.catch_up() {
            progress.into_iter().for_each(&mut report);
        }
        if let Ok(progress) = self.read_last_part() {
            progress.into_iter().for_each(&mut report);
        }
        let rest = std::mem::take(&mut self.rest);
        if !rest.is_empty() {
            self.reader
                .push_line(&String::from_utf8_lossy(&rest))
                .into_iter()
                .for_each(&mut report);
        }
        self.reader.finish(exit)
    }

    fn catch_up(&mut self) -> io::Result<Vec<Progress>> {
        let mut progress = Vec::new();
        loop {
            // Asked before the read: what a file lacks when the next one is there, it will never have.
            let next = self.next_segment()?;
            let end = match (&self.segment, &next) {
                // The log itself gets its last part when it is closed, which is not what comes next.
                (None, Some(next)) => next.head - self.position.min(next.head),
                (None, None) | (Some(_), _) => u64::MAX,
            };
            let file = match &mut self.file {
                Some(file) => file,
                None => self.file.insert(File::open(&self.path)?),
            };
            self.position += file.take(end).read_to_end(&mut self.rest)? as u64;
            progress.extend(self.parse_lines());
            let Some(next) = next else { return Ok(progress) };
            match File::open(&next.path) {
                Ok(file) => self.file = Some(file),
                // Closed or overtaken in the meantime: the next look finds out which.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(progress),
                Err(error) => return Err(error),
            }
            self.skip_to(next.start);
            self.segment = Some(next);
        }
    }

    fn next_segment(&self) -> io::Result<Option<LogSegment>> {
        let after = self.segment.as_ref().map(|segment| segment.start);
        let segments = find_segments(&self.path)?;
        Ok(segments.into_iter().find(|segment| after.is_none_or(|after| segment.start > after)))
    }

    /// Goes on behind bytes that were not read in time. The line around them is lost.
    fn skip_to(&mut self, start: u64) {
        if start > self.position {
            self.rest.clear();
            self.position = start;
        }
    }

    /// Reads what the closed log has beyond the segments that were read.
    fn read_last_part(&mut self) -> io::Result<Vec<Progress>> {
        let Some(LogSegment { head, .. }) = self.segment else { return Ok(Vec::new()) };
        let mut log = File::open(&self.path)?;
        log.seek(SeekFrom::Start(head))?;
        let mut last = Vec::new();
        log.read_to_end(&mut last)?;
        let (left_out, length) = parse_left_out(&last).unwrap_or((0, 0));
        let last = &last[length..];
        self.skip_to(head + left_out);
        let known = usize::try_from(self.position - (head + left_out)).unwrap_or(usize::MAX);
        self.rest.extend_from_slice(last.get(known..).unwrap_or_default());
        Ok(self.parse_lines())
    }

    fn parse_lines(&mut self) -> Vec<Progress> {
        let mut progress = Vec::new();
        let mut start = 0;
        while let Some(end) = self.rest[start..].iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&self.rest[start..start + end]);
            progress.extend(self.reader.push_line(&line));
            start += end + 1;
        }
        self.rest.drain(..start);
        if self.rest.len() > LINE_CAP {
            let line = std::mem::take(&mut self.rest);
            progress.extend(self.reader.push_line(&String::from_utf8_lossy(&line)));
        }
        progress
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use agent::AgentOutcome;
    use host::process::LogWriter;
    use model::redact::Redactor;

    use super::*;

    const MIB: usize = 1 << 20;

    fn event(index: usize) -> String {
        format!("{{\"type\":\"step\",\"index\":{index},\"kind\":\"run\",\"detail\":\"{index}\"}}\n")
    }

    fn calls(progress: &[Progress]) -> Vec<String> {
        let call = |progress: &Progress| match progress {
            Progress::ToolCall { summary, .. } => Some(summary.clone()),
            _ => None,
        };
        progress.iter().filter_map(call).collect()
    }

    /// Writes twenty events with a megabyte of other output between them, into a log that keeps two, and calls `look`
    /// after each.
    fn write_long_log(log: &Path, mut look: impl FnMut()) {
        let file = File::create(log).expect("a log");
        let redactor = Arc::new(Redactor::new([]));
        let mut writer = LogWriter::new(file, 2 * MIB as u64, redactor).with_segments(log);
        let noise = "noise\n".repeat(MIB / 6);
        for index in 0..20 {
            writer.push(event(index).as_bytes());
            writer.push(noise.as_bytes());
            look();
        }
        writer.push(b"{\"type\":\"result\",\"status\":0}\n");
        writer.finish().expect("closed");
    }

    #[test]
    fn events_between_the_start_and_the_end_of_a_long_log_are_read_as_they_come() {
        let dir = tempfile::tempdir().expect("a folder");
        let log = dir.path().join("stdout.log");
        let mut listener = Listener::new(Provider::Scripted, &log);
        let mut seen = Vec::new();
        write_long_log(&log, || seen.extend(listener.catch_up().expect("read")));
        let report = listener.finish(Some(0), |progress| seen.push(progress));
        let expected: Vec<String> = (0..20).map(|index| index.to_string()).collect();
        assert_eq!(calls(&seen), expected, "each of them, and none of them twice");
        assert_eq!(report.outcome, AgentOutcome::Finished);
        assert_eq!(std::fs::read_dir(dir.path()).expect("a folder").count(), 1, "only the log");
    }

    #[test]
    fn a_reader_who_comes_late_has_the_start_and_the_end() {
        let dir = tempfile::tempdir().expect("a folder");
        let log = dir.path().join("stdout.log");
        write_long_log(&log, || ());
        let mut seen = Vec::new();
        let listener = Listener::new(Provider::Scripted, &log);
        let report = listener.finish(Some(0), |progress| seen.push(progress));
        assert_eq!(calls(&seen)[0], "0");
        assert_eq!(report.outcome, AgentOutcome::Finished);
    }

    /// Without a closed log, as a killed shim leaves it, the segments are all there is of the end.
    #[test]
    fn a_reader_who_falls_behind_goes_on_with_what_is_left() {
        let dir = tempfile::tempdir().expect("a folder");
        let log = dir.path().join("stdout.log");
        let mut looks = 0;
        let mut listener = Listener::new(Provider::Scripted, &log);
        let mut seen = Vec::new();
        write_long_log(&log, || {
            looks += 1;
            if looks == 3 || looks == 20 {
                seen.extend(listener.catch_up().expect("read"));
            }
        });
        let report = listener.finish(Some(0), |progress| seen.push(progress));
        let calls = calls(&seen);
        assert_eq!(calls[..3], ["0", "1", "2"]);
        assert_eq!(calls.last().map(String::as_str), Some("19"), "{calls:?}");
        assert!(calls.windows(2).all(|pair| pair[0] != pair[1]), "{calls:?}");
        assert_eq!(report.outcome, AgentOutcome::Finished);
    }
}
