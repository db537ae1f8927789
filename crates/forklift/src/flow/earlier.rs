//! Earlier runs of a fork: the one that makes a new run needless, and the one whose branch a new run renews.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use engine::box_dir::BoxDir;
use engine::launch::{BoxStatus, box_status};
use engine::publish::Publication;
use engine::run::Phase;
use host::git::{RemoteBranch, UserRepo};
use model::id::{RunId, Sha};
use run_store::run_dir::{self, RunDir};

use super::observe::Observation;
use super::pull::{ForgePlan, pull_state};
use super::record::{Fork, ForkRunRecord};
use super::resume::load_args;
use super::security::run::result_commit;
use crate::exit::{Failure, OrExit};
use crate::rules::earlier::{
    BranchChoice, EarlierBranch, EarlierFacts, EarlierPublications, OwnBranch, StartChoice,
    choose_branch, choose_start,
};
use crate::rules::judge::Verdict;
use crate::rules::pull_text::kind_mark;
use crate::rules::strategy::Strategy;

const QUERY_LIMIT: Duration = Duration::from_secs(60);

/// A run on disk, with its record.
#[derive(Debug)]
pub(crate) struct StoredRun {
    pub(crate) dir: RunDir,
    pub(crate) meta: ForkRunRecord,
}

impl StoredRun {
    pub(crate) fn verdict_if_awaiting(&self) -> Option<Verdict> {
        let sent = self.meta.publication.as_ref()?;
        Some(Verdict::AwaitingReview {
            run: self.dir.id().clone(),
            branch: sent.branch.clone(),
            pull: sent.pull.as_ref().map(|pull| pull.url.clone()),
        })
    }
}

/// Runs whose record can be read, newest first, each read when it is its turn.
pub(super) fn stored_runs(runs: &Path) -> Result<impl Iterator<Item = StoredRun>, Failure> {
    let dirs = run_dir::list(runs).or_machine()?;
    Ok(dirs.into_iter().filter_map(|dir| {
        let meta = ForkRunRecord::load(&dir).ok()?;
        Some(StoredRun { dir, meta })
    }))
}

/// Returns whether the run brings the same commits of the same fork together, in the same way.
pub(super) fn is_about(run: &StoredRun, seen: &Observation, strategy: Strategy) -> bool {
    is_same_fork(&seen.fork, &run.meta.fork)
        && run.meta.pins == seen.pins
        && run.meta.settings.strategy == strategy
}

fn is_same_fork(ours: &Fork, theirs: &Fork) -> bool {
    (&ours.path, &ours.branch) == (&theirs.path, &theirs.branch)
}

/// The newest run of the fork that is not finished.
pub(crate) fn find_unfinished(runs: &Path, fork: &Fork) -> Result<Option<RunId>, Failure> {
    let counts = |run: &StoredRun| !run.dir.is_closed() && is_same_fork(fork, &run.meta.fork);
    Ok(stored_runs(runs)?.find(counts).map(|run| run.dir.id().clone()))
}

/// Beginning of a run, with the earlier run that it depends on.
pub(crate) enum Start {
    New,
    /// A new run, because the box of this one was lost.
    Restart(RunId),
    Finish(StoredRun),
    Publish(StoredRun),
    AwaitReview(Verdict),
}

