//! `wf prune`: removes superseded copies of failed runs. Their records stay.

use clap::Args;
use model::error_chain;
use serde_json::json;

use super::App;
use crate::disk::{Implemented, ProjectDirs, StateFile, list_runs, load_result};
use crate::exit::{Outcome, WfExit, WfResult};
use crate::flow::stage::{has_copy, remove_copy};
use crate::rules::prune::{CopyVerdict, RunCopy, judge_copy};
use crate::rules::result::RunResult;

/// Remove the copies that failed runs left, once their micro-commit is accepted; without --apply only name them
#[derive(Debug, Args)]
pub(crate) struct PruneCopiesArgs {
    /// Really remove them
    #[arg(long)]
    apply: bool,
}

pub(crate) async fn cmd_prune(app: &App, args: &PruneCopiesArgs) -> Outcome {
    let apply = args.apply;
    let dirs = app.dirs()?;
    let _lock = dirs.lock_global("prune").await?;
    let (left, results) = observe(app, &dirs)?;
    let mut rows = Vec::new();
    for run in &left {
        let fate = judge_copy(run, &results);
        let word = match (fate, apply) {
            (CopyVerdict::Superseded, true) => {
                remove_copy(&dirs.runs_dir().join(&run.name))?;
                "Removed the copy of"
            }
            (CopyVerdict::Superseded, false) => "Would remove the copy of",
            (CopyVerdict::OnlyCopy | CopyVerdict::InUse, _) => "Kept the copy of",
        };
        app.ui.line(&format!("{word} {}: {}", run.name, fate.reason()));
        let removed = apply && fate == CopyVerdict::Superseded;
        rows.push(json!({"run": run.name, "fate": fate, "removed": removed}));
    }
    if left.is_empty() {
        app.ui.line("No run has a copy left.");
    } else if !apply {
        app.ui.status("Nothing was changed; remove what can go: --apply");
    }
    app.ui.document(&rows);
    Ok(WfExit::Success)
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
