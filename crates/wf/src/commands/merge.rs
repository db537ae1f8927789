//! `wf merge`: brings a workstream that is merge-ready into the default branch.

use clap::Args;
use forge::Forge;
use host::git::WorktreeRepo;
use model::id::WorkstreamId;
use serde_json::json;

use super::App;
use crate::cli::Which;
use crate::disk::project_dirs::PROFILE_ENV;
use crate::disk::{ProjectDirs, ProjectEffects, Workstream};
use crate::exit::{Failure, OrExit, Outcome, WfExit, WfResult};
use crate::flow::merge::{Publish, check_ready, merge_local, retarget};
use crate::flow::product::open_product;
use crate::flow::pull::{MergeRoute, choose_merge_route, observe_pull, publish, remember};
use crate::flow::stage::{StageRunError, run_alone};
use crate::flow::suite::run_suite;
use crate::rules::manifest::SuiteStatus;
use crate::rules::profile::{Profile, Suite, SuiteRunner};
use crate::rules::pull::PullAction;
use crate::rules::run_id::RunTopic;
use crate::rules::status::WorkstreamStatus;

/// Merge a workstream that is merge-ready
#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    #[command(flatten)]
    which: Which,
    /// Push the merged branch to origin
    #[arg(long)]
    push: bool,
    /// Merge although no test can run
    #[arg(long)]
    untested: bool,
}

/// Handling of a gate test that cannot run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Untested {
    Refuse,
    Accept,
}

/// Merges. Refused while a run is active; the global lock is held only for the merge itself.
pub(crate) async fn cmd_merge(app: &App, args: &MergeArgs) -> Outcome {
    let (dirs, mut workstream) = app.open(&args.which)?;
    let (profile, _) = dirs.load_profile()?;
    let product = open_product(&dirs).await?;
    let _run = dirs.try_lock_workstream(&workstream.meta.id, "merge")?;
    workstream = Workstream::load_dir(&workstream.dir)?;
    if workstream.meta.status == WorkstreamStatus::Done {
        return already_merged(app, &dirs, &product, &workstream).await;
    }
    let route = choose_merge_route(&dirs, &product, &profile).await?;
    let untested = if args.untested { Untested::Accept } else { Untested::Refuse };
    match route {
        MergeRoute::Local => {
            check_ready(&dirs, &product, &workstream).await?;
            test_gate(app, &dirs, &product, &workstream, &profile, untested).await?;
            let publish = if args.push { Publish::Push } else { Publish::Here };
            merge_here(app, &dirs, &product, workstream, publish).await
        }
        MergeRoute::Forge(forge) => {
            merge_there(app, &dirs, &product, workstream, (&profile, untested), &forge).await
        }
    }
}

/// Reports a merge that was done before, so that a script can repeat a command that was killed. A branch that has got
/// commits since is not merged.
async fn already_merged(
    app: &App,
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    workstream: &Workstream,
) -> Outcome {
    let meta = &workstream.meta;
    let tips = [&meta.branch, &meta.base_branch].map(|branch| product.branch_tip(branch));
    let [head, base] = tips;
    let (head, base) = (head.await.or_exit(WfExit::General)?, base.await.or_exit(WfExit::General)?);
    if let (Some(head), Some(base)) = (head, base)
        && meta.merge_pull.is_none()
        && !product.user().is_ancestor(&head, &base).await.or_exit(WfExit::General)?
    {
        let message = format!(
            "{} is done, but {} has commits that are not in {}; move them to another workstream",
            meta.id, meta.branch, meta.base_branch
        );
        return Err(Failure::new(WfExit::Blocked, message));
    }
    let _lock = dirs.lock_global(&format!("merge {}", meta.id)).await?;
    let moved = retarget(dirs, workstream)?;
    dirs.write_active()?;
    app.ui.line(&format!("{} is merged into {} already", meta.id, meta.base_branch));
    show_moved(app, workstream, &moved);
    app.ui
        .document(&json!({"workstream": meta.id, "base_branch": meta.base_branch, "merged": null}));
    app.ui.status(&format!("Next: wf close {}", meta.id));
    Ok(WfExit::Success)
}

async fn merge_here(
    app: &App,
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    mut workstream: Workstream,
    publish: Publish,
) -> Outcome {
    let lock = dirs.lock_global_with_git(&format!("merge {}", workstream.meta.id)).await?;
    let merged = merge_local(dirs, product, &mut workstream, publish, &lock).await?;
    let moved = retarget(dirs, &workstream)?;
    dirs.write_active()?;
    let meta = &workstream.meta;
    let how = if merged.is_fast_forward { "fast-forward" } else { "merge commit" };
    app.ui.line(&format!(
        "Merged {} into {} at {} ({how})",
        meta.id, meta.base_branch, merged.commit
    ));
    app.ui.document(
        &json!({"workstream": meta.id, "base_branch": meta.base_branch, "merged": merged}),
    );
    show_moved(app, &workstream, &moved);
    app.ui.status(&format!("Next: wf close {}", meta.id));
    Ok(WfExit::Success)
}

