//! Deliveries: webhooks from forges and actions of users, stored before they are acknowledged.

use jiff::Timestamp;

/// A delivery that is about to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelivery {
    /// The kind of forge, or `page`.
    pub source: String,
    /// The sender's id. A source and an id are stored once.
    pub id: String,
    /// The event, as the sender names it.
    pub event: String,
    /// The repository's owner.
    pub owner: String,
    pub repo: String,
    /// The thread to reconcile.
    pub about: About,
    /// The unchanged request body.
    pub body: Vec<u8>,
}

/// The thread that a delivery names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum About {
    Issue(u64),
    /// A pull request.
    Pull(u64),
}

/// A stored delivery, without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its place in the order of arrival.
    pub seq: u64,
    /// The kind of forge, or `page`.
    pub source: String,
    /// The sender's id.
    pub id: String,
    /// The event, as the sender names it.
    pub event: String,
    /// The repository's owner.
    pub owner: String,
    pub repo: String,
    /// The thread to reconcile.
    pub about: About,
    pub received_at: Timestamp,
    pub handled_at: Option<Timestamp>,
}

/// Result of storing a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryInsert {
    /// A row was added.
    New,
    /// The same source and id are stored already.
    Duplicate,
}
