//! `wf log`: the runs of a workstream, newest first, or the output of the newest one.

use clap::Args;
use serde_json::json;

use super::App;
use super::follow::follow;
use crate::cli::Which;
use crate::disk::{OpenRun, list_runs, load_result};
use crate::exit::{Outcome, WfExit};

/// List the runs of a workstream, newest first, or follow the newest one
#[derive(Debug, Args)]
pub(crate) struct RunHistoryArgs {
    #[command(flatten)]
    which: Which,
    /// The most runs to show
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Print what the agents of the newest run print, until the run has ended
    #[arg(long, short, conflicts_with = "limit")]
    follow: bool,
}

/// Lists them. The owner of a run comes from its result, because run names cannot be parsed unambiguously.
pub(crate) fn cmd_log(app: &App, args: &RunHistoryArgs) -> Outcome {
    let (dirs, workstream) = app.open(&args.which)?;
    if args.follow {
        return follow(app, &dirs, &workstream);
    }
    let (project, id) = (dirs.project.name.as_str(), workstream.meta.id.as_str());
    let mut runs = Vec::new();
    for name in list_runs(&dirs.runs_dir())? {
        if runs.len() == args.limit {
            break;
        }
        if let Ok(Some(result)) = load_result(&dirs.runs_dir().join(&name))
            && result.project == project
            && result.workstream == id
        {
            runs.push((name, result));
        }
    }
    let interrupted = OpenRun::load_interrupted(&dirs, &workstream.meta.id)?;
    if app.ui.is_json() {
        let dead = interrupted
            .iter()
            .map(|run| json!({"run": run.directory, "result": null, "interrupted": run.stage}));
        let ended = runs.iter().map(|(name, result)| json!({"run": name, "result": result}));
        app.ui.document(&dead.chain(ended).collect::<Vec<_>>());
        return Ok(WfExit::Success);
    }
    let dead = interrupted
        .into_iter()
        .map(|run| vec![run.directory, "interrupted".to_owned(), run.stage, String::new()]);
    let ended = runs.into_iter().map(|(name, result)| {
        let stage = result.failed_stage.unwrap_or_default();
        let took = format!("{:.0} s", result.timestamps.duration_seconds);
        vec![name, result.status.word().to_owned(), stage, took]
    });
    let rows: Vec<Vec<String>> = dead.chain(ended).collect();
    app.ui.table(&["RUN", "STATUS", "STAGE", "TOOK"], rows);
    Ok(WfExit::Success)
}
