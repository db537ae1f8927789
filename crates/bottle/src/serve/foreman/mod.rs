//! The foreman: looks at the issues that somebody should look at, decides, and has bottles run. There is one per home, and
//! everything it must not forget is in the store before it acts.
//!
//! - `rounds` which issues are to be looked at, and who is on the way
//! - `act` what came in, what was seen, and what is done about it
//! - `settle` what is written down when a worker has ended

mod act;
mod rounds;
mod settle;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use host::signal::Cancel;
use orchestrator_db::{ForgeStateStore, IssueKey, WorkItem, WorkNote, WorkState, WorkStep};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use self::rounds::Rounds;
use super::Service;
use super::look::{Seen, look};
use super::repos::agent_labels;
use super::worker::{self, Ended, Task};
use crate::exit::{Failure, OrExit};
use crate::flow::attestation::settle_statements;
use crate::flow::end::Loss;
use crate::ui::Ui;

/// A forge that does not answer is asked again after this, then twice that, and so on.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// How often claimed work is looked at for its bottle, and waiting work for its time.
const BEAT: Duration = Duration::from_millis(500);

/// After a failure of the store.
const AFTER_FAILURE: Duration = Duration::from_millis(500);

/// Looks, decides, and has bottles run.
pub(crate) struct Foreman {
    service: Arc<Service>,
    /// Who holds what this foreman claims.
    holder: String,
    /// Issues to look at, and the deliveries that said so.
    rounds: Rounds<Seen>,
    /// Issues that a look over the repositories has found.
    found: mpsc::UnboundedReceiver<IssueKey>,
    finds: mpsc::UnboundedSender<IssueKey>,
    /// What workers have in hand.
    busy: BTreeMap<IssueKey, WorkItem>,
    endings: mpsc::UnboundedReceiver<Ended>,
    ended: mpsc::UnboundedSender<Ended>,
    /// Endings that could not be written down yet.
    unsettled: Vec<Ended>,
}

impl Foreman {
    /// A foreman under a name that nobody else has.
    pub(crate) fn new(service: Arc<Service>, holder: String) -> Self {
        let (ended, endings) = mpsc::unbounded_channel();
        let (finds, found) = mpsc::unbounded_channel();
        Self {
            service,
            holder,
            rounds: Rounds::new(),
            found,
            finds,
            busy: BTreeMap::new(),
            endings,
            ended,
            unsettled: Vec::new(),
        }
    }

