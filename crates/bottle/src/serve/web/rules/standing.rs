//! Where the work on an issue stands, in the order in which a person wants to see it.

use orchestrator_db::WorkState;
use serde::Serialize;
use utoipa::ToSchema;

use crate::flow::bottle::BottleState;

/// Where something stands. The first ones need somebody most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Standing {
    /// It cannot go on without a person.
    NeedsAttention,
    /// It goes on by itself at a known time.
    Waiting,
    /// Its agent works, or what it did is being judged and published.
    Running,
    /// It is to run as soon as there is room.
    Queued,
    /// It waits for people, its bottle kept.
    Frozen,
    /// Its bottle is gone.
    Destroyed,
}

impl Standing {
    /// All of them, in order.
    pub(crate) const ALL: [Self; 6] = [
        Self::NeedsAttention,
        Self::Waiting,
        Self::Running,
        Self::Queued,
        Self::Frozen,
        Self::Destroyed,
    ];

    /// As the orchestrator sees it. Who has claimed something is about to run it.
    pub(crate) fn of_work(state: WorkState) -> Self {
        match state {
            WorkState::NeedsAttention => Self::NeedsAttention,
            WorkState::Waiting => Self::Waiting,
            WorkState::Claimed | WorkState::Running => Self::Running,
            WorkState::Queued => Self::Queued,
            WorkState::Frozen => Self::Frozen,
            WorkState::Destroyed => Self::Destroyed,
        }
    }

    /// As a bottle's own record says, where no orchestrator has it.
    pub(crate) fn of_bottle(state: BottleState) -> Self {
        match state {
            BottleState::Running => Self::Running,
            BottleState::Frozen => Self::Frozen,
            BottleState::Destroyed => Self::Destroyed,
        }
    }

    /// The word for machines, and for the class of a badge.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NeedsAttention => "needs-attention",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Queued => "queued",
            Self::Frozen => "frozen",
            Self::Destroyed => "destroyed",
        }
    }

    /// The word on a badge.
    pub(crate) fn badge(self) -> &'static str {
        match self {
            Self::NeedsAttention => "needs you",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Queued => "queued",
            Self::Frozen => "frozen",
            Self::Destroyed => "destroyed",
        }
    }

    /// The heading of all that stand there, and what it means.
    pub(crate) fn heading(self) -> (&'static str, &'static str) {
        match self {
            Self::NeedsAttention => ("Needs you", "cannot go on without a person"),
            Self::Waiting => ("Waiting", "goes on by itself at a known time"),
            Self::Running => ("Running", "an agent works, or its work is being published"),
            Self::Queued => ("Queued", "runs as soon as there is room"),
            Self::Frozen => ("Frozen", "kept while people review"),
            Self::Destroyed => ("Destroyed", "gone; the records stay"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_a_person_comes_first_and_what_is_gone_last() {
        let mut list = Standing::ALL;
        list.reverse();
        list.sort();
        assert_eq!(list, Standing::ALL);
        assert_eq!(list.first(), Some(&Standing::NeedsAttention));
        assert_eq!(list.last(), Some(&Standing::Destroyed));
    }

    #[test]
    fn the_word_for_machines_is_the_one_in_json() {
        for standing in Standing::ALL {
            assert_eq!(serde_json::json!(standing), serde_json::json!(standing.name()));
        }
    }
}
