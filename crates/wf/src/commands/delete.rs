//! `wf delete`: shows what would go, and deletes it when that is confirmed (4.5, D115, D116).

use model::exit::WfExit;
use serde_json::json;

use super::App;
use crate::disk::site::Site;
use crate::disk::workstream::Workstream;
use crate::exit::{Failure, Outcome};
use crate::flow::archive::{RemoteFate, RemoteSight, delete, observe_remote};
use crate::flow::product::open_product;

/// Previews or deletes.
pub(crate) async fn run(app: &App, id: &str, confirm: bool, keep_remote: bool) -> Outcome {
    let site = app.site()?;
    let workstream = site.find_workstream(id)?;
    let fate = if keep_remote { RemoteFate::Keep } else { RemoteFate::Delete };
    if !confirm {
        return preview(app, &site, &workstream, fate).await;
    }
    let product = open_product(&site).await?;
    let deleted = delete(&site, &product, &workstream, fate).await?;
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
    site: &Site,
    workstream: &Workstream,
    fate: RemoteFate,
) -> Result<WfExit, Failure> {
    let meta = &workstream.meta;
    let product = open_product(site).await?;
    let remote = match fate {
        RemoteFate::Keep => "left alone".to_owned(),
        RemoteFate::Delete => match observe_remote(&product, workstream).await? {
            RemoteSight::Absent => "none".to_owned(),
            RemoteSight::Merged => format!("{} is merged and stays", meta.branch),
            RemoteSight::Unmerged => {
                format!("{} is deleted on origin too (--keep-remote leaves it)", meta.branch)
            }
            RemoteSight::Foreign => {
                format!("{} has commits that are not here and stays", meta.branch)
            }
            RemoteSight::Unknown(why) => format!("could not be asked: {why}"),
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
