//! Segments of a long log while it is written: files beside it that hold what came after its first part, so that a reader
//! can follow. The oldest goes when a new one begins, and all go when the log is closed with its last part in it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const SEGMENT_BYTES: u64 = 4 << 20;

/// Segments that stay for readers.
const KEPT: usize = 3;

/// One segment of a log, by the place of its first byte in the whole output.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogSegment {
    pub start: u64,
    /// Length of the first part, which is in the log itself.
    pub head: u64,
    pub path: PathBuf,
}

/// Returns the segments of a log, in their order.
pub fn find_segments(log: &Path) -> io::Result<Vec<LogSegment>> {
    let (Some(dir), Some(name)) = (log.parent(), log.file_name().and_then(|name| name.to_str()))
    else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let segment = entry.file_name().to_str().and_then(|entry| parse_name(entry, name));
        found.extend(segment.map(|(head, start)| LogSegment { start, head, path: entry.path() }));
    }
    found.sort();
    Ok(found)
}

fn parse_name(entry: &str, log: &str) -> Option<(u64, u64)> {
    let (head, start) = entry.strip_prefix(log)?.strip_prefix('.')?.split_once('-')?;
    Some((head.parse().ok()?, start.parse().ok()?))
}

/// Writer of segments.
#[derive(Debug)]
pub(super) struct SegmentWriter {
    log: PathBuf,
    head: u64,
    /// Place of the next byte in the whole output.
    next: u64,
    open: Option<(File, u64)>,
    kept: Vec<PathBuf>,
}

impl SegmentWriter {
    pub(super) fn new(log: &Path, head: u64) -> Self {
        Self { log: log.to_path_buf(), head, next: head, open: None, kept: Vec::new() }
    }

    /// Writes the next bytes behind the first part.
    pub(super) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (file, left) = match &mut self.open {
                Some((file, left)) if *left > 0 => (file, left),
                _ => {
                    let (file, left) = self.begin()?;
                    let (file, left) = self.open.insert((file, left));
                    (file, left)
                }
            };
            let fits = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
            file.write_all(&bytes[..fits])?;
            *left -= fits as u64;
            self.next += fits as u64;
            bytes = &bytes[fits..];
        }
        Ok(())
    }

    fn begin(&mut self) -> io::Result<(File, u64)> {
        let mut path = self.log.clone().into_os_string();
        path.push(format!(".{}-{}", self.head, self.next));
        let path = PathBuf::from(path);
        let file = File::options().write(true).create_new(true).open(&path)?;
        self.kept.push(path);
        if self.kept.len() > KEPT {
            fs::remove_file(self.kept.remove(0))?;
        }
        Ok((file, SEGMENT_BYTES))
    }

    pub(super) fn remove(self) -> io::Result<()> {
        self.kept.iter().try_for_each(fs::remove_file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_segments_stay_and_are_found_by_their_place() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("stdout.log");
        fs::write(dir.path().join("stdout.log.old"), "").unwrap();
        let mut writer = SegmentWriter::new(&log, 100);
        let step = vec![1; 3 << 20];
        for _ in 0..6 {
            writer.write(&step).unwrap();
        }
        let found = find_segments(&log).unwrap();
        let starts: Vec<u64> = found.iter().map(|segment| segment.start).collect();
        assert_eq!(starts, [2, 3, 4].map(|n| 100 + n * SEGMENT_BYTES));
        assert!(found.iter().all(|segment| segment.head == 100));
        let last = fs::metadata(&found[2].path).unwrap().len();
        assert_eq!(last, 18 * (1 << 20) - 4 * SEGMENT_BYTES);
        writer.remove().unwrap();
        assert_eq!(find_segments(&log).unwrap(), []);
    }
}
