//! `wf diff`: what a run changed, as the reviewer saw it, or what a whole workstream changes.

use clap::Args;
use model::id::Sha;
use serde_json::json;

use super::App;
use crate::cli::{RunArg, Which};
use crate::disk::run_dir::DIFF;
use crate::disk::{ProjectDirs, Workstream, read_optional};
use crate::exit::{Failure, OrExit, Outcome, WfExit, WfResult};
use crate::flow::product::open_product;

const DIFF_CAP: usize = 64 << 20;

/// Show what a run changed, or a whole workstream
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    run: RunArg,
    /// Everything that the workstream's branch has and its base has not
    #[arg(long, conflicts_with = "run")]
    branch: bool,
}

/// Shows a diff. Where no run is named and the last one has no diff, it is that of the workstream.
pub(crate) async fn cmd_diff(app: &App, args: &DiffArgs) -> Outcome {
    let dirs = app.dirs()?;
    let which = Which { id: args.run.workstream.clone() };
    if args.branch {
        let workstream = app.workstream(&dirs, &which)?;
        let (from, to, patch) = read_branch(app, &dirs, &workstream).await?;
        return show_branch(app, &workstream, (&from, &to), &patch);
    }
    let dir = app.run_dir(&dirs, &args.run)?;
    let Some(patch) = read_optional(&dir.join(DIFF))? else {
        let message = format!("{} has no diff: it ended before the review", dir.display());
        if args.run.typed().is_some() {
            return Err(Failure::usage(message));
        }
        let workstream = app.workstream(&dirs, &which)?;
        let (from, to, patch) = read_branch(app, &dirs, &workstream).await?;
        if patch.is_empty() {
            return Err(Failure::usage(message));
        }
        app.ui.status(&format!("{message}; this is the whole workstream"));
        return show_branch(app, &workstream, (&from, &to), &patch);
    };
    let patch = String::from_utf8_lossy(&patch);
    if app.ui.is_json() {
        app.ui.document(&json!({"run": dir, "diff": patch}));
    } else {
        app.ui.page(&patch);
    }
    Ok(WfExit::Success)
}

/// Reads what the branch has and its base has not, with both ends.
async fn read_branch(
    app: &App,
    dirs: &ProjectDirs,
    workstream: &Workstream,
) -> WfResult<(Sha, Sha, String)> {
    let meta = &workstream.meta;
    let product = open_product(dirs).await?;
    let head = product.branch_tip(&meta.branch).await.or_exit(WfExit::General)?;
    let head = head.ok_or_else(|| Failure::usage(format!("there is no branch {}", meta.branch)))?;
    let base = product.branch_tip(&meta.base_branch).await.or_exit(WfExit::General)?;
    let common = match &base {
        // A merged branch has nothing that its base has not; it is shown from where it began.
        Some(base)
            if !product.user().is_ancestor(&head, base).await.or_exit(WfExit::General)? =>
        {
            product.merge_base(base, &head).await.or_exit(WfExit::General)?
        }
        _ => None,
    };
    let from = common.unwrap_or_else(|| meta.base_sha.clone());
    let patch = product.diff(&from, &head, DIFF_CAP).await.or_exit(WfExit::General)?;
    if patch.truncated {
        app.ui.warn(&format!("the diff was cut after {DIFF_CAP} bytes"));
    }
    let text = String::from_utf8_lossy(&patch.bytes).into_owned();
    Ok((from, head, text))
}

fn show_branch(
    app: &App,
    workstream: &Workstream,
    (from, to): (&Sha, &Sha),
    patch: &str,
) -> Outcome {
    if app.ui.is_json() {
        let id = &workstream.meta.id;
        app.ui.document(&json!({"workstream": id, "from": from, "to": to, "diff": patch}));
    } else {
        app.ui.page(patch);
    }
    Ok(WfExit::Success)
}
