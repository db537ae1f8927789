//! The reconciler: brings the work on each issue to what the forge asks for. One runs per home, on a thread of its own, so
//! that its database calls never hold up a webhook. Everything that a crash must not lose is on disk before it acts.
//!
//! It has two duties. Looking at issues and deciding about them is that of one server of a database at a time; running bottles
//! is that of every host with room. A worker only runs bottles.
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
//! - `removal` which host changes or removes a bottle
//! - `record` writes down how a worker ended
//! - `status` says on each issue how far its work is

mod act;
mod claim;
mod lease;
mod observe;
mod order;
mod queue;
mod record;
mod removal;
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
use self::queue::{TaskResult, WorkQueue};
use self::status::{StatusBoard, StatusResult};
use self::stop::{BusyWork, StopRequest};
use self::worker::{Job, JobResult};
use super::host_report::{leave_host, name_is_taken, new_holder, report_host};
use super::repos::agent_labels;
use super::settings::ServeSettings;
use super::turn::{end_earlier_turns, end_turn, hold_turn};
use super::vitals::VitalCounter;
use super::{Service, dispatch, notify};
use crate::exit::{Failure, OrGeneral};
use crate::flow::attestation::sign_statements;
use crate::flow::end::Loss;
use crate::flow::lease::{Lease, LeaseHolder, LeaseLoss};
use crate::flow::store_upkeep::spawn_upkeep;

/// Pause before the first retry; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// Interval of the checks for bottles of claimed items and for due waiting ones.
const TICK: Duration = Duration::from_millis(500);
/// Pause between the looks of a process that works on something and has not the turn.
const BUSY_PAUSE: Duration = Duration::from_secs(1);
/// The same of one that works on nothing; notifications make it shorter.
const QUIET_PAUSE: Duration = Duration::from_secs(4);
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
    /// Status comments, while this process has the turn.
    board: Option<StatusBoard>,
    /// Issues whose work has ended here since the last look at the events.
    ended_here: BTreeSet<IssueKey>,
    /// Time of the next look at the database that no event causes.
    next_look: Instant,
    /// Share of this process in spreading such looks of many hosts.
    quiet_share: Duration,
    /// Reason to end, once there is one.
    end: Option<Failure>,
}

/// Something that the reconciler acts on.
enum Event {
    /// A delivery was stored here, or another process has stored something.
    Arrived,
    Ended(JobResult),
    Observed(Box<TaskResult<IssueObservation>>),
    Found(IssueKey),
    Reloaded,
    Sweep,
    Renew,
    TakeOver,
    Written(StatusResult),
    Tick,
}

impl Event {
    /// True if it says only that time has passed.
    fn is_timer(&self) -> bool {
        matches!(self, Self::Tick | Self::TakeOver | Self::Renew)
    }
}

/// Times at which something is due.
struct Tickers {
    sweep: Interval,
    renew: Interval,
    takeover: Interval,
    tick: Interval,
}

impl Tickers {
    fn of(settings: &ServeSettings) -> Self {
        Self {
            sweep: ticker(Duration::from_secs(settings.sweep_secs)),
            renew: ticker(Duration::from_secs(settings.lease_secs.div_ceil(3))),
            takeover: ticker(TAKEOVER_TICK),
            tick: ticker(TICK),
        }
    }
}

async fn next_written(board: &mut Option<StatusBoard>) -> Option<StatusResult> {
    match board {
        Some(board) => board.next_written().await,
        None => None,
    }
}

