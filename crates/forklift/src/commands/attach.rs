//! `forklift attach`: finish a run whose forklift was killed.

use clap::Args;
use engine::run::advance;
use host::signal::cancel_on_signals;
use run_store::run_dir;
use shell::Ui;

use super::run_args::DEFAULT_WAIT_SECS;
use super::{ForkliftDirs, block_on};
use crate::exit::{OrExit, Outcome};
use crate::flow::fork_lock::acquire_fork_lock;
use crate::flow::observe::find_repo;
use crate::flow::record::ForkRunRecord;
use crate::flow::run::{ForkRun, final_verdict};
use crate::flow::show::show_end;

/// Finish a run whose forklift was killed: wait for its box, import, verify, publish
#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// The run's name, or the start of it
    run: String,
}

pub(crate) fn cmd_attach(ui: &Ui, args: &AttachArgs) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    let dir = run_dir::find(&places.runs, &args.run).or_usage()?;
    let meta = ForkRunRecord::load(&dir).or_machine()?;
    if dir.is_closed() {
        let verdict = final_verdict(&meta);
        show_end(ui, &dir, &meta, &verdict);
        return Ok(verdict.status());
    }
    block_on(async {
        let cancel = cancel_on_signals().or_machine()?;
        let repo = find_repo(&meta.fork.path).await?;
        let fork_lock = acquire_fork_lock(ui, &repo, &places.cache, DEFAULT_WAIT_SECS).await?;
        let outcome = advance(ForkRun::open(ui, &places, dir, repo, cancel)?).await;
        drop(fork_lock);
        outcome
    })
}
