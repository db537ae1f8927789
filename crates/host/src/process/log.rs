//! A log of bounded size from which secrets are redacted.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use model::redact::{RedactingStream, Redactor};

use super::log_times::LogTimesWriter;
use super::segment::SegmentWriter;

/// Writes the output of a program into a file: secrets redacted, the first and the last part kept, the rest counted. A
/// program that floods its log therefore cannot fill the disk, and its last words are still there.
#[derive(Debug)]
pub struct LogWriter {
    stream: RedactingStream,
    sink: LogSink,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSummary {
    /// Bytes in the file, without the line about dropped ones.
    pub written: u64,
    /// Bytes between the first and the last part.
    pub dropped: u64,
}

/// Part of the limit that is kept for the end of a log, and the most memory that it takes: the end is written last.
const TAIL_SHARE: u64 = 4;
const MOST_TAIL: u64 = 4 << 20;

impl LogWriter {
    /// Starts a log of at most `cap` bytes at the current place of `file`.
    pub fn new(file: File, cap: u64, redactor: Arc<Redactor>) -> Self {
        let tail_cap = (cap / TAIL_SHARE).min(MOST_TAIL);
        let sink = LogSink {
            file,
            head_room: cap - tail_cap,
            tail_cap: usize::try_from(tail_cap).unwrap_or(usize::MAX),
            tail: VecDeque::new(),
            segments: None,
            times: None,
            written: 0,
            dropped: 0,
            failed: None,
        };
        Self { stream: RedactingStream::new(redactor), sink }
    }

    /// Lets readers follow the log beyond its first part, see [`find_segments`](super::find_segments). `log` is the path of
    /// its file.
    #[must_use]
    pub fn with_segments(mut self, log: &Path) -> Self {
        self.sink.segments = Some(SegmentWriter::new(log, self.sink.head_room));
        self
    }

    /// Notes the time at which each part comes, in a file of its own that [`LogTimes`](super::LogTimes) reads.
    #[must_use]
    pub fn with_times(mut self, file: File) -> Self {
        self.sink.times = Some(LogTimesWriter::new(file));
        self
    }

    /// Takes the next bytes. A full disk does not stop the program whose log it is: the bytes count as
    /// dropped, and [`finish`](Self::finish) returns the error.
    pub fn push(&mut self, bytes: &[u8]) {
        self.sink.store(&self.stream.push(bytes));
    }

    /// Ends the log: writes the bytes held back as a possible start of a secret, the last part, and before it a
    /// line about dropped bytes, if any.
    pub fn finish(self) -> io::Result<LogSummary> {
        let Self { stream, mut sink } = self;
        sink.store(&stream.finish());
        sink.close()
    }
}

#[derive(Debug)]
struct LogSink {
    file: File,
    /// Bytes that still fit the first part.
    head_room: u64,
    tail_cap: usize,
    tail: VecDeque<u8>,
    /// For readers who follow a log that is already too long.
    segments: Option<SegmentWriter>,
    times: Option<LogTimesWriter>,
    written: u64,
    dropped: u64,
    failed: Option<io::Error>,
}

impl LogSink {
    fn store(&mut self, bytes: &[u8]) {
        let offset = self.written + self.dropped + self.tail.len() as u64;
        // Times are a help to readers; the log is the same without them.
        if !bytes.is_empty() && self.times.as_mut().is_some_and(|times| times.note(offset).is_err())
        {
            self.times = None;
        }
        let room = usize::try_from(self.head_room).unwrap_or(usize::MAX).min(bytes.len());
        let (head, rest) = bytes.split_at(room);
        self.head_room -= room as u64;
        self.write(head);
        // A reader who cannot follow still has the start and the end.
        if self.segments.as_mut().is_some_and(|segments| segments.write(rest).is_err()) {
            self.segments = None;
        }
        // Bytes that will not stay are not copied.
        let (gone, last) = rest.split_at(rest.len().saturating_sub(self.tail_cap));
        self.tail.extend(last);
        let excess = self.tail.len().saturating_sub(self.tail_cap);
        self.tail.drain(..excess);
        self.dropped = self.dropped.saturating_add((gone.len() + excess) as u64);
    }

    fn write(&mut self, bytes: &[u8]) {
        let outcome = match &self.failed {
            None => self.file.write_all(bytes),
            Some(_) => return self.dropped = self.dropped.saturating_add(bytes.len() as u64),
        };
        match outcome {
            Ok(()) => self.written += bytes.len() as u64,
            Err(error) => {
                self.dropped = self.dropped.saturating_add(bytes.len() as u64);
                self.failed = Some(error);
            }
        }
    }

