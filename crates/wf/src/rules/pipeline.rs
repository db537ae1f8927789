//! The pipeline as a pure state machine: where a cycle is, what its stage reported, and what comes next.
//!
//! LOCK → LOAD → SELECT → CLARIFICATION_CHECK → IMPLEMENT → TEST → REVIEW → QA_GATE → DOCS → UPDATE_STATE, or from the
//! check to UAT_GATE when every micro-commit is done (D97). Every way out is an [`Ending`]; REFRESH and UNLOCK belong to
//! the one finaliser that takes it (D70, D90).

use model::exit::WfExit;

use super::profile::Pause;
use super::status::WorkstreamStatus;

/// A stage of a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
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

impl Stage {
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

    /// The name in result.json (D51).
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

    /// The stage of that name.
    pub(crate) fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.key() == key)
    }

    /// The status of a failure that says nothing more about itself.
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

/// What a stage says when it is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    /// It went well.
    Passed,
    /// SELECT: every micro-commit is done.
    AllDone,
    /// SELECT: merge-ready or done, so there is nothing to do.
    Nothing,
    /// A person is needed first: the ids of questions or acceptance tests.
    Blocked { by: Vec<String> },
    /// UAT_GATE: a person did not accept it.
    NotAccepted { by: Vec<String> },
    /// CLARIFICATION_CHECK: nobody has said a word on the last micro-commit (D41).
    Unapproved { words: String },
    /// REVIEW: changes are requested.
    ChangesRequested { words: String },
    /// It failed; the status may differ from the stage's usual one (D61).
    Failed { status: WfExit, words: String },
    /// Somebody told us to stop.
    Stopped { words: String },
}

/// What a loop is blocked by that waits for a person's word.
const APPROVAL: &str = "approval";

impl Report {
    /// A failure of the usual status.
    pub(crate) fn failed(stage: Stage, words: impl Into<String>) -> Self {
        Self::Failed { status: stage.usual_failure(), words: words.into() }
    }
}

/// Where a cycle is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cycle {
    pub(crate) stage: Stage,
    road: Road,
}

/// Which way a cycle goes after the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Road {
    MicroCommit,
    Acceptance,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Enter(Cycle),
    Finish(Ending),
}

/// How a cycle ended: everything the finaliser needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) outcome: Outcome,
    pub(crate) exit: WfExit,
    pub(crate) failed_stage: Option<Stage>,
    /// The new status of the workstream; none leaves it as it is.
    pub(crate) becomes: Option<WorkstreamStatus>,
    /// What it waits for.
    pub(crate) blocked_by: Vec<String>,
    pub(crate) words: String,
    pub(crate) kind: EndingKind,
}

/// What a passed cycle was about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndingKind {
    /// A micro-commit was made.
    MicroCommit,
    /// The gate in front of the merge opened.
    Accepted,
    /// There was nothing to do.
    Nothing,
    /// It did not pass.
    NotPassed,
}

/// The three ways in which result.json says a run can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Passed,
    Failed,
    Blocked,
}

impl Outcome {
    /// The word in files.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
        }
    }
}

impl Cycle {
    /// Where every cycle begins.
    pub(crate) fn start() -> Self {
        Self { stage: Stage::Lock, road: Road::MicroCommit }
    }

    /// What comes after this report.
    pub(crate) fn next(self, report: Report) -> Step {
        match report {
            Report::Passed => self.after_pass(),
            Report::AllDone => {
                Step::Enter(Self { stage: Stage::ClarificationCheck, road: Road::Acceptance })
            }
            Report::Nothing => Step::Finish(passed(EndingKind::Nothing, None)),
            Report::Blocked { by } => Step::Finish(self.blocked(by, self.waiting_status())),
            Report::NotAccepted { by } => {
                Step::Finish(self.blocked(by, WorkstreamStatus::UatFailed))
            }
            // The status stays: what it waits for is no question, and any other command may go on.
            Report::Unapproved { words } => Step::Finish(Ending {
                becomes: None,
                words,
                ..self.blocked(vec![APPROVAL.to_owned()], WorkstreamStatus::Implement)
            }),
            Report::ChangesRequested { words } => {
                let becomes = Some(WorkstreamStatus::BlockedReview);
                Step::Finish(self.failed(WfExit::Review, becomes, words))
            }
            Report::Failed { status, words } => {
                Step::Finish(self.failed(status, self.status_after_failure(), words))
            }
            Report::Stopped { words } => Step::Finish(self.failed(WfExit::General, None, words)),
        }
    }

