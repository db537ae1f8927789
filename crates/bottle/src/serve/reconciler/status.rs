//! Status comments: says on each issue how far its work is, in one comment that is edited. The steps of the work are in the
//! database, so what a crash kept from being written is written after it; a comment whose number was lost is found again by
//! its mark.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use forge::{Forge, ForgeError, Thread};
use model::redact::Redactor;
use orchestrator_db::{DbError, IssueKey, StatusComment, WorkEvent, WorkItem, WorkState};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::observe::{find_bottle, find_summary};
use crate::exit::{Failure, OrGeneral};
use crate::flow::access::ForgeAccess;
use crate::flow::bottle::{Bottle, Record};
use crate::flow::bottle_summary::BottleSummary;
use crate::flow::run_record::load_run;
use crate::rules::status_text::{STATUS_MARK, StatusFacts, render_status};
use crate::serve::Service;
use crate::serve::web::log_tail;

/// Time for a state to change again before it is written: a free slot takes an issue at once.
const SETTLE: Duration = Duration::from_millis(500);
/// Pause after a failure.
const PAUSE: Duration = Duration::from_secs(30);
/// Comments that are written at once.
const WRITES_MAX: usize = 4;
/// Events that one read returns.
const EVENTS_PAGE: usize = 500;

pub(super) type StatusResult = Result<(IssueKey, Result<(), Failure>), JoinError>;

/// Issues whose comment may be out of date.
pub(super) struct StatusBoard {
    /// The last event that was read.
    seq: u64,
    due: BTreeMap<IssueKey, Instant>,
    writing: Vec<IssueKey>,
    tasks: JoinSet<(IssueKey, Result<(), Failure>)>,
}

impl StatusBoard {
    /// A board on which every issue is due: an earlier process may have left some.
    pub(super) fn open(service: &Service) -> Result<Self, Failure> {
        let seq = service.store.last_event().or_general()?;
        let works = service.store.works().or_general()?;
        let due = works.into_iter().map(|work| (work.key, Instant::now())).collect();
        Ok(Self { seq, due, writing: Vec::new(), tasks: JoinSet::new() })
    }

    /// Adds issues whose comment may be out of date although nothing happened to their work.
    pub(super) fn add(&mut self, keys: BTreeSet<IssueKey>) {
        self.due.extend(keys.into_iter().map(|key| (key, Instant::now())));
    }

    /// Reads the new events, which it returns, and starts to write the comments that are due.
    pub(super) fn update(&mut self, service: &Arc<Service>) -> Result<Vec<WorkEvent>, Failure> {
        let events = service.store.events_since(self.seq, EVENTS_PAGE).or_general()?;
        for event in &events {
            self.seq = event.seq;
            self.due.insert(event.key.clone(), Instant::now() + SETTLE);
        }
        if !service.settings().status_comment {
            self.due.clear();
            return Ok(events);
        }
        let now = Instant::now();
        let ready = |(key, at): &(&IssueKey, &Instant)| **at <= now && !self.writing.contains(key);
        let ready: Vec<IssueKey> = self
            .due
            .iter()
            .filter(ready)
            .map(|(key, _)| key.clone())
            .take(WRITES_MAX.saturating_sub(self.writing.len()))
            .collect();
        for key in ready {
            self.due.remove(&key);
            self.writing.push(key.clone());
            let service = Arc::clone(service);
            self.tasks.spawn(async move {
                let written = write_status(&service, &key).await;
                (key, written)
            });
        }
        Ok(events)
    }

    /// Waits for the next comment that was written; `None` if none is being written.
    pub(super) async fn next_written(&mut self) -> Option<StatusResult> {
        self.tasks.join_next().await
    }

    pub(super) fn finish(&mut self, result: StatusResult) {
        let Ok((key, written)) = result else {
            // A panic does not tell which issue it was.
            self.writing.clear();
            return;
        };
        self.writing.retain(|other| *other != key);
        if let Err(failure) = written {
            tracing::warn!(issue = %key, %failure, "the status comment could not be written");
            self.due.entry(key).or_insert(Instant::now() + PAUSE);
        }
    }
}

