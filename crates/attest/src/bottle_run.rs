//! The project's own predicate, with the facts that SLSA has no field for: the agent's exit, its egress and forge
//! calls, its isolation, and the completeness of the record. `schemas/bottle-run.v1.schema.json` is its public schema.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::statement::Predicate;

/// A run of a bottle. Unknown values are `null`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BottleRun {
    pub run: String,
    pub bottle: String,
    pub exit: Exit,
    pub verdict: Option<String>,
    /// True if the agent did not signal its end itself.
    pub watchdog_fired: bool,
    pub watchdog_reason: Option<String>,
    /// The agent's own completion signal.
    pub signal_done: Option<SignalDone>,
    /// Hosts reached and denied.
    pub egress_summary: Option<Value>,
    pub model_usage: Option<Value>,
    pub gitleaks: Scan,
    pub scans: Vec<Scan>,
    /// Calls to the forge, in order.
    pub forge_ops: Vec<ForgeOp>,
    pub isolation: Isolation,
    pub commit_identity: Option<CommitIdentity>,
    /// The runs of the bottle before this one, oldest first.
    pub lineage: Vec<String>,
    /// True if the agent's own session was resumed.
    pub resumes_session: bool,
    pub events: EventLog,
    pub host_chain: HostPlace,
    /// True if everything that happened is in the record.
    pub complete: bool,
    pub reasons: Vec<String>,
}

impl Predicate for BottleRun {
    const TYPE: &'static str = "https://bottleworks.dev/bottle-run/v1";
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exit {
    pub class: ExitClass,
    /// Its own status, if it had one.
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExitClass {
    Done,
    /// It reported that it is stuck.
    Stuck,
    Timeout,
    /// It showed no activity for too long.
    Watchdog,
    Infra,
    /// It exceeded its limit on memory or disk.
    Oom,
    /// It was killed on request.
    Killed,
    None,
}

/// The agent's own completion signal. Texts are digests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignalDone {
    pub status: String,
    pub summary_sha256: String,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scan {
    pub engine: String,
    pub version: Option<String>,
    /// SHA-256 of its rules, where they are a file.
    pub rules_sha256: Option<String>,
    /// SHA-256 of its program, which contains the rules otherwise.
    pub program_sha256: Option<String>,
    pub status: ScanStatus,
    /// Number of findings; unknown for a scan that did not complete.
    pub count: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScanStatus {
    /// It scanned everything and found nothing.
    Clean,
    Findings,
    /// It could not scan everything.
    Error,
    NotRun,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForgeOp {
    /// Its line in the operation log.
    pub seq: u64,
    pub op: String,
    pub target: String,
    pub allowed: bool,
    /// Result, or reason of the refusal.
    pub reason: String,
    pub ts: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Isolation {
    pub backend: String,
    /// Results of the checks inside the box before the agent started.
    pub preflight: Option<Value>,
    /// Effective limits inside the box.
    pub rlimits: Option<Value>,
    /// The version of Landlock, where it was in use.
    pub landlock_abi: Option<u32>,
    /// Enforcement of the memory limit: `cgroup` or `watchdog`.
    pub memory: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitIdentity {
    /// The only identity that a box commits with.
    pub expected: String,
    /// True if all new commits have it.
    pub held: bool,
    pub foreign: Vec<String>,
}

/// Head of a hash-chained log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventLog {
    /// The file, below the run directory.
    pub file: String,
    /// SHA-256 of its last line.
    pub head: String,
    pub count: u64,
}

/// Position in a host's chain of runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPlace {
    pub host: String,
    /// The number of the run on it.
    pub seq: u64,
    /// SHA-256 of the line before it in the host's chain.
    pub prev: String,
}
