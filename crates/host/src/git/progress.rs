//! Counts that git prints while it fetches, and the rest of what it prints.

use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Latest count of a fetch. One thread fetches; another shows it.
#[derive(Debug, Default)]
pub struct FetchProgress(Mutex<Option<FetchCount>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchCount {
    step: FetchStep,
    done: u64,
    of: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FetchStep {
    Counted,
    Compressed,
    Received,
    Resolved,
}

/// Titles of git's steps.
const TITLES: [(&str, FetchStep); 5] = [
    ("remote: Counting objects:", FetchStep::Counted),
    ("remote: Compressing objects:", FetchStep::Compressed),
    ("Receiving objects:", FetchStep::Received),
    ("Unpacking objects:", FetchStep::Received),
    ("Resolving deltas:", FetchStep::Resolved),
];

impl fmt::Display for FetchCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, done, of } = self;
        match step {
            FetchStep::Counted => write!(f, "{done} of {of} objects counted by the remote"),
            FetchStep::Compressed => write!(f, "{done} of {of} objects compressed by the remote"),
            FetchStep::Received => write!(f, "{done} of {of} objects received"),
            FetchStep::Resolved => write!(f, "{done} of {of} deltas resolved"),
        }
    }
}

impl FetchProgress {
    /// Returns the latest count, if git has printed one.
    pub fn latest(&self) -> Option<FetchCount> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a piece of git's standard error. A count that is cut by the end of the piece is left out: the next one follows.
    pub(super) fn observe(&self, chunk: &[u8]) {
        let text = String::from_utf8_lossy(chunk);
        if let Some(count) = text.rsplit(['\r', '\n']).find_map(parse_count) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(count);
        }
    }
}

/// Reads `Receiving objects:  45% (450/1000), 1.20 MiB | 2.00 MiB/s`.
fn parse_count(line: &str) -> Option<FetchCount> {
    let (title, step) = TITLES.into_iter().find(|(title, _)| line.starts_with(title))?;
    let (_, rest) = line.strip_prefix(title)?.split_once("% (")?;
    let (done, of) = rest.split_once(')')?.0.split_once('/')?;
    Some(FetchCount { step, done: done.parse().ok()?, of: of.parse().ok()? })
}

/// Removes what git prints of a fetch that goes well: counts, and the table of branches. Errors and the remote's messages stay.
pub(super) fn strip_progress(stderr: &[u8]) -> Vec<u8> {
    let lines = stderr.split(|&byte| byte == b'\n' || byte == b'\r');
    let kept: Vec<&[u8]> = lines.filter(|line| !is_progress(line)).collect();
    kept.iter().flat_map(|line| line.iter().copied().chain([b'\n'])).collect()
}

fn is_progress(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line);
    let steps = TITLES.into_iter().map(|(title, _)| title);
    let others =
        ["remote: Enumerating objects:", "remote: Total ", "Checking connectivity:", "From "];
    // Rows of the table of branches begin with a flag; the one of a refused branch is `!`.
    let rows = [" * ", " + ", " - ", " t ", " = ", "   "];
    let mut beginnings = steps.chain(others).chain(rows);
    text.trim().is_empty() || beginnings.any(|begin| text.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latest(chunks: &[&str]) -> String {
        let progress = FetchProgress::default();
        chunks.iter().for_each(|chunk| progress.observe(chunk.as_bytes()));
        progress.latest().map_or_else(|| "none".to_owned(), |count| count.to_string())
    }

    #[test]
    fn the_latest_whole_count_is_shown() {
        let cases: [(&[&str], &str); 7] = [
            (&["remote: Enumerating objects: 9, done.\n"], "none"),
            (&["remote: Counting objects:  50% (4/8)\r"], "4 of 8 objects counted by the remote"),
            (
                &["remote: Compressing objects: 100% (8/8), done.\n"],
                "8 of 8 objects compressed by the remote",
            ),
            (
                &[
                    "Receiving objects:  10% (1/10)\rReceiving objects:  20% (2/10), 1.2 MiB | 1 MiB/s\r",
                ],
                "2 of 10 objects received",
            ),
            (
                &["Receiving objects:  20% (2/10)\rReceiving obj", "ects:  30% (3/10)\r"],
                "2 of 10 objects received",
            ),
            (&["Unpacking objects:  30% (3/10)\r"], "3 of 10 objects received"),
            (&["Resolving deltas:   0% (0/7)\r", "fatal: early EOF\n"], "0 of 7 deltas resolved"),
        ];
        for (chunks, expected) in cases {
            assert_eq!(latest(chunks), expected, "{chunks:?}");
        }
    }

    #[test]
    fn errors_and_the_words_of_the_remote_stay() {
        let stderr = "remote: Enumerating objects: 9, done.\nremote: Counting objects:  50% (4/8)\r\
            remote: Counting objects: 100% (8/8), done.\nReceiving objects:  20% (2/10)\r\
            remote: Total 9 (delta 0), reused 0 (delta 0)\nremote: this project has moved\nFrom /x/up\n\
            \u{20}* [new branch]      main       -> upstream/main\n   1a2b..3c4d  next -> upstream/next\n\
            \u{20}! [rejected]        odd        -> upstream/odd  (unable to update)\nerror: early EOF\nfatal: no\n";
        assert_eq!(
            String::from_utf8(strip_progress(stderr.as_bytes())).unwrap(),
            "remote: this project has moved\n ! [rejected]        odd        -> upstream/odd  (unable to update)\n\
             error: early EOF\nfatal: no\n"
        );
        assert_eq!(strip_progress(b""), b"");
    }
}
