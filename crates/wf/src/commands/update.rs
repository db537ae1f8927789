//! `wf update`: brings a workstream's branch up to date with its base branch.

use clap::Args;
use merge::resolver::decide::TrustThreshold;
use serde_json::json;

use super::App;
use crate::cli::Which;
use crate::disk::Workstream;
use crate::exit::{Outcome, WfExit};
use crate::flow::product::open_product;
use crate::flow::refresh::{Tips, refresh};
use crate::flow::update::{Updated, render_receipt, update};

/// Bring a workstream's branch up to date with its base branch
#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    #[command(flatten)]
    which: Which,
    /// How sure an answer to a conflict must be, from 0 to 1; at 1 no conflict is resolved
    #[arg(long, value_name = "SHARE", default_value = "0.9", value_parser = TrustThreshold::parse)]
    trust: TrustThreshold,
}

/// Updates. Refused while a run is active.
pub(crate) async fn cmd_update(app: &App, args: &UpdateArgs) -> Outcome {
    let (dirs, workstream) = app.open(&args.which)?;
    let product = open_product(&dirs).await?;
    let _run = dirs.try_lock_workstream(&workstream.meta.id, "update")?;
    let _lock = dirs.lock_global_with_git(&format!("update {}", workstream.meta.id)).await?;
    let mut workstream = Workstream::load_dir(&workstream.dir)?;
    let updated = update(&dirs, &product, &workstream, args.trust).await?;
    // Which files are the workstream's own depends on what it was merged with.
    refresh(&product, &Tips::observe(&product).await?, &mut workstream).await?;
    dirs.write_active()?;
    let (id, base) = (&workstream.meta.id, &workstream.meta.base_branch);
    match &updated {
        Updated::Same => app.ui.line(&format!("{id} contains {base} already")),
        Updated::Forward { commit } => app.ui.line(&format!("{id} is at {base} now: {commit}")),
        Updated::Merged { commit, receipts } => {
            app.ui.line(&format!("Merged {base} into {id} at {commit}"));
            for receipt in receipts {
                app.ui.line(&format!("  resolved {}", render_receipt(receipt)));
            }
        }
    }
    app.ui.document(&json!({"workstream": id, "base_branch": base, "updated": updated}));
    Ok(WfExit::Success)
}