/// Names the workstreams that are based on what was merged.
fn show_moved(app: &App, merged: &Workstream, moved: &[WorkstreamId]) {
    for id in moved {
        let base = &merged.meta.base_branch;
        app.ui.line(&format!("{id} is based on {base} now; bring it up to date: wf update {id}"));
    }
}

/// Merges through a forge: opens the pull request first, and finishes once it is merged.
async fn merge_there(
    app: &App,
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    mut workstream: Workstream,
    (profile, untested): (&Profile, Untested),
    forge: &Forge,
) -> Outcome {
    let (step, pull) = observe_pull(forge, product, &workstream).await?;
    let id = workstream.meta.id.clone();
    let url = pull.as_ref().map(|pull| pull.url.clone()).unwrap_or_default();
    match step {
        PullAction::Publish => {
            check_ready(dirs, product, &workstream).await?;
            test_gate(app, dirs, product, &workstream, profile, untested).await?;
            let effects = ProjectEffects::of(dirs)?;
            let (pull, tip) = publish(forge, product, &workstream, &effects).await?;
            let _lock = dirs.lock_global(&format!("merge {id}")).await?;
            remember(&mut workstream, &pull, &tip)?;
            app.ui.line(&format!("Opened {} for {id}", pull.url));
            app.ui.document(&json!({"workstream": id, "pull": pull}));
            app.ui.status(&format!("When it is merged there: wf merge {id}"));
            Ok(WfExit::Success)
        }
        PullAction::Wait => Err(Failure::new(
            WfExit::Blocked,
            format!("{id} waits for its merge at {url}; after that run: wf merge {id}"),
        )),
        PullAction::LeftBehind => Err(Failure::new(
            WfExit::Blocked,
            format!(
                "{url} is merged, but {} has commits that are not in it; move them to another workstream",
                workstream.meta.branch
            ),
        )),
        PullAction::Finish => {
            let _lock = dirs.lock_global(&format!("merge {id}")).await?;
            workstream.set_status(WorkstreamStatus::Done, "")?;
            let moved = retarget(dirs, &workstream)?;
            dirs.write_active()?;
            let base = &workstream.meta.base_branch;
            app.ui.line(&format!("{id} was merged into {base} at {url}"));
            app.ui.document(&json!({"workstream": id, "base_branch": base, "pull": pull}));
            show_moved(app, &workstream, &moved);
            app.ui.status(&format!("Next: git pull, then wf close {id}"));
            Ok(WfExit::Success)
        }
    }
}

async fn test_gate(
    app: &App,
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    workstream: &Workstream,
    profile: &Profile,
    untested: Untested,
) -> WfResult<()> {
    let unit = profile.suites.first().map(|suite| suite.how.clone());
    let how = match (&profile.merge_gate_target, &profile.makefile) {
        (Some(target), Some(_)) => SuiteRunner::Make(target.clone()),
        _ => unit.unwrap_or(SuiteRunner::Skip("no suite configured")),
    };
    let suite = Suite { name: "merge-gate", how };
    let (result, run_dir) =
        run_alone(&app.ui, dirs, product, workstream, profile, RunTopic::Merge, async |stage| {
            run_suite(stage, &suite).await
        })
        .await?;
    let result = result.map_err(|error| match error {
        StageRunError::Machine(message) => Failure::new(WfExit::General, message),
        error => Failure::new(WfExit::Test, error.to_string()),
    })?;
    match result.status {
        SuiteStatus::Passed => Ok(()),
        SuiteStatus::Skipped => {
            let message = format!("no gate test ran: {}", result.reason.unwrap_or_default());
            if untested == Untested::Accept {
                app.ui.warn(&message);
                return Ok(());
            }
            let (id, profile) = (&workstream.meta.id, dirs.dir.join(PROFILE_ENV));
            let remedy = format!(
                "name one in {} (MAKE_TARGET_MERGE_GATE_TEST, MAKE_TARGET_UNIT or TEST_CMD_UNIT), or merge without: wf merge {id} --untested",
                profile.display()
            );
            Err(Failure::new(WfExit::Test, format!("{message}; {remedy}")))
        }
        SuiteStatus::Failed => Err(Failure::new(
            WfExit::Test,
            format!(
                "the gate test failed; see {}",
                run_dir.join("tests/merge-gate/output.log").display()
            ),
        )),
    }
}
