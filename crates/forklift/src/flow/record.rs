//! Forklift's part of a run's record.

use std::path::PathBuf;

use engine::agent_plan::ResolvedAgent;
use engine::attribution::Attribution;
use engine::box_command::BoxCommandSummary;
use engine::evidence::Pins;
use engine::publish::PullReference;
use engine::run::{ProductRecord, RunRecord};
use host::git::PushUrls;
use merge::account::{MergeAccount, SideStatus, judge_account};
use merge::contract::Contract;
use merge::path::TreePath;
use merge::resolver::decide::TrustThreshold;
use merge::test_names::TestAccount;
use model::id::{BranchName, RemoteName, RunId, Sha};
use sandbox::backend::BackendKind;
use serde::{Deserialize, Serialize};

use super::resolver::ResolverSummary;
use crate::commands::run_args::AgentWhen;
use crate::rules::fork_file::ForkRules;
use crate::rules::judge::Verdict;
use crate::rules::publish_mode::PublishMode;
use crate::rules::ran_tests::RanTests;
use crate::rules::security::advisory::AdvisoryId;
use crate::rules::security::fix::FixRecord;
use crate::rules::strategy::Strategy;
use crate::rules::target::Target;
use crate::rules::train::TrainStep;
use crate::rules::upstream_action::UpstreamActions;

pub(crate) type ForkRunRecord = RunRecord<ForkRecord>;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ForkRecord {
    pub(crate) fork: Fork,
    pub(crate) pins: Pins,
    pub(crate) settings: Settings,
    /// The user under whose name commits are published; a record of an earlier version has none.
    #[serde(default)]
    pub(crate) attribution: Option<Attribution>,
    /// The run whose workspace this one continues with.
    #[serde(default)]
    pub(crate) resumed_from: Option<RunId>,
    /// Work of the agents in the runs that this one continues; a record of an earlier version has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) continued_work: Option<ContinuedWork>,
    /// The earlier run whose commit this one publishes.
    #[serde(default)]
    pub(crate) publishes: Option<RunId>,
    /// The step of a train that this run makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) train: Option<TrainStep>,
    /// The fix that this run lands alone; the pins are made for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<FixRecord>,
    /// The publication that this run takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) withdraws: Option<Withdrawal>,
    #[serde(default)]
    pub(crate) check: Option<BoxCommandSummary>,
    /// The check on a merge that needed no agent. It failed, so the agent was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) check_on_merge: Option<BoxCommandSummary>,
    /// The check with the agent's own versions of the files that define it, if it changed any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) check_changed: Option<ChangedCheck>,
    /// The tests that the check ran, compared with those of both sides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ran_tests: Option<RanTests>,
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
    /// Account of the tests of both sides; a record of an earlier version may have none.
    #[serde(default)]
    pub(crate) tests: Option<TestAccount>,
    /// Sentences about new commit messages that act on others or speak for others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) message_points: Vec<String>,
    /// Messages of upstream's that may act on issues of the fork; a record of an earlier version has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) upstream_actions: Option<UpstreamActions>,
}

/// A check whose definition the agent changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChangedCheck {
    /// Files that define the check and are not as the fork and upstream have them.
    pub(crate) files: Vec<TreePath>,
    /// Such files that a person allowed, so that the agent's version of them counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) allowed: Vec<TreePath>,
    /// Files that the agent changed outside of conflicts and that files of the check name: the check ran with the agent's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) named: Vec<TreePath>,
    /// Exit with the agent's files. It has to pass with them and, except for allowed files, with those of the fork and upstream.
    pub(crate) with_agent_files: BoxCommandSummary,
}

/// Sum of what agents used in runs that continue one another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ContinuedWork {
    pub(crate) runs: usize,
    pub(crate) wall_ms: u64,
    pub(crate) tokens_read: u64,
    pub(crate) tokens_written: u64,
    pub(crate) usd: f64,
    /// Runs whose tokens are known, and runs whose cost is.
    pub(crate) counted_runs: usize,
    pub(crate) priced_runs: usize,
}

impl ContinuedWork {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            runs: self.runs + other.runs,
            wall_ms: self.wall_ms.saturating_add(other.wall_ms),
            tokens_read: self.tokens_read.saturating_add(other.tokens_read),
            tokens_written: self.tokens_written.saturating_add(other.tokens_written),
            usd: self.usd + other.usd,
            counted_runs: self.counted_runs + other.counted_runs,
            priced_runs: self.priced_runs + other.priced_runs,
        }
    }
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
    /// Further addresses that get every branch, as with `git push`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) more_push_urls: Vec<String>,
    pub(crate) upstream: String,
    /// The fork's branch.
    pub(crate) branch: BranchName,
    /// Upstream's branch; a record of an earlier version has one name for both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) upstream_branch: Option<BranchName>,
    #[serde(default)]
    pub(crate) remotes: ForkRemotes,
    /// Address for pull requests: the one that is pushed to, or the one that the user gave.
    pub(crate) forge: String,
}

