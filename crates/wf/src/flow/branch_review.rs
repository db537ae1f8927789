//! Review of a whole branch: the reviewer in a box gets everything that the workstream would bring into its base branch.
//! The micro-commits were reviewed one by one; what only shows in their sum is found here.

use std::path::Path;

use host::git::WorktreeRepo;
use jiff::Timestamp;
use model::id::Sha;
use serde_json::Value;
use shell::Ui;

use super::run::weakened_recipes;
use super::stage::{StageContext, StageRunError, run_alone};
use crate::disk::run_dir::{DIFF, RESULT, REVIEW, SUMMARY};
use crate::disk::{ProjectDirs, Workstream, save};
use crate::exit::{Failure, OrExit, WfExit, WfResult};
use crate::rules::pipeline::{Ending, EndingKind, RunOutcome, RunStage};
use crate::rules::profile::Profile;
use crate::rules::prompt::{BranchReviewTask, render_branch_review};
use crate::rules::protected::find_weakened;
use crate::rules::result::{RunResult, StageRecord, StageStatus, render_summary};
use crate::rules::review::{Review, ReviewDecision, extract_own_review};
use crate::rules::run_id::RunTopic;
use crate::rules::schema::render_json;

/// Largest diff that a reviewer gets. A larger one is refused: an approval of a part is none of the whole.
const DIFF_CAP: usize = 8 << 20;

/// A review of the whole branch, the tip that it is about, and the run that made it.
#[derive(Debug)]
pub(crate) struct BranchReview {
    pub(crate) review: Review,
    pub(crate) head: Sha,
    pub(crate) run: String,
}

impl BranchReview {
    pub(crate) fn is_approved(&self) -> bool {
        self.review.decision == ReviewDecision::Approve
    }

    /// The review as the reviewer gave it.
    pub(crate) fn document(&self) -> &Value {
        &self.review.document
    }
}

/// Runs the reviewer. The caller holds the workstream's lock.
pub(crate) async fn review_branch(
    ui: &Ui,
    dirs: &ProjectDirs,
    product: &WorktreeRepo,
    workstream: &Workstream,
    profile: &Profile,
) -> WfResult<BranchReview> {
    let change = observe_change(product, workstream, profile).await?;
    let started = host::clock::now();
    let prompt = render_branch_review(&BranchReviewTask {
        title: &workstream.meta.title,
        plan: &workstream.plan_text()?.unwrap_or_default(),
        subjects: &change.subjects,
        weakened: &change.weakened,
    });
    let stage = async |stage: StageContext<'_>| -> Result<Review, StageRunError> {
        let patch = stage.redactor.redact_bytes(&change.patch);
        save(&stage.run_dir.join(DIFF), &patch)?;
        let patch = String::from_utf8_lossy(&patch);
        let answer = stage.review(&prompt, &patch).await?;
        let review = extract_own_review(&answer, &patch)?;
        let text = render_json(&review.document);
        save(&stage.run_dir.join(REVIEW), stage.redactor.redact(&text).as_bytes())?;
        Ok(review)
    };
    ui.phase("review", "reviewing the whole branch");
    let (review, run_dir) =
        run_alone(ui, dirs, product, workstream, profile, RunTopic::Review, stage).await?;
    let review = review.map_err(|error| match error {
        StageRunError::Stopped(message) | StageRunError::Machine(message) => {
            Failure::new(WfExit::General, message)
        }
        StageRunError::Config(message) => Failure::usage(message),
        StageRunError::Failed(message) => Failure::new(WfExit::Review, message),
    });
    write_result(dirs, workstream, &run_dir, started, &review)?;
    let run = run_dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(BranchReview { review: review?, head: change.head, run })
}

/// Everything that the workstream would bring.
struct BranchChange {
    head: Sha,
    patch: Vec<u8>,
    subjects: Vec<String>,
    weakened: Vec<String>,
}

async fn observe_change(
    product: &WorktreeRepo,
    workstream: &Workstream,
    profile: &Profile,
) -> WfResult<BranchChange> {
    let meta = &workstream.meta;
    let tip = async |branch| {
        let tip = product.branch_tip(branch).await.or_exit(WfExit::General)?;
        tip.ok_or_else(|| Failure::new(WfExit::Implement, format!("there is no branch {branch}")))
    };
    let (head, base) = (tip(&meta.branch).await?, tip(&meta.base_branch).await?);
    let from = product.merge_base(&base, &head).await.or_exit(WfExit::General)?;
    let from = from.unwrap_or_else(|| meta.base_sha.clone());
    if from == head {
        let message = format!("{} has nothing that {} lacks", meta.branch, meta.base_branch);
        return Err(Failure::usage(message));
    }
    let patch = product.diff(&from, &head, DIFF_CAP).await.or_exit(WfExit::General)?;
    if patch.truncated {
        let message = format!(
            "{} changes more than {} MiB, too much for one review; split the workstream, or turn the review off: BRANCH_REVIEW=false",
            meta.branch,
            DIFF_CAP >> 20
        );
        return Err(Failure::new(WfExit::Review, message));
    }
    let mut weakened = find_weakened(&String::from_utf8_lossy(&patch.bytes));
    weakened.extend(weakened_recipes(product, profile, &from, &head).await?);
    let subjects = product.subjects(&from, &head).await.or_exit(WfExit::General)?;
    Ok(BranchChange { head, patch: patch.bytes, subjects, weakened })
}

/// Writes result.json and the summary, so that `wf show`, `wf log` and `wf stats` know the review.
fn write_result(
    dirs: &ProjectDirs,
    workstream: &Workstream,
    run_dir: &Path,
    started: Timestamp,
    review: &WfResult<Review>,
) -> WfResult<()> {
    let failed = |exit, message: String| Ending {
        failed_stage: Some(RunStage::Review),
        message,
        ..Ending::new(RunOutcome::Failed, exit, EndingKind::NotPassed)
    };
    let ending = match review {
        Ok(review) if review.decision == ReviewDecision::Approve => {
            Ending::new(RunOutcome::Passed, WfExit::Success, EndingKind::Nothing)
        }
        Ok(review) => failed(WfExit::Review, render_objection(review)),
        Err(failure) => failed(failure.status, failure.to_string()),
    };
    let (project, times) = (&dirs.project.name, [started, host::clock::now()]);
    let mut result = RunResult::new(project, &workstream.meta.id, times, &[], &ending);
    let is_passed = ending.outcome == RunOutcome::Passed;
    let status = if is_passed { StageStatus::Passed } else { StageStatus::Failed };
    let duration_seconds = result.timestamps.duration_seconds;
    let record = StageRecord { status, duration_seconds, notes: String::new() };
    result.stages.insert(RunStage::Review.key().to_owned(), record);
    let name = run_dir.file_name().unwrap_or_default().to_string_lossy();
    save(&run_dir.join(SUMMARY), render_summary(&name, &result).as_bytes())?;
    Ok(save(&run_dir.join(RESULT), render_json(&result).as_bytes())?)
}

/// The objection of a reviewer in one sentence.
pub(crate) fn render_objection(review: &Review) -> String {
    match review.demands().as_slice() {
        [] => "the reviewer requested changes and named no reason".to_owned(),
        demands => format!("the reviewer requested changes: {}", demands.join("; ")),
    }
}