    fn after_pass(self) -> Step {
        let stage = match (self.stage, self.road) {
            (Stage::Lock, _) => Stage::Load,
            (Stage::Load, _) => Stage::Select,
            (Stage::Select, _) => Stage::ClarificationCheck,
            (Stage::ClarificationCheck, Road::MicroCommit) => Stage::Implement,
            (Stage::ClarificationCheck, Road::Acceptance) => Stage::UatGate,
            (Stage::Implement, _) => Stage::Test,
            (Stage::Test, _) => Stage::Review,
            (Stage::Review, _) => Stage::QaGate,
            (Stage::QaGate, _) => Stage::Docs,
            (Stage::Docs, _) => Stage::UpdateState,
            // UPDATE_STATE itself writes the status, in one step with the rest (D98).
            (Stage::UpdateState, _) => return Step::Finish(passed(EndingKind::MicroCommit, None)),
            (Stage::UatGate | Stage::Refresh, _) => {
                let becomes = Some(WorkstreamStatus::MergeReady);
                return Step::Finish(passed(EndingKind::Accepted, becomes));
            }
        };
        Step::Enter(Self { stage, ..self })
    }

    fn waiting_status(self) -> WorkstreamStatus {
        if self.stage == Stage::UatGate {
            WorkstreamStatus::UatPending
        } else {
            WorkstreamStatus::BlockedClarification
        }
    }

    /// A failure before any work leaves the status alone; a later one leaves work to be done again (section 12).
    fn status_after_failure(self) -> Option<WorkstreamStatus> {
        match self.stage {
            Stage::Test => Some(WorkstreamStatus::BlockedTest),
            Stage::Implement | Stage::QaGate | Stage::Docs | Stage::UpdateState => {
                Some(WorkstreamStatus::Implement)
            }
            Stage::Lock
            | Stage::Load
            | Stage::Select
            | Stage::ClarificationCheck
            | Stage::Review
            | Stage::UatGate
            | Stage::Refresh => None,
        }
    }

    fn blocked(self, by: Vec<String>, becomes: WorkstreamStatus) -> Ending {
        Ending {
            outcome: Outcome::Blocked,
            exit: WfExit::Blocked,
            failed_stage: Some(self.stage),
            becomes: Some(becomes),
            words: format!("blocked by {}", by.join(", ")),
            blocked_by: by,
            kind: EndingKind::NotPassed,
        }
    }

    fn failed(self, exit: WfExit, becomes: Option<WorkstreamStatus>, words: String) -> Ending {
        Ending {
            outcome: Outcome::Failed,
            exit,
            failed_stage: Some(self.stage),
            becomes,
            blocked_by: Vec::new(),
            words,
            kind: EndingKind::NotPassed,
        }
    }
}

fn passed(kind: EndingKind, becomes: Option<WorkstreamStatus>) -> Ending {
    Ending {
        outcome: Outcome::Passed,
        exit: WfExit::Success,
        failed_stage: None,
        becomes,
        blocked_by: Vec::new(),
        words: String::new(),
        kind,
    }
}

/// How many cycles were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounds {
    Once,
    Loop,
}

/// Whether another cycle follows (D41, D67).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Onward {
    Again,
    Stop,
    /// It could go on, but a person wants to see every commit.
    Pause,
}

