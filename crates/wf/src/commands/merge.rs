//! `wf merge`: brings a workstream that is merge-ready into the default branch.

use clap::Args;
use forge::Forge;
use host::git::WorktreeRepo;
use host::lock::FileLock;
use merge::resolver::decide::TrustThreshold;
use model::id::WorkstreamId;
use serde_json::json;

use super::App;
use super::merge_gate::{GateEnd, Gates};
use crate::cli::Which;
use crate::disk::{ProjectDirs, ProjectEffects, Workstream};
use crate::exit::{Failure, Outcome, WfExit, WfResult};
use crate::flow::base::{MergedCommits, observe_merged};
use crate::flow::merge::{Merged, Publish, Retargeted, merge_local, retarget};
use crate::flow::product::open_product;
use crate::flow::pull::{MergeRoute, choose_merge_route, observe_pull, publish, remember};
use crate::flow::update::{OpenConflicts, UpdateOptions, Updated, update};
use crate::rules::profile::Profile;
use crate::rules::pull::PullAction;
use crate::rules::status::WorkstreamStatus;

/// Times that the gates judge while a branch moves under them.
const GATE_TRIES: usize = 3;

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
    pub(super) untested: bool,
    /// Merge without the review of the whole branch that BRANCH_REVIEW asks for
    #[arg(long)]
    pub(super) unreviewed: bool,
    /// Leave conflicts that are not resolved automatically to a person instead of the agent
    #[arg(long)]
    pub(super) no_agent: bool,
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
    match route {
        MergeRoute::Local => {
            let gates = Gates { app, dirs: &dirs, product: &product, profile: &profile, args };
            let publish = if args.push { Publish::Push } else { Publish::Here };
            merge_here(&gates, workstream, publish).await
        }
        MergeRoute::Forge(forge) => {
            let gates = Gates { app, dirs: &dirs, product: &product, profile: &profile, args };
            merge_there(&gates, workstream, &forge).await
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
    let (id, branch, base) = (&meta.id, &meta.branch, &meta.base_branch);
    let blocked = |message: String| Err(Failure::new(WfExit::Blocked, message));
    match observe_merged(product, workstream).await? {
        MergedCommits::Present => {}
        MergedCommits::Lost => {
            return blocked(format!(
                "{id} is done, but {branch} has commits that are not in {base}; move them to another workstream"
            ));
        }
        MergedCommits::TakenBack => {
            return blocked(format!(
                "{id} was merged into {base} and taken back there; to bring it back, revert the commit that reverted it"
            ));
        }
        MergedCommits::BaseGone => {
            return blocked(format!(
                "{id} is done, but {base}, which it was merged into, does not exist any more; restore it, or merge {branch} by hand"
            ));
        }
    }
    let _lock = dirs.lock_global(&format!("merge {id}")).await?;
    let found = retarget(dirs, product, workstream).await?;
    dirs.write_active()?;
    app.ui.line(&format!("{id} is merged into {base} already"));
    show_moved(app, workstream, &found);
    app.ui
        .document(&json!({"workstream": meta.id, "base_branch": meta.base_branch, "merged": null}));
    app.ui.status(&format!("Next: wf close {}", meta.id));
    Ok(WfExit::Success)
}

/// Merges what the gates judged. A branch that moves meanwhile is judged again.
async fn merge_here(gates: &Gates<'_>, mut workstream: Workstream, publish: Publish) -> Outcome {
    let Gates { app, dirs, product, .. } = *gates;
    for _ in 0..GATE_TRIES {
        let judged = match gates.pass(&mut workstream).await? {
            GateEnd::Passed(judged) => judged,
            GateEnd::Stopped(exit) => return Ok(exit),
        };
        let lock = dirs.lock_global_with_git(&format!("merge {}", workstream.meta.id)).await?;
        let merging = merge_local(dirs, product, &mut workstream, &judged, publish, &lock);
        let Some(merged) = merging.await? else {
            let meta = &workstream.meta;
            app.ui.status(&format!(
                "{} or {} moved while the gates judged; judging again",
                meta.base_branch, meta.branch
            ));
            continue;
        };
        return finish_here(gates, &workstream, &merged, lock).await;
    }
    let meta = &workstream.meta;
    let words = format!(
        "{} or {} moved {GATE_TRIES} times while the gates judged, and nothing was merged; when they rest: wf merge {}",
        meta.base_branch, meta.branch, meta.id
    );
    Err(Failure::new(WfExit::Blocked, words))
}

async fn finish_here(
    gates: &Gates<'_>,
    workstream: &Workstream,
    merged: &Merged,
    lock: FileLock,
) -> Outcome {
    let Gates { app, dirs, product, profile, .. } = *gates;
    let found = retarget(dirs, product, workstream).await?;
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
    drop(lock);
    warn_stuck(app, &found);
    bring_up_to_date(app, dirs, product, profile, &found.moved).await;
    app.ui.status(&format!("Next: wf close {}", meta.id));
    Ok(WfExit::Success)
}

/// Names the workstreams that are based on what was merged.
fn show_moved(app: &App, merged: &Workstream, found: &Retargeted) {
    warn_stuck(app, found);
    for id in &found.moved {
        let base = &merged.meta.base_branch;
        app.ui.line(&format!("{id} is based on {base} now; bring it up to date: wf update {id}"));
    }
}

fn warn_stuck(app: &App, found: &Retargeted) {
    found.stuck.iter().for_each(|message| app.ui.warn(message));
}

/// Merges the base into the workstreams that were based on what was merged. What cannot be done is left to `wf update`.
async fn bring_up_to_date(
    app: &App,
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    profile: &Profile,
    moved: &[WorkstreamId],
) {
    for id in moved {
        let updated = async {
            let _run = dirs.try_lock_workstream(id, "update")?;
            let mut above = Workstream::load_dir(&dirs.workstream_dir(id))?;
            let (ui, trust, open) = (&app.ui, TrustThreshold::DEFAULT, OpenConflicts::Refuse);
            let options = UpdateOptions { ui, profile, trust, open };
            let updated = update(dirs, product, &mut above, &options).await?;
            WfResult::Ok((updated, above.meta.base_branch))
        };
        match updated.await {
            Ok((Updated::Same, base)) => {
                app.ui.line(&format!("{id} is based on {base} now and contains it"));
            }
            Ok((Updated::Forward { commit } | Updated::Merged { commit, .. }, base)) => {
                let commit = commit.short();
                app.ui.line(&format!("{id} is based on {base} now and was brought up to date: {commit}"));
            }
            Err(failure) => app.ui.warn(&format!(
                "{id} is based on another branch now and could not be brought up to date: {failure}; run: wf update {id}"
            )),
        }
    }
}

/// Merges through a forge: opens the pull request first, and finishes once it is merged.
async fn merge_there(gates: &Gates<'_>, mut workstream: Workstream, forge: &Forge) -> Outcome {
    let Gates { app, dirs, product, .. } = *gates;
    let (step, pull) = observe_pull(forge, product, &workstream).await?;
    let id = workstream.meta.id.clone();
    let url = pull.as_ref().map(|pull| pull.url.clone()).unwrap_or_default();
    match step {
        PullAction::Publish => {
            if let GateEnd::Stopped(exit) = gates.pass(&mut workstream).await? {
                return Ok(exit);
            }
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
            let found = retarget(dirs, product, &workstream).await?;
            dirs.write_active()?;
            let base = &workstream.meta.base_branch;
            app.ui.line(&format!("{id} was merged into {base} at {url}"));
            app.ui.document(&json!({"workstream": id, "base_branch": base, "pull": pull}));
            show_moved(app, &workstream, &found);
            app.ui.status(&format!("Next: git pull, then wf close {id}"));
            Ok(WfExit::Success)
        }
    }
}
