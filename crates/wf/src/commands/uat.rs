//! `wf uat`: lists, shows, passes and fails acceptance tests.

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCandidates;
use model::id::MicroCommitId;
use serde_json::json;

use super::queue::{find_entry, list_entries, show_entry};
use super::{App, person};
use crate::commands::complete::{uat_ids, workstream_ids};
use crate::disk::queue::{QueueEntry, move_entry};
use crate::disk::{ProjectDirs, Workstream};
use crate::exit::{Failure, OrExit, Outcome, WfExit, WfResult};
use crate::flow::fix::plan_fixes;
use crate::flow::gate::update_status;
use crate::flow::product::{check_accepted, open_product};
use crate::rules::fix::{fix_of_uat, has_fix_of};
use crate::rules::plan::parse_plan;
use crate::rules::uat::{Uat, UatStatus};

/// Acceptance tests that wait for a person.
#[derive(Debug, Subcommand)]
pub(crate) enum UatCommand {
    /// List pending acceptance tests
    List {
        /// Only those of this workstream
        #[arg(long, short, value_name = "ID", add = ArgValueCandidates::new(workstream_ids))]
        workstream: Option<String>,
        /// Include those with a verdict
        #[arg(long)]
        all: bool,
    },
    /// Show an acceptance test
    Show(UatArg),
    /// Pass an acceptance test
    Pass(UatArg),
    /// Fail an acceptance test, with its issues
    Fail {
        #[command(flatten)]
        which: UatArg,
        /// What is wrong (repeatable)
        #[arg(long, value_name = "TEXT", required = true)]
        issues: Vec<String>,
    },
}

/// An acceptance test.
#[derive(Debug, Clone, Args)]
pub(crate) struct UatArg {
    /// The acceptance test, such as UAT-001
    #[arg(add = ArgValueCandidates::new(uat_ids))]
    id: String,
    /// Its workstream, if the id alone is ambiguous
    #[arg(long, short, value_name = "ID", add = ArgValueCandidates::new(workstream_ids))]
    workstream: Option<String>,
}

pub(crate) async fn cmd_uat(app: &App, command: UatCommand) -> Outcome {
    match command {
        UatCommand::List { workstream, all } => list(app, workstream.as_deref(), all),
        UatCommand::Show(which) => show_entry::<Uat>(app, &which.id, which.workstream.as_deref()),
        UatCommand::Pass(which) => {
            let verdict = |uat: Uat| uat.passed(person(), host::clock::now());
            judge(app, &which, UatStatus::Passed, verdict).await
        }
        UatCommand::Fail { which, issues } => fail(app, &which, issues).await,
    }
}

fn list(app: &App, workstream: Option<&str>, all: bool) -> Outcome {
    let statuses: &[UatStatus] = if all { &UatStatus::ALL } else { &[UatStatus::Pending] };
    let entries = list_entries::<Uat>(app, workstream, statuses)?;
    if app.ui.is_json() {
        let rows: Vec<_> = entries
            .iter()
            .map(|(id, status, entry)| match entry {
                QueueEntry::Good(uat) => json!({"workstream": id, "status": status, "uat": uat}),
                QueueEntry::Bad { name, problem } => {
                    json!({"workstream": id, "id": name, "problem": problem})
                }
            })
            .collect();
        app.ui.document(&rows);
        return Ok(WfExit::Success);
    }
    if entries.is_empty() {
        app.ui.line("No pending acceptance tests.");
        return Ok(WfExit::Success);
    }
    let rows: Vec<Vec<String>> = entries
        .into_iter()
        .map(|(id, status, entry)| {
            let scenarios = match &entry {
                QueueEntry::Good(uat) => format!("{} scenarios", uat.scenarios.len()),
                QueueEntry::Bad { problem, .. } => format!("cannot be read: {problem}"),
            };
            vec![entry.name().to_owned(), id.to_string(), status.folder().to_owned(), scenarios]
        })
        .collect();
    app.ui.table(&["ID", "WORKSTREAM", "STATUS", "CONTENT"], rows);
    Ok(WfExit::Success)
}

