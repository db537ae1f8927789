//! Carries out decisions, and the actions of users.

use std::time::Duration;

use orchestrator_db::{
    About, Delivery, DeliveryInsert, ForgeStateStore, IssueKey, WorkItem, WorkNote, WorkRequest,
    WorkState, WorkStep,
};

use super::Reconciler;
use super::observe::{ChecksSeen, IssueObservation, find_bottle};
use super::order::hold_note;
use super::queue::{Finished, PendingIssue, TaskResult};
use super::worker::Job;
use crate::exit::{Failure, OrGeneral};
use crate::flow::bottle::{Bottle, PlanStage, Record};
use crate::flow::end::{End, Loss, signal_agent};
use crate::flow::run_record::load_run;
use crate::rules::command::CommentCommand;
use crate::rules::decide::{Action, decide};
use crate::rules::judge::Verdict;
use crate::rules::order::Turn;
use crate::rules::plan_text::APPROVED_PROMPT;
use crate::serve::vitals::VitalCounter;
use crate::serve::{COMMENT_SOURCE, PAGE_SOURCE};

/// Deliveries that one read of the inbox returns.
const INBOX_PAGE: usize = 500;

enum DeliveryProgress {
    Handled,
    /// It is handled once its issue was reconciled.
    Queued,
    /// It must be read again later.
    Postponed,
}

enum Reconciled {
    Done,
    /// The work item changed after it was observed.
    Stale,
}

impl Reconciler {
    /// Reads unhandled deliveries: enqueues the issues of webhooks, and carries out the actions of users.
    pub(super) fn read_inbox(&mut self) -> Result<(), Failure> {
        let unhandled = self.service.store.unhandled_deliveries(INBOX_PAGE).or_general()?;
        let mut handled = Vec::new();
        for delivery in unhandled {
            if !self.queue.accept(delivery.seq) {
                continue;
            }
            match self.handle_delivery(&delivery) {
                Ok(DeliveryProgress::Handled) => handled.push(delivery.seq),
                Ok(DeliveryProgress::Queued) => {}
                Ok(DeliveryProgress::Postponed) => self.queue.release(&[delivery.seq]),
                Err(failure) => {
                    self.queue.release(&[delivery.seq]);
                    self.mark_handled(&handled)?;
                    return Err(failure);
                }
            }
        }
        self.mark_handled(&handled)
    }

    fn handle_delivery(&mut self, delivery: &Delivery) -> Result<DeliveryProgress, Failure> {
        match self.issue_of(delivery)? {
            Some(key) if [PAGE_SOURCE, COMMENT_SOURCE].contains(&delivery.source.as_str()) => {
                self.act_for_user(&key, delivery)
            }
            Some(key) => {
                self.queue.enqueue(&key, Some(delivery));
                Ok(DeliveryProgress::Queued)
            }
            // A pull request of another author, or a repository that is not served any more.
            None => Ok(DeliveryProgress::Handled),
        }
    }

