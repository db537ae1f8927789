//! `bot-bottle destroy`: remove a bottle's workspace and harness state. Its runs and their records stay.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use model::exit::BottleExit;
use orchestrator_db::ForgeState;
use serde_json::json;
use shell::Ui;
use shell::confirm::{ConfirmArgs, Consent};

use super::bottle_name::find_name;
use super::complete::bottle_names;
use super::with_home;
use crate::exit::{Failure, OrGeneral, Outcome, SUCCESS};
use crate::flow::bottle::Bottle;
use crate::flow::bottle_place::place_of_issue;
use crate::flow::end::{Loss, destroy};
use crate::flow::fleet::{has_store, host_name, open_store};
use crate::flow::home::Home;
use crate::flow::issue_row::IssueRows;
use crate::rules::bottle_place::BottlePlace;

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
    if args.force
        && let Some(known) = find_missing(&home, &args.slug)?
    {
        return give_up(ui, &home, &known, args);
    }
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

/// The row of a bottle whose folder is missing; `None` if the bottle is here, or there is no row.
fn find_missing(home: &Home, slug: &str) -> Result<Option<ForgeState>, Failure> {
    if !has_store(home)? {
        return Ok(None);
    }
    let store = open_store(home)?;
    let mut states = store.forge_states().or_general()?.into_iter();
    let Some(known) = states.find(|known| known.slug == slug) else { return Ok(None) };
    let place = place_of_issue(home, &host_name(home)?, &*store, &known.key)?;
    Ok(matches!(place, Some((_, BottlePlace::Missing))).then_some(known))
}

/// Marks a bottle as destroyed whose folder is missing, so that its issue can get a new one.
fn give_up(ui: &Ui, home: &Home, known: &ForgeState, args: &DestroyArgs) -> Outcome {
    let ForgeState { key, slug, .. } = known;
    let question = format!("give up the bottle {slug} of {key}, whose folder is missing?");
    match args.confirm.ask(ui, &question)? {
        Consent::Given | Consent::Missing => {}
        preview @ (Consent::DryRun | Consent::Declined) => {
            if preview == Consent::DryRun {
                ui.result("would be given up", slug);
            }
            return Ok(preview.conclude(ui, BottleExit::Success).code());
        }
    }
    IssueRows::by_hand(home).give_up(key, slug)?;
    ui.result("given up", slug);
    ui.event("destroyed", &json!({ "slug": slug }));
    Ok(SUCCESS)
}