/// Decides after a cycle; `left` is the number of cycles that may still follow.
pub(crate) fn next_round(rounds: Rounds, ending: &Ending, pause: Pause, left: usize) -> Onward {
    match (rounds, ending.kind, pause) {
        (Rounds::Once, _, _) => Onward::Stop,
        (Rounds::Loop, EndingKind::MicroCommit, Pause::EveryCommit) => Onward::Pause,
        (Rounds::Loop, EndingKind::MicroCommit, Pause::Gates) if left > 0 => Onward::Again,
        (Rounds::Loop, EndingKind::MicroCommit, Pause::Gates)
        | (Rounds::Loop, EndingKind::Accepted | EndingKind::Nothing | EndingKind::NotPassed, _) => {
            Onward::Stop
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays reports until the end and tells the stages on the way.
    fn play(reports: impl IntoIterator<Item = Report>) -> (Vec<&'static str>, Option<Ending>) {
        let mut cycle = Cycle::start();
        let mut stages = vec![cycle.stage.key()];
        for report in reports {
            match cycle.next(report) {
                Step::Enter(next) => {
                    cycle = next;
                    stages.push(cycle.stage.key());
                }
                Step::Finish(ending) => return (stages, Some(ending)),
            }
        }
        (stages, None)
    }

    fn passes(count: usize) -> Vec<Report> {
        vec![Report::Passed; count]
    }

    #[test]
    fn a_loop_without_a_word_is_blocked_and_leaves_the_status_alone_d41() {
        let words = "wf approve tf".to_owned();
        let reports = passes(3).into_iter().chain([Report::Unapproved { words }]);
        let (stages, ending) = play(reports);
        let ending = ending.unwrap();
        assert_eq!(stages.last(), Some(&"clarification"));
        assert_eq!((ending.outcome, ending.exit), (Outcome::Blocked, WfExit::Blocked));
        assert_eq!((ending.becomes, ending.words.as_str()), (None, "wf approve tf"));
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
    fn a_finished_plan_goes_from_the_check_to_the_gate_d97() {
        let mut reports = passes(2);
        reports.extend([Report::AllDone, Report::Passed, Report::Passed]);
        let (stages, ending) = play(reports);
        assert_eq!(stages, ["lock", "load", "select", "clarification", "uat"]);
        assert_eq!(ending.unwrap().becomes, Some(WorkstreamStatus::MergeReady));
    }

    #[track_caller]
    fn ends(
        before: usize,
        report: Report,
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
    fn every_failure_has_its_status_and_its_code_d45() {
        use WorkstreamStatus as S;
        let fail = |stage| Report::failed(stage, "x");
        ends(0, fail(Stage::Lock), WfExit::Lock, None, "lock");
        ends(1, fail(Stage::Load), WfExit::Implement, None, "load");
        ends(
            2,
            Report::Failed { status: WfExit::Config, words: "line 3".to_owned() },
            WfExit::Config,
            None,
            "select",
        );
        ends(
            3,
            Report::Blocked { by: vec!["CLQ-001".to_owned()] },
            WfExit::Blocked,
            Some(S::BlockedClarification),
            "clarification",
        );
        ends(4, fail(Stage::Implement), WfExit::Implement, Some(S::Implement), "implement");
        ends(
            4,
            Report::Blocked { by: vec!["CLQ-001".to_owned()] },
            WfExit::Blocked,
            Some(S::BlockedClarification),
            "implement",
        );
        ends(5, fail(Stage::Test), WfExit::Test, Some(S::BlockedTest), "test");
        ends(
            6,
            Report::ChangesRequested { words: "x".to_owned() },
            WfExit::Review,
            Some(S::BlockedReview),
            "review",
        );
        ends(6, fail(Stage::Review), WfExit::Review, None, "review");
        ends(7, fail(Stage::QaGate), WfExit::Qa, Some(S::Implement), "qa_gate");
        ends(5, Report::Stopped { words: "SIGTERM".to_owned() }, WfExit::General, None, "test");
    }

    #[test]
    fn the_gate_blocks_with_what_it_waits_for() {
        let mut reports = passes(2);
        reports.extend([
            Report::AllDone,
            Report::Passed,
            Report::Blocked { by: vec!["UAT-001".to_owned()] },
        ]);
        let ending = play(reports).1.unwrap();
        assert_eq!(ending.becomes, Some(WorkstreamStatus::UatPending));
        assert_eq!(
            (ending.outcome, ending.blocked_by),
            (Outcome::Blocked, vec!["UAT-001".to_owned()])
        );
    }

    #[test]
    fn merge_ready_ends_well_and_does_nothing_d97() {
        let ending = play([Report::Passed, Report::Passed, Report::Nothing]).1.unwrap();
        assert_eq!(
            (ending.exit, ending.kind, ending.becomes),
            (WfExit::Success, EndingKind::Nothing, None)
        );
    }

    #[test]
    fn a_loop_goes_on_until_something_stops_it_d41_d67() {
        let made = passed(EndingKind::MicroCommit, None);
        assert_eq!(next_round(Rounds::Once, &made, Pause::Gates, 9), Onward::Stop);
        assert_eq!(next_round(Rounds::Loop, &made, Pause::Gates, 9), Onward::Again);
        assert_eq!(next_round(Rounds::Loop, &made, Pause::Gates, 0), Onward::Stop);
        assert_eq!(next_round(Rounds::Loop, &made, Pause::EveryCommit, 9), Onward::Pause);
        assert_eq!(
            next_round(Rounds::Loop, &passed(EndingKind::Nothing, None), Pause::Gates, 9),
            Onward::Stop
        );
    }

    #[test]
    fn stages_are_found_by_their_names() {
        for stage in Stage::ALL {
            assert_eq!(Stage::from_key(stage.key()), Some(stage));
        }
        assert_eq!(Stage::from_key("unlock"), None);
    }
}