/// Finds the newest run that was verified for the same commits, or is not finished, and chooses how to begin. A result that
/// was made without an instruction of now does not count.
pub(crate) async fn find_start(
    runs: &Path,
    seen: &Observation,
    (strategy, instruction): (Strategy, &[String]),
    forge: &ForgePlan,
) -> Result<Start, Failure> {
    let follows = |run: &StoredRun| {
        instruction.is_empty()
            || load_args(&run.dir).is_ok_and(|earlier| earlier.instruction == instruction)
    };
    let counts = |run: &StoredRun| {
        let is_verified = || run.meta.verdict == Some(Verdict::Publish) && follows(run);
        is_about(run, seen, strategy) && (!run.dir.is_closed() || is_verified())
    };
    let Some(run) = stored_runs(runs)?.find(counts) else { return Ok(Start::New) };
    let sent = run.meta.publication.as_ref();
    let (mut branch_is_gone, mut pull) = (false, None);
    if let Some(sent) = sent.filter(|sent| sent.pushed) {
        let there = branch_at(&seen.repo, &seen.fork, sent).await;
        branch_is_gone = matches!(there, Some(RemoteBranch::Absent));
        pull = match &sent.pull {
            Some(reference) => pull_state(forge, reference.number).await,
            None => None,
        };
    }
    let choice = choose_start(EarlierFacts {
        is_closed: run.dir.is_closed(),
        box_is_lost: lost_box(&run)?,
        has_commit: run.meta.tip().is_some() && run.dir.repo().is_dir(),
        is_pushed: sent.is_some_and(|sent| sent.pushed),
        lacks_pull: sent.is_some_and(|sent| sent.problem.is_some()),
        branch_is_gone,
        pull,
    });
    Ok(match choice {
        StartChoice::New => Start::New,
        StartChoice::Restart => Start::Restart(run.dir.id().clone()),
        StartChoice::Finish => Start::Finish(run),
        StartChoice::Publish => Start::Publish(run),
        StartChoice::AwaitReview => {
            run.verdict_if_awaiting().map_or(Start::New, Start::AwaitReview)
        }
    })
}

/// Returns whether a box that the run waits for was lost: its shim was killed and left no record of how it ended. Boxes of
/// later phases do not count: the agent's commits are there by then.
fn lost_box(run: &StoredRun) -> Result<bool, Failure> {
    let name = match run.meta.phase {
        Phase::Prepared => "setup",
        Phase::SetUp | Phase::Launched => "agent",
        _ => return Ok(false),
    };
    let path = run.dir.path().join("boxes").join(name);
    if !path.is_dir() {
        return Ok(false);
    }
    Ok(box_status(&BoxDir::new(&path)).or_machine()? == BoxStatus::Orphaned)
}

/// The branch of a publication as origin has it now; `None` if origin cannot be asked.
pub(crate) async fn branch_at(
    repo: &UserRepo,
    fork: &Fork,
    sent: &Publication,
) -> Option<RemoteBranch> {
    repo.branch_at_url(fork.push_url(), &sent.branch, QUERY_LIMIT).await.ok()
}

/// The newest run of the same kind whose branch was pushed, without the run `except`: an update of the same fork, or a run that
/// lands the same fix. Steps of trains do not count: their branch grows by steps alone.
pub(crate) fn last_published(
    runs: &Path,
    like: &ForkRunRecord,
    except: &RunId,
) -> Result<Option<StoredRun>, Failure> {
    let counts = |run: &StoredRun| {
        run.dir.id() != except
            && is_same_kind(like, &run.meta)
            && run.meta.publication.as_ref().is_some_and(|sent| sent.pushed)
    };
    Ok(stored_runs(runs)?.find(counts))
}

/// A run that began later and published another commit: the older result must not replace it. The run that publishes a
/// commit later counts from the beginning of the run that made it.
pub(crate) fn find_later_result(
    runs: &Path,
    own: &RunId,
    meta: &ForkRunRecord,
) -> Result<Option<RunId>, Failure> {
    if meta.train.is_some() {
        // The steps of a train follow one another, and origin refuses one that does not.
        return Ok(None);
    }
    let made_by = meta.publishes.as_ref().unwrap_or(own);
    let result = result_commit(meta);
    let later = last_published(runs, meta, own)?.filter(|later| {
        let commit = later.meta.publication.as_ref().map(|sent| &sent.commit);
        run_dir::is_newer(later.dir.id(), made_by) && commit != result.as_ref()
    });
    Ok(later.map(|later| later.dir.id().clone()))
}

