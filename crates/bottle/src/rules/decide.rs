//! Decides what to do about an issue, from what the forge says and what is stored here. A delivery only names an issue to
//! observe, so it does not matter how often deliveries come, in which order, or whether one is lost.

use orchestrator_db::{WakeCause, WorkState};

/// State of an issue and its pull request, and the work on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct IssueState {
    pub(crate) is_open: bool,
    /// Agents that its labels name, by name; the first one is meant.
    pub(crate) agents: Vec<String>,
    pub(crate) bottles: Vec<String>,
    /// True if it is assigned to a member of the organisation.
    pub(crate) has_member: bool,
    pub(crate) pull: Option<PullState>,
    /// Comments for the agent that it has not seen.
    pub(crate) new_comments: usize,
    pub(crate) work: Option<WorkFacts>,
    pub(crate) wake: WakeFacts,
}

/// Facts about a pull request for which a bottle may be woken without a person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WakeFacts {
    /// The newest commit of the pull request; empty if it is not the bottle's own.
    pub(crate) head: String,
    /// Names of the checks that fail, if they were read.
    pub(crate) failed_checks: Vec<String>,
    pub(crate) has_conflicts: bool,
    pub(crate) is_behind: bool,
    /// Causes for which the bottle was woken at this commit.
    pub(crate) tried: Vec<WakeCause>,
    /// Times that its agent was woken for this pull request.
    pub(crate) used: u32,
    /// Most times; 0 for never.
    pub(crate) limit: u32,
    /// True if the operator wants branches brought up to date.
    pub(crate) updates: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PullState {
    pub(crate) number: u64,
    pub(crate) is_open: bool,
    pub(crate) is_merged: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WorkFacts {
    pub(crate) state: WorkState,
    pub(crate) has_bottle: bool,
    /// True if a time for destroying its bottle is set.
    pub(crate) retires: bool,
}

/// Next step of the reconciler for an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    /// Queues work for this agent.
    Start {
        agent: String,
        bottles: Vec<String>,
    },
    /// Queues the existing bottle, or starts again what failed before it had one.
    Resume {
        reason: String,
    },
    /// Queues the existing bottle for something that the forge reports.
    Wake {
        cause: WakeCause,
        head: String,
        reason: String,
    },
    CallPerson {
        reason: String,
    },
    /// Ends the running agent, because its pull request is decided.
    EndAgent {
        reason: String,
    },
    /// Destroys the bottle after its retention.
    ScheduleDestroy {
        reason: String,
    },
    /// Keeps the bottle after all.
    CancelDestroy,
    /// Takes the issue out of the queue.
    Withdraw {
        reason: String,
    },
    /// Deletes the work item of a removed bottle, so that the issue can start again.
    Forget,
}

pub(crate) fn decide(issue: &IssueState) -> Action {
    let is_targeted = issue.has_member && !issue.agents.is_empty();
    let Some(work) = issue.work else {
        return match (issue.agents.first(), issue.is_open && issue.has_member) {
            (Some(agent), true) => {
                Action::Start { agent: agent.clone(), bottles: issue.bottles.clone() }
            }
            _ => Action::Nothing,
        };
    };
    let is_wanted = is_targeted && issue.is_open;
    let decided = issue.pull.filter(|pull| !pull.is_open).map(|pull| match pull.is_merged {
        true => format!("pull request #{} was merged", pull.number),
        false => format!("pull request #{} was closed", pull.number),
    });
    match (work.state, decided) {
        (WorkState::Destroyed, _) if is_wanted => Action::Nothing,
        (WorkState::Destroyed, _) => Action::Forget,
        (WorkState::Claimed | WorkState::Running, Some(reason)) => Action::EndAgent { reason },
        // A comment that comes during a run is observed again when the run has ended.
        (WorkState::Claimed | WorkState::Running, None) => Action::Nothing,
        (_, Some(_)) if work.retires => Action::Nothing,
        (_, Some(reason)) => Action::ScheduleDestroy { reason },
        (WorkState::Queued | WorkState::Waiting | WorkState::NeedsAttention, None)
            if !(work.has_bottle || is_wanted) =>
        {
            let reason = "it is closed, or no longer assigned and labelled".to_owned();
            Action::Withdraw { reason }
        }
        (WorkState::Queued | WorkState::Waiting, None) if !work.has_bottle => Action::Nothing,
        (WorkState::Queued | WorkState::Waiting, None) => match work.retires {
            true => Action::CancelDestroy,
            false => Action::Nothing,
        },
        (WorkState::Frozen | WorkState::NeedsAttention, None) => match issue.new_comments {
            0 if work.retires => Action::CancelDestroy,
            // An agent that asks, or a draft, waits for a person whatever else is wrong.
            0 if work.state == WorkState::Frozen && is_targeted => decide_wake(&issue.wake),
            0 => Action::Nothing,
            // Taking the label off keeps the agent from being resumed.
            _ if !is_targeted => Action::Nothing,
            count => Action::Resume { reason: format!("{count} new comments") },
        },
    }
}

