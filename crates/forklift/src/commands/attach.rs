//! `forklift attach`: finish a run whose forklift was killed.

use agent::Usage;
use clap::Args;
use host::signal::cancel_on_signals;
use model::exit::ForkliftExit;
use run_store::env_snapshot::LaterSnapshot;
use run_store::metadata::load_metadata;
use run_store::run_dir;

use super::run_args::DEFAULT_WAIT_SECS;
use super::{ForkliftDirs, block_on};
use crate::exit::{OrExit, Outcome};
use crate::flow::fork_lock::acquire_fork_lock;
use crate::flow::metadata::Metadata;
use crate::flow::observe::find_repo;
use crate::flow::pull::ForgePlan;
use crate::flow::resume::EarlierRun;
use crate::flow::run::Run;
use crate::flow::sealed::load_plan;
use crate::flow::show::show_end;
use crate::rules::judge::Verdict;
use crate::ui::Ui;

/// Finish a run whose forklift was killed: wait for its box, import, verify, publish
#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// The run's name, or the start of it
    run: String,
}

/// Continues the run from its last mark.
pub(crate) fn cmd_attach(ui: &Ui, args: &AttachArgs) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    let dir = run_dir::find(&places.runs, &args.run).or_exit(ForkliftExit::Usage)?;
    let meta: Metadata = load_metadata(&dir).or_exit(ForkliftExit::Machine)?;
    if dir.is_closed() {
        let verdict = meta.verdict.clone().unwrap_or(Verdict::UpToDate);
        show_end(ui, &dir, &meta, &verdict);
        return Ok(verdict.status());
    }
    block_on(async {
        let cancel = cancel_on_signals().or_exit(ForkliftExit::Machine)?;
        let repo = find_repo(&meta.fork.path).await?;
        let plan = load_plan(&dir)?;
        let forge = ForgePlan::find(&meta.fork.forge, &places.config)?;
        let mut secrets: Vec<_> = forge.token.iter().cloned().collect();
        secrets.extend(plan.key.variables().into_iter().flatten().map(|(_, key)| key));
        shell::terminal::hide(secrets.iter().cloned());
        let cache = places.cache.clone();
        let fork_lock = acquire_fork_lock(ui, &repo, &cache, DEFAULT_WAIT_SECS).await?;
        let used_before = match &meta.resumed_from {
            Some(earlier) => {
                let dir =
                    run_dir::find(&places.runs, earlier.as_str()).or_exit(ForkliftExit::Usage)?;
                EarlierRun::load(&dir, None)?.used()
            }
            None => Usage::default(),
        };
        let run = Run {
            ui,
            dir,
            meta,
            repo,
            plan,
            forge,
            secrets,
            cancel,
            cache,
            used_before,
            snapshot: LaterSnapshot::default(),
        };
        let outcome = run.advance().await;
        drop(fork_lock);
        outcome
    })
}
