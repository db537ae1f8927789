//! `bot-bottle freeze` and `bot-bottle stop`: end the agent of a bottle and keep everything.

use std::time::Duration;

use engine::launch::{self, Sighting};
use engine::place::Place;
use host::signal::cancel_on_signals;
use model::id::BoxName;
use model::verdict::BottleStatus;
use store::run_dir::RunDir;

use super::block_on;
use crate::exit::{Failure, OrExit, Outcome, SUCCESS};
use crate::flow::bottle::{Bottle, BottleState};
use crate::flow::home::Home;
use crate::flow::recover::{recover, settle};
use crate::ui::Ui;

/// An agent has seconds to leave; then its commits are imported and judged.
const WAIT: Duration = Duration::from_secs(600);

/// How the agent is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The record says frozen: it is to go on later.
    Freeze,
    /// The record says stopped: somebody did not want it to go on.
    Stop,
}

/// Ends the agent, and waits until its run is closed: by whoever started it, or else here.
pub(crate) fn run(ui: &Ui, slug: &str, end: End) -> Outcome {
    let home = Home::from_env()?;
    let (bottle, record) = Bottle::open(&home, slug)?;
    if record.state == BottleState::Destroyed {
        return Err(Failure::not_found(format!("the bottle '{slug}' is destroyed")));
    }
    if let Some(dir) = bottle.last_run(&record)?.filter(|dir| !dir.is_closed()) {
        signal(&dir, end)?;
    }
    block_on(async {
        let lock = bottle.take(WAIT).await?;
        recover(ui, &home, &bottle, None, &cancel_on_signals().or_general()?).await?;
        settle(&home, slug)?;
        drop(lock);
        Ok(())
    })?;
    ui.result("frozen", slug);
    ui.event("frozen", &serde_json::json!({ "slug": slug }));
    Ok(SUCCESS)
}

fn signal(dir: &RunDir, end: End) -> Result<(), Failure> {
    let agent = BoxName::parse("agent").or_exit(BottleStatus::Internal)?;
    let place = Place::new(dir.box_place(&agent));
    if launch::look(&place).or_general()? == Sighting::Running {
        match end {
            End::Freeze => launch::freeze(&place).or_general()?,
            End::Stop => launch::stop(&place).or_general()?,
        };
    }
    Ok(())
}
