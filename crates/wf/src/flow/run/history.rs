//! History for the next attempt: rejections, answers and the failures of the last run.

use std::path::Path;

use model::id::MicroCommitId;

use crate::disk::queue::{QueueEntry, load_queue};
use crate::disk::rejection::load_rejections;
use crate::disk::run_dir::{MANIFEST, REVIEW};
use crate::disk::{Workstream, load_document, load_json, load_result, read_optional};
use crate::exit::WfResult;
use crate::rules::clarification::{Clarification, ClarificationStatus};
use crate::rules::manifest::TestManifest;
use crate::rules::pipeline::RunOutcome;
use crate::rules::review::read_review;
use crate::rules::schema::Schema;

/// Lines kept from the end of a log, where the cause of a failure is.
const TAIL_LINES: usize = 60;

pub(super) fn gather(
    workstream: &Workstream,
    commit: &MicroCommitId,
    runs: &Path,
) -> WfResult<Vec<String>> {
    let mut message = Vec::new();
    for rejection in load_rejections(&workstream.dir)? {
        if rejection.commit == *commit {
            message
                .push(format!("{} rejected an earlier try: {}", rejection.by, rejection.message));
        }
    }
    for entry in load_queue::<Clarification>(&workstream.dir, ClarificationStatus::Answered)? {
        if let QueueEntry::Good(question) = entry {
            let answer = question.answer.unwrap_or_default();
            message.push(format!(
                "{} was answered. Question: {} Answer: {answer}",
                question.id, question.question
            ));
        }
    }
    if let Some(run) = workstream.meta.last_run_id.as_ref().map(|name| runs.join(name)) {
        // A run that cannot be read adds nothing.
        if let Ok(Some(result)) = load_result(&run)
            && result.status == RunOutcome::Failed
        {
            message.push(format!("The last try failed: {}", result.notes));
            message.extend(demands(&run));
            message.extend(test_tails(&run));
        }
    }
    Ok(message)
}

fn demands(run: &Path) -> Vec<String> {
    let read = || read_review(load_json(&run.join(REVIEW)).ok()??).ok();
    let demands = read().map(|review| review.demands()).unwrap_or_default();
    demands.into_iter().map(|demand| format!("The reviewer demands: {demand}")).collect()
}

fn test_tails(run: &Path) -> Vec<String> {
    let manifest = load_document::<TestManifest>(&run.join(MANIFEST), Schema::TestManifest);
    let Ok(Some(manifest)) = manifest else { return Vec::new() };
    let tail = |name: &str| {
        let log = read_optional(&run.join("tests").join(name).join("output.log")).ok().flatten()?;
        let text = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.len().saturating_sub(TAIL_LINES);
        Some(format!("The end of the failing {name} tests:\n{}", lines[from..].join("\n")))
    };
    manifest.failed().into_iter().filter_map(tail).collect()
}
