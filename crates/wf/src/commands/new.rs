//! `wf new`: a branch, a worktree and a folder with an empty plan.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;

use super::App;
use crate::commands::complete::workstream_ids;
use crate::disk::{ProjectDirs, Workstream};
use crate::exit::{Outcome, WfExit};
use crate::flow::create::{CheckoutExtent, CreateRequest, create};
use crate::flow::product::open_product;

/// Create a workstream: a branch, a worktree and an empty plan
#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// Lower-case letters, digits, _ and -, starting with a letter
    id: String,
    /// 1 to 100 characters
    title: String,
    /// Paths that it is expected to touch, separated by blanks
    #[arg(default_value = "")]
    expected_paths: String,
    /// Start of the branch name, instead of BRANCH_PREFIX
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,
    /// The branch or workstream to start from and to be merged into [default: DEFAULT_BRANCH]
    #[arg(long, value_name = "BRANCH|ID", add = ArgValueCandidates::new(workstream_ids))]
    base: Option<String>,
    /// A workstream that must be merged before `wf run --all` starts this one; may be repeated
    #[arg(long, value_name = "ID", add = ArgValueCandidates::new(workstream_ids))]
    after: Vec<String>,
    /// Check out only the expected paths, SPARSE_PATHS of the profile and the files beside them
    #[arg(long)]
    sparse: bool,
}

pub(crate) async fn cmd_new(app: &App, args: &NewArgs) -> Outcome {
    let NewArgs { id, title, expected_paths: expected, prefix, base, after, sparse } = args;
    let checkout = if *sparse { CheckoutExtent::Sparse } else { CheckoutExtent::Profile };
    let dirs = app.dirs()?;
    let product = open_product(&dirs).await?;
    let (prefix, base) = (prefix.as_deref(), base.as_deref());
    let story = None;
    let request = CreateRequest { id, title, expected, prefix, base, after, checkout, story };
    let (workstream, warnings) = create(&dirs, &product, &request).await?;
    show_created(app, &dirs, &workstream, &warnings);
    let id = &workstream.meta.id;
    app.ui.status(&format!("Write the plan, then: wf run {id} --loop"));
    Ok(WfExit::Success)
}

pub(super) fn show_created(
    app: &App,
    dirs: &ProjectDirs,
    workstream: &Workstream,
    warnings: &[String],
) {
    for warning in warnings {
        app.ui.warn(warning);
    }
    let meta = &workstream.meta;
    app.ui.line(&format!("Created workstream: {}", meta.id));
    app.ui.line(&format!("  Branch: {}", meta.branch));
    if meta.base_branch != dirs.project.default_branch {
        app.ui.line(&format!("  Base: {}", meta.base_branch));
    }
    if !meta.after.is_empty() {
        app.ui.line(&format!("  After: {}", meta.after.join(" ")));
    }
    app.ui.line(&format!("  Worktree: {}", meta.worktree.display()));
    if !meta.sparse.is_empty() {
        app.ui.line(&format!("  Sparse: {}", meta.sparse.join(" ")));
    }
    app.ui.line(&format!("  Plan: {}", workstream.plan_path().display()));
    if let Some(story) = &meta.story {
        app.ui.line(&format!("  Story: {story}"));
    }
    app.ui.document(meta);
}
