//! Hosts that share a database: who they are, and how much room they have.

use jiff::Timestamp;

/// A host, as its process reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostReport {
    /// Its name in the database.
    pub name: String,
    /// The process, new with every start.
    pub process: String,
    /// The running system and the folder of the home: a copy of a home has another one.
    pub place: String,
    /// Version of the program.
    pub version: String,
    /// Command that the process executes: `serve`, or `worker`.
    pub role: String,
    /// Bottles that it runs at the same time at most.
    pub slots: u32,
    /// Issues that it works on.
    pub busy: u32,
    /// Free space where its bottles are.
    pub disk_free_bytes: Option<u64>,
}

/// Answer to a [`HostReport`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostClaim {
    Held,
    /// A process of another home has the name, until this time by the database's clock if it renews no more.
    Taken {
        process: String,
        until: Timestamp,
    },
}

/// A host in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRow {
    pub report: HostReport,
    /// Time of its last report.
    pub seen_at: Timestamp,
    /// True until its report expires, or its process ends in good order.
    pub is_live: bool,
}

/// Leases of work items over all hosts, by the database's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeldLeases {
    pub held: u64,
    /// Those that have expired and that no other holder has taken over yet.
    pub expired: u64,
    /// Seconds since the first of these has expired; 0 without one.
    pub longest_expired_secs: u64,
    /// Those whose holder is a process that no longer reports itself.
    pub without_host: u64,
}
