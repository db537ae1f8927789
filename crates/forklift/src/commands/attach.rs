//! `forklift attach`: finish a run whose forklift was killed.

use clap::Args;
use engine::run::advance;
use host::signal::cancel_on_signals;
use run_store::run_dir;
use shell::Ui;

use super::publish::publish_closed;
use super::run_args::{AcceptArgs, DEFAULT_WAIT_SECS};
use super::show::show_later_publication;
use super::{ForkliftDirs, block_on};
use crate::exit::{OrExit, Outcome};
use crate::flow::earlier::StoredRun;
use crate::flow::fork_lock::acquire_fork_lock;
use crate::flow::observe::find_repo;
use crate::flow::record::ForkRunRecord;
use crate::flow::run::{ForkRun, final_status, final_verdict};
use crate::flow::show::show_end;
use crate::rules::judge::Verdict;

/// Finish a run whose forklift was killed: wait for its box, import, verify, publish
///
/// A run that is over is shown, with the status that it ended with. One that was refused is judged again with --accept-loss,
/// --accept-dropped or --allow-path, without an agent.
#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// The run's name, or the start of it
    run: String,
    #[command(flatten)]
    accept: AcceptArgs,
}

pub(crate) fn cmd_attach(ui: &Ui, args: &AttachArgs) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    let dir = run_dir::find(&places.runs, &args.run).or_usage()?;
    let meta = ForkRunRecord::load(&dir).or_machine()?;
    if dir.is_closed() {
        let verdict = final_verdict(&meta);
        if args.accept.is_given() && verdict != Verdict::Publish {
            return publish_closed(ui, &places, &StoredRun { dir, meta }, &args.accept);
        }
        show_end(ui, &dir, &meta, &verdict);
        let is_published = show_later_publication(ui, &places, &dir)?;
        return Ok(if is_published { Verdict::Publish.status() } else { final_status(&meta) });
    }
    block_on(async {
        let cancel = cancel_on_signals().or_machine()?;
        let repo = find_repo(&meta.fork.path).await?;
        let fork_lock = acquire_fork_lock(ui, &repo, &places.cache, DEFAULT_WAIT_SECS).await?;
        let mut run = ForkRun::open(ui, &places, dir, repo, cancel)?;
        run.accept(&args.accept);
        let outcome = advance(run).await;
        drop(fork_lock);
        outcome
    })
}
