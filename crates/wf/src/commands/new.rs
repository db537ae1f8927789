//! `wf new`: a branch, a worktree and a folder with an empty plan.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;

use super::App;
use crate::commands::complete::workstream_ids;
use crate::exit::{Outcome, WfExit};
use crate::flow::create::{CreateRequest, create};
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
}

pub(crate) async fn cmd_new(app: &App, args: &NewArgs) -> Outcome {
    let NewArgs { id, title, expected_paths: expected, prefix, base } = args;
    let dirs = app.dirs()?;
    let product = open_product(&dirs).await?;
    let (prefix, base) = (prefix.as_deref(), base.as_deref());
    let request = CreateRequest { id, title, expected, prefix, base };
    let (workstream, warnings) = create(&dirs, &product, &request).await?;
    for warning in warnings {
        app.ui.warn(&warning);
    }
    let meta = &workstream.meta;
    app.ui.line(&format!("Created workstream: {}", meta.id));
    app.ui.line(&format!("  Branch: {}", meta.branch));
    if meta.base_branch != dirs.project.default_branch {
        app.ui.line(&format!("  Base: {}", meta.base_branch));
    }
    app.ui.line(&format!("  Worktree: {}", meta.worktree.display()));
    app.ui.line(&format!("  Plan: {}", workstream.plan_path().display()));
    app.ui.document(meta);
    app.ui.status(&format!("Write the plan, then: wf run {} --loop", meta.id));
    Ok(WfExit::Success)
}
