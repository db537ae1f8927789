//! `forklift show`: one run, with what is known about it.

use std::path::Path;

use clap::Args;
use engine::check::check_words;
use model::exit::ForkliftExit;
use run_store::run_dir::RunDir;
use serde::Serialize;
use shell::Ui;
use shell::agent_facts::render_duration;

use super::ForkliftDirs;
use super::run_name::RunNameArgs;
use super::runs::where_to;
use crate::exit::{Failure, OrExit, Outcome};
use crate::flow::earlier::published_by;
use crate::flow::record::ForkRunRecord;
use crate::flow::show::show_end;
use crate::rules::review::{ReviewPoint, review_points};
use crate::rules::run_facts::{agent_facts, continued_words};

/// Show one run
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    run: RunNameArgs,
}

/// A run's record with what follows from it.
#[derive(Serialize)]
struct ShownRun<'a> {
    #[serde(flatten)]
    meta: &'a ForkRunRecord,
    needs_look: Vec<ReviewPoint>,
}

/// Shows the run; as JSON, the whole of its metadata.
pub(crate) fn cmd_show(ui: &Ui, args: &ShowArgs, here: Option<&Path>) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    let dir = args.run.find(&places, here)?;
    let meta = ForkRunRecord::load(&dir).or_machine()?;
    if ui.is_json() {
        ui.document(&ShownRun { meta: &meta, needs_look: review_points(&meta) });
        return Ok(ForkliftExit::Success);
    }
    ui.result("fork", &meta.fork.path.display().to_string());
    ui.result("started", &host::clock::local(meta.started_at));
    if let Some(finished) = meta.finished_at {
        let millis = finished.duration_since(meta.started_at).as_millis();
        ui.result("took", &render_duration(u64::try_from(millis).unwrap_or(0)));
    }
    ui.result("base", meta.pins.base.as_str());
    ui.result("upstream", meta.pins.upstream.as_str());
    let settings = &meta.settings;
    ui.result("target", &format!("{} ({})", settings.target, settings.target_name));
    ui.result("strategy", settings.strategy.name());
    if let Some(earlier) = &meta.resumed_from {
        ui.result("goes on", &format!("from {earlier}"));
    }
    if let Some(earlier) = &meta.publishes {
        ui.result("publishes", &format!("the commit of {earlier}"));
    }
    show_agent(ui, &meta);
    for (name, command) in [("set-up", &meta.setup), ("check", &meta.check)] {
        // A failed one is shown with the verdict and its output.
        if let Some(command) = command.as_ref().filter(|command| command.passed()) {
            let line = command.command.trim_end().replace('\n', "; ");
            let seconds = command.wall_ms / 1000;
            let how = if name == "check" { check_words(command) } else { "passed".to_owned() };
            ui.result(name, &format!("{how} in {seconds} s: {line}"));
        }
    }
    match &meta.verdict {
        Some(verdict) => {
            show_end(ui, &dir, &meta, verdict);
            show_later_publication(ui, &places, &dir)?;
        }
        None => {
            ui.result("run", &dir.path().display().to_string());
            ui.result("open", &format!("not finished; go on with: forklift attach {}", dir.id()));
        }
    }
    Ok(ForkliftExit::Success)
}

/// Shows the agent with its model, time and tokens; the cost comes with the result.
fn show_agent(ui: &Ui, meta: &ForkRunRecord) {
    let Some(agent) = meta.settings.agent_name().filter(|_| meta.agent_box.is_some()) else {
        return ui.result("agent", "none was needed");
    };
    ui.result("agent", &format!("{agent} on {}", meta.settings.backend));
    agent_facts(meta).show(ui);
    if let Some(words) = continued_words(meta) {
        ui.result("in all", &words);
    }
}

/// Shows the run that published the commit of this one later, if there is one.
pub(super) fn show_later_publication(
    ui: &Ui,
    places: &ForkliftDirs,
    dir: &RunDir,
) -> Result<bool, Failure> {
    let Some(later) = published_by(&places.runs, dir.id())? else { return Ok(false) };
    let to = later.meta.publication.as_ref().map(where_to).unwrap_or_default();
    ui.result("published", &format!("{to}, by {}", later.dir.id()));
    Ok(true)
}
