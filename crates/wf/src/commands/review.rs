//! `wf review`: a reviewer looks at everything that a workstream would bring into its base branch.

use clap::Args;
use host::git::WorktreeRepo;
use serde_json::{Value, json};

use super::App;
use crate::cli::Which;
use crate::disk::{ProjectDirs, Workstream};
use crate::exit::{OrExit, Outcome, WfExit, WfResult};
use crate::flow::branch_review::{render_objection, review_branch};
use crate::flow::fix::{plan_fixes_locked, render_fixes};
use crate::flow::product::{check_worktree, open_product};
use crate::rules::fix::fixes_of_review;
use crate::rules::profile::Profile;

/// Review the whole branch of a workstream, as before a merge
///
/// The reviewer gets all changes against the base branch, in a sealed box. What it objects to is added to the plan as fix
/// micro-commits. With BRANCH_REVIEW=true in the profile `wf merge` does this too.
#[derive(Debug, Args)]
pub(crate) struct BranchReviewArgs {
    #[command(flatten)]
    which: Which,
}

/// Reviews. Refused while a run is active.
pub(crate) async fn cmd_review(app: &App, args: &BranchReviewArgs) -> Outcome {
    let (dirs, workstream) = app.open(&args.which)?;
    let (profile, _) = dirs.load_profile()?;
    let product = open_product(&dirs).await?;
    let _run = dirs.try_lock_workstream(&workstream.meta.id, "review")?;
    let mut workstream = Workstream::load_dir(&workstream.dir)?;
    check_worktree(&dirs, &product, &workstream).await?.or_exit(WfExit::Implement)?;
    let (exit, document) = review(app, &dirs, &product, &mut workstream, &profile).await?;
    app.ui.document(&document);
    Ok(exit)
}

/// Reviews the branch unless its tip was approved before. An objection ends the merge.
pub(super) async fn review_before_merge(
    app: &App,
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    workstream: &mut Workstream,
    profile: &Profile,
) -> Outcome {
    let head = product.branch_tip(&workstream.meta.branch).await.or_exit(WfExit::General)?;
    if head.is_some() && head == workstream.meta.reviewed_sha {
        return Ok(WfExit::Success);
    }
    let (exit, document) = review(app, dirs, product, workstream, profile).await?;
    if exit != WfExit::Success {
        app.ui.document(&document);
    }
    Ok(exit)
}

/// Reviews, records an approval or plans the fixes. Returns the status and what scripts get.
async fn review(
    app: &App,
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    workstream: &mut Workstream,
    profile: &Profile,
) -> WfResult<(WfExit, Value)> {
    let found = review_branch(&app.ui, dirs, product, workstream, profile).await?;
    let id = workstream.meta.id.clone();
    let mut planned = Vec::new();
    let exit = if found.is_approved() {
        let _lock = dirs.lock_global(&format!("review {id}")).await?;
        workstream.change(&[("REVIEWED_SHA", found.head.as_str())])?;
        app.ui.line(&format!("The reviewer approved {id} as a whole at {}", found.head));
        if let Some(warning) = found.review.warning() {
            app.ui.warn(&warning);
        }
        WfExit::Success
    } else {
        let fixes = fixes_of_review(&found.review);
        planned = plan_fixes_locked(dirs, workstream, &fixes, "the review of the branch").await?;
        app.ui.line(&format!("{id}: {}", render_objection(&found.review)));
        app.ui.line(&format!("  {}", render_fixes(workstream, &planned)));
        WfExit::Review
    };
    app.ui.line(&format!("  Run: {}", dirs.runs_dir().join(&found.run).display()));
    let document = json!({
        "workstream": id, "run": found.run, "head": found.head, "review": found.document(), "planned": planned,
        "status": workstream.meta.status,
    });
    Ok((exit, document))
}
