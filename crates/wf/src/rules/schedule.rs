//! Order of `wf run --all`: which workstreams can run, which wait and for what, which run beside one another, and what
//! the statuses of all of them come to.

use model::exit::WfExit;
use serde::Serialize;

use super::conflict::contains;
use super::status::WorkstreamStatus;

/// A workstream as the schedule sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScheduleFacts {
    pub(crate) id: String,
    pub(crate) status: WorkstreamStatus,
    pub(crate) plan: PlanFacts,
    /// Blocking questions that wait for an answer.
    pub(crate) questions: Vec<String>,
    /// Workstreams that must be merged first.
    pub(crate) after: Vec<(String, Predecessor)>,
    /// The workstream that it starts from while that one is not merged, and whether its plan is done.
    pub(crate) lower: Option<(String, LowerPlan)>,
    /// Paths that it touched or is expected to touch.
    pub(crate) paths: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PlanFacts {
    /// Number of micro-commits that are not done.
    Left(usize),
    Empty,
    Unreadable(String),
}

/// State of a workstream that another one is to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Predecessor {
    Merged,
    Open,
    /// It was closed or deleted without being merged.
    Gone,
    /// It was merged, and its commits are not there any more.
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LowerPlan {
    Done,
    Unfinished,
}

/// Next step of a workstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(crate) enum Readiness {
    Ready,
    /// Others come first.
    Waits {
        reason: String,
    },
    /// A person has to do something first.
    NeedsPerson {
        reason: String,
    },
    /// Merged or merge-ready.
    Finished,
}

pub(crate) fn judge_readiness(facts: &ScheduleFacts) -> Readiness {
    use WorkstreamStatus as S;
    let person = |reason: String| Readiness::NeedsPerson { reason };
    if matches!(facts.status, S::Done | S::MergeReady) {
        return Readiness::Finished;
    }
    if let Some((lower, LowerPlan::Unfinished)) = &facts.lower {
        return Readiness::Waits {
            reason: format!("it starts from {lower}, whose plan is not done"),
        };
    }
    if let Some(waits) = judge_order(&facts.after) {
        return waits;
    }
    if !facts.questions.is_empty() {
        return person(format!("answer: {}", facts.questions.join(", ")));
    }
    match (&facts.plan, facts.status) {
        (PlanFacts::Unreadable(problem), _) => person(problem.clone()),
        (PlanFacts::Empty, _) => person("its plan has no micro-commits".to_owned()),
        (PlanFacts::Left(0), S::UatPending) => person("accept it: wf uat list".to_owned()),
        (PlanFacts::Left(0), S::UatFailed) => {
            person("add fix micro-commits to the plan".to_owned())
        }
        (PlanFacts::Left(_), _) => Readiness::Ready,
    }
}

/// Names the first workstream that comes before and is not merged.
pub(crate) fn judge_order(after: &[(String, Predecessor)]) -> Option<Readiness> {
    after.iter().find_map(|(id, state)| match state {
        Predecessor::Merged => None,
        Predecessor::Open => {
            Some(Readiness::Waits { reason: format!("it runs after {id}, which is not merged") })
        }
        Predecessor::Gone => {
            let reason = format!(
                "it runs after {id}, which was not merged and is not open; correct AFTER in meta.env"
            );
            Some(Readiness::NeedsPerson { reason })
        }
        Predecessor::Lost => {
            let reason = format!(
                "it runs after {id}, whose commits are not in the branch that it was merged into; see: wf merge {id}"
            );
            Some(Readiness::NeedsPerson { reason })
        }
    })
}

/// Chooses those of the ready workstreams that start now. One that may touch the same paths as a running one waits for it:
/// its agent would work on what the other changes at the same time.
pub(crate) fn choose_next<'a>(
    ready: &[&'a ScheduleFacts],
    running: &[&'a ScheduleFacts],
    jobs: usize,
) -> Vec<&'a ScheduleFacts> {
    let mut busy: Vec<&ScheduleFacts> = running.to_vec();
    let mut chosen = Vec::new();
    for facts in ready {
        if busy.len() >= jobs {
            break;
        }
        if busy.iter().all(|other| !overlaps(facts, other)) {
            busy.push(facts);
            chosen.push(*facts);
        }
    }
    chosen
}

/// Reports whether two workstreams may touch the same files.
pub(crate) fn overlaps(one: &ScheduleFacts, other: &ScheduleFacts) -> bool {
    one.paths
        .iter()
        .any(|a| other.paths.iter().any(|b| contains(a, b.as_bytes()) || contains(b, a.as_bytes())))
}

