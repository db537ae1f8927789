//! Fences: the numbers by which the store refuses an older owner of an issue.

use std::fmt;

use crate::error::DbError;
use crate::forge_state::IssueKey;

/// A claim on an issue. A write under an older one is refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fence {
    /// Grows with every claim of an issue, and never goes back.
    pub number: u64,
    /// Random, and new with every claim: a database that was restored to an earlier time gives numbers out twice, but no ids.
    pub claim: u64,
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:08x}", self.number, self.claim)
    }
}

/// A random id for a claim, in the range of a column.
pub(crate) fn new_claim() -> Result<u64, DbError> {
    Ok(u64::from_le_bytes(host::random::bytes()?) >> 1)
}

/// Right by which the bottle of an issue is written.
#[derive(Debug, Clone, Copy)]
pub struct Writer<'a> {
    /// The host that writes: a bottle is on one host.
    pub host: &'a str,
    /// The claim under which it writes; `None` for a person who works with a bottle of this host by hand.
    pub claim: Option<Fence>,
}

/// A lease that was renewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLease {
    pub key: IssueKey,
    pub fence: Fence,
}
