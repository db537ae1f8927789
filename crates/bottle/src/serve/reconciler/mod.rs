//! The reconciler: brings the work on each issue to what the forge asks for. One runs per home, on a thread of its own, so
//! that its database calls never hold up a webhook. Everything that a crash must not lose is on disk before it acts.
//!
//! - `queue` which issues are due
//! - `observe` what the forge, the database and the bottle say about one of them
//! - `rules::decide` what to do about it, from these facts alone
//! - `order` whether it is the turn of one of them
//! - `act` carries that out, and the actions of users
//! - `claim` gives free slots to issues, in the order of the queue and within the budgets
//! - `lease` renews leases, and takes over those that have expired
//! - `stop` stops it when a person asks for that
//! - `worker` runs or removes one bottle
//! - `record` writes down how a worker ended
//! - `status` says on each issue how far its work is

mod act;
mod claim;
mod lease;
mod observe;
mod order;
mod queue;
mod record;
mod status;
mod stop;
#[cfg(test)]
mod tests;
mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use host::signal::Cancel;
use jiff::civil::Date;
use model::exit::BottleExit;
use orchestrator_db::{BottleState, DbError, IssueKey, WorkNote, WorkState, WorkStep};
use shell::Ui;
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};

use self::observe::{IssueObservation, observe_issue};
use self::queue::WorkQueue;
use self::status::StatusBoard;
use self::stop::{BusyWork, StopRequest};
use self::worker::{Job, JobResult};
use super::repos::agent_labels;
use super::turn::{end_earlier_turns, end_turn, hold_turn};
use super::{Service, dispatch, notify};
use crate::exit::{Failure, OrGeneral};
use crate::flow::attestation::sign_statements;
use crate::flow::end::Loss;
use crate::flow::fleet::LOCAL_HOST;
use crate::flow::lease::{Lease, LeaseHolder};
use crate::flow::store_upkeep::spawn_upkeep;

/// Pause before the first retry; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// Interval of the checks for bottles of claimed items and for due waiting ones.
const TICK: Duration = Duration::from_millis(500);
/// Interval of the looks for leases that have expired.
const TAKEOVER_TICK: Duration = Duration::from_secs(2);
/// Pause after a failed database call.
const DATABASE_PAUSE: Duration = Duration::from_millis(500);
/// Time for which the start waits for a database that cannot be written to, because another program has it locked.
const START_PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Reconciler {
    service: Arc<Service>,
    /// Holder of the leases that this reconciler takes.
    holder: LeaseHolder,
    queue: WorkQueue<IssueObservation>,
    /// Issues that a sweep over the repositories has found.
    found: mpsc::UnboundedReceiver<IssueKey>,
    found_sender: mpsc::UnboundedSender<IssueKey>,
    /// Items that a worker holds.
    busy: BTreeMap<IssueKey, BusyWork>,
    /// Stops of issues that a worker holds, until their runs have ended.
    stops: BTreeMap<IssueKey, StopRequest>,
    /// Issues whose status comment changes without a step of their work.
    changed: BTreeSet<IssueKey>,
    results: mpsc::UnboundedReceiver<JobResult>,
    result_sender: mpsc::UnboundedSender<JobResult>,
    unrecorded: Vec<JobResult>,
    /// Newest commits whose checks have all passed, by issue, with the looks at the issue since then: not every sweep reads
    /// them again.
    green: BTreeMap<IssueKey, (String, u32)>,
    /// True if a budget may have room that it had not.
    budget_changed: bool,
    /// Day of the last claims.
    day: Date,
    /// True once another server has the turn.
    has_lost_turn: bool,
}

