//! Status of a case, in the order in which people want to see the cases.

use orchestrator_db::WorkState;
use serde::Serialize;
use utoipa::ToSchema;

use crate::flow::bottle::BottleState;

/// Status of a case; the first ones are the most urgent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CaseStatus {
    /// It needs a person to continue.
    #[default]
    NeedsAttention,
    /// It continues by itself.
    Waiting,
    /// Its agent runs, or the result is being judged and published.
    Running,
    /// It runs as soon as a slot is free.
    Queued,
    /// It waits for people; its bottle is kept.
    Frozen,
    /// Its bottle is removed.
    Destroyed,
}

impl CaseStatus {
    pub(crate) const ALL: [Self; 6] = [
        Self::NeedsAttention,
        Self::Waiting,
        Self::Running,
        Self::Queued,
        Self::Frozen,
        Self::Destroyed,
    ];

    /// The status of a work item; a claimed one is about to run.
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

    /// The status of a bottle that the orchestrator does not manage.
    pub(crate) fn of_bottle(state: BottleState) -> Self {
        match state {
            BottleState::Running => Self::Running,
            BottleState::Frozen => Self::Frozen,
            BottleState::Destroyed => Self::Destroyed,
        }
    }

    /// The name in JSON, metrics and CSS classes.
    pub(crate) fn name(self) -> &'static str {
        self.texts().0
    }

    pub(crate) fn badge(self) -> &'static str {
        match self {
            Self::NeedsAttention => "needs you",
            other => other.name(),
        }
    }

    /// The heading of a group, and its meaning.
    pub(crate) fn heading(self) -> (&'static str, &'static str) {
        let (_, heading, meaning) = self.texts();
        (heading, meaning)
    }

    fn texts(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::NeedsAttention => ("needs-attention", "Needs you", "needs a person to continue"),
            Self::Waiting => ("waiting", "Waiting", "continues by itself"),
            Self::Running => {
                ("running", "Running", "an agent runs, or its work is being published")
            }
            Self::Queued => ("queued", "Queued", "runs as soon as a slot is free"),
            Self::Frozen => ("frozen", "Frozen", "kept while people review"),
            Self::Destroyed => ("destroyed", "Destroyed", "removed; the records stay"),
        }
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_a_person_comes_first_and_what_is_destroyed_last() {
        let mut list = CaseStatus::ALL;
        list.reverse();
        list.sort();
        assert_eq!(list, CaseStatus::ALL);
        assert_eq!(list.first(), Some(&CaseStatus::NeedsAttention));
        assert_eq!(list.last(), Some(&CaseStatus::Destroyed));
    }

    #[test]
    fn the_name_is_the_one_in_json() {
        for status in CaseStatus::ALL {
            assert_eq!(serde_json::json!(status), serde_json::json!(status.name()));
        }
    }
}
