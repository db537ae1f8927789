//! IMPLEMENT, TEST and REVIEW: code of others runs in the workshop; what comes of it is judged here (5.7 to 5.9).

use std::collections::BTreeMap;

use host::git::ProductRepo;
use model::id::Sha;
use model::verdict::WfStatus;

use super::{RunContext, RunOrder, history};
use crate::disk::question;
use crate::disk::run_dir::{DIFF, IMPLEMENT_LOG, MANIFEST, REVIEW, REVIEW_LOG};
use crate::disk::workstream::Durability;
use crate::exit::{Failure, OrExit};
use crate::flow::stage::{ImplementOrder, ReviewOrder, Scene, StageError, Workshop};
use crate::flow::suite::{Bench, run_suite};
use crate::rules::clarification::{AnswerOption, Question, Urgency};
use crate::rules::constraint::{Aftermath, Bounds, judge_bounds};
use crate::rules::manifest::TestManifest;
use crate::rules::pipeline::{Report, Stage};
use crate::rules::reply::{Reply, parse_reply};
use crate::rules::review::{Decision, extract_review};
use crate::rules::schema::render_json;
use crate::rules::status::WorkstreamStatus;

/// What is kept and shown of a diff.
const DIFF_CAP: usize = 8 << 20;

/// The repository around the worktree, before an agent ran.
struct Surroundings {
    refs: BTreeMap<String, Sha>,
    config: Option<Vec<u8>>,
}

/// Lets the agent work, and judges from git what it did.
pub(super) async fn implement<W: Workshop>(
    context: &mut RunContext,
    order: &RunOrder<'_, W>,
) -> Result<Report, Failure> {
    mark_started(context).await?;
    let before = observe_surroundings(context.product()?).await?;
    let Some(head) = context.head_before.clone() else {
        return Ok(Report::failed(Stage::Implement, "the worktree has no commit"));
    };
    let past = history::gather(context.loaded()?, &context.site.runs_dir())?;
    let run_dir = context.run.path();
    let scene = scene(context, order, &run_dir)?;
    let wish = ImplementOrder {
        scene,
        commit: context.selected()?,
        block: context.block(),
        head: &head,
        history: &past,
    };
    let end = match order.workshop.implement(wish).await {
        Ok(end) => end,
        Err(error) => return Ok(unsuccessful(Stage::Implement, &error)),
    };
    context.save(IMPLEMENT_LOG, end.text.as_bytes())?;
    match parse_reply(&end.text) {
        Some(Reply::Success { notes }) => {
            context.notes.extend(Some(notes).filter(|notes| !notes.is_empty()));
        }
        Some(Reply::Failure { notes }) => {
            return Ok(Report::failed(Stage::Implement, format!("the agent gave up: {notes}")));
        }
        Some(Reply::Clarify { question, options }) => {
            return raise(context, question, options).await;
        }
        None => {
            return Ok(Report::failed(
                Stage::Implement,
                "the agent gave no answer that could be read",
            ));
        }
    }
    let after = observe_aftermath(context, &head, &before).await?;
    judge(context, &after)
}

async fn mark_started(context: &mut RunContext) -> Result<(), Failure> {
    let _lock = context.site.lock_global("implement").await?;
    if let Some(workstream) = &mut context.workstream {
        let changes = [("STATUS", WorkstreamStatus::Implement.word()), ("BLOCKED_BY", "")];
        workstream.change(&changes, Durability::Safe)?;
    }
    Ok(())
}

fn scene<'a, W>(
    context: &'a RunContext,
    order: &'a RunOrder<'_, W>,
    run_dir: &'a std::path::Path,
) -> Result<Scene<'a>, Failure> {
    Ok(Scene {
        workstream: context.loaded()?,
        profile: context.profile()?,
        run_dir,
        cancel: order.cancel,
    })
}

