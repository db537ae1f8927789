//! `forklift withdraw`: take back what a run published.

use std::path::Path;

use clap::Args;
use host::signal::cancel_on_signals;
use model::exit::ForkliftExit;
use shell::Ui;

use super::run::advance_stoppable;
use super::run_args::DEFAULT_WAIT_SECS;
use super::run_name::RunNameArgs;
use super::{ForkliftDirs, block_on};
use crate::exit::{Failure, OrExit, Outcome};
use crate::flow::earlier::{StoredRun, find_open_withdrawal, published_by, renewed_by};
use crate::flow::fork_lock::acquire_fork_lock;
use crate::flow::observe::find_repo;
use crate::flow::pull::{ForgePlan, pull_state};
use crate::flow::record::ForkRunRecord;
use crate::flow::run::ForkRun;
use crate::flow::withdraw::create_withdraw_run;
use crate::rules::earlier::PullState;

/// Take back what a run published: close its pull request with a comment and delete its branch
///
/// Without a name it is the newest run of this fork that published something. The branch is deleted only if it is still at the
/// commit that the run pushed; a branch that others have pushed to stays. What a later run renewed is withdrawn by the name of
/// that run. What is gone already counts as done. The run itself stays, and `forklift publish RUN` publishes it again.
#[derive(Debug, Args)]
pub(crate) struct WithdrawArgs {
    #[command(flatten)]
    run: RunNameArgs,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn cmd_withdraw(ui: &Ui, args: &WithdrawArgs, here: Option<&Path>) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    let pushed = |meta: &ForkRunRecord| meta.publication.as_ref().is_some_and(|sent| sent.pushed);
    let dir = args.run.find_where(&places, here, pushed)?;
    let meta = ForkRunRecord::load(&dir).or_machine()?;
    if !dir.is_closed() {
        let id = dir.id();
        let text = format!("{id} is not over; finish it with: forklift attach {id}");
        return Err(Failure::usage(text));
    }
    // A commit that a later run published is withdrawn there.
    let run = match published_by(&places.runs, dir.id())? {
        Some(later) if !pushed(&meta) => later,
        Some(_) | None => StoredRun { dir, meta },
    };
    refuse_renewed(&places, &run)?;
    if let (false, Some(sent)) = (args.yes, run.meta.publication.as_ref().filter(|it| it.pushed)) {
        let pull =
            sent.pull.as_ref().map_or_else(String::new, |pull| format!(" and close {}", pull.url));
        confirm(ui, &format!("delete {} on {}{pull}?", sent.branch, run.meta.fork.push_url()))?;
    }
    block_on(async {
        let cancel = cancel_on_signals().or_machine()?;
        let repo = find_repo(&run.meta.fork.path).await?;
        let fork_lock = acquire_fork_lock(ui, &repo, &places.cache, DEFAULT_WAIT_SECS).await?;
        refuse_merged(&places, &run).await?;
        let dir = match find_open_withdrawal(&places.runs, run.dir.id())? {
            Some(begun) => begun,
            None => create_withdraw_run(&places, &run, &repo).await?,
        };
        let outcome = advance_stoppable(ForkRun::open(ui, &places, dir, repo, cancel)?).await;
        drop(fork_lock);
        outcome
    })
}

/// Refuses to take back what a later run renewed: its result would go with it.
fn refuse_renewed(places: &ForkliftDirs, run: &StoredRun) -> Result<(), Failure> {
    let Some(later) = renewed_by(&places.runs, run)? else { return Ok(()) };
    let text = format!("{later} renewed what {} published", run.dir.id());
    let remedy = format!("take back what is there now with: forklift withdraw {later}");
    Err(Failure::usage(text).with_remedy(remedy))
}

async fn refuse_merged(places: &ForkliftDirs, run: &StoredRun) -> Result<(), Failure> {
    let pull = run.meta.publication.as_ref().and_then(|sent| sent.pull.as_ref());
    let Some(pull) = pull else { return Ok(()) };
    let plan = ForgePlan::find(&run.meta.fork.forge, places)?;
    match pull_state(&plan, pull.number).await {
        Some(PullState::Merged) => Err(Failure::usage(format!(
            "{} is merged; undo it with: git revert -m 1 <the merge>",
            pull.url
        ))),
        Some(PullState::Open | PullState::Closed) | None => Ok(()),
    }
}

/// Asks on the terminal; elsewhere the flag has to be given.
fn confirm(ui: &Ui, question: &str) -> Result<(), Failure> {
    if !host::terminal::is_present() {
        return Err(Failure::usage(
            "nothing was withdrawn, because nobody can be asked here; to withdraw: forklift withdraw --yes",
        ));
    }
    match shell::confirm::ask_on_terminal(ui, question).or_machine()? {
        true => Ok(()),
        false => Err(Failure::new(ForkliftExit::Usage, "nothing was withdrawn")),
    }
}
