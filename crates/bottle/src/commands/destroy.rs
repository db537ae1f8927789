//! `bot-bottle destroy`: remove a bottle's workspace and harness state. Its runs and their records stay.

use std::time::Duration;

use host::signal::cancel_on_signals;
use model::verdict::BottleStatus;
use state::Step;

use super::block_on;
use crate::exit::{Failure, OrExit, Outcome, SUCCESS};
use crate::flow::bottle::{Bottle, BottleState};
use crate::flow::home::Home;
use crate::flow::metadata::Metadata;
use crate::flow::recover::recover;
use crate::flow::standing;
use crate::ui::Ui;

/// What may be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Nothing that exists nowhere else.
    Refused,
    /// The person said so.
    Accepted,
}

/// Removes it. Commits that were not published are in the run's own repository; what was never committed is not.
pub(crate) fn run(ui: &Ui, slug: &str, loss: Loss) -> Outcome {
    let home = Home::from_env()?;
    let (bottle, _) = Bottle::open(&home, slug)?;
    block_on(async {
        let lock = bottle.take(Duration::ZERO).await?;
        match (recover(ui, &home, &bottle, None, &cancel_on_signals().or_general()?).await, loss) {
            (Err(failure), Loss::Accepted) => {
                ui.note(&format!("its last run stays open: {failure}"));
            }
            (recovered, _) => recovered?,
        }
        let (bottle, mut record) = Bottle::open(&home, slug)?;
        if loss == Loss::Refused && record.state != BottleState::Destroyed {
            refuse_loss(&bottle, &record, slug)?;
        }
        standing::step(&home, &record, Step::Destroy)?;
        record.state = BottleState::Destroyed;
        bottle.save(&record)?;
        for folder in [bottle.workspace(), bottle.harness_state()] {
            host::file::remove_tree_safely(&folder).or_general()?;
        }
        drop(lock);
        Ok(())
    })?;
    ui.result("destroyed", slug);
    Ok(SUCCESS)
}

/// A run whose commits never came out of the box left its work in the workspace alone.
fn refuse_loss(
    bottle: &Bottle,
    record: &crate::flow::bottle::Record,
    slug: &str,
) -> Result<(), Failure> {
    let Some(dir) = bottle.last_run(record)? else { return Ok(()) };
    let meta: Metadata = store::metadata::load_metadata(&dir).or_general()?;
    let lost = meta.import_refused.is_some() || meta.agent_box.is_none();
    match lost && meta.setup.is_none() {
        true => Err(Failure::new(
            BottleStatus::NotFound,
            format!(
                "the work in '{slug}' could not be taken out of it and would be lost; to lose it: bot-bottle destroy --force {slug}"
            ),
        )),
        false => Ok(()),
    }
}
