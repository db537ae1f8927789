//! What comes after a run that the orchestrator kept: people review, it goes on by itself later, or somebody is called.

use jiff::Timestamp;
use sidecar::DoneStatus;

use super::judge::Verdict;

/// How a run ended.
#[derive(Debug, Clone)]
pub(crate) struct Closing<'a> {
    pub(crate) verdict: Option<&'a Verdict>,
    /// Why a good result was not published.
    pub(crate) problem: Option<&'a str>,
    /// The pull request.
    pub(crate) pull: Option<u64>,
    /// The agent's word.
    pub(crate) report: Option<DoneStatus>,
    /// When the model will answer again.
    pub(crate) waiting_until: Option<Timestamp>,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// It waits for people, as it should.
    Freeze { reason: String },
    /// It goes on by itself at that time.
    Wait { until: Timestamp, reason: String },
    /// It failed through no fault of the agent's: once more, soon.
    Retry { reason: String },
    /// It cannot go on without a person.
    CallPerson { reason: String },
}

/// Decides.
pub(crate) fn judge_closing(closing: &Closing<'_>) -> Next {
    if let Some(until) = closing.waiting_until {
        return Next::Wait { until, reason: "the model's quota is used up".to_owned() };
    }
    if let Some(problem) = closing.problem {
        return Next::CallPerson {
            reason: format!("the work holds and is not published: {problem}"),
        };
    }
    match (closing.verdict, closing.report) {
        (Some(Verdict::Publish), _) => Next::Freeze {
            reason: match closing.pull {
                Some(number) => format!("pull request #{number} is up for review"),
                None => "the work is published".to_owned(),
            },
        },
        (Some(Verdict::Nothing), Some(DoneStatus::Success)) => {
            Next::Freeze { reason: "the agent says that nothing needs a change".to_owned() }
        }
        (Some(Verdict::Infra { reason }), _) => Next::Retry { reason: reason.clone() },
        (Some(verdict), _) => Next::CallPerson { reason: verdict.words() },
        (None, _) => Next::CallPerson { reason: "the run has no verdict".to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closing(verdict: &Verdict) -> Closing<'_> {
        Closing {
            verdict: Some(verdict),
            problem: None,
            pull: Some(7),
            report: None,
            waiting_until: None,
        }
    }

    #[test]
    fn a_pull_request_is_for_people_to_review() {
        let next = judge_closing(&closing(&Verdict::Publish));
        assert_eq!(next, Next::Freeze { reason: "pull request #7 is up for review".to_owned() });
    }

    #[test]
    fn a_branch_that_origin_refuses_needs_a_person() {
        let sent =
            Closing { problem: Some("origin rejected the branch"), ..closing(&Verdict::Publish) };
        assert!(
            matches!(judge_closing(&sent), Next::CallPerson { reason } if reason.contains("rejected"))
        );
    }

    #[test]
    fn a_quota_is_waited_for() {
        let until: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let how = "status 1".to_owned();
        let verdict = Verdict::Unfinished { how };
        let spent = Closing { waiting_until: Some(until), ..closing(&verdict) };
        assert!(matches!(judge_closing(&spent), Next::Wait { until: at, .. } if at == until));
    }

    #[test]
    fn the_machines_failure_is_tried_again_and_the_agents_is_not() {
        let infra = Verdict::Infra { reason: "the shim died".to_owned() };
        assert!(matches!(judge_closing(&closing(&infra)), Next::Retry { .. }));
        let stuck = Verdict::Unfinished { how: "out of time".to_owned() };
        assert!(
            matches!(judge_closing(&closing(&stuck)), Next::CallPerson { reason } if reason.contains("out of time"))
        );
    }

    #[test]
    fn an_agent_that_left_without_a_word_and_without_work_needs_a_person() {
        assert!(matches!(judge_closing(&closing(&Verdict::Nothing)), Next::CallPerson { .. }));
        let said = Closing { report: Some(DoneStatus::Success), ..closing(&Verdict::Nothing) };
        assert!(matches!(judge_closing(&said), Next::Freeze { .. }));
    }
}
