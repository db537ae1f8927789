//! Which issues are to be looked at, and who is on the way. What comes in about an issue while somebody looks at it is for
//! the next look: it may not be in what is seen.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use orchestrator_db::{Delivery, IssueKey};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::pause_after;
use crate::exit::Failure;

/// So many looks are under way at once.
const LOOKS_MAX: usize = 8;
/// After news about an issue that could not be looked at: the forge may be there again.
const NEWS_PAUSE: Duration = Duration::from_secs(5);

/// The looks that are wanted and under way; `T` is what one shows.
pub(super) struct Rounds<T> {
    wanted: BTreeMap<IssueKey, Wanted>,
    looking: BTreeMap<IssueKey, Wanted>,
    tasks: JoinSet<(IssueKey, Result<T, Failure>)>,
    /// Deliveries that were taken up and are not done with.
    taken: BTreeSet<u64>,
}

/// Why an issue is looked at, and from when on.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) deliveries: Vec<u64>,
    /// The sender's name for the newest of them.
    pub(super) trigger: Option<String>,
    due: Option<Instant>,
    tries: u32,
}

/// A look that has ended.
pub(super) struct Looked<T> {
    pub(super) key: IssueKey,
    pub(super) wanted: Wanted,
    pub(super) seen: Result<T, Failure>,
}

