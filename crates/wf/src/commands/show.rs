//! `wf show`: one run, with what is known about it.

use std::path::Path;
use std::time::Duration;

use engine::box_dir::BoxDir;
use serde_json::json;
use shell::agent_facts::{AgentFacts, render_duration};

use super::App;
use crate::cli::RunArg;
use crate::disk::event_log::describe_events;
use crate::disk::run_dir::{REVIEW, SUMMARY};
use crate::disk::{load_result, names_in, read_optional};
use crate::exit::{Outcome, WfExit, WfResult};
use crate::rules::result::Timestamps;

/// Shows it; as JSON, its result and its files.
pub(crate) fn cmd_show(app: &App, arg: &RunArg) -> Outcome {
    let dirs = app.dirs()?;
    let dir = app.run_dir(&dirs, arg)?;
    let result = load_result(&dir)?;
    let files = names_in(&dir)?;
    let events = describe_events(&dir)?;
    if app.ui.is_json() {
        let review = read_optional(&dir.join(REVIEW))?;
        let review: Option<serde_json::Value> =
            review.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        app.ui.document(&json!({
            "path": dir, "result": result, "review": review, "files": files, "events": events,
        }));
        return Ok(WfExit::Success);
    }
    match read_optional(&dir.join(SUMMARY))? {
        Some(page) => app.ui.page(&String::from_utf8_lossy(&page)),
        None => app
            .ui
            .line("The run has no summary: it is active, or its process died; wf run finishes it"),
    }
    app.ui.line("");
    if let Some(result) = &result {
        show_times(app, &result.timestamps);
    }
    show_agents(app, &dir)?;
    app.ui.result("directory", &dir.display().to_string());
    app.ui.result("files", &files.join(" "));
    if let Some(events) = events {
        app.ui.result("events", &events);
    }
    Ok(WfExit::Success)
}

/// Times in the zone of this machine; the record has them in UTC.
fn show_times(app: &App, times: &Timestamps) {
    let started = times.started.parse().map_or(times.started.clone(), host::clock::local);
    app.ui.result("started", &started);
    let millis =
        Duration::try_from_secs_f64(times.duration_seconds).unwrap_or_default().as_millis();
    app.ui.result("took", &render_duration(u64::try_from(millis).unwrap_or(0)));
}

/// Time, tokens and cost of each agent of the run, by the box that it worked in.
fn show_agents(app: &App, dir: &Path) -> WfResult<()> {
    let boxes = dir.join("boxes");
    for name in names_in(&boxes)? {
        let place = BoxDir::new(boxes.join(&name));
        let (Ok(Some(exit)), Ok(provider)) =
            (place.load_exit(), std::fs::read_to_string(place.provider()))
        else {
            continue;
        };
        let facts = AgentFacts { exit: Some(&exit), ..AgentFacts::default() };
        let time = render_duration(exit.wall_ms);
        let parts = [Some(format!("{} for {time}", provider.trim())), facts.tokens(), facts.cost()];
        app.ui.result(&name, &parts.into_iter().flatten().collect::<Vec<_>>().join("; "));
    }
    Ok(())
}
