//! IMPLEMENT, TEST and REVIEW: code of others runs in the workshop; what comes of it is judged here (5.7 to 5.9).

use model::exit::WfExit;

use super::{RunContext, RunOrder, history, land};
use crate::disk::question;
use crate::disk::run_dir::{DIFF, IMPLEMENT_LOG, MANIFEST, REVIEW};
use crate::disk::workstream::Durability;
use crate::exit::{Failure, OrExit};
use crate::flow::stage::{ImplementOrder, ReviewOrder, Scene, StageError, Work};
use crate::flow::suite::{Bench, run_suite};
use crate::rules::clarification::{AnswerOption, Question, Urgency};
use crate::rules::manifest::TestManifest;
use crate::rules::pipeline::{Report, Stage};
use crate::rules::protected::find_weakened;
use crate::rules::reply::{Reply, parse_reply};
use crate::rules::review::{Decision, extract_review};
use crate::rules::schema::render_json;
use crate::rules::status::WorkstreamStatus;

/// What is kept and shown of a diff.
const DIFF_CAP: usize = 8 << 20;

/// Lets the agent work on a copy, and judges from git what it made. What an earlier run was stopped over is taken up
/// again without an agent.
pub(super) async fn implement(
    context: &mut RunContext,
    order: &RunOrder<'_>,
) -> Result<Report, Failure> {
    mark_started(context).await?;
    if let Some(report) = land::take_up(context).await? {
        context.save(IMPLEMENT_LOG, context.notes.join("\n").as_bytes())?;
        return Ok(report);
    }
    let work = match work(context, order).await? {
        Answer::Work(work) => work,
        Answer::Question { question, options } => return raise(context, question, options).await,
        Answer::Report(report) => return Ok(report),
    };
    match work {
        Work::Commits { repo, name, tip } => land::land(context, &repo, &name, &tip).await,
        Work::Nothing => Ok(Report::failed(Stage::Implement, "no commit was created")),
        Work::Refused(words) => Ok(Report::failed(Stage::Implement, words)),
    }
}

/// What came of the agent.
enum Answer {
    Work(Work),
    Question { question: String, options: Vec<AnswerOption> },
    Report(Report),
}

/// Only the work of an agent that says it succeeded is looked at.
async fn work(context: &mut RunContext, order: &RunOrder<'_>) -> Result<Answer, Failure> {
    let past =
        history::gather(context.loaded()?, &context.selected()?.id, &context.site.runs_dir())?;
    let run_dir = context.run.path();
    let wish = ImplementOrder {
        scene: scene(context, order, &run_dir)?,
        commit: context.selected()?,
        block: context.block(),
        head: context.head_before()?,
        history: &past,
    };
    let failed = |words: String| Ok(Answer::Report(Report::failed(Stage::Implement, words)));
    let end = match order.workshop.implement(wish).await {
        Ok(end) => end,
        Err(error) => return Ok(Answer::Report(unsuccessful(Stage::Implement, &error))),
    };
    host::failpoint::hit("wf-answered");
    let notes = match parse_reply(&end.text) {
        Some(Reply::Success { notes }) => notes,
        Some(Reply::Failure { notes }) => return failed(format!("the agent gave up: {notes}")),
        Some(Reply::Clarify { question, options }) => {
            return Ok(Answer::Question { question, options });
        }
        None => return failed("the agent gave no answer that could be read".to_owned()),
    };
    let collected = order.workshop.collect(wish).await;
    context.notes.extend(Some(notes).filter(|notes| !notes.is_empty()));
    match collected {
        Ok(work) => Ok(Answer::Work(work)),
        Err(error) => Ok(Answer::Report(unsuccessful(Stage::Implement, &error))),
    }
}

async fn mark_started(context: &mut RunContext) -> Result<(), Failure> {
    let _lock = context.site.lock_global("implement").await?;
    if let Some(workstream) = &mut context.workstream {
        let changes = [("STATUS", WorkstreamStatus::Implement.word()), ("BLOCKED_BY", "")];
        workstream.change(&changes, Durability::Safe)?;
    }
    Ok(())
}

fn scene<'a>(
    context: &'a RunContext,
    order: &'a RunOrder<'_>,
    run_dir: &'a std::path::Path,
) -> Result<Scene<'a>, Failure> {
    Ok(Scene {
        workstream: context.loaded()?,
        profile: context.profile()?,
        product: context.product()?,
        run_dir,
        cancel: order.cancel,
        log: &context.git_log,
    })
}

