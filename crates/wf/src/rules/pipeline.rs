//! The pipeline as a pure state machine: from the current stage and its outcome to the next stage or the ending.
//!
//! LOCK → LOAD → SELECT → CLARIFICATION_CHECK → IMPLEMENT → TEST → REVIEW → QA_GATE → DOCS → UPDATE_STATE, or from the
//! check to UAT_GATE when every micro-commit is done. Every way out is an [`Ending`]; REFRESH and UNLOCK belong to
//! the one finaliser that takes it.

use model::exit::WfExit;

use super::profile::Pause;
use super::status::WorkstreamStatus;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RunStage {
    Lock,
    Load,
    Select,
    ClarificationCheck,
    Implement,
    Test,
    Review,
    QaGate,
    Docs,
    UpdateState,
    UatGate,
    Refresh,
}

impl RunStage {
    pub(crate) const ALL: [Self; 12] = [
        Self::Lock,
        Self::Load,
        Self::Select,
        Self::ClarificationCheck,
        Self::Implement,
        Self::Test,
        Self::Review,
        Self::QaGate,
        Self::Docs,
        Self::UpdateState,
        Self::UatGate,
        Self::Refresh,
    ];

    /// The name in result.json.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Load => "load",
            Self::Select => "select",
            Self::ClarificationCheck => "clarification",
            Self::Implement => "implement",
            Self::Test => "test",
            Self::Review => "review",
            Self::QaGate => "qa_gate",
            Self::Docs => "docs",
            Self::UpdateState => "update_state",
            Self::UatGate => "uat",
            Self::Refresh => "refresh",
        }
    }

    pub(crate) fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.key() == key)
    }

    /// Exit status of a failure without a more specific one.
    pub(crate) fn usual_failure(self) -> WfExit {
        match self {
            Self::Lock => WfExit::Lock,
            Self::Load | Self::Select | Self::Implement => WfExit::Implement,
            Self::Test => WfExit::Test,
            Self::Review => WfExit::Review,
            Self::QaGate => WfExit::Qa,
            Self::ClarificationCheck | Self::UatGate => WfExit::Blocked,
            Self::Docs | Self::Refresh => WfExit::General,
            Self::UpdateState => WfExit::Internal,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StageOutcome {
    /// The next stage follows.
    Passed,
    /// The next stage follows although this one had nothing to do.
    Skipped { message: String },
    /// SELECT: every micro-commit is done.
    AllDone,
    /// SELECT: merge-ready or done, so there is nothing to do.
    Nothing,
    /// A person is needed first: the ids of questions or acceptance tests.
    Blocked { by: Vec<String> },
    /// UAT_GATE: a person did not accept it.
    NotAccepted { by: Vec<String> },
    /// CLARIFICATION_CHECK: the last micro-commit is neither approved nor rejected.
    Unapproved { message: String },
    /// REVIEW: changes are requested.
    ChangesRequested { message: String },
    /// It failed; the status may differ from the stage's usual one.
    Failed { status: WfExit, message: String },
    /// The run was cancelled.
    Stopped { message: String },
}

/// Blocker of a loop that waits for an approval.
const APPROVAL: &str = "approval";

impl StageOutcome {
    pub(crate) fn failed(stage: RunStage, message: impl Into<String>) -> Self {
        Self::Failed { status: stage.usual_failure(), message: message.into() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cycle {
    pub(crate) stage: RunStage,
    kind: CycleKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CycleKind {
    MicroCommit,
    Acceptance,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Transition {
    Enter(Cycle),
    Finish(Ending),
}

/// Ending of a cycle, with everything the finaliser needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) outcome: RunOutcome,
    pub(crate) exit: WfExit,
    pub(crate) failed_stage: Option<RunStage>,
    /// The new status of the workstream; none leaves it as it is.
    pub(crate) becomes: Option<WorkstreamStatus>,
    /// Ids of the questions or acceptance tests that it waits for.
    pub(crate) blocked_by: Vec<String>,
    pub(crate) message: String,
    pub(crate) kind: EndingKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndingKind {
    /// A micro-commit was made.
    MicroCommit,
    /// The gate in front of the merge opened.
    Accepted,
    Nothing,
    NotPassed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunOutcome {
    Passed,
    Failed,
    Blocked,
}

impl RunOutcome {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
        }
    }
}

impl Cycle {
    pub(crate) fn start() -> Self {
        Self { stage: RunStage::Lock, kind: CycleKind::MicroCommit }
    }

    pub(crate) fn next(self, report: StageOutcome) -> Transition {
        match report {
            StageOutcome::Passed | StageOutcome::Skipped { .. } => self.after_pass(),
            StageOutcome::AllDone => Transition::Enter(Self {
                stage: RunStage::ClarificationCheck,
                kind: CycleKind::Acceptance,
            }),
            StageOutcome::Nothing => Transition::Finish(passed(EndingKind::Nothing, None)),
            StageOutcome::Blocked { by } => {
                Transition::Finish(self.blocked(by, self.waiting_status()))
            }
            StageOutcome::NotAccepted { by } => {
                Transition::Finish(self.blocked(by, WorkstreamStatus::UatFailed))
            }
            // The status stays: an approval is not a question, and other commands still work.
            StageOutcome::Unapproved { message } => Transition::Finish(Ending {
                becomes: None,
                message,
                ..self.blocked(vec![APPROVAL.to_owned()], WorkstreamStatus::Implement)
            }),
            StageOutcome::ChangesRequested { message } => {
                let becomes = Some(WorkstreamStatus::BlockedReview);
                Transition::Finish(self.failed(WfExit::Review, becomes, message))
            }
            StageOutcome::Failed { status, message } => {
                Transition::Finish(self.failed(status, self.status_after_failure(), message))
            }
            StageOutcome::Stopped { message } => {
                Transition::Finish(self.failed(WfExit::General, None, message))
            }
        }
    }

    fn after_pass(self) -> Transition {
        let stage = match (self.stage, self.kind) {
            (RunStage::Lock, _) => RunStage::Load,
            (RunStage::Load, _) => RunStage::Select,
            (RunStage::Select, _) => RunStage::ClarificationCheck,
            (RunStage::ClarificationCheck, CycleKind::MicroCommit) => RunStage::Implement,
            (RunStage::ClarificationCheck, CycleKind::Acceptance) => RunStage::UatGate,
            (RunStage::Implement, _) => RunStage::Test,
            (RunStage::Test, _) => RunStage::Review,
            (RunStage::Review, _) => RunStage::QaGate,
            (RunStage::QaGate, _) => RunStage::Docs,
            (RunStage::Docs, _) => RunStage::UpdateState,
            // UPDATE_STATE itself writes the status, in one step with the rest.
            (RunStage::UpdateState, _) => {
                return Transition::Finish(passed(EndingKind::MicroCommit, None));
            }
            (RunStage::UatGate | RunStage::Refresh, _) => {
                let becomes = Some(WorkstreamStatus::MergeReady);
                return Transition::Finish(passed(EndingKind::Accepted, becomes));
            }
        };
        Transition::Enter(Self { stage, ..self })
    }

    fn waiting_status(self) -> WorkstreamStatus {
        if self.stage == RunStage::UatGate {
            WorkstreamStatus::UatPending
        } else {
            WorkstreamStatus::BlockedClarification
        }
    }

    /// A failure before any work leaves the status alone; a later one leaves work to be done again.
    fn status_after_failure(self) -> Option<WorkstreamStatus> {
        match self.stage {
            RunStage::Test => Some(WorkstreamStatus::BlockedTest),
            RunStage::Implement | RunStage::QaGate | RunStage::Docs | RunStage::UpdateState => {
                Some(WorkstreamStatus::Implement)
            }
            RunStage::Lock
            | RunStage::Load
            | RunStage::Select
            | RunStage::ClarificationCheck
            | RunStage::Review
            | RunStage::UatGate
            | RunStage::Refresh => None,
        }
    }

    fn blocked(self, by: Vec<String>, becomes: WorkstreamStatus) -> Ending {
        Ending {
            failed_stage: Some(self.stage),
            becomes: Some(becomes),
            message: format!("blocked by {}", by.join(", ")),
            blocked_by: by,
            ..Ending::new(RunOutcome::Blocked, WfExit::Blocked, EndingKind::NotPassed)
        }
    }

    fn failed(self, exit: WfExit, becomes: Option<WorkstreamStatus>, message: String) -> Ending {
        Ending {
            failed_stage: Some(self.stage),
            becomes,
            message,
            ..Ending::new(RunOutcome::Failed, exit, EndingKind::NotPassed)
        }
    }
}

impl Ending {
    pub(crate) fn new(outcome: RunOutcome, exit: WfExit, kind: EndingKind) -> Self {
        Self {
            outcome,
            exit,
            failed_stage: None,
            becomes: None,
            blocked_by: Vec::new(),
            message: String::new(),
            kind,
        }
    }
}

fn passed(kind: EndingKind, becomes: Option<WorkstreamStatus>) -> Ending {
    Ending { becomes, ..Ending::new(RunOutcome::Passed, WfExit::Success, kind) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunMode {
    Once,
    Loop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextCycle {
    Again,
    Stop,
    /// The loop pauses for an approval of the commit.
    Pause,
}

/// Reports whether the implementer can mend this ending: its tests failed, or the reviewer requested changes.
pub(crate) fn can_be_mended(ending: &Ending) -> bool {
    matches!(
        (ending.failed_stage, ending.exit),
        (Some(RunStage::Test), WfExit::Test) | (Some(RunStage::Review), WfExit::Review)
    ) && ending.becomes.is_some()
}

/// Decides after a cycle; `left` is the number of cycles that may still follow.
pub(crate) fn next_cycle(mode: RunMode, ending: &Ending, pause: Pause, left: usize) -> NextCycle {
    match (mode, ending.kind, pause) {
        (RunMode::Once, _, _) => NextCycle::Stop,
        (RunMode::Loop, EndingKind::MicroCommit, Pause::EveryCommit) => NextCycle::Pause,
        (RunMode::Loop, EndingKind::MicroCommit, Pause::Gates) if left > 0 => NextCycle::Again,
        (RunMode::Loop, EndingKind::MicroCommit, Pause::Gates)
        | (RunMode::Loop, EndingKind::Accepted | EndingKind::Nothing | EndingKind::NotPassed, _) => {
            NextCycle::Stop
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds outcomes to a cycle and returns its stages and ending.
    fn play(
        reports: impl IntoIterator<Item = StageOutcome>,
    ) -> (Vec<&'static str>, Option<Ending>) {
        let mut cycle = Cycle::start();
        let mut stages = vec![cycle.stage.key()];
        for report in reports {
            match cycle.next(report) {
                Transition::Enter(next) => {
                    cycle = next;
                    stages.push(cycle.stage.key());
                }
                Transition::Finish(ending) => return (stages, Some(ending)),
            }
        }
        (stages, None)
    }

    fn passes(count: usize) -> Vec<StageOutcome> {
        vec![StageOutcome::Passed; count]
    }

    #[test]
    fn a_loop_without_a_word_is_blocked_and_leaves_the_status_alone() {
        let message = "wf approve tf".to_owned();
        let reports = passes(3).into_iter().chain([StageOutcome::Unapproved { message }]);
        let (stages, ending) = play(reports);
        let ending = ending.unwrap();
        assert_eq!(stages.last(), Some(&"clarification"));
        assert_eq!((ending.outcome, ending.exit), (RunOutcome::Blocked, WfExit::Blocked));
        assert_eq!((ending.becomes, ending.message.as_str()), (None, "wf approve tf"));
        assert_eq!(ending.blocked_by, [APPROVAL]);
    }

    #[test]
    fn a_micro_commit_goes_through_every_stage_in_order() {
        let (stages, ending) = play(passes(10));
        assert_eq!(
            stages,
            [
                "lock",
                "load",
                "select",
                "clarification",
                "implement",
                "test",
                "review",
                "qa_gate",
                "docs",
                "update_state"
            ]
        );
        let ending = ending.unwrap();
        assert_eq!((ending.exit, ending.kind), (WfExit::Success, EndingKind::MicroCommit));
    }

    #[test]
    fn a_finished_plan_goes_from_the_check_to_the_gate() {
        let mut reports = passes(2);
        reports.extend([StageOutcome::AllDone, StageOutcome::Passed, StageOutcome::Passed]);
        let (stages, ending) = play(reports);
        assert_eq!(stages, ["lock", "load", "select", "clarification", "uat"]);
        assert_eq!(ending.unwrap().becomes, Some(WorkstreamStatus::MergeReady));
    }

    #[track_caller]
    fn ends(
        before: usize,
        report: StageOutcome,
        exit: WfExit,
        becomes: Option<WorkstreamStatus>,
        stage: &str,
    ) {
        let mut reports = passes(before);
        reports.push(report);
        let ending = play(reports).1.unwrap();
        assert_eq!((ending.exit, ending.becomes), (exit, becomes));
        assert_eq!(ending.failed_stage.unwrap().key(), stage);
    }

    #[test]
    fn every_failure_has_its_status_and_its_code() {
        use WorkstreamStatus as S;
        let fail = |stage| StageOutcome::failed(stage, "x");
        ends(0, fail(RunStage::Lock), WfExit::Lock, None, "lock");
        ends(1, fail(RunStage::Load), WfExit::Implement, None, "load");
        ends(
            2,
            StageOutcome::Failed { status: WfExit::Config, message: "line 3".to_owned() },
            WfExit::Config,
            None,
            "select",
        );
        ends(
            3,
            StageOutcome::Blocked { by: vec!["CLQ-001".to_owned()] },
            WfExit::Blocked,
            Some(S::BlockedClarification),
            "clarification",
        );
        ends(4, fail(RunStage::Implement), WfExit::Implement, Some(S::Implement), "implement");
        ends(
            4,
            StageOutcome::Blocked { by: vec!["CLQ-001".to_owned()] },
            WfExit::Blocked,
            Some(S::BlockedClarification),
            "implement",
        );
        ends(5, fail(RunStage::Test), WfExit::Test, Some(S::BlockedTest), "test");
        ends(
            6,
            StageOutcome::ChangesRequested { message: "x".to_owned() },
            WfExit::Review,
            Some(S::BlockedReview),
            "review",
        );
        ends(6, fail(RunStage::Review), WfExit::Review, None, "review");
        ends(7, fail(RunStage::QaGate), WfExit::Qa, Some(S::Implement), "qa_gate");
        ends(
            5,
            StageOutcome::Stopped { message: "SIGTERM".to_owned() },
            WfExit::General,
            None,
            "test",
        );
    }

    #[test]
    fn the_gate_blocks_with_what_it_waits_for() {
        let mut reports = passes(2);
        reports.extend([
            StageOutcome::AllDone,
            StageOutcome::Passed,
            StageOutcome::Blocked { by: vec!["UAT-001".to_owned()] },
        ]);
        let ending = play(reports).1.unwrap();
        assert_eq!(ending.becomes, Some(WorkstreamStatus::UatPending));
        assert_eq!(
            (ending.outcome, ending.blocked_by),
            (RunOutcome::Blocked, vec!["UAT-001".to_owned()])
        );
    }

    #[test]
    fn merge_ready_ends_well_and_does_nothing() {
        let ending =
            play([StageOutcome::Passed, StageOutcome::Passed, StageOutcome::Nothing]).1.unwrap();
        assert_eq!(
            (ending.exit, ending.kind, ending.becomes),
            (WfExit::Success, EndingKind::Nothing, None)
        );
    }

    #[test]
    fn a_loop_goes_on_until_something_stops_it() {
        let made = passed(EndingKind::MicroCommit, None);
        assert_eq!(next_cycle(RunMode::Once, &made, Pause::Gates, 9), NextCycle::Stop);
        assert_eq!(next_cycle(RunMode::Loop, &made, Pause::Gates, 9), NextCycle::Again);
        assert_eq!(next_cycle(RunMode::Loop, &made, Pause::Gates, 0), NextCycle::Stop);
        assert_eq!(next_cycle(RunMode::Loop, &made, Pause::EveryCommit, 9), NextCycle::Pause);
        assert_eq!(
            next_cycle(RunMode::Loop, &passed(EndingKind::Nothing, None), Pause::Gates, 9),
            NextCycle::Stop
        );
    }

    #[test]
    fn only_failing_tests_and_requested_changes_can_be_mended() {
        let ending = |before, report| {
            let mut reports = passes(before);
            reports.push(report);
            play(reports).1.unwrap()
        };
        let changes = StageOutcome::ChangesRequested { message: "x".to_owned() };
        assert!(can_be_mended(&ending(5, StageOutcome::failed(RunStage::Test, "x"))));
        assert!(can_be_mended(&ending(6, changes)));
        // A review that cannot be read, an agent that failed and a stop are no task for the implementer.
        assert!(!can_be_mended(&ending(6, StageOutcome::failed(RunStage::Review, "x"))));
        assert!(!can_be_mended(&ending(4, StageOutcome::failed(RunStage::Implement, "x"))));
        assert!(!can_be_mended(&ending(5, StageOutcome::Stopped { message: "x".to_owned() })));
    }

    #[test]
    fn stages_are_found_by_their_names() {
        for stage in RunStage::ALL {
            assert_eq!(RunStage::from_key(stage.key()), Some(stage));
        }
        assert_eq!(RunStage::from_key("unlock"), None);
    }
}
