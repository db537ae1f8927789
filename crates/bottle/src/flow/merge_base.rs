//! Merges the base branch into a pull request without an agent: what git merges by itself, and conflicts that the resolver
//! answers with confidence. The result is judged, checked and published like an agent's.

use std::path::PathBuf;

use engine::export::import_ref;
use engine::run::{Product, gather_evidence};
use host::git::{CommitDraft, GitIdentity, OldValue, SealedRepo};
use merge::account::{DropRules, judge_account, observe_account};
use merge::clean::{MergeAttempt, MergeOptions, try_merge};
use merge::contract::{ContractBounds, ContractEnds, judge_contract, observe_contract};
use merge::entry::MergeChanges;
use merge::pattern::PathPatterns;
use merge::resolver::decide::TrustThreshold;
use merge::resolver::history::{Learned, learn_branches, load_learned, save_learned};
use merge::resolver::{MergeHeads, ResolveOptions, resolve_conflicts};
use merge::test_names;
use model::exit::BottleExit;
use model::id::Sha;
use model::inert::inert_line;
use orchestrator_db::WakeCause;

use super::access::ForgeAccess;
use super::bottle::{Bottle, Record};
use super::context::RunContext;
use super::observe::Source;
use super::run::BottleRun;
use super::run_record::HostMerge;
use crate::exit::{Failure, OrExit, OrGeneral};

/// Author of the host's own merges.
const HOST_IDENTITY: (&str, &str) = ("bot-bottle", "bot-bottle@bottle.invalid");

/// Relation of a pull request to its base, by the host's own merge: a forge may still compute it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BaseStanding {
    /// It has everything.
    UpToDate,
    /// Git merges it by itself.
    Clean,
    Conflicts,
}

/// Fetches, and merges the published branch with its base in memory.
pub(crate) async fn observe_base(
    context: RunContext<'_>,
    bottle: &Bottle,
    record: &Record,
    access: &ForgeAccess,
) -> Result<BaseStanding, Failure> {
    let RunContext { ui, home, .. } = context;
    let source = Source::find(&record.repo, Some(access)).await?;
    source.fetch(ui, home).await?;
    let pins = source.pin(record).await?;
    let path = bottle.path().join("merge-trial.git");
    host::file::remove_tree_safely(&path).or_general()?;
    let repo = SealedRepo::init_bare(&path, source.repo.object_format()).await.or_general()?;
    repo.add_alternate(&source.repo.objects_dir()).or_general()?;
    let standing = match repo.merge_base(&pins.start, &pins.base).await.or_general()? {
        Some(parted) if parted == pins.base => BaseStanding::UpToDate,
        Some(_) if repo.merge_tree(&pins.start, &pins.base).await.or_general()?.is_clean => {
            BaseStanding::Clean
        }
        Some(_) | None => BaseStanding::Conflicts,
    };
    host::file::remove_tree_safely(&path).or_general()?;
    Ok(standing)
}