fn unsuccessful(stage: Stage, error: &StageError) -> Report {
    match error {
        StageError::Stopped(words) => Report::Stopped { words: words.clone() },
        StageError::Config(words) => {
            Report::Failed { status: WfExit::Config, words: words.clone() }
        }
        StageError::Failed(words) => Report::failed(stage, words.clone()),
    }
}

/// A question of the agent's stops the work until a person answers (D76).
async fn raise(
    context: &mut RunContext,
    text: String,
    options: Vec<AnswerOption>,
) -> Result<Report, Failure> {
    let question = Question {
        text,
        options,
        urgency: Urgency::Blocking,
        source_stage: "implementation",
        blocks: vec![context.selected()?.id.to_string()],
    };
    let _lock = context.site.lock_global("ask").await?;
    let question = question::ask(&context.site, context.loaded()?, question, host::clock::now())?;
    Ok(Report::Blocked { by: vec![question.id.to_string()] })
}

/// Runs every suite, so that one look shows all that is broken.
pub(super) async fn test(
    context: &mut RunContext,
    order: &RunOrder<'_>,
) -> Result<Report, Failure> {
    let Some(head) = context.head.clone() else {
        return Ok(Report::failed(Stage::Test, "there is nothing to test"));
    };
    let run_dir = context.run.path();
    let mut results = Vec::new();
    let bench = Bench {
        scene: scene(context, order, &run_dir)?,
        head: &head,
        site: &context.site,
        workshop: order.workshop,
        redactor: &context.redactor,
    };
    for suite in &context.profile()?.suites {
        match run_suite(&bench, suite).await {
            Ok(result) => results.push(result),
            Err(error) => return Ok(unsuccessful(Stage::Test, &error)),
        }
    }
    let manifest = TestManifest::new(results, host::clock::now());
    context.save(MANIFEST, render_json(&manifest).as_bytes())?;
    let failed = manifest.failed().join(", ");
    if !manifest.has_run_any() {
        context.notes.push("no test suite ran".to_owned());
    }
    if failed.is_empty() {
        return Ok(Report::Passed);
    }
    land::settle(context)?;
    let words = format!("tests failed: {failed}; see {}", run_dir.join("tests").display());
    Ok(Report::failed(Stage::Test, words))
}

/// Shows the reviewer what is new since the last accepted commit (D86), and reads the decision.
pub(super) async fn review(
    context: &mut RunContext,
    order: &RunOrder<'_>,
) -> Result<Report, Failure> {
    let (Some(from), Some(to)) = (context.accepted_base.clone(), context.head.clone()) else {
        return Ok(Report::failed(Stage::Review, "there is nothing to review"));
    };
    let patch = context.product()?.diff(&from, &to, DIFF_CAP).await.or_exit(WfExit::General)?;
    context.save(DIFF, &patch.bytes)?;
    if patch.truncated {
        context.notes.push(format!("diff.patch was cut after {DIFF_CAP} bytes"));
    }
    let text = String::from_utf8_lossy(&context.redactor.redact_bytes(&patch.bytes)).into_owned();
    let weakened = find_weakened(&text);
    context.notes.extend(weakened.iter().map(|words| format!("protected tests: {words}")));
    let run_dir = context.run.path();
    let wish = ReviewOrder {
        scene: scene(context, order, &run_dir)?,
        commit: context.selected()?,
        block: context.block(),
        head: &to,
        patch: &text,
        weakened: &weakened,
    };
    let end = match order.workshop.review(wish).await {
        Ok(end) => end,
        Err(error) => return Ok(unsuccessful(Stage::Review, &error)),
    };
    let review = match extract_review(&end.text) {
        Ok(review) => review,
        Err(error) => return Ok(Report::failed(Stage::Review, error.to_string())),
    };
    context.save(REVIEW, render_json(&review.document).as_bytes())?;
    context.notes.extend(review.warning());
    let demands = review.demands();
    let decision = review.decision;
    context.review = Some(review);
    if decision == Decision::Approve {
        return Ok(Report::Passed);
    }
    land::settle(context)?;
    let words = format!("the reviewer requested changes: {}", demands.join("; "));
    Ok(Report::ChangesRequested { words })
}
