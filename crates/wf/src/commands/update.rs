//! `wf update`: brings a workstream's branch up to date with its base branch.

use clap::Args;
use merge::resolver::decide::TrustThreshold;
use serde_json::json;

use super::App;
use crate::cli::Which;
use crate::disk::Workstream;
use crate::exit::{Outcome, WfExit};
use crate::flow::product::open_product;
use crate::flow::update::{
    AgentShare, OpenConflicts, UpdateOptions, Updated, render_receipt, update,
};

/// Bring a workstream's branch up to date with its base branch
///
/// Conflicts go through the resolver; the implementer resolves what is left, in a sealed box.
#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    #[command(flatten)]
    which: Which,
    /// How sure an answer to a conflict must be, from 0 to 1; at 1 no conflict is resolved
    #[arg(long, value_name = "SHARE", default_value = "0.9", value_parser = TrustThreshold::parse)]
    trust: TrustThreshold,
    /// Leave what is not resolved automatically to a person instead of the agent
    #[arg(long)]
    no_agent: bool,
}

/// Updates. Refused while a run is active.
pub(crate) async fn cmd_update(app: &App, args: &UpdateArgs) -> Outcome {
    let (dirs, workstream) = app.open(&args.which)?;
    let (profile, _) = dirs.load_profile()?;
    let product = open_product(&dirs).await?;
    let _run = dirs.try_lock_workstream(&workstream.meta.id, "update")?;
    let mut workstream = Workstream::load_dir(&workstream.dir)?;
    let open = if args.no_agent { OpenConflicts::Refuse } else { OpenConflicts::Agent };
    let options = UpdateOptions { ui: &app.ui, profile: &profile, trust: args.trust, open };
    let updated = update(&dirs, &product, &mut workstream, &options).await?;
    show_update(app, &workstream, &updated);
    let (id, base) = (&workstream.meta.id, &workstream.meta.base_branch);
    app.ui.document(&json!({"workstream": id, "base_branch": base, "updated": updated}));
    Ok(WfExit::Success)
}

pub(super) fn show_update(app: &App, workstream: &Workstream, updated: &Updated) {
    let (id, base) = (&workstream.meta.id, &workstream.meta.base_branch);
    match updated {
        Updated::Same => app.ui.line(&format!("{id} contains {base} already")),
        Updated::Forward { commit } => app.ui.line(&format!("{id} is at {base} now: {commit}")),
        Updated::Merged { commit, receipts, by_agent } => {
            app.ui.line(&format!("Merged {base} into {id} at {commit}"));
            for receipt in receipts {
                app.ui.line(&format!("  resolved {}", render_receipt(receipt)));
            }
            if let Some(AgentShare { agent, paths }) = by_agent {
                let show = |path: &String| app.ui.line(&format!("  resolved {path}: by {agent}"));
                paths.iter().for_each(show);
            }
        }
    }
}
