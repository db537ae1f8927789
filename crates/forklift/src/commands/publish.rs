//! `forklift publish`: publish the commit of a closed run.

use clap::Args;
use engine::run::advance;
use host::signal::cancel_on_signals;
use model::exit::ForkliftExit;
use run_store::run_dir;
use shell::Ui;

use super::run_args::{AcceptArgs, DEFAULT_WAIT_SECS};
use super::{ForkliftDirs, block_on};
use crate::exit::{Failure, OrExit, Outcome};
use crate::flow::earlier::{StoredRun, published_by};
use crate::flow::fork_lock::acquire_fork_lock;
use crate::flow::observe::find_repo;
use crate::flow::publish_run::{create_publish_run, is_published, refuse_unpublishable};
use crate::flow::record::ForkRunRecord;
use crate::flow::run::{ForkRun, final_verdict};
use crate::flow::show::show_end;

/// Publish the verified commit of a run that could not be published, without an agent
///
/// Makes a new run that pushes the commit and opens the pull request, with the addresses and the token of today. A run that
/// was refused is judged again with --accept-loss, --accept-dropped or --allow-path. The old run stays as it is.
#[derive(Debug, Args)]
pub(crate) struct PublishArgs {
    /// The run's name, or the start of it
    run: String,
    #[command(flatten)]
    accept: AcceptArgs,
}

pub(crate) fn cmd_publish(ui: &Ui, args: &PublishArgs) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    let dir = run_dir::find(&places.runs, &args.run).or_usage()?;
    let meta = ForkRunRecord::load(&dir).or_machine()?;
    if !dir.is_closed() {
        let id = dir.id();
        let message = format!("{id} is not over; finish it with: forklift attach {id}");
        return Err(Failure::usage(message));
    }
    publish_closed(ui, &places, &StoredRun { dir, meta }, &args.accept)
}

/// Publishes the commit of a closed run, in a run of its own. What is published already is shown.
pub(super) fn publish_closed(
    ui: &Ui,
    places: &ForkliftDirs,
    earlier: &StoredRun,
    accept: &AcceptArgs,
) -> Outcome {
    block_on(async {
        let cancel = cancel_on_signals().or_machine()?;
        let repo = find_repo(&earlier.meta.fork.path).await?;
        let fork_lock = acquire_fork_lock(ui, &repo, &places.cache, DEFAULT_WAIT_SECS).await?;
        let later = published_by(&places.runs, earlier.dir.id())?;
        let last = later.as_ref().unwrap_or(earlier);
        if is_published(&repo, &last.meta).await {
            ui.note(&format!("{} published it already", last.dir.id()));
            show_end(ui, &last.dir, &last.meta, &final_verdict(&last.meta));
            return Ok(ForkliftExit::Success);
        }
        refuse_unpublishable(places, earlier, accept)?;
        let dir = create_publish_run(places, earlier, &repo, accept).await?;
        let mut run = ForkRun::open(ui, places, dir, repo, cancel)?;
        run.gather_again().await?;
        let outcome = advance(run).await;
        drop(fork_lock);
        outcome
    })
}