impl Reconciler {
    /// A reconciler with a holder name that no earlier one had.
    pub(crate) fn new(service: Arc<Service>) -> Result<Self, Failure> {
        let random = u64::from_le_bytes(host::random::bytes().or_general()?);
        let host = service.host.clone();
        let holder = LeaseHolder {
            name: format!("{host}/{}-{random:016x}", std::process::id()),
            is_shared: host != LOCAL_HOST,
            host,
        };
        let (result_sender, results) = mpsc::unbounded_channel();
        let (found_sender, found) = mpsc::unbounded_channel();
        Ok(Self {
            service,
            holder,
            queue: WorkQueue::new(),
            found,
            found_sender,
            busy: BTreeMap::new(),
            stops: BTreeMap::new(),
            changed: BTreeSet::new(),
            results,
            result_sender,
            unrecorded: Vec::new(),
            green: BTreeMap::new(),
            budget_changed: true,
            day: Date::MIN,
            has_lost_turn: false,
        })
    }

    /// Reconciles until `stop`, then drains. Boxes that run longer than the drain continue without this process.
    pub(crate) async fn run(mut self, stop: Cancel) -> Result<(), Failure> {
        if !self.begin(&stop).await? {
            return Ok(());
        }
        let settings = self.service.settings();
        let mut sweep = ticker(settings.sweep_secs);
        let mut renew = ticker(settings.lease_secs.div_ceil(3));
        let mut takeover = interval(TAKEOVER_TICK);
        takeover.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let service = Arc::clone(&self.service);
        let arrived = Arc::clone(&self.service.arrived);
        let mut board = StatusBoard::open(&self.service)?;
        let found = self.found_sender.clone();
        tokio::spawn(dispatch::run(Arc::clone(&self.service), found, stop.clone()));
        tokio::spawn(notify::run(Arc::clone(&self.service), stop.clone()));
        loop {
            let done = tokio::select! {
                _ = stop.cancelled() => break,
                () = arrived.notified() => Ok(()),
                Some(result) = self.results.recv() => self.record_outcome(result),
                Some(finished) = self.queue.next_finished() => self.handle_observation(finished),
                Some(key) = self.found.recv() => {
                    self.queue.enqueue(&key, None);
                    Ok(())
                }
                () = service.reloaded.notified() => {
                    let settings = self.service.settings();
                    self.budget_changed = true;
                    // The first tick of a new ticker comes at once.
                    sweep = ticker(settings.sweep_secs);
                    renew = ticker(settings.lease_secs.div_ceil(3));
                    Ok(())
                }
                _ = sweep.tick() => self.sweep(),
                _ = renew.tick() => self.renew_turn().and_then(|()| self.renew_leases()),
                _ = takeover.tick() => self.take_over_expired(),
                Some(written) = board.next_written() => {
                    board.finish(written);
                    Ok(())
                }
                _ = tick.tick() => {
                    board.add(std::mem::take(&mut self.changed));
                    self.maintain().and_then(|()| board.update(&self.service))
                }
            };
            let done = done.and_then(|()| self.check_turn());
            if self.has_lost_turn {
                return Err(turn_is_lost());
            }
            let done = done.and_then(|()| self.read_inbox()).and_then(|()| self.claim());
            let service = &self.service;
            self.queue.spawn_due(|key, look| {
                let service = Arc::clone(service);
                async move { observe_issue(&service, &key, look).await }
            });
            if let Err(failure) = done {
                // A full disk gets free space again, and everything unfinished is still stored as unfinished.
                tracing::error!(%failure, "reconciling failed; trying again");
                tokio::time::sleep(DATABASE_PAUSE).await;
            }
        }
        let drained = self.drain().await;
        drained.and(end_turn(&self.service, &self.holder))
    }

    async fn drain(&mut self) -> Result<(), Failure> {
        let end = Instant::now() + Duration::from_secs(self.service.settings().drain_secs);
        tracing::info!(running = self.busy.len(), "stopping: no new work is started");
        while !self.busy.is_empty() {
            tokio::select! {
                () = sleep_until(end) => {
                    let left = self.busy.len();
                    tracing::info!(left, "the remaining boxes continue and are found at the next start");
                    return Ok(());
                }
                Some(result) = self.results.recv() => self.record_outcome(result)?,
            }
        }
        Ok(())
    }