    /// The issue that a delivery names. The forge states know the issue of each pull request of a bottle.
    fn issue_of(&self, delivery: &Delivery) -> Result<Option<IssueKey>, Failure> {
        let repos = self.service.repos();
        let Some(repo) = repos.find(&delivery.owner, &delivery.repo) else {
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

    fn mark_handled(&mut self, deliveries: &[u64]) -> Result<(), Failure> {
        if deliveries.is_empty() {
            return Ok(());
        }
        let marked = self.service.store.mark_handled(deliveries).or_general();
        // Deliveries that a full disk kept from being marked are still in the inbox, and must be read again.
        self.queue.release(deliveries);
        marked
    }

    /// Acts on a finished observation, or enqueues its issue again.
    pub(super) fn handle_observation(
        &mut self,
        finished: TaskResult<IssueObservation>,
    ) -> Result<(), Failure> {
        let Some(Finished { key, entry, observed }) = self.queue.finish(finished) else {
            return Ok(());
        };
        let vitals = &self.service.vitals;
        let result = if observed.is_ok() { "ok" } else { "failed" };
        vitals.count(VitalCounter::Observations, result);
        if let Err(failure) = &observed
            && failure.forge().is_some()
        {
            vitals.note_repository(&format!("{}/{}", key.owner, key.repo), Err(failure));
        }
        let checks = observed.as_ref().ok().map(|observed| observed.checks.clone());
        let reconciled = observed.and_then(|observed| {
            if !observed.state.is_open {
                self.enqueue_followers(&key)?;
            }
            self.act(&key, &observed, &entry)
        });
        match reconciled {
            Ok(Reconciled::Done) => {
                self.note_checks(&key, checks, &entry);
                self.mark_handled(&entry.deliveries)
            }
            Ok(Reconciled::Stale) => {
                self.queue.requeue(&key, entry);
                Ok(())
            }
            Err(failure) => {
                let tries = self.queue.requeue_after(&key, entry, &failure);
                tracing::warn!(issue = %key, %failure, tries, "could not be reconciled");
                Ok(())
            }
        }
    }

    /// Enqueues a look at the checks if they may matter, or remembers that they have passed.
    fn note_checks(&mut self, key: &IssueKey, seen: Option<ChecksSeen>, entry: &PendingIssue) {
        match seen {
            Some(ChecksSeen::Due { head }) => {
                if entry.also_checks() || self.green.get(key) != Some(&head) {
                    self.queue.enqueue_checks(key);
                }
            }
            Some(ChecksSeen::Green { head }) => drop(self.green.insert(key.clone(), head)),
            Some(ChecksSeen::Open) => drop(self.green.remove(key)),
            Some(ChecksSeen::NotRead) | None => {}
        }
    }

    fn act(
        &self,
        key: &IssueKey,
        observed: &IssueObservation,
        entry: &PendingIssue,
    ) -> Result<Reconciled, Failure> {
        let store = &self.service.store;
        let version = |work: Option<&WorkItem>| work.map(|work| (work.state, work.fence));
        if version(store.work(key).or_general()?.as_ref()) != version(observed.work.as_ref()) {
            return Ok(Reconciled::Stale);
        }
        self.store_commands(key, &observed.commands)?;
        let trigger = entry.trigger.clone();
        let action = decide(&observed.state);
        if action != Action::Nothing {
            tracing::info!(issue = %key, ?action, "decided");
        }
        match (action, &observed.work) {
            (Action::Start { agent, bottles }, _) => {
                let reason = format!("assigned, and labelled for '{agent}'");
                let text = Some(observed.text.clone());
                let request = WorkRequest::Start { agent, bottles, text };
                let note = match observed.turn.as_ref().map(|seen| &seen.turn) {
                    Some(turn @ (Turn::Wait(words) | Turn::Ask(words))) => hold_note(turn, words),
                    Some(Turn::Free) | None => WorkNote::because(reason),
                };
                let order = Some(self.order_of(observed));
                let note = WorkNote { trigger, order, ..note };
                let title = &observed.text.title;
                let work = store.add_work(key, title, &request, &note).or_general()?;
                self.keep_order(&work, observed)?;
            }
            (Action::Resume { reason }, Some(work)) => {
                let request = Some(WorkRequest::Resume { prompt: None });
                let note =
                    WorkNote { request, trigger, attempts: Some(0), ..WorkNote::because(reason) };
                store.step_work(key, work.fence, WorkStep::Queue, &note).or_general()?;
            }
            (Action::Wake { cause, head, reason }, Some(work)) => {
                let request = Some(WorkRequest::Wake { cause, head });
                let note =
                    WorkNote { request, trigger, attempts: Some(0), ..WorkNote::because(reason) };
                store.step_work(key, work.fence, WorkStep::Queue, &note).or_general()?;
            }
            (Action::CallPerson { reason }, Some(work)) => {
                let note = WorkNote { trigger, ..WorkNote::because(reason) };
                store.step_work(key, work.fence, WorkStep::CallPerson, &note).or_general()?;
            }
            (Action::EndAgent { reason }, Some(_)) => {
                end_agent(key, observed.bottle.as_ref(), &reason)?;
            }
            (Action::ScheduleDestroy { reason }, Some(work)) => {
                self.schedule_destroy(work, &reason)?;
            }
            (Action::CancelDestroy, Some(_)) => store.set_destroy_at(key, None).or_general()?,
            (Action::Withdraw { reason }, Some(work)) => {
                let note = WorkNote::because(reason);
                store.step_work(key, work.fence, WorkStep::Destroy, &note).or_general()?;
            }
            (Action::Forget, Some(_)) => store.forget_work(key).or_general()?,
            (Action::Nothing, Some(work)) => self.keep_order(work, observed)?,
            (_, None) => {}
        }
        Ok(Reconciled::Done)
    }

    /// Stores the commands of members in the inbox, which carries each of them out once.
    fn store_commands(&self, key: &IssueKey, commands: &[CommentCommand]) -> Result<(), Failure> {
        let delivery = |command: &CommentCommand| {
            let (event, body) = command.command.event()?;
            // An approval is recorded with the account that gave it.
            let body = if event == "approve" { command.author.as_str() } else { body };
            Some(Delivery {
                seq: 0,
                source: COMMENT_SOURCE.to_owned(),
                id: format!("{key} {}", command.mark),
                event: event.to_owned(),
                owner: key.owner.clone(),
                repo: key.repo.clone(),
                about: About::Issue(key.issue_number),
                body: body.as_bytes().to_vec(),
                received_at: host::clock::now(),
                handled_at: None,
            })
        };
        let list: Vec<Delivery> = commands.iter().filter_map(delivery).collect();
        if list.is_empty() {
            return Ok(());
        }
        let inserts = self.service.store.insert_deliveries(&list).or_general()?;
        if inserts.contains(&DeliveryInsert::New) {
            tracing::info!(issue = %key, by = commands[0].author, "a command in a comment");
            self.service.arrived.notify_one();
        }
        Ok(())
    }

    /// Approves the plan of a bottle and queues it. Repeating it after a crash changes nothing: a bottle that is queued or
    /// has worked since has no plan that waits.
    fn approve_plan(&self, key: &IssueKey, work: &WorkItem, by: String) -> Result<(), Failure> {
        let Some((bottle, mut record)) = find_bottle(&self.service, work)? else { return Ok(()) };
        let was_planned = bottle.last_run(&record)?.is_some_and(|dir| {
            load_run(&dir).is_ok_and(|meta| meta.verdict == Some(Verdict::Planned))
        });
        if !was_planned || record.plan.is_none() || work.state == WorkState::Queued {
            return Ok(());
        }
        tracing::info!(issue = %key, by, "the plan is approved");
        let reason = format!("{by} approved the plan");
        record.plan = Some(PlanStage::Approved { by });
        bottle.save(&record)?;
        let request = Some(WorkRequest::Resume { prompt: Some(APPROVED_PROMPT.to_owned()) });
        let note = WorkNote { request, attempts: Some(0), ..WorkNote::because(reason) };
        self.service.store.step_work(key, work.fence, WorkStep::Queue, &note).or_general()?;
        Ok(())
    }

    fn schedule_destroy(&self, work: &WorkItem, reason: &str) -> Result<(), Failure> {
        let days = self.service.settings().retention_days;
        let at = host::clock::now() + Duration::from_secs(u64::from(days) * 86_400);
        let store = &self.service.store;
        store.set_destroy_at(&work.key, Some(at)).or_general()?;
        if matches!(work.state, WorkState::Queued | WorkState::Waiting) {
            let note = WorkNote::because(reason);
            store.step_work(&work.key, work.fence, WorkStep::CallPerson, &note).or_general()?;
        }
        tracing::info!(issue = %work.key, reason, %at, "its bottle will be destroyed");
        Ok(())
    }

    /// Carries out the action of a user. What is not possible yet stays in the inbox.
    fn act_for_user(
        &mut self,
        key: &IssueKey,
        delivery: &Delivery,
    ) -> Result<DeliveryProgress, Failure> {
        let store = &self.service.store;
        let Some(work) = store.work(key).or_general()? else {
            return Ok(DeliveryProgress::Handled);
        };
        match delivery.event.as_str() {
            "freeze" => {
                end_agent(key, find_bottle(&self.service, &work)?.as_ref(), "a user froze it")?;
            }
            "resume" if !work.state.is_held() && work.state != WorkState::Destroyed => {
                let body = store.delivery_body(delivery.seq).or_general()?;
                let prompt = String::from_utf8_lossy(&body).trim().to_owned();
                let prompt = Some(prompt).filter(|prompt| !prompt.is_empty());
                let note = WorkNote {
                    request: work.slug.is_some().then_some(WorkRequest::Resume { prompt }),
                    attempts: Some(0),
                    ..WorkNote::because("a user resumed it")
                };
                store.step_work(key, work.fence, WorkStep::Queue, &note).or_general()?;
                store.set_destroy_at(key, None).or_general()?;
            }
            "model" if self.busy.contains_key(key) => return Ok(DeliveryProgress::Postponed),
            "model" => {
                let body = store.delivery_body(delivery.seq).or_general()?;
                if let Some((bottle, mut record)) = find_bottle(&self.service, &work)? {
                    record.model = Some(String::from_utf8_lossy(&body).into_owned());
                    bottle.save(&record)?;
                }
            }
            "approve" if self.busy.contains_key(key) => return Ok(DeliveryProgress::Postponed),
            "approve" => {
                let by = String::from_utf8_lossy(&store.delivery_body(delivery.seq).or_general()?)
                    .into_owned();
                self.approve_plan(key, &work, by)?;
            }
            "destroy" if self.busy.contains_key(key) => {
                end_agent(key, find_bottle(&self.service, &work)?.as_ref(), "a user destroys it")?;
                return Ok(DeliveryProgress::Postponed);
            }
            "destroy" => {
                // On disk first, so that the bottle is also removed after a crash.
                store.set_destroy_at(key, Some(host::clock::now())).or_general()?;
                self.start_job(Job::Destroy { work: Box::new(work), loss: Loss::Accepted });
            }
            _ => {}
        }
        Ok(DeliveryProgress::Handled)
    }
}

fn end_agent(
    key: &IssueKey,
    bottle: Option<&(Bottle, Record)>,
    reason: &str,
) -> Result<(), Failure> {
    let Some((bottle, record)) = bottle else { return Ok(()) };
    if let Some(dir) = bottle.last_run(record)?.filter(|dir| !dir.is_closed()) {
        tracing::info!(issue = %key, reason, "ending its agent");
        signal_agent(&dir, End::Freeze)?;
    }
    Ok(())
}
