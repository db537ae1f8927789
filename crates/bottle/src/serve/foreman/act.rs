//! What came in, what was seen, and what is done about it.

use std::time::Duration;

use orchestrator_db::{
    About, Delivery, ForgeStateStore, IssueKey, WorkItem, WorkNote, WorkRequest, WorkState,
    WorkStep,
};
use tokio::task::JoinError;

use super::rounds::{Looked, Wanted};
use super::{Foreman, name};
use crate::exit::{Failure, OrExit};
use crate::flow::bottle::Bottle;
use crate::flow::end::{End, Loss, tell_agent};
use crate::rules::lookout::{Move, next_move};
use crate::serve::PAGE_SOURCE;
use crate::serve::look::Seen;
use crate::serve::worker::{Task, find_slug};

/// So much of the inbox is read at once.
const INBOX_PAGE: usize = 500;

/// What became of a delivery.
enum Obeyed {
    /// All of it is done.
    Done,
    /// It was taken up and is done with when the issue was looked at.
    NotYet,
    /// It must be taken up again.
    Later,
}

/// What became of a look.
enum Acted {
    /// It was acted on.
    Done,
    /// The work has gone on since.
    TooLate,
}

impl Foreman {
    /// Takes up what came in.
    pub(super) fn read_inbox(&mut self) -> Result<(), Failure> {
        let waiting = self.service.store.unhandled_deliveries(INBOX_PAGE).or_general()?;
        let mut done = Vec::new();
        for delivery in waiting {
            if !self.rounds.take_up(delivery.seq) {
                continue;
            }
            let taken_up = match self.issue_of(&delivery) {
                Ok(Some(key)) if delivery.source == PAGE_SOURCE => self.obey(&key, &delivery),
                Ok(Some(key)) => {
                    self.rounds.want(&key, Some(&delivery));
                    Ok(Obeyed::NotYet)
                }
                // A pull request of somebody else's, or a repository that is not served any more.
                Ok(None) => Ok(Obeyed::Done),
                Err(failure) => Err(failure),
            };
            match taken_up {
                Ok(Obeyed::Done) => done.push(delivery.seq),
                Ok(Obeyed::NotYet) => {}
                Ok(Obeyed::Later) => self.rounds.let_go(&[delivery.seq]),
                Err(failure) => {
                    self.rounds.let_go(&[delivery.seq]);
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
        let marked = self.service.store.mark_handled(deliveries).or_general();
        // What a full disk kept from being marked is still in the inbox, and has to be taken up again.
        self.rounds.let_go(deliveries);
        marked
    }

    /// Acts on what was seen, or has it looked at again.
    pub(super) fn heard(
        &mut self,
        brought: Result<(IssueKey, Result<Seen, Failure>), JoinError>,
    ) -> Result<(), Failure> {
        let Some(Looked { key, wanted, seen }) = self.rounds.came_back(brought) else {
            return Ok(());
        };
        match seen.and_then(|seen| self.act(&key, &seen, &wanted)) {
            Ok(Acted::Done) => self.done_with(&wanted.deliveries),
            Ok(Acted::TooLate) => {
                self.rounds.put_back(&key, wanted);
                Ok(())
            }
            Err(failure) => {
                let tries = self.rounds.put_off(&key, wanted, &failure);
                tracing::warn!(issue = %name(&key), %failure, tries, "could not be looked at");
                Ok(())
            }
        }
    }

    fn act(&self, key: &IssueKey, seen: &Seen, wanted: &Wanted) -> Result<Acted, Failure> {
        let store = &self.service.store;
        // It may have gone on while it was being looked at; then it is looked at once more.
        let work = store.work(key).or_general()?;
        if work.as_ref().map(|work| work.state) != seen.sight.work.map(|work| work.state) {
            return Ok(Acted::TooLate);
        }
        let trigger = wanted.trigger.clone();
        let next = next_move(&seen.sight);
        if next != Move::Rest {
            tracing::info!(issue = %name(key), decided = ?next, "looked at");
        }
        match (next, work) {
            (Move::Start { agent, bottles }, _) => {
                let reason = format!("assigned, and labelled for '{agent}'");
                let request = WorkRequest::Start { agent, bottles };
                let note = WorkNote { trigger, ..WorkNote::because(reason) };
                store.add_work(key, &seen.title, &request, &note).or_general()?;
            }
            (Move::Resume { reason }, Some(work)) => {
                let request = Some(WorkRequest::Resume { prompt: None });
                let note =
                    WorkNote { request, trigger, attempts: Some(0), ..WorkNote::because(reason) };
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
        Ok(Acted::Done)
    }

    fn end_agent(&self, work: &WorkItem, reason: &str) -> Result<(), Failure> {
        let Some(slug) = find_slug(&self.service, work)? else { return Ok(()) };
        let (bottle, record) = Bottle::open(&self.service.home, &slug)?;
        if let Some(dir) = bottle.last_run(&record)?.filter(|dir| !dir.is_closed()) {
            tracing::info!(issue = %name(&work.key), reason, "its agent is told to end");
            tell_agent(&dir, End::Freeze)?;
        }
        Ok(())
    }

    fn retire(&self, work: &WorkItem, reason: &str) -> Result<(), Failure> {
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
                    request: work.slug.is_some().then_some(WorkRequest::Resume { prompt }),
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
                // Whoever comes after a crash still knows that it is to go.
                store.set_destroy_at(key, Some(host::clock::now())).or_general()?;
                self.hand_out(Task::Destroy { work: Box::new(work), loss: Loss::Accepted });
            }
            _ => {}
        }
        Ok(Obeyed::Done)
    }
}
