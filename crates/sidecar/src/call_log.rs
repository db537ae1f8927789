//! Log of calls: its interface. The log itself belongs to the run.

pub type CallLogError = Box<dyn std::error::Error + Send + Sync>;

pub trait CallLog: Send + Sync {
    /// Writes a record and returns once it will survive a crash. If it fails, the call is not performed.
    fn record(&self, call: &CallRecord) -> Result<(), CallLogError>;
}

/// One call, for a reviewer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRecord {
    /// A method, or the unknown name that was called.
    pub method: String,
    /// Target, such as `#317`; empty without one.
    pub target: String,
    pub outcome: CallOutcome,
    /// Sentence, as in "posted comment to #317" or "refused comment to #12: out of scope".
    pub sentence: String,
    /// Digest of a description that was written, so that the host knows it for the agent's own.
    pub text_sha256: Option<String>,
}

/// Progress of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome {
    /// A write that is about to happen, to be found after a crash.
    Intended,
    Done,
    /// Not allowed; nothing was sent.
    Refused,
    Failed,
}
