//! `forklift attach`: finish a run whose forklift was killed.

use std::path::Path;

use clap::Args;
use engine::run::Phase;
use host::signal::cancel_on_signals;
use shell::Ui;

use super::publish::publish_closed;
use super::run::advance_stoppable;
use super::run_args::{AcceptArgs, DEFAULT_WAIT_SECS, ModeArgs};
use super::run_name::RunNameArgs;
use super::show::show_later_publication;
use super::{ForkliftDirs, block_on};
use crate::exit::{OrExit, Outcome};
use crate::flow::earlier::StoredRun;
use crate::flow::fork_lock::acquire_fork_lock;
use crate::flow::observe::find_repo;
use crate::flow::record::ForkRunRecord;
use crate::flow::run::{ForkRun, final_status, final_verdict};
use crate::flow::show::show_end;
use crate::flow::train::repo_of_run;
use crate::rules::judge::Verdict;

/// Finish a run whose forklift was killed: wait for its box, import, verify, publish
///
/// A run that is over is shown, with the status that it ended with. One that was refused is judged again with --accept-loss,
/// --accept-dropped or --allow-path, without an agent.
#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    run: RunNameArgs,
    #[command(flatten)]
    accept: AcceptArgs,
    #[command(flatten)]
    publishing: ModeArgs,
}

pub(crate) fn cmd_attach(ui: &Ui, args: &AttachArgs, here: Option<&Path>) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    // Without a name, the one that has something left to do.
    let open = args.run.find_where(&places, here, |meta| meta.phase != Phase::Closed);
    let dir = open.or_else(|_none| args.run.find(&places, here))?;
    let meta = ForkRunRecord::load(&dir).or_machine()?;
    if dir.is_closed() {
        let verdict = final_verdict(&meta);
        if args.accept.is_given() && verdict != Verdict::Publish {
            let mode = args.publishing.mode();
            return publish_closed(ui, &places, &StoredRun { dir, meta }, &args.accept, mode);
        }
        show_end(ui, &dir, &meta, &verdict);
        let is_published = show_later_publication(ui, &places, &dir)?;
        return Ok(if is_published { Verdict::Publish.status() } else { final_status(&meta) });
    }
    block_on(async {
        let cancel = cancel_on_signals().or_machine()?;
        let repo = find_repo(&meta.fork.path).await?;
        let fork_lock = acquire_fork_lock(ui, &repo, &places.cache, DEFAULT_WAIT_SECS).await?;
        let repo = repo_of_run(&meta, repo).await?;
        let mut run = ForkRun::open(ui, &places, dir, repo, cancel)?;
        run.accept(&args.accept);
        let settings = &mut run.run.record.settings;
        settings.publish_mode = settings.publish_mode.max(args.publishing.mode());
        let outcome = advance_stoppable(run).await;
        drop(fork_lock);
        outcome
    })
}