/// Decides about what the forge reports. Conflicts come first: without them gone, checks of most forges do not run.
fn decide_wake(facts: &WakeFacts) -> Action {
    let cause = match facts {
        WakeFacts { limit: 0, .. } => return Action::Nothing,
        WakeFacts { head, .. } if head.is_empty() => return Action::Nothing,
        WakeFacts { has_conflicts: true, .. } => WakeCause::Conflict,
        WakeFacts { failed_checks, .. } if !failed_checks.is_empty() => WakeCause::Checks,
        WakeFacts { is_behind: true, updates: true, .. } => WakeCause::Behind,
        _ => return Action::Nothing,
    };
    let what = match cause {
        WakeCause::Conflict => "the pull request conflicts with its base".to_owned(),
        WakeCause::Checks => format!("checks fail: {}", facts.failed_checks.join(", ")),
        WakeCause::Behind => "the base branch moved on".to_owned(),
    };
    let is_tried = facts.tried.contains(&cause);
    match cause {
        WakeCause::Behind if is_tried => Action::Nothing,
        WakeCause::Checks | WakeCause::Conflict if is_tried => {
            Action::CallPerson { reason: format!("{what}, also after the agent looked at it") }
        }
        WakeCause::Checks | WakeCause::Conflict if facts.used >= facts.limit => {
            let reason = format!("{what}; the agent was woken {} times for it already", facts.used);
            Action::CallPerson { reason }
        }
        _ => Action::Wake { cause, head: facts.head.clone(), reason: what },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targeted() -> IssueState {
        IssueState {
            is_open: true,
            agents: vec!["ann".to_owned(), "zoe".to_owned()],
            bottles: vec!["rust".to_owned()],
            has_member: true,
            pull: None,
            new_comments: 0,
            work: None,
            wake: WakeFacts::default(),
        }
    }

    fn at(state: WorkState) -> IssueState {
        let work = WorkFacts { state, has_bottle: true, retires: false };
        IssueState { work: Some(work), ..targeted() }
    }

    fn pull(is_open: bool, is_merged: bool) -> Option<PullState> {
        Some(PullState { number: 7, is_open, is_merged })
    }

    #[test]
    fn an_open_issue_with_a_label_and_a_member_is_started_once() {
        let start = Action::Start { agent: "ann".to_owned(), bottles: vec!["rust".to_owned()] };
        assert_eq!(decide(&targeted()), start);
        for state in WorkState::ALL {
            assert_ne!(decide(&at(state)), start, "{state}");
        }
    }

    #[test]
    fn neither_label_nor_member_alone_starts_anything() {
        assert_eq!(decide(&IssueState { has_member: false, ..targeted() }), Action::Nothing);
        assert_eq!(decide(&IssueState { agents: vec![], ..targeted() }), Action::Nothing);
        assert_eq!(decide(&IssueState { is_open: false, ..targeted() }), Action::Nothing);
    }

    #[test]
    fn comments_resume_what_is_frozen_or_needs_attention() {
        for state in [WorkState::Frozen, WorkState::NeedsAttention] {
            let issue = IssueState { new_comments: 2, pull: pull(true, false), ..at(state) };
            assert_eq!(decide(&issue), Action::Resume { reason: "2 new comments".to_owned() });
            let closed = IssueState { is_open: false, ..issue.clone() };
            assert_eq!(decide(&closed), decide(&issue), "a closed issue does not matter");
            assert_eq!(decide(&IssueState { agents: vec![], ..issue }), Action::Nothing);
        }
        let issue = IssueState { new_comments: 2, ..at(WorkState::Running) };
        assert_eq!(decide(&issue), Action::Nothing);
    }

    #[test]
    fn a_closed_pull_request_ends_everything_and_a_closed_issue_nothing() {
        let merged = |state| IssueState { pull: pull(false, true), new_comments: 1, ..at(state) };
        let reason = "pull request #7 was merged".to_owned();
        assert_eq!(
            decide(&merged(WorkState::Frozen)),
            Action::ScheduleDestroy { reason: reason.clone() },
            "comments or not"
        );
        assert_eq!(decide(&merged(WorkState::Running)), Action::EndAgent { reason });
        let issue = IssueState { is_open: false, ..at(WorkState::Frozen) };
        assert_eq!(decide(&issue), Action::Nothing);
        let reopened = WorkFacts { state: WorkState::Frozen, has_bottle: true, retires: true };
        let issue = IssueState { pull: pull(true, false), work: Some(reopened), ..targeted() };
        assert_eq!(decide(&issue), Action::CancelDestroy);
    }

    fn wake(change: impl FnOnce(&mut WakeFacts)) -> IssueState {
        let mut facts = WakeFacts { head: "abc".to_owned(), limit: 3, ..WakeFacts::default() };
        change(&mut facts);
        IssueState { pull: pull(true, false), wake: facts, ..at(WorkState::Frozen) }
    }

    #[track_caller]
    fn wakes(issue: &IssueState, expected: WakeCause) {
        let found = decide(issue);
        assert!(matches!(found, Action::Wake { cause, .. } if cause == expected), "{found:?}");
    }

    #[test]
    fn failing_checks_and_conflicts_wake_a_frozen_bottle_up_to_a_limit() {
        let red = |facts: &mut WakeFacts| facts.failed_checks = vec!["test".to_owned()];
        wakes(&wake(red), WakeCause::Checks);
        wakes(&wake(|facts| facts.has_conflicts = true), WakeCause::Conflict);
        let both = |facts: &mut WakeFacts| {
            red(facts);
            facts.has_conflicts = true;
        };
        wakes(&wake(both), WakeCause::Conflict);
        let called = |change: fn(&mut WakeFacts)| {
            let issue = wake(|facts| {
                red(facts);
                change(facts);
            });
            matches!(decide(&issue), Action::CallPerson { .. })
        };
        assert!(called(|facts| facts.used = 3), "the limit is reached");
        assert!(called(|facts| facts.tried = vec![WakeCause::Checks]), "it did not help");
        assert_eq!(
            decide(&wake(|facts| {
                red(facts);
                facts.limit = 0;
            })),
            Action::Nothing,
            "the operator does not want it"
        );
        let foreign = wake(|facts| {
            red(facts);
            facts.head.clear();
        });
        assert_eq!(decide(&foreign), Action::Nothing, "a commit of others is theirs");
        let asks = IssueState { work: at(WorkState::NeedsAttention).work, ..wake(red) };
        assert_eq!(decide(&asks), Action::Nothing, "a person is called already");
        let words = IssueState { new_comments: 1, ..wake(red) };
        assert!(matches!(decide(&words), Action::Resume { .. }), "people come first");
    }

    #[test]
    fn a_branch_is_brought_up_to_date_once_and_only_if_asked() {
        let behind = |updates: bool, tried: &[WakeCause]| {
            let tried = tried.to_vec();
            wake(|facts| {
                (facts.is_behind, facts.updates, facts.tried) = (true, updates, tried);
                facts.used = 3;
            })
        };
        wakes(&behind(true, &[]), WakeCause::Behind);
        assert_eq!(decide(&behind(false, &[])), Action::Nothing);
        assert_eq!(decide(&behind(true, &[WakeCause::Behind])), Action::Nothing);
    }

    #[test]
    fn an_issue_that_is_no_longer_labelled_leaves_the_queue() {
        let waiting = WorkFacts { state: WorkState::Queued, has_bottle: false, retires: false };
        let issue = IssueState { work: Some(waiting), ..targeted() };
        assert_eq!(decide(&issue), Action::Nothing);
        let issue = IssueState { agents: vec![], ..issue };
        assert!(matches!(decide(&issue), Action::Withdraw { .. }));
    }

    #[test]
    fn what_failed_before_it_had_a_bottle_is_resumed_by_a_comment_and_leaves_without_its_label() {
        let failed =
            WorkFacts { state: WorkState::NeedsAttention, has_bottle: false, retires: false };
        let issue = IssueState { work: Some(failed), ..targeted() };
        assert_eq!(decide(&issue), Action::Nothing);
        let answered = IssueState { new_comments: 1, ..issue.clone() };
        assert!(matches!(decide(&answered), Action::Resume { .. }));
        for gone in [
            IssueState { agents: vec![], ..answered.clone() },
            IssueState { is_open: false, ..answered },
        ] {
            assert!(matches!(decide(&gone), Action::Withdraw { .. }), "{gone:?}");
        }
    }

    #[test]
    fn a_destroyed_bottle_is_not_started_again_before_the_label_is_set_again() {
        assert_eq!(decide(&at(WorkState::Destroyed)), Action::Nothing);
        let unlabelled = IssueState { agents: vec![], ..at(WorkState::Destroyed) };
        assert_eq!(decide(&unlabelled), Action::Forget);
    }
}
