//! `wf close`: archives a workstream.

use std::path::Path;

use clap::Args;
use model::id::{BranchName, WorkstreamId};
use serde_json::json;

use super::App;
use crate::cli::Which;
use crate::exit::{OrExit, Outcome, WfExit};
use crate::flow::archive::{CloseMode, close};
use crate::flow::interrupted::{FinishedChange, finish_interrupted};
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
    let dirs = app.dirs()?;
    if let Some(typed) = &which.id {
        let id = WorkstreamId::parse(typed).or_exit(WfExit::Config)?;
        let product = open_product(&dirs).await?;
        let finished = finish_interrupted(&dirs, &product, &id).await?;
        if let Some(FinishedChange::Closed { branch, archive }) = finished {
            return show_closed(app, &id, &branch, &archive);
        }
    }
    let mut workstream = app.workstream(&dirs, which)?;
    let product = open_product(&dirs).await?;
    let mode = if *force { CloseMode::Forced } else { CloseMode::Checked };
    let archive = close(&dirs, &product, &mut workstream, mode).await?;
    show_closed(app, &workstream.meta.id, &workstream.meta.branch, &archive)
}

fn show_closed(app: &App, id: &WorkstreamId, branch: &BranchName, archive: &Path) -> Outcome {
    app.ui.line(&format!("Closed workstream: {id}"));
    app.ui.line(&format!("  Archived to: {}", archive.display()));
    app.ui.line(&format!("  Branch kept: {branch}"));
    app.ui.document(&json!({"workstream": id, "archive": archive, "branch": branch}));
    Ok(WfExit::Success)
}
