//! The foreman: looks at the issues that somebody should look at, decides, and has bottles run. There is one per home, and
//! everything it must not forget is in the store before it acts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use forge::IssueFilter;
use host::signal::Cancel;
use jiff::Timestamp;
use state::{
    About, Delivery, Errand, ForgeStateStore, IssueKey, StateError, Work, WorkNote, WorkState,
    WorkStep,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::Service;
use super::look::{Seen, look};
use super::repos::agent_labels;
use super::worker::{self, Ended, Outcome, Task, find_slug};
use crate::exit::{Failure, OrExit};
use crate::flow::attestation::settle_statements;
use crate::flow::bottle::Bottle;
use crate::flow::end::{End, Loss, tell_agent};
use crate::rules::ending::Next;
use crate::rules::lookout::{Move, next_move};
use crate::serve::PAGE_SOURCE;
use crate::ui::Ui;

/// So many looks are under way at once.
const LOOKS_MAX: usize = 8;
/// A forge that does not answer is asked again after this, then twice that, and so on.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// Trouble that did not pass after so many tries is a person's.
const PASSING_TRIES: u32 = 40;
/// The machine may fail so often in a row.
const MACHINE_TRIES: u32 = 3;
/// So much of the inbox is read at once.
const INBOX_PAGE: usize = 500;
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
    wanted: BTreeMap<IssueKey, Wanted>,
    /// Deliveries that were taken up and are not done with.
    taken: BTreeSet<u64>,
    looks: JoinSet<(IssueKey, Result<Seen, Failure>)>,
    looking: BTreeSet<IssueKey>,
    /// What workers have in hand.
    busy: BTreeMap<IssueKey, Work>,
    endings: mpsc::UnboundedReceiver<Ended>,
    ended: mpsc::UnboundedSender<Ended>,
    /// Endings that could not be written down yet.
    unsettled: Vec<Ended>,
}

/// What became of a delivery.
enum Obeyed {
    /// All of it is done.
    Done,
    /// It was taken up and is done with when the issue was looked at.
    NotYet,
    /// It must be taken up again.
    Later,
}

/// Why an issue is looked at, and from when on.
struct Wanted {
    deliveries: Vec<u64>,
    /// The sender's name for the newest of them.
    trigger: Option<String>,
    due: Instant,
    tries: u32,
}

