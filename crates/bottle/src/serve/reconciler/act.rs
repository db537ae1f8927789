//! Carries out decisions, and the actions of users.

use std::time::Duration;

use orchestrator_db::{
    About, Delivery, DeliveryInsert, IssueKey, Store, UserActionRecord, WorkHold, WorkItem,
    WorkNote, WorkRequest, WorkState, WorkStep,
};

use super::Reconciler;
use super::observe::{ChecksSeen, IssueObservation, find_bottle};
use super::order::hold_note;
use super::queue::{Finished, PendingIssue, TaskResult};
use super::stop::STOP_EVENT;
use super::worker::Job;
use crate::exit::{Failure, OrGeneral};
use crate::flow::bottle::{Bottle, PlanStage, Record};
use crate::flow::bottle_place::place_of_issue;
use crate::flow::end::{End, Loss, signal_agent};
use crate::flow::run_record::load_run;
use crate::rules::bottle_place::BottlePlace;
use crate::rules::command::CommentCommand;
use crate::rules::decide::{Action, decide};
use crate::rules::judge::Verdict;
use crate::rules::order::Turn;
use crate::rules::plan_text::APPROVED_PROMPT;
use crate::serve::vitals::VitalCounter;
use crate::serve::{COMMENT_SOURCE, PAGE_SOURCE, Service};

/// Sources of the actions of users.
pub(super) const USER_SOURCES: [&str; 2] = [PAGE_SOURCE, COMMENT_SOURCE];

/// Event of the stored delivery by which the holder of an issue ends its agent, because its pull request is decided.
const END_EVENT: &str = "end";

/// Deliveries that one read of the inbox returns.
pub(super) const INBOX_PAGE: usize = 500;

/// Looks at an issue after which its checks are read again although they have passed: they may have been repeated, and the
/// webhook about that lost.
const GREEN_LOOKS: u32 = 5;

/// Prompt of a member who wants an agent to go on and says no more.
const RETRY_PROMPT: &str =
    "A person asks you to go on. Read the conversation, and do what is still to be done.";