/// Publications of the runs of a fork so far, by whether it is of the same kind as a run.
pub(crate) fn earlier_publications(
    runs: &Path,
    like: &ForkRunRecord,
) -> Result<EarlierPublications, Failure> {
    let (mut same_kind, mut other_kinds) = (Vec::new(), Vec::new());
    for run in stored_runs(runs)?.filter(|run| run.meta.fork.path == like.fork.path) {
        let is_same = is_same_kind(like, &run.meta);
        let Some(sent) = run.meta.publication.filter(|sent| sent.pushed) else { continue };
        match is_same {
            true => same_kind.push(OwnBranch { branch: sent.branch, commit: sent.commit }),
            false => other_kinds.push(sent.branch),
        }
    }
    Ok(EarlierPublications { same_kind, other_kinds, mark: kind_mark(like.fix_id()) })
}

/// Returns whether both bring the same branch up to date, or land the same fix in it.
fn is_same_kind(ours: &ForkRunRecord, theirs: &ForkRunRecord) -> bool {
    theirs.train.is_none()
        && is_same_fork(&ours.fork, &theirs.fork)
        && theirs.fix_id() == ours.fix_id()
}

/// The newest run that pushed to the branch of a publication after it, and was not taken back: the branch and its pull request
/// are its own by now.
pub(crate) fn renewed_by(runs: &Path, run: &StoredRun) -> Result<Option<RunId>, Failure> {
    let Some(sent) = &run.meta.publication else { return Ok(None) };
    let mut withdrawn: BTreeSet<RunId> = BTreeSet::new();
    for later in stored_runs(runs)?.take_while(|later| later.dir.id() != run.dir.id()) {
        if let Some(of) = &later.meta.withdraws {
            withdrawn.extend(later.dir.is_closed().then(|| of.run.clone()));
            continue;
        }
        let pushed = later.meta.publication.as_ref().filter(|it| it.pushed);
        let is_same = pushed.is_some_and(|it| it.branch == sent.branch)
            && later.meta.fork.path == run.meta.fork.path;
        if is_same && !withdrawn.contains(later.dir.id()) {
            return Ok(Some(later.dir.id().clone()));
        }
    }
    Ok(None)
}

/// The run that takes a publication back and is not over.
pub(crate) fn find_open_withdrawal(runs: &Path, of: &RunId) -> Result<Option<RunDir>, Failure> {
    let counts = |run: &StoredRun| {
        !run.dir.is_closed() && run.meta.withdraws.as_ref().is_some_and(|it| it.run == *of)
    };
    Ok(stored_runs(runs)?.find(counts).map(|run| run.dir))
}

/// The run that published the commit of a closed run later.
pub(crate) fn published_by(runs: &Path, earlier: &RunId) -> Result<Option<StoredRun>, Failure> {
    let counts = |run: &StoredRun| {
        run.meta.publishes.as_ref() == Some(earlier)
            && run.meta.publication.as_ref().is_some_and(Publication::is_published)
    };
    Ok(stored_runs(runs)?.find(counts))
}

/// Chooses the branch for a commit that follows an earlier publication.
pub(crate) async fn choose_branch_after(
    earlier: &Publication,
    commit: &Sha,
    base: &Sha,
    (repo, fork, forge): (&UserRepo, &Fork, &ForgePlan),
) -> Result<BranchChoice, Failure> {
    let at = match branch_at(repo, fork, earlier).await {
        Some(RemoteBranch::At(at)) => Some(at),
        Some(RemoteBranch::Absent) | None => None,
    };
    // A commit that the checkout does not have is in no branch of it.
    let known = repo.resolve_commit(earlier.commit.as_str()).await.or_machine()?.is_some();
    let is_merged = known && repo.is_ancestor(&earlier.commit, base).await.or_machine()?;
    let pull = match &earlier.pull {
        Some(reference) => pull_state(forge, reference.number).await,
        None => None,
    };
    let facts = EarlierBranch { pushed: &earlier.commit, at: at.as_ref(), is_merged, pull };
    Ok(choose_branch(commit, facts))
}