fn unsuccessful(stage: Stage, error: &StageError) -> Report {
    match error {
        StageError::Stopped(words) => Report::Stopped { words: words.clone() },
        StageError::NoBox { .. } | StageError::Failed(_) => {
            Report::failed(stage, error.to_string())
        }
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

async fn observe_surroundings(product: &ProductRepo) -> Result<Surroundings, Failure> {
    let refs = product.refs().await.or_exit(WfStatus::General)?.into_iter().collect();
    let config = crate::disk::read_optional(&product.user().common_dir().join("config"))?;
    Ok(Surroundings { refs, config })
}

async fn observe_aftermath(
    context: &RunContext,
    head_before: &Sha,
    before: &Surroundings,
) -> Result<Aftermath, Failure> {
    let (product, meta) = (context.product()?, &context.loaded()?.meta);
    let now = observe_surroundings(product).await?;
    let head = product.head(&meta.worktree).await.or_exit(WfStatus::General)?;
    let head = head
        .ok_or_else(|| Failure::new(WfStatus::Implement, "the worktree has no commit any more"))?;
    let branch = product.current_branch(&meta.worktree).await.or_exit(WfStatus::General)?;
    let numbers = product.diff_numbers(head_before, &head).await.or_exit(WfStatus::General)?;
    let own = meta.branch.full_ref();
    let names = before.refs.keys().chain(now.refs.keys());
    let mut moved: Vec<String> = names
        .filter(|name| **name != own && before.refs.get(*name) != now.refs.get(*name))
        .cloned()
        .collect();
    moved.dedup();
    Ok(Aftermath {
        head_before: head_before.clone(),
        descends: product
            .user()
            .is_ancestor(head_before, &head)
            .await
            .or_exit(WfStatus::General)?,
        branch_after: branch.map(|branch| branch.to_string()),
        subjects: product.subjects(head_before, &head).await.or_exit(WfStatus::General)?,
        changed: product.changed_paths(head_before, &head).await.or_exit(WfStatus::General)?,
        lines_changed: numbers.insertions + numbers.deletions,
        moved_refs: moved,
        config_changed: before.config != now.config,
        head_after: head,
    })
}

fn judge(context: &mut RunContext, after: &Aftermath) -> Result<Report, Failure> {
    let (profile, meta) = (context.profile()?, &context.loaded()?.meta);
    let bounds = Bounds {
        id: &context.selected()?.id,
        branch: meta.branch.as_str(),
        max_files: profile.max_files,
        max_lines: profile.max_lines,
        forbidden: &profile.forbidden_paths,
        expected: &meta.expected_paths,
    };
    match judge_bounds(after, &bounds) {
        Ok(warnings) => {
            context.notes.extend(warnings);
            context.head = Some(after.head_after.clone());
            Ok(Report::Passed)
        }
        Err(words) => Ok(Report::failed(Stage::Implement, words)),
    }
}

/// Runs every suite, so that one look shows all that is broken.
pub(super) async fn test<W: Workshop>(
    context: &mut RunContext,
    order: &RunOrder<'_, W>,
) -> Result<Report, Failure> {
    let run_dir = context.run.path();
    let mut results = Vec::new();
    let bench = Bench {
        scene: scene(context, order, &run_dir)?,
        project: &context.site.project.name,
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
    Ok(if failed.is_empty() {
        Report::Passed
    } else {
        Report::failed(
            Stage::Test,
            format!("tests failed: {failed}; see {}", run_dir.join("tests").display()),
        )
    })
}

/// Shows the reviewer what is new since the last accepted commit (D86), and reads the decision.
pub(super) async fn review<W: Workshop>(
    context: &mut RunContext,
    order: &RunOrder<'_, W>,
) -> Result<Report, Failure> {
    let (Some(from), Some(to)) = (context.accepted_base.clone(), context.head.clone()) else {
        return Ok(Report::failed(Stage::Review, "there is nothing to review"));
    };
    let patch = context.product()?.diff(&from, &to, DIFF_CAP).await.or_exit(WfStatus::General)?;
    context.save(DIFF, &patch.bytes)?;
    if patch.truncated {
        context.notes.push(format!("diff.patch was cut after {DIFF_CAP} bytes"));
    }
    let (run_dir, diff) = (context.run.path(), context.run.file(DIFF));
    let scene = scene(context, order, &run_dir)?;
    let wish =
        ReviewOrder { scene, commit: context.selected()?, block: context.block(), diff: &diff };
    let end = match order.workshop.review(wish).await {
        Ok(end) => end,
        Err(error) => return Ok(unsuccessful(Stage::Review, &error)),
    };
    context.save(REVIEW_LOG, end.text.as_bytes())?;
    let review = match extract_review(&end.text) {
        Ok(review) => review,
        Err(error) => return Ok(Report::failed(Stage::Review, error.to_string())),
    };
    context.save(REVIEW, render_json(&review.document).as_bytes())?;
    context.notes.extend(review.warning());
    let demands = review.demands();
    let decision = review.decision;
    context.review = Some(review);
    Ok(match decision {
        Decision::Approve => Report::Passed,
        Decision::RequestChanges => Report::ChangesRequested {
            words: format!("the reviewer requested changes: {}", demands.join("; ")),
        },
    })
}
