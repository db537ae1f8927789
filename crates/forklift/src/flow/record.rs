//! Forklift's part of a run's record.

use std::path::PathBuf;

use engine::box_command::BoxCommandSummary;
use engine::evidence::Pins;
use engine::run::{ProductRecord, RunRecord};
use merge::account::{MergeAccount, SideStatus, judge_account};
use merge::contract::Contract;
use merge::path::TreePath;
use merge::resolver::decide::TrustThreshold;
use merge::test_names::TestAccount;
use model::id::{BranchName, RunId};
use sandbox::backend::BackendKind;
use serde::{Deserialize, Serialize};

use super::resolver::ResolverSummary;
use crate::commands::run_args::AgentWhen;
use crate::rules::fork_file::ForkRules;
use crate::rules::judge::Verdict;
use crate::rules::strategy::Strategy;
use crate::rules::target::Target;

pub(crate) type ForkRunRecord = RunRecord<ForkRecord>;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ForkRecord {
    pub(crate) fork: Fork,
    pub(crate) pins: Pins,
    pub(crate) settings: Settings,
    /// The run whose workspace this one continues with.
    #[serde(default)]
    pub(crate) resumed_from: Option<RunId>,
    /// The earlier run whose commit this one publishes.
    #[serde(default)]
    pub(crate) publishes: Option<RunId>,
    #[serde(default)]
    pub(crate) check: Option<BoxCommandSummary>,
    /// The check on a merge that needed no agent. It failed, so the agent was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) check_on_merge: Option<BoxCommandSummary>,
    /// The check with the agent's own versions of the files that define it, if it changed any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) check_changed: Option<ChangedCheck>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) regenerate: Vec<BoxCommandSummary>,
    /// The host could merge by itself, so no agent was started.
    #[serde(default)]
    pub(crate) merged_alone: bool,
    /// Conflicts that the resolver resolved without a model, and those it left.
    #[serde(default, alias = "ladder")]
    pub(crate) resolver: Option<ResolverSummary>,
    /// Paths that git could not merge, with the kind of conflict.
    #[serde(default)]
    pub(crate) conflicts: Vec<String>,
    /// Beginning of the agent's note.
    pub(crate) stuck: Option<String>,
    #[serde(default)]
    pub(crate) contract: Option<Contract>,
    /// Account of the changes of both sides.
    #[serde(default)]
    pub(crate) account: Option<MergeAccount>,
    /// Account of the tests of both sides; `None` for unrelated histories.
    #[serde(default)]
    pub(crate) tests: Option<TestAccount>,
}

/// A check whose definition the agent changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChangedCheck {
    /// Files that define the check and are not as the fork and upstream have them.
    pub(crate) files: Vec<TreePath>,
    /// Such files that a person allowed, so that the agent's version of them counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) allowed: Vec<TreePath>,
    /// Exit with the agent's files. The exit with those of the fork and upstream decides, except for allowed files.
    pub(crate) with_agent_files: BoxCommandSummary,
}

impl ProductRecord for ForkRecord {
    type Verdict = Verdict;

    const AGENT_RESULT_V1: &'static str = "agent";
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fork {
    pub(crate) path: PathBuf,
    pub(crate) origin: String,
    /// Address that branches are pushed to; a record of an earlier version has only origin's.
    #[serde(default)]
    pub(crate) push_url: Option<String>,
    pub(crate) upstream: String,
    pub(crate) branch: BranchName,
    /// Address for pull requests: the one that is pushed to, or the one that the user gave.
    pub(crate) forge: String,
}

impl Fork {
    pub(crate) fn push_url(&self) -> &str {
        self.push_url.as_deref().unwrap_or(&self.origin)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) provider: String,
    pub(crate) backend: BackendKind,
    pub(crate) backend_reason: String,
    pub(crate) image: Option<String>,
    pub(crate) timeout_secs: u64,
    pub(crate) agent_when: AgentWhen,
    pub(crate) accept_loss: bool,
    #[serde(default)]
    pub(crate) accept_dropped: bool,
    #[serde(default)]
    pub(crate) target: Target,
    #[serde(default)]
    pub(crate) target_name: String,
    #[serde(default)]
    pub(crate) strategy: Strategy,
    /// The rules of the fork, as they stood on its main branch before the agent started.
    #[serde(default)]
    pub(crate) rules: ForkRules,
    #[serde(default)]
    pub(crate) trust: Option<f64>,
    /// Name of the model at its server, where forklift chose it.
    #[serde(default)]
    pub(crate) model: Option<String>,
    #[serde(default)]
    pub(crate) notify_cmd: Option<String>,
    /// Paths that the user allows beside those of the fork's rules.
    #[serde(default)]
    pub(crate) allow_paths: Vec<String>,
    #[serde(default)]
    pub(crate) allow_unrelated: bool,
}

impl ForkRecord {
    /// Number of changes of both sides that rules of the fork or earlier merges leave out.
    pub(crate) fn left_out_by_rule(&self) -> usize {
        let sides = self.account.iter().flat_map(|account| [&account.upstream, &account.fork]);
        let changes = sides.flat_map(|side| &side.changes);
        changes.filter(|change| change.status == SideStatus::DroppedByRule).count()
    }

    /// Reasons why upstream counts as dropped, unless the user accepts it.
    pub(crate) fn upstream_dropped(&self) -> Vec<String> {
        match &self.account {
            Some(account) if !self.settings.accept_dropped => {
                judge_account(account).upstream_dropped
            }
            Some(_) | None => Vec::new(),
        }
    }
}

impl Settings {
    /// Patterns of files that may be published although they act by themselves.
    pub(crate) fn allowed_paths(&self) -> Vec<String> {
        [self.rules.allow_paths.as_slice(), &self.allow_paths].concat()
    }

    /// Trust threshold of the user, else of the fork, else the default.
    pub(crate) fn trust(&self) -> TrustThreshold {
        let given = self.trust.or(self.rules.trust);
        let given = given.and_then(|share| TrustThreshold::new(share).ok());
        given.unwrap_or(TrustThreshold::DEFAULT)
    }
}
