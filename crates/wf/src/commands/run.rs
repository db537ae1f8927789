//! `wf run`: takes the next micro-commit through all stages, once or until something needs a person.

use model::exit::WfExit;
use model::id::WorkstreamId;

use super::App;
use crate::cli::Which;
use crate::disk::site::Site;
use crate::exit::{OrExit, Outcome};
use crate::flow::notify::notify;
use crate::flow::run::{RunOrder, run as run_cycles};
use crate::flow::stage::Workshop;
use crate::rules::pipeline::Rounds;

/// Runs. A workstream that was named need not exist: that is found out inside the run, which then has a directory (D59).
pub(crate) async fn run(app: &App, which: &Which, looped: bool) -> Outcome {
    let site = app.site()?;
    let id = match &which.id {
        Some(typed) => WorkstreamId::parse(typed).or_exit(WfExit::Config)?,
        None => app.workstream(&site, which)?.meta.id,
    };
    if host::env::is_root() {
        app.ui.warn("wf runs as root; an ordinary user is safer");
    }
    let cancel = host::signal::cancel_on_signals().or_exit(WfExit::General)?;
    let rounds = if looped { Rounds::Loop } else { Rounds::Once };
    let order = RunOrder {
        site: &site,
        id: &id,
        rounds,
        workshop: &Workshop::new(&site, app.ui)?,
        cancel: &cancel,
        ui: app.ui,
    };
    let outcome = run_cycles(&order).await;
    if let (Rounds::Loop, Ok(status)) = (rounds, &outcome) {
        tell(app, &site, &id, *status).await;
    }
    outcome
}

/// A loop runs while nobody looks: whoever is needed now is told. That they could not be told changes nothing.
async fn tell(app: &App, site: &Site, id: &WorkstreamId, status: WfExit) {
    if status == WfExit::Success {
        return;
    }
    let Ok((profile, _)) = site.load_profile() else { return };
    let words = format!("{id}: {}", status.meaning());
    if let Err(problem) = notify(&profile, &words).await {
        app.ui.warn(&format!("nobody could be told: {problem}"));
    }
}
