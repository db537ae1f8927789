//! The merge or rebase that needs no agent: done by the host, in its own repository, and judged like any other result.

use engine::attribution::Attribution;
use engine::evidence::Pins;
use engine::export::import_ref;
use engine::run::gather_evidence;
use host::git::{CommitDraft, GitIdentity, OldValue, SealedRepo};
use merge::account::{DropRules, MergeAccount, observe_account};
use merge::clean::{Conflict, MergeAttempt, MergeOptions, try_merge};
use merge::contract::{Contract, ContractBounds, ContractEnds, judge_contract, observe_contract};
use merge::entry::MergeChanges;
use merge::pattern::PathPatterns;
use merge::rebase::{RebaseAttempt, try_rebase};
use merge::resolver::decide::TrustThreshold;
use merge::resolver::receipt::FileAction;
use merge::test_names::{self, TestAccount};
use model::exit::ForkliftExit;
use model::id::Sha;
use model::inert::inert_line;

use super::record::ForkRecord;
use super::resolver::Handover;
use super::run::ForkRun;
use crate::exit::{Failure, OrExit};
use crate::rules::strategy::Strategy;
use crate::rules::target::Target;
use crate::rules::words::counted;

/// Conflicts that are printed; the record has all of them.
const CONFLICTS_SHOWN: usize = 20;

pub(super) const HOST_IDENTITY: (&str, &str) = ("forklift", "forklift@bottle.invalid");

/// Result of the host's attempt.
pub(super) enum Integration {
    Done,
    /// The agent has to continue, perhaps from a merge that was begun.
    Rest(Option<Handover>),
}

/// Accounts of a result.
pub(super) struct ResultAccounts {
    pub(super) contract: Contract,
    pub(super) account: MergeAccount,
    pub(super) tests: TestAccount,
}

/// Author of the host's own commits.
pub(crate) fn host_identity() -> GitIdentity {
    GitIdentity { name: HOST_IDENTITY.0.to_owned(), email: HOST_IDENTITY.1.to_owned() }
}

