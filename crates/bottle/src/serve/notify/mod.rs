//! Notices to people outside of the page: a webhook, mail, the desktop. A notice is stored with a delivery for each channel
//! before anything is sent, and its subject is stored once. A process that was killed while it sent one sends it again with
//! the same id, by which a receiver recognises it.
//!
//! - `settings` what is told, and how
//! - `source` which events people are told of
//! - `text` the words for each channel
//! - `send` the channels

mod send;
mod settings;
mod source;
mod text;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use host::signal::Cancel;
use orchestrator_db::{Notice, NoticeDelivery, NoticeState};
use serde::{Deserialize, Serialize};
use web_base::session::fresh_id;

use self::send::{SendError, Sender};
pub(crate) use self::settings::NotifySettings;
use super::Service;
use crate::exit::{Failure, OrGeneral};

/// Interval of the looks at new events and open deliveries.
const PAUSE: Duration = Duration::from_millis(500);
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);
/// Attempts through one channel: the last one comes after about 16 hours.
const ATTEMPTS_MAX: u32 = 24;
/// Deliveries at once.
const SENDS_MAX: usize = 8;

/// A kind of notice, as the configuration and the receivers name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NoticeWord {
    /// An agent asks.
    Question,
    /// Work on an issue cannot go on without a person.
    Attention,
    /// A pull request is ready for review.
    PullRequest,
    /// Work on an issue waits for a budget.
    Budget,
    /// An issue for a dispatch could not be opened.
    Dispatch,
}

/// Something that people are told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NoticeKind {
    Question { issue: IssueWords, question: String },
    Attention { issue: IssueWords, reason: String },
    Budget { issue: IssueWords, reason: String },
    PullRequest { issue: IssueWords, pull: u64, url: Option<String> },
    DispatchFailed { id: String, repo: String, origin: String, problem: String },
}

/// An issue, with words that anybody may have written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IssueWords {
    /// `owner/name`.
    pub(crate) repo: String,
    pub(crate) number: u64,
    pub(crate) title: String,
    pub(crate) agent: String,
    /// Page of the issue on its forge.
    pub(crate) url: Option<String>,
    /// Page of the bottle here.
    pub(crate) page: Option<String>,
}

impl NoticeKind {
    fn word(&self) -> NoticeWord {
        match self {
            Self::Question { .. } => NoticeWord::Question,
            Self::Attention { .. } => NoticeWord::Attention,
            Self::PullRequest { .. } => NoticeWord::PullRequest,
            Self::Budget { .. } => NoticeWord::Budget,
            Self::DispatchFailed { .. } => NoticeWord::Dispatch,
        }
    }
}

impl NoticeWord {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::Attention => "attention",
            Self::PullRequest => "pull-request",
            Self::Budget => "budget",
            Self::Dispatch => "dispatch",
        }
    }
}

/// Stores a notice that comes from no event of a work item.
pub(super) fn raise(service: &Service, kind: &NoticeKind) -> Result<(), Failure> {
    let subject = match kind {
        NoticeKind::DispatchFailed { id, .. } => format!("dispatch {id}"),
        NoticeKind::Question { issue, .. }
        | NoticeKind::Attention { issue, .. }
        | NoticeKind::Budget { issue, .. }
        | NoticeKind::PullRequest { issue, .. } => {
            format!("{} {}#{}", kind.word().name(), issue.repo, issue.number)
        }
    };
    let settings = service.settings();
    let channels = settings.notify.channels();
    if channels.is_empty() || !settings.notify.on.contains(&kind.word()) {
        return Ok(());
    }
    let notice = notice_of(subject, kind)?;
    service.store.add_notices(&[notice], &channels, None).or_general()
}

/// A notice with a new id.
fn notice_of(subject: String, kind: &NoticeKind) -> Result<Notice, Failure> {
    Ok(Notice {
        id: format!("msg_{}", fresh_id().or_general()?),
        subject,
        kind: kind.word().name().to_owned(),
        body: serde_json::to_string(kind).or_general()?,
        created_at: host::clock::now(),
    })
}

/// Turns events into notices and sends them, until `stop`.
pub(super) async fn run(service: Arc<Service>, stop: Cancel) {
    let sender = Sender::new();
    loop {
        if service.turn.is_ours() {
            let looked = source::read_events(&service).map(drop);
            let sent = send_due(&service, &sender).await;
            if let Err(failure) = looked.and(sent) {
                tracing::error!(%failure, "could not look at the notices; trying again");
            }
        }
        tokio::select! {
            _ = stop.cancelled() => return,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

async fn send_due(service: &Service, sender: &Sender) -> Result<(), Failure> {
    let now = host::clock::now();
    let open = service.store.open_notices(usize::MAX >> 1).or_general()?.into_iter();
    let due = open.filter(|it| it.not_before.is_none_or(|at| at <= now)).take(SENDS_MAX);
    let sends = due.map(|delivery| send_one(service, sender, delivery));
    join_all(sends).await.into_iter().collect()
}

/// Sends one notice through its channel. The attempt is stored before it is made.
async fn send_one(
    service: &Service,
    sender: &Sender,
    delivery: NoticeDelivery,
) -> Result<(), Failure> {
    let mut delivery = delivery;
    let settings = service.settings();
    delivery.state = NoticeState::Sending;
    delivery.attempts += 1;
    service.store.save_notice(&delivery).or_general()?;
    host::failpoint::hit("notifying");
    let outcome = match serde_json::from_str::<NoticeKind>(&delivery.notice.body) {
        Ok(kind) => sender.send(&settings.notify, &delivery, &kind).await,
        Err(error) => Err(SendError::Final(format!("its text cannot be read: {error}"))),
    };
    host::failpoint::hit("notified");
    delivery.not_before = None;
    match outcome {
        Ok(()) => {
            delivery.state = NoticeState::Sent;
            delivery.problem = String::new();
        }
        Err(SendError::Passing(problem)) if delivery.attempts < ATTEMPTS_MAX => {
            let pause = FIRST_PAUSE.saturating_mul(1 << (delivery.attempts - 1).min(12));
            delivery.not_before = Some(host::clock::now() + pause.min(LONGEST_PAUSE));
            delivery.problem = problem;
        }
        Err(SendError::Passing(problem) | SendError::Final(problem)) => {
            delivery.state = NoticeState::Failed;
            delivery.problem = problem;
        }
    }
    if !delivery.problem.is_empty() {
        let (id, channel, problem) = (&delivery.notice.id, &delivery.channel, &delivery.problem);
        let state = delivery.state.name();
        tracing::warn!(id, channel, state, problem, "a notice did not arrive");
    }
    service.store.save_notice(&delivery).or_general()
}
