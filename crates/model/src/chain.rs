//! Hash-chained logs: JSON lines in which each line carries its number and the SHA-256 of the line before it.
//!
//! The operation log, the egress log and the chain of a host's runs are three such logs. A line cannot be changed,
//! dropped or moved without breaking the chain. Lines dropped from the end leave a shorter chain that verifies, so the
//! [`ChainHead`] is also kept elsewhere. Bytes are hashed as written; JSON needs no canonical form.
//! `host::chain` keeps such a log in a file.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::digest::sha256;

/// The end of a chain: the number of lines and the digest of the last one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainHead {
    /// Number of the last line; zero when there is none.
    pub seq: u64,
    /// SHA-256 of the last line without its line break, in hex.
    pub head: String,
}

/// A line that takes part in a chain.
pub trait ChainLine: DeserializeOwned {
    /// Number, from 1.
    fn seq(&self) -> u64;
    /// Digest of the line before it.
    fn prev(&self) -> &str;
}

/// The part of a line that every log has; enough to verify a chain without reading the rest.
#[derive(Debug, Deserialize)]
pub struct BareLine {
    seq: u64,
    prev: String,
}

/// A chain that was read and verified.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifiedChain<T> {
    pub lines: Vec<T>,
    pub head: ChainHead,
    /// Length of all complete lines. Bytes after them are a line torn by a crash.
    pub whole_bytes: usize,
}

#[derive(Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ChainFault {
    /// Line number, counted from 1; zero when the log could not be read at all.
    pub line: u64,
    pub what: ChainDefect,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChainDefect {
    #[error("the log cannot be read: {0}")]
    Unreadable(std::io::Error),
    #[error("it has no end; the log was cut or a crash tore it")]
    Torn,
    #[error("it is not an entry of this log: {0}")]
    NotAnEntry(serde_json::Error),
    #[error("it has number {found}; lines were removed, added or moved")]
    Number { found: u64 },
    /// The digest in the line is not that of the line before it.
    #[error("it does not follow the line before it, which was changed, removed or moved")]
    Link,
    #[error("it was not written as the first line of this log")]
    Genesis,
}

impl ChainHead {
    /// The end of a chain without lines. `seed` binds the log to what it is about.
    pub fn genesis(seed: &[u8]) -> Self {
        Self { seq: 0, head: sha256(seed) }
    }

    /// The end after `line`, given without its line break.
    pub fn after(&self, line: &[u8]) -> Self {
        Self { seq: self.seq + 1, head: sha256(line) }
    }
}

impl ChainLine for BareLine {
    fn seq(&self) -> u64 {
        self.seq
    }

    fn prev(&self) -> &str {
        &self.prev
    }
}

impl<T> VerifiedChain<T> {
    /// The end of a log that must be complete: a torn last line is a fault.
    pub fn complete_head(self, bytes: &[u8]) -> Result<ChainHead, ChainFault> {
        if self.whole_bytes < bytes.len() {
            return Err(ChainFault { line: self.head.seq + 1, what: ChainDefect::Torn });
        }
        Ok(self.head)
    }
}

/// Verifies the complete lines of a log that starts at `genesis`. Skips a torn last line.
pub fn verify_chain<T: ChainLine>(
    bytes: &[u8],
    genesis: ChainHead,
) -> Result<VerifiedChain<T>, ChainFault> {
    let whole = whole_lines(bytes);
    let mut chain = VerifiedChain { lines: Vec::new(), head: genesis, whole_bytes: whole.len() };
    for line in whole.split_inclusive(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let number = chain.head.seq + 1;
        let entry =
            check_line(line, &chain.head).map_err(|what| ChainFault { line: number, what })?;
        chain.lines.push(entry);
        chain.head = chain.head.after(line);
    }
    Ok(chain)
}

/// The part of a log up to the end of its last complete line.
pub fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
    &bytes[..end]
}

fn check_line<T: ChainLine>(line: &[u8], before: &ChainHead) -> Result<T, ChainDefect> {
    let entry: T = serde_json::from_slice(line).map_err(ChainDefect::NotAnEntry)?;
    if entry.seq() != before.seq + 1 {
        return Err(ChainDefect::Number { found: entry.seq() });
    }
    match (entry.prev() == before.head, before.seq) {
        (true, _) => Ok(entry),
        (false, 0) => Err(ChainDefect::Genesis),
        (false, _) => Err(ChainDefect::Link),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(seed: &[u8], count: usize) -> Vec<String> {
        let mut head = ChainHead::genesis(seed);
        let mut lines = Vec::new();
        for _ in 0..count {
            let line = format!("{{\"seq\":{},\"prev\":\"{}\"}}", head.seq + 1, head.head);
            head = head.after(line.as_bytes());
            lines.push(line + "\n");
        }
        lines
    }

    fn verify(lines: &[String], seed: &[u8]) -> Result<ChainHead, String> {
        let text = lines.concat();
        verify_chain::<BareLine>(text.as_bytes(), ChainHead::genesis(seed))
            .and_then(|chain| chain.complete_head(text.as_bytes()))
            .map_err(|fault| fault.to_string())
    }

    #[test]
    fn a_log_verifies_against_its_own_seed_only() {
        let lines = log(b"one", 3);
        let last = lines[2].trim_end().as_bytes();
        assert_eq!(verify(&lines, b"one"), Ok(ChainHead { seq: 3, head: sha256(last) }));
        assert_eq!(
            verify(&lines, b"two"),
            Err("line 1: it was not written as the first line of this log".to_owned())
        );
        assert_eq!(verify(&[], b"one"), Ok(ChainHead::genesis(b"one")));
    }

    #[test]
    fn each_kind_of_change_is_reported_at_its_line() {
        let changed = |change: fn(&mut Vec<String>)| {
            let mut lines = log(b"one", 3);
            change(&mut lines);
            verify(&lines, b"one").unwrap_err()
        };
        let link = "it does not follow the line before it, which was changed, removed or moved";
        let number = |found| format!("it has number {found}; lines were removed, added or moved");
        assert_eq!(changed(|all| all[1].insert(1, ' ')), format!("line 3: {link}"));
        assert_eq!(changed(|all| drop(all.remove(1))), format!("line 2: {}", number(3)));
        assert_eq!(changed(|all| all.swap(0, 1)), format!("line 1: {}", number(2)));
        assert!(changed(|all| all[1].truncate(9)).starts_with("line 2: it is not an entry"));
        let torn = changed(|all| all[2].truncate(9));
        assert_eq!(torn, "line 3: it has no end; the log was cut or a crash tore it");
    }
}