impl ForkRun<'_> {
    /// Author of the host's commits in this run: the user, or forklift itself where no name is known.
    fn publisher(&self) -> GitIdentity {
        self.run.record.attribution.as_ref().map_or_else(host_identity, Attribution::identity)
    }

    /// Integrates by git and the resolver, in the host's own repository. The result is judged like any other.
    pub(super) async fn integrate_alone(&mut self) -> Result<Integration, Failure> {
        let strategy = self.run.record.settings.strategy;
        self.ui.phase("merge", &format!("trying to {} without an agent", strategy.name()));
        let (pins, branch) = (self.run.record.pins.clone(), self.run.record.fork.branch.clone());
        let repo = self.make_import_repo().await?.cancelled_by(self.run.cancel.clone());
        let identity = self.publisher();
        let message = self.merge_message();
        let name = import_ref(self.run.dir.id(), &branch).or_exit(ForkliftExit::Internal)?;
        let when = self.run.record.started_at;
        let options = MergeOptions { message: &message, identity: &identity, when, name: &name };
        let done = match strategy {
            Strategy::Merge => {
                match try_merge(&repo, &pins.base, &pins.upstream, options).await.or_machine()? {
                    MergeAttempt::Clean { commit, .. } => Some(commit),
                    MergeAttempt::Conflicts(conflicts) => {
                        self.note_conflicts(&conflicts);
                        return self.merge_with_resolver(&repo, options).await;
                    }
                    MergeAttempt::Unrelated => {
                        self.ui.note("the histories have nothing in common");
                        None
                    }
                }
            }
            Strategy::Rebase => {
                let attempt = try_rebase(&repo, &pins.base, &pins.upstream, options).await;
                self.read_rebase(attempt.or_machine()?)
            }
        };
        let Some(commit) = done else { return Ok(Integration::Rest(None)) };
        gather_evidence(self, &repo, &commit, (&identity.name, &identity.email)).await?;
        self.run.record.merged_alone = true;
        if let Some(handover) = self.check_merge(&commit, &message).await? {
            return Ok(Integration::Rest(Some(handover)));
        }
        self.ui.note("no conflicts: no agent is needed");
        Ok(Integration::Done)
    }

    /// Message of the merge, with the true names of both branches.
    fn merge_message(&self) -> String {
        let ForkRecord { fork, pins, settings, .. } = &self.run.record.product;
        let is_release = settings.target == Target::LatestTag;
        let theirs = match is_release {
            true => settings.target_name.clone(),
            false => format!("upstream/{}", fork.upstream_branch()),
        };
        let (theirs, ours) = (inert_line(&theirs), inert_line(fork.branch.as_str()));
        let step = self.run.record.train.as_ref().map(|train| {
            format!(", step {}: {}", train.number, counted(train.step.commits, "commit"))
        });
        let step = step.unwrap_or_default();
        let message =
            format!("Merge {theirs} into {ours}{step}\n\nUpstream-commit: {}\n", pins.upstream);
        let user = self.run.record.attribution.as_ref();
        let trailers = user.map(|user| user.trailers(None)).unwrap_or_default();
        trailers.iter().fold(message, |message, trailer| format!("{message}{trailer}\n"))
    }

    /// Resolves conflicts as far as the trust threshold allows. A merge that is all resolved needs no agent, unless it would
    /// lose work of the fork.
    async fn merge_with_resolver(
        &mut self,
        repo: &SealedRepo,
        options: MergeOptions<'_>,
    ) -> Result<Integration, Failure> {
        if self.run.record.settings.trust() == TrustThreshold::NEVER {
            return Ok(Integration::Rest(None));
        }
        let resolved = self.resolve_conflicts(repo).await?;
        let MergeOptions { identity, message, when, name } = options;
        if !resolved.rest.is_empty() {
            let handover = self.hand_over(repo, &resolved, identity, message).await?;
            return Ok(Integration::Rest(Some(handover)));
        }
        let parents = [self.run.record.pins.base.clone(), self.run.record.pins.upstream.clone()];
        let made = CommitDraft { tree: &resolved.tree, parents: &parents, identity, when, message };
        let commit = repo.commit_tree(made).await.or_machine()?;
        repo.update_ref(name, &commit, OldValue::Missing).await.or_machine()?;
        gather_evidence(self, repo, &commit, (&identity.name, &identity.email)).await?;
        let record = &mut self.run.record;
        let accepts = record.settings.accept_loss;
        let lost = record.fork_lost();
        let lost_tests = record.tests.as_ref().is_some_and(TestAccount::is_lost) && !accepts;
        let what = match () {
            () if lost => Some("lose work of the fork"),
            () if lost_tests => Some("lose tests"),
            () if !record.upstream_dropped().is_empty() => Some("drop upstream's work"),
            () => None,
        };
        if let Some(what) = what {
            (record.evidence, record.contract, record.account) = (None, None, None);
            (record.tests, record.resolver) = (None, None);
            self.ui.note(&format!("resolving all of it would {what}: the agent looks at it"));
            return Ok(Integration::Rest(None));
        }
        self.run.record.merged_alone = true;
        if let Some(handover) = self.check_merge(&commit, message).await? {
            return Ok(Integration::Rest(Some(handover)));
        }
        self.ui.note("every conflict is resolved: no agent is needed");
        Ok(Integration::Done)
    }

    fn read_rebase(&mut self, attempt: RebaseAttempt) -> Option<Sha> {
        match attempt {
            RebaseAttempt::Clean { commit, made, dropped } => {
                let message = format!("{made} commits made again, {} dropped", dropped.len());
                self.ui.note(&message);
                Some(commit)
            }
            RebaseAttempt::Conflicts { at, conflicts } => {
                self.ui.note(&format!("commit {} of the fork does not fit", at.short()));
                self.note_conflicts(&conflicts);
                None
            }
            RebaseAttempt::Unrelated => {
                self.ui.note("the histories have nothing in common");
                None
            }
            RebaseAttempt::TooMany => {
                self.ui.note("the fork has too many commits of its own to rebase without an agent");
                None
            }
        }
    }

    fn note_conflicts(&mut self, conflicts: &[Conflict]) {
        let shown = |conflict: &Conflict| format!("{} ({})", conflict.path, conflict.kind.as_str());
        self.run.record.conflicts = conflicts.iter().map(shown).collect();
        let more = conflicts.len().saturating_sub(CONFLICTS_SHOWN);
        let mut list: Vec<&str> =
            self.run.record.conflicts.iter().take(CONFLICTS_SHOWN).map(String::as_str).collect();
        let rest = format!("and {more} more");
        list.extend((more > 0).then_some(rest.as_str()));
        self.ui.note(&format!("conflicts ({}): {}", conflicts.len(), list.join(", ")));
    }

    /// Accounts for the fork's own changes, for both sides and for their tests.
    pub(super) async fn accounts(
        &self,
        repo: &SealedRepo,
        tip: &Sha,
    ) -> Result<ResultAccounts, Failure> {
        let ends = self.ends(repo, tip).await?;
        let protected = PathPatterns::new(&self.run.record.settings.rules.protect);
        let bounds = ContractBounds::default();
        let rules = self.drop_rules();
        let changes = MergeChanges::new(repo, &ends);
        let account = observe_account(&changes, &rules, bounds);
        let facts = observe_contract(&changes, &protected, bounds);
        let tests = test_names::observe(&changes);
        let (account, mut facts, tests) = tokio::try_join!(account, facts, tests).or_machine()?;
        facts.refine(&account, &rules);
        Ok(ResultAccounts { contract: judge_contract(&facts), account, tests })
    }

    /// Paths where the fork's rules, or merges that the resolver learned from, keep one side's version.
    fn drop_rules(&self) -> DropRules {
        let mut known = self.run.record.settings.rules.drop_rules();
        let receipts = self.run.record.resolver.iter().flat_map(|resolver| &resolver.receipts);
        for receipt in receipts.filter(|receipt| receipt.action == FileAction::TookOurs) {
            let merge = receipt.steps.iter().find_map(|step| step.learned_from.as_ref());
            if let Some(merge) = merge {
                known = known.with_habit(&receipt.path, format!("as in {}", merge.short()));
            }
        }
        known
    }

    /// The commits that the result is judged by. Histories that have nothing in common parted at the empty tree: every file is
    /// a change of its side.
    async fn ends(&self, repo: &SealedRepo, tip: &Sha) -> Result<ContractEnds, Failure> {
        let Pins { base, upstream } = self.run.record.pins.clone();
        let merge_base = match repo.merge_base(&base, &upstream).await.or_machine()? {
            Some(commit) => commit,
            None => {
                Sha::parse(repo.object_format().empty_tree()).or_exit(ForkliftExit::Internal)?
            }
        };
        Ok(ContractEnds { merge_base, base, upstream, tip: tip.clone() })
    }
}