impl BottleRun<'_> {
    /// Merges the base if the forge reported a conflict or a base that moved on; `false` if the agent has to.
    pub(super) async fn merge_alone(&mut self) -> Result<bool, Failure> {
        if !matches!(self.run.record.wake, Some(WakeCause::Conflict | WakeCause::Behind)) {
            return Ok(false);
        }
        self.context.ui.phase("merge", "trying to merge the base without an agent");
        let repo = self.run.make_import_repo(&self.import_source()).await.map_err(Self::failure)?;
        let pins = self.run.record.pins.clone();
        let (name, email) = HOST_IDENTITY;
        let identity = GitIdentity { name: name.to_owned(), email: email.to_owned() };
        let (base, branch) =
            (inert_line(pins.base_branch.as_str()), inert_line(pins.branch.as_str()));
        let message = format!("Merge {base} into {branch}\n");
        let name = import_ref(self.run.dir.id(), &pins.branch).or_exit(BottleExit::Internal)?;
        let when = self.run.record.started_at;
        let options = MergeOptions { message: &message, identity: &identity, when, name: &name };
        let attempt = try_merge(&repo, &pins.start, &pins.base, options).await.or_general()?;
        let made = match attempt {
            MergeAttempt::Clean { commit, .. } => Some((commit, 0)),
            MergeAttempt::Conflicts(_) => self.resolve_alone(&repo, options).await?,
            MergeAttempt::Unrelated => None,
        };
        let Some((commit, resolved)) = made else {
            self.context.ui.note("the base cannot be merged without the agent");
            return Ok(false);
        };
        gather_evidence(self, &repo, &commit, HOST_IDENTITY).await?;
        self.run.record.merged_alone = Some(HostMerge { resolved });
        if let Some(wakeup) = self.record.wakeups.last_mut() {
            wakeup.alone = true;
        }
        self.bottle.save(&self.record)?;
        Ok(true)
    }

    /// Resolves all conflicts with confidence, or none. Nothing of either side may be lost.
    async fn resolve_alone(
        &self,
        repo: &SealedRepo,
        options: MergeOptions<'_>,
    ) -> Result<Option<(Sha, usize)>, Failure> {
        let pins = &self.run.record.pins;
        let learned = self.learn_merges(repo).await?;
        // The base is the first parent in the merges that people made, from which the answers come.
        let heads = MergeHeads { ours: pins.base.clone(), theirs: pins.start.clone() };
        let at = ResolveOptions::at(TrustThreshold::DEFAULT);
        let resolve = ResolveOptions { knowledge: &learned.knowledge, ..at };
        let done = resolve_conflicts(repo, &heads, resolve).await.or_general()?;
        if !done.rest.is_empty() || !done.regenerate.is_empty() {
            return Ok(None);
        }
        let parents = [pins.start.clone(), pins.base.clone()];
        let MergeOptions { message, identity, when, name } = options;
        let draft = CommitDraft { tree: &done.tree, parents: &parents, identity, when, message };
        let commit = repo.commit_tree(draft).await.or_general()?;
        if self.loses_work(repo, &commit).await? {
            self.context.ui.note("resolving all of it would lose work: the agent looks at it");
            return Ok(None);
        }
        repo.update_ref(name, &commit, OldValue::Missing).await.or_general()?;
        Ok(Some((commit, done.receipts.len())))
    }

    /// Returns whether a merge lost changes of either side, or tests.
    async fn loses_work(&self, repo: &SealedRepo, commit: &Sha) -> Result<bool, Failure> {
        let pins = &self.run.record.pins;
        let parted = repo.merge_base(&pins.start, &pins.base).await.or_general()?;
        let Some(merge_base) = parted else { return Ok(true) };
        let ends = ContractEnds {
            merge_base,
            base: pins.start.clone(),
            upstream: pins.base.clone(),
            tip: commit.clone(),
        };
        let (rules, bounds) = (DropRules::default(), ContractBounds::default());
        let protected = PathPatterns::new(&self.run.record.manifest.protect);
        let changes = MergeChanges::new(repo, &ends);
        let account = observe_account(&changes, &rules, bounds).await.or_general()?;
        let mut facts = observe_contract(&changes, &protected, bounds).await.or_general()?;
        facts.refine(&account, &rules);
        let tests = test_names::observe(&changes).await.or_general()?;
        let dropped = !judge_account(&account).upstream_dropped.is_empty();
        Ok(judge_contract(&facts).lost || tests.is_lost() || dropped)
    }

    /// Learns from the merges of the base branch, and keeps what was learned beside the mirror.
    async fn learn_merges(&self, repo: &SealedRepo) -> Result<Learned, Failure> {
        let base = &self.run.record.pins.base;
        let file = self.learned_file();
        let mut learned = load_learned(&file).unwrap_or_default();
        let before = learned.source();
        learn_branches(repo, base, &mut learned).await.or_general()?;
        if before != learned.source() {
            save_learned(&file, &learned).or_general()?;
        }
        Ok(learned)
    }

    fn learned_file(&self) -> PathBuf {
        self.source.mirror(self.context.home).with_extension("learned.json")
    }
}