impl Foreman {
    /// A foreman under a name that nobody else has.
    pub(crate) fn new(service: Arc<Service>, holder: String) -> Self {
        let (ended, endings) = mpsc::unbounded_channel();
        Self {
            service,
            holder,
            wanted: BTreeMap::new(),
            taken: BTreeSet::new(),
            looks: JoinSet::new(),
            looking: BTreeSet::new(),
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
                Some(seen) = self.looks.join_next() => self.heard(seen),
                _ = sweep.tick() => self.sweep().await,
                _ = renew.tick() => self.renew(),
                _ = beat.tick() => self.look_after(),
            };
            let done = done.and_then(|()| self.read_inbox()).and_then(|()| self.claim());
            self.send_out_looks();
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
            self.hand_out(work);
        }
        for work in self.service.store.works().or_general()? {
            self.want(&work.key, None);
        }
        Ok(())
    }

    fn lease(&self) -> Duration {
        Duration::from_secs(self.service.settings.lease_secs)
    }

    fn renew(&self) -> Result<(), Failure> {
        self.service.store.renew_leases(&self.holder, self.lease()).or_general().map(drop)
    }

    /// Takes up what came in.
    fn read_inbox(&mut self) -> Result<(), Failure> {
        let waiting = self.service.store.unhandled_deliveries(INBOX_PAGE).or_general()?;
        let mut done = Vec::new();
        for delivery in waiting {
            if !self.taken.insert(delivery.seq) {
                continue;
            }
            let taken_up = match self.issue_of(&delivery) {
                Ok(Some(key)) if delivery.source == PAGE_SOURCE => self.obey(&key, &delivery),
                Ok(Some(key)) => {
                    self.want(&key, Some(&delivery));
                    Ok(Obeyed::NotYet)
                }
                // A pull request of somebody else's, or a repository that is not served any more.
                Ok(None) => Ok(Obeyed::Done),
                Err(failure) => Err(failure),
            };
            match taken_up {
                Ok(Obeyed::Done) => done.push(delivery.seq),
                Ok(Obeyed::NotYet) => {}
                Ok(Obeyed::Later) => drop(self.taken.remove(&delivery.seq)),
                Err(failure) => {
                    self.taken.remove(&delivery.seq);
                    self.done_with(&done)?;
                    return Err(failure);
                }
            }
        }
        self.done_with(&done)
    }

    /// The issue that a delivery is about. Of a pull request it is known here which one it came from.
    fn issue_of(&self, delivery: &Delivery) -> Result<Option<IssueKey>, Failure> {
        let Some(repo) = self.service.repos.find(&delivery.owner, &delivery.repo) else {
            return Ok(None);
        };
        match delivery.about {
            About::Issue(number) => Ok(Some(repo.issue(number))),
            About::Pull(number) => {
                let mut known = self.service.store.all().or_general()?.into_iter();
                let ours = known.find(|state| {
                    repo.is(&state.key.owner, &state.key.repo) && state.pr_number == Some(number)
                });
                Ok(ours.map(|state| state.key))
            }
        }
    }

    fn done_with(&mut self, deliveries: &[u64]) -> Result<(), Failure> {
        if deliveries.is_empty() {
            return Ok(());
        }
        self.service.store.mark_handled(deliveries).or_general()?;
        for seq in deliveries {
            self.taken.remove(seq);
        }
        Ok(())
    }

    /// Says that an issue should be looked at.
    fn want(&mut self, key: &IssueKey, delivery: Option<&Delivery>) {
        let wanted = self.wanted.entry(key.clone()).or_insert_with(|| Wanted {
            deliveries: Vec::new(),
            trigger: None,
            due: Instant::now(),
            tries: 0,
        });
        if let Some(delivery) = delivery {
            wanted.deliveries.push(delivery.seq);
            wanted.trigger = Some(delivery.id.clone());
            // News may mean that the forge is there again.
            wanted.due = wanted.due.min(Instant::now() + FIRST_PAUSE);
        }
    }

    fn send_out_looks(&mut self) {
        let now = Instant::now();
        let due: Vec<IssueKey> = self
            .wanted
            .iter()
            .filter(|(key, wanted)| wanted.due <= now && !self.looking.contains(*key))
            .map(|(key, _)| key.clone())
            .take(LOOKS_MAX.saturating_sub(self.looking.len()))
            .collect();
        for key in due {
            self.looking.insert(key.clone());
            // What comes from now on may not be in what is seen, so it is for the next look.
            let service = Arc::clone(&self.service);
            self.looks.spawn(async move {
                let seen = look(&service, &key).await;
                (key, seen)
            });
        }
    }

    /// Acts on what was seen, or looks again later.
    fn heard(
        &mut self,
        seen: Result<(IssueKey, Result<Seen, Failure>), tokio::task::JoinError>,
    ) -> Result<(), Failure> {
        let Ok((key, seen)) = seen else {
            // A look that panicked: whatever it was about is still wanted.
            self.looking.clear();
            return Ok(());
        };
        self.looking.remove(&key);
        let seen = match seen {
            Ok(seen) => seen,
            Err(failure) => {
                self.look_again(&key, &failure);
                return Ok(());
            }
        };
        if let Err(failure) = self.act(&key, &seen) {
            self.look_again(&key, &failure);
            return Err(failure);
        }
        let wanted = self.wanted.remove(&key);
        self.done_with(&wanted.map(|wanted| wanted.deliveries).unwrap_or_default())
    }

    fn look_again(&mut self, key: &IssueKey, failure: &Failure) {
        let Some(wanted) = self.wanted.get_mut(key) else { return };
        wanted.tries += 1;
        let pause = pause_after(wanted.tries);
        let told =
            failure.until().map(|until| until.duration_since(host::clock::now()).unsigned_abs());
        wanted.due = Instant::now() + told.unwrap_or(pause).max(pause);
        tracing::warn!(issue = %name(key), %failure, tries = wanted.tries, "could not be looked at");
    }

    fn act(&mut self, key: &IssueKey, seen: &Seen) -> Result<(), Failure> {
        let store = &self.service.store;
        // It may have gone on while it was being looked at; then it is looked at once more.
        let work = store.work(key).or_general()?;
        if work.as_ref().map(|work| work.state) != seen.sight.work.map(|work| work.state) {
            self.want(key, None);
            return Ok(());
        }
        let trigger = self.wanted.get(key).and_then(|wanted| wanted.trigger.clone());
        let next = next_move(&seen.sight);
        if next != Move::Rest {
            tracing::info!(issue = %name(key), decided = ?next, "looked at");
        }
        match (next, work) {
            (Move::Start { agent, bottles }, _) => {
                let reason = format!("assigned, and labelled for '{agent}'");
                let errand = Errand::Start { agent, bottles };
                let note = WorkNote { trigger, ..WorkNote::because(reason) };
                store.add_work(key, &seen.title, &errand, &note).or_general()?;
            }
            (Move::Resume { reason }, Some(work)) => {
                let errand = Some(Errand::Resume { prompt: None });
                let note =
                    WorkNote { errand, trigger, attempts: Some(0), ..WorkNote::because(reason) };
                store.step_work(key, work.fence, WorkStep::Queue, &note).or_general()?;
            }
            (Move::EndAgent { reason }, Some(work)) => self.end_agent(&work, &reason)?,
            (Move::Retire { reason }, Some(work)) => self.retire(&work, &reason)?,
            (Move::Keep, Some(_)) => store.set_destroy_at(key, None).or_general()?,
            (Move::Withdraw { reason }, Some(work)) => {
                let note = WorkNote::because(reason);
                store.step_work(key, work.fence, WorkStep::Destroy, &note).or_general()?;
            }
            (Move::Forget, Some(_)) => store.forget_work(key).or_general()?,
            (Move::Rest, _) | (_, None) => {}
        }
        Ok(())
    }

    fn end_agent(&self, work: &Work, reason: &str) -> Result<(), Failure> {
        let Some(slug) = find_slug(&self.service, work)? else { return Ok(()) };
        let (bottle, record) = Bottle::open(&self.service.home, &slug)?;
        if let Some(dir) = bottle.last_run(&record)?.filter(|dir| !dir.is_closed()) {
            tracing::info!(issue = %name(&work.key), reason, "its agent is told to end");
            tell_agent(&dir, End::Freeze)?;
        }
        Ok(())
    }

    fn retire(&self, work: &Work, reason: &str) -> Result<(), Failure> {
        let days = self.service.settings.retention_days;
        let at = host::clock::now() + Duration::from_secs(u64::from(days) * 86_400);
        let store = &self.service.store;
        store.set_destroy_at(&work.key, Some(at)).or_general()?;
        if matches!(work.state, WorkState::Queued | WorkState::Waiting) {
            let note = WorkNote::because(reason);
            store.step_work(&work.key, work.fence, WorkStep::CallPerson, &note).or_general()?;
        }
        tracing::info!(issue = %name(&work.key), reason, %at, "its bottle goes then");
        Ok(())
    }

    /// Does what a person asked for on the page. What cannot be done yet stays in the inbox.
    fn obey(&mut self, key: &IssueKey, delivery: &Delivery) -> Result<Obeyed, Failure> {
        let store = &self.service.store;
        let Some(work) = store.work(key).or_general()? else { return Ok(Obeyed::Done) };
        match delivery.event.as_str() {
            "freeze" => self.end_agent(&work, "a person froze it")?,
            "resume" if !work.state.is_held() && work.state != WorkState::Destroyed => {
                let body = store.delivery_body(delivery.seq).or_general()?;
                let prompt = String::from_utf8_lossy(&body).trim().to_owned();
                let prompt = Some(prompt).filter(|prompt| !prompt.is_empty());
                let note = WorkNote {
                    errand: work.slug.is_some().then_some(Errand::Resume { prompt }),
                    attempts: Some(0),
                    ..WorkNote::because("a person resumed it")
                };
                store.step_work(key, work.fence, WorkStep::Queue, &note).or_general()?;
                store.set_destroy_at(key, None).or_general()?;
            }
            "destroy" if self.busy.contains_key(key) => {
                self.end_agent(&work, "a person destroys it")?;
                return Ok(Obeyed::Later);
            }
            "destroy" => {
                let task = Task::Destroy { work: Box::new(work.clone()), loss: Loss::Accepted };
                self.busy.insert(key.clone(), work);
                worker::start(&self.service, task, self.ended.clone());
            }
            _ => {}
        }
        Ok(Obeyed::Done)
    }

    /// Claims work while there is room. The claim is on disk before anything is started.
    fn claim(&mut self) -> Result<(), Failure> {
        while self.busy.len() < self.service.settings.max_bottles {
            let claimed = self.service.store.claim_work(&self.holder, self.lease()).or_general()?;
            let Some(work) = claimed else { return Ok(()) };
            host::failpoint::hit("claimed");
            self.hand_out(work);
        }
        Ok(())
    }

    fn hand_out(&mut self, work: Work) {
        self.busy.insert(work.key.clone(), work.clone());
        worker::start(&self.service, Task::Run(Box::new(work)), self.ended.clone());
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
            let running = known.filter(|known| known.status == state::BottleStatus::Running);
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
                self.hand_out(work);
                continue;
            }
            let is_due = work.destroy_at.is_some_and(|at| at <= now);
            let is_free = !work.state.is_held() && !self.busy.contains_key(&work.key);
            if is_due && is_free && work.state != WorkState::Destroyed {
                self.busy.insert(work.key.clone(), work.clone());
                let task = Task::Destroy { work: Box::new(work), loss: Loss::Refused };
                worker::start(&self.service, task, self.ended.clone());
            }
        }
        Ok(())
    }

    /// Writes down how a worker ended, and looks at the issue again: much may have been said in the meantime.
    fn settle(&mut self, ended: Ended) -> Result<(), Failure> {
        let written = self.write_down(&ended);
        if written.is_err() {
            self.unsettled.push(ended);
        }
        written
    }

    fn write_down(&mut self, ended: &Ended) -> Result<(), Failure> {
        let Ended { key, fence, slug, outcome } = ended;
        let Some(work) = self.busy.get(key) else { return Ok(()) };
        let note = |reason: String| WorkNote { slug: slug.clone(), ..WorkNote::because(reason) };
        let resume = Some(Errand::Resume { prompt: None }).filter(|_| slug.is_some());
        let (step, note) = match outcome {
            Outcome::Closed(Next::Freeze { reason }) => {
                (WorkStep::Freeze, WorkNote { attempts: Some(0), ..note(reason.clone()) })
            }
            Outcome::Closed(Next::Wait { until, reason }) => (
                WorkStep::Wait,
                WorkNote { not_before: Some(*until), errand: resume, ..note(reason.clone()) },
            ),
            Outcome::Closed(Next::Retry { reason }) if work.attempts < MACHINE_TRIES => {
                (WorkStep::Wait, WorkNote { errand: resume, ..later(work, note(reason.clone())) })
            }
            Outcome::Closed(Next::Retry { reason } | Next::CallPerson { reason }) => {
                (WorkStep::CallPerson, note(reason.clone()))
            }
            Outcome::Failed(failure) if failure.passes() && work.attempts < PASSING_TRIES => {
                let words = later(work, note(failure.to_string()));
                (
                    WorkStep::Wait,
                    WorkNote { not_before: failure.until().or(words.not_before), ..words },
                )
            }
            Outcome::Failed(failure) => (WorkStep::CallPerson, note(failure.to_string())),
            Outcome::Destroyed => (WorkStep::Destroy, note("its bottle is gone".to_owned())),
            Outcome::Kept(failure) => {
                self.service.store.set_destroy_at(key, None).or_general()?;
                (WorkStep::CallPerson, note(format!("its bottle was kept: {failure}")))
            }
        };
        let reason = note.reason.clone();
        match self.service.store.step_work(key, *fence, step, &note) {
            Ok(state) => tracing::info!(issue = %name(key), %state, reason, "ended"),
            // Whoever took it over goes on from what is on disk.
            Err(StateError::Fenced { .. }) => tracing::warn!(issue = %name(key), "was taken over"),
            Err(error) => return Err(error).or_general(),
        }
        host::failpoint::hit("settled");
        self.busy.remove(key);
        self.want(key, None);
        Ok(())
    }

    /// Looks over every repository for issues whose webhook never came, and at everything that is under way.
    async fn sweep(&mut self) -> Result<(), Failure> {
        let labels = agent_labels(&self.service.home)?;
        let service = Arc::clone(&self.service);
        for repo in service.repos.all() {
            for label in &labels {
                let filter = IssueFilter { labels: vec![label.clone()], assignee: None };
                let listed = match repo.open().await {
                    Ok(forge) => forge.list_open_issues(&filter).await.or_general(),
                    Err(failure) => Err(failure),
                };
                match listed {
                    Ok(issues) => {
                        for issue in issues {
                            self.want(&repo.issue(issue.number), None);
                        }
                    }
                    Err(failure) => {
                        tracing::warn!(repo = repo.full_name(), %failure, "could not be looked over");
                        break;
                    }
                }
            }
        }
        for work in self.service.store.works().or_general()? {
            if work.state != WorkState::Destroyed {
                self.want(&work.key, None);
            }
        }
        settle_statements(&Ui::log("statements"), &self.service.home);
        let days = u64::from(self.service.settings.delivery_days);
        let before = host::clock::now() - Duration::from_secs(days * 86_400);
        self.service.store.forget_deliveries(before).or_general()?;
        Ok(())
    }
}

/// The same note, to be tried again after a while.
fn later(work: &Work, note: WorkNote) -> WorkNote {
    let attempts = work.attempts + 1;
    let until: Timestamp = host::clock::now() + pause_after(attempts);
    WorkNote { not_before: Some(until), attempts: Some(attempts), ..note }
}

fn pause_after(tries: u32) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << tries.saturating_sub(1).min(10));
    doubled.min(LONGEST_PAUSE)
}

/// An issue as people write it.
fn name(key: &IssueKey) -> String {
    format!("{}/{}#{}", key.owner, key.repo, key.issue_number)
}
