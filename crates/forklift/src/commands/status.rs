//! `forklift status`: all forks that have runs, on one screen.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use clap::Args;
use host::git::UserRepo;
use jiff::Timestamp;
use model::exit::ForkliftExit;
use model::id::{BranchName, RemoteName, Sha};
use run_store::run_dir;
use serde::Serialize;
use shell::Ui;

use super::runs::where_to;
use super::{ForkliftDirs, block_on};
use crate::exit::{Failure, OrExit, Outcome};
use crate::flow::observe::find_repo;
use crate::flow::record::{Fork, ForkRunRecord};
use crate::flow::run::{final_status, final_verdict};
use crate::rules::judge::Verdict;
use crate::rules::next_step::next_command;
use crate::rules::sync_health::{SyncFacts, SyncRun, count_missed, find_overdue};
use crate::rules::words::counted;

const DAY_SECS: i64 = 24 * 3600;

/// Show every fork that has runs: how far behind it is, its last good sync, what blocks it, and what to do next
///
/// The status is 3 if a fork is overdue: two syncs in a row ended without a result although upstream has more, or with --max-days
/// no sync was good for so long. A timer that runs it tells about syncs that fail or have stopped.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Days without a good sync after which a fork is overdue
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    max_days: Option<i64>,
}

/// A fork and its newest run.
#[derive(Debug, Serialize)]
struct ForkStatus {
    fork: PathBuf,
    branch: BranchName,
    /// Commits of upstream that the fork lacks, by what was fetched last; `None` if the fork is gone.
    behind: Option<usize>,
    /// Days since the oldest of these commits was made.
    behind_days: Option<i64>,
    /// The newest run that published or found nothing to do, and when it began.
    last_good: Option<LastGood>,
    /// Syncs in a row without a result, up to the newest.
    missed: usize,
    /// Reason why the fork is overdue.
    overdue: Option<String>,
    /// Message of the newest run, if it is the reason why nothing is published.
    blocked: Option<String>,
    run: String,
    /// `None` while the run is not finished.
    verdict: Option<serde_json::Value>,
    words: String,
    /// Pull request, or branch, of the newest publication.
    published: Option<String>,
    next: String,
}

/// A run that reached its target.
#[derive(Debug, Clone, Serialize)]
struct LastGood {
    run: String,
    at: Timestamp,
}

pub(crate) fn cmd_status(ui: &Ui, args: &StatusArgs) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    let rows = block_on(observe_forks(&places.runs, args.max_days))?;
    if ui.is_json() {
        ui.document(&rows);
    } else if rows.is_empty() {
        ui.line("No fork has a run yet. Start one in a checkout of your fork with: forklift");
    } else {
        show(ui, &rows);
    }
    let is_overdue = rows.iter().any(|row| row.overdue.is_some());
    Ok(if is_overdue { ForkliftExit::NotIntegrated } else { ForkliftExit::Success })
}

/// Every fork and branch, that of the newest run first.
async fn observe_forks(runs: &Path, max_days: Option<i64>) -> Result<Vec<ForkStatus>, Failure> {
    let mut rows: Vec<ForkStatus> = Vec::new();
    let mut syncs: Vec<Vec<SyncRun>> = Vec::new();
    let dirs = run_dir::list(runs).or_machine()?.into_iter();
    let mut runs: Vec<_> =
        dirs.filter_map(|dir| Some((ForkRunRecord::load(&dir).ok()?, dir))).collect();
    // A fix that was landed alone is no sync.
    runs.retain(|(record, _)| record.fix.is_none());
    // The names of two forks' runs say nothing about which is newer within a second.
    runs.sort_by_key(|(record, _)| Reverse(record.started_at));
    for (record, dir) in runs {
        let Fork { path, branch, .. } = &record.fork;
        let at = rows.iter().position(|row| row.fork == *path && row.branch == *branch);
        let index = at.unwrap_or(rows.len());
        let known = at.map(|at| &mut rows[at]);
        let published = record.publication.as_ref().filter(|sent| sent.pushed).map(where_to);
        match known {
            // The newest run comes first; an older one may still have the newest publication.
            Some(row) if row.published.is_none() && record.withdraws.is_none() => {
                row.published = published;
            }
            Some(_) => {}
            None => {
                rows.push(fork_status(&record, dir.is_closed(), published).await);
                syncs.push(Vec::new());
            }
        }
        if !dir.is_closed() || record.withdraws.is_some() {
            continue;
        }
        let is_good = final_status(&record) == ForkliftExit::Success;
        syncs[index].push(SyncRun { is_good, days: days_since(record.started_at) });
        if is_good && rows[index].last_good.is_none() {
            let run = record.run.to_string();
            rows[index].last_good = Some(LastGood { run, at: record.started_at });
        }
    }
    for (row, runs) in rows.iter_mut().zip(&syncs) {
        row.missed = count_missed(runs);
        row.overdue = find_overdue(&SyncFacts { behind: row.behind, runs, max_days });
    }
    Ok(rows)
}

