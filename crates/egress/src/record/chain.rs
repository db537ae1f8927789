//! The chain: each line carries the hash of the one before, and the first that of the run's name.
//!
//! Whoever knows the last hash can tell whether a line was changed, left out or put in.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use thiserror::Error;

use super::Entry;

/// What the first line of a run's log points back to.
#[must_use]
pub fn genesis(run: &str) -> String {
    hash(format!("bottleworks egress log\n{run}\n").as_bytes())
}

/// A log that was read and found whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// Its lines.
    pub entries: Vec<Entry>,
    /// The hash of the last line, or the genesis.
    pub head: String,
    /// How many bytes make up whole lines; what follows them was torn by a crash.
    pub whole_bytes: usize,
}

/// A log that is not as it was written.
#[derive(Debug, Error)]
pub enum ChainError {
    /// A line is not one of ours.
    #[error("line {seq} of the egress log cannot be read")]
    Unreadable {
        /// The number of the line.
        seq: u64,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A line does not follow from the one before.
    #[error("line {seq} of the egress log does not follow from the line before it")]
    Broken {
        /// The number of the line.
        seq: u64,
    },
}

/// Reads a log and checks its chain. A last line without an end is passed over.
pub fn read_log(run: &str, bytes: &[u8]) -> Result<Replay, ChainError> {
    let whole_bytes = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let mut replay = Replay { entries: Vec::new(), head: genesis(run), whole_bytes };
    let lines = bytes[..whole_bytes].split_inclusive(|byte| *byte == b'\n');
    for (seq, line) in (1..).zip(lines) {
        let line = &line[..line.len() - 1];
        let entry: Entry = serde_json::from_slice(line)
            .map_err(|source| ChainError::Unreadable { seq, source })?;
        if entry.seq != seq || entry.prev != replay.head || entry.run != run {
            return Err(ChainError::Broken { seq });
        }
        replay.head = hash(line);
        replay.entries.push(entry);
    }
    Ok(replay)
}

/// SHA-256 in hexadecimal.
pub(super) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string cannot fail.
        write!(text, "{byte:02x}").unwrap_or_default();
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Kind, Verdict};

    fn log(run: &str, hosts: &[&str]) -> String {
        let mut prev = genesis(run);
        let mut text = String::new();
        for (seq, host) in (1..).zip(hosts) {
            let entry = Entry {
                run: run.to_owned(),
                seq,
                ts: jiff::Timestamp::UNIX_EPOCH,
                kind: Kind::Connect,
                host: (*host).to_owned(),
                port: 443,
                address: None,
                verdict: Verdict::Denied,
                reason: Some("not_allowed".to_owned()),
                bytes_up: 0,
                bytes_down: 0,
                ms: 1,
                status: None,
                spend: None,
                prev,
            };
            let line = serde_json::to_string(&entry).unwrap();
            prev = hash(line.as_bytes());
            text += &line;
            text.push('\n');
        }
        text
    }

    #[test]
    fn a_whole_log_is_read_and_its_head_is_the_last_hash() {
        let text = log("r1", &["a.example", "b.example"]);
        let replay = read_log("r1", text.as_bytes()).unwrap();
        assert_eq!(replay.entries.len(), 2);
        assert_eq!(replay.head, hash(text.lines().last().unwrap().as_bytes()));
        assert_eq!(read_log("r1", b"").unwrap().head, genesis("r1"));
    }

    #[test]
    fn a_changed_a_missing_and_a_foreign_line_are_noticed() {
        let text = log("r1", &["a.example", "b.example", "c.example"]);
        let broken =
            |text: &str, run: &str| read_log(run, text.as_bytes()).unwrap_err().to_string();
        assert!(broken(&text.replace("b.example", "x.example"), "r1").contains("line 3"));
        let without_second: Vec<&str> = text
            .split_inclusive('\n')
            .enumerate()
            .filter(|(i, _)| *i != 1)
            .map(|(_, l)| l)
            .collect();
        assert!(broken(&without_second.concat(), "r1").contains("line 2"));
        assert!(broken(&text, "r2").contains("line 1"));
        assert!(broken("{}\n", "r1").contains("cannot be read"));
    }

    #[test]
    fn a_torn_tail_is_passed_over() {
        let text = log("r1", &["a.example", "b.example"]);
        let torn = &text[..text.len() - 5];
        let replay = read_log("r1", torn.as_bytes()).unwrap();
        assert_eq!(replay.entries.len(), 1);
        assert_eq!(replay.whole_bytes, text.find('\n').unwrap() + 1);
    }
}
