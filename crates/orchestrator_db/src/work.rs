//! Work items of the orchestrator, and the events of each.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::fence::Fence;
use crate::forge_state::IssueKey;
use crate::rules::lifecycle::WorkState;

/// The work on one issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkItem {
    pub key: IssueKey,
    pub state: WorkState,
    pub request: WorkRequest,
    /// The delivery that triggered it, if one did.
    pub trigger: Option<String>,
    pub title: String,
    pub slug: Option<String>,
    /// A step with an older fence is refused.
    pub fence: Fence,
    /// Number of claims. Taking over a claim does not add one.
    pub claims: u64,
    /// The holder of the lease as `host/process`, while it is claimed or running.
    pub holder: Option<String>,
    /// End of the lease, by the database's clock.
    pub lease_until: Option<Timestamp>,
    /// Earliest time of the next claim, while it waits.
    pub not_before: Option<Timestamp>,
    /// Time at which its bottle is destroyed, once its pull request is closed.
    pub destroy_at: Option<Timestamp>,
    /// Consecutive failures that the agent did not cause.
    pub attempts: u32,
    /// Reason for the state, for people.
    pub reason: String,
    /// Condition that it waits for, besides a time.
    pub waits_for: Option<WorkHold>,
    pub order: WorkOrder,
    /// Time from which it waits for a slot.
    pub queued_at: Timestamp,
    /// Time at which it was queued first.
    pub created_at: Timestamp,
    /// Time of its last step.
    pub updated_at: Timestamp,
}

impl WorkItem {
    /// Order of the queue.
    pub(crate) fn compare_rank(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank()).then_with(|| self.key.cmp(&other.key))
    }

    /// Place in the queue: a priority moves an item by minutes, so nothing is overtaken for ever.
    fn rank(&self) -> Timestamp {
        let minutes = SignedDuration::from_mins(self.order.priority_mins);
        self.queued_at.checked_sub(minutes).unwrap_or(self.queued_at)
    }
}

/// Items at the front of the queue that hosts share out among themselves.
const FRONT: usize = 16;

/// Begins the front of the queue at another item for each host, so that of many that look at once not all try the same one. No item
/// moves by more places than the front has.
pub fn spread_front(works: &mut [WorkItem], random: u64) {
    let is_free = |work: &&WorkItem| work.waits_for.is_none();
    let front = works.iter().take(FRONT).take_while(is_free).count();
    if front > 1 {
        works[..front].rotate_left(usize::try_from(random % front as u64).unwrap_or_default());
    }
}

/// Order that the labels and the text of an issue ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkOrder {
    /// Minutes by which it counts as waiting longer than it does.
    pub priority_mins: i64,
    /// Issues of its repository that it comes after.
    pub after: Vec<u64>,
}

impl WorkOrder {
    /// The issues as they are stored.
    pub(crate) fn after_json(&self) -> String {
        serde_json::json!(self.after).to_string()
    }
}

/// Condition that a waiting work item waits for, besides a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkHold {
    /// A budget has no room for its run.
    Budget,
    /// Issues that it comes after are open, or cannot be waited for.
    Issues,
}

impl WorkHold {
    pub fn name(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Issues => "issues",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        [Self::Budget, Self::Issues].into_iter().find(|hold| hold.name() == word)
    }
}

/// Request of a work item's next run; the database has it as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkRequest {
    Start {
        agent: String,
        /// Bottle manifests that replace the agent's own.
        bottles: Vec<String>,
        /// Text of the issue when it was given to the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<IssueText>,
        /// Marks of the comments that do not ask for this request once more.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        seen: BTreeSet<String>,
        /// True if a member wants it although the issues that it comes after are open.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        skips_order: bool,
    },
    Resume {
        /// A user's prompt. Without one, the new comments are the prompt.
        prompt: Option<String>,
        /// Marks of the comments that do not ask for this request once more.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        seen: BTreeSet<String>,
    },
    /// The forge reports something about the pull request, and no person wrote anything.
    Wake {
        cause: WakeCause,
        /// The newest commit of the pull request then.
        head: String,
    },
}

impl WorkRequest {
    pub fn start(agent: impl Into<String>, bottles: Vec<String>, text: Option<IssueText>) -> Self {
        let (seen, skips_order) = (BTreeSet::new(), false);
        Self::Start { agent: agent.into(), bottles, text, seen, skips_order }
    }

    pub fn resume(prompt: Option<String>) -> Self {
        Self::Resume { prompt, seen: BTreeSet::new() }
    }

