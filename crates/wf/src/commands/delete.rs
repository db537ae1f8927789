//! `wf delete`: shows what would be deleted, and deletes it with `--confirm`.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use host::git::WorktreeRepo;
use model::id::{BranchName, WorkstreamId};
use serde_json::json;

use super::App;
use crate::commands::complete::workstream_ids;
use crate::disk::{PendingChange, ProjectDirs, RemoteBranchPolicy, StateFile, Workstream};
use crate::exit::{OrExit, Outcome, WfExit, WfResult};
use crate::flow::archive::{Deleted, RemoteBranchState, delete, observe_remote};
use crate::flow::interrupted::{FinishedChange, finish_interrupted};
use crate::flow::product::open_product;
use crate::flow::remains::Remains;

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
    let dirs = app.dirs()?;
    let id = WorkstreamId::parse(&args.id).or_exit(WfExit::Config)?;
    let policy =
        if args.keep_remote { RemoteBranchPolicy::Keep } else { RemoteBranchPolicy::Delete };
    let is_confirmed = args.confirm || args.yes;
    let product = open_product(&dirs).await?;
    if is_confirmed {
        match finish_interrupted(&dirs, &product, &id).await? {
            Some(FinishedChange::Deleted { branch, deleted }) => {
                return show_deleted(app, &id, &branch, &deleted);
            }
            Some(FinishedChange::NewUndone) => {
                app.ui.line(&format!("Took back the workstream {id}, which was half made"));
                app.ui.document(&json!({"workstream": id, "deleted": null}));
                return Ok(WfExit::Success);
            }
            Some(
                FinishedChange::Closed { .. }
                | FinishedChange::Created
                | FinishedChange::Opened
                | FinishedChange::Nothing,
            )
            | None => {}
        }
    } else if PendingChange::path(&dirs, &id).exists() {
        app.ui.warn(&format!("a command on {id} was interrupted; --confirm finishes it"));
    }
    if let Some(remains) = Remains::observe(&dirs, &product, &id).await? {
        return delete_remains(app, &dirs, &product, (&id, &remains), is_confirmed).await;
    }
    let workstream = dirs.find_workstream(id.as_str())?;
    if !is_confirmed {
        return preview(app, &product, &workstream, policy).await;
    }
    let deleted = delete(&dirs, &product, &workstream, policy).await?;
    show_deleted(app, &id, &workstream.meta.branch, &deleted)
}

fn show_deleted(app: &App, id: &WorkstreamId, branch: &BranchName, deleted: &Deleted) -> Outcome {
    for warning in &deleted.warnings {
        app.ui.warn(warning);
    }
    app.ui.line(&format!("Deleted workstream: {id}"));
    if let Some(tip) = &deleted.tip {
        app.ui.line(&format!("  Branch {branch} was at {tip}"));
    }
    if deleted.remote_deleted {
        app.ui.line(&format!("  Branch {branch} deleted on origin"));
    }
    app.ui.document(&json!({"workstream": id, "deleted": deleted}));
    Ok(WfExit::Success)
}

/// Shows or removes what is left of a workstream without meta.env.
async fn delete_remains(
    app: &App,
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    (id, remains): (&WorkstreamId, &Remains),
    is_confirmed: bool,
) -> Outcome {
    if is_confirmed {
        remains.remove(dirs, product, id).await?;
        app.ui.line(&format!("Deleted what was left of {id}"));
    } else {
        app.ui.line(&format!("{id} has no meta.env; this will permanently delete what is left"));
    }
    let branch = remains.merged_branch.as_ref().map(|(branch, _)| branch.to_string());
    let folders = [("Worktree", &remains.worktree), ("Folder", &remains.folder)];
    for (what, path) in folders {
        if let Some(path) = path {
            app.ui.line(&format!("  {what}: {}", path.display()));
        }
    }
    if let Some(branch) = &branch {
        app.ui.line(&format!("  Branch: {branch}"));
    }
    if !is_confirmed {
        app.ui.line("Use --confirm to proceed");
    }
    app.ui.document(&json!({"workstream": id, "remains": remains, "confirmed": is_confirmed}));
    Ok(WfExit::Success)
}

async fn preview(
    app: &App,
    product: &WorktreeRepo,
    workstream: &Workstream,
    policy: RemoteBranchPolicy,
) -> WfResult<WfExit> {
    let meta = &workstream.meta;
    let branches = [&meta.branch, &meta.base_branch];
    let remote = match policy {
        RemoteBranchPolicy::Keep => "left alone".to_owned(),
        RemoteBranchPolicy::Delete => match observe_remote(product, branches).await? {
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