/// Brings the comment of an issue up to date. The intent is stored first, with the comment's number once it is known.
async fn write_status(service: &Service, key: &IssueKey) -> Result<(), Failure> {
    let Some(work) = service.store.work(key).or_general()? else { return Ok(()) };
    let repos = service.repos();
    let access = repos.of(key)?.shared_access(key.issue_number, None);
    let text = render_work(service, &work, &access)?;
    let digest = model::digest::sha256(text.as_bytes());
    let known = service.store.status_comment(key).or_general()?;
    if known.as_ref().is_some_and(|known| known.digest == digest) {
        return Ok(());
    }
    let forge = access.open().await?;
    let id = match known.as_ref().and_then(|known| known.comment) {
        Some(id) => Some(id),
        None => find_comment(&forge, &access, key.issue_number, known.is_some()).await?,
    };
    // True if it was saved; a claim that came in between is an event, after which the comment is written again.
    let save = |comment, digest: &str| {
        let comment = StatusComment { comment, digest: digest.to_owned() };
        match service.store.save_status_comment(key, work.fence, &comment) {
            Err(DbError::Fenced { .. }) => Ok(false),
            saved => saved.or_general().map(|()| true),
        }
    };
    if !save(id, "")? {
        return Ok(());
    }
    host::failpoint::hit("status");
    let thread = Thread::Issue(key.issue_number);
    let id = match id {
        Some(id) => {
            match forge.edit_comment(thread, id, &text).await {
                // A person deleted it and does not want it.
                Err(ForgeError::NotFound { .. }) | Ok(()) => {}
                Err(error) => return Err(error).or_general(),
            }
            id
        }
        None => match forge.post_comment(thread, &text).await {
            Ok(comment) => comment.id,
            // The issue is gone.
            Err(ForgeError::NotFound { .. }) => return save(None, &digest).map(drop),
            Err(error) => return Err(error).or_general(),
        },
    };
    save(Some(id), &digest).map(drop)
}

/// Finds a comment that was posted by a process that was killed before it stored the number.
async fn find_comment(
    forge: &Forge,
    access: &ForgeAccess,
    issue: u64,
    was_intended: bool,
) -> Result<Option<u64>, Failure> {
    if !was_intended {
        return Ok(None);
    }
    let bot = access.bot_login.as_deref();
    let is_ours = |author: &str| bot.is_none_or(|bot| bot.eq_ignore_ascii_case(author));
    let comments = match forge.read_plain_comments(Thread::Issue(issue)).await {
        Err(ForgeError::NotFound { .. }) => Vec::new(),
        other => other.or_general()?,
    };
    let mut ours = comments
        .into_iter()
        .filter(|comment| comment.body.starts_with(STATUS_MARK) && is_ours(&comment.author));
    Ok(ours.next().map(|comment| comment.id))
}

/// The status comment of a work item.
pub(super) fn render_work(
    service: &Service,
    work: &WorkItem,
    access: &ForgeAccess,
) -> Result<String, Failure> {
    let bottle = find_bottle(service, work)?;
    let summary = match bottle {
        Some((bottle, record)) => Some(summarize(&bottle, record, work.state, &work.reason)),
        None => find_summary(service, work)?,
    };
    let agent = match (&summary, &work.request) {
        (Some(summary), _) => summary.record.agent.clone(),
        (None, orchestrator_db::WorkRequest::Start { agent, .. }) => agent.clone(),
        (
            None,
            orchestrator_db::WorkRequest::Resume { .. } | orchestrator_db::WorkRequest::Wake { .. },
        ) => String::new(),
    };
    let (question, log) = match summary {
        Some(summary) if work.state == WorkState::NeedsAttention => (summary.question, summary.log),
        _ => (None, String::new()),
    };
    let redactor = Redactor::new([access.token.clone()]);
    let redacted = |text: &str| redactor.redact(text).into_owned();
    let (reason, question, log) =
        (redacted(&work.reason), question.as_deref().map(redacted), redacted(&log));
    let settings = service.settings();
    let page = settings.public_url.as_ref().zip(work.slug.as_ref());
    let page = page.map(|(url, slug)| format!("{}/bottles/{slug}", url.trim_end_matches('/')));
    Ok(render_status(&StatusFacts {
        issue: work.key.issue_number,
        state: work.state,
        reason: &reason,
        agent: &agent,
        not_before: work.not_before,
        destroy_at: work.destroy_at,
        question: question.as_deref(),
        log: &log,
        page: page.as_deref(),
    }))
}

/// The summary of a bottle of this host. If a person is called, it has the agent's question, if that is the reason, and the
/// last lines of its log. What cannot be read is left out.
pub(super) fn summarize(
    bottle: &Bottle,
    record: Record,
    state: WorkState,
    reason: &str,
) -> BottleSummary {
    let mut summary = BottleSummary::of(&record);
    if state == WorkState::NeedsAttention
        && let Ok(Some(dir)) = bottle.last_run(&record)
        && let Ok(meta) = load_run(&dir)
    {
        summary.question = meta.question_for(reason);
        summary.log = log_tail(&dir, &meta.manifest.provider);
    }
    summary
}
