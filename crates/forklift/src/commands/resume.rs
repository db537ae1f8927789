//! `forklift resume` and `forklift retry`: continue or repeat an earlier run.

use std::path::{Path, PathBuf};

use clap::Args;
use run_store::run_dir::RunDir;
use shell::Ui;

use super::ForkliftDirs;
use super::run::cmd_run;
use super::run_name::RunNameArgs;
use crate::commands::run_args::{AcceptArgs, ModeArgs, RunArgs};
use crate::exit::{Failure, OrExit, Outcome};
use crate::flow::attempt::{SyncEnd, SyncNotes, recorded};
use crate::flow::record::ForkRunRecord;
use crate::flow::resume::{EarlierRun, load_args};

/// Continue from the workspace of a run that is stuck, out of time or refused
///
/// Makes a new run that begins with a copy of the old one's workspace, in the same conversation where the agent can
/// resume one. The old run stays as it is.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    earlier: EarlierRunArgs,
    /// Answer to the agent's questions
    #[arg(long, short, value_name = "TEXT")]
    answer: Option<String>,
}

/// Repeat an earlier run, from the fork as it is now
#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    earlier: EarlierRunArgs,
    /// Merge an upstream that has no history in common with the fork
    #[arg(long)]
    allow_unrelated: bool,
}

/// The earlier run, and the options that differ this time.
#[derive(Debug, Args)]
struct EarlierRunArgs {
    #[command(flatten)]
    run: RunNameArgs,
    /// Time limit of the agent this time, in seconds of wall clock
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: Option<u64>,
    /// Additional instruction for the agent (repeatable)
    #[arg(long, value_name = "TEXT")]
    instruction: Vec<String>,
    /// What the scripted agent plays this time
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    #[command(flatten)]
    accept: AcceptArgs,
    #[command(flatten)]
    publishing: ModeArgs,
}

pub(crate) fn cmd_resume(ui: &Ui, args: ResumeArgs, here: Option<&Path>) -> Outcome {
    let resume = &args.earlier;
    let places = ForkliftDirs::from_env()?;
    let dir = resume.run.find(&places, here)?;
    let earlier = EarlierRun::load(&dir, args.answer)?;
    run_recorded(ui, &run_args(&dir, resume)?, &places, Some(earlier))
}

pub(crate) fn cmd_retry(ui: &Ui, args: &RetryArgs, here: Option<&Path>) -> Outcome {
    let resume = &args.earlier;
    let places = ForkliftDirs::from_env()?;
    let dir = resume.run.find(&places, here)?;
    if ForkRunRecord::load(&dir).or_machine()?.train.is_some() {
        let message = format!("{} is a step of a train; go on with: forklift train", dir.id());
        return Err(Failure::usage(message));
    }
    let mut run_args = RunArgs { again: true, ..run_args(&dir, resume)? };
    run_args.allow_unrelated |= args.allow_unrelated;
    run_recorded(ui, &run_args, &places, None)
}

/// Runs with a record of the sync. A fix that is landed alone is none.
fn run_recorded(
    ui: &Ui,
    args: &RunArgs,
    places: &ForkliftDirs,
    earlier: Option<EarlierRun>,
) -> Outcome {
    if args.fix.is_some() {
        return cmd_run(ui, args, places, earlier, &SyncNotes::default());
    }
    recorded(ui, args, |notes| cmd_run(ui, args, places, earlier, notes).map(SyncEnd::from))
}

/// The options of the earlier run, with those that differ this time.
fn run_args(dir: &RunDir, resume: &EarlierRunArgs) -> Result<RunArgs, Failure> {
    let meta = ForkRunRecord::load(dir).or_machine()?;
    let mut args = load_args(dir)?;
    args.directory = Some(meta.fork.path.clone());
    args.timeout = resume.timeout.or(args.timeout);
    if !resume.instruction.is_empty() {
        args.instruction.clone_from(&resume.instruction);
    }
    args.script = resume.script.clone().or(args.script);
    args.accept_loss |= resume.accept.accept_loss;
    args.accept_dropped |= resume.accept.accept_dropped;
    args.allow_path.extend(resume.accept.allow_path.iter().cloned());
    args.publishing.add(resume.publishing);
    Ok(args)
}