/// Names of the two remotes in the user's repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ForkRemotes {
    pub(crate) origin: RemoteName,
    pub(crate) upstream: RemoteName,
}

impl Default for ForkRemotes {
    fn default() -> Self {
        let name = |text| RemoteName::parse(text).expect("a legal name");
        Self { origin: name("origin"), upstream: name("upstream") }
    }
}

impl Fork {
    pub(crate) fn upstream_branch(&self) -> &BranchName {
        self.upstream_branch.as_ref().unwrap_or(&self.branch)
    }

    pub(crate) fn push_url(&self) -> &str {
        self.push_url.as_deref().unwrap_or(&self.origin)
    }

    /// The same fork with other addresses to push to.
    pub(crate) fn pushing_to(&self, urls: PushUrls) -> Self {
        let PushUrls { first, more } = urls;
        Self { push_url: Some(first), more_push_urls: more, ..self.clone() }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// The agent's program; empty as long as none was needed.
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
    #[serde(default)]
    pub(crate) publish_mode: PublishMode,
}

/// A publication that is taken back, and what became of its parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Withdrawal {
    pub(crate) run: RunId,
    pub(crate) branch: BranchName,
    pub(crate) commit: Sha,
    pub(crate) pull: Option<PullReference>,
    #[serde(default)]
    pub(crate) pull_end: Option<PullEnd>,
    #[serde(default)]
    pub(crate) branch_end: Option<BranchEnd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PullEnd {
    Closed,
    /// It was closed before.
    WasClosed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BranchEnd {
    Deleted,
    /// It was gone before.
    WasGone,
    /// Others have pushed to it, so it stays.
    Moved,
}

impl ForkRecord {
    /// The record of a run that has done nothing yet.
    pub(crate) fn new(fork: Fork, pins: Pins, settings: Settings) -> Self {
        Self {
            fork,
            pins,
            attribution: None,
            settings,
            resumed_from: None,
            continued_work: None,
            publishes: None,
            train: None,
            fix: None,
            withdraws: None,
            check: None,
            check_on_merge: None,
            check_changed: None,
            ran_tests: None,
            regenerate: Vec::new(),
            merged_alone: false,
            resolver: None,
            conflicts: Vec::new(),
            stuck: None,
            contract: None,
            account: None,
            tests: None,
            message_points: Vec::new(),
            upstream_actions: None,
        }
    }

    /// Identifier of the fix that the run lands, if it lands one alone.
    pub(crate) fn fix_id(&self) -> Option<&AdvisoryId> {
        self.fix.as_ref().map(|fix| &fix.request.id)
    }

    /// Number of changes of both sides that rules of the fork or earlier merges leave out.
    pub(crate) fn left_out_by_rule(&self) -> usize {
        let sides = self.account.iter().flat_map(|account| [&account.upstream, &account.fork]);
        let changes = sides.flat_map(|side| &side.changes);
        changes.filter(|change| change.status == SideStatus::DroppedByRule).count()
    }

    /// Returns whether an agent may be started where the check fails on a merge.
    pub(crate) fn may_ask_agent(&self) -> bool {
        self.train.as_ref().is_none_or(|train| train.step.kind.may_ask())
    }

    /// Returns whether work of the fork is lost, unless the user accepts it: whole files and commits, or many small changes.
    pub(crate) fn fork_lost(&self) -> bool {
        let by_contract = self.contract.as_ref().is_some_and(|contract| contract.lost);
        let by_account = || {
            let judged = self.account.as_ref().map(judge_account);
            judged.is_some_and(|judged| !judged.fork_dropped.is_empty())
        };
        !self.settings.accept_loss && (by_contract || by_account())
    }

    /// Reasons why upstream counts as dropped, unless the user accepts it.
    pub(crate) fn upstream_dropped(&self) -> Vec<String> {
        if self.settings.accept_dropped {
            return Vec::new();
        }
        let account = self.account.as_ref().map(judge_account).unwrap_or_default();
        let fix = self.fix.as_ref().and_then(FixRecord::dropped);
        fix.into_iter().chain(account.upstream_dropped).collect()
    }
}

impl Settings {
    /// Notes the agent that was chosen.
    pub(crate) fn note_agent(&mut self, agent: &ResolvedAgent) {
        self.provider = agent.provider().name().to_owned();
        self.model = agent.model_name().map(str::to_owned);
    }

    /// The agent's name, if one was chosen.
    pub(crate) fn agent_name(&self) -> Option<&str> {
        Some(self.provider.as_str()).filter(|name| !name.is_empty())
    }

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
