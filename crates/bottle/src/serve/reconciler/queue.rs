//! The work queue: which issues are due for an observation, and which observations run. A delivery that arrives during an
//! observation belongs to the next one, because this one may have missed what it tells of.
//!
//! Issues with a delivery come first and have places of their own, so that a sweep over many issues delays none of them.
//! All others take turns: whoever waits longest is next, however often a sweep comes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use orchestrator_db::{Delivery, IssueKey};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::pause_after;
use crate::exit::Failure;

/// Observations without a delivery that run at once.
const SWEEPS_MAX: usize = 8;
/// Observations that run at once.
const OBSERVATIONS_MAX: usize = 32;
/// Longest pause of a failed issue after a new delivery: the forge may be back.
const DELIVERY_PAUSE: Duration = Duration::from_secs(5);

pub(super) type TaskResult<T> = Result<(IssueKey, Result<T, Failure>), JoinError>;

/// Issues that are pending or being observed; `T` is the observation.
pub(super) struct WorkQueue<T> {
    pending: BTreeMap<IssueKey, PendingIssue>,
    observing: BTreeMap<IssueKey, PendingIssue>,
    tasks: JoinSet<(IssueKey, Result<T, Failure>)>,
    /// Deliveries that were read and are not handled yet.
    accepted: BTreeSet<u64>,
    /// Number of entries so far.
    entries: u64,
}

/// Reason for an observation, and its earliest time.
#[derive(Debug, Default)]
pub(super) struct PendingIssue {
    pub(super) deliveries: Vec<u64>,
    /// The sender's id of the newest delivery.
    pub(super) trigger: Option<String>,
    /// True if the issue, its pull request and what people wrote are to be read.
    conversation: bool,
    /// True if the checks of the pull request are to be read.
    checks: bool,
    due: Option<Instant>,
    tries: u32,
    /// Place in the order of arrival.
    turn: u64,
}

/// Part of an issue that one observation reads: the forge is asked at most four times for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObservedPart {
    Conversation,
    Checks,
}

/// Events about checks of commits, as the forges name them.
const CHECK_EVENTS: [&str; 7] = [
    "status",
    "workflow_job",
    "workflow_run",
    "check_run",
    "check_suite",
    "Pipeline Hook",
    "Job Hook",
];

impl PendingIssue {
    /// The part that is read first; what people wrote comes before what machines report.
    fn look(&self) -> ObservedPart {
        if self.conversation { ObservedPart::Conversation } else { ObservedPart::Checks }
    }

    /// True if the checks are to be read after the conversation, because a delivery is about them.
    pub(super) fn also_checks(&self) -> bool {
        self.conversation && self.checks
    }

    fn has_delivery(&self) -> bool {
        !self.deliveries.is_empty()
    }
}

pub(super) struct Finished<T> {
    pub(super) key: IssueKey,
    pub(super) entry: PendingIssue,
    pub(super) observed: Result<T, Failure>,
}

