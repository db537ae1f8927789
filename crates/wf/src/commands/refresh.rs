//! `wf refresh`: updates the touched files of workstreams and the table of active ones.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use serde_json::json;

use super::App;
use crate::commands::complete::workstream_ids;
use crate::disk::{Workstream, is_active};
use crate::exit::{Failure, OrExit, Outcome, WfExit, WfResult};
use crate::flow::product::open_product;
use crate::flow::refresh::{Refreshed, Tips, refresh_all};

/// Find out which files workstreams have touched
#[derive(Debug, Args)]
pub(crate) struct RefreshArgs {
    /// The workstream [default: all]
    #[arg(add = ArgValueCandidates::new(workstream_ids))]
    id: Option<String>,
}

/// Refreshes one workstream, or all. Uncommitted changes are checked only for a named workstream; for all of them this
/// would read every file of every worktree.
pub(crate) async fn cmd_refresh(app: &App, args: &RefreshArgs) -> Outcome {
    let id = args.id.as_deref();
    let dirs = app.dirs()?;
    let product = open_product(&dirs).await?;
    let _lock = dirs.lock_global("refresh").await?;
    let (mut workstreams, mut faults) = match id {
        Some(id) => (vec![dirs.find_workstream(id)?], Vec::new()),
        None => dirs.load_workstreams()?,
    };
    workstreams.retain(|workstream| id.is_some() || is_active(workstream));
    let tips = Tips::observe(&product).await?;
    let found = refresh_all(&product, &tips, &mut workstreams).await;
    let mut rows = Vec::new();
    for (workstream, refreshed) in workstreams.iter().zip(found) {
        let refreshed = refreshed?;
        if refreshed == Refreshed::Missing {
            missing(app, workstream, id)?;
        }
        rows.push(json!({"workstream": workstream.meta.id, "changed": refreshed == Refreshed::Anew, "missing": refreshed == Refreshed::Missing}));
    }
    if id.is_some()
        && let Some(workstream) = workstreams.first()
    {
        let dirty =
            product.dirty_paths(&workstream.meta.worktree).await.or_exit(WfExit::General)?;
        if let Some(first) = dirty.first() {
            let (id, path) = (&workstream.meta.id, String::from_utf8_lossy(&first.path));
            app.ui.warn(&format!("{id} has uncommitted changes, such as {path}"));
        }
    }
    match id {
        Some(_) => faults.extend(dirs.write_active()?),
        None => dirs.write_active_of(&workstreams)?,
    }
    app.warn_faults(&faults);
    let changed = rows.iter().filter(|row| row["changed"] == true).count();
    app.ui.line(&format!("Refreshed {} workstreams, {changed} changed", rows.len()));
    app.ui.document(&rows);
    Ok(if faults.is_empty() { WfExit::Success } else { WfExit::Config })
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
