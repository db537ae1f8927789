//! Times of a log: which byte came when, in a file beside the log, because most programs print no times themselves.
//!
//! Each line is `OFFSET MILLISECONDS`: bytes of the whole output from this offset came at this Unix time or later. The
//! offsets are those of the redacted output, with dropped bytes counted.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

/// Shortest time between two entries, in milliseconds.
const STEP_MS: i64 = 50;

/// Limit on the entries of one log; later bytes have the time of the last one.
const ENTRIES_MAX: u32 = 100_000;

/// Length limit of the file when it is read.
const FILE_MAX: u64 = 8 << 20;

#[derive(Debug)]
pub(super) struct LogTimesWriter {
    file: File,
    last_ms: Option<i64>,
    left: u32,
}

impl LogTimesWriter {
    pub(super) fn new(file: File) -> Self {
        Self { file, last_ms: None, left: ENTRIES_MAX }
    }

    /// Notes that bytes from `offset` on come now.
    pub(super) fn note(&mut self, offset: u64) -> io::Result<()> {
        let now = crate::clock::now().as_millisecond();
        let is_due = self.last_ms.is_none_or(|last| now >= last + STEP_MS);
        if self.left == 0 || !is_due {
            return Ok(());
        }
        self.left -= 1;
        self.last_ms = Some(now);
        self.file.write_all(format!("{offset} {now}\n").as_bytes())
    }
}

/// Times of a log, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogTimes(Vec<(u64, u64)>);

impl LogTimes {
    /// Reads the times; none if there is no such file, and those before the first bad line otherwise.
    pub fn read(path: &Path) -> Self {
        let Ok(file) = File::open(path) else { return Self::default() };
        let lines = BufReader::new(file.take(FILE_MAX)).lines().map_while(Result::ok);
        Self(lines.map_while(|line| parse_entry(&line)).collect())
    }

    /// Returns the Unix time in milliseconds at which the byte at `offset` came.
    pub fn at(&self, offset: u64) -> Option<u64> {
        let later = self.0.partition_point(|(start, _)| *start <= offset);
        self.0.get(later.checked_sub(1)?).map(|(_, ms)| *ms)
    }
}

fn parse_entry(line: &str) -> Option<(u64, u64)> {
    let (offset, ms) = line.split_once(' ')?;
    Some((offset.parse().ok()?, ms.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_has_the_time_of_the_last_entry_before_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "0 100\n10 200\n20 300\nbad\n30 400\n").unwrap();
        let times = LogTimes::read(file.path());
        assert_eq!([0, 9, 10, 25, 99].map(|at| times.at(at)), [100, 100, 200, 300, 300].map(Some));
        assert_eq!(LogTimes::read(Path::new("/nowhere")).at(0), None);
    }

    #[test]
    fn a_flood_does_not_fill_the_disk_with_times() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut writer = LogTimesWriter::new(file.reopen().unwrap());
        for offset in 0..10_000 {
            writer.note(offset).unwrap();
        }
        writer.left = 0;
        writer.last_ms = None;
        writer.note(10_000).unwrap();
        let times = LogTimes::read(file.path());
        assert!(times.0.len() < 10_000, "{}", times.0.len());
        assert!(times.at(0).is_some() && times.0.iter().all(|(start, _)| *start < 10_000));
    }
}
