//! `wf prune`: removes superseded copies of failed runs. Their records stay.

use clap::Args;
use model::error_chain;
use serde_json::json;
use shell::confirm::{ConfirmArgs, Consent};

use super::App;
use crate::disk::{Implemented, ProjectDirs, StateFile, list_runs, load_result};
use crate::exit::{Outcome, WfExit, WfResult};
use crate::flow::stage::{has_copy, remove_copy};
use crate::rules::prune::{CopyVerdict, RunCopy, judge_copy};
use crate::rules::result::RunResult;

/// Remove the copies that failed runs left, once their micro-commit is accepted
///
/// It lists the copies, asks, and removes them; --yes removes them without a question. Without a terminal and without --yes
/// nothing is removed and the status is 2.
#[derive(Debug, Args)]
pub(crate) struct PruneCopiesArgs {
    #[command(flatten)]
    confirm: ConfirmArgs,
    /// The older name of --yes
    #[arg(long, hide = true, conflicts_with = "dry_run")]
    apply: bool,
}

pub(crate) async fn cmd_prune(app: &App, args: &PruneCopiesArgs) -> Outcome {
    let confirm = ConfirmArgs { yes: args.confirm.yes || args.apply, ..args.confirm };
    let dirs = app.dirs()?;
    let _lock = dirs.lock_global("prune").await?;
    let (left, results) = observe(app, &dirs)?;
    let fates: Vec<CopyVerdict> = left.iter().map(|run| judge_copy(run, &results)).collect();
    let old = fates.iter().filter(|fate| **fate == CopyVerdict::Superseded).count();
    let flags = confirm.consent();
    if flags != Some(Consent::Given) {
        report(app, &left, &fates, Consent::DryRun);
    }
    let consent = match old {
        0 => flags.unwrap_or(Consent::Given),
        _ => confirm.ask(&app.ui, &format!("remove {}?", counted(old, "copy", "copies")))?,
    };
    if consent == Consent::Given {
        for (run, fate) in left.iter().zip(&fates) {
            if *fate == CopyVerdict::Superseded {
                remove_copy(&dirs.runs_dir().join(&run.name))?;
            }
        }
        if old > 0 || flags == Some(Consent::Given) {
            report(app, &left, &fates, Consent::Given);
        }
    }
    let row = |(run, fate): (&RunCopy, &CopyVerdict)| {
        let removed = consent == Consent::Given && *fate == CopyVerdict::Superseded;
        json!({"run": run.name, "fate": fate, "removed": removed})
    };
    app.ui.document(&left.iter().zip(&fates).map(row).collect::<Vec<_>>());
    Ok(if old == 0 { WfExit::Success } else { consent.conclude(&app.ui, WfExit::Success) })
}

fn report(app: &App, left: &[RunCopy], fates: &[CopyVerdict], consent: Consent) {
    for (run, fate) in left.iter().zip(fates) {
        let word = match (fate, consent) {
            (CopyVerdict::Superseded, Consent::Given) => "Removed the copy of",
            (CopyVerdict::Superseded, _) => "Would remove the copy of",
            (CopyVerdict::OnlyCopy | CopyVerdict::InUse, _) => "Kept the copy of",
        };
        app.ui.line(&format!("{word} {}: {}", run.name, fate.reason()));
    }
    if left.is_empty() {
        app.ui.line("No run has a copy left.");
    }
}

fn counted(number: usize, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}

/// Reads the runs of this project that have a copy, and all results. A run with an unreadable result is kept.
fn observe(app: &App, dirs: &ProjectDirs) -> WfResult<(Vec<RunCopy>, Vec<RunResult>)> {
    let root = dirs.runs_dir();
    let awaited = awaited_runs(dirs)?;
    let (mut left, mut results) = (Vec::new(), Vec::new());
    for name in list_runs(&root)? {
        let path = root.join(&name);
        let result = load_result(&path).unwrap_or_else(|fault| {
            app.ui.warn(&error_chain(&fault));
            None
        });
        // Projects may share an ops directory.
        let is_ours =
            result.as_ref().is_none_or(|result| result.project == dirs.project.name.as_str());
        if !is_ours {
            continue;
        }
        if has_copy(&path) {
            let is_awaited = awaited.contains(&name);
            left.push(RunCopy { name, result: result.clone(), is_awaited });
        }
        results.extend(result);
    }
    Ok((left, results))
}

fn awaited_runs(dirs: &ProjectDirs) -> WfResult<Vec<String>> {
    let (workstreams, _) = dirs.load_workstreams()?;
    let mut runs = Vec::new();
    for workstream in workstreams {
        let waiting = Implemented::load(dirs, &workstream.meta.id)?;
        runs.extend(waiting.map(|implemented| implemented.run));
    }
    Ok(runs)
}
