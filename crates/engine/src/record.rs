//! Records of a box: its shim and its exit.

use egress::EgressReport;
use guest::config::GuestReport;
use host::process::ProcessHandle;
use jiff::Timestamp;
use model::verdict::Ended;
use sandbox::backend::BackendKind;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimRecord {
    pub process: ProcessHandle,
    pub started_at: Timestamp,
}

/// Exit of a box. Written once; complete when it is there at all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExitRecord {
    pub ended: Ended,
    pub backend: BackendKind,
    /// Before the box is built.
    pub started_at: Timestamp,
    /// After the last process is gone.
    pub finished_at: Timestamp,
    /// Milliseconds of boot time from the start to the guest's report: the cost of the box itself.
    pub ready_ms: Option<u64>,
    /// Milliseconds of boot time in all.
    pub wall_ms: u64,
    pub report: Option<GuestReport>,
    /// Bytes of standard output and error that were produced.
    pub output_bytes: u64,
    /// Bytes that did not fit the log.
    pub dropped_bytes: u64,
    /// Where the watchdog measures memory.
    pub peak_memory_bytes: Option<u64>,
    /// True if it was ended for its silence and not by its deadline.
    #[serde(default)]
    pub fell_silent: bool,
    #[serde(default)]
    pub egress: Option<EgressReport>,
}

impl ExitRecord {
    /// Exit of a box that was never built, or whose shim left no record.
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
