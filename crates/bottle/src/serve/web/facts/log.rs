//! Output of a box, in slices. A slice is known by its offset, so that a reader continues where it stopped.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use engine::agent_log::LogText;
use model::redact::Redactor;
use run_store::run_dir::RunDir;
use sandbox::spec::BoxOutput;
use serde::Serialize;
use utoipa::ToSchema;

use super::super::rules::log_style::{LogStyle, LogView};
use super::super::rules::steps::{LogStepKind, StepReader};
use crate::flow::bottle::agent_box;

/// Lines of a log's end, as a person reads them.
const TAIL_LINES: usize = 10;
/// Bytes of a log's end that are read for them.
const TAIL_BYTES: usize = 16 << 10;
/// Bytes of a log's end that are read for its last step; a call has its output in its line.
const STEP_BYTES: usize = 64 << 10;
/// Characters of a step on a card.
const STEP_CHARS: usize = 120;

/// A slice of a log.
// Invalid UTF-8 in the text is replaced, and tokens are redacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = LogPiece)]
pub(crate) struct LogSlice {
    /// Offset of its first byte.
    pub(crate) from: u64,
    /// The `after` of the next slice; equal to `from` while there is nothing new.
    pub(crate) next: u64,
    /// The text, as the box printed it.
    pub(crate) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SliceEnd {
    /// After a whole line, because the rest of it may still come; a full slice ends anywhere.
    WholeLine,
    /// At the end of the log.
    Anywhere,
}

/// The last lines of the log of a run's box; empty if it cannot be read.
pub(crate) fn log_tail(dir: &RunDir, provider: &str) -> String {
    let read = || {
        let path = agent_box(dir).ok()?.stdout(BoxOutput::Log { cap: 0 });
        let from = std::fs::metadata(&path).ok()?.len().saturating_sub(TAIL_BYTES as u64);
        let bytes = read_slice(&path, from, TAIL_BYTES, SliceEnd::Anywhere).ok()?.text;
        // The first line may be cut.
        let text = if from > 0 { bytes.split_once('\n')?.1.to_owned() } else { bytes };
        Some(LogStyle::of(provider, LogView::Text).render(&text))
    };
    let text = read().unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(TAIL_LINES)..];
    model::escape::escape_terminal(&last.join("\n")).into_owned()
}

/// The last step of a run in one line, or what its agent is at now; empty before the first one.
pub(crate) fn last_step(dir: &RunDir, provider: &str) -> String {
    let read = || {
        let path = agent_box(dir).ok()?.stdout(BoxOutput::Log { cap: 0 });
        let tail = read_tail(&path, STEP_BYTES).ok()?;
        let style = LogStyle::of(provider, LogView::Steps);
        let LogStyle::Steps(known) = style else { return last_line(&tail.text) };
        let mut reader = StepReader::new(LogText::new(known), tail.from);
        let steps = reader.push(&tail.text);
        let open = reader.open();
        if !open.is_empty() {
            return Some(open);
        }
        match &steps.last()?.kind {
            LogStepKind::Call(call) => Some(call.action.clone()),
            LogStepKind::Message(text) | LogStepKind::Retry(text) | LogStepKind::Lines(text) => {
                last_line(text)
            }
        }
    };
    let step = read().unwrap_or_default();
    let mut short: String = step.chars().take(STEP_CHARS).collect();
    if short.len() < step.len() {
        short.push('…');
    }
    short
}

fn last_line(text: &str) -> Option<String> {
    text.lines().rev().find(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned())
}

