//! What came in and is kept before it is acknowledged: webhooks from forges, and wishes of people.

use jiff::Timestamp;

/// Something that came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelivery {
    /// Where from: the kind of forge, or `page`.
    pub source: String,
    /// The sender's own name for it: what comes twice under one name counts once.
    pub id: String,
    /// What it is about, in the sender's words.
    pub event: String,
    /// The repository's owner.
    pub owner: String,
    /// The repository.
    pub repo: String,
    /// The thread that it says to look at.
    pub about: About,
    /// The bytes as they came.
    pub body: Vec<u8>,
}

/// The thread that a delivery says to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum About {
    /// An issue.
    Issue(u64),
    /// A pull request.
    Pull(u64),
}

/// What was kept, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// In which order it came.
    pub seq: u64,
    /// Where from.
    pub source: String,
    /// The sender's own name for it.
    pub id: String,
    /// What it is about.
    pub event: String,
    /// The repository's owner.
    pub owner: String,
    /// The repository.
    pub repo: String,
    /// The thread that it says to look at.
    pub about: About,
    /// When it came.
    pub received_at: Timestamp,
    /// When it was acted on.
    pub handled_at: Option<Timestamp>,
}

/// Whether a delivery was new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// It was.
    New,
    /// It had come before.
    Known,
}
