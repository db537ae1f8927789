//! `wf status`: a workstream with its plan, its blockers and its last run.

use serde_json::json;

use super::App;
use crate::cli::Which;
use crate::disk::queue::names_of;
use crate::disk::{OpenRun, Workstream, load_result};
use crate::exit::{Failure, Outcome, WfExit};
use crate::flow::product::{missing_branches, open_product};
use crate::rules::clarification::{Clarification, ClarificationStatus};
use crate::rules::plan::Plan;
use crate::rules::result::RunResult;
use crate::rules::touched::parse_touched;
use crate::rules::uat::{Uat, UatStatus};

struct StatusView {
    workstream: Workstream,
    plan: Result<Plan, String>,
    questions: Vec<String>,
    uats: Vec<(UatStatus, Vec<String>)>,
    touched: usize,
    is_running: bool,
    interrupted: Option<OpenRun>,
    last: Option<RunResult>,
    /// Why it cannot go on, if its branch is gone.
    fault: Option<String>,
}

pub(crate) async fn cmd_status(app: &App, which: &Which) -> Outcome {
    let (dirs, workstream) = app.open(which)?;
    let mut uats = Vec::new();
    for status in UatStatus::ALL {
        uats.push((status, names_of::<Uat>(&workstream.dir, status)?));
    }
    let last_run = workstream.meta.last_run_id.as_ref().map(|run| dirs.runs_dir().join(run));
    // A repository that cannot be read says so where it is needed.
    let fault = match open_product(&dirs).await {
        Ok(product) => missing_branches(&product, &[&workstream]).await.ok(),
        Err(_) => None,
    };
    let view = StatusView {
        fault: fault.and_then(|mut faults| faults.pop().flatten()),
        plan: workstream.load_plan().map_err(|error| Failure::from(error).to_string()),
        questions: names_of::<Clarification>(&workstream.dir, ClarificationStatus::Pending)?,
        uats,
        touched: parse_touched(&workstream.touched()?).count(),
        is_running: dirs.is_running(&workstream.meta.id),
        interrupted: OpenRun::load_interrupted(&dirs, &workstream.meta.id)?,
        last: last_run.and_then(|run| load_result(&run).ok().flatten()),
        workstream,
    };
    if app.ui.is_json() {
        show_json(app, &view);
    } else {
        show_page(app, &view);
    }
    Ok(WfExit::Success)
}

fn show_json(app: &App, view: &StatusView) {
    let plan = match &view.plan {
        Ok(plan) => json!({
            "done": plan.done_count(),
            "warnings": plan.warnings,
            "commits": plan.commits.iter().map(|commit| json!({
                "id": commit.id, "title": commit.title, "done": commit.is_done,
                "superseded": commit.superseded, "line": commit.line,
            })).collect::<Vec<_>>(),
        }),
        Err(error) => json!({"error": error}),
    };
    let uats: serde_json::Map<String, serde_json::Value> = view
        .uats
        .iter()
        .map(|(status, names)| (status.folder().to_owned(), json!(names)))
        .collect();
    let interrupted = view.interrupted.as_ref();
    let interrupted = interrupted.map(|run| json!({"run": run.directory, "stage": run.stage}));
    app.ui.document(&json!({
        "meta": view.workstream.meta, "plan": plan, "clarifications": view.questions, "uat": uats,
        "touched_files": view.touched, "running": view.is_running, "interrupted": interrupted, "last_run": view.last,
        "needs": view.fault.as_deref().or(view.workstream.meta.status.needs()), "fault": view.fault,
    }));
}

fn show_page(app: &App, view: &StatusView) {
    let (ui, meta) = (&app.ui, &view.workstream.meta);
    ui.result("workstream", &format!("{}: {}", meta.id, meta.title));
    let running = if view.is_running { " (a run is active)" } else { "" };
    let gone = if view.fault.is_some() { ", but its branch is gone" } else { "" };
    ui.result("status", &format!("{}{running}{gone}", meta.status));
    ui.result(
        "branch",
        &format!("{} from {} at {}", meta.branch, meta.base_branch, meta.base_sha.short()),
    );
    if !meta.after.is_empty() {
        ui.result("after", &meta.after.join(" "));
    }
    ui.result("worktree", &meta.worktree.display().to_string());
    ui.result("expects", &meta.expected_paths.join(" "));
    let files = if view.touched == 1 { "file" } else { "files" };
    let touched = format!("{} {files}, refreshed {}", view.touched, meta.last_refreshed);
    ui.result("touched", &touched);
    match &view.plan {
        Ok(plan) => show_plan(app, plan),
        Err(error) => ui.result("plan", error),
    }
    if !view.questions.is_empty() {
        ui.result("questions", &view.questions.join(", "));
    }
    for (status, names) in view.uats.iter().filter(|(_, names)| !names.is_empty()) {
        ui.result(&format!("uat {}", status.folder()), &names.join(", "));
    }
    if let (Some(run), Some(last)) = (&meta.last_run_id, &view.last) {
        let stage =
            last.failed_stage.as_ref().map(|stage| format!(" at {stage}")).unwrap_or_default();
        ui.result("last run", &format!("{run}: {}{stage}", last.status.word()));
    }
    if let Some(run) = &view.interrupted {
        let text = format!("{} in {}; go on: wf run {}", run.directory, run.stage, meta.id);
        ui.result("interrupted", &text);
    }
    match (&view.fault, meta.status.needs_of(&meta.id)) {
        (Some(fault), _) => ui.result("needs you", fault),
        (None, Some(needs)) => ui.result("needs you", &needs),
        (None, None) => {}
    }
}

fn show_plan(app: &App, plan: &Plan) {
    app.ui.result("plan", &format!("{} of {} done", plan.done_count(), plan.wanted_count()));
    for commit in &plan.commits {
        let mark = match commit {
            commit if commit.is_done => "x",
            commit if commit.superseded.is_some() => "-",
            _ => " ",
        };
        let by = commit.superseded.as_ref().map(|by| format!(" (superseded: {by})"));
        let by = by.unwrap_or_default();
        app.ui.result("", &format!("[{mark}] {}: {}{by}", commit.id, commit.title));
    }
    for warning in &plan.warnings {
        app.ui.warn(warning);
    }
}
