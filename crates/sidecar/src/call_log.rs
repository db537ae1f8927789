//! Log of calls: its interface. The log itself belongs to the run.

/// Reason why a record could not be written.
pub type CallLogError = Box<dyn std::error::Error + Send + Sync>;

/// Log of a run's calls.
pub trait CallLog: Send + Sync {
    /// Writes a record and returns once it will survive a crash. If it fails, the call is not performed.
    fn record(&self, call: &CallRecord) -> Result<(), CallLogError>;
}

/// One call, for a reviewer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRecord {
    /// ForgeMethod, or the name that was called in its place.
    pub method: String,
    /// Target, such as `#317`; empty without one.
    pub target: String,
    /// Progress of the call.
    pub outcome: CallOutcome,
    /// Sentence, as in "posted comment to #317" or "refused comment to #12: out of scope".
    pub sentence: String,
}

/// Progress of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome {
    /// A write that is about to happen, to be found after a crash.
    Intended,
    /// Performed.
    Done,
    /// Not allowed; nothing was sent.
    Refused,
    /// Tried, and failed.
    Failed,
}
