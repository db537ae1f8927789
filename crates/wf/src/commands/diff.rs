//! `wf diff`: what a run changed, as the reviewer saw it.

use serde_json::json;

use super::App;
use crate::cli::RunArg;
use crate::disk::read_optional;
use crate::disk::run_dir::DIFF;
use crate::exit::{Failure, Outcome, WfExit};

pub(crate) fn cmd_diff(app: &App, arg: &RunArg) -> Outcome {
    let dirs = app.dirs()?;
    let dir = app.run_dir(&dirs, arg)?;
    let patch = read_optional(&dir.join(DIFF))?.ok_or_else(|| {
        Failure::usage(format!("{} has no diff: it ended before the review", dir.display()))
    })?;
    let patch = String::from_utf8_lossy(&patch);
    if app.ui.is_json() {
        app.ui.document(&json!({"run": dir, "diff": patch}));
    } else {
        app.ui.page(&patch);
    }
    Ok(WfExit::Success)
}
