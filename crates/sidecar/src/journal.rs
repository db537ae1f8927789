//! What is written down about a call, and by whom: the record itself belongs to the run.

/// Why an entry could not be written.
pub type JournalError = Box<dyn std::error::Error + Send + Sync>;

/// Keeps the semantic record of a run.
pub trait Journal: Send + Sync {
    /// Writes an entry down and returns once it will survive a crash. If it fails, nothing is done that was to be
    /// recorded.
    fn record(&self, entry: &Entry) -> Result<(), JournalError>;
}

/// One call in words that a reviewer understands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The method, or what was called in its place.
    pub method: String,
    /// To what, such as `#317`; empty where there is nothing.
    pub target: String,
    /// How far it came.
    pub outcome: EntryOutcome,
    /// The whole, as in "posted comment to #317" or "refused comment to #12: out of scope".
    pub sentence: String,
}

/// How far a call came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryOutcome {
    /// A write that is about to happen, to be found again after a crash.
    Intended,
    /// It happened.
    Done,
    /// It was not allowed, and nothing was sent.
    Refused,
    /// It was tried and did not work.
    Failed,
}