pub(super) enum DeliveryProgress {
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
        let store = &self.service.store;
        // Webhooks are for the server that looks at issues; the holder of an issue acts on what users ask for.
        let unhandled = match self.board.is_some() {
            true => store.unhandled_deliveries(INBOX_PAGE),
            false => store.unhandled_from(&USER_SOURCES, INBOX_PAGE),
        };
        let unhandled = unhandled.or_general()?;
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
            Some(key) if is_of_user(delivery) => match self.is_ours_to_act(&key, delivery)? {
                true => self.act_for_user(&key, delivery),
                false => Ok(DeliveryProgress::Postponed),
            },
            Some(key) => {
                self.queue.enqueue(&key, Some(delivery));
                Ok(DeliveryProgress::Queued)
            }
            // A pull request of another author, or a repository that is not served any more.
            None if self.board.is_some() => Ok(DeliveryProgress::Handled),
            None => Ok(DeliveryProgress::Postponed),
        }
    }

    /// True if this process carries out an action of a user. The holder does while the issue is held; what changes the bottle
    /// is done by the host that has it, and all else by the server that has the turn.
    fn is_ours_to_act(&self, key: &IssueKey, delivery: &Delivery) -> Result<bool, Failure> {
        if self.busy.contains_key(key) {
            return Ok(true);
        }
        let has_turn = self.board.is_some();
        let Some(work) = self.service.store.work(key).or_general()? else { return Ok(has_turn) };
        if let Some(holder) = &work.holder {
            return Ok(*holder == self.holder.name);
        }
        let changes_bottle = ["model", "approve", "destroy"].contains(&delivery.event.as_str());
        Ok(match self.place_of(key)? {
            Some(place) if changes_bottle => self.has_bottle(key, &place)?,
            Some(_) | None => has_turn,
        })
    }

    /// The issue that a delivery names. The forge states know the issue of each pull request of a bottle.
    pub(super) fn issue_of(&self, delivery: &Delivery) -> Result<Option<IssueKey>, Failure> {
        let repos = self.service.repos();
        let Some(repo) = repos.find(&delivery.owner, &delivery.repo) else {
            return Ok(None);
        };
        match delivery.about {
            About::Issue(number) => Ok(Some(repo.issue(number))),
            About::Pull(number) => {
                let mut known = self.service.store.forge_states().or_general()?.into_iter();
                let ours = known.find(|state| {
                    repo.is(&state.key.owner, &state.key.repo) && state.pr_number == Some(number)
                });
                Ok(ours.map(|state| state.key))
            }
        }
    }

    /// True if another host has the bottle of an issue.
    pub(super) fn is_elsewhere(&self, key: &IssueKey) -> Result<bool, Failure> {
        let place = self.place_of(key)?;
        Ok(matches!(place, Some(BottlePlace::Elsewhere { .. })))
    }

    /// True if this host has the bottle of an issue, and cannot find it.
    fn is_missing(&self, key: &IssueKey) -> Result<bool, Failure> {
        Ok(self.place_of(key)? == Some(BottlePlace::Missing))
    }

    pub(super) fn place_of(&self, key: &IssueKey) -> Result<Option<BottlePlace>, Failure> {
        let Service { home, host, store, .. } = &*self.service;
        let place = place_of_issue(home, host, &**store, key)?;
        Ok(place.map(|(_, place)| place))
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
        if self.board.is_none() {
            // It was looked at for what people had said until a stop; deciding is for the server that has the turn.
            self.note_seen(&key, observed.as_ref().ok().and_then(|it| it.seen.as_ref()));
            return Ok(());
        }
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
                let known = self.green.get_mut(key).filter(|(green, _)| *green == head);
                let is_fresh = known.is_some_and(|(_, looks)| {
                    *looks += 1;
                    *looks < GREEN_LOOKS
                });
                if entry.also_checks() || !is_fresh {
                    self.queue.enqueue_checks(key);
                }
            }
            Some(ChecksSeen::Green { head }) => drop(self.green.insert(key.clone(), (head, 0))),
            Some(ChecksSeen::Open) => drop(self.green.remove(key)),
            Some(ChecksSeen::NotRead) | None => {}
        }
    }

    fn act(
        &mut self,
        key: &IssueKey,
        observed: &IssueObservation,
        entry: &PendingIssue,
    ) -> Result<Reconciled, Failure> {
        if observed.is_away {
            return Ok(Reconciled::Done);
        }
        let version = |work: Option<&WorkItem>| work.map(|work| (work.state, work.fence));
        let now = self.service.store.work(key).or_general()?;
        if version(now.as_ref()) != version(observed.work.as_ref()) {
            return Ok(Reconciled::Stale);
        }
        self.note_seen(key, observed.seen.as_ref());
        self.store_commands(key, observed)?;
        let trigger = entry.trigger.clone();
        let action = decide(&observed.state);
        if action != Action::Nothing {
            tracing::info!(issue = %key, ?action, "decided");
        }
        let seen = || observed.seen.clone().unwrap_or_default();
        let store = &self.service.store;
        match (action, &observed.work) {
            (Action::Start { agent, bottles }, _) => {
                self.add_work(key, observed, agent, bottles, trigger)?;
            }
            (Action::Resume { reason }, Some(work)) => {
                let request = match work.slug {
                    Some(_) => WorkRequest::Resume { prompt: None, seen: seen() },
                    None => start_again(work, Some(observed)).with_seen(seen()),
                };
                queue_work(&**store, work, request, trigger, reason)?;
            }
            (Action::Wake { cause, head, reason }, Some(work)) => {
                let request = WorkRequest::Wake { cause, head };
                queue_work(&**store, work, request, trigger, reason)?;
            }
            (Action::CallPerson { reason }, Some(work)) => {
                let note = WorkNote { trigger, ..WorkNote::because(reason) };
                store.step_work(key, work.fence, WorkStep::CallPerson, &note).or_general()?;
            }
            (Action::EndAgent { reason }, Some(work)) => match &observed.bottle {
                Some(_) => end_agent(key, observed.bottle.as_ref(), &reason)?,
                None => self.ask_holder_to_end(work, &reason)?,
            },
            (Action::ScheduleDestroy { reason }, Some(work)) => {
                self.schedule_destroy(work, &reason)?;
                self.changed.insert(key.clone());
            }
            (Action::CancelDestroy, Some(work)) => {
                store.set_destroy_at(key, work.fence, None).or_general()?;
                self.changed.insert(key.clone());
            }
            (Action::Withdraw { reason }, Some(work)) => {
                let note = WorkNote::because(reason);
                store.step_work(key, work.fence, WorkStep::Destroy, &note).or_general()?;
            }
            (Action::Forget, Some(work)) => store.forget_work(key, work.fence).or_general()?,
            (Action::Nothing, Some(work)) => self.keep_order(work, observed)?,
            (_, None) => {}
        }
        Ok(Reconciled::Done)
    }

    /// Queues an issue that has no work, or lets it wait for its turn.
    fn add_work(
        &mut self,
        key: &IssueKey,
        observed: &IssueObservation,
        agent: String,
        bottles: Vec<String>,
        trigger: Option<String>,
    ) -> Result<(), Failure> {
        let reason = format!("assigned, and labelled for '{agent}'");
        let request = WorkRequest::start(agent, bottles, Some(observed.text.clone()));
        let request = request.with_seen(observed.seen.clone().unwrap_or_default());
        let note = match observed.turn.as_ref().map(|seen| &seen.turn) {
            Some(turn @ (Turn::Wait(words) | Turn::Ask(words))) => hold_note(turn, words),
            Some(Turn::Free) | None => WorkNote::because(reason),
        };
        let order = Some(self.order_of(observed));
        let note = WorkNote { trigger, order, ..note };
        let title = &observed.text.title;
        let work = self.service.store.add_work(key, title, &request, &note).or_general()?;
        if work.waits_for == Some(WorkHold::Issues) {
            self.enqueue_followers(key)?;
        }
        self.keep_order(&work, observed)
    }

    /// Stores the commands of members in the inbox, which carries each of them out once.
    fn store_commands(&self, key: &IssueKey, observed: &IssueObservation) -> Result<(), Failure> {
        let commands = &observed.commands;
        let delivery = |command: &CommentCommand| {
            let (event, body) = command.command.event()?;
            let body = match event {
                // An approval is recorded with the account that gave it.
                "approve" => command.author.clone(),
                // What was said before a stop does not resume the work after it.
                STOP_EVENT => serde_json::json!(observed.seen).to_string(),
                _ => body.to_owned(),
            };
            Some(Delivery {
                seq: 0,
                source: COMMENT_SOURCE.to_owned(),
                id: command.delivery_id(key),
                event: event.to_owned(),
                owner: key.owner.clone(),
                repo: key.repo.clone(),
                about: About::Issue(key.issue_number),
                body: body.into_bytes(),
                received_at: host::clock::now(),
                handled_at: None,
            })
        };
        let list: Vec<Delivery> = commands.iter().filter_map(delivery).collect();
        if list.is_empty() {
            return Ok(());
        }
        for command in commands {
            self.record_command(key, command)?;
        }
        let inserts = self.service.store.insert_deliveries(&list).or_general()?;
        if inserts.contains(&DeliveryInsert::New) {
            tracing::info!(issue = %key, by = commands[0].author, "a command in a comment");
            self.service.arrived.notify_one();
        }
        Ok(())
    }

    /// Asks the holder of an issue on another host to end its agent, once for each claim.
    fn ask_holder_to_end(&self, work: &WorkItem, reason: &str) -> Result<(), Failure> {
        let IssueKey { owner, repo, issue_number } = &work.key;
        let delivery = Delivery {
            seq: 0,
            source: COMMENT_SOURCE.to_owned(),
            id: format!("end-{}-{}", work.key, work.fence),
            event: END_EVENT.to_owned(),
            owner: owner.clone(),
            repo: repo.clone(),
            about: About::Issue(*issue_number),
            body: reason.as_bytes().to_vec(),
            received_at: host::clock::now(),
            handled_at: None,
        };
        self.service.store.insert_deliveries(&[delivery]).or_general().map(drop)
    }

    /// Records who gave a command.
    fn record_command(&self, key: &IssueKey, command: &CommentCommand) -> Result<(), Failure> {
        let Some((action, _)) = command.command.event() else { return Ok(()) };
        let record = UserActionRecord {
            id: command.delivery_id(key),
            actor: command.author.clone(),
            action: format!("{action} in a comment"),
            key: key.clone(),
            at: host::clock::now(),
        };
        self.service.store.record_action(&record).or_general()
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
        let request = WorkRequest::resume(Some(APPROVED_PROMPT.to_owned()));
        let request = Some(request.with_seen(work.request.seen()));
        let note = WorkNote { request, attempts: Some(0), ..WorkNote::because(reason) };
        self.service.store.step_work(key, work.fence, WorkStep::Queue, &note).or_general()?;
        Ok(())
    }

    fn schedule_destroy(&self, work: &WorkItem, reason: &str) -> Result<(), Failure> {
        let days = self.service.settings().retention_days;
        let at = host::clock::now() + Duration::from_secs(u64::from(days) * 86_400);
        let store = &self.service.store;
        store.set_destroy_at(&work.key, work.fence, Some(at)).or_general()?;
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
            STOP_EVENT => return self.stop_work(&work, delivery),
            END_EVENT if work.state.is_held() => {
                let reason = store.delivery_body(delivery.seq).or_general()?;
                let bottle = find_bottle(&self.service, &work)?;
                end_agent(key, bottle.as_ref(), &String::from_utf8_lossy(&reason))?;
            }
            "resume" if self.busy.contains_key(key) || work.state.is_held() => {
                // The words are for the next run; without words there is nothing to keep.
                let body = store.delivery_body(delivery.seq).or_general()?;
                return Ok(match body.trim_ascii().is_empty() {
                    true => DeliveryProgress::Handled,
                    false => DeliveryProgress::Postponed,
                });
            }
            "resume" if work.state != WorkState::Destroyed => {
                let body = store.delivery_body(delivery.seq).or_general()?;
                let prompt = String::from_utf8_lossy(&body).trim().to_owned();
                let request = resume_request(&work, Some(prompt).filter(|it| !it.is_empty()));
                let by = store.actor_of(&delivery.id).or_general()?;
                let reason = format!("{} resumed it", by.as_deref().unwrap_or("a user"));
                queue_work(&**store, &work, request, None, reason)?;
                store.set_destroy_at(key, work.fence, None).or_general()?;
            }
            "model" | "approve" if self.is_missing(key)? => return Ok(DeliveryProgress::Postponed),
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
                self.cancel_work(key, "a user destroys it");
                return Ok(DeliveryProgress::Postponed);
            }
            "destroy" => {
                // On disk first, so that the bottle is also removed after a crash.
                store.set_destroy_at(key, work.fence, Some(host::clock::now())).or_general()?;
                let job = Job::Destroy { work: Box::new(work), loss: Loss::Accepted };
                self.start_job(job, host::clock::boottime());
            }
            _ => {}
        }
        Ok(DeliveryProgress::Handled)
    }
}

