//! Server-sent events: the log of a box, and the steps of all work items. A client that reconnects continues where it
//! stopped, because the id of each event is its position.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use engine::box_dir::BoxDir;
use futures_util::stream::{self, Stream};
use model::escape::{escape_line, escape_terminal};
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::sleep;
use web_base::header::header_text;

use super::api::query::StrictQuery;
use super::facts::log::{LogSlice, SliceEnd, read_slice};
use super::facts::run::FoundRun;
use super::page::steps::render_steps;
use super::problem::Problem;
use super::rules::log_style::{LogRenderer, LogStyle, LogView};
use super::rules::steps::StepReader;
use super::{Web, WebState, query};
use crate::exit::OrGeneral;
use crate::flow::bottle::agent_box;

/// Interval between two reads of a log or the database.
const PAUSE: Duration = Duration::from_millis(500);
/// Largest slice in one event: the longest line of an agent's events.
const PIECE_MAX_BYTES: usize = agent::reader::LINE_LIMIT;
/// Part of a log before the slices of a stream that is read for calls that end in them.
const BEFORE_BYTES: usize = 256 << 10;
/// Largest integer of SQLite.
const SEQ_MAX: u64 = i64::MAX as u64;

/// Query of a stream. A browser that reconnects sends its position in a header, which takes precedence.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FollowParams {
    #[serde(default)]
    after: u64,
    #[serde(default)]
    log: LogView,
}

struct Log {
    web: WebState,
    slug: String,
    run: String,
    next: u64,
    renderer: Renderer,
    /// The work in progress when that was last said.
    told: String,
    is_over: bool,
    _place: OwnedSemaphorePermit,
}

/// Renderer of the part that a page appends for a slice of a log.
enum Renderer {
    Text(LogRenderer),
    Steps(StepReader),
}

impl Renderer {
    /// A reader who comes in the middle has seen what came before: a call that began there ends here.
    fn open(found: &FoundRun, style: LogStyle, next: u64) -> Result<Self, Problem> {
        let from = next.saturating_sub(BEFORE_BYTES as u64);
        let before = read_slice(&found.log()?, from, to_usize(next - from), SliceEnd::Anywhere);
        let before = before.or_general()?.text;
        let mut renderer = match found.steps(style, from) {
            Some(reader) => Self::Steps(reader),
            None => Self::Text(LogRenderer::new(style)),
        };
        renderer.push(&before);
        Ok(renderer)
    }

    fn push(&mut self, text: &str) -> String {
        match self {
            Self::Text(renderer) => escape_terminal(&renderer.push(text)).into_owned(),
            Self::Steps(reader) => render_steps(&reader.push(text)).into_string(),
        }
    }

    fn at_work(&self) -> String {
        match self {
            Self::Text(_) => String::new(),
            Self::Steps(reader) => escape_line(&reader.open()).into_owned(),
        }
    }
}

struct WorkStream {
    web: WebState,
    next: u64,
    _place: OwnedSemaphorePermit,
}

/// Streams the log of a run's box until the box has ended and everything was sent.
pub(crate) async fn follow_log(
    State(web): State<WebState>,
    Path((slug, run)): Path<(String, String)>,
    headers: HeaderMap,
    StrictQuery(from): StrictQuery<FollowParams>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let place = take_place(&web)?;
    let (asked_slug, asked_run) = (slug.clone(), run.clone());
    let next = last_seen(&headers).unwrap_or(from.after);
    let open = move |web: &Web| {
        let found = FoundRun::open(&web.service.home, &asked_slug, &asked_run)?;
        let style = LogStyle::of(&found.meta.manifest.provider, from.log);
        Renderer::open(&found, style, next)
    };
    let renderer = query(&web, open).await?;
    let told = renderer.at_work();
    let log = Log { web, slug, run, next, renderer, told, is_over: false, _place: place };
    Ok(Sse::new(stream::unfold(log, next_piece)).keep_alive(KeepAlive::default()))
}

async fn next_piece(mut log: Log) -> Option<(Result<Event, Infallible>, Log)> {
    if log.is_over {
        return None;
    }
    loop {
        let at_work = log.renderer.at_work();
        if at_work != log.told {
            let event = Event::default().event("now").id(log.next.to_string());
            let event = event.data(serde_json::json!(at_work).to_string());
            log.told = at_work;
            return Some((Ok(event), log));
        }
        let (slug, run, from) = (log.slug.clone(), log.run.clone(), log.next);
        let looked = query(&log.web, move |web| {
            read_next(&FoundRun::open(&web.service.home, &slug, &run)?, from)
        });
        let Ok((piece, times, is_over)) = looked.await else {
            // The server's log has the reason; the client reconnects.
            return None;
        };
        if piece.next > from {
            log.next = piece.next;
            if let (Renderer::Steps(reader), Some(place)) = (&mut log.renderer, times) {
                reader.log_mut().read_times(&place);
            }
            let text = log.renderer.push(&piece.text);
            let event = Event::default().id(piece.next.to_string());
            return Some((Ok(event.data(serde_json::json!(text).to_string())), log));
        }
        if is_over {
            log.is_over = true;
            let event = Event::default().event("end").id(piece.next.to_string()).data("over");
            return Some((Ok(event), log));
        }
        sleep(PAUSE).await;
    }
}

/// The next slice of a log, where its times are, and whether the log has ended.
fn read_next(found: &FoundRun, from: u64) -> Result<(LogSlice, Option<BoxDir>, bool), Problem> {
    // Read before the log: an ended box prints nothing more.
    let runs = found.is_running()?;
    let cut = if runs { SliceEnd::WholeLine } else { SliceEnd::Anywhere };
    let piece = read_slice(&found.log()?, from, PIECE_MAX_BYTES, cut).or_general()?;
    Ok((piece, agent_box(&found.dir).ok(), !runs))
}

/// Streams the steps of all work items, so that an open page can reload.
pub(crate) async fn follow_work(
    State(web): State<WebState>,
    headers: HeaderMap,
    StrictQuery(from): StrictQuery<FollowParams>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let place = take_place(&web)?;
    let next = last_seen(&headers).unwrap_or(from.after).min(SEQ_MAX);
    let steps = WorkStream { web, next, _place: place };
    Ok(Sse::new(stream::unfold(steps, next_step)).keep_alive(KeepAlive::default()))
}

async fn next_step(mut steps: WorkStream) -> Option<(Result<Event, Infallible>, WorkStream)> {
    loop {
        let from = steps.next;
        let newest = query(&steps.web, move |web| {
            let events = web.service.store.events_since(from, STEPS_MAX)?;
            Ok(events.last().map(|event| event.seq))
        });
        if let Some(seq) = newest.await.ok()? {
            steps.next = seq;
            return Some((Ok(Event::default().id(seq.to_string()).data("news")), steps));
        }
        sleep(PAUSE).await;
    }
}

/// Steps that one event covers; more of them cause a second event.
const STEPS_MAX: usize = 500;

fn take_place(web: &WebState) -> Result<OwnedSemaphorePermit, Problem> {
    let detail = "too many event streams are open; close a page";
    let full = Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail);
    Arc::clone(&web.streams).try_acquire_owned().or(Err(full))
}

fn to_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn last_seen(headers: &HeaderMap) -> Option<u64> {
    header_text(headers, "last-event-id")?.parse().ok()
}
