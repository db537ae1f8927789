//! Deliveries: webhooks from forges and actions of users, stored before they are acknowledged.

use jiff::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its place in the order of arrival; 0 until it is stored.
    pub seq: u64,
    /// The kind of forge, or `page`.
    pub source: String,
    /// The sender's id. A source and an id are stored once.
    pub id: String,
    /// The event, as the sender names it.
    pub event: String,
    pub owner: String,
    pub repo: String,
    /// The thread to reconcile.
    pub about: About,
    /// The unchanged request body. Lists leave it empty; `delivery_body` loads it.
    pub body: Vec<u8>,
    pub received_at: Timestamp,
    pub handled_at: Option<Timestamp>,
}

/// The thread that a delivery names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum About {
    Issue(u64),
    Pull(u64),
}

impl About {
    /// The columns `thread` and `number`.
    pub(crate) fn columns(self) -> (&'static str, u64) {
        match self {
            Self::Issue(number) => ("issue", number),
            Self::Pull(number) => ("pull", number),
        }
    }

    pub(crate) fn parse(thread: &str, number: u64) -> Option<Self> {
        match thread {
            "issue" => Some(Self::Issue(number)),
            "pull" => Some(Self::Pull(number)),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryInsert {
    New,
    /// The same source and id are stored already.
    Duplicate,
}