/// Returns whether a delivery is the action of a user, and not a webhook.
fn is_of_user(delivery: &Delivery) -> bool {
    USER_SOURCES.contains(&delivery.source.as_str())
}

/// Request of a user who resumes work. Without words the last request is repeated, as far as it still makes sense.
fn resume_request(work: &WorkItem, words: Option<String>) -> WorkRequest {
    let seen = work.request.seen();
    let resume = |prompt: String| WorkRequest::Resume { prompt: Some(prompt), seen };
    match (&work.slug, words, &work.request) {
        (None, _, _) => start_again(work, None),
        (Some(_), Some(words), _) => resume(words),
        (
            Some(_),
            None,
            WorkRequest::Start { .. } | WorkRequest::Resume { prompt: Some(_), .. },
        ) => work.request.clone(),
        (Some(_), None, WorkRequest::Resume { prompt: None, .. } | WorkRequest::Wake { .. }) => {
            resume(RETRY_PROMPT.to_owned())
        }
    }
}

/// Request of an issue that a member starts again before it had a bottle, with the labels that it has now: they may be what
/// was wrong. It does not wait for its turn any more.
fn start_again(work: &WorkItem, observed: Option<&IssueObservation>) -> WorkRequest {
    let labels = observed.map(|observed| &observed.state).filter(|it| !it.agents.is_empty());
    match work.request.clone() {
        WorkRequest::Start { agent, bottles, text, seen, .. } => {
            let (agent, bottles) = match labels {
                Some(state) => (state.agents[0].clone(), state.bottles.clone()),
                None => (agent, bottles),
            };
            WorkRequest::Start { agent, bottles, text, seen, skips_order: true }
        }
        other @ (WorkRequest::Resume { .. } | WorkRequest::Wake { .. }) => other,
    }
}

fn queue_work(
    store: &dyn Store,
    work: &WorkItem,
    request: WorkRequest,
    trigger: Option<String>,
    reason: String,
) -> Result<(), Failure> {
    let note = WorkNote {
        request: Some(request),
        trigger,
        attempts: Some(0),
        ..WorkNote::because(reason)
    };
    store.step_work(&work.key, work.fence, WorkStep::Queue, &note).or_general().map(drop)
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