impl<T: Send + 'static> WorkQueue<T> {
    pub(super) fn new() -> Self {
        Self {
            pending: BTreeMap::new(),
            observing: BTreeMap::new(),
            tasks: JoinSet::new(),
            accepted: BTreeSet::new(),
            entries: 0,
        }
    }

    /// The entry of an issue; a new one comes after all others.
    fn entry(&mut self, key: &IssueKey) -> &mut PendingIssue {
        self.entries += 1;
        let turn = self.entries;
        let new = || PendingIssue { turn, ..PendingIssue::default() };
        self.pending.entry(key.clone()).or_insert_with(new)
    }

    /// Accepts a delivery; `false` if it was accepted before.
    pub(super) fn accept(&mut self, delivery: u64) -> bool {
        self.accepted.insert(delivery)
    }

    /// Releases deliveries, because they are handled or must be read again.
    pub(super) fn release(&mut self, deliveries: &[u64]) {
        for seq in deliveries {
            self.accepted.remove(seq);
        }
    }

    pub(super) fn enqueue(&mut self, key: &IssueKey, delivery: Option<&Delivery>) {
        let entry = self.entry(key);
        match delivery {
            Some(delivery) if CHECK_EVENTS.contains(&delivery.event.as_str()) => {
                entry.checks = true;
            }
            Some(_) | None => entry.conversation = true,
        }
        if let Some(delivery) = delivery {
            entry.deliveries.push(delivery.seq);
            entry.trigger = Some(delivery.id.clone());
            let soon = Instant::now() + DELIVERY_PAUSE;
            entry.due = entry.due.map(|due| due.min(soon));
        }
    }

    /// Enqueues an observation of the checks alone.
    pub(super) fn enqueue_checks(&mut self, key: &IssueKey) {
        self.entry(key).checks = true;
    }

    /// Spawns an observation for each due issue, up to the concurrency limits.
    pub(super) fn spawn_due<F>(&mut self, observe: impl Fn(IssueKey, ObservedPart) -> F)
    where
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let now = Instant::now();
        let is_due = |entry: &PendingIssue| entry.due.is_none_or(|due| due <= now);
        let mut due: Vec<(bool, u64, IssueKey)> = self
            .pending
            .iter()
            .filter(|(key, entry)| is_due(entry) && !self.observing.contains_key(*key))
            .map(|(key, entry)| (!entry.has_delivery(), entry.turn, key.clone()))
            .collect();
        due.sort_unstable();
        for (is_sweep, _, key) in due {
            let sweeps = self.observing.values().filter(|entry| !entry.has_delivery()).count();
            let is_full = self.observing.len() >= OBSERVATIONS_MAX;
            if is_full || (is_sweep && sweeps >= SWEEPS_MAX) {
                break;
            }
            let entry = self.pending.remove(&key).unwrap_or_default();
            let look = entry.look();
            self.observing.insert(key.clone(), entry);
            let observed = observe(key.clone(), look);
            self.tasks.spawn(async move { (key, observed.await) });
        }
    }

    /// Waits for the next finished task; `None` if no task runs.
    pub(super) async fn next_finished(&mut self) -> Option<TaskResult<T>> {
        self.tasks.join_next().await
    }

    /// Pairs a task's result with its entry. A panic does not tell which issue it was, so all are queued again.
    pub(super) fn finish(&mut self, result: TaskResult<T>) -> Option<Finished<T>> {
        match result {
            Ok((key, observed)) => {
                let entry = self.observing.remove(&key).unwrap_or_default();
                Some(Finished { key, entry, observed })
            }
            Err(_) => {
                self.tasks.abort_all();
                for (key, entry) in std::mem::take(&mut self.observing) {
                    self.requeue(&key, entry);
                }
                None
            }
        }
    }

    /// Queues an entry again, due at once.
    pub(super) fn requeue(&mut self, key: &IssueKey, earlier: PendingIssue) {
        let entry = self.entry(key);
        entry.conversation |= earlier.conversation;
        entry.checks |= earlier.checks;
        entry.deliveries.extend(earlier.deliveries);
        entry.trigger = entry.trigger.take().or(earlier.trigger);
        entry.tries = entry.tries.max(earlier.tries);
    }

    /// Queues an entry again after a pause, and returns the number of tries so far.
    pub(super) fn requeue_after(
        &mut self,
        key: &IssueKey,
        earlier: PendingIssue,
        failure: &Failure,
    ) -> u32 {
        let tries = earlier.tries + 1;
        self.requeue(key, PendingIssue { tries, ..earlier });
        let requested = failure.retry_after().map(|at| at.duration_since(host::clock::now()));
        let requested = requested.and_then(|span| Duration::try_from(span).ok());
        if let Some(entry) = self.pending.get_mut(key) {
            let pause = requested.unwrap_or_default().max(pause_after(tries));
            entry.due = Some(Instant::now() + pause);
        }
        tries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestrator_db::About;

    fn key() -> IssueKey {
        IssueKey { owner: "acme".to_owned(), repo: "widget".to_owned(), issue_number: 3 }
    }

    fn delivery(seq: u64) -> Delivery {
        Delivery {
            seq,
            source: "gitea".to_owned(),
            id: format!("d-{seq}"),
            event: "issues".to_owned(),
            owner: "acme".to_owned(),
            repo: "widget".to_owned(),
            about: About::Issue(3),
            body: Vec::new(),
            received_at: host::clock::now(),
            handled_at: None,
        }
    }

    async fn finished(queue: &mut WorkQueue<u8>) -> Finished<u8> {
        let result = queue.next_finished().await.expect("a task runs");
        queue.finish(result).expect("an observation")
    }

    #[tokio::test]
    async fn a_delivery_during_an_observation_belongs_to_the_next_one() {
        let mut queue = WorkQueue::new();
        queue.enqueue(&key(), Some(&delivery(1)));
        queue.spawn_due(|_, _| async { Ok(1) });
        queue.enqueue(&key(), Some(&delivery(2)));
        queue.spawn_due(|_, _| async { panic!("one observation at a time for each issue") });
        let first = finished(&mut queue).await;
        assert_eq!((first.entry.deliveries, first.observed.ok()), (vec![1], Some(1)));
        queue.spawn_due(|_, _| async { Ok(2) });
        let second = finished(&mut queue).await;
        assert_eq!(second.entry.deliveries, [2]);
        assert_eq!(second.entry.trigger.as_deref(), Some("d-2"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_observation_is_retried_later_with_every_delivery() {
        let mut queue: WorkQueue<u8> = WorkQueue::new();
        queue.enqueue(&key(), Some(&delivery(1)));
        queue.spawn_due(|_, _| async { Err(Failure::transient("down")) });
        queue.enqueue(&key(), Some(&delivery(2)));
        let first = finished(&mut queue).await;
        let failure = first.observed.expect_err("down");
        assert_eq!(queue.requeue_after(&key(), first.entry, &failure), 1);
        queue.spawn_due(|_, _| async { panic!("not yet") });
        tokio::time::advance(Duration::from_secs(10)).await;
        queue.spawn_due(|_, _| async { Ok(1) });
        let mut deliveries = finished(&mut queue).await.entry.deliveries;
        deliveries.sort_unstable();
        assert_eq!(deliveries, [1, 2]);
    }

    #[tokio::test]
    async fn an_observation_that_panics_loses_nothing() {
        let mut queue: WorkQueue<u8> = WorkQueue::new();
        queue.enqueue(&key(), Some(&delivery(1)));
        queue.spawn_due(|_, _| async { panic!("a bug of ours") });
        let result = queue.next_finished().await.expect("a task runs");
        assert!(queue.finish(result).is_none());
        queue.spawn_due(|_, _| async { Ok(1) });
        assert_eq!(finished(&mut queue).await.entry.deliveries, [1]);
    }

    fn numbered(issue_number: u64) -> IssueKey {
        IssueKey { issue_number, ..key() }
    }

    fn started(queue: &mut WorkQueue<u8>) -> Vec<u64> {
        let list = std::cell::RefCell::new(Vec::new());
        queue.spawn_due(|key, _| {
            list.borrow_mut().push(key.issue_number);
            std::future::pending()
        });
        list.into_inner()
    }

    #[tokio::test]
    async fn a_delivery_starts_at_once_whatever_a_sweep_does() {
        let mut queue: WorkQueue<u8> = WorkQueue::new();
        for number in 1..=1000 {
            queue.enqueue(&numbered(number), None);
        }
        assert_eq!(started(&mut queue), [1, 2, 3, 4, 5, 6, 7, 8]);
        queue.enqueue(&numbered(999), Some(&delivery(1)));
        assert_eq!(started(&mut queue), [999], "it waits for no place of the sweep");
    }

    #[tokio::test]
    async fn all_issues_take_turns_although_a_sweep_comes_before_the_last_one_is_done() {
        let mut queue: WorkQueue<u8> = WorkQueue::new();
        let mut seen = BTreeSet::new();
        for _ in 0..10 {
            for number in 1..=40 {
                queue.enqueue(&numbered(number), None);
            }
            queue.spawn_due(|_, _| async { Ok(1) });
            while let Some(result) = queue.next_finished().await {
                let Finished { key, .. } = queue.finish(result).expect("an observation");
                seen.insert(key.issue_number);
            }
        }
        assert_eq!(seen.len(), 40, "{seen:?}");
    }

    #[tokio::test]
    async fn a_delivery_about_checks_reads_the_checks_and_a_sweep_the_conversation() {
        let mut queue: WorkQueue<u8> = WorkQueue::new();
        let looks = std::cell::RefCell::new(Vec::new());
        let note = |queue: &mut WorkQueue<u8>| {
            queue.spawn_due(|_, look| {
                looks.borrow_mut().push(look);
                async { Ok(1) }
            });
        };
        let red = Delivery { event: "status".to_owned(), ..delivery(1) };
        queue.enqueue(&key(), Some(&red));
        note(&mut queue);
        assert!(!finished(&mut queue).await.entry.also_checks());
        queue.enqueue(&key(), Some(&Delivery { seq: 2, ..red }));
        queue.enqueue(&key(), None);
        note(&mut queue);
        assert!(finished(&mut queue).await.entry.also_checks());
        queue.enqueue_checks(&key());
        note(&mut queue);
        assert_eq!(
            looks.into_inner(),
            [ObservedPart::Checks, ObservedPart::Conversation, ObservedPart::Checks]
        );
    }

    #[test]
    fn a_delivery_is_accepted_once_until_it_is_released() {
        let mut queue: WorkQueue<u8> = WorkQueue::new();
        assert!(queue.accept(1));
        assert!(!queue.accept(1));
        queue.release(&[1]);
        assert!(queue.accept(1));
    }
}
