//! Status of every fork: by its runs, by the attempts that left none, and by what was fetched last.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use engine::publish::Publication;
use host::git::UserRepo;
use jiff::Timestamp;
use model::exit::ForkliftExit;
use model::id::{BranchName, RemoteName, RunId, Sha};
use run_store::run_dir;
use serde::Serialize;

use super::attempt::AttemptStore;
use super::fetched::{FetchedRefs, FetchedRemote, KnownTip};
use super::observe::{find_repo, fork_key};
use super::record::{BranchEnd, Fork, ForkRunRecord, Withdrawal};
use super::run::{final_status, final_verdict};
use super::sync_history::{
    FinishedSync, ForkRunOnDisk, days_since, finished_syncs, judge_syncs, newest_failure,
    newest_good,
};
use crate::commands::ForkliftDirs;
use crate::commands::runs::where_to;
use crate::exit::{Failure, OrExit};
use crate::rules::judge::Verdict;
use crate::rules::next_step::next_command;
use crate::rules::shell_words::{in_folder, quoted_path};
use crate::rules::sync_attempt::{AttemptLog, SyncAttempt};

/// A fork with its newest run and its newest attempts.
#[derive(Debug, Serialize)]
pub(crate) struct ForkStatus {
    pub(crate) fork: PathBuf,
    /// `None` for a fork that never had a run, if none was asked for.
    pub(crate) branch: Option<BranchName>,
    /// Commits of upstream that the fork lacks, by what was fetched last; `None` where that cannot be told.
    pub(crate) behind: Option<usize>,
    /// Days since the oldest of these commits was made.
    pub(crate) behind_days: Option<i64>,
    /// Reason why it cannot be told how far behind the fork is.
    pub(crate) behind_unknown: Option<String>,
    /// The newest run that published all of its target or found nothing to do, and when it began.
    pub(crate) last_good: Option<LastGood>,
    /// Syncs in a row without a result, up to the newest.
    pub(crate) missed: usize,
    /// Reason why the fork is overdue.
    pub(crate) overdue: Option<String>,
    /// Reason that keeps upstream from the fork: the newest sync that failed, the message of the newest run, or a review.
    pub(crate) blocked: Option<String>,
    pub(crate) run: Option<String>,
    /// `None` while the run is not finished.
    pub(crate) verdict: Option<serde_json::Value>,
    pub(crate) words: String,
    /// Pull request, or branch, of the newest publication, unless its branch was gone when origin was fetched last.
    pub(crate) published: Option<String>,
    /// When the run of the newest publication began.
    pub(crate) published_at: Option<Timestamp>,
    pub(crate) next: String,
}

/// A sync that reached its target.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LastGood {
    /// `None` for a train that found nothing to do, and for a run that was removed.
    pub(crate) run: Option<String>,
    /// `None` if the clock was ahead then, so that nobody knows.
    pub(crate) at: Option<Timestamp>,
}

