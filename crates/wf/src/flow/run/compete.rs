//! IMPLEMENT with several agents: each works in a box of its own on the same commit; the host tests and reviews every
//! result, and the best one goes on. The evidence of the others stays in the run's directory.

use std::fs;
use std::path::{Path, PathBuf};

use futures_util::future::join_all;
use host::git::{RefName, SealedRepo};
use model::id::Sha;

use super::stages::{ask_reviewer, review_material, run_suites, stage_context, unsuccessful};
use super::{RunContext, RunOptions, apply_commits};
use crate::disk::make_dir;
use crate::disk::run_dir::{COMPETE_DIR, DIFF, MANIFEST, REVIEW};
use crate::exit::{OrExit, WfExit, WfResult};
use crate::flow::stage::{CollectedWork, StageContext, StageRunError, WorkLocation, tidy};
use crate::rules::compete::{
    CandidateScore, Competitor, CompetitorOutcome, CompetitorResult, choose_best,
};
use crate::rules::manifest::{SuiteResult, SuiteStatus, TestManifest, Tested};
use crate::rules::pipeline::{RunStage, StageOutcome};
use crate::rules::reply::{AgentReply, parse_reply};
use crate::rules::review::{ReviewDecision, extract_own_review};
use crate::rules::schema::render_json;

/// Tests and review of the result that was kept; the stages that follow take them instead of making them again.
pub(super) struct KeptEvidence {
    pub(super) results: Option<Vec<SuiteResult>>,
    pub(super) answer: Option<String>,
}

/// Result of a competitor that can be kept.
struct Candidate {
    repo: SealedRepo,
    name: RefName,
    tip: Sha,
    results: Vec<SuiteResult>,
    answer: Option<String>,
    notes: Vec<String>,
}

/// Runs all agents and applies the best result.
pub(super) async fn compete(
    context: &mut RunContext,
    options: &RunOptions<'_>,
    prompt: &str,
) -> WfResult<StageOutcome> {
    let competitors = context.profile()?.compete.clone();
    let run_dir = context.run.path();
    let dirs: Vec<PathBuf> = competitors.iter().map(|it| folder_of(&run_dir, &it.name)).collect();
    for dir in &dirs {
        make_dir(dir)?;
    }
    let head = context.head_before()?.clone();
    let shared: &RunContext = context;
    let works = competitors.iter().zip(&dirs).map(|(competitor, dir)| {
        let stage = stage_context(shared, options, &head, dir);
        async move { Ok(implement(stage?, competitor, prompt, shared).await) }
    });
    let works: WfResult<Vec<Result<CollectedWork, StageRunError>>> =
        join_all(works).await.into_iter().collect();
    let mut results = Vec::new();
    let mut candidates = Vec::new();
    for ((competitor, dir), work) in competitors.iter().zip(&dirs).zip(works?) {
        if let Some(reason) = options.cancel.reason() {
            return Ok(StageOutcome::Stopped { message: reason.to_string() });
        }
        let judged = match work {
            Err(
                error @ (StageRunError::Stopped(_)
                | StageRunError::Machine(_)
                | StageRunError::Config(_)),
            ) => {
                return Ok(unsuccessful(RunStage::Implement, error));
            }
            Err(StageRunError::Failed(message)) | Ok(CollectedWork::Refused(message)) => {
                Err(message)
            }
            Ok(CollectedWork::Nothing) => Err("no commit was created".to_owned()),
            Ok(CollectedWork::Commits { repo, name, tip }) => {
                judge(context, options, (competitor, dir), (repo, name, tip)).await?
            }
        };
        let (outcome, candidate) = match judged {
            Ok((score, candidate)) => (CompetitorOutcome::Judged(score), Some(candidate)),
            Err(message) => (CompetitorOutcome::Failed(message), None),
        };
        results.push(CompetitorResult { name: competitor.name.clone(), outcome });
        candidates.push(candidate);
    }
    keep_best(context, &results, candidates, &dirs).await
}

/// The folder of a competitor. Its name is also that of its boxes, so it includes the run's.
fn folder_of(run_dir: &Path, name: &str) -> PathBuf {
    let run = run_dir.file_name().unwrap_or_default().to_string_lossy();
    run_dir.join(COMPETE_DIR).join(format!("{name}.{run}"))
}

