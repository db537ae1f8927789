//! The command to type after a run has ended.

use model::id::WorkstreamId;

use super::pipeline::{Ending, EndingKind, RunStage};
use super::profile::Pause;
use super::status::WorkstreamStatus;

/// The next step that a run has left to a person, as words and commands. `status` is that of the workstream; none where it could not be
/// read.
pub(crate) fn next_step(
    id: &WorkstreamId,
    ending: &Ending,
    pause: Pause,
    status: Option<WorkstreamStatus>,
) -> Option<String> {
    let again = || format!("go on: wf run {id}");
    Some(match (ending.kind, ending.failed_stage) {
        (EndingKind::MicroCommit, _) if pause == Pause::EveryCommit => {
            format!("approve it: wf approve {id}, or wf reject {id} -m REASON")
        }
        (EndingKind::MicroCommit, _) if status == Some(WorkstreamStatus::UatPending) => {
            "try it: wf uat list".to_owned()
        }
        (EndingKind::MicroCommit, _) => again(),
        (EndingKind::Accepted, _) => format!("merge: wf merge {id}"),
        (EndingKind::Nothing, _) if status == Some(WorkstreamStatus::Done) => {
            format!("it is merged: wf close {id}")
        }
        (EndingKind::Nothing, _) => format!("merge: wf merge {id}"),
        (EndingKind::NotPassed, stage) => match (ending.becomes, stage?) {
            (Some(WorkstreamStatus::BlockedClarification), _) => {
                let question = ending.blocked_by.first()?;
                format!("answer: wf clarify show {question} -w {id}")
            }
            (Some(WorkstreamStatus::UatPending), _) => {
                let test = ending.blocked_by.first()?;
                format!("try it: wf uat show {test} -w {id}")
            }
            (Some(WorkstreamStatus::UatFailed), _) => {
                format!("plan the fix: wf plan add TITLE -w {id}")
            }
            // Its message names the commands.
            (None, RunStage::ClarificationCheck) => return None,
            (_, RunStage::Lock) => format!("who runs: wf status {id}"),
            (_, RunStage::Load) => "look: wf doctor".to_owned(),
            (_, RunStage::Select) => format!("plan: wf plan add TITLE -w {id}"),
            (
                _,
                RunStage::ClarificationCheck
                | RunStage::Implement
                | RunStage::Test
                | RunStage::Review
                | RunStage::QaGate
                | RunStage::Docs
                | RunStage::UpdateState
                | RunStage::UatGate
                | RunStage::Refresh,
            ) => format!("look: wf show -w {id}; {}", again()),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::pipeline::{Cycle, StageOutcome, Transition};
    use super::*;

    /// What follows if a stage of a cycle ends like this.
    fn after(
        stage: RunStage,
        report: StageOutcome,
        pause: Pause,
        status: WorkstreamStatus,
    ) -> Option<String> {
        let mut cycle = Cycle::start();
        cycle.stage = stage;
        let Transition::Finish(ending) = cycle.next(report) else { panic!("it goes on") };
        let id = WorkstreamId::parse("tf").unwrap();
        next_step(&id, &ending, pause, Some(status))
    }

    #[track_caller]
    fn check(stage: RunStage, report: StageOutcome, expected: Option<&str>) {
        let found = after(stage, report, Pause::Gates, WorkstreamStatus::Implement);
        assert_eq!(found.as_deref(), expected);
    }

    #[test]
    fn a_micro_commit_that_passed_is_followed_by_the_next_or_by_a_person() {
        for (pause, status, expected) in [
            (Pause::Gates, WorkstreamStatus::Implement, "go on: wf run tf"),
            (
                Pause::EveryCommit,
                WorkstreamStatus::Implement,
                "approve it: wf approve tf, or wf reject tf -m REASON",
            ),
            (Pause::Gates, WorkstreamStatus::UatPending, "try it: wf uat list"),
        ] {
            let found = after(RunStage::UpdateState, StageOutcome::Passed, pause, status);
            assert_eq!(found.as_deref(), Some(expected));
        }
    }

    #[test]
    fn what_waits_for_a_person_is_named_with_its_command() {
        let blocked = |by: &str| StageOutcome::Blocked { by: vec![by.to_owned()] };
        check(
            RunStage::ClarificationCheck,
            blocked("CLQ-001"),
            Some("answer: wf clarify show CLQ-001 -w tf"),
        );
        check(RunStage::UatGate, blocked("UAT-001"), Some("try it: wf uat show UAT-001 -w tf"));
        check(
            RunStage::UatGate,
            StageOutcome::NotAccepted { by: vec!["UAT-001".to_owned()] },
            Some("plan the fix: wf plan add TITLE -w tf"),
        );
        check(RunStage::UatGate, StageOutcome::Passed, Some("merge: wf merge tf"));
        check(RunStage::Select, StageOutcome::Nothing, Some("merge: wf merge tf"));
        let message = "wf approve tf, or wf reject tf -m REASON".to_owned();
        check(RunStage::ClarificationCheck, StageOutcome::Unapproved { message }, None);
    }

    #[test]
    fn a_failure_is_followed_by_a_look_at_it() {
        for stage in [RunStage::Implement, RunStage::Test, RunStage::Review, RunStage::QaGate] {
            let report = StageOutcome::failed(stage, "no");
            check(stage, report, Some("look: wf show -w tf; go on: wf run tf"));
        }
        let report = StageOutcome::failed(RunStage::Select, "the plan has no micro-commits");
        check(RunStage::Select, report, Some("plan: wf plan add TITLE -w tf"));
        check(
            RunStage::Lock,
            StageOutcome::failed(RunStage::Lock, "held"),
            Some("who runs: wf status tf"),
        );
        check(RunStage::Load, StageOutcome::failed(RunStage::Load, "no"), Some("look: wf doctor"));
    }
}
