//! `wf delete`: shows what would be deleted, and deletes it with `--confirm`.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use serde_json::json;

use super::App;
use crate::commands::complete::workstream_ids;
use crate::disk::{ProjectDirs, Workstream};
use crate::exit::{Outcome, WfExit, WfResult};
use crate::flow::archive::{RemoteBranchPolicy, RemoteBranchState, delete, observe_remote};
use crate::flow::product::open_product;

/// Delete a workstream with its worktree and branch; without --confirm only show what would go
#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// The workstream
    #[arg(add = ArgValueCandidates::new(workstream_ids))]
    id: String,
    /// Really delete it
    #[arg(long, conflicts_with = "dry_run")]
    confirm: bool,
    /// The same as --confirm
    #[arg(long, short, conflicts_with = "dry_run")]
    yes: bool,
    /// Only show what would go, as without a flag
    #[arg(long)]
    dry_run: bool,
    /// Leave the branch on origin
    #[arg(long)]
    keep_remote: bool,
}

pub(crate) async fn cmd_delete(app: &App, args: &DeleteArgs) -> Outcome {
    let DeleteArgs { id, keep_remote, .. } = args;
    let dirs = app.dirs()?;
    let workstream = dirs.find_workstream(id)?;
    let policy = if *keep_remote { RemoteBranchPolicy::Keep } else { RemoteBranchPolicy::Delete };
    if !(args.confirm || args.yes) {
        return preview(app, &dirs, &workstream, policy).await;
    }
    let product = open_product(&dirs).await?;
    let deleted = delete(&dirs, &product, &workstream, policy).await?;
    for warning in &deleted.warnings {
        app.ui.warn(warning);
    }
    app.ui.line(&format!("Deleted workstream: {id}"));
    if let Some(tip) = &deleted.tip {
        app.ui.line(&format!("  Branch {} was at {tip}", workstream.meta.branch));
    }
    if deleted.remote_deleted {
        app.ui.line(&format!("  Branch {} deleted on origin", workstream.meta.branch));
    }
    app.ui.document(&json!({"workstream": id, "deleted": deleted}));
    Ok(WfExit::Success)
}

async fn preview(
    app: &App,
    dirs: &ProjectDirs,
    workstream: &Workstream,
    policy: RemoteBranchPolicy,
) -> WfResult<WfExit> {
    let meta = &workstream.meta;
    let product = open_product(dirs).await?;
    let remote = match policy {
        RemoteBranchPolicy::Keep => "left alone".to_owned(),
        RemoteBranchPolicy::Delete => match observe_remote(&product, workstream).await? {
            RemoteBranchState::Absent => "none".to_owned(),
            RemoteBranchState::Merged => format!("{} is merged and stays", meta.branch),
            RemoteBranchState::Unmerged => {
                format!("{} is deleted on origin too (--keep-remote leaves it)", meta.branch)
            }
            RemoteBranchState::Foreign => {
                format!("{} has commits that are not here and stays", meta.branch)
            }
            RemoteBranchState::Unknown(why) => format!("could not be asked: {why}"),
        },
    };
    app.ui.line(&format!("This will permanently delete workstream {}", meta.id));
    app.ui.line(&format!("  Branch: {}", meta.branch));
    app.ui.line(&format!("  Worktree: {}", meta.worktree.display()));
    app.ui.line(&format!("  Folder: {}", workstream.dir.display()));
    app.ui.line(&format!("  Remote branch: {remote}"));
    app.ui.line("Use --confirm to proceed");
    app.ui.document(&json!({"workstream": meta.id, "branch": meta.branch, "worktree": meta.worktree, "remote": remote, "confirmed": false}));
    Ok(WfExit::Success)
}
