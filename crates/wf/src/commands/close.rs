//! `wf close`: archives a workstream.

use model::exit::WfExit;
use serde_json::json;

use super::App;
use crate::cli::Which;
use crate::exit::Outcome;
use crate::flow::archive::{CloseMode, close};
use crate::flow::product::open_product;

/// Closes it; its branch stays, and the message says so.
pub(crate) async fn run(app: &App, which: &Which, force: bool) -> Outcome {
    let dirs = app.dirs()?;
    let mut workstream = app.workstream(&dirs, which)?;
    let product = open_product(&dirs).await?;
    let mode = if force { CloseMode::Forced } else { CloseMode::Checked };
    let archive = close(&dirs, &product, &mut workstream, mode).await?;
    let meta = &workstream.meta;
    app.ui.line(&format!("Closed workstream: {}", meta.id));
    app.ui.line(&format!("  Archived to: {}", archive.display()));
    app.ui.line(&format!("  Branch kept: {}", meta.branch));
    app.ui.document(&json!({"workstream": meta.id, "archive": archive, "branch": meta.branch}));
    Ok(WfExit::Success)
}
