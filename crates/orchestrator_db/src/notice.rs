//! Notices: what the orchestrator tells people outside of its page, stored before it is sent.

use jiff::Timestamp;

/// Something to tell people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Its id, by which a receiver recognises a repetition.
    pub id: String,
    /// Matter that it is about. A subject is stored once.
    pub subject: String,
    /// Its kind, as receivers see it.
    pub kind: String,
    /// Its fields, as JSON.
    pub body: String,
    pub created_at: Timestamp,
}

/// A notice on its way through one channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeDelivery {
    pub notice: Notice,
    pub channel: String,
    pub state: NoticeState,
    /// Attempts so far, the current one included.
    pub attempts: u32,
    pub not_before: Option<Timestamp>,
    /// Reason of the last failure; empty without one.
    pub problem: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeState {
    Pending,
    /// An attempt was begun. After a crash nobody knows whether it arrived.
    Sending,
    Sent,
    /// All attempts have failed.
    Failed,
}

impl NoticeState {
    const ALL: [Self; 4] = [Self::Pending, Self::Sending, Self::Sent, Self::Failed];

    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Sending => "sending",
            Self::Sent => "sent",
            Self::Failed => "failed",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == word)
    }
}