    /// Waits for the turn and takes over; tries again for a while where the database fails: the server listens already, and
    /// deliveries are kept. False if it was stopped before.
    async fn begin(&mut self, stop: &Cancel) -> Result<bool, Failure> {
        let mut end = Instant::now() + START_PATIENCE;
        let mut is_told = false;
        loop {
            let begun = end_earlier_turns(&self.service, &self.holder)
                .and_then(|()| hold_turn(&self.service, &self.holder, self.lease()))
                .and_then(
                    |is_ours| if is_ours { self.take_over().map(|()| true) } else { Ok(false) },
                );
            match begun {
                _ if stop.reason().is_some() => return Ok(false),
                Ok(true) => return Ok(true),
                Ok(false) => {
                    if !std::mem::replace(&mut is_told, true) {
                        tracing::info!(
                            "another server on this database reconciles; this one waits for its turn"
                        );
                    }
                    end = Instant::now() + START_PATIENCE;
                    tokio::select! {
                        _ = stop.cancelled() => return Ok(false),
                        () = tokio::time::sleep(TAKEOVER_TICK) => {}
                    }
                }
                Err(failure) if Instant::now() < end => {
                    tracing::error!(%failure, "reconciling failed; trying again");
                    tokio::time::sleep(DATABASE_PAUSE).await;
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Continues the work of an earlier process. The lock on the home proves that it is gone, so its claims are free.
    fn take_over(&mut self) -> Result<(), Failure> {
        tracing::info!("this server reconciles");
        self.read_stops()?;
        let asked_at = host::clock::boottime();
        let store = Arc::clone(&self.service.store);
        for work in store.take_over_host(&self.holder.name, self.lease()).or_general()? {
            // A second try sees what the first one has taken.
            if !self.busy.contains_key(&work.key) {
                tracing::info!(issue = %work.key, state = %work.state, "taken over");
                self.start_job(Job::Run(Box::new(work)), asked_at);
            }
        }
        for work in self.service.store.works().or_general()? {
            self.queue.enqueue(&work.key, None);
        }
        Ok(())
    }

    /// Renews the lease of the turn if it has ended here, as after a sleep of the machine.
    fn check_turn(&mut self) -> Result<(), Failure> {
        match self.service.turn.is_ours() {
            true => Ok(()),
            false => self.renew_turn(),
        }
    }

    fn renew_turn(&mut self) -> Result<(), Failure> {
        self.has_lost_turn = !hold_turn(&self.service, &self.holder, self.lease())?;
        Ok(())
    }

    fn lease(&self) -> Duration {
        Duration::from_secs(self.service.settings().lease_secs)
    }

    /// Starts a worker. `asked_at` is a time on the boot-time clock before its item was claimed.
    fn start_job(&mut self, job: Job, asked_at: Duration) {
        let (work, cancel) = (job.work().clone(), Cancel::new());
        let key = work.key.clone();
        let lease = Arc::new(Lease::of_claim(
            Arc::clone(&self.service.store),
            self.holder.clone(),
            &work,
            self.lease(),
            asked_at,
            cancel.clone(),
        ));
        let busy = BusyWork { work, lease: Arc::clone(&lease), cancel: cancel.clone() };
        self.busy.insert(key.clone(), busy);
        if let Some(stop) = self.stops.get(&key) {
            self.cancel_work(&key, stop.reason());
        }
        worker::start(&self.service, job, (cancel, lease), self.result_sender.clone());
    }

    /// Retries failed records, marks claimed items whose bottle exists as running, restarts items that this reconciler
    /// holds without a worker, and removes bottles whose retention has ended.
    fn maintain(&mut self) -> Result<(), Failure> {
        for result in std::mem::take(&mut self.unrecorded) {
            self.record_outcome(result)?;
        }
        let store = Arc::clone(&self.service.store);
        for BusyWork { work, lease, .. } in self.busy.values_mut() {
            // Its worker ends when this finds that the lease is lost.
            let Ok(fence) = lease.fence() else { continue };
            if work.state != WorkState::Claimed {
                continue;
            }
            let known = store.forge_state(&work.key).or_general()?;
            if let Some(known) = known.filter(|known| known.status == BottleState::Running) {
                let note = WorkNote {
                    slug: Some(known.slug),
                    ..WorkNote::because("its agent is running")
                };
                match store.step_work(&work.key, fence, WorkStep::Begin, &note) {
                    // Its worker ends, and its result is dropped.
                    Err(DbError::Fenced { .. }) => drop(lease.note_fenced()),
                    stepped => work.state = stepped.or_general()?,
                }
            }
        }
        let now = host::clock::now();
        for work in store.works().or_general()? {
            let is_busy = self.busy.contains_key(&work.key);
            if work.holder.as_deref() == Some(&self.holder.name) && !is_busy {
                self.restart(&work)?;
                continue;
            }
            let is_due = work.destroy_at.is_some_and(|at| at <= now);
            let is_free = !work.state.is_held() && !is_busy;
            if is_due
                && is_free
                && work.state != WorkState::Destroyed
                && !self.is_elsewhere(&work.key)?
            {
                let job = Job::Destroy { work: Box::new(work), loss: Loss::Refused };
                self.start_job(job, host::clock::boottime());
            }
        }
        Ok(())
    }

    /// Enqueues every item, looks for issues whose webhook was lost, and cleans up. Forges answer slowly, so the issues
    /// come in through a channel.
    fn sweep(&mut self) -> Result<(), Failure> {
        let labels = agent_labels(&self.service.home)?;
        tokio::spawn(list_issues(Arc::clone(&self.service), labels, self.found_sender.clone()));
        for work in self.service.store.works().or_general()? {
            if work.state != WorkState::Destroyed {
                self.queue.enqueue(&work.key, None);
            }
        }
        self.settle_rest()?;
        sign_statements(&Ui::log("statements"), &self.service.home);
        // A command in a comment is known by its delivery for longer than it is fresh.
        let days = u64::from(self.service.settings().delivery_days.max(2));
        let before = host::clock::now() - Duration::from_secs(days * 86_400);
        self.service.store.forget_deliveries(before).or_general()?;
        self.service.store.forget_notices(before).or_general()?;
        let Service { home, host, store, .. } = &*self.service;
        spawn_upkeep(home, Arc::clone(store), host, &self.holder.name);
        Ok(())
    }
}

/// Finds the open issues that are labelled for an agent of this home.
async fn list_issues(
    service: Arc<Service>,
    labels: BTreeSet<String>,
    found: mpsc::UnboundedSender<IssueKey>,
) {
    for repo in service.repos().all() {
        for label in &labels {
            let listed = match repo.shared_access(1, None).open().await {
                Ok(forge) => forge.list_open_issues(std::slice::from_ref(label)).await.or_general(),
                Err(failure) => Err(failure),
            };
            let outcome = listed.as_ref().map(|_| ());
            service.vitals.note_repository(&repo.full_name(), outcome);
            match listed {
                Ok(issues) => {
                    for issue in issues {
                        // The receiver is gone when the process ends.
                        drop(found.send(repo.issue(issue.number)));
                    }
                }
                Err(failure) => {
                    tracing::warn!(repo = repo.full_name(), %failure, "could not list issues");
                    break;
                }
            }
        }
    }
}

fn turn_is_lost() -> Failure {
    let words = "another server on this database has taken its turn; start this one again to wait for the next";
    Failure::new(BottleExit::General, words)
}

fn ticker(secs: u64) -> Interval {
    let mut ticker = interval(Duration::from_secs(secs.max(1)));
    ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticker
}

fn pause_after(tries: u32) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << tries.saturating_sub(1).min(10));
    doubled.min(LONGEST_PAUSE)
}