/// Reads at most `cap` bytes from offset `from`. A log that does not exist yet is empty.
pub(crate) fn read_slice(
    path: &Path,
    from: u64,
    cap: usize,
    cut: SliceEnd,
) -> io::Result<LogSlice> {
    let mut bytes = Vec::new();
    match File::open(path) {
        // Seeking far beyond the end is an error.
        Ok(mut file) if from < file.metadata()?.len() => {
            file.seek(SeekFrom::Start(from))?;
            file.take(cap as u64).read_to_end(&mut bytes)?;
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let kept = &bytes[..whole(&bytes, cap, cut)];
    let text = Redactor::new([]).redact(&String::from_utf8_lossy(kept)).into_owned();
    Ok(LogSlice { from, next: from + kept.len() as u64, text })
}

/// The last lines of a log, at most `cap` bytes of them.
pub(crate) fn read_tail(path: &Path, cap: usize) -> io::Result<LogSlice> {
    let size = match path.metadata() {
        Ok(facts) => facts.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    let from = size.saturating_sub(cap as u64);
    let mut piece = read_slice(path, from, cap, SliceEnd::WholeLine)?;
    // The text before the first line break is the end of a line.
    if from > 0
        && let Some(end) = piece.text.find('\n')
    {
        piece.text.drain(..=end);
    }
    Ok(piece)
}

fn whole(bytes: &[u8], cap: usize, cut: SliceEnd) -> usize {
    let line = bytes.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
    match (cut, line) {
        (_, Some(end)) if cut == SliceEnd::WholeLine || bytes.len() == cap => end,
        (SliceEnd::WholeLine, None) if bytes.len() < cap => 0,
        _ => whole_characters(bytes),
    }
}

/// Leaves an incomplete character at the end for the next slice, unless it can never become one.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => error.valid_up_to(),
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(text: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("written");
        file
    }

    #[test]
    fn slices_follow_one_another_without_a_gap() {
        let text = "one\ntwo\nthree ü\nfour";
        let file = log(text.as_bytes());
        let (mut from, mut read) = (0, String::new());
        loop {
            let piece = read_slice(file.path(), from, 6, SliceEnd::Anywhere).expect("read");
            if piece.next == from {
                break;
            }
            read += &piece.text;
            from = piece.next;
        }
        assert_eq!(read, text);
    }

    #[test]
    fn beyond_the_end_there_is_nothing() {
        let file = log(b"one\n");
        for from in [4, 5, 1 << 53, u64::MAX] {
            let piece = read_slice(file.path(), from, 100, SliceEnd::Anywhere).expect("read");
            assert_eq!((piece.text.as_str(), piece.next), ("", from));
        }
    }

    #[test]
    fn half_a_line_waits_for_its_end() {
        let file = log(b"one\ntw");
        let piece = read_slice(file.path(), 0, 100, SliceEnd::WholeLine).expect("read");
        assert_eq!((piece.text.as_str(), piece.next), ("one\n", 4));
        let rest = read_slice(file.path(), 4, 100, SliceEnd::WholeLine).expect("read");
        assert_eq!((rest.text.as_str(), rest.next), ("", 4));
        let end = read_slice(file.path(), 4, 100, SliceEnd::Anywhere).expect("read");
        assert_eq!((end.text.as_str(), end.next), ("tw", 6));
    }

    #[test]
    fn a_line_without_an_end_does_not_stop_the_log() {
        let file = log("x".repeat(50).as_bytes());
        assert_eq!(read_slice(file.path(), 0, 20, SliceEnd::WholeLine).expect("read").next, 20);
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        let file = log(b"a\xff\n\xfe");
        let piece = read_slice(file.path(), 0, 100, SliceEnd::Anywhere).expect("read");
        assert_eq!((piece.text.as_str(), piece.next), ("a\u{fffd}\n\u{fffd}", 4));
    }

    #[test]
    fn a_tail_begins_with_a_whole_line() {
        let file = log(b"first\nsecond\nthird\n");
        let tail = read_tail(file.path(), 10).expect("read");
        assert_eq!((tail.text.as_str(), tail.next), ("third\n", 19));
        assert_eq!(read_tail(Path::new("/nowhere"), 10).expect("empty").text, "");
    }

    #[test]
    fn a_token_in_the_log_is_redacted() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let file = log(format!("key {token}\n").as_bytes());
        let piece = read_slice(file.path(), 0, 100, SliceEnd::Anywhere).expect("read");
        assert_eq!(piece.text, "key ***\n");
    }
}
