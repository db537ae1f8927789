//! `wf run`: takes the next micro-commit through all stages, once or until something needs a person.

use clap::Args;
use model::id::WorkstreamId;

use super::App;
use crate::cli::Which;
use crate::disk::{ProjectDirs, ProjectEffects};
use crate::exit::{OrExit, Outcome, WfExit};
use crate::flow::notify::notify;
use crate::flow::run::{RunOptions, run as run_cycles};
use crate::flow::stage::StageRunner;
use crate::rules::pipeline::RunMode;

/// Take the next micro-commit through all stages
#[derive(Debug, Args)]
pub(crate) struct RunCycleArgs {
    #[command(flatten)]
    which: Which,
    /// Run one cycle (the default)
    #[arg(long, conflicts_with = "looped")]
    once: bool,
    /// Run cycles until something needs you
    #[arg(long = "loop")]
    looped: bool,
    /// Tries that a micro-commit gets: failing tests and requested changes go back to the implementer [default: ROUNDS, or 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=20))]
    rounds: Option<u16>,
    /// Words for the implementer in this run
    #[arg(long, value_name = "TEXT")]
    guidance: Option<String>,
}

/// Runs. An unknown workstream is an error inside the run, so that it gets a run directory.
pub(crate) async fn cmd_run(app: &App, args: &RunCycleArgs) -> Outcome {
    let (which, looped) = (&args.which, args.looped && !args.once);
    let dirs = app.dirs()?;
    let id = match &which.id {
        Some(typed) => WorkstreamId::parse(typed).or_exit(WfExit::Config)?,
        None => app.workstream(&dirs, which)?.meta.id,
    };
    if host::env::is_root() {
        app.ui.warn("wf runs as root; an ordinary user is safer");
    }
    let cancel = host::signal::cancel_on_signals().or_exit(WfExit::General)?;
    let mode = if looped { RunMode::Loop } else { RunMode::Once };
    let runner = StageRunner::new(&dirs, &app.ui)?;
    let options = RunOptions {
        id: &id,
        mode,
        runner: &runner,
        cancel: &cancel,
        rounds: args.rounds.map(usize::from),
        guidance: args.guidance.as_deref(),
    };
    let outcome = run_cycles(&options).await;
    if let (RunMode::Loop, Ok(status)) = (mode, &outcome) {
        notify_person(app, &dirs, &id, *status).await;
    }
    outcome
}

/// Sends a notification at the end of a loop that needs a person. A failed notification does not change the outcome.
async fn notify_person(app: &App, dirs: &ProjectDirs, id: &WorkstreamId, status: WfExit) {
    if status == WfExit::Success {
        return;
    }
    let Ok((profile, _)) = dirs.load_profile() else { return };
    let message = format!("{id}: {}", status.meaning());
    let sent = match ProjectEffects::of(dirs) {
        Ok(effects) => notify(&effects, &profile, Some(id), &message).await,
        Err(failure) => Err(failure),
    };
    if let Err(failure) = sent {
        app.ui.warn(&format!("the notification was not sent: {failure}"));
    }
}
