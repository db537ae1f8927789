//! A stage outside the pipeline, in a run of its own: the gate test of a merge, the draft of a plan.

use std::path::PathBuf;
use std::sync::Arc;

use host::git::WorktreeRepo;
use model::redact::Redactor;
use run_store::commands_log::CommandsLog;
use shell::Ui;

use super::{SetupUse, StageContext, StageRunner, WorkLocation, tidy};
use crate::disk::{ProjectDirs, WfRunDir, Workstream, load_secrets};
use crate::exit::{Failure, OrExit, WfExit, WfResult};
use crate::flow::run::owner_of;
use crate::rules::profile::Profile;
use crate::rules::run_id::{RunTopic, run_stem};

/// Runs one stage on the worktree's commit. Returns its result and the run's directory.
pub(crate) async fn run_alone<T>(
    ui: &Ui,
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    workstream: &Workstream,
    profile: &Profile,
    topic: RunTopic<'_>,
    stage: impl AsyncFnOnce(StageContext<'_>) -> T,
) -> WfResult<(T, PathBuf)> {
    let stem = run_stem(host::clock::now(), &dirs.project.name, &workstream.meta.id);
    let owner = owner_of(dirs, &workstream.meta.id);
    let (mut run, _alive) = WfRunDir::create(&dirs.runs_dir(), &stem, &owner)?;
    run.set_topic(topic)?;
    let run_dir = run.path();
    let cancel = host::signal::cancel_on_signals().or_exit(WfExit::General)?;
    let runner = StageRunner::new(dirs, ui)?;
    let redactor = Arc::new(Redactor::new(load_secrets(dirs)?));
    let log = CommandsLog::open_in(&run_dir, Arc::clone(&redactor)).or_exit(WfExit::General)?;
    let log = Arc::new(log).callback();
    let head = product.head(&workstream.meta.worktree).await.or_exit(WfExit::General)?;
    let head = head.ok_or_else(|| Failure::new(WfExit::Implement, "the worktree has no commit"))?;
    let context = StageContext {
        runner: &runner,
        workstream,
        profile,
        product,
        head: &head,
        run_dir: &run_dir,
        cancel: &cancel,
        log: &log,
        redactor: &redactor,
        setup: SetupUse::Kept,
    };
    let result = stage(context).await;
    tidy(&run_dir, WorkLocation::Unknown);
    Ok((result, run_dir))
}