async fn implement(
    stage: StageContext<'_>,
    competitor: &Competitor,
    prompt: &str,
    context: &RunContext,
) -> Result<CollectedWork, StageRunError> {
    let answer = stage.implement_as(competitor, prompt).await?;
    let failed = |message: String| Err(StageRunError::Failed(message));
    match parse_reply(&answer) {
        Some(AgentReply::Success { .. }) => {}
        Some(AgentReply::Failure { notes }) => {
            return failed(format!("the agent gave up: {notes}"));
        }
        Some(AgentReply::Clarify { question, .. }) => {
            return failed(format!("it asks: {question}"));
        }
        None => return failed("the agent gave no answer that could be read".to_owned()),
    }
    let commit =
        context.selected().map_err(|failure| StageRunError::Failed(failure.to_string()))?;
    stage.collect(commit).await
}

/// Checks, tests and reviews one result. The message of a refusal is the competitor's failure.
async fn judge(
    context: &mut RunContext,
    options: &RunOptions<'_>,
    (competitor, dir): (&Competitor, &Path),
    (repo, name, tip): (SealedRepo, RefName, Sha),
) -> WfResult<Result<(CandidateScore, Candidate), String>> {
    let agent = &competitor.agent.provider;
    let judged = apply_commits::judge_commits(context, &repo, (&name, &tip), agent).await?;
    let (tip, notes, lines) = match judged {
        Ok(judged) => judged,
        Err(message) => return Ok(Err(message)),
    };
    let product = context.product()?;
    product.take_objects(&repo, &name).await.or_exit(WfExit::General)?;
    let stage = stage_context(context, options, &tip, dir)?;
    let results = match run_suites(stage).await {
        Ok(results) => results,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let manifest = TestManifest::new(results.clone(), host::clock::now());
    write(context, &dir.join(MANIFEST), render_json(&manifest).as_bytes())?;
    let from = context.accepted_base.clone().unwrap_or_else(|| tip.clone());
    let material = review_material(context, &from, &tip).await?;
    write(context, &dir.join(DIFF), &material.patch)?;
    let answer = ask_reviewer(context, stage, &material).await?.ok();
    let patch = String::from_utf8_lossy(&material.patch);
    let review = answer.as_deref().and_then(|answer| extract_own_review(answer, &patch).ok());
    if let Some(review) = &review {
        write(context, &dir.join(REVIEW), render_json(&review.document).as_bytes())?;
    }
    let failed = results.iter().filter(|suite| suite.status == SuiteStatus::Failed).count();
    let score = CandidateScore {
        failed_suites: failed,
        is_untested: manifest.tested() != Tested::Yes,
        is_weakened: !material.weakened.is_empty(),
        is_refused: review.as_ref().is_none_or(|it| it.decision != ReviewDecision::Approve),
        blockers: review.as_ref().map_or(0, |review| review.blockers.len()),
        lines,
    };
    Ok(Ok((score, Candidate { repo, name, tip, results, answer, notes })))
}

/// Applies the best result and names the others in the result of the run.
async fn keep_best(
    context: &mut RunContext,
    results: &[CompetitorResult],
    mut candidates: Vec<Option<Candidate>>,
    dirs: &[PathBuf],
) -> WfResult<StageOutcome> {
    let all: Vec<String> = results.iter().map(CompetitorResult::words).collect();
    let best = choose_best(results).and_then(|at| Some((at, candidates.get_mut(at)?.take()?)));
    let Some((at, best)) = best else {
        let message = format!("none of the agents has a result: {}", all.join("; "));
        return Ok(StageOutcome::failed(RunStage::Implement, message));
    };
    let run_dir = context.run.path();
    for (place, (result, dir)) in results.iter().zip(dirs).enumerate() {
        let folder = dir.strip_prefix(&run_dir).unwrap_or(dir).display().to_string();
        let word = if place == at { "kept" } else { "not kept" };
        context.notes.push(format!("compete: {word}: {} ({folder})", result.words()));
    }
    context.notes.extend(best.notes);
    let winner = dirs.get(at).cloned().unwrap_or_default();
    let run = winner.strip_prefix(context.dirs.runs_dir()).unwrap_or(&winner);
    let run = run.to_string_lossy().into_owned();
    let outcome = apply_commits::land(context, &best.repo, &best.name, &best.tip, run).await?;
    if outcome == StageOutcome::Passed {
        let tests = winner.join("tests");
        if tests.is_dir() {
            // A failure only leaves them where they are.
            fs::rename(&tests, run_dir.join("tests")).ok();
        }
        context.kept = Some(KeptEvidence { results: Some(best.results), answer: best.answer });
        for dir in dirs {
            tidy(dir, WorkLocation::OnBranch);
        }
    }
    Ok(outcome)
}

fn write(context: &RunContext, path: &Path, bytes: &[u8]) -> WfResult<()> {
    let bytes = context.redactor.redact_bytes(bytes);
    host::file::write_atomic(path, &bytes, 0o600).or_exit(WfExit::General)
}
