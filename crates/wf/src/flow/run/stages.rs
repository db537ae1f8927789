//! The stages IMPLEMENT, TEST and REVIEW: the stage runner executes foreign code in boxes, and its results are judged here.

use std::path::Path;

use host::git::WorktreeRepo;
use model::id::Sha;
use shell::Ui;

use super::compete::compete;
use super::{RunContext, RunOptions, apply_commits, history};
use crate::disk::question;
use crate::disk::run_dir::{DIFF, IMPLEMENT_LOG, MANIFEST, REVIEW};
use crate::exit::{OrExit, WfExit, WfResult};
use crate::flow::stage::{CollectedWork, SetupUse, StageContext, StageResult, StageRunError};
use crate::flow::suite::{run_build, run_suite};
use crate::rules::clarification::{AnswerOption, NewQuestion, Urgency};
use crate::rules::manifest::{SuiteResult, TestManifest, Tested};
use crate::rules::pipeline::{Ending, RunStage, StageOutcome};
use crate::rules::profile::{Profile, SuiteRunner};
use crate::rules::prompt::{ImplementTask, render_implement, render_review};
use crate::rules::protected::find_weakened;
use crate::rules::recipe::{find_weakened_recipes, has_recipes};
use crate::rules::reply::{AgentReply, parse_reply};
use crate::rules::review::{ReviewDecision, extract_own_review};
use crate::rules::schema::render_json;
use crate::rules::status::WorkstreamStatus;

const DIFF_CAP: usize = 8 << 20;
const RECIPE_CAP: usize = 1 << 20;

/// Runs the agent and judges its commits with git. An implementation that was not judged yet is resumed.
pub(super) async fn implement(
    context: &mut RunContext,
    options: &RunOptions<'_>,
) -> WfResult<StageOutcome> {
    mark_started(context).await?;
    if let Some(report) = apply_commits::resume_implemented(context).await? {
        context.save(IMPLEMENT_LOG, context.notes.join("\n").as_bytes())?;
        return Ok(report);
    }
    if !context.profile()?.compete.is_empty() {
        let prompt = implement_prompt(context, options)?;
        return compete(context, options, &prompt).await;
    }
    let work = match work(context, options).await? {
        Ok(work) => work,
        Err(outcome) => return Ok(outcome),
    };
    match work {
        CollectedWork::Commits { repo, name, tip } => {
            apply_commits::apply_commits(context, &repo, &name, &tip).await
        }
        CollectedWork::Nothing => {
            Ok(StageOutcome::failed(RunStage::Implement, "no commit was created"))
        }
        CollectedWork::Refused(message) => Ok(StageOutcome::failed(RunStage::Implement, message)),
    }
}

/// Runs the agent. Its work is collected only if it reports success; otherwise the stage ends here.
async fn work(
    context: &mut RunContext,
    options: &RunOptions<'_>,
) -> WfResult<Result<CollectedWork, StageOutcome>> {
    let prompt = implement_prompt(context, options)?;
    let commit = context.selected()?;
    let run_dir = context.run.path();
    let stage = stage_context(context, options, context.head_before()?, &run_dir)?;
    let failed = |message| Ok(Err(StageOutcome::failed(RunStage::Implement, message)));
    let answer = match stage.implement(&prompt).await {
        Ok(answer) => answer,
        Err(error) => return Ok(Err(unsuccessful(RunStage::Implement, error))),
    };
    host::failpoint::hit("wf-answered");
    let notes = match parse_reply(&answer) {
        Some(AgentReply::Success { notes }) => notes,
        Some(AgentReply::Failure { notes }) => {
            return failed(format!("the agent gave up: {notes}"));
        }
        Some(AgentReply::Clarify { question, options }) => {
            return raise(context, question, options).await.map(Err);
        }
        None => return failed("the agent gave no answer that could be read".to_owned()),
    };
    let collected = stage.collect(commit).await;
    context.notes.extend(Some(notes).filter(|notes| !notes.is_empty()));
    Ok(collected.map_err(|error| unsuccessful(RunStage::Implement, error)))
}

/// The prompt of the implementer, with what earlier tries and people have left for it.
fn implement_prompt(context: &RunContext, options: &RunOptions<'_>) -> WfResult<String> {
    let (profile, commit) = (context.profile()?, context.selected()?);
    let mut past = history::gather(context.loaded()?, &commit.id, &context.dirs.runs_dir())?;
    past.extend(options.guidance.map(|words| format!("A person asks you to heed this: {words}")));
    let build = Some(profile.setup.build.join(" ")).filter(|line| !line.is_empty());
    let suites = profile.suites.iter().filter_map(|suite| suite.how.line().ok());
    let tests: Vec<String> = build.into_iter().chain(suites).collect();
    Ok(render_implement(&ImplementTask {
        title: &commit.title,
        block: context.block(),
        branch: context.loaded()?.meta.branch.as_str(),
        limits: context.limits()?,
        tests: &tests,
        timeout_secs: profile.implement_timeout.as_secs(),
        history: &past,
    }))
}

