//! `wf run`: takes the next micro-commit through all stages, once or until something needs a person.

use clap::Args;
use model::id::WorkstreamId;

use super::App;
use super::attach::detach;
use super::run_all::cmd_run_all;
use crate::cli::Which;
use crate::disk::{ProjectDirs, ProjectEffects};
use crate::exit::{Failure, OrExit, Outcome, WfExit};
use crate::flow::notify::notify;
use crate::flow::run::{RunOptions, run as run_cycles};
use crate::flow::run_all::{RunAllOptions, find_wait};
use crate::flow::stage::StageRunner;
use crate::rules::pipeline::RunMode;
use crate::rules::profile::Pause;

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
    /// Pause after every micro-commit in this run, whatever the profile says
    #[arg(long, conflicts_with = "autonomous")]
    supervised: bool,
    /// Pause only at the gates in this run, whatever the profile says
    #[arg(long)]
    autonomous: bool,
    /// Run in the background and survive this terminal; follow it with `wf attach`
    #[arg(long, conflicts_with = "all")]
    detach: bool,
    /// Wait until the model's quota opens, instead of failing [default: WAIT_QUOTA]
    #[arg(long)]
    wait_quota: bool,
    /// Run although a workstream that comes before (--after) is not merged
    #[arg(long, conflicts_with = "all")]
    ignore_order: bool,
    /// Run every workstream that is ready, each until something needs you, in the order of --base, --after and overlaps
    #[arg(long, conflicts_with = "id")]
    all: bool,
    /// Workstreams that run at the same time
    #[arg(long, value_name = "N", default_value_t = 2, requires = "all", value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,
}

impl RunCycleArgs {
    /// Arguments of the runs that `--all` starts.
    fn words(&self) -> Vec<String> {
        let mut words = vec![if self.once { "--once" } else { "--loop" }.to_owned()];
        words.extend(self.rounds.map(|rounds| format!("--rounds={rounds}")));
        words.extend(self.guidance.as_ref().map(|text| format!("--guidance={text}")));
        let flags = [
            (self.wait_quota, "--wait-quota"),
            (self.supervised, "--supervised"),
            (self.autonomous, "--autonomous"),
        ];
        words
            .extend(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, word)| (*word).to_owned()));
        words
    }
}

/// Runs. An unknown workstream is an error inside the run, so that it gets a run directory.
pub(crate) async fn cmd_run(app: &App, args: &RunCycleArgs) -> Outcome {
    if args.all {
        let jobs = usize::from(args.jobs);
        return cmd_run_all(app, &RunAllOptions { jobs, args: args.words() }).await;
    }
    let (which, looped) = (&args.which, args.looped && !args.once);
    let dirs = app.dirs()?;
    let id = match &which.id {
        Some(typed) => WorkstreamId::parse(typed).or_exit(WfExit::Config)?,
        None => app.workstream(&dirs, which)?.meta.id,
    };
    if !args.ignore_order
        && let Ok(workstream) = dirs.find_workstream(id.as_str())
        && let Some(reason) = find_wait(&dirs, &workstream).await?
    {
        let next =
            format!("run what is ready: wf run --all, or all the same: wf run {id} --ignore-order");
        return Err(Failure::new(WfExit::Blocked, format!("{id} waits: {reason}; {next}")));
    }
    if args.detach {
        return detach(app, &dirs, &id);
    }
    if host::env::is_root() {
        app.ui.warn("wf runs as root; an ordinary user is safer");
    }
    let cancel = host::signal::cancel_on_signals().or_exit(WfExit::General)?;
    let mode = if looped { RunMode::Loop } else { RunMode::Once };
    let mut runner = StageRunner::new(&dirs, &app.ui)?;
    runner.wait_quota = args.wait_quota;
    let options = RunOptions {
        id: &id,
        mode,
        runner: &runner,
        cancel: &cancel,
        rounds: args.rounds.map(usize::from),
        guidance: args.guidance.as_deref(),
        pause: match (args.supervised, args.autonomous) {
            (true, _) => Some(Pause::EveryCommit),
            (false, true) => Some(Pause::Gates),
            (false, false) => None,
        },
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
