//! `result.json`: how a run ended, for machines.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::id::{MicroCommitId, ProjectName, WorkstreamId};
use serde::{Deserialize, Serialize};

use super::meta::stamp;
use super::pipeline::{Ending, RunOutcome, RunStage};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunResult {
    pub(crate) version: u32,
    pub(crate) project: String,
    pub(crate) workstream: String,
    /// None when the run ended before one was selected.
    pub(crate) microcommit: Option<MicroCommitId>,
    pub(crate) status: RunOutcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed_stage: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) blocked_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base_sha: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commit_sha: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) touched_files_count: Option<usize>,
    pub(crate) timestamps: Timestamps,
    #[serde(default)]
    pub(crate) stages: BTreeMap<String, StageRecord>,
    #[serde(default)]
    pub(crate) notes: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Timestamps {
    pub(crate) started: String,
    pub(crate) ended: String,
    #[serde(default)]
    pub(crate) duration_seconds: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StageRecord {
    pub(crate) status: StageStatus,
    #[serde(default)]
    pub(crate) duration_seconds: f64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) notes: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StageStatus {
    Passed,
    Failed,
    Skipped,
    Blocked,
}

/// The name of a failure outside every stage.
pub(crate) const INTERNAL: &str = "internal";

impl RunResult {
    /// The result of a run with this ending, without what is known only about some runs.
    pub(crate) fn new(
        project: &ProjectName,
        workstream: &WorkstreamId,
        [started, ended]: [Timestamp; 2],
        notes: &[String],
        ending: &Ending,
    ) -> Self {
        let message = Some(&ending.message).filter(|message| !message.is_empty());
        let notes: Vec<&str> = notes.iter().chain(message).map(String::as_str).collect();
        Self {
            version: 1,
            project: project.to_string(),
            workstream: workstream.to_string(),
            microcommit: None,
            status: ending.outcome,
            exit_code: Some(ending.exit.code()),
            failed_stage: ending.failed_stage.map(|stage| stage.key().to_owned()),
            blocked_reason: Some(ending.blocked_by.join(",")).filter(|ids| !ids.is_empty()),
            base_sha: None,
            commit_sha: None,
            touched_files_count: None,
            timestamps: Timestamps {
                started: stamp(started),
                ended: stamp(ended),
                duration_seconds: ended.duration_since(started).as_secs_f64().max(0.0),
            },
            stages: BTreeMap::new(),
            notes: notes.join("\n"),
        }
    }
}

pub(crate) fn render_summary(run: &str, result: &RunResult) -> String {
    let none = || "none".to_owned();
    let mut page = format!(
        "# Run {run}\n\n- Project: {}\n- Workstream: {}\n- Micro-commit: {}\n- Status: {}\n",
        result.project,
        result.workstream,
        result.microcommit.as_ref().map_or_else(none, MicroCommitId::to_string),
        result.status.word(),
    );
    for (label, value) in [
        ("Failed stage", &result.failed_stage),
        ("Blocked by", &result.blocked_reason),
        ("Base", &result.base_sha),
        ("Commit", &result.commit_sha),
    ] {
        if let Some(value) = value {
            page.push_str(&format!("- {label}: {value}\n"));
        }
    }
    page.push_str(&format!(
        "- Started: {}\n- Ended: {} ({:.1} s)\n\n## Stages\n\n| Stage | Status | Seconds | Notes |\n|---|---|---|---|\n",
        result.timestamps.started, result.timestamps.ended, result.timestamps.duration_seconds
    ));
    for stage in RunStage::ALL {
        if let Some(record) = result.stages.get(stage.key()) {
            page.push_str(&render_stage(stage, record));
        }
    }
    if !result.notes.is_empty() {
        page.push_str(&format!("\n## Notes\n\n{}\n", result.notes));
    }
    page
}

fn render_stage(stage: RunStage, record: &StageRecord) -> String {
    let status = match record.status {
        StageStatus::Passed => "passed",
        StageStatus::Failed => "failed",
        StageStatus::Skipped => "skipped",
        StageStatus::Blocked => "blocked",
    };
    let notes = record.notes.replace('\n', " ").replace('|', "\\|");
    format!("| {} | {status} | {:.1} | {notes} |\n", stage.key(), record.duration_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::pipeline::{Cycle, StageOutcome, Transition};
    use crate::rules::schema::Schema;

    fn result(micro_commit: Option<&str>) -> RunResult {
        let record = StageRecord {
            status: StageStatus::Blocked,
            duration_seconds: 0.1,
            notes: "a | b".to_owned(),
        };
        let project = ProjectName::parse("p").unwrap();
        let workstream = WorkstreamId::parse("tf").unwrap();
        let times = [Timestamp::UNIX_EPOCH, Timestamp::from_second(90).unwrap()];
        RunResult {
            microcommit: micro_commit.map(|id| MicroCommitId::parse(id).unwrap()),
            base_sha: Some("a".repeat(64)),
            touched_files_count: Some(0),
            stages: BTreeMap::from([(RunStage::ClarificationCheck.key().to_owned(), record)]),
            ..RunResult::new(&project, &workstream, times, &[], &blocked())
        }
    }

    fn blocked() -> Ending {
        let report = StageOutcome::Blocked { by: vec!["CLQ-001".to_owned()] };
        match Cycle::start().next(report) {
            Transition::Finish(ending) => ending,
            Transition::Enter(_) => panic!("blocked means the end"),
        }
    }

    #[test]
    fn every_result_keeps_the_schema_even_without_a_micro_commit() {
        for id in [None, Some("COMMIT-TF-001")] {
            let value = serde_json::to_value(result(id)).unwrap();
            assert_eq!(Schema::Result.check(&value), Ok(()));
            assert_eq!(value["blocked_reason"], "CLQ-001");
            assert_eq!(value["exit_code"], 8);
            assert_eq!(value["timestamps"]["duration_seconds"], 90.0);
        }
    }

    #[test]
    fn the_summary_says_what_happened() {
        insta::assert_snapshot!(render_summary("r1", &result(None)), @r"
        # Run r1

        - Project: p
        - Workstream: tf
        - Micro-commit: none
        - Status: blocked
        - Failed stage: lock
        - Blocked by: CLQ-001
        - Base: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
        - Started: 1970-01-01T00:00:00Z
        - Ended: 1970-01-01T00:01:30Z (90.0 s)

        ## Stages

        | Stage | Status | Seconds | Notes |
        |---|---|---|---|
        | clarification | blocked | 0.1 | a \| b |

        ## Notes

        blocked by CLQ-001
        ");
    }
}
