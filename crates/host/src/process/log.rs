//! A log of bounded size from which secrets are redacted.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use model::redact::{RedactingStream, Redactor};

/// Writes the output of a program into a file: secrets redacted, the first part kept, the rest counted. A
/// program that floods its log therefore cannot fill the disk.
#[derive(Debug)]
pub struct LogWriter {
    stream: RedactingStream,
    sink: LogSink,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSummary {
    /// Bytes in the file, without the closing line.
    pub written: u64,
    /// Bytes that came after the limit was reached.
    pub dropped: u64,
}

impl LogWriter {
    /// Starts a log of at most `cap` bytes at the current place of `file`.
    pub fn new(file: File, cap: u64, redactor: Arc<Redactor>) -> Self {
        let stream = RedactingStream::new(redactor);
        Self { stream, sink: LogSink { file, cap, written: 0, dropped: 0, failed: None } }
    }

    /// Takes the next bytes. A full disk does not stop the program whose log it is: the bytes count as
    /// dropped, and [`finish`](Self::finish) returns the error.
    pub fn push(&mut self, bytes: &[u8]) {
        // Nothing more will be written, so redaction would be wasted work.
        let clean = if self.sink.is_full() { bytes.to_vec() } else { self.stream.push(bytes) };
        self.sink.store(&clean);
    }

    /// Ends the log: writes the bytes held back as a possible start of a secret, and a line about dropped
    /// bytes, if any.
    pub fn finish(self) -> io::Result<LogSummary> {
        let Self { stream, mut sink } = self;
        sink.store(&stream.finish());
        sink.close()
    }
}

#[derive(Debug)]
struct LogSink {
    file: File,
    cap: u64,
    written: u64,
    dropped: u64,
    failed: Option<io::Error>,
}

impl LogSink {
    fn is_full(&self) -> bool {
        self.failed.is_some() || self.written >= self.cap
    }

    fn store(&mut self, bytes: &[u8]) {
        let room = if self.is_full() { 0 } else { self.cap - self.written };
        let room = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        let (kept, rest) = bytes.split_at(room);
        self.dropped = self.dropped.saturating_add(rest.len() as u64);
        match self.file.write_all(kept) {
            Ok(()) => self.written += kept.len() as u64,
            Err(error) => {
                self.dropped = self.dropped.saturating_add(kept.len() as u64);
                self.failed = Some(error);
            }
        }
    }

    fn close(mut self) -> io::Result<LogSummary> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if self.dropped > 0 {
            self.file.write_all(closing_line(self.dropped, self.cap).as_bytes())?;
        }
        self.file.sync_data()?;
        Ok(LogSummary { written: self.written, dropped: self.dropped })
    }
}

fn closing_line(dropped: u64, cap: u64) -> String {
    format!("\n[{dropped} bytes more were dropped: this log is limited to {cap} bytes]\n")
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
    fn a_flood_leaves_its_start_and_a_line_about_the_rest() {
        let (text, summary) = log_of(6, &["abcd", "efgh", "ijkl"]);
        assert_eq!(text, "abcdef\n[6 bytes more were dropped: this log is limited to 6 bytes]\n");
        assert_eq!(summary, LogSummary { written: 6, dropped: 6 });
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