    /// Marks of the comments that were taken into account, whether a run came of it or not.
    pub fn seen(&self) -> BTreeSet<String> {
        match self {
            Self::Start { seen, .. } | Self::Resume { seen, .. } => seen.clone(),
            Self::Wake { .. } => BTreeSet::new(),
        }
    }

    /// The request for which these comments are taken into account too. A report of a forge gives way to them: it is read
    /// again when it is due.
    #[must_use]
    pub fn with_seen(self, more: BTreeSet<String>) -> Self {
        match self {
            Self::Start { agent, bottles, text, mut seen, skips_order } => {
                seen.extend(more);
                Self::Start { agent, bottles, text, seen, skips_order }
            }
            Self::Resume { prompt, mut seen } => {
                seen.extend(more);
                Self::Resume { prompt, seen }
            }
            Self::Wake { .. } => Self::Resume { prompt: None, seen: more },
        }
    }
}

/// Report of a forge for which a bottle is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WakeCause {
    /// Checks of the pull request fail.
    Checks,
    /// The pull request conflicts with its base.
    Conflict,
    /// The base has commits that the pull request lacks.
    Behind,
}

/// Title and body of an issue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueText {
    pub title: String,
    pub body: String,
}

/// The status comment on an issue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusComment {
    /// Its number on the forge, once that is known.
    pub comment: Option<u64>,
    /// Digest of the text that the forge has; empty while a write is under way.
    pub digest: String,
}

/// Fields that change with a step; `None` leaves a field unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkNote {
    pub reason: String,
    pub slug: Option<String>,
    pub request: Option<WorkRequest>,
    pub trigger: Option<String>,
    pub not_before: Option<Timestamp>,
    pub attempts: Option<u32>,
    /// Condition of a step that waits or calls a person; a step without one waits for its time alone.
    pub waits_for: Option<WorkHold>,
    pub order: Option<WorkOrder>,
}

impl WorkNote {
    pub fn because(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..Self::default() }
    }

    /// State of a new item: it waits where there is a condition.
    pub(crate) fn first_state(&self) -> WorkState {
        match self.waits_for {
            Some(_) => WorkState::Waiting,
            None => WorkState::Queued,
        }
    }

    /// The condition that a step to this state leaves.
    pub(crate) fn hold_in(&self, next: WorkState) -> Option<WorkHold> {
        self.waits_for.filter(|_| matches!(next, WorkState::Waiting | WorkState::NeedsAttention))
    }

    /// True if a step to this state begins the wait for a slot anew. A condition that is not met costs no place in the queue.
    pub(crate) fn is_queued_anew(&self, next: WorkState) -> bool {
        next == WorkState::Queued || (next == WorkState::Waiting && self.hold_in(next).is_none())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkEvent {
    /// Its place in the order of all events.
    pub seq: u64,
    pub key: IssueKey,
    pub at: Timestamp,
    pub state: WorkState,
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(held: &[u64]) -> Vec<WorkItem> {
        let now = Timestamp::UNIX_EPOCH;
        let item = |issue_number| WorkItem {
            key: IssueKey { owner: "acme".to_owned(), repo: "widget".to_owned(), issue_number },
            state: WorkState::Queued,
            request: WorkRequest::resume(None),
            trigger: None,
            title: String::new(),
            slug: None,
            fence: Fence::default(),
            claims: 0,
            holder: None,
            lease_until: None,
            not_before: None,
            destroy_at: None,
            attempts: 0,
            reason: String::new(),
            waits_for: held.contains(&issue_number).then_some(WorkHold::Budget),
            order: WorkOrder::default(),
            queued_at: now,
            created_at: now,
            updated_at: now,
        };
        (1..=20).map(item).collect()
    }

    #[test]
    fn hosts_begin_at_different_places_of_the_front_and_what_waits_for_a_budget_keeps_its_place() {
        for (held, random, first) in [
            (&[][..], 0, [1, 2, 3]),
            (&[], 5, [6, 7, 8]),
            (&[], 16, [1, 2, 3]),
            (&[3], 1, [2, 1, 3]),
            (&[1], 7, [1, 2, 3]),
        ] {
            let mut works = queue(held);
            spread_front(&mut works, random);
            let numbers: Vec<u64> = works.iter().map(|work| work.key.issue_number).collect();
            assert_eq!(numbers[..3], first, "{held:?} {random}");
            assert_eq!(numbers[16..], [17, 18, 19, 20], "behind the front nothing moves");
        }
    }
}
