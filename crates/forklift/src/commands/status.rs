//! `forklift status`: all forks that have runs, on one screen.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

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
use crate::flow::run::final_verdict;
use crate::rules::next_step::next_command;

/// A fork and its newest run.
#[derive(Debug, Serialize)]
struct ForkStatus {
    fork: PathBuf,
    branch: BranchName,
    /// Commits of upstream that the fork lacks, by what was fetched last; `None` if the fork is gone.
    behind: Option<usize>,
    run: String,
    /// `None` while the run is not finished.
    verdict: Option<serde_json::Value>,
    words: String,
    /// Pull request, or branch, of the newest publication.
    published: Option<String>,
    next: String,
}

pub(crate) fn cmd_status(ui: &Ui) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    let rows = block_on(observe_forks(&places.runs))?;
    if ui.is_json() {
        ui.document(&rows);
    } else if rows.is_empty() {
        ui.line("No fork has a run yet. Start one in a checkout of your fork with: forklift");
    } else {
        show(ui, &rows);
    }
    Ok(ForkliftExit::Success)
}

/// Every fork and branch, that of the newest run first.
async fn observe_forks(runs: &Path) -> Result<Vec<ForkStatus>, Failure> {
    let mut rows: Vec<ForkStatus> = Vec::new();
    let dirs = run_dir::list(runs).or_machine()?.into_iter();
    let mut runs: Vec<_> =
        dirs.filter_map(|dir| Some((ForkRunRecord::load(&dir).ok()?, dir))).collect();
    // The names of two forks' runs say nothing about which is newer within a second.
    runs.sort_by_key(|(record, _)| Reverse(record.started_at));
    for (record, dir) in runs {
        let Fork { path, branch, .. } = &record.fork;
        let known = rows.iter_mut().find(|row| row.fork == *path && row.branch == *branch);
        let published = record.publication.as_ref().filter(|sent| sent.pushed).map(where_to);
        match known {
            // The newest run comes first; an older one may still have the newest publication.
            Some(row) if row.published.is_none() && record.withdraws.is_none() => {
                row.published = published;
            }
            Some(_) => {}
            None => rows.push(fork_status(&record, dir.is_closed(), published).await),
        }
    }
    Ok(rows)
}

async fn fork_status(
    record: &ForkRunRecord,
    is_closed: bool,
    published: Option<String>,
) -> ForkStatus {
    let behind = count_behind(&record.fork).await;
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
        words: verdict.as_ref().map_or("not finished", |verdict| verdict.word()).to_owned(),
        verdict: verdict.map(|verdict| serde_json::json!(verdict)),
        run,
        published,
        next,
    }
}

async fn count_behind(fork: &Fork) -> Option<usize> {
    let repo = find_repo(&fork.path).await.ok()?;
    let tip = async |remote: &RemoteName, branch: &BranchName| -> Option<Sha> {
        repo.resolve_commit(&format!("refs/remotes/{remote}/{branch}")).await.ok()?
    };
    let ours = tip(&fork.remotes.origin, &fork.branch).await?;
    let theirs = tip(&fork.remotes.upstream, fork.upstream_branch()).await?;
    repo.count_commits(&theirs, &ours).await.ok()
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
            Some(behind) => ui.result("behind", &format!("by {behind}, as last fetched")),
            None => ui.result("behind", "unknown: the fork or its remotes are gone"),
        }
        ui.result("last run", &format!("{}: {}", row.run, row.words));
        if let Some(published) = &row.published {
            ui.result("published", published);
        }
        ui.result("next", &row.next);
    }
}
