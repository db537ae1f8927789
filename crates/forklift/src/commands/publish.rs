//! `forklift publish`: publish the commit of a closed run.

use std::path::Path;

use clap::Args;
use host::signal::cancel_on_signals;
use model::exit::ForkliftExit;
use shell::Ui;

use super::run::advance_stoppable;
use super::run_args::{AcceptArgs, DEFAULT_WAIT_SECS};
use super::run_name::RunNameArgs;
use super::{ForkliftDirs, block_on};
use crate::exit::{Failure, OrExit, Outcome};
use crate::flow::earlier::{StoredRun, published_by};
use crate::flow::fork_lock::acquire_fork_lock;
use crate::flow::observe::find_repo;
use crate::flow::publish_run::{
    Acceptance, create_publish_run, is_published, refuse_unpublishable,
};
use crate::flow::record::ForkRunRecord;
use crate::flow::run::{ForkRun, final_verdict};
use crate::flow::show::show_end;
use crate::flow::train::repo_of_run;
use crate::rules::publish_mode::PublishMode;

/// Publish the verified commit of a run that could not be published, without an agent
///
/// Makes a new run that pushes the commit and opens the pull request, with the addresses and the token of today. A run that
/// was refused is judged again with --accept-loss, --accept-dropped or --allow-path. The old run stays as it is.
#[derive(Debug, Args)]
pub(crate) struct PublishArgs {
    #[command(flatten)]
    run: RunNameArgs,
    #[command(flatten)]
    accept: AcceptArgs,
    /// Push the branch and open no pull request
    #[arg(long)]
    no_pull_request: bool,
}

pub(crate) fn cmd_publish(ui: &Ui, args: &PublishArgs, here: Option<&Path>) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    let dir = args.run.find(&places, here)?;
    let meta = ForkRunRecord::load(&dir).or_machine()?;
    if !dir.is_closed() {
        let id = dir.id();
        let message = format!("{id} is not over; finish it with: forklift attach {id}");
        return Err(Failure::usage(message));
    }
    let mode = match args.no_pull_request {
        true => PublishMode::BranchOnly,
        false => PublishMode::Full,
    };
    publish_closed(ui, &places, &StoredRun { dir, meta }, &args.accept, mode)
}

/// Publishes the commit of a closed run, in a run of its own. What is published already is shown.
pub(super) fn publish_closed(
    ui: &Ui,
    places: &ForkliftDirs,
    earlier: &StoredRun,
    accept: &AcceptArgs,
    mode: PublishMode,
) -> Outcome {
    block_on(async {
        let cancel = cancel_on_signals().or_machine()?;
        let repo = find_repo(&earlier.meta.fork.path).await?;
        let fork_lock = acquire_fork_lock(ui, &repo, &places.cache, DEFAULT_WAIT_SECS).await?;
        let repo = repo_of_run(&earlier.meta, repo).await?;
        let later = published_by(&places.runs, earlier.dir.id())?;
        let last = later.as_ref().unwrap_or(earlier);
        if is_published(&repo, &last.meta).await {
            ui.note(&format!("{} published it already", last.dir.id()));
            show_end(ui, &last.dir, &last.meta, &final_verdict(&last.meta));
            return Ok(ForkliftExit::Success);
        }
        refuse_unpublishable(places, earlier, accept)?;
        let dir = create_publish_run(places, earlier, &repo, Acceptance::Also(accept), mode);
        let dir = dir.await?;
        let mut run = ForkRun::open(ui, places, dir, repo, cancel)?;
        run.gather_again().await?;
        let outcome = advance_stoppable(run).await;
        drop(fork_lock);
        outcome
    })
}
