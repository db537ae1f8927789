//! The chain through the operation log, and the check that it is whole.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use model::id::RunId;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::line::Link;

/// The end of a chain: how many lines, and the digest of the last one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainHead {
    /// The number of the last line; zero when there is none.
    pub seq: u64,
    /// SHA-256 of the last line's bytes without its line break, in hex.
    pub head: String,
}

/// Where a chain is broken, and how.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ChainFault {
    /// The line, counted from 1; zero when the log could not be read at all.
    pub line: u64,
    /// What is wrong with it.
    pub what: Fault,
}

/// What is wrong with a line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The log is missing or cannot be read.
    #[error("the log cannot be read: {0}")]
    Unreadable(std::io::Error),
    /// The line has no end, as after a crash or a cut.
    #[error("it has no end; the log was cut or a crash tore it")]
    Torn,
    /// The line is no line of ours.
    #[error("it is not an entry of an operation log: {0}")]
    NotAnEntry(serde_json::Error),
    /// Lines were removed, added or moved.
    #[error("it has number {found}; lines were removed, added or moved")]
    Number {
        /// The number that it has.
        found: u64,
    },
    /// The line before it is not the one that it was written after.
    #[error("it does not follow the line before it, which was changed, removed or moved")]
    Link,
    /// The first line belongs to another run.
    #[error("it was not written as the first line of run {run}")]
    Genesis {
        /// The run that the log should belong to.
        run: String,
    },
}

impl ChainHead {
    /// The end of a chain that has no lines yet: it binds the log to its run.
    pub fn genesis(run: &RunId) -> Self {
        Self { seq: 0, head: digest(format!("bottleworks run {run}").as_bytes()) }
    }
}

/// Checks the chain of a log from its first line to its last, and returns its end. To know that
/// nothing was dropped from the end, compare it with the end that was recorded elsewhere.
pub fn verify(path: &Path, run: &RunId) -> Result<ChainHead, ChainFault> {
    let bytes =
        fs::read(path).map_err(|error| ChainFault { line: 0, what: Fault::Unreadable(error) })?;
    let whole = whole_lines(&bytes);
    let head = verify_bytes(whole, run)?;
    if whole.len() < bytes.len() {
        return Err(ChainFault { line: head.seq + 1, what: Fault::Torn });
    }
    Ok(head)
}

/// The part of a log up to the end of its last whole line.
pub(super) fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
    &bytes[..end]
}

/// Checks lines that all have their end.
pub(super) fn verify_bytes(whole: &[u8], run: &RunId) -> Result<ChainHead, ChainFault> {
    let mut head = ChainHead::genesis(run);
    for line in whole.split_inclusive(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let number = head.seq + 1;
        check_link(line, &head, run).map_err(|what| ChainFault { line: number, what })?;
        head = ChainHead { seq: number, head: digest(line) };
    }
    Ok(head)
}

fn check_link(line: &[u8], before: &ChainHead, run: &RunId) -> Result<(), Fault> {
    let link: Link = serde_json::from_slice(line).map_err(Fault::NotAnEntry)?;
    if link.seq != before.seq + 1 {
        return Err(Fault::Number { found: link.seq });
    }
    match (link.prev == before.head, before.seq) {
        (true, _) => Ok(()),
        (false, 0) => Err(Fault::Genesis { run: run.to_string() }),
        (false, _) => Err(Fault::Link),
    }
}

/// SHA-256 in hex.
pub(super) fn digest(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a String cannot fail.
        let written = write!(hex, "{byte:02x}");
        debug_assert!(written.is_ok());
    }
    hex
}