/// Observes every fork and branch, that of the newest run first. Returns the logs that could not be read as well.
pub(crate) async fn observe_forks(
    places: &ForkliftDirs,
    max_days: Option<i64>,
) -> Result<(Vec<ForkStatus>, Vec<PathBuf>), Failure> {
    let (mut logs, unreadable) = AttemptStore::from_env()?.load_all()?;
    let dirs = run_dir::list(&places.runs).or_machine()?.into_iter();
    let load = |dir: run_dir::RunDir| {
        let record = ForkRunRecord::load(&dir).ok()?;
        Some(ForkRunOnDisk { record, is_closed: dir.is_closed() })
    };
    let mut runs: Vec<ForkRunOnDisk> = dirs.filter_map(load).collect();
    // A fix that was landed alone is no sync.
    runs.retain(|run| run.record.fix.is_none());
    let withdrawn = withdrawn_runs(&runs);
    let mut groups: Vec<Vec<ForkRunOnDisk>> = Vec::new();
    for run in runs {
        let Fork { path, branch, .. } = &run.record.fork;
        let is_same = |group: &&mut Vec<ForkRunOnDisk>| {
            let fork = &group[0].record.fork;
            fork.path == *path && fork.branch == *branch
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    // The names of two forks' runs say nothing about which is newer within a second.
    groups.sort_by_key(|group| {
        let ForkRunOnDisk { record, .. } = &group[0];
        Reverse((run_dir::stamp_of(&record.run).to_owned(), record.started_at))
    });
    let forgotten: BTreeSet<PathBuf> =
        logs.iter().filter(|log| log.is_forgotten).map(|log| log.fork.clone()).collect();
    logs.retain(|log| !log.is_forgotten);
    groups.retain(|group| {
        let fork = &group[0].record.fork;
        let mut logs = logs.iter().filter(|log| log.fork == fork.path);
        !forgotten.contains(&fork.path)
            && !logs.any(|log| log.forgotten_branches.contains(&fork.branch))
    });
    let mut rows = Vec::new();
    for group in &groups {
        let log = logs.iter().find(|log| log.fork == group[0].record.fork.path);
        rows.push(fork_status(places, group, log, &withdrawn, max_days).await);
    }
    for log in &logs {
        let known = groups.iter().map(|group| &group[0].record.fork);
        let known: Vec<&BranchName> =
            known.filter(|fork| fork.path == log.fork).map(|fork| &fork.branch).collect();
        for (branch, attempts) in attempts_without_run(log, &known) {
            let row = status_without_run(&log.fork, branch, &attempts, max_days);
            if let Some(mut row) = row {
                name_end_of_branch(places, &mut row).await;
                rows.push(row);
            }
        }
    }
    Ok((rows, unreadable))
}

/// The attempts that belong to no branch with a run, by the branch that they asked for.
fn attempts_without_run<'a>(
    log: &'a AttemptLog,
    known: &[&BranchName],
) -> Vec<(Option<BranchName>, Vec<&'a SyncAttempt>)> {
    let mut found: Vec<(Option<BranchName>, Vec<&SyncAttempt>)> = Vec::new();
    for attempt in &log.attempts {
        let branch = log.branch_of(attempt);
        let is_shown = match branch {
            Some(branch) => known.contains(&branch),
            None => !known.is_empty(),
        };
        if is_shown {
            continue;
        }
        match found.iter_mut().find(|(found, _)| found.as_ref() == branch) {
            Some((_, attempts)) => attempts.push(attempt),
            None => found.push((branch.cloned(), vec![attempt])),
        }
    }
    found
}

/// Runs whose publication was taken back, by a withdrawal of their own or of a later run that had renewed their branch.
fn withdrawn_runs(runs: &[ForkRunOnDisk]) -> BTreeSet<RunId> {
    let (mut withdrawn, mut branches) = (BTreeSet::new(), BTreeSet::new());
    // Newest first: a branch that is pushed again after the withdrawal is there.
    for run in runs {
        let fork = &run.record.fork.path;
        if let Some(withdrawal) = run.record.withdraws.as_ref().filter(|_| run.is_closed) {
            withdrawn.insert(withdrawal.run.clone());
            if withdrawal.branch_end != Some(BranchEnd::Moved) {
                branches.insert((fork, &withdrawal.branch));
            }
        }
        let sent = run.record.publication.as_ref();
        if sent.is_some_and(|sent| branches.contains(&(fork, &sent.branch))) {
            withdrawn.insert(run.record.run.clone());
        }
    }
    withdrawn
}

/// Words about a withdrawal that is not over: the branch may be there, and its pull request closed.
fn half_withdrawn(run: &ForkRunOnDisk) -> Option<String> {
    let withdrawal = run.record.withdraws.as_ref().filter(|_| !run.is_closed)?;
    let Withdrawal { run, branch, .. } = withdrawal;
    Some(format!("the withdrawal of {run} is not finished: {branch} may still be on origin"))
}

/// Status of a fork by its runs, newest first, and by its attempts.
async fn fork_status(
    places: &ForkliftDirs,
    runs: &[ForkRunOnDisk],
    log: Option<&AttemptLog>,
    withdrawn: &BTreeSet<RunId>,
    max_days: Option<i64>,
) -> ForkStatus {
    let ForkRunOnDisk { record, is_closed } = &runs[0];
    let fork = &record.fork;
    let attempts: Vec<&SyncAttempt> = log.map_or_else(Vec::new, |log| {
        let is_about = |it: &&SyncAttempt| log.branch_of(it).is_none_or(|it| *it == fork.branch);
        log.attempts.iter().filter(is_about).collect()
    });
    let syncs = finished_syncs(runs, &attempts, withdrawn);
    let behind = observe_behind(places, fork).await;
    let count = behind.as_ref().ok().map(|it| it.0);
    let verdict = is_closed.then(|| final_verdict(record));
    let failed = newest_failure(&syncs);
    let unknown = behind.as_ref().err().cloned();
    let half = runs.iter().take(1).find_map(half_withdrawn);
    let blocked = failed.or_else(|| unknown.clone()).or(half).or_else(|| {
        verdict.as_ref().and_then(|verdict| blocking_message(runs, verdict, count == Some(0)))
    });
    let (sent, is_gone) = newest_publication(places, runs).await;
    let next = match &verdict {
        None => format!("forklift attach {}", record.run),
        Some(_) if !fork.path.is_dir() => forget(&fork.path),
        Some(Verdict::Publish | Verdict::AwaitingReview { .. }) if is_gone => {
            sync(&fork.path, &attempts)
        }
        Some(verdict) => next_command(record, verdict)
            .map_or_else(|| sync(&fork.path, &attempts), |next| in_folder(&next, &fork.path)),
    };
    let blocked = match is_gone {
        true => blocked.filter(|_| !matches!(verdict, Some(Verdict::AwaitingReview { .. }))),
        false => blocked,
    };
    let (missed, overdue) = judge_syncs(&syncs, count, max_days);
    ForkStatus {
        fork: fork.path.clone(),
        branch: Some(fork.branch.clone()),
        behind: count,
        behind_days: behind.as_ref().ok().and_then(|it| it.1),
        behind_unknown: unknown,
        last_good: last_good(&syncs),
        missed,
        overdue,
        blocked,
        words: verdict.as_ref().map_or("not finished", |verdict| verdict.word()).to_owned(),
        verdict: verdict.map(|verdict| serde_json::json!(verdict)),
        run: Some(record.run.to_string()),
        published: sent.map(|(_, sent)| where_to(sent)),
        published_at: sent.map(|(record, _)| record.started_at),
        next,
    }
}

/// The newest publication that was not taken back, with its run, and whether its branch was gone when origin was fetched last.
/// An older run may have it.
async fn newest_publication<'a>(
    places: &ForkliftDirs,
    runs: &'a [ForkRunOnDisk],
) -> (Option<(&'a ForkRunRecord, &'a Publication)>, bool) {
    let is_taken_back = |run: &&ForkRunOnDisk| run.is_closed && run.record.withdraws.is_some();
    let mut current = runs.iter().take_while(|run| !is_taken_back(run));
    let newest = current.find_map(|run| {
        let sent = run.record.publication.as_ref().filter(|sent| sent.pushed)?;
        Some((&run.record, sent))
    });
    let Some((record, sent)) = newest else { return (None, false) };
    // Branches that are pushed elsewhere are never fetched.
    let is_fetched = record.fork.push_url() == record.fork.origin;
    let Some(checkout) = find_repo(&record.fork.path).await.ok().filter(|_| is_fetched) else {
        return (newest, false);
    };
    let fetched = FetchedRefs::load(&checkout, &places.cache);
    let origin = fetched.remote(&record.fork.remotes.origin);
    let is_gone = origin.is_some_and(|origin| !origin.has(&sent.branch));
    (newest.filter(|_| !is_gone), is_gone)
}

