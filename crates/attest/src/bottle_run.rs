//! The project's own predicate: what SLSA has no place for. How the agent ended, what it reached and wrote, how it was
//! held, and whether the record is complete. `schemas/bottle-run.v1.schema.json` is its shape for others.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::statement::Predicate;

/// A run of a bottle. What is not known is `null`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BottleRun {
    /// The run.
    pub run: String,
    /// The bottle.
    pub bottle: String,
    /// How the agent ended.
    pub exit: Exit,
    /// What the host made of it.
    pub verdict: Option<String>,
    /// The agent did not report for itself.
    pub watchdog_fired: bool,
    /// Why that counts so.
    pub watchdog_reason: Option<String>,
    /// The agent's own word that it is done.
    pub signal_done: Option<SignalDone>,
    /// What it reached and was refused.
    pub egress_summary: Option<Value>,
    /// What it used of its model.
    pub model_usage: Option<Value>,
    /// What gitleaks said about the result.
    pub gitleaks: Scan,
    /// What every scanner said.
    pub scans: Vec<Scan>,
    /// What it asked of the forge, call by call.
    pub forge_ops: Vec<ForgeOp>,
    /// How it was held.
    pub isolation: Isolation,
    /// Whose commits they are.
    pub commit_identity: Option<CommitIdentity>,
    /// The runs of the bottle before this one, oldest first.
    pub lineage: Vec<String>,
    /// True if the agent's own conversation went on.
    pub resumes_session: bool,
    /// The end of the operation log.
    pub events: EventLog,
    /// The place among the runs of the host.
    pub host_chain: HostPlace,
    /// True if everything that happened is in the record.
    pub complete: bool,
    /// Why not.
    pub reasons: Vec<String>,
}

impl Predicate for BottleRun {
    const TYPE: &'static str = "https://bottleworks.dev/bottle-run/v1";
}

/// How the agent ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exit {
    /// In one word.
    pub class: ExitClass,
    /// Its own status, if it had one.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// The ways to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExitClass {
    /// It left by itself.
    Done,
    /// It said that it cannot go on.
    Stuck,
    /// Its time was up.
    Timeout,
    /// Nothing was heard of it for too long.
    Watchdog,
    /// The machine let it down.
    Infra,
    /// It used more memory or space than it may.
    Oom,
    /// Somebody ended it.
    Killed,
    /// It was never started.
    None,
}

/// The agent's own word that it is done. Texts are digests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignalDone {
    /// How it says it went.
    pub status: String,
    /// SHA-256 of its summary.
    pub summary_sha256: String,
    /// When.
    pub at: Timestamp,
}

/// What a scanner said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scan {
    /// The scanner.
    pub engine: String,
    /// Its version.
    pub version: Option<String>,
    /// SHA-256 of its rules, where they are a file.
    pub rules_sha256: Option<String>,
    /// SHA-256 of its program, which holds the rules otherwise.
    pub program_sha256: Option<String>,
    /// `clean`, `findings`, `error` or `not_run`.
    pub status: ScanStatus,
    /// How many findings; unknown for a scan that did not come to its end.
    pub count: Option<u64>,
}

/// How far a scan came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScanStatus {
    /// It looked at everything and found nothing.
    Clean,
    /// It found something.
    Findings,
    /// It could not look at everything.
    Error,
    /// It did not look at all.
    NotRun,
}

/// One call to the forge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForgeOp {
    /// Its line in the operation log.
    pub seq: u64,
    /// What was asked.
    pub op: String,
    /// Of what.
    pub target: String,
    /// True if it was allowed.
    pub allowed: bool,
    /// How it went, or why it was refused.
    pub reason: String,
    /// When.
    pub ts: Timestamp,
}

/// How the agent was held.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Isolation {
    /// The backend.
    pub backend: String,
    /// What was tried inside that must not work, before the agent started.
    pub preflight: Option<Value>,
    /// The limits that held inside.
    pub rlimits: Option<Value>,
    /// The version of Landlock, where it was in use.
    pub landlock_abi: Option<u32>,
    /// What held its memory: `cgroup` or `watchdog`.
    pub memory: String,
}

/// Whose commits they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitIdentity {
    /// The only identity that a box commits with.
    pub expected: String,
    /// True if all new commits are by it.
    pub held: bool,
    /// Who else was found.
    pub foreign: Vec<String>,
}

/// The end of a hash-chained log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventLog {
    /// The file, below the run directory.
    pub file: String,
    /// SHA-256 of its last line.
    pub head: String,
    /// How many lines.
    pub count: u64,
}

/// A place among the runs of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPlace {
    /// The host.
    pub host: String,
    /// The number of the run on it.
    pub seq: u64,
    /// SHA-256 of the line before it in the host's chain.
    pub prev: String,
}