    /// Works until it is told to stop, then waits for what runs as long as the settings say. What runs longer goes on by
    /// itself.
    pub(crate) async fn work(mut self, stop: Cancel) -> Result<(), Failure> {
        self.take_over()?;
        let settings = &self.service.settings;
        let mut sweep = interval(Duration::from_secs(settings.sweep_secs));
        let mut renew = interval(Duration::from_secs(settings.lease_secs.div_ceil(3)));
        let mut beat = interval(BEAT);
        for ticker in [&mut sweep, &mut renew, &mut beat] {
            ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        let news = Arc::clone(&self.service.news);
        loop {
            let done = tokio::select! {
                _ = stop.cancelled() => break,
                () = news.notified() => Ok(()),
                Some(ended) = self.endings.recv() => self.settle(ended),
                Some(brought) = self.rounds.next() => self.heard(brought),
                Some(key) = self.found.recv() => {
                    self.rounds.want(&key, None);
                    Ok(())
                }
                _ = sweep.tick() => self.sweep(),
                _ = renew.tick() => self.renew(),
                _ = beat.tick() => self.look_after(),
            };
            let done = done.and_then(|()| self.read_inbox()).and_then(|()| self.claim());
            let service = &self.service;
            self.rounds.send_out(|key| {
                let service = Arc::clone(service);
                async move { look(&service, &key).await }
            });
            if let Err(failure) = done {
                // A full disk gets room again, and everything that is not done is still written down as such.
                tracing::error!(%failure, "could not go on; trying again");
                tokio::time::sleep(AFTER_FAILURE).await;
            }
        }
        self.drain().await
    }

    async fn drain(&mut self) -> Result<(), Failure> {
        let end = Instant::now() + Duration::from_secs(self.service.settings.drain_secs);
        tracing::info!(running = self.busy.len(), "told to stop: nothing new is begun");
        while !self.busy.is_empty() {
            tokio::select! {
                () = sleep_until(end) => {
                    let left = self.busy.len();
                    tracing::info!(left, "the rest goes on under its own clock and is found again");
                    return Ok(());
                }
                Some(ended) = self.endings.recv() => self.settle(ended)?,
            }
        }
        Ok(())
    }

    /// Goes on with what another one left behind. The lock says that it is gone, so its claims are ours.
    fn take_over(&mut self) -> Result<(), Failure> {
        let lease = self.lease();
        for work in self.service.store.take_over_work(&self.holder, lease).or_general()? {
            tracing::info!(issue = %name(&work.key), state = %work.state, "taken over");
            self.hand_out(Task::Run(Box::new(work)));
        }
        for work in self.service.store.works().or_general()? {
            self.rounds.want(&work.key, None);
        }
        Ok(())
    }

    fn lease(&self) -> Duration {
        Duration::from_secs(self.service.settings.lease_secs)
    }

    fn renew(&self) -> Result<(), Failure> {
        self.service.store.renew_leases(&self.holder, self.lease()).or_general().map(drop)
    }

    /// Claims work while there is room. The claim is on disk before anything is started.
    fn claim(&mut self) -> Result<(), Failure> {
        while self.busy.len() < self.service.settings.max_bottles {
            let claimed = self.service.store.claim_work(&self.holder, self.lease()).or_general()?;
            let Some(work) = claimed else { return Ok(()) };
            host::failpoint::hit("claimed");
            self.hand_out(Task::Run(Box::new(work)));
        }
        Ok(())
    }

    fn hand_out(&mut self, task: Task) {
        let work = task.work();
        self.busy.insert(work.key.clone(), work.clone());
        worker::start(&self.service, task, self.ended.clone());
    }

    /// Notes which bottles are there by now, and removes those whose time has come. What could not be written down before
    /// is written down, and what is held and in nobody's hands is handed out again.
    fn look_after(&mut self) -> Result<(), Failure> {
        for ended in std::mem::take(&mut self.unsettled) {
            self.settle(ended)?;
        }
        let store = &self.service.store;
        for work in self.busy.values_mut().filter(|work| work.state == WorkState::Claimed) {
            let known = store.get(&work.key).or_general()?;
            let running =
                known.filter(|known| known.status == orchestrator_db::BottleState::Running);
            if let Some(known) = running {
                let note = WorkNote {
                    slug: Some(known.slug),
                    ..WorkNote::because("its agent is at work")
                };
                work.state =
                    store.step_work(&work.key, work.fence, WorkStep::Begin, &note).or_general()?;
            }
        }
        let now = host::clock::now();
        let works = store.works().or_general()?;
        for work in works {
            if work.holder.as_deref() == Some(&self.holder) && !self.busy.contains_key(&work.key) {
                self.hand_out(Task::Run(Box::new(work)));
                continue;
            }
            let is_due = work.destroy_at.is_some_and(|at| at <= now);
            let is_free = !work.state.is_held() && !self.busy.contains_key(&work.key);
            if is_due && is_free && work.state != WorkState::Destroyed {
                self.hand_out(Task::Destroy { work: Box::new(work), loss: Loss::Refused });
            }
        }
        Ok(())
    }

    /// Looks over every repository for issues whose webhook never came, and at everything that is under way. Forges take
    /// their time, so what is found comes in as it is found.
    fn sweep(&mut self) -> Result<(), Failure> {
        let labels = agent_labels(&self.service.home)?;
        tokio::spawn(look_over(Arc::clone(&self.service), labels, self.finds.clone()));
        for work in self.service.store.works().or_general()? {
            if work.state != WorkState::Destroyed {
                self.rounds.want(&work.key, None);
            }
        }
        settle_statements(&Ui::log("statements"), &self.service.home);
        let days = u64::from(self.service.settings.delivery_days);
        let before = host::clock::now() - Duration::from_secs(days * 86_400);
        self.service.store.forget_deliveries(before).or_general()?;
        Ok(())
    }
}

/// Finds the open issues that are labelled for an agent of ours.
async fn look_over(
    service: Arc<Service>,
    labels: BTreeSet<String>,
    finds: mpsc::UnboundedSender<IssueKey>,
) {
    for repo in service.repos.all() {
        for label in &labels {
            let listed = match repo.open().await {
                Ok(forge) => forge.list_open_issues(std::slice::from_ref(label)).await.or_general(),
                Err(failure) => Err(failure),
            };
            match listed {
                Ok(issues) => {
                    for issue in issues {
                        // Nobody listens any more when everything ends.
                        drop(finds.send(repo.issue(issue.number)));
                    }
                }
                Err(failure) => {
                    tracing::warn!(repo = repo.full_name(), %failure, "could not be looked over");
                    break;
                }
            }
        }
    }
}

fn pause_after(tries: u32) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << tries.saturating_sub(1).min(10));
    doubled.min(LONGEST_PAUSE)
}

/// An issue as people write it.
fn name(key: &IssueKey) -> String {
    format!("{}/{}#{}", key.owner, key.repo, key.issue_number)
}
