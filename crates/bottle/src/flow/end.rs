//! Ending: the agent of a bottle, with everything kept, or the bottle itself, with its records kept.

use std::time::Duration;

use engine::launch::{self, BoxStatus};
use model::exit::BottleExit;
use orchestrator_db::BottleStep;
use run_store::run_dir::RunDir;

use super::access::ForgeAccess;
use super::bottle::{Bottle, BottleState, Record, agent_box};
use super::context::RunContext;
use super::recover::{freeze_if_idle, recover};
use super::run_record::load_run;
use super::travel;
use crate::exit::{Failure, OrGeneral};

/// An agent has seconds to leave; then its commits are imported and judged.
const WAIT: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The record says frozen: it can be resumed.
    Freeze,
    /// The record says stopped.
    Stop,
}

/// Loss of work when a bottle is destroyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Work that exists nowhere else is kept.
    Refused,
    /// The user accepts it.
    Accepted,
}

/// Ends the agent, and waits until its run is closed, by the process that started it or by this one.
pub(crate) async fn end_agent(
    context: RunContext<'_>,
    slug: &str,
    end: End,
) -> Result<(), Failure> {
    let (bottle, record) = Bottle::open(context.home, slug)?;
    if record.state == BottleState::Destroyed {
        return Err(Failure::not_found(format!("the bottle '{slug}' is destroyed")));
    }
    if let Some(dir) = bottle.last_run(&record)?.filter(|dir| !dir.is_closed()) {
        signal_agent(&dir, end)?;
    }
    let lock = bottle.take(WAIT).await?;
    recover(context, &bottle, None).await?;
    freeze_if_idle(context, slug)?;
    drop(lock);
    travel::save_by_hand(context, slug).await
}

/// Signals the agent of a run to end, and does not wait for it.
pub(crate) fn signal_agent(dir: &RunDir, end: End) -> Result<(), Failure> {
    let place = agent_box(dir)?;
    if launch::box_status(&place).or_general()? == BoxStatus::Running {
        match end {
            End::Freeze => launch::freeze(&place).or_general()?,
            End::Stop => launch::stop(&place).or_general()?,
        };
    }
    Ok(())
}

/// Removes a bottle. Unpublished commits stay in the run's own repository; uncommitted work does not.
/// It can be repeated after an interruption.
pub(crate) async fn destroy(
    context: RunContext<'_>,
    slug: &str,
    access: Option<ForgeAccess>,
    loss: Loss,
) -> Result<(), Failure> {
    let (bottle, _) = Bottle::open(context.home, slug)?;
    let lock = bottle.take(Duration::ZERO).await?;
    match (recover(context, &bottle, access).await, loss) {
        (Err(failure), Loss::Accepted) => {
            context.ui.note(&format!("its last run stays open: {failure}"));
        }
        (recovered, _) => recovered?,
    }
    let (bottle, mut record) = Bottle::open(context.home, slug)?;
    if loss == Loss::Refused && record.state != BottleState::Destroyed {
        refuse_loss(&bottle, &record, slug)?;
    }
    context.rows.step(&record, BottleStep::Destroy)?;
    record.state = BottleState::Destroyed;
    bottle.save(&record)?;
    travel::mark_destroyed(context, &record)?;
    host::failpoint::hit("destroying");
    for folder in [bottle.workspace(), bottle.harness_state()] {
        host::file::remove_tree_safely(&folder).or_general()?;
    }
    drop(lock);
    Ok(())
}

/// Refuses if the workspace alone has the work of the last run, because its commits were not imported.
fn refuse_loss(bottle: &Bottle, record: &Record, slug: &str) -> Result<(), Failure> {
    let Some(dir) = bottle.last_run(record)? else { return Ok(()) };
    let meta = load_run(&dir)?;
    let has_agent = meta.merged_alone.is_none();
    let lost = has_agent && (meta.import_refused.is_some() || meta.agent_box.is_none());
    match lost && meta.setup.is_none() {
        true => Err(Failure::new(
            BottleExit::NotFound,
            format!(
                "the work in '{slug}' could not be taken out of it and would be lost; to lose it: bot-bottle destroy --force {slug}"
            ),
        )),
        false => Ok(()),
    }
}
