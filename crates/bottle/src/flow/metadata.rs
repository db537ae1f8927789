//! What is written down about a run: the raw material of its provenance. The file is replaced as the run goes on and
//! closed at its end.

use engine::agent_result::AgentResult;
use engine::evidence::Evidence;
use engine::record::ExitRecord;
use engine::workspace::WorkspaceNotes;
use jiff::Timestamp;
use model::id::{BranchName, RunId, Sha, Slug};
use model::verdict::Ended;
use sandbox::backend::BackendKind;
use serde::{Deserialize, Serialize};
use sidecar::DoneEvent;

use crate::rules::agent_manifest::AgentManifest;
use crate::rules::bottle_manifest::BottleManifest;
use crate::rules::forge_env::ForgeEnv;
use crate::rules::judge::Verdict;
use crate::rules::leak::ScanReport;

/// The version of the file's shape.
pub(crate) const VERSION: u32 = 1;

/// Everything about a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) version: u32,
    pub(crate) run: RunId,
    pub(crate) slug: Slug,
    /// How far it has come; whoever takes over goes on from here.
    pub(crate) phase: Phase,
    pub(crate) started_at: Timestamp,
    pub(crate) finished_at: Option<Timestamp>,
    pub(crate) agent: String,
    pub(crate) manifest: AgentManifest,
    pub(crate) bottles: Vec<String>,
    pub(crate) bottle: BottleManifest,
    pub(crate) backend: BackendKind,
    pub(crate) backend_reason: String,
    /// The run that this one goes on from.
    pub(crate) parent: Option<RunId>,
    /// Which claim of the orchestrator's it was made for.
    #[serde(default)]
    pub(crate) claim: Option<u64>,
    /// All runs of the bottle before this one, oldest first.
    #[serde(default)]
    pub(crate) lineage: Vec<RunId>,
    /// Whether the agent's own conversation goes on.
    pub(crate) resumes_session: bool,
    /// Texts are kept as digests.
    pub(crate) prompt_sha256: String,
    pub(crate) forge: Option<ForgeEnv>,
    pub(crate) issue_title: Option<String>,
    /// The forge's delivery that set this run off, where whoever started it said so.
    #[serde(default)]
    pub(crate) delivery: Option<String>,
    pub(crate) pins: BottlePins,
    pub(crate) workspace: Option<WorkspaceNotes>,
    pub(crate) setup: Option<ChoreSummary>,
    /// What the agent's box is made of, looked up just before it is started.
    #[serde(default)]
    pub(crate) seal: Option<Seal>,
    pub(crate) sidecar: Option<SidecarEnd>,
    /// The agent's word that it is done.
    pub(crate) done: Option<DoneEvent>,
    /// The agent did not report for itself; the record may be incomplete.
    pub(crate) watchdog: Option<WatchdogReason>,
    #[serde(rename = "box")]
    pub(crate) agent_box: Option<ExitRecord>,
    pub(crate) said: Option<AgentResult>,
    pub(crate) evidence: Option<Evidence>,
    pub(crate) import_refused: Option<String>,
    pub(crate) scans: Vec<ScanReport>,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) publication: Option<Publication>,
    pub(crate) exit_status: Option<u8>,
    /// The last entry of the operation log, so that its end cannot be cut off unseen.
    pub(crate) operations_head: Option<String>,
}

/// The commits that the run is judged by, pinned before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BottlePins {
    pub(crate) branch: BranchName,
    pub(crate) base_branch: BranchName,
    /// What the result must contain: the published branch, or else where the bottle began.
    pub(crate) start: Sha,
    /// The base branch as it is now.
    pub(crate) base: Sha,
    /// Whether the workspace lacks any of them.
    pub(crate) base_is_new: bool,
    pub(crate) branch_is_new: bool,
}

/// What a box is made of, as digests. What is not known is nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seal {
    /// The version of bot-bottle that sealed it.
    pub(crate) orchestrator: String,
    /// The whole order of the box: mounts, environment, limits, command.
    pub(crate) profile_sha256: String,
    /// The system call filter, as the backend gets it.
    pub(crate) seccomp_sha256: Option<String>,
    /// What may be reached; nothing where nothing may.
    pub(crate) egress_policy_sha256: Option<String>,
    /// Our own program in the box.
    pub(crate) guest_sha256: String,
    /// The image by name, and the engine's id of it.
    pub(crate) image: Option<ImageSeal>,
    /// The agent's own program.
    pub(crate) program: Option<ProgramSeal>,
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ImageSeal {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
}

/// The program of an agent, from npm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProgramSeal {
    pub(crate) package: String,
    pub(crate) version: String,
    /// npm's own list of everything that was installed, with the digest of each package.
    pub(crate) lock_sha256: Option<String>,
}

/// The steps that a run has behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Phase {
    Pinned,
    Prepared,
    SetUp,
    Launched,
    Ended,
    Imported,
    Judged,
    Published,
    Closed,
}

/// How the sidecar ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum SidecarEnd {
    /// In good order, after the agent.
    Stopped,
    /// Before the agent: from then on the agent had no forge.
    Died { seen_at: Timestamp },
}

/// Why a run counts as done without a report of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WatchdogReason {
    /// The agent ended and had not said that it is done.
    EndedWithoutSignal,
    /// Nothing was heard for too long.
    TimedOut,
    /// The sidecar died, so it could not say so.
    SidecarDied,
}

/// How a command in a box went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChoreSummary {
    pub(crate) ended: Ended,
    pub(crate) wall_ms: u64,
    /// The end of what it wrote.
    pub(crate) tail: String,
}

/// What was made known to others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Publication {
    pub(crate) branch: BranchName,
    pub(crate) commit: Sha,
    pub(crate) pushed: bool,
    pub(crate) pull: Option<PullReference>,
    pub(crate) problem: Option<String>,
}

/// A pull request on a forge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PullReference {
    pub(crate) number: u64,
    pub(crate) url: String,
    /// The title that this run would give it; people may have chosen another.
    #[serde(default)]
    pub(crate) title: String,
}
