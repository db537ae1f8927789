//! What is to be done about an issue, from what the forge says now and what is known here. Events say only where to look,
//! so it does not matter how often they come, in which order, or whether at all.

use orchestrator_db::WorkState;

/// What a look at an issue and its pull request shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sight {
    pub(crate) is_open: bool,
    /// The agents that its labels name, in the order of their names: the first is meant.
    pub(crate) agents: Vec<String>,
    /// The bottles that its labels name.
    pub(crate) bottles: Vec<String>,
    /// Whether it is assigned to a member of the organisation.
    pub(crate) has_member: bool,
    /// Its pull request, once there is one.
    pub(crate) pull: Option<PullSight>,
    /// Comments that its agent should hear of and has not.
    pub(crate) news: usize,
    /// What is known here.
    pub(crate) work: Option<WorkSight>,
}

/// What a pull request shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PullSight {
    pub(crate) number: u64,
    pub(crate) is_open: bool,
    pub(crate) is_merged: bool,
}

/// What is known of the work on an issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WorkSight {
    pub(crate) state: WorkState,
    pub(crate) has_bottle: bool,
    /// Whether its bottle is to go.
    pub(crate) retires: bool,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Move {
    /// Nothing.
    Rest,
    /// Queue work for this agent.
    Start { agent: String, bottles: Vec<String> },
    /// Queue the bottle that is there.
    Resume { reason: String },
    /// End the agent: what it works on is decided.
    EndAgent { reason: String },
    /// The bottle goes, after the time for which it is kept.
    Retire { reason: String },
    /// The bottle stays after all.
    Keep,
    /// Take it out of the queue.
    Withdraw { reason: String },
    /// Its bottle is gone and nobody wants it done any more: the next one who does starts anew.
    Forget,
}

/// Decides.
pub(crate) fn next_move(sight: &Sight) -> Move {
    let is_targeted = sight.has_member && !sight.agents.is_empty();
    let Some(work) = sight.work else {
        return match (sight.agents.first(), sight.is_open && sight.has_member) {
            (Some(agent), true) => {
                Move::Start { agent: agent.clone(), bottles: sight.bottles.clone() }
            }
            _ => Move::Rest,
        };
    };
    let decided = sight.pull.filter(|pull| !pull.is_open).map(|pull| match pull.is_merged {
        true => format!("pull request #{} was merged", pull.number),
        false => format!("pull request #{} was closed", pull.number),
    });
    match (work.state, decided) {
        (WorkState::Destroyed, _) if is_targeted && sight.is_open => Move::Rest,
        (WorkState::Destroyed, _) => Move::Forget,
        (WorkState::Claimed | WorkState::Running, Some(reason)) => Move::EndAgent { reason },
        // A comment that comes while the agent works is looked at again when it has ended.
        (WorkState::Claimed | WorkState::Running, None) => Move::Rest,
        (_, Some(_)) if work.retires => Move::Rest,
        (_, Some(reason)) => Move::Retire { reason },
        (WorkState::Queued | WorkState::Waiting, None) if !work.has_bottle => {
            match is_targeted && sight.is_open {
                true => Move::Rest,
                false => Move::Withdraw { reason: "it is not for an agent any more".to_owned() },
            }
        }
        (WorkState::Queued | WorkState::Waiting, None) => match work.retires {
            true => Move::Keep,
            false => Move::Rest,
        },
        (WorkState::Frozen | WorkState::NeedsAttention, None) => match sight.news {
            0 if work.retires => Move::Keep,
            0 => Move::Rest,
            // Taking the label off is the way to say that the agent shall leave it alone.
            _ if !is_targeted => Move::Rest,
            count => Move::Resume { reason: format!("{count} new comments") },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targeted() -> Sight {
        Sight {
            is_open: true,
            agents: vec!["ann".to_owned(), "zoe".to_owned()],
            bottles: vec!["rust".to_owned()],
            has_member: true,
            pull: None,
            news: 0,
            work: None,
        }
    }

    fn at(state: WorkState) -> Sight {
        let work = WorkSight { state, has_bottle: true, retires: false };
        Sight { work: Some(work), ..targeted() }
    }

    fn pull(is_open: bool, is_merged: bool) -> Option<PullSight> {
        Some(PullSight { number: 7, is_open, is_merged })
    }

    #[test]
    fn an_open_issue_with_a_label_and_a_member_is_started_once() {
        let start = Move::Start { agent: "ann".to_owned(), bottles: vec!["rust".to_owned()] };
        assert_eq!(next_move(&targeted()), start);
        for state in WorkState::ALL {
            assert_ne!(next_move(&at(state)), start, "{state}");
        }
    }

    #[test]
    fn neither_label_nor_member_alone_starts_anything() {
        assert_eq!(next_move(&Sight { has_member: false, ..targeted() }), Move::Rest);
        assert_eq!(next_move(&Sight { agents: vec![], ..targeted() }), Move::Rest);
        assert_eq!(next_move(&Sight { is_open: false, ..targeted() }), Move::Rest);
    }

    #[test]
    fn comments_wake_what_is_frozen_or_needs_somebody() {
        for state in [WorkState::Frozen, WorkState::NeedsAttention] {
            let sight = Sight { news: 2, pull: pull(true, false), ..at(state) };
            assert_eq!(next_move(&sight), Move::Resume { reason: "2 new comments".to_owned() });
            let closed = Sight { is_open: false, ..sight.clone() };
            assert_eq!(next_move(&closed), next_move(&sight), "a closed issue does not matter");
            assert_eq!(next_move(&Sight { agents: vec![], ..sight }), Move::Rest);
        }
        let sight = Sight { news: 2, ..at(WorkState::Running) };
        assert_eq!(next_move(&sight), Move::Rest);
    }

    #[test]
    fn a_closed_pull_request_ends_everything_and_a_closed_issue_nothing() {
        let merged = |state| Sight { pull: pull(false, true), news: 1, ..at(state) };
        let reason = "pull request #7 was merged".to_owned();
        assert_eq!(
            next_move(&merged(WorkState::Frozen)),
            Move::Retire { reason: reason.clone() },
            "comments or not"
        );
        assert_eq!(next_move(&merged(WorkState::Running)), Move::EndAgent { reason });
        let sight = Sight { is_open: false, ..at(WorkState::Frozen) };
        assert_eq!(next_move(&sight), Move::Rest);
        let reopened = WorkSight { state: WorkState::Frozen, has_bottle: true, retires: true };
        let sight = Sight { pull: pull(true, false), work: Some(reopened), ..targeted() };
        assert_eq!(next_move(&sight), Move::Keep);
    }

    #[test]
    fn what_nobody_wants_any_more_leaves_the_queue() {
        let waiting = WorkSight { state: WorkState::Queued, has_bottle: false, retires: false };
        let sight = Sight { work: Some(waiting), ..targeted() };
        assert_eq!(next_move(&sight), Move::Rest);
        let sight = Sight { agents: vec![], ..sight };
        assert!(matches!(next_move(&sight), Move::Withdraw { .. }));
    }

    #[test]
    fn a_destroyed_bottle_is_not_made_again_before_somebody_asks_anew() {
        assert_eq!(next_move(&at(WorkState::Destroyed)), Move::Rest);
        let unlabelled = Sight { agents: vec![], ..at(WorkState::Destroyed) };
        assert_eq!(next_move(&unlabelled), Move::Forget);
    }
}