fn days_since(when: Timestamp) -> i64 {
    (host::clock::now().as_second() - when.as_second()).max(0) / DAY_SECS
}

async fn fork_status(
    record: &ForkRunRecord,
    is_closed: bool,
    published: Option<String>,
) -> ForkStatus {
    let (behind, behind_days) = observe_behind(&record.fork).await.unzip();
    let run = record.run.to_string();
    let verdict = is_closed.then(|| final_verdict(record));
    let next = match &verdict {
        None => format!("forklift attach {run}"),
        Some(_) if behind.is_none() => "-".to_owned(),
        Some(verdict) => next_command(record, verdict)
            .unwrap_or_else(|| format!("forklift -C {}", record.fork.path.display())),
    };
    ForkStatus {
        fork: record.fork.path.clone(),
        branch: record.fork.branch.clone(),
        behind,
        behind_days: behind_days.flatten(),
        last_good: None,
        missed: 0,
        overdue: None,
        blocked: verdict.as_ref().and_then(|verdict| blocking_message(record, verdict)),
        words: verdict.as_ref().map_or("not finished", |verdict| verdict.word()).to_owned(),
        verdict: verdict.map(|verdict| serde_json::json!(verdict)),
        run,
        published,
        next,
    }
}

/// The message of a run that did not reach its target, or could not publish.
fn blocking_message(record: &ForkRunRecord, verdict: &Verdict) -> Option<String> {
    let problem = record.publication.as_ref().and_then(|sent| sent.problem.clone());
    let problem = problem.map(|problem| format!("not published: {problem}"));
    let is_good = final_status(record) == ForkliftExit::Success;
    problem.or_else(|| (!is_good).then(|| verdict.message()))
}

/// Number of upstream's commits that the fork lacks, and the days since the oldest of them was made.
async fn observe_behind(fork: &Fork) -> Option<(usize, Option<i64>)> {
    let repo: UserRepo = find_repo(&fork.path).await.ok()?;
    let tip = async |remote: &RemoteName, branch: &BranchName| -> Option<Sha> {
        repo.resolve_commit(&format!("refs/remotes/{remote}/{branch}")).await.ok()?
    };
    let ours = tip(&fork.remotes.origin, &fork.branch).await?;
    let theirs = tip(&fork.remotes.upstream, fork.upstream_branch()).await?;
    let count = repo.count_commits(&theirs, &ours).await.ok()?;
    let oldest = repo.oldest_new_commit(&theirs, &ours).await.ok()?;
    let since = oldest.and_then(|seconds| Timestamp::from_second(seconds).ok());
    Some((count, since.map(days_since)))
}

/// Shows one block for each fork: a table of so many columns would not fit a window.
fn show(ui: &Ui, rows: &[ForkStatus]) {
    for (number, row) in rows.iter().enumerate() {
        if number > 0 {
            ui.line("");
        }
        ui.result("fork", &format!("{} ({})", row.fork.display(), row.branch));
        match row.behind {
            Some(0) => ui.result("behind", "no, as last fetched"),
            Some(behind) => {
                let days =
                    row.behind_days.map_or_else(String::new, |days| format!(", {days} days"));
                let commits = counted(behind, "commit");
                ui.result("behind", &format!("by {commits}{days}, as last fetched"));
            }
            None => ui.result("behind", "unknown: the fork or its remotes are gone"),
        }
        ui.result("last run", &format!("{}: {}", row.run, row.words));
        match &row.last_good {
            Some(good) => {
                let day = good.at.strftime("%Y-%m-%d");
                ui.result("last good", &format!("{day}, {}", good.run));
            }
            None => ui.result("last good", "never"),
        }
        if let Some(overdue) = &row.overdue {
            ui.result("overdue", overdue);
        }
        if let Some(blocked) = &row.blocked {
            ui.result("blocked", blocked);
        }
        if let Some(published) = &row.published {
            ui.result("published", published);
        }
        ui.result("next", &row.next);
    }
}
