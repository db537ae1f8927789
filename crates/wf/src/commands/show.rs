//! `wf show`: one run, with what is known about it.

use serde_json::json;

use super::App;
use crate::cli::RunArg;
use crate::disk::event_log::describe_events;
use crate::disk::run_dir::{REVIEW, SUMMARY};
use crate::disk::{load_result, names_in, read_optional};
use crate::exit::{Outcome, WfExit};

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
    app.ui.result("directory", &dir.display().to_string());
    app.ui.result("files", &files.join(" "));
    if let Some(events) = events {
        app.ui.result("events", &events);
    }
    Ok(WfExit::Success)
}