fn last_good(syncs: &[FinishedSync<'_>]) -> Option<LastGood> {
    let good = newest_good(syncs)?;
    let at = days_since(good.at).map(|_| good.at);
    Some(LastGood { run: good.run.as_ref().map(ToString::to_string), at })
}

/// The row of a branch that failed and never had a run. One that origin does not have is one that nobody keeps, or a slip of
/// the pen.
async fn name_end_of_branch(places: &ForkliftDirs, row: &mut ForkStatus) {
    let Some(branch) = &row.branch else { return };
    let Ok(checkout) = find_repo(&row.fork).await else { return };
    let fetched = FetchedRefs::load(&checkout, &places.cache);
    let Ok(origin) = RemoteName::parse("origin") else { return };
    if fetched.remote(&origin).is_some_and(|origin| !origin.has(branch)) {
        row.next =
            format!("{} --branch {}", forget(&row.fork), quoted_path(Path::new(branch.as_str())));
    }
}

/// Status of a branch that never had a run, or of a list of forks; `None` if all is well with it.
fn status_without_run(
    fork: &Path,
    branch: Option<BranchName>,
    attempts: &[&SyncAttempt],
    max_days: Option<i64>,
) -> Option<ForkStatus> {
    let syncs = finished_syncs(&[], attempts, &BTreeSet::new());
    let blocked = newest_failure(&syncs)?;
    let (missed, overdue) = judge_syncs(&syncs, None, max_days);
    Some(ForkStatus {
        fork: fork.to_path_buf(),
        branch,
        behind: None,
        behind_days: None,
        behind_unknown: Some("no run of it is on record".to_owned()),
        last_good: last_good(&syncs),
        missed,
        overdue,
        blocked: Some(blocked),
        run: None,
        verdict: None,
        words: "none".to_owned(),
        published: None,
        published_at: None,
        next: if fork.is_dir() { sync(fork, attempts) } else { forget(fork) },
    })
}

/// The command that syncs as the newest attempt did.
fn sync(fork: &Path, attempts: &[&SyncAttempt]) -> String {
    let mut command = format!("forklift -C {}", quoted_path(fork));
    let newest = attempts.last();
    if let Some(branch) = newest.and_then(|attempt| attempt.branch.as_ref()) {
        command.push_str(&format!(" --main-branch {}", quoted_path(Path::new(branch.as_str()))));
    }
    if let Some(target) = newest.and_then(|attempt| attempt.target.as_ref()) {
        command.push_str(&format!(" --target {}", quoted_path(Path::new(&target.to_string()))));
    }
    command
}

fn forget(fork: &Path) -> String {
    format!("forklift status --forget {}", quoted_path(fork))
}

/// The message of a run that did not reach its target, could not publish, or waits for people.
fn blocking_message(runs: &[ForkRunOnDisk], verdict: &Verdict, has_all: bool) -> Option<String> {
    let record = &runs[0].record;
    let problem = record.publication.as_ref().and_then(|sent| sent.problem.clone());
    if let Some(problem) = problem {
        return Some(format!("not published: {problem}"));
    }
    let is_pushed = record.publication.as_ref().is_some_and(|sent| sent.pushed);
    match verdict {
        Verdict::AwaitingReview { .. } if has_all => None,
        Verdict::AwaitingReview { run, branch, pull } => {
            let opened = runs.iter().find(|it| it.record.run == *run);
            let since = opened.map_or_else(String::new, |opened| {
                format!(" since {}", opened.record.started_at.strftime("%Y-%m-%d"))
            });
            let what = pull.clone().unwrap_or_else(|| branch.to_string());
            Some(format!("{what} waits for review{since}"))
        }
        Verdict::Publish if !is_pushed => {
            Some("verified and not pushed: it was held back".to_owned())
        }
        _ if final_status(record) != ForkliftExit::Success => Some(verdict.message()),
        _ => None,
    }
}

/// Number of upstream's commits that the fork lacks, and the days since the oldest of them was made; the error says why it
/// cannot be told.
async fn observe_behind(
    places: &ForkliftDirs,
    fork: &Fork,
) -> Result<(usize, Option<i64>), String> {
    if !fork.path.is_dir() {
        return Err("the folder of the fork is gone".to_owned());
    }
    let user: UserRepo = find_repo(&fork.path).await.map_err(|failure| failure.to_string())?;
    let (origin, upstream) = (&fork.remotes.origin, &fork.remotes.upstream);
    if let Some(remote) = [origin, upstream].into_iter().find(|it| !user.has_remote(it)) {
        return Err(format!("the fork has no remote '{remote}' any more"));
    }
    // Trains fetch into a repository of their own, which sees the objects of the checkout as well.
    let trains = places.runs.with_file_name("trains").join(fork_key(&user)).join("repo.git");
    let of_trains = match trains.join("HEAD").exists() {
        true => UserRepo::discover(&trains).await.ok(),
        false => None,
    };
    let fetched = FetchedRefs::load(&user, &places.cache);
    let tip = async |remote, branch| {
        known_tip(&user, of_trains.as_ref(), fetched.remote(remote), (remote, branch)).await
    };
    let ours = tip(origin, &fork.branch).await?;
    let theirs = tip(upstream, fork.upstream_branch()).await?;
    let repo = of_trains.as_ref().unwrap_or(&user);
    let count = repo.count_commits(&theirs, &ours).await.map_err(|error| error.reason())?;
    let oldest = repo.oldest_new_commit(&theirs, &ours).await.map_err(|error| error.reason())?;
    let since = oldest.and_then(|seconds| Timestamp::from_second(seconds).ok());
    // Upstream's authors may have clocks that are ahead.
    Ok((count, since.map(|since| days_since(since).unwrap_or(0))))
}

/// Tip of a branch of a remote by the last fetch. An older version left no record of it; then the ref of the checkout counts, else
/// that of the trains.
async fn known_tip(
    user: &UserRepo,
    of_trains: Option<&UserRepo>,
    fetched: Option<&FetchedRemote>,
    (remote, branch): (&RemoteName, &BranchName),
) -> Result<Sha, String> {
    let name = format!("refs/remotes/{remote}/{branch}");
    let in_checkout = user.resolve_commit(&name).await.ok().flatten();
    let known = match (fetched, in_checkout) {
        (Some(fetched), in_checkout) => fetched.tip(branch, in_checkout),
        (None, Some(tip)) => KnownTip::At(tip),
        (None, None) => match of_trains {
            Some(repo) => match repo.resolve_commit(&name).await.ok().flatten() {
                Some(tip) => KnownTip::At(tip),
                None => KnownTip::NeverFetched,
            },
            None => KnownTip::NeverFetched,
        },
    };
    match known {
        KnownTip::At(tip) => Ok(tip),
        KnownTip::Gone => {
            Err(format!("'{remote}' had no branch {branch} when it was fetched last"))
        }
        KnownTip::NeverFetched => Err(format!("the branch {branch} of '{remote}' was not fetched")),
    }
}
