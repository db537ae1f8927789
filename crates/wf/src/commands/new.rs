//! `wf new`: a branch, a worktree and a folder with an empty plan.

use model::exit::WfExit;

use super::App;
use crate::exit::Outcome;
use crate::flow::create::{CreateRequest, create};
use crate::flow::product::open_product;

/// Makes the workstream, or nothing.
pub(crate) async fn run(
    app: &App,
    id: &str,
    title: &str,
    expected: &str,
    prefix: Option<&str>,
) -> Outcome {
    let dirs = app.dirs()?;
    let product = open_product(&dirs).await?;
    let (workstream, warnings) =
        create(&dirs, &product, &CreateRequest { id, title, expected, prefix }).await?;
    for warning in warnings {
        app.ui.warn(&warning);
    }
    let meta = &workstream.meta;
    app.ui.line(&format!("Created workstream: {}", meta.id));
    app.ui.line(&format!("  Branch: {}", meta.branch));
    app.ui.line(&format!("  Worktree: {}", meta.worktree.display()));
    app.ui.line(&format!("  Plan: {}", workstream.plan_path().display()));
    app.ui.document(meta);
    app.ui.status(&format!("Write the plan, then: wf run {} --loop", meta.id));
    Ok(WfExit::Success)
}