    fn close(mut self) -> io::Result<LogSummary> {
        let (dropped, kept) = (self.dropped, self.written + self.tail.len() as u64);
        if dropped > 0 && self.failed.is_none() {
            self.file.write_all(left_out_line(dropped, kept).as_bytes())?;
        }
        let tail = std::mem::take(&mut self.tail);
        let (first, second) = tail.as_slices();
        self.write(first);
        self.write(second);
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.file.sync_data()?;
        if let Some(segments) = self.segments {
            segments.remove()?;
        }
        Ok(LogSummary { written: self.written, dropped: self.dropped })
    }
}

/// Parses the line about dropped bytes at the start of `bytes`: their count, and the length of the line with its breaks.
pub fn parse_left_out(bytes: &[u8]) -> Option<(u64, usize)> {
    let line = bytes.strip_prefix(b"\n[")?;
    let length = line.iter().position(|byte| *byte == b'\n')?;
    let text = std::str::from_utf8(&line[..length]).ok()?;
    let (count, _) = text.strip_suffix(']')?.split_once(" bytes are left out here: ")?;
    Some((count.parse().ok()?, "\n[".len() + length + "\n".len()))
}

fn left_out_line(dropped: u64, kept: u64) -> String {
    format!("\n[{dropped} bytes are left out here: this log is limited to {kept} bytes]\n")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use model::secret::Secret;

    use super::*;

    const KEY: &str = "sk-0123456789abcdef0123456789";

    fn log_of(cap: u64, chunks: &[&str]) -> (String, LogSummary) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let redactor = Arc::new(Redactor::new([Secret::new(KEY)]));
        let mut log = LogWriter::new(file.reopen().unwrap(), cap, redactor);
        for chunk in chunks {
            log.push(chunk.as_bytes());
        }
        let summary = log.finish().unwrap();
        (fs::read_to_string(file.path()).unwrap(), summary)
    }

    #[test]
    fn a_short_log_is_kept_whole() {
        let (text, summary) = log_of(100, &["one\n", "two\n"]);
        assert_eq!(text, "one\ntwo\n");
        assert_eq!(summary, LogSummary { written: 8, dropped: 0 });
    }

    #[test]
    fn a_flood_leaves_its_start_and_its_end_and_a_line_about_the_rest() {
        let (text, summary) = log_of(8, &["abcd", "efgh", "ijkl"]);
        assert_eq!(text, "abcdef\n[4 bytes are left out here: this log is limited to 8 bytes]\nkl");
        assert_eq!(summary, LogSummary { written: 8, dropped: 4 });
        let (text, _) = log_of(8, &["abcdefghijklmnop"]);
        assert!(text.starts_with("abcdef\n[8 bytes") && text.ends_with("]\nop"), "{text}");
    }

    #[test]
    fn the_line_about_dropped_bytes_is_read_back() {
        let line = left_out_line(4711, 10);
        let text = format!("{line}rest");
        assert_eq!(parse_left_out(text.as_bytes()), Some((4711, line.len())));
        for other in
            ["", "\n[", "\n[x bytes are left out here: y]\n", "[1 bytes are left out here: y]\n"]
        {
            assert_eq!(parse_left_out(other.as_bytes()), None, "{other:?}");
        }
    }

    #[test]
    fn a_log_that_just_fits_is_kept_whole() {
        let (text, summary) = log_of(8, &["abcd", "efg", "h"]);
        assert_eq!((text.as_str(), summary.dropped), ("abcdefgh", 0));
    }

    #[test]
    fn a_secret_at_the_cut_does_not_get_through() {
        let filler = "x".repeat(100);
        for cap in 8..200 {
            let (text, _) = log_of(cap, &[&filler, KEY, &filler, KEY, "end"]);
            assert!(!text.contains(&KEY[20..]) && text.ends_with("nd"), "{cap}: {text}");
        }
    }

    #[test]
    fn a_secret_cut_in_two_does_not_get_through() {
        let (head, tail) = KEY.split_at(11);
        let (text, _) = log_of(1000, &["key ", head, tail, " end\n"]);
        assert_eq!(text, "key *** end\n");
    }

    #[test]
    fn a_disk_that_is_full_is_told_at_the_end() {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut log = LogWriter::new(full, 100, Arc::new(Redactor::new([])));
        log.push(b"lost\n");
        log.push(b"lost too\n");
        assert_eq!(log.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