impl<T: Send + 'static> Rounds<T> {
    pub(super) fn new() -> Self {
        Self {
            wanted: BTreeMap::new(),
            looking: BTreeMap::new(),
            tasks: JoinSet::new(),
            taken: BTreeSet::new(),
        }
    }

    /// Takes a delivery up; says whether that is new.
    pub(super) fn take_up(&mut self, delivery: u64) -> bool {
        self.taken.insert(delivery)
    }

    /// Lets go of deliveries, because they are done with or have to be taken up again.
    pub(super) fn let_go(&mut self, deliveries: &[u64]) {
        for seq in deliveries {
            self.taken.remove(seq);
        }
    }

    /// Says that an issue should be looked at.
    pub(super) fn want(&mut self, key: &IssueKey, delivery: Option<&Delivery>) {
        let wanted = self.wanted.entry(key.clone()).or_default();
        if let Some(delivery) = delivery {
            wanted.deliveries.push(delivery.seq);
            wanted.trigger = Some(delivery.id.clone());
            let soon = Instant::now() + NEWS_PAUSE;
            wanted.due = wanted.due.map(|due| due.min(soon));
        }
    }

    /// Sends somebody out for each issue that is due, as far as there are people.
    pub(super) fn send_out<F>(&mut self, look: impl Fn(IssueKey) -> F)
    where
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let now = Instant::now();
        let is_due = |wanted: &Wanted| wanted.due.is_none_or(|due| due <= now);
        let due: Vec<IssueKey> = self
            .wanted
            .iter()
            .filter(|(key, wanted)| is_due(wanted) && !self.looking.contains_key(*key))
            .map(|(key, _)| key.clone())
            .take(LOOKS_MAX.saturating_sub(self.looking.len()))
            .collect();
        for key in due {
            let wanted = self.wanted.remove(&key).unwrap_or_default();
            self.looking.insert(key.clone(), wanted);
            let seen = look(key.clone());
            self.tasks.spawn(async move { (key, seen.await) });
        }
    }

    /// Waits for the next one who comes back; `None` if nobody is on the way.
    pub(super) async fn next(
        &mut self,
    ) -> Option<Result<(IssueKey, Result<T, Failure>), JoinError>> {
        self.tasks.join_next().await
    }

    /// Reads what somebody brought. After a panic nobody knows whose look it was, so all are wanted again.
    pub(super) fn came_back(
        &mut self,
        brought: Result<(IssueKey, Result<T, Failure>), JoinError>,
    ) -> Option<Looked<T>> {
        match brought {
            Ok((key, seen)) => {
                let wanted = self.looking.remove(&key).unwrap_or_default();
                Some(Looked { key, wanted, seen })
            }
            Err(_) => {
                self.tasks.abort_all();
                for (key, wanted) in std::mem::take(&mut self.looking) {
                    self.put_back(&key, wanted);
                }
                None
            }
        }
    }

    /// Wants the same look once more, at once.
    pub(super) fn put_back(&mut self, key: &IssueKey, earlier: Wanted) {
        let wanted = self.wanted.entry(key.clone()).or_default();
        wanted.deliveries.extend(earlier.deliveries);
        wanted.trigger = wanted.trigger.take().or(earlier.trigger);
        wanted.tries = wanted.tries.max(earlier.tries);
    }

    /// Wants it again after a while, because it could not be done now. Says how often it was tried.
    pub(super) fn put_off(&mut self, key: &IssueKey, earlier: Wanted, failure: &Failure) -> u32 {
        let tries = earlier.tries + 1;
        self.put_back(key, Wanted { tries, ..earlier });
        let pause = pause_after(tries);
        let told = failure.retry_after().map(|at| at.duration_since(host::clock::now()));
        let told = told.and_then(|told| Duration::try_from(told).ok()).unwrap_or_default();
        if let Some(wanted) = self.wanted.get_mut(key) {
            wanted.due = Some(Instant::now() + told.max(pause));
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
            received_at: host::clock::now(),
            handled_at: None,
        }
    }

    async fn looked(rounds: &mut Rounds<u8>) -> Looked<u8> {
        let brought = rounds.next().await.expect("somebody is on the way");
        rounds.came_back(brought).expect("and comes back")
    }

    #[tokio::test]
    async fn what_comes_during_a_look_is_for_the_next_one() {
        let mut rounds = Rounds::new();
        rounds.want(&key(), Some(&delivery(1)));
        rounds.send_out(|_| async { Ok(1) });
        rounds.want(&key(), Some(&delivery(2)));
        rounds.send_out(|_| async { panic!("one look at a time for each issue") });
        let first = looked(&mut rounds).await;
        assert_eq!((first.wanted.deliveries, first.seen.ok()), (vec![1], Some(1)));
        rounds.send_out(|_| async { Ok(2) });
        let second = looked(&mut rounds).await;
        assert_eq!(second.wanted.deliveries, [2]);
        assert_eq!(second.wanted.trigger.as_deref(), Some("d-2"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_failed_is_done_again_later_with_everything_that_came() {
        let mut rounds: Rounds<u8> = Rounds::new();
        rounds.want(&key(), Some(&delivery(1)));
        rounds.send_out(|_| async { Err(Failure::transient("down")) });
        rounds.want(&key(), Some(&delivery(2)));
        let first = looked(&mut rounds).await;
        let failure = first.seen.expect_err("down");
        assert_eq!(rounds.put_off(&key(), first.wanted, &failure), 1);
        rounds.send_out(|_| async { panic!("not yet") });
        tokio::time::advance(Duration::from_secs(10)).await;
        rounds.send_out(|_| async { Ok(1) });
        let mut deliveries = looked(&mut rounds).await.wanted.deliveries;
        deliveries.sort_unstable();
        assert_eq!(deliveries, [1, 2]);
    }

    #[tokio::test]
    async fn a_look_that_panics_loses_nothing() {
        let mut rounds: Rounds<u8> = Rounds::new();
        rounds.want(&key(), Some(&delivery(1)));
        rounds.send_out(|_| async { panic!("a bug of ours") });
        let brought = rounds.next().await.expect("somebody is on the way");
        assert!(rounds.came_back(brought).is_none());
        rounds.send_out(|_| async { Ok(1) });
        assert_eq!(looked(&mut rounds).await.wanted.deliveries, [1]);
    }

    #[test]
    fn a_delivery_is_taken_up_once_until_it_is_let_go() {
        let mut rounds: Rounds<u8> = Rounds::new();
        assert!(rounds.take_up(1));
        assert!(!rounds.take_up(1));
        rounds.let_go(&[1]);
        assert!(rounds.take_up(1));
    }
}
