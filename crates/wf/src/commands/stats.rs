//! `wf stats`: what runs took, by stage and workstream.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use engine::box_dir::BoxDir;
use serde_json::json;
use shell::agent_facts::render_duration;

use super::App;
use crate::commands::complete::workstream_ids;
use crate::disk::run_dir::list_boxes;
use crate::disk::{list_runs, load_result};
use crate::exit::{Outcome, WfExit, WfResult};
use crate::rules::pipeline::RunStage;
use crate::rules::result::{RunResult, StageStatus};
use crate::rules::stats::{RunFigures, StageSample, StatsBy, StatsRow, render_plot, sum_up, total};

/// Show time, tokens and cost of runs by stage and workstream
///
/// Tokens are the host's own count of what went through its model route; an agent that talks to its model by another way has
/// none. Cost needs prices in the configuration.
#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// Only this workstream
    #[arg(value_name = "ID", add = ArgValueCandidates::new(workstream_ids))]
    id: Option<String>,
    /// What a row is about
    #[arg(long, value_enum, default_value_t)]
    by: StatsBy,
    /// Draw the times as bars
    #[arg(long)]
    plot: bool,
}

/// Shows them. Runs of closed workstreams count too, as long as their folders are there.
pub(crate) fn cmd_stats(app: &App, args: &StatsArgs) -> Outcome {
    let dirs = app.dirs()?;
    let (mut samples, mut runs) = (Vec::new(), 0);
    for name in list_runs(&dirs.runs_dir())? {
        let dir = dirs.runs_dir().join(&name);
        let Ok(Some(result)) = load_result(&dir) else { continue };
        let is_wanted = args.id.as_ref().is_none_or(|id| *id == result.workstream);
        if result.project == dirs.project.name.as_str() && is_wanted {
            runs += 1;
            samples.extend(observe_run(&dir, &result)?);
        }
    }
    let stages: Vec<&str> = RunStage::ALL.iter().map(|stage| stage.key()).collect();
    let rows = sum_up(&samples, args.by, &stages);
    let sum = total(&rows, runs);
    app.ui.document(&json!({"rows": rows, "total": sum}));
    if app.ui.is_json() {
        return Ok(WfExit::Success);
    }
    if rows.is_empty() {
        app.ui.line("No runs yet. Start one: wf run ID");
        return Ok(WfExit::Success);
    }
    match args.plot {
        true => app.ui.page(&render_plot(&rows, render_seconds)),
        false => show_table(app, &rows, &sum, args.by),
    }
    Ok(WfExit::Success)
}

fn show_table(app: &App, rows: &[StatsRow], sum: &RunFigures, by: StatsBy) {
    let head: &[&str] = match by {
        StatsBy::Both => &["WORKSTREAM", "STAGE"],
        StatsBy::Stage => &["STAGE"],
        StatsBy::Workstream => &["WORKSTREAM"],
    };
    let names = |workstream: &str, stage: &str| match by {
        StatsBy::Both => vec![workstream.to_owned(), stage.to_owned()],
        StatsBy::Stage => vec![stage.to_owned()],
        StatsBy::Workstream => vec![workstream.to_owned()],
    };
    let cells = |row: &StatsRow| {
        [names(&row.workstream, &row.stage), figures(&row.figures, Some(row.figures.failed))]
            .concat()
    };
    let mut table: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let first = match by {
        StatsBy::Both | StatsBy::Workstream => names("total", ""),
        StatsBy::Stage => names("", "total"),
    };
    table.push([first, figures(sum, None)].concat());
    let head = [head, &["RUNS", "NOT PASSED", "TIME", "TOKENS READ", "WRITTEN", "COST"]].concat();
    app.ui.table(&head, table);
}

fn figures(of: &RunFigures, failed: Option<usize>) -> Vec<String> {
    let count = |number: u64| if number == 0 { String::new() } else { number.to_string() };
    let failed = failed.filter(|failed| *failed > 0).map(|failed| failed.to_string());
    let usd = if of.usd > 0.0 { format!("{:.2} USD", of.usd) } else { String::new() };
    vec![
        of.runs.to_string(),
        failed.unwrap_or_default(),
        render_seconds(of.seconds),
        count(of.tokens_read),
        count(of.tokens_written),
        usd,
    ]
}

fn render_seconds(seconds: f64) -> String {
    let millis = Duration::try_from_secs_f64(seconds).unwrap_or_default().as_millis();
    render_duration(u64::try_from(millis).unwrap_or(u64::MAX))
}

/// The stages of a run with the figures of the agents that worked in them.
fn observe_run(dir: &Path, result: &RunResult) -> WfResult<Vec<StageSample>> {
    let sample = |stage: &str, figures| StageSample {
        workstream: result.workstream.clone(),
        stage: stage.to_owned(),
        figures,
    };
    let stages = result.stages.iter().map(|(stage, record)| {
        let is_passed = matches!(record.status, StageStatus::Passed | StageStatus::Skipped);
        let (failed, seconds) = (usize::from(!is_passed), record.duration_seconds);
        sample(stage, RunFigures { runs: 1, failed, seconds, ..RunFigures::default() })
    });
    let mut samples: Vec<StageSample> = stages.collect();
    for folder in list_boxes(dir)? {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Ok(Some(exit)) = BoxDir::new(folder).load_exit() else { continue };
        let Some(usage) = exit.egress.map(|egress| egress.usage) else { continue };
        let tokens_read = usage.input + usage.cache_read + usage.cache_write;
        let (tokens_written, usd) = (usage.output, usage.usd);
        let figures = RunFigures { tokens_read, tokens_written, usd, ..RunFigures::default() };
        samples.push(sample(stage_of(&name), figures));
    }
    Ok(samples)
}

/// The stage of a box, by its name.
fn stage_of(name: &str) -> &str {
    match name {
        "implement-anew" => RunStage::Implement.key(),
        name if name.starts_with("test-") => RunStage::Test.key(),
        name => name.split('.').next().unwrap_or(name),
    }
}