impl Reconciler {
    /// A reconciler with a holder name that no earlier one had.
    pub(crate) fn new(service: Arc<Service>) -> Result<Self, Failure> {
        let holder = new_holder(&service)?;
        let share = u32::from_le_bytes(host::random::bytes().or_general()?) % 2_000;
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
            board: None,
            ended_here: BTreeSet::new(),
            next_look: Instant::now(),
            quiet_share: Duration::from_millis(u64::from(share)),
            end: None,
        })
    }

    /// Works until `stop`, then drains. Boxes that run longer than the drain continue without this process.
    pub(crate) async fn run(mut self, stop: Cancel) -> Result<(), Failure> {
        if !self.begin(&stop).await? {
            return Ok(());
        }
        let mut tickers = Tickers::of(&self.service.settings());
        while let Some(event) = self.next_event(&mut tickers, &stop).await {
            let is_timer = event.is_timer();
            let done = self.handle(event, &mut tickers, &stop).and_then(|()| self.check_turn());
            if let Some(end) = self.end.take() {
                return Err(end);
            }
            let done = match self.is_look_due(is_timer) {
                true => done.and_then(|()| self.look(is_timer)),
                false => done,
            };
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
        let left = match self.service.duties.looks {
            true => end_turn(&self.service, &self.holder),
            false => Ok(()),
        };
        let left = left.and_then(|()| leave_host(&self.service, &self.holder));
        drained.and(left)
    }

    /// Waits for the next thing to act on; `None` once it is to stop.
    async fn next_event(&mut self, tickers: &mut Tickers, stop: &Cancel) -> Option<Event> {
        let service = Arc::clone(&self.service);
        tokio::select! {
            _ = stop.cancelled() => None,
            () = service.arrived.notified() => Some(Event::Arrived),
            Some(result) = self.results.recv() => Some(Event::Ended(result)),
            Some(finished) = self.queue.next_finished() => Some(Event::Observed(Box::new(finished))),
            Some(key) = self.found.recv() => Some(Event::Found(key)),
            () = service.reloaded.notified() => Some(Event::Reloaded),
            _ = tickers.sweep.tick() => Some(Event::Sweep),
            _ = tickers.renew.tick() => Some(Event::Renew),
            _ = tickers.takeover.tick() => Some(Event::TakeOver),
            Some(written) = next_written(&mut self.board) => Some(Event::Written(written)),
            _ = tickers.tick.tick() => Some(Event::Tick),
        }
    }

    fn handle(
        &mut self,
        event: Event,
        tickers: &mut Tickers,
        stop: &Cancel,
    ) -> Result<(), Failure> {
        match event {
            Event::Arrived | Event::Tick => Ok(()),
            Event::Ended(result) => self.record_outcome(result),
            Event::Observed(finished) => self.handle_observation(*finished),
            Event::Found(key) => {
                self.queue.enqueue(&key, None);
                Ok(())
            }
            Event::Reloaded => {
                self.budget_changed = true;
                // The first tick of a new ticker comes at once.
                *tickers = Tickers::of(&self.service.settings());
                Ok(())
            }
            Event::Sweep => self.sweep(),
            Event::Renew => self.renew(),
            Event::TakeOver => {
                if self.board.is_none() && self.try_turn(stop)? {
                    tickers.sweep.reset_immediately();
                }
                self.take_over_expired()
            }
            Event::Written(written) => {
                if let Some(board) = &mut self.board {
                    board.finish(written);
                }
                Ok(())
            }
        }
    }

    /// True if the database is to be read now. A process that has the turn or a box does so with every tick; others wait for
    /// a notification, and look from time to time because it may be lost.
    fn is_look_due(&mut self, is_timer: bool) -> bool {
        let now = Instant::now();
        if is_timer && self.board.is_none() && now < self.next_look {
            return false;
        }
        let pause = match self.busy.is_empty() {
            true => QUIET_PAUSE + self.quiet_share,
            false => BUSY_PAUSE,
        };
        self.next_look = now + pause;
        true
    }

    /// Does what is due by the database: what users ask for and claims; upkeep and status comments from time to time.
    fn look(&mut self, is_timer: bool) -> Result<(), Failure> {
        if is_timer {
            self.maintain()?;
            self.update_board()?;
        }
        self.read_inbox()?;
        self.claim()
    }

    /// Reads the events of all hosts, and writes the comments that are due.
    fn update_board(&mut self) -> Result<(), Failure> {
        let Some(board) = &mut self.board else { return Ok(()) };
        board.add(std::mem::take(&mut self.changed));
        for event in board.update(&self.service)? {
            // People may have commented while it ran on another host.
            let is_own = self.ended_here.remove(&event.key);
            if self.holder.is_shared && !event.state.is_held() && !is_own {
                self.queue.enqueue(&event.key, None);
            }
        }
        Ok(())
    }

    async fn drain(&mut self) -> Result<(), Failure> {
        let end = Instant::now() + Duration::from_secs(self.service.settings().drain_secs);
        tracing::info!(running = self.busy.len(), "stopping: no new work is started");
        let mut renew = ticker(Duration::from_secs(self.service.settings().lease_secs.div_ceil(3)));
        while !self.busy.is_empty() {
            tokio::select! {
                () = sleep_until(end) => {
                    let left = self.busy.len();
                    tracing::info!(left, "the remaining boxes continue and are found at the next start");
                    return Ok(());
                }
                Some(result) = self.results.recv() => self.record_outcome(result)?,
                _ = renew.tick() => self.renew_leases()?,
            }
        }
        Ok(())
    }

    /// Continues what an earlier process of this home left; tries again for a while where the database fails: the server
    /// listens already, and deliveries are kept. False if it was stopped before.
    async fn begin(&mut self, stop: &Cancel) -> Result<bool, Failure> {
        let end = Instant::now() + START_PATIENCE;
        loop {
            let begun = self.begin_once(stop);
            match begun {
                _ if stop.reason().is_some() => return Ok(false),
                Ok(()) => return Ok(true),
                Err(failure) if Instant::now() < end && self.end.is_none() => {
                    tracing::error!(%failure, "reconciling failed; trying again");
                    tokio::time::sleep(DATABASE_PAUSE).await;
                }
                Err(failure) => return Err(self.end.take().unwrap_or(failure)),
            }
        }
    }

    fn begin_once(&mut self, stop: &Cancel) -> Result<(), Failure> {
        self.report_host()?;
        if self.service.duties.looks {
            end_earlier_turns(&self.service, &self.holder)?;
            if !self.try_turn(stop)? {
                tracing::info!(
                    "another server on this database reconciles; this one waits for its turn"
                );
            }
        }
        self.take_over()
    }

    /// Takes the turn if it is free, and begins to look; false while another server has it.
    fn try_turn(&mut self, stop: &Cancel) -> Result<bool, Failure> {
        if !self.service.duties.looks || !hold_turn(&self.service, &self.holder, self.lease())? {
            return Ok(false);
        }
        if self.board.is_none() {
            tracing::info!("this server reconciles");
            let board = StatusBoard::open(&self.service)?;
            for work in self.service.store.works().or_general()? {
                self.queue.enqueue(&work.key, None);
            }
            let found = self.found_sender.clone();
            tokio::spawn(dispatch::run(Arc::clone(&self.service), found, stop.clone()));
            tokio::spawn(notify::run(Arc::clone(&self.service), stop.clone()));
            self.board = Some(board);
        }
        Ok(true)
    }

    /// Continues the work of an earlier process. The lock on the home proves that it is gone, so its claims are free.
    fn take_over(&mut self) -> Result<(), Failure> {
        let asked_at = host::clock::boottime();
        let store = Arc::clone(&self.service.store);
        let taken = store.take_over_host(&self.holder.name, self.lease()).or_general()?;
        self.read_stops(&taken)?;
        for work in taken {
            // A second try sees what the first one has taken.
            if !self.busy.contains_key(&work.key) {
                tracing::info!(issue = %work.key, state = %work.state, "taken over");
                self.start_job(Job::Run(Box::new(work)), asked_at);
            }
        }
        Ok(())
    }

    /// Renews everything that this process holds: its turn, its name and its leases.
    fn renew(&mut self) -> Result<(), Failure> {
        if self.board.is_some() {
            self.renew_turn()?;
        }
        let renewed = self.renew_leases();
        if renewed.is_err() {
            self.service.vitals.count(VitalCounter::Leases, "renewal-failed");
        }
        renewed.and_then(|()| self.report_host())
    }

    /// Renews the lease of the turn if it has ended here, as after a sleep of the machine.
    fn check_turn(&mut self) -> Result<(), Failure> {
        match self.board.is_none() || self.service.turn.is_ours() {
            true => Ok(()),
            false => self.renew_turn(),
        }
    }

    fn renew_turn(&mut self) -> Result<(), Failure> {
        if !hold_turn(&self.service, &self.holder, self.lease())? {
            self.end = Some(turn_is_lost());
        }
        Ok(())
    }

    /// Reports this host. Another process under its name ends this one.
    fn report_host(&mut self) -> Result<(), Failure> {
        let reported = report_host(&self.service, &self.holder, self.busy.len(), self.lease());
        if let Err(failure) = reported? {
            self.end = Some(failure);
            return Err(name_is_taken());
        }
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
                    Err(DbError::Fenced { .. }) => {
                        drop(lease.note_refused(LeaseLoss::RefusedByDatabase));
                    }
                    stepped => work.state = stepped.or_general()?,
                }
            }
        }
        for work in store.works_to_maintain(&self.holder.name).or_general()? {
            if self.busy.contains_key(&work.key) {
                continue;
            }
            if work.state.is_held() {
                self.restart(&work)?;
            } else if self.is_ours_to_destroy(&work)? {
                let job = Job::Destroy { work: Box::new(work), loss: Loss::Refused };
                self.start_job(job, host::clock::boottime());
            }
        }
        Ok(())
    }

    /// Cleans up in this home; with the turn, enqueues every item and looks for issues whose webhook was lost. Forges answer
    /// slowly, so the issues come in through a channel.
    fn sweep(&mut self) -> Result<(), Failure> {
        self.settle_rest()?;
        sign_statements(&Ui::log("statements"), &self.service.home);
        if self.board.is_none() {
            return Ok(());
        }
        let labels = agent_labels(&self.service.home)?;
        tokio::spawn(list_issues(Arc::clone(&self.service), labels, self.found_sender.clone()));
        for work in self.service.store.works().or_general()? {
            if work.state != WorkState::Destroyed {
                self.queue.enqueue(&work.key, None);
            }
        }
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

fn ticker(pause: Duration) -> Interval {
    let mut ticker = interval(pause);
    ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticker
}

fn pause_after(tries: u32) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << tries.saturating_sub(1).min(10));
    doubled.min(LONGEST_PAUSE)
}
