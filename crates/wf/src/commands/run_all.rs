//! `wf run --all`: runs every workstream that is ready, and shows what came of each.

use serde_json::json;

use super::App;
use crate::exit::{OrExit, Outcome, WfExit};
use crate::flow::product::open_product;
use crate::flow::run_all::{RunAllOptions, WorkstreamReport, run_all};

/// Runs all. The status is the most serious one of the runs; what waits for a person counts as blocked.
pub(super) async fn cmd_run_all(app: &App, options: &RunAllOptions) -> Outcome {
    let dirs = app.dirs()?;
    let product = open_product(&dirs).await?;
    let cancel = host::signal::cancel_on_signals().or_exit(WfExit::General)?;
    let (reports, status) = run_all(&dirs, &product, &app.ui, options, &cancel).await?;
    show(app, &reports);
    app.ui.document(&json!({"workstreams": reports, "exit_code": status.code()}));
    match cancel.reason() {
        Some(_) => Ok(WfExit::General),
        None => Ok(status),
    }
}

fn show(app: &App, reports: &[WorkstreamReport]) {
    if reports.is_empty() {
        app.ui.line("There are no workstreams; make one: wf new");
        return;
    }
    let row = |report: &WorkstreamReport| {
        vec![
            report.workstream.clone(),
            report.exit_code.map_or_else(|| "-".to_owned(), |code| code.to_string()),
            report.done.len().to_string(),
            report.status.to_string(),
            report.message.clone(),
        ]
    };
    let head = ["WORKSTREAM", "EXIT", "DONE", "STATUS", "LAST WORDS"];
    app.ui.table(&head, reports.iter().map(row));
}
