//! Decides what follows a closed run of the orchestrator: a review, a retry, or a person.

use jiff::Timestamp;
use sidecar::DoneStatus;

use super::judge::Verdict;

#[derive(Debug, Clone)]
pub(crate) struct ClosedRun<'a> {
    pub(crate) verdict: Option<&'a Verdict>,
    /// Reason why a good result was not published.
    pub(crate) problem: Option<&'a str>,
    pub(crate) pull: Option<u64>,
    pub(crate) report: Option<DoneStatus>,
    /// The agent's words with its report.
    pub(crate) summary: Option<&'a str>,
    /// End of the model's quota.
    pub(crate) waiting_until: Option<Timestamp>,
}

/// Next step after a closed run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AfterRun {
    /// It waits for people.
    Freeze {
        reason: String,
    },
    /// It is retried at that time.
    Wait {
        until: Timestamp,
        reason: String,
    },
    /// The machine failed; it is retried soon.
    Retry {
        reason: String,
    },
    CallPerson {
        reason: String,
    },
}

pub(crate) fn judge_closed_run(run: &ClosedRun<'_>) -> AfterRun {
    if let Some(until) = run.waiting_until {
        return AfterRun::Wait { until, reason: "the model's quota is used up".to_owned() };
    }
    if let (Some(problem), Some(Verdict::Draft { how })) = (run.problem, run.verdict) {
        let reason = format!("the check fails ({how}), and the draft is not published: {problem}");
        return AfterRun::CallPerson { reason };
    }
    if let Some(problem) = run.problem {
        return AfterRun::CallPerson {
            reason: format!("the work passed and is not published: {problem}"),
        };
    }
    match (run.verdict, run.report) {
        (Some(Verdict::Publish), _) => AfterRun::Freeze {
            reason: match run.pull {
                Some(number) => format!("pull request #{number} is up for review"),
                None => "the work is published".to_owned(),
            },
        },
        (Some(Verdict::Draft { how }), _) => AfterRun::CallPerson {
            reason: match run.pull {
                Some(number) => {
                    format!("pull request #{number} is a draft: the check fails ({how})")
                }
                None => format!("the work is a draft: the check fails ({how})"),
            },
        },
        (Some(Verdict::Nothing), Some(DoneStatus::Success)) => {
            AfterRun::Freeze { reason: "the agent says that nothing needs a change".to_owned() }
        }
        (Some(Verdict::Planned), _) => AfterRun::CallPerson {
            reason: "its plan waits for an approval: /approve, a thumbs-up, or a comment that corrects it"
                .to_owned(),
        },
        (Some(Verdict::Infra { reason }), _) => AfterRun::Retry { reason: reason.clone() },
        (Some(Verdict::Unfinished { .. }), Some(DoneStatus::Blocked)) => {
            let asked = run.summary.map(str::trim).filter(|words| !words.is_empty());
            let question = asked.unwrap_or("without a question; read its log");
            AfterRun::CallPerson { reason: format!("{ASKS}: {question}") }
        }
        (Some(verdict), _) => AfterRun::CallPerson { reason: verdict.words() },
        (None, _) => AfterRun::CallPerson { reason: "the run has no verdict".to_owned() },
    }
}

/// Start of the reason when an agent asks.
const ASKS: &str = "the agent asks";

/// Returns whether a person was called for a question of the agent, and not for something that came after it.
pub(crate) fn is_question(reason: &str) -> bool {
    reason.starts_with(ASKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(verdict: &Verdict) -> ClosedRun<'_> {
        ClosedRun {
            verdict: Some(verdict),
            problem: None,
            pull: Some(7),
            report: None,
            summary: None,
            waiting_until: None,
        }
    }

    #[test]
    fn a_question_of_the_agent_is_the_reason() {
        let verdict = Verdict::Unfinished { how: "the agent waits for a person".to_owned() };
        let asking = ClosedRun {
            report: Some(DoneStatus::Blocked),
            summary: Some("Which database?\n"),
            ..run(&verdict)
        };
        let reason = "the agent asks: Which database?".to_owned();
        assert_eq!(judge_closed_run(&asking), AfterRun::CallPerson { reason: reason.clone() });
        assert!(is_question(&reason));
        assert!(!is_question("there is no agent 'worker'"), "what came after the answer");
    }

    #[test]
    fn a_pull_request_is_for_people_to_review() {
        let next = judge_closed_run(&run(&Verdict::Publish));
        assert_eq!(
            next,
            AfterRun::Freeze { reason: "pull request #7 is up for review".to_owned() }
        );
    }

    #[test]
    fn a_draft_needs_a_person_and_never_counts_as_passed() {
        let verdict = Verdict::Draft { how: "status 1".to_owned() };
        let words = |run: &ClosedRun<'_>| match judge_closed_run(run) {
            AfterRun::CallPerson { reason } => reason,
            other => panic!("{other:?}"),
        };
        assert_eq!(words(&run(&verdict)), "pull request #7 is a draft: the check fails (status 1)");
        let refused = ClosedRun { problem: Some("rejected"), ..run(&verdict) };
        assert!(!words(&refused).contains("passed"), "{}", words(&refused));
    }

    #[test]
    fn a_branch_that_origin_refuses_needs_a_person() {
        let sent =
            ClosedRun { problem: Some("origin rejected the branch"), ..run(&Verdict::Publish) };
        assert!(
            matches!(judge_closed_run(&sent), AfterRun::CallPerson { reason } if reason.contains("rejected"))
        );
    }

    #[test]
    fn a_quota_is_waited_for() {
        let until: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let how = "status 1".to_owned();
        let verdict = Verdict::Unfinished { how };
        let spent = ClosedRun { waiting_until: Some(until), ..run(&verdict) };
        assert!(
            matches!(judge_closed_run(&spent), AfterRun::Wait { until: at, .. } if at == until)
        );
    }

    #[test]
    fn the_machines_failure_is_tried_again_and_the_agents_is_not() {
        let infra = Verdict::Infra { reason: "the shim died".to_owned() };
        assert!(matches!(judge_closed_run(&run(&infra)), AfterRun::Retry { .. }));
        let stuck = Verdict::Unfinished { how: "out of time".to_owned() };
        assert!(
            matches!(judge_closed_run(&run(&stuck)), AfterRun::CallPerson { reason } if reason.contains("out of time"))
        );
    }

    #[test]
    fn an_agent_that_left_without_a_word_and_without_work_needs_a_person() {
        assert!(matches!(judge_closed_run(&run(&Verdict::Nothing)), AfterRun::CallPerson { .. }));
        let said = ClosedRun { report: Some(DoneStatus::Success), ..run(&Verdict::Nothing) };
        assert!(matches!(judge_closed_run(&said), AfterRun::Freeze { .. }));
    }
}
