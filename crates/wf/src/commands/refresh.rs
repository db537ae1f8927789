//! `wf refresh`: updates the touched files of workstreams and the table of active ones.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use host::git::WorktreeRepo;
use serde_json::json;

use super::App;
use crate::commands::complete::workstream_ids;
use crate::disk::{Workstream, is_active};
use crate::exit::{Failure, Outcome, WfExit, WfResult};
use crate::flow::product::{open_product, own_changes};
use crate::flow::refresh::{Refreshed, Tips, refresh_all};

/// Number of worktrees that are checked for uncommitted changes: each check reads every file of a worktree.
const CHECKED_MAX: usize = 50;

/// Find out which files workstreams have touched
#[derive(Debug, Args)]
pub(crate) struct RefreshArgs {
    /// The workstream [default: all]
    #[arg(add = ArgValueCandidates::new(workstream_ids))]
    id: Option<String>,
}

/// Refreshes one workstream, or all. A sibling that cannot be read does not make a named workstream fail.
pub(crate) async fn cmd_refresh(app: &App, args: &RefreshArgs) -> Outcome {
    let id = args.id.as_deref();
    let dirs = app.dirs()?;
    let product = open_product(&dirs).await?;
    let _lock = dirs.lock_global("refresh").await?;
    let (mut workstreams, faults) = match id {
        Some(id) => (vec![dirs.find_workstream(id)?], Vec::new()),
        None => dirs.load_workstreams()?,
    };
    workstreams.retain(|workstream| id.is_some() || is_active(workstream));
    let tips = Tips::observe(&product).await?;
    let found = refresh_all(&product, &tips, &mut workstreams).await;
    let mut rows = Vec::new();
    for (workstream, refreshed) in workstreams.iter().zip(found) {
        let refreshed = refreshed?;
        match refreshed {
            Refreshed::Missing => missing(app, workstream, id)?,
            Refreshed::Anew | Refreshed::Same if rows.len() < CHECKED_MAX => {
                warn_dirty(app, &product, workstream).await?;
            }
            Refreshed::Anew | Refreshed::Same => {}
        }
        rows.push(json!({"workstream": workstream.meta.id, "changed": refreshed == Refreshed::Anew, "missing": refreshed == Refreshed::Missing}));
    }
    if workstreams.len() > CHECKED_MAX {
        let message = "only the first were checked for uncommitted changes; name one to check it";
        app.ui.status(message);
    }
    match id {
        Some(_) => app.warn_faults(&dirs.write_active()?),
        None => dirs.write_active_of(&workstreams)?,
    }
    app.warn_remains(&dirs)?;
    app.warn_faults(&faults);
    let changed = rows.iter().filter(|row| row["changed"] == true).count();
    app.ui.line(&format!("Refreshed {} workstreams, {changed} changed", rows.len()));
    app.ui.document(&rows);
    Ok(if faults.is_empty() { WfExit::Success } else { WfExit::Config })
}

async fn warn_dirty(app: &App, product: &WorktreeRepo, workstream: &Workstream) -> WfResult<()> {
    let dirty = own_changes(product, &workstream.meta.worktree).await?;
    if let Some(first) = dirty.first() {
        let (id, path) = (&workstream.meta.id, String::from_utf8_lossy(&first.path));
        app.ui.warn(&format!("{id} has uncommitted changes, such as {path}"));
    }
    Ok(())
}

/// Reports a missing worktree: an error for a named workstream, a warning otherwise.
fn missing(app: &App, workstream: &Workstream, id: Option<&str>) -> WfResult<()> {
    let message = format!(
        "the worktree of {} is gone: {}",
        workstream.meta.id,
        workstream.meta.worktree.display()
    );
    match id {
        Some(_) => Err(Failure::usage(message)),
        None => {
            app.ui.warn(&message);
            Ok(())
        }
    }
}
