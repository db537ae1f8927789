//! The stages QA_GATE, DOCS, UPDATE_STATE and UAT_GATE: from tested work to accepted work.

use std::path::Path;

use model::id::{MicroCommitId, Sha};

use super::RunContext;
use crate::disk::run_dir::MANIFEST;
use crate::disk::uat::{generate, load_gate};
use crate::disk::workstream::DOCS_MANIFEST;
use crate::disk::{
    DiskError, DiskResult, ProjectDirs, Workstream, load_document, read_optional, save,
};
use crate::exit::{Failure, WfExit, WfResult};
use crate::rules::docs::DocsManifest;
use crate::rules::manifest::{SuiteResult, SuiteStatus, TestManifest};
use crate::rules::pipeline::{RunOutcome, RunStage, StageOutcome};
use crate::rules::plan::{Plan, mark_done, parse_plan};
use crate::rules::qa::{
    QaFacts, Strictness, SuiteEvidence, TestEvidence, judge_qa, parse_junit, parse_summary,
};
use crate::rules::schema::{Schema, render_json};
use crate::rules::status::WorkstreamStatus;
use crate::rules::uat::{Gate, judge_gate};

pub(super) fn qa_gate(context: &mut RunContext) -> WfResult<StageOutcome> {
    let manifest = match load_manifest(context)? {
        Some(Ok(manifest)) => Some(manifest),
        Some(Err(message)) => return Ok(StageOutcome::failed(RunStage::QaGate, message)),
        None => None,
    };
    let run = context.run.path();
    let suites = manifest.iter().flat_map(|manifest| &manifest.suites);
    let strict = context.profile()?.is_qa_strict;
    let facts = QaFacts {
        suites: suites.map(|suite| evidence(&run, suite)).collect(),
        manifest: manifest.as_ref(),
        review: context.review.as_ref().map(|review| review.decision),
        strictness: if strict { Strictness::Strict } else { Strictness::Lenient },
    };
    let verdict = judge_qa(&facts);
    context.notes.extend(verdict.warnings);
    Ok(verdict
        .fault
        .map_or(StageOutcome::Passed, |message| StageOutcome::failed(RunStage::QaGate, message)))
}

fn load_manifest(context: &RunContext) -> DiskResult<Option<Result<TestManifest, String>>> {
    let bytes = read_optional(&context.run.file(MANIFEST))?;
    Ok(bytes.map(|bytes| Schema::TestManifest.read(&bytes).map_err(|error| error.to_string())))
}

fn evidence(run: &Path, suite: &SuiteResult) -> SuiteEvidence {
    let read =
        |path: &Option<String>| path.as_ref().and_then(|path| std::fs::read(run.join(path)).ok());
    let summary = read(&suite.artifacts.summary_json);
    let junit = read(&suite.artifacts.junit_xml);
    SuiteEvidence {
        name: suite.name.clone(),
        status: suite.status,
        summary: summary.map_or(TestEvidence::Absent, |bytes| parse_summary(&bytes)),
        junit: junit.map_or(TestEvidence::Absent, |bytes| parse_junit(&bytes)),
    }
}

/// Records screenshots in the workstream's own manifest; the product repository is never changed.
pub(super) fn docs(context: &mut RunContext) -> WfResult<StageOutcome> {
    let documentation =
        context.review.as_ref().map(|review| review.documentation.clone()).unwrap_or_default();
    if documentation.required && !documentation.present {
        context.notes.push("documentation is required but not present".to_owned());
    }
    let manifest = load_manifest(context)?.and_then(Result::ok);
    let shots: Vec<String> = manifest
        .iter()
        .flat_map(|manifest| &manifest.suites)
        .filter(|suite| suite.name == "e2e" && suite.status == SuiteStatus::Passed)
        .flat_map(|suite| suite.artifacts.screenshots.clone())
        .collect();
    if shots.is_empty() {
        return Ok(StageOutcome::Passed);
    }
    let now = host::clock::now();
    let path = context.loaded()?.dir.join(DOCS_MANIFEST);
    let docs: Option<DocsManifest> = load_document(&path, Schema::DocsManifest)?;
    let mut docs = docs.unwrap_or_else(|| DocsManifest::new(now));
    docs.add(&shots, context.id.as_str(), context.selected()?.id.as_str(), now);
    save(&path, render_json(&docs).as_bytes())?;
    Ok(StageOutcome::Passed)
}

