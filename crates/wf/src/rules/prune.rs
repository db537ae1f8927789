//! Decides which copies of runs can be removed: those superseded by a later accepted run of the same micro-commit.

use super::pipeline::RunOutcome;
use super::result::RunResult;

/// A run that still has the copy in which its agent worked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunCopy {
    pub(crate) name: String,
    /// `None` while the run is active, or while a dead run waits for its recovery.
    pub(crate) result: Option<RunResult>,
    /// Its commit still waits for tests and lives only in the copy.
    pub(crate) is_awaited: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CopyVerdict {
    /// A later run had the same micro-commit accepted.
    Superseded,
    /// The agent's work may exist nowhere else.
    OnlyCopy,
    /// A run uses it now or will use it.
    InUse,
}

impl CopyVerdict {
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Superseded => "a later run had its micro-commit accepted",
            Self::OnlyCopy => {
                "its micro-commit was not accepted since, so this may be the only copy of the work"
            }
            Self::InUse => "it is still needed",
        }
    }
}

pub(crate) fn judge_copy(left: &RunCopy, results: &[RunResult]) -> CopyVerdict {
    let Some(own) = left.result.as_ref().filter(|_| !left.is_awaited) else {
        return CopyVerdict::InUse;
    };
    // Times are written alike and in UTC, so they compare as text.
    let made_good = results.iter().any(|other| {
        other.status == RunOutcome::Passed
            && other.microcommit.is_some()
            && (&other.project, &other.workstream, &other.microcommit)
                == (&own.project, &own.workstream, &own.microcommit)
            && other.timestamps.ended > own.timestamps.ended
    });
    if made_good { CopyVerdict::Superseded } else { CopyVerdict::OnlyCopy }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(commit: &str, status: &str, ended: &str) -> RunResult {
        serde_json::from_value(serde_json::json!({
            "version": 1, "project": "app", "workstream": "tf", "microcommit": commit,
            "status": status,
            "timestamps": {"started": "2025-01-15T10:00:00Z", "ended": ended, "duration_seconds": 1.0},
        }))
        .expect("a result")
    }

    fn check(own: Option<RunResult>, others: &[RunResult], expected: CopyVerdict) {
        let left = RunCopy { name: "run".to_owned(), result: own, is_awaited: false };
        assert_eq!(judge_copy(&left, others), expected);
    }

    #[test]
    fn only_a_later_acceptance_of_the_same_micro_commit_makes_a_copy_worthless() {
        let own = || Some(result("COMMIT-TF-001", "failed", "2025-01-15T11:00:00Z"));
        let passed = |commit, hour| result(commit, "passed", &format!("2025-01-15T{hour}:00:00Z"));
        check(own(), &[passed("COMMIT-TF-001", 12)], CopyVerdict::Superseded);
        check(own(), &[passed("COMMIT-TF-001", 10)], CopyVerdict::OnlyCopy);
        check(own(), &[passed("COMMIT-TF-002", 12)], CopyVerdict::OnlyCopy);
        let failed = result("COMMIT-TF-001", "failed", "2025-01-15T12:00:00Z");
        check(own(), &[failed], CopyVerdict::OnlyCopy);
        let elsewhere = RunResult { workstream: "other".to_owned(), ..passed("COMMIT-TF-001", 12) };
        check(own(), &[elsewhere], CopyVerdict::OnlyCopy);
    }

    #[test]
    fn a_run_without_a_result_or_whose_commit_is_awaited_is_in_use() {
        let accepted = [result("COMMIT-TF-001", "passed", "2025-01-15T12:00:00Z")];
        check(None, &accepted, CopyVerdict::InUse);
        let own = Some(result("COMMIT-TF-001", "failed", "2025-01-15T11:00:00Z"));
        let left = RunCopy { name: "run".to_owned(), result: own, is_awaited: true };
        assert_eq!(judge_copy(&left, &accepted), CopyVerdict::InUse);
    }
}
