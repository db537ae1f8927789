//! `bot-bottle destroy`: remove a bottle's workspace and harness state. Its runs and their records stay.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use model::exit::BottleExit;
use serde_json::json;
use shell::Ui;
use shell::confirm::{ConfirmArgs, Consent};

use super::bottle_name::find_name;
use super::complete::bottle_names;
use super::with_home;
use crate::exit::{Outcome, SUCCESS};
use crate::flow::bottle::Bottle;
use crate::flow::end::{Loss, destroy};
use crate::flow::home::Home;

/// Remove a bottle's workspace and the agent's files; the records of its runs stay
///
/// On a terminal it asks first. Commits that were not published stay in the records of the runs; a bottle whose work could
/// not be taken out of it is refused without --force.
#[derive(Debug, Args)]
pub(crate) struct DestroyArgs {
    /// The bottle: its name, the start of its name, or `last`
    #[arg(add = ArgValueCandidates::new(bottle_names))]
    slug: String,
    #[command(flatten)]
    confirm: ConfirmArgs,
    /// Remove them even if work is lost
    #[arg(long)]
    force: bool,
}

pub(crate) fn cmd_destroy(ui: &Ui, args: &DestroyArgs) -> Outcome {
    let home = Home::from_env()?;
    let slug = &*find_name(ui, &home, &args.slug)?;
    let (bottle, _) = Bottle::open(&home, slug)?;
    let question = format!(
        "remove the workspace and the agent's files of {slug} ({})?",
        bottle.path().display()
    );
    match args.confirm.ask(ui, &question)? {
        // The bottle is named and its commits stay, so that a script need not say it twice.
        Consent::Given | Consent::Missing => {}
        preview @ (Consent::DryRun | Consent::Declined) => {
            if preview == Consent::DryRun {
                for folder in [bottle.workspace(), bottle.harness_state()] {
                    ui.result("would go", &folder.display().to_string());
                }
            }
            return Ok(preview.conclude(ui, BottleExit::Success).code());
        }
    }
    let loss = if args.force { Loss::Accepted } else { Loss::Refused };
    with_home(ui, async |context| destroy(context, slug, None, loss).await)?;
    ui.result("destroyed", slug);
    ui.event("destroyed", &json!({ "slug": slug }));
    Ok(SUCCESS)
}
