//! What is written down about a run. The file is replaced as the run goes on and closed at its end.

use std::path::PathBuf;

use engine::agent_result::AgentResult;
use engine::evidence::{Evidence, Pins};
use engine::record::ExitRecord;
use engine::workspace::WorkspaceNotes;
use jiff::Timestamp;
use merge::contract::Contract;
use merge::resolver::decide::TrustThreshold;
use model::id::{BranchName, RunId, Sha};
use model::verdict::Ended;
use sandbox::backend::BackendKind;
use serde::{Deserialize, Serialize};

use super::resolver::ResolverSummary;
use crate::cli::AgentWhen;
use crate::rules::fork_file::ForkRules;
use crate::rules::judge::Verdict;
use crate::rules::strategy::Strategy;
use crate::rules::target::Target;

/// The version of the file's shape.
pub(crate) const VERSION: u32 = 1;

/// Everything about a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) version: u32,
    pub(crate) run: RunId,
    /// How far it has come; a killed forklift goes on from here.
    pub(crate) phase: Phase,
    pub(crate) started_at: Timestamp,
    pub(crate) finished_at: Option<Timestamp>,
    pub(crate) fork: Fork,
    pub(crate) pins: Pins,
    pub(crate) settings: Settings,
    /// The run that this one goes on from.
    #[serde(default)]
    pub(crate) resumed_from: Option<RunId>,
    pub(crate) workspace: Option<WorkspaceNotes>,
    /// How the fork's own set-up went, before the agent.
    #[serde(default)]
    pub(crate) setup: Option<ChoreSummary>,
    /// How the fork's own check went, on the result.
    #[serde(default)]
    pub(crate) check: Option<ChoreSummary>,
    /// How the commands went that make files anew.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) regenerate: Vec<ChoreSummary>,
    /// Git could merge by itself, so no agent was started.
    #[serde(default)]
    pub(crate) merged_alone: bool,
    /// Conflicts that the resolver resolved without a model, and those it left.
    #[serde(default, alias = "ladder")]
    pub(crate) resolver: Option<ResolverSummary>,
    /// What git could not merge by itself, with the reason.
    #[serde(default)]
    pub(crate) conflicts: Vec<String>,
    #[serde(rename = "box")]
    pub(crate) agent_box: Option<ExitRecord>,
    /// What the agent said about its work.
    #[serde(default)]
    pub(crate) agent: Option<AgentResult>,
    /// The start of the agent's note, if it left one.
    pub(crate) stuck: Option<String>,
    pub(crate) evidence: Option<Evidence>,
    /// What became of everything that was the fork's.
    #[serde(default)]
    pub(crate) contract: Option<Contract>,
    /// Why nothing could be imported, if so.
    pub(crate) import_refused: Option<String>,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) publication: Option<Publication>,
    pub(crate) exit_status: Option<u8>,
    /// The last entry of the operation log, so that its end cannot be cut off unseen.
    pub(crate) operations_head: Option<String>,
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
    Checked,
    Published,
    Closed,
}

/// Where the fork is and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fork {
    pub(crate) path: PathBuf,
    pub(crate) origin: String,
    pub(crate) upstream: String,
    pub(crate) branch: BranchName,
    /// Where its pull requests are: origin's address, or the one that the person gave.
    pub(crate) forge: String,
}

/// How the run was to be made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) provider: String,
    pub(crate) backend: BackendKind,
    pub(crate) backend_reason: String,
    pub(crate) image: Option<String>,
    pub(crate) timeout_secs: u64,
    pub(crate) agent_when: AgentWhen,
    pub(crate) accept_loss: bool,
    /// What was wanted of upstream, and what that came to.
    #[serde(default)]
    pub(crate) target: Target,
    #[serde(default)]
    pub(crate) target_name: String,
    #[serde(default)]
    pub(crate) strategy: Strategy,
    /// The rules of the fork, as they stood on its main branch before the agent started.
    #[serde(default)]
    pub(crate) rules: ForkRules,
    /// How sure an answer to a conflict must be, if the person said it.
    #[serde(default)]
    pub(crate) trust: Option<f64>,
    /// The person's command for whoever wants to know of verdicts.
    #[serde(default)]
    pub(crate) notify_cmd: Option<String>,
}

impl Settings {
    /// How sure an answer to a conflict must be: what the person says, else what the fork rules, else the usual.
    pub(crate) fn trust(&self) -> TrustThreshold {
        let said =
            self.trust.or(self.rules.trust).and_then(|share| TrustThreshold::new(share).ok());
        said.unwrap_or(TrustThreshold::DEFAULT)
    }
}

/// How a command of the fork's own went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChoreSummary {
    pub(crate) command: String,
    pub(crate) ended: Ended,
    pub(crate) wall_ms: u64,
    /// The end of what it wrote.
    pub(crate) tail: String,
}

impl ChoreSummary {
    pub(crate) fn passed(&self) -> bool {
        self.ended == Ended::Exited { code: 0 }
    }

    /// How it ended, in a few words.
    pub(crate) fn how(&self) -> String {
        match &self.ended {
            Ended::Exited { code } => format!("status {code}"),
            Ended::Signalled { signal } => format!("ended by signal {signal}"),
            Ended::OutOfTime => "out of time".to_owned(),
            Ended::OutOfMemory => "out of memory".to_owned(),
            Ended::OutOfSpace => "out of disk space".to_owned(),
            Ended::Stopped | Ended::Frozen => "stopped".to_owned(),
            Ended::Infra { reason } => reason.clone(),
        }
    }
}

/// What was made known to others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Publication {
    pub(crate) branch: BranchName,
    pub(crate) commit: Sha,
    /// Whether the branch is on origin.
    #[serde(default)]
    pub(crate) pushed: bool,
    /// Why it was not published in full, if it was not.
    pub(crate) problem: Option<String>,
    /// The pull request, if one was opened.
    #[serde(default)]
    pub(crate) pull: Option<PullReference>,
    /// Its text, where there is no forge to open it on.
    #[serde(default)]
    pub(crate) pull_text: Option<PathBuf>,
    /// What would have made more of it.
    #[serde(default)]
    pub(crate) note: Option<String>,
}

/// A pull request on a forge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PullReference {
    pub(crate) number: u64,
    pub(crate) url: String,
}