async fn mark_started(context: &mut RunContext) -> WfResult<()> {
    let _lock = context.dirs.lock_global("implement").await?;
    if let Some(workstream) = &mut context.workstream {
        workstream.set_status(WorkstreamStatus::Implement, "")?;
    }
    Ok(())
}

pub(super) fn stage_context<'a>(
    context: &'a RunContext,
    options: &'a RunOptions<'_>,
    head: &'a Sha,
    run_dir: &'a Path,
) -> WfResult<StageContext<'a>> {
    Ok(StageContext {
        runner: options.runner,
        workstream: context.loaded()?,
        profile: context.profile()?,
        product: context.product()?,
        head,
        run_dir,
        cancel: options.cancel,
        log: &context.git_log,
        redactor: &context.redactor,
        setup: SetupUse::Kept,
    })
}

pub(super) fn unsuccessful(stage: RunStage, error: StageRunError) -> StageOutcome {
    match error {
        // What is done stays done: the micro-commit is not at fault.
        StageRunError::Stopped(message) | StageRunError::Machine(message) => {
            StageOutcome::Stopped { message }
        }
        StageRunError::Config(message) => StageOutcome::Failed { status: WfExit::Config, message },
        StageRunError::Failed(message) => StageOutcome::failed(stage, message),
    }
}

/// Records the agent's question, which blocks the workstream until a person answers.
async fn raise(
    context: &RunContext,
    text: String,
    options: Vec<AnswerOption>,
) -> WfResult<StageOutcome> {
    let question = NewQuestion {
        text,
        options,
        urgency: Urgency::Blocking,
        source_stage: "implementation",
        blocks: vec![context.selected()?.id.to_string()],
    };
    let _lock = context.dirs.lock_global("ask").await?;
    let workstream = context.loaded()?;
    // A run that was killed after it asked has left the question.
    let question = match question::find_same(&workstream.dir, &question)? {
        Some(asked) => asked,
        None => question::ask(&context.dirs, workstream, question, host::clock::now())?,
    };
    Ok(StageOutcome::Blocked { by: vec![question.id.to_string()] })
}

/// Asks a person after the last try: what failed, and how to go on. The answer is given to the implementer.
pub(super) async fn ask_after_rounds(
    context: &mut RunContext,
    ui: &Ui,
    ending: &Ending,
    rounds: usize,
) -> WfResult<()> {
    let id = context.selected()?.id.to_string();
    let text = format!(
        "{id} failed {rounds} times. The last time: {} How should it go on?",
        ending.message
    );
    let option = |id: &str, label: &str| AnswerOption {
        id: id.to_owned(),
        label: label.to_owned(),
        tradeoffs: String::new(),
    };
    let options = vec![
        option("retry", "Try again as before"),
        option("smaller", "Do less: only what the acceptance criteria ask for"),
    ];
    let outcome = raise(context, text, options).await?;
    let StageOutcome::Blocked { by } = outcome else { return Ok(()) };
    let by = by.join(",");
    let _lock = context.dirs.lock_global("ask").await?;
    if let Some(workstream) = &mut context.workstream {
        workstream.set_status(WorkstreamStatus::BlockedClarification, &by)?;
    }
    context.dirs.write_active()?;
    ui.line(&format!(
        "{by} asks how to go on; answer it in your own words: wf clarify answer {by} TEXT"
    ));
    Ok(())
}

/// Runs every suite even after a failure, so that one run shows everything that is broken.
pub(super) async fn test(
    context: &mut RunContext,
    options: &RunOptions<'_>,
) -> WfResult<StageOutcome> {
    let Some(head) = context.head.clone() else {
        return Ok(StageOutcome::failed(RunStage::Test, "there is nothing to test"));
    };
    let run_dir = context.run.path();
    let stage = stage_context(context, options, &head, &run_dir)?;
    let kept = context.kept.as_ref().and_then(|kept| kept.results.clone());
    let results = match kept {
        Some(results) => results,
        None => match run_suites(stage).await {
            Ok(results) => results,
            Err(error) => return Ok(unsuccessful(RunStage::Test, error)),
        },
    };
    let manifest = TestManifest::new(results, host::clock::now());
    context.save(MANIFEST, render_json(&manifest).as_bytes())?;
    let failed = manifest.failed().join(", ");
    context.tested = Some(manifest.tested());
    if context.tested == Some(Tested::No) {
        context.notes.push("untested: no test suite ran".to_owned());
        let message = format!("no test suite ran: {}", manifest.skip_reasons().join("; "));
        return Ok(StageOutcome::Skipped { message });
    }
    if failed.is_empty() {
        return Ok(StageOutcome::Passed);
    }
    apply_commits::clear_implemented(context)?;
    let message = format!("tests failed: {failed}; see {}", run_dir.join("tests").display());
    Ok(StageOutcome::failed(RunStage::Test, message))
}

