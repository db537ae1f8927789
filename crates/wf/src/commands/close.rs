//! `wf close`: archives a workstream.

use model::exit::WfExit;
use serde_json::json;

use super::App;
use crate::cli::Which;
use crate::exit::Outcome;
use crate::flow::archive::{Care, close};
use crate::flow::product::open_product;

/// Closes it; its branch stays, and the message says so (D114).
pub(crate) async fn run(app: &App, which: &Which, force: bool) -> Outcome {
    let site = app.site()?;
    let mut workstream = app.workstream(&site, which)?;
    let product = open_product(&site).await?;
    let care = if force { Care::Forced } else { Care::Careful };
    let archive = close(&site, &product, &mut workstream, care).await?;
    let meta = &workstream.meta;
    app.ui.line(&format!("Closed workstream: {}", meta.id));
    app.ui.line(&format!("  Archived to: {}", archive.display()));
    app.ui.line(&format!("  Branch kept: {}", meta.branch));
    app.ui.document(&json!({"workstream": meta.id, "archive": archive, "branch": meta.branch}));
    Ok(WfExit::Success)
}
