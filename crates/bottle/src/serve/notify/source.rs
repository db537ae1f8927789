//! Events of work items that people are told of. Each becomes a notice once: the notices and the number of the last event
//! are stored in one commit.

use orchestrator_db::{Notice, WorkEvent, WorkHold, WorkItem, WorkState};

use super::{IssueWords, NoticeKind, notice_of};
use crate::exit::{Failure, OrGeneral};
use crate::flow::bottle::Bottle;
use crate::flow::run_record::load_run;
use crate::serve::Service;
use model::redact::Redactor;

/// Events that one read returns.
const EVENTS_PAGE: usize = 500;

/// Reads the new events. The first time there are only old ones, of which nobody is told.
pub(super) fn read_events(service: &Service) -> Result<(), Failure> {
    let store = &service.store;
    let Some(cursor) = store.notice_cursor().or_general()? else {
        let last = store.last_event().or_general()?;
        return store.add_notices(&[], &[], Some(last)).or_general();
    };
    let events = store.events_since(cursor, EVENTS_PAGE).or_general()?;
    let Some(last) = events.last().map(|event| event.seq) else { return Ok(()) };
    let settings = service.settings();
    let channels = settings.notify.channels();
    let mut notices: Vec<Notice> = Vec::new();
    for event in events.iter().filter(|_| !channels.is_empty()) {
        if let Some((subject, kind)) = observe_event(service, event)?
            && settings.notify.on.contains(&kind.word())
        {
            notices.push(notice_of(subject, &kind)?);
        }
    }
    store.add_notices(&notices, &channels, Some(last)).or_general()
}

/// The notice about an event, and its subject.
fn observe_event(
    service: &Service,
    event: &WorkEvent,
) -> Result<Option<(String, NoticeKind)>, Failure> {
    let is_told =
        matches!(event.state, WorkState::NeedsAttention | WorkState::Frozen | WorkState::Waiting);
    if !is_told {
        return Ok(None);
    }
    let Some(work) = service.store.work(&event.key).or_general()? else { return Ok(None) };
    let bottle = work.slug.as_ref().and_then(|slug| Bottle::open(&service.home, slug).ok());
    let last = bottle.as_ref().and_then(|(bottle, record)| bottle.last_run(record).ok()?);
    let meta = last.and_then(|dir| load_run(&dir).ok());
    let agent = bottle.as_ref().map(|(_, record)| record.agent.clone()).unwrap_or_default();
    let issue = issue_words(service, &work, agent);
    Ok(match event.state {
        WorkState::Waiting if work.waits_for == Some(WorkHold::Budget) => {
            let kind = NoticeKind::Budget { issue, reason: redacted(&event.reason) };
            Some((format!("event {}", event.seq), kind))
        }
        WorkState::Waiting => None,
        WorkState::NeedsAttention if is_repeated(service, event)? => None,
        WorkState::NeedsAttention => {
            let question = meta.as_ref().and_then(|meta| meta.question_for(&event.reason));
            let kind = match question {
                Some(question) => NoticeKind::Question { issue, question: redacted(&question) },
                None => NoticeKind::Attention { issue, reason: redacted(&event.reason) },
            };
            Some((format!("event {}", event.seq), kind))
        }
        _ => meta.and_then(|meta| {
            let pull = meta.publication.as_ref()?.pull.as_ref()?;
            let (number, url) = (pull.number, Some(pull.url.clone()));
            // A run publishes once, whatever comes after it.
            let subject = format!("run {} {}", meta.slug, meta.run);
            Some((subject, NoticeKind::PullRequest { issue, pull: number, url }))
        }),
    })
}

/// True if the event before it said the same: the person was told.
fn is_repeated(service: &Service, event: &WorkEvent) -> Result<bool, Failure> {
    let events = service.store.work_events(&event.key).or_general()?;
    let before = events.iter().rev().find(|other| other.seq < event.seq);
    Ok(before.is_some_and(|it| it.state == event.state && it.reason == event.reason))
}

fn issue_words(service: &Service, work: &WorkItem, agent: String) -> IssueWords {
    let (repos, settings) = (service.repos(), service.settings());
    let served = repos.find(&work.key.owner, &work.key.repo);
    let base = settings.public_url.as_ref().map(|url| url.trim_end_matches('/').to_owned());
    IssueWords {
        repo: format!("{}/{}", work.key.owner, work.key.repo),
        number: work.key.issue_number,
        title: redacted(&work.title),
        agent,
        url: served.map(|repo| repo.access(work.key.issue_number, None).env.issue_url()),
        page: base.zip(work.slug.as_ref()).map(|(base, slug)| format!("{base}/bottles/{slug}")),
    }
}

fn redacted(text: &str) -> String {
    Redactor::new([]).redact(text).into_owned()
}
