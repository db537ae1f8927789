//! Bot-bottle's part of a run's record: the raw material of its provenance.

use engine::run::{ProductRecord, RunRecord};
use forge::Attachment;
use jiff::Timestamp;
use model::id::{BranchName, RunId, Sha, Slug};
use orchestrator_db::WakeCause;
use run_store::run_dir::RunDir;
use sandbox::backend::BackendKind;
use serde::{Deserialize, Serialize};
use sidecar::{DoneEvent, DoneStatus};

use super::bottle::{BaseSource, Record, SignedTwin};
use crate::exit::{Failure, OrGeneral};
use crate::rules::agent_manifest::AgentManifest;
use crate::rules::bottle_manifest::BottleManifest;
use crate::rules::check_text::CheckRecord;
use crate::rules::closed_run::is_question;
use crate::rules::forge_env::ForgeEnv;
use crate::rules::judge::Verdict;
use crate::rules::leak::ScanReport;

pub(crate) type BottleRunRecord = RunRecord<BottleRunPart>;

pub(crate) fn load_run(dir: &RunDir) -> Result<BottleRunRecord, Failure> {
    let remedy = "restore the file from a copy";
    BottleRunRecord::load(dir).or_general().map_err(|failure| failure.with_remedy(remedy))
}

/// Bot-bottle's own part of a run's record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BottleRunPart {
    pub(crate) slug: Slug,
    pub(crate) agent: String,
    pub(crate) manifest: AgentManifest,
    pub(crate) bottles: Vec<String>,
    pub(crate) bottle: BottleManifest,
    pub(crate) backend: BackendKind,
    pub(crate) backend_reason: String,
    /// The run before this one in the same bottle.
    pub(crate) parent: Option<RunId>,
    pub(crate) claim: Option<u64>,
    /// All runs of the bottle before this one, oldest first.
    #[serde(default)]
    pub(crate) lineage: Vec<RunId>,
    /// True if the agent's own conversation continues.
    pub(crate) resumes_session: bool,
    pub(crate) prompt_sha256: String,
    pub(crate) forge: Option<ForgeEnv>,
    /// Files that its agent may read through the sidecar.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) issue_title: Option<String>,
    /// The forge's delivery that triggered this run, where it is known.
    pub(crate) delivery: Option<String>,
    pub(crate) pins: BottlePins,
    /// Parts of the agent's box, observed just before it is started.
    pub(crate) seal: Option<Seal>,
    pub(crate) sidecar: Option<SidecarEnd>,
    pub(crate) done: Option<DoneEvent>,
    /// Set if the agent did not report; the record may be incomplete.
    pub(crate) watchdog: Option<WatchdogReason>,
    pub(crate) scans: Vec<ScanReport>,
    /// The check of the result, if one ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) check: Option<CheckRecord>,
    /// Number of runs in a row, before this one, whose check failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) check_round: u32,
    /// True if the agent wrote a plan and did no work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) planning: bool,
    /// Report of the forge that caused this run, if no person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) wake: Option<WakeCause>,
    /// Set if the host merged the base without an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) merged_alone: Option<HostMerge>,
    /// True if the orchestrator lost the lease on the issue while the agent ran, and stopped it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) lost_lease: bool,
}

/// Merge of the base branch that the host made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostMerge {
    /// Conflicts that were resolved without a model.
    pub(crate) resolved: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl BottleRunPart {
    /// The agent's question, if a person was called for it and for this reason.
    pub(crate) fn question_for(&self, reason: &str) -> Option<String> {
        let asks = |done: &&DoneEvent| done.status == DoneStatus::Blocked && is_question(reason);
        self.done.as_ref().filter(asks).map(|done| done.summary.clone())
    }
}

impl ProductRecord for BottleRunPart {
    type Verdict = Verdict;

    const AGENT_RESULT_V1: &'static str = "said";
}

/// The commits that the run is judged by, pinned before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BottlePins {
    pub(crate) branch: BranchName,
    pub(crate) base_branch: BranchName,
    #[serde(default)]
    pub(crate) base_source: BaseSource,
    /// Commit that the result must contain: of the published branch, or else the bottle's first one.
    pub(crate) start: Sha,
    pub(crate) base: Sha,
    /// True if the workspace lacks the commit; the same for the branch.
    pub(crate) base_is_new: bool,
    pub(crate) branch_is_new: bool,
    /// The signed twin that takes the place of the workspace's tip before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) twin: Option<SignedTwin>,
}

impl BottlePins {
    pub(crate) fn of_new_bottle(record: &Record) -> Self {
        Self {
            branch: record.branch.clone(),
            base_branch: record.base_branch.clone(),
            base_source: record.base_source,
            start: record.base.clone(),
            base: record.base.clone(),
            base_is_new: false,
            branch_is_new: false,
            twin: None,
        }
    }
}

/// Parts of a box, as digests; unknown ones are `None`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seal {
    pub(crate) orchestrator: String,
    /// Specification of the box: mounts, environment, limits, command.
    pub(crate) profile_sha256: String,
    /// The system call filter, as the backend gets it.
    pub(crate) seccomp_sha256: Option<String>,
    /// `None` for a box without egress.
    pub(crate) egress_policy_sha256: Option<String>,
    pub(crate) guest_sha256: String,
    pub(crate) image: Option<ImageSeal>,
    pub(crate) program: Option<ProgramSeal>,
}

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum SidecarEnd {
    /// In good order, after the agent.
    Stopped,
    /// Before the agent, which has no forge from then on.
    Died { seen_at: Timestamp },
}

/// Reason why a run counts as done without a report of its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WatchdogReason {
    EndedWithoutSignal,
    /// There was no sign of life for too long.
    TimedOut,
    /// The sidecar died, so the agent could not report.
    SidecarDied,
}
