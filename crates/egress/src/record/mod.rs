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
    pub run: String,
    /// The number of the line, from 1.
    pub seq: u64,
    /// End time of the connection or request.
    pub ts: Timestamp,
    pub kind: TrafficKind,
    /// Host as requested; empty if it could not be parsed.
    pub host: String,
    pub port: u16,
    pub address: Option<SocketAddr>,
    pub verdict: EgressVerdict,
    /// Reason of the denial or failure, as one word.
    pub reason: Option<String>,
    pub bytes_up: u64,
    pub bytes_down: u64,
    /// Duration of the connection or request.
    pub ms: u64,
    /// Status of the response, where it was visible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spend: Option<Spend>,
    /// Hash of the line before, or of the run's name for the first.
    pub prev: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrafficKind {
    Connect,
    Http,
    Model,
}

/// Outcome of a connection or request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressVerdict {
    Allowed,
    Denied,
    /// It was allowed, and the server or the connection to it failed.
    Failed,
}