async fn fail(app: &App, which: &UatArg, issues: Vec<String>) -> Outcome {
    if issues.iter().any(|issue| issue.trim().is_empty()) {
        return Err(Failure::usage("an issue is empty; say what is wrong"));
    }
    let verdict = |uat: Uat| uat.failed(issues, person(), host::clock::now());
    judge(app, which, UatStatus::Failed, verdict).await
}

/// Records a verdict. The same one again completes what a killed command left, and changes nothing else.
async fn judge(
    app: &App,
    which: &UatArg,
    wanted: UatStatus,
    verdict: impl FnOnce(Uat) -> Uat,
) -> Outcome {
    let dirs = app.dirs()?;
    let _lock = dirs.lock_global(&format!("uat {}", which.id)).await?;
    let accept = |status: UatStatus| match status {
        UatStatus::Pending => Ok(()),
        status if status == wanted => Ok(()),
        UatStatus::Passed | UatStatus::Failed | UatStatus::Superseded => has_verdict(which, status),
    };
    let (mut workstream, uat): (_, Uat) =
        find_entry(app, &dirs, &which.id, which.workstream.as_deref(), accept)?;
    let is_new = uat.status == UatStatus::Pending;
    if is_new && wanted == UatStatus::Passed {
        refuse_lost(&dirs, &workstream).await?;
    }
    let (old_issues, status) = (uat.issues.clone(), uat.status);
    let judged = verdict(uat.clone());
    if !is_new && judged.issues != old_issues {
        has_verdict(which, status)?;
    }
    let uat = if is_new { judged } else { uat };
    move_entry(&workstream.dir, UatStatus::Pending, &uat)?;
    let planned = plan_fix(&mut workstream, &uat)?;
    let now = update_status(&mut workstream)?;
    app.ui.line(&format!("{} {}; {} is {now}", uat.id, uat.status.folder(), workstream.meta.id));
    for id in &planned {
        app.ui.line(&format!(
            "  {id} was added to the plan; change it: wf plan edit {id} -w {}",
            workstream.meta.id
        ));
    }
    if let Some(needs) = now.needs_of(&workstream.meta.id) {
        app.ui.status(&format!("Next: {needs}"));
    }
    let id = &workstream.meta.id;
    app.ui.document(&json!({"uat": uat, "workstream": id, "status": now, "planned": planned}));
    Ok(WfExit::Success)
}

/// Refuses to accept a branch that has lost an accepted commit: it is not what the test was written for.
async fn refuse_lost(dirs: &ProjectDirs, workstream: &Workstream) -> WfResult<()> {
    if workstream.meta.last_commit_sha.is_none() {
        return Ok(());
    }
    let product = open_product(dirs).await?;
    let head = product.branch_tip(&workstream.meta.branch).await.or_exit(WfExit::General)?;
    let accepted = check_accepted(&product, workstream, head.as_ref()).await?;
    accepted.map_err(|message| Failure::new(WfExit::Implement, message))
}

/// Plans the fix of a test that failed, unless an earlier try of this command did. A plan that cannot be read gets none.
fn plan_fix(workstream: &mut Workstream, uat: &Uat) -> WfResult<Vec<MicroCommitId>> {
    let plan = workstream.plan_text()?.unwrap_or_default();
    if uat.status != UatStatus::Failed || has_fix_of(&plan, uat) || parse_plan(&plan).is_err() {
        return Ok(Vec::new());
    }
    plan_fixes(workstream, &[fix_of_uat(uat)], &format!("the failed {}", uat.id))
}

fn has_verdict(which: &UatArg, status: UatStatus) -> WfResult<()> {
    Err(Failure::usage(format!("{} has a verdict already: {}", which.id, status.folder())))
}
