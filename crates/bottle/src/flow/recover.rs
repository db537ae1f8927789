//! Recovery: finishes the open run of a bottle whose process was killed, so that the bottle can always be resumed.

use engine::launch::{self, BoxStatus};
use engine::run::advance;
use orchestrator_db::BottleStep;

use super::access::ForgeAccess;
use super::attestation::sign_statements;
use super::bottle::{Bottle, BottleState, agent_box};
use super::context::RunContext;
use super::observe::Source;
use super::run::BottleRun;
use crate::exit::{Failure, OrGeneral};

/// Finishes the last run of a bottle whose process was killed. The caller holds the bottle's lock.
pub(crate) async fn recover(
    context: RunContext<'_>,
    bottle: &Bottle,
    access: Option<ForgeAccess>,
) -> Result<(), Failure> {
    let RunContext { ui, home, .. } = context;
    sign_statements(ui, home);
    let (bottle, record) = Bottle::open(home, bottle.slug().as_str())?;
    bottle.remove_unrecorded_runs(&record)?;
    let Some(dir) = bottle.last_run(&record)?.filter(|dir| !dir.is_closed()) else { return Ok(()) };
    let access = ForgeAccess::or_of_record(access, home, &record)?;
    ui.note(&format!("finishing {}, whose bot-bottle was ended", dir.id()));
    let source = Source::find(&record.repo, access.as_ref()).await?;
    if let Some(access) = &access {
        context.rows.raise_fence(&source, access).await?;
    }
    let run = BottleRun::open(context, bottle, record, dir, source, access)?;
    Box::pin(advance(run)).await.map(drop)
}

/// Freezes a bottle in which nothing runs, whatever its record says after a failure or a kill. The caller
/// holds its lock.
pub(crate) fn freeze_if_idle(context: RunContext<'_>, slug: &str) -> Result<(), Failure> {
    let (bottle, mut record) = Bottle::open(context.home, slug)?;
    if record.state == BottleState::Destroyed {
        return Ok(());
    }
    if let Some(dir) = bottle.last_run(&record)?
        && launch::box_status(&agent_box(&dir)?).or_general()? == BoxStatus::Running
    {
        return Ok(());
    }
    context.rows.step(&record, BottleStep::Freeze)?;
    record.state = BottleState::Frozen;
    bottle.save(&record)
}
