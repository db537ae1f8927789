//! `wf close`: archives a workstream.

use clap::Args;
use serde_json::json;

use super::App;
use crate::cli::Which;
use crate::exit::{Outcome, WfExit};
use crate::flow::archive::{CloseMode, close};
use crate::flow::product::open_product;

/// Archive a workstream: its worktree goes, its branch stays
#[derive(Debug, Args)]
pub(crate) struct CloseArgs {
    #[command(flatten)]
    which: Which,
    /// Close it although it is not complete, and discard what is not committed
    #[arg(long)]
    force: bool,
}

pub(crate) async fn cmd_close(app: &App, CloseArgs { which, force }: &CloseArgs) -> Outcome {
    let (dirs, mut workstream) = app.open(which)?;
    let product = open_product(&dirs).await?;
    let mode = if *force { CloseMode::Forced } else { CloseMode::Checked };
    let archive = close(&dirs, &product, &mut workstream, mode).await?;
    let meta = &workstream.meta;
    app.ui.line(&format!("Closed workstream: {}", meta.id));
    app.ui.line(&format!("  Archived to: {}", archive.display()));
    app.ui.line(&format!("  Branch kept: {}", meta.branch));
    app.ui.document(&json!({"workstream": meta.id, "archive": archive, "branch": meta.branch}));
    Ok(WfExit::Success)
}