/// Accepts the commit. The journal records the acceptance first, so that a crash from here on is rolled forward.
pub(super) async fn update_state(context: &mut RunContext) -> WfResult<StageOutcome> {
    let Some(head) = context.head.clone() else {
        return Ok(StageOutcome::failed(RunStage::UpdateState, "there is no commit to accept"));
    };
    let id = context.selected()?.id.clone();
    context.accepted = Some(head.clone());
    context.write_journal(RunStage::UpdateState)?;
    host::failpoint::hit("wf-accepted");
    let mut workstream = context.loaded()?.clone();
    accept_commit(&context.dirs, &mut workstream, &id, &head, context.run.name()).await?;
    context.workstream = Some(workstream);
    super::apply_commits::clear_implemented(context)?;
    Ok(StageOutcome::Passed)
}

/// Marks the plan, generates the acceptance test if the plan is complete, then writes meta.env once. Idempotent.
pub(super) async fn accept_commit(
    dirs: &ProjectDirs,
    workstream: &mut Workstream,
    id: &MicroCommitId,
    commit: &Sha,
    run: &str,
) -> WfResult<()> {
    let _lock = dirs.lock_global("update state").await?;
    let plan = mark_in_plan(workstream, id)?;
    host::failpoint::hit("wf-plan-marked");
    let (status, blocked_by) = if plan.is_complete() {
        (WorkstreamStatus::UatPending, ensure_uat(dirs, workstream, &plan, commit)?)
    } else {
        (WorkstreamStatus::Implement, String::new())
    };
    host::failpoint::hit("wf-uat-made");
    let changes = [
        ("LAST_RUN_ID", run),
        ("LAST_COMMIT_SHA", commit.as_str()),
        ("LAST_RESULT", RunOutcome::Passed.word()),
        ("STATUS", status.word()),
        ("BLOCKED_BY", &blocked_by),
    ];
    workstream.change(&changes)?;
    host::failpoint::hit("wf-meta-written");
    Ok(())
}

/// Marks the micro-commit as done. A plan that lost the micro-commit during the run is an internal error.
fn mark_in_plan(workstream: &Workstream, id: &MicroCommitId) -> WfResult<Plan> {
    let path = workstream.plan_path();
    let marked = workstream.mark_plan(mark_done, id)?.ok_or_else(|| {
        let message = format!("{id} is not in {} any more and could not be marked", path.display());
        Failure::new(WfExit::Internal, message)
    })?;
    Ok(parse_plan(&marked).map_err(DiskError::in_file(&path))?)
}

fn ensure_uat(
    dirs: &ProjectDirs,
    workstream: &Workstream,
    plan: &Plan,
    head: &Sha,
) -> WfResult<String> {
    let tests = match load_gate(&workstream.dir)? {
        Ok(tests) => tests,
        Err(unreadable) => return Ok(unreadable.join(",")),
    };
    let supersede = match judge_gate(&tests, Some(head)) {
        Gate::Pending(ids) | Gate::Failed(ids) => {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            return Ok(ids.join(","));
        }
        // An earlier acceptance covered an older commit.
        Gate::Open => Vec::new(),
        Gate::Generate { supersede } => supersede,
    };
    let uat = generate(dirs, workstream, plan, Some(head), &supersede, host::clock::now())?;
    Ok(uat.id.to_string())
}

pub(super) async fn uat_gate(context: &mut RunContext) -> WfResult<StageOutcome> {
    let workstream = context.loaded()?;
    let tests = match load_gate(&workstream.dir)? {
        Ok(tests) => tests,
        Err(by) => return Ok(StageOutcome::Blocked { by }),
    };
    let message = |ids: Vec<model::id::UatId>| ids.iter().map(ToString::to_string).collect();
    match judge_gate(&tests, context.head.as_ref()) {
        Gate::Open => Ok(StageOutcome::Passed),
        Gate::Pending(ids) => Ok(StageOutcome::Blocked { by: message(ids) }),
        Gate::Failed(ids) => Ok(StageOutcome::NotAccepted { by: message(ids) }),
        Gate::Generate { supersede } => {
            let plan = context.plan.clone().unwrap_or_default();
            let _lock = context.dirs.lock_global("uat").await?;
            let now = host::clock::now();
            let uat =
                generate(&context.dirs, workstream, &plan, context.head.as_ref(), &supersede, now)?;
            Ok(StageOutcome::Blocked { by: vec![uat.id.to_string()] })
        }
    }
}
