//! `wf open`: opens a closed workstream again.

use clap::Args;
use model::id::WorkstreamId;
use serde_json::json;

use super::App;
use crate::exit::{OrExit, Outcome, WfExit};
use crate::flow::archive::open;
use crate::flow::product::open_product;

/// Open a closed workstream again: its folder, and a worktree of its branch
#[derive(Debug, Args)]
pub(crate) struct OpenArgs {
    /// The closed workstream; of several of this name, the one that was closed last
    id: String,
}

pub(crate) async fn cmd_open(app: &App, OpenArgs { id }: &OpenArgs) -> Outcome {
    let dirs = app.dirs()?;
    let id = WorkstreamId::parse(id).or_exit(WfExit::Config)?;
    let product = open_product(&dirs).await?;
    let (workstream, warnings) = open(&dirs, &product, &id).await?;
    for warning in warnings {
        app.ui.warn(&warning);
    }
    let meta = &workstream.meta;
    app.ui.line(&format!("Opened workstream: {id}"));
    app.ui.line(&format!("  Worktree: {}", meta.worktree.display()));
    app.ui.line(&format!("  Status: {}", meta.status));
    app.ui.document(&json!({"workstream": id, "meta": meta}));
    app.ui.status(&format!("Bring it up to date: wf update {id}"));
    Ok(WfExit::Success)
}
