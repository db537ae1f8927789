//! `wf show`: one run, with what is known about it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::box_dir::BoxDir;
use serde_json::json;
use shell::agent_facts::{AgentFacts, render_duration};

use super::App;
use crate::cli::{RunArg, Which};
use crate::disk::event_log::describe_events;
use crate::disk::run_dir::{REVIEW, SUMMARY, list_boxes};
use crate::disk::{OpenRun, ProjectDirs, load_result, names_in, read_optional};
use crate::exit::{Outcome, WfExit, WfResult};
use crate::rules::result::Timestamps;

/// Shows it; as JSON, its result and its files.
pub(crate) fn cmd_show(app: &App, arg: &RunArg) -> Outcome {
    let dirs = app.dirs()?;
    let dir = match interrupted_dir(app, &dirs, arg)? {
        Some(dir) => dir,
        None => app.run_dir(&dirs, arg)?,
    };
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

/// The run of the workstream whose process died: it is the last one, and has no result that would name it.
fn interrupted_dir(app: &App, dirs: &ProjectDirs, arg: &RunArg) -> WfResult<Option<PathBuf>> {
    if arg.typed().is_some() {
        return Ok(None);
    }
    let workstream = app.workstream(dirs, &Which { id: arg.workstream.clone() })?;
    let run = OpenRun::load_interrupted(dirs, &workstream.meta.id)?;
    let dir = run.map(|run| dirs.runs_dir().join(run.directory));
    Ok(dir.filter(|dir| dir.is_dir()))
}

/// Times in the zone of this machine; the record has them in UTC.
fn show_times(app: &App, times: &Timestamps) {
    let started = times.started.parse().map_or(times.started.clone(), host::clock::local);
    app.ui.result("started", &started);
    let millis =
        Duration::try_from_secs_f64(times.duration_seconds).unwrap_or_default().as_millis();
    app.ui.result("took", &render_duration(u64::try_from(millis).unwrap_or(0)));
}

/// The name of a box, after that of the competitor that it belongs to.
fn box_label(dir: &Path, folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let above = folder.parent().and_then(Path::parent).filter(|above| *above != dir);
    let competitor = above.and_then(Path::file_name).map(|it| it.to_string_lossy().into_owned());
    match competitor.as_deref().and_then(|it| it.split('.').next()) {
        Some(competitor) => format!("{competitor} {name}"),
        None => name,
    }
}

/// Time, tokens and cost of each agent of the run, by the box that it worked in.
fn show_agents(app: &App, dir: &Path) -> WfResult<()> {
    for folder in list_boxes(dir)? {
        let name = box_label(dir, &folder);
        let place = BoxDir::new(folder);
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
