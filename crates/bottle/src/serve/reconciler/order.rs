//! The turn of an issue that has no bottle: whether the issues that it comes after are closed, as its text and its forge say.

use std::collections::BTreeMap;

use forge::{Blocker, Forge, ForgeError, Issue, Numbering, ThreadState};
use orchestrator_db::{
    IssueText, WorkHold, WorkItem, WorkNote, WorkOrder, WorkRequest, WorkState, WorkStep,
};

use super::Reconciler;
use super::observe::IssueObservation;
use crate::exit::{Failure, OrGeneral};
use crate::flow::access::ForgeAccess;
use crate::flow::thread::{AssignmentHistory, approved_text, delivered_texts};
use crate::rules::order::{
    EarlierIssue, EarlierState, NamedIssue, Turn, find_after, judge_turn, priority_mins,
};
use crate::serve::Service;

/// Turn of an issue, and the open issues before it.
pub(super) struct TurnSeen {
    pub(super) turn: Turn,
    pub(super) after: Vec<u64>,
}

/// Observes the turn of an issue that is for an agent.
pub(super) async fn observe_turn(
    service: &Service,
    access: &ForgeAccess,
    forge: &Forge,
    issue: &Issue,
    work: Option<&WorkItem>,
) -> Result<TurnSeen, Failure> {
    let full_name = format!("{}/{}", access.env.owner, access.env.repo);
    let blockers = forge.blockers(issue.number).await.or_general()?;
    let mut earlier: Vec<EarlierIssue> = blockers.iter().map(name_blocker).collect();
    for named in named_issues(service, access, forge, issue, work, &full_name).await? {
        let is_known = |number| earlier.iter().any(|it| it.number == Some(number));
        match named {
            NamedIssue::Own(number) if is_known(number) => {}
            NamedIssue::Own(number) => {
                let state = match number == issue.number {
                    true => EarlierState::Open,
                    false => observe_state(forge, number).await?,
                };
                earlier.push(EarlierIssue {
                    name: format!("#{number}"),
                    number: Some(number),
                    state,
                });
            }
            NamedIssue::Foreign(name) => {
                let state = EarlierState::Foreign;
                earlier.push(EarlierIssue { name, number: None, state });
            }
        }
    }
    let key = access_key(access);
    let same = |other: &&WorkItem| {
        other.waits_for == Some(WorkHold::Issues)
            && (&other.key.owner, &other.key.repo) == (&key.0, &key.1)
    };
    let works = service.store.works().or_general()?;
    let after: BTreeMap<u64, Vec<u64>> = works
        .iter()
        .filter(same)
        .map(|other| (other.key.issue_number, other.order.after.clone()))
        .collect();
    let turn = judge_turn(issue.number, &earlier, &after);
    let open = earlier.iter().filter(|it| it.state == EarlierState::Open);
    Ok(TurnSeen { turn, after: open.filter_map(|it| it.number).collect() })
}

fn access_key(access: &ForgeAccess) -> (String, String) {
    (access.env.owner.clone(), access.env.repo.clone())
}

fn name_blocker(blocker: &Blocker) -> EarlierIssue {
    let repository = blocker.repository.as_deref().unwrap_or_default();
    EarlierIssue {
        name: format!("{repository}#{}", blocker.number),
        number: blocker.repository.is_none().then_some(blocker.number),
        state: if blocker.is_open { EarlierState::Open } else { EarlierState::Closed },
    }
}

/// Issues that the text names which the agent would get. Most texts name none, and then nobody's role is asked for.
async fn named_issues(
    service: &Service,
    access: &ForgeAccess,
    forge: &Forge,
    issue: &Issue,
    work: Option<&WorkItem>,
    full_name: &str,
) -> Result<Vec<NamedIssue>, Failure> {
    let of_now = find_after(&issue.body, full_name);
    let Some(work) = work else { return Ok(of_now) };
    let pinned: Option<&IssueText> = match &work.request {
        WorkRequest::Start { text, .. } => text.as_ref(),
        WorkRequest::Resume { .. } | WorkRequest::Wake { .. } => None,
    };
    let of_pinned = pinned.map(|text| find_after(&text.body, full_name));
    if of_pinned.as_ref().is_none_or(|pinned| *pinned == of_now) {
        return Ok(of_now);
    }
    let delivered = delivered_texts(&*service.store, &work.key)?;
    let history = AssignmentHistory { text: pinned, delivered, ..AssignmentHistory::default() };
    let text = approved_text(access, forge, issue, &history).await?;
    Ok(find_after(&text.body, full_name))
}

