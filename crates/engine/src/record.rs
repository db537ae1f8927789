//! What is written down about a box: who watched over it and how it ended.

use egress::EgressReport;
use guest::config::GuestReport;
use host::process::ProcessHandle;
use jiff::Timestamp;
use model::verdict::Ended;
use sandbox::backend::BackendKind;
use serde::{Deserialize, Serialize};

/// Who watches over a box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimRecord {
    pub process: ProcessHandle,
    /// When it took over.
    pub started_at: Timestamp,
}

/// How a box ended. Written once; complete when it is there at all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// The verdict of the clock, the watchdogs and the backend.
    pub ended: Ended,
    pub backend: BackendKind,
    /// When the shim began to build the box.
    pub started_at: Timestamp,
    /// When nothing of it was left.
    pub finished_at: Timestamp,
    /// Milliseconds of boot time from the order to the guest's report: what the box itself cost.
    pub ready_ms: Option<u64>,
    /// Milliseconds of boot time in all.
    pub wall_ms: u64,
    /// What the guest reported before the agent started.
    pub report: Option<GuestReport>,
    /// Bytes of standard output and error that were produced.
    pub output_bytes: u64,
    /// Bytes that did not fit the log.
    pub dropped_bytes: u64,
    /// The most memory that the watchdog saw, where it had to look.
    pub peak_memory_bytes: Option<u64>,
    /// It was ended because nothing was heard of it for too long, not because its time was up.
    #[serde(default)]
    pub fell_silent: bool,
    /// What it reached, what it was refused, and what it used of the model.
    #[serde(default)]
    pub egress: Option<EgressReport>,
}

impl ExitRecord {
    /// The record of a box that never came to be, or whose shim left none.
    pub(crate) fn infra(backend: BackendKind, started_at: Timestamp, reason: String) -> Self {
        Self {
            ended: Ended::Infra { reason },
            backend,
            started_at,
            finished_at: host::clock::now(),
            ready_ms: None,
            wall_ms: 0,
            report: None,
            output_bytes: 0,
            dropped_bytes: 0,
            peak_memory_bytes: None,
            fell_silent: false,
            egress: None,
        }
    }
}