/// Aggregates statuses: the most serious one. Failures of the machine come before failures of the work, and those before
/// what waits for a person.
pub(crate) fn aggregate(statuses: impl IntoIterator<Item = WfExit>) -> WfExit {
    use WfExit as E;
    let serious = [
        E::Internal,
        E::General,
        E::Config,
        E::Lock,
        E::Implement,
        E::Test,
        E::Review,
        E::Qa,
        E::Blocked,
    ];
    let statuses: Vec<WfExit> = statuses.into_iter().collect();
    serious.into_iter().find(|status| statuses.contains(status)).unwrap_or(E::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(id: &str, paths: &[&str]) -> ScheduleFacts {
        ScheduleFacts {
            id: id.to_owned(),
            status: WorkstreamStatus::Implement,
            plan: PlanFacts::Left(1),
            questions: Vec::new(),
            after: Vec::new(),
            lower: None,
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        }
    }

    #[track_caller]
    fn check(facts: &ScheduleFacts, expected: &str) {
        let found = match judge_readiness(facts) {
            Readiness::Ready => "ready".to_owned(),
            Readiness::Waits { reason } => format!("waits: {reason}"),
            Readiness::NeedsPerson { reason } => format!("person: {reason}"),
            Readiness::Finished => "finished".to_owned(),
        };
        assert_eq!(found, expected, "{facts:?}");
    }

    #[test]
    fn what_has_work_is_ready_whatever_its_last_run_was() {
        use WorkstreamStatus as S;
        for status in [
            S::Planning,
            S::Implement,
            S::BlockedReview,
            S::BlockedTest,
            S::BlockedClarification,
            S::UatFailed,
        ] {
            check(&ScheduleFacts { status, ..facts("a", &[]) }, "ready");
        }
        // Every micro-commit is done, and the gate was not looked at yet.
        check(&ScheduleFacts { plan: PlanFacts::Left(0), ..facts("a", &[]) }, "ready");
        for status in [S::MergeReady, S::Done] {
            check(&ScheduleFacts { status, ..facts("a", &[]) }, "finished");
        }
    }

    #[test]
    fn what_a_person_has_to_do_is_named() {
        let asks = ScheduleFacts { questions: vec!["CLQ-001".to_owned()], ..facts("a", &[]) };
        check(&asks, "person: answer: CLQ-001");
        check(
            &ScheduleFacts { plan: PlanFacts::Empty, ..facts("a", &[]) },
            "person: its plan has no micro-commits",
        );
        let wrong =
            ScheduleFacts { plan: PlanFacts::Unreadable("line 3".to_owned()), ..facts("a", &[]) };
        check(&wrong, "person: line 3");
        let done = |status| ScheduleFacts { status, plan: PlanFacts::Left(0), ..facts("a", &[]) };
        check(&done(WorkstreamStatus::UatPending), "person: accept it: wf uat list");
        check(&done(WorkstreamStatus::UatFailed), "person: add fix micro-commits to the plan");
    }

    #[test]
    fn an_upper_one_waits_for_the_plan_below_and_a_later_one_for_the_merge() {
        let on = |plan| ScheduleFacts { lower: Some(("low".to_owned(), plan)), ..facts("up", &[]) };
        check(&on(LowerPlan::Unfinished), "waits: it starts from low, whose plan is not done");
        check(&on(LowerPlan::Done), "ready");
        let after =
            |state| ScheduleFacts { after: vec![("a".to_owned(), state)], ..facts("b", &[]) };
        check(&after(Predecessor::Open), "waits: it runs after a, which is not merged");
        check(&after(Predecessor::Merged), "ready");
        check(
            &after(Predecessor::Lost),
            "person: it runs after a, whose commits are not in the branch that it was merged into; see: wf merge a",
        );
        check(
            &after(Predecessor::Gone),
            "person: it runs after a, which was not merged and is not open; correct AFTER in meta.env",
        );
    }

    #[test]
    fn those_that_meet_run_one_after_the_other() {
        let (a, b, c) = (facts("a", &["src/api/"]), facts("b", &["src"]), facts("c", &["docs/"]));
        let ids = |chosen: Vec<&ScheduleFacts>| -> Vec<String> {
            chosen.iter().map(|it| it.id.clone()).collect()
        };
        assert_eq!(ids(choose_next(&[&a, &b, &c], &[], 3)), ["a", "c"]);
        assert_eq!(ids(choose_next(&[&a, &b, &c], &[], 1)), ["a"]);
        assert_eq!(ids(choose_next(&[&b, &c], &[&a], 2)), ["c"]);
        assert_eq!(ids(choose_next(&[&b], &[&a, &c], 2)), [""; 0]);
        // Without known paths nothing is foretold.
        assert!(!overlaps(&facts("x", &[]), &b));
    }

    #[test]
    fn the_most_serious_status_counts() {
        use WfExit as E;
        for (statuses, expected) in [
            (&[][..], E::Success),
            (&[E::Success, E::Blocked], E::Blocked),
            (&[E::Blocked, E::Review, E::Test], E::Test),
            (&[E::Test, E::General], E::General),
            (&[E::General, E::Internal, E::Success], E::Internal),
        ] {
            assert_eq!(aggregate(statuses.iter().copied()), expected, "{statuses:?}");
        }
    }
}