/// State of an issue, or of a pull request with this number.
async fn observe_state(forge: &Forge, number: u64) -> Result<EarlierState, Failure> {
    let state_of = |is_open| if is_open { EarlierState::Open } else { EarlierState::Closed };
    match forge.read_issue(number).await {
        Ok(issue) => return Ok(state_of(issue.state == ThreadState::Open)),
        Err(ForgeError::NotFound { .. }) if forge.numbering() == Numbering::Shared => {}
        Err(ForgeError::NotFound { .. }) => return Ok(EarlierState::Missing),
        Err(error) => return Err(error).or_general(),
    }
    match forge.read_pr(number).await {
        Ok(pull) => Ok(state_of(pull.is_open())),
        Err(ForgeError::NotFound { .. }) => Ok(EarlierState::Missing),
        Err(error) => Err(error).or_general(),
    }
}

impl Reconciler {
    /// Order of an observed issue, as the work item keeps it.
    pub(super) fn order_of(&self, observed: &IssueObservation) -> WorkOrder {
        let priorities = &self.service.settings().priorities;
        let known = observed.work.as_ref().map(|work| work.order.after.clone());
        let after = match &observed.turn {
            Some(seen) => seen.after.clone(),
            None => known.unwrap_or_default(),
        };
        WorkOrder { priority_mins: priority_mins(&observed.labels, priorities), after }
    }

    /// Keeps the work on an issue in its turn: lets it wait, calls a person, or lets it go on. A change is one for the issues
    /// that come after it as well: each issue of a circle is told of it, and of its end.
    pub(super) fn keep_order(
        &mut self,
        work: &WorkItem,
        observed: &IssueObservation,
    ) -> Result<(), Failure> {
        let order = self.order_of(observed);
        if order != work.order && !observed.labels.is_empty() {
            self.service.store.set_order(&work.key, work.fence, &order).or_general()?;
        }
        let Some(TurnSeen { turn, .. }) = &observed.turn else { return Ok(()) };
        let is_held = work.waits_for == Some(WorkHold::Issues);
        let is_waiting = work.state == WorkState::Queued || work.waits_for.is_some();
        let is_told = |words: &str, state| is_held && work.reason == words && work.state == state;
        let (step, words) = match turn {
            Turn::Free if is_held => (WorkStep::Queue, "the issues that it comes after are closed"),
            Turn::Wait(words) if is_waiting && !is_told(words, WorkState::Waiting) => {
                (WorkStep::Wait, words.as_str())
            }
            Turn::Ask(words) if is_waiting && !is_told(words, WorkState::NeedsAttention) => {
                (WorkStep::CallPerson, words.as_str())
            }
            Turn::Free | Turn::Wait(_) | Turn::Ask(_) => return Ok(()),
        };
        let note = hold_note(turn, words);
        self.service.store.step_work(&work.key, work.fence, step, &note).or_general()?;
        self.enqueue_followers(&work.key)
    }

    /// Enqueues the issues that wait for this one, because it is closed or its own turn changed.
    pub(super) fn enqueue_followers(
        &mut self,
        key: &orchestrator_db::IssueKey,
    ) -> Result<(), Failure> {
        for work in self.service.store.works().or_general()? {
            let is_same = (&work.key.owner, &work.key.repo) == (&key.owner, &key.repo);
            let waits = work.waits_for == Some(WorkHold::Issues);
            if is_same && waits && work.order.after.contains(&key.issue_number) {
                self.queue.enqueue(&work.key, None);
            }
        }
        Ok(())
    }
}

/// Note of a step that a turn asks for.
pub(super) fn hold_note(turn: &Turn, words: &str) -> WorkNote {
    let waits_for = match turn {
        Turn::Free => None,
        Turn::Wait(_) | Turn::Ask(_) => Some(WorkHold::Issues),
    };
    WorkNote { waits_for, ..WorkNote::because(words) }
}
