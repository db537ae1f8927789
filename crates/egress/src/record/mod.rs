//! The egress log: one line for each connection or request, chained by hash, and the summary of them.
//!
//! A line holds hosts, addresses and counts. It never holds a path, a query, a header or a body, so
//! that no secret can get into it.

mod chain;
mod log;
mod summary;

use std::net::SocketAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use chain::{genesis, read_log};
pub use summary::{DeniedHost, EgressSummary, HostTraffic, Totals, render_summary};

pub(crate) use log::EgressLog;

use crate::model_route::Spend;

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EgressEntry {
    /// The run.
    pub run: String,
    /// The number of the line, from 1.
    pub seq: u64,
    /// When the connection or request ended.
    pub ts: Timestamp,
    /// What it was.
    pub kind: TrafficKind,
    /// Who was asked for, as it was asked; empty if that could not be read.
    pub host: String,
    /// At which port.
    pub port: u16,
    /// Where the connection went.
    pub address: Option<SocketAddr>,
    /// What came of it.
    pub verdict: EgressVerdict,
    /// Why it was denied, or how it failed, as one word.
    pub reason: Option<String>,
    /// Bytes that left the box.
    pub bytes_up: u64,
    /// Bytes that came into the box.
    pub bytes_down: u64,
    /// How long it lasted, in milliseconds.
    pub ms: u64,
    /// The status of the answer, where there was one that we could see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What a call to the model used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spend: Option<Spend>,
    /// The hash of the line before, or of the run's name for the first.
    pub prev: String,
}

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrafficKind {
    /// A tunnel.
    Connect,
    /// A plain request that was passed on.
    Http,
    /// A call to the model.
    Model,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressVerdict {
    /// It went through.
    Allowed,
    /// The policy refused it.
    Denied,
    /// It was allowed, and the other side or the way to it failed.
    Failed,
}