/// Runs the build and then the suites. After a failed build nothing that they would say counts.
pub(super) async fn run_suites(stage: StageContext<'_>) -> StageResult<Vec<SuiteResult>> {
    if let Some(failed) = run_build(stage).await? {
        let skipped = stage.profile.suites.iter();
        let skipped = skipped.map(|suite| SuiteResult::skipped(suite.name, "the build failed"));
        return Ok(std::iter::once(failed).chain(skipped).collect());
    }
    let mut results = Vec::new();
    for suite in &stage.profile.suites {
        results.push(run_suite(stage, suite).await?);
    }
    Ok(results)
}

/// Compares how tests are run before and after: a recipe may be emptied without a test being touched.
pub(crate) async fn weakened_recipes(
    product: &WorktreeRepo,
    profile: &Profile,
    from: &Sha,
    to: &Sha,
) -> WfResult<Vec<String>> {
    let suites: Vec<&str> = profile
        .suites
        .iter()
        .filter_map(|suite| match &suite.how {
            SuiteRunner::Make(target) => Some(target.as_str()),
            SuiteRunner::Command(_) | SuiteRunner::Skip(_) => None,
        })
        .collect();
    let mut found = Vec::new();
    for path in product.changed_paths(from, to).await.or_exit(WfExit::General)? {
        let Ok(path) = String::from_utf8(path) else { continue };
        if !has_recipes(&path, profile.makefile.as_deref()) {
            continue;
        }
        let read = async |commit: &Sha| {
            let blob = product.user().read_blob(commit, &path, RECIPE_CAP).await;
            let bytes = blob.or_exit(WfExit::General)?.map(|blob| blob.bytes);
            WfResult::Ok(String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned())
        };
        let (before, after) = (read(from).await?, read(to).await?);
        found.extend(find_weakened_recipes(&path, &before, &after, &suites));
    }
    Ok(found)
}

/// Diff of a commit against the last accepted one, and the tests that it weakens.
pub(super) struct ReviewMaterial {
    pub(super) patch: Vec<u8>,
    is_cut: bool,
    pub(super) weakened: Vec<String>,
}

pub(super) async fn review_material(
    context: &RunContext,
    from: &Sha,
    to: &Sha,
) -> WfResult<ReviewMaterial> {
    let patch = context.product()?.diff(from, to, DIFF_CAP).await.or_exit(WfExit::General)?;
    let bytes = context.redactor.redact_bytes(&patch.bytes);
    let mut weakened = find_weakened(&String::from_utf8_lossy(&bytes));
    weakened.extend(weakened_recipes(context.product()?, context.profile()?, from, to).await?);
    Ok(ReviewMaterial { patch: bytes.to_vec(), is_cut: patch.truncated, weakened })
}

/// Runs the reviewer and returns its answer.
pub(super) async fn ask_reviewer(
    context: &RunContext,
    stage: StageContext<'_>,
    material: &ReviewMaterial,
) -> WfResult<StageResult<String>> {
    let prompt = render_review(context.selected()?, context.block(), &material.weakened);
    Ok(stage.review(&prompt, &String::from_utf8_lossy(&material.patch)).await)
}

/// Gives the reviewer the diff since the last accepted commit and reads the decision.
pub(super) async fn review(
    context: &mut RunContext,
    options: &RunOptions<'_>,
) -> WfResult<StageOutcome> {
    let (Some(from), Some(to)) = (context.accepted_base.clone(), context.head.clone()) else {
        return Ok(StageOutcome::failed(RunStage::Review, "there is nothing to review"));
    };
    let material = review_material(context, &from, &to).await?;
    context.save(DIFF, &material.patch)?;
    if material.is_cut {
        context.notes.push(format!("diff.patch was cut after {DIFF_CAP} bytes"));
    }
    let weakened = material.weakened.iter();
    context.notes.extend(weakened.map(|message| format!("protected tests: {message}")));
    let run_dir = context.run.path();
    let answer = match context.kept.as_mut().and_then(|kept| kept.answer.take()) {
        Some(answer) => Ok(answer),
        None => {
            let stage = stage_context(context, options, &to, &run_dir)?;
            ask_reviewer(context, stage, &material).await?
        }
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return Ok(unsuccessful(RunStage::Review, error)),
    };
    let review = match extract_own_review(&answer, &String::from_utf8_lossy(&material.patch)) {
        Ok(review) => review,
        Err(error) => return Ok(StageOutcome::failed(RunStage::Review, error.to_string())),
    };
    context.save(REVIEW, render_json(&review.document).as_bytes())?;
    if let Some(warning) = review.warning() {
        options.runner.ui.warn(&warning);
        context.notes.push(warning);
    }
    let demands = review.demands();
    let decision = review.decision;
    context.review = Some(review);
    if decision == ReviewDecision::Approve {
        return Ok(StageOutcome::Passed);
    }
    apply_commits::clear_implemented(context)?;
    let message = match demands.is_empty() {
        true => "the reviewer requested changes and named no reason".to_owned(),
        false => format!("the reviewer requested changes: {}", demands.join("; ")),
    };
    Ok(StageOutcome::ChangesRequested { message })
}
