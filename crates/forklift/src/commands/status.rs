//! `forklift status`: all forks that are synced, on one screen.

use std::path::{Path, PathBuf};

use clap::Args;
use model::exit::ForkliftExit;
use model::id::BranchName;
use shell::Ui;

use super::{ForkliftDirs, block_on};
use crate::exit::{Failure, Outcome};
use crate::flow::attempt::AttemptStore;
use crate::flow::fork_status::{ForkStatus, observe_forks};
use crate::rules::words::counted;

/// Show every fork that is synced: how far behind it is, its last good sync, what blocks it, and what to do next
///
/// A sync is good if it published all of its target or found nothing to do. One that failed before it had a run, as without
/// network, is shown as well.
///
/// The status is 3 if a fork is overdue: two syncs in a row ended without a result although upstream has more, or before they
/// could look; or it cannot be told what the fork lacks; or with --max-days no sync was good for so long. A timer that runs it
/// tells about syncs that fail or have stopped.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Days without a good sync after which a fork is overdue
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    max_days: Option<i64>,
    /// Leave a fork out from now on, until it is synced again: one that was moved or is kept no longer
    #[arg(long, value_name = "DIR", conflicts_with = "max_days")]
    forget: Option<PathBuf>,
    /// Leave only this branch of the fork out, until a sync asks for it again
    #[arg(long, value_name = "BRANCH", value_parser = BranchName::parse, requires = "forget")]
    branch: Option<BranchName>,
}

pub(crate) fn cmd_status(ui: &Ui, args: &StatusArgs) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    let (rows, unreadable) = block_on(observe_forks(&places, args.max_days))?;
    if let Some(fork) = &args.forget {
        return forget(ui, fork, args.branch.as_ref(), &rows);
    }
    for path in &unreadable {
        ui.warn(&format!("{} cannot be read: syncs that failed may be missing", path.display()));
    }
    if ui.is_json() {
        ui.document(&rows);
    } else if rows.is_empty() {
        ui.line("No fork has a run yet. Start one in a checkout of your fork with: forklift");
    } else {
        show(ui, &rows);
    }
    let is_overdue = rows.iter().any(|row| row.overdue.is_some()) || !unreadable.is_empty();
    Ok(if is_overdue { ForkliftExit::NotIntegrated } else { ForkliftExit::Success })
}

/// Leaves a fork out, or one of its branches, by its folder as it is shown.
fn forget(ui: &Ui, fork: &Path, branch: Option<&BranchName>, rows: &[ForkStatus]) -> Outcome {
    let is_meant = |row: &ForkStatus| {
        row.fork == fork && branch.is_none_or(|branch| row.branch.as_ref() == Some(branch))
    };
    let words = branch.map_or_else(String::new, |branch| format!(" ({branch})"));
    if !rows.iter().any(is_meant) {
        let text = format!("no fork is shown as {}{words}", fork.display());
        return Err(Failure::usage(text).with_remedy("see all with: forklift status"));
    }
    AttemptStore::from_env()?.update(fork, |log| match branch {
        Some(branch) => log.forget_branch(branch),
        None => log.forget(),
    })?;
    ui.result("forgotten", &format!("{}{words}, until it is synced again", fork.display()));
    Ok(ForkliftExit::Success)
}

/// Shows one block for each fork: a table of so many columns would not fit a window.
fn show(ui: &Ui, rows: &[ForkStatus]) {
    for (number, row) in rows.iter().enumerate() {
        if number > 0 {
            ui.line("");
        }
        let branch = row.branch.as_ref().map_or_else(String::new, |branch| format!(" ({branch})"));
        ui.result("fork", &format!("{}{branch}", row.fork.display()));
        match row.behind {
            Some(0) => ui.result("behind", "no, as last fetched"),
            Some(behind) => {
                let days =
                    row.behind_days.map_or_else(String::new, |days| format!(", {days} days"));
                let commits = counted(behind, "commit");
                ui.result("behind", &format!("by {commits}{days}, as last fetched"));
            }
            None => {
                let why = row.behind_unknown.as_deref().unwrap_or("no reason is known");
                ui.result("behind", &format!("unknown: {why}"));
            }
        }
        match &row.run {
            Some(run) => ui.result("last run", &format!("{run}: {}", row.words)),
            None => ui.result("last run", &row.words),
        }
        match &row.last_good {
            Some(good) => {
                let day = good.at.map_or_else(
                    || "at an unknown time (the clock was ahead)".to_owned(),
                    |at| at.strftime("%Y-%m-%d").to_string(),
                );
                let run = good.run.as_ref().map_or_else(String::new, |run| format!(", {run}"));
                ui.result("last good", &format!("{day}{run}"));
            }
            // Runs are removed, and of attempts only the newest are kept.
            None => ui.result("last good", "none on record"),
        }
        if let Some(overdue) = &row.overdue {
            ui.result("overdue", overdue);
        }
        if let Some(blocked) = &row.blocked {
            ui.result("blocked", blocked);
        }
        if let Some(published) = &row.published {
            // What became of a pull request since is known to its forge alone.
            let day = row.published_at.map(|at| at.strftime("%Y-%m-%d").to_string());
            let day = day.map_or_else(String::new, |day| format!(", on {day}"));
            ui.result("published", &format!("{published}{day}"));
        }
        ui.result("next", &row.next);
    }
}
