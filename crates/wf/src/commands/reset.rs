//! `wf reset`: starts over from what is on the branch.

use clap::Args;
use serde_json::json;

use super::{App, person};
use crate::cli::Which;
use crate::disk::Workstream;
use crate::exit::{Outcome, WfExit};
use crate::flow::product::open_product;
use crate::flow::reset::reset;

/// Forget an unfinished try, and have done again what was accepted and is not on the branch any more
///
/// Files and branches stay as they are; the agent starts in a new session.
#[derive(Debug, Args)]
pub(crate) struct ResetArgs {
    #[command(flatten)]
    which: Which,
}

/// Resets. Refused while a run is active.
pub(crate) async fn cmd_reset(app: &App, ResetArgs { which }: &ResetArgs) -> Outcome {
    let (dirs, workstream) = app.open(which)?;
    let product = open_product(&dirs).await?;
    let _run = dirs.try_lock_workstream(&workstream.meta.id, "reset")?;
    let _lock = dirs.lock_global(&format!("reset {}", workstream.meta.id)).await?;
    let mut workstream = Workstream::load_dir(&workstream.dir)?;
    let outcome = reset(&dirs, &product, &mut workstream).await?;
    workstream.note(&format!("{} reset the workstream", person()), host::clock::now())?;
    dirs.write_active()?;
    let id = &workstream.meta.id;
    for commit in &outcome.undone {
        app.ui.line(&format!("{commit} is not on the branch and is to be done again"));
    }
    app.ui.line(&format!("Reset {id}; it is {}", outcome.status));
    app.ui.document(&json!({"workstream": id, "reset": outcome}));
    app.ui.status(&format!("Continue: wf run {id}"));
    Ok(WfExit::Success)
}
