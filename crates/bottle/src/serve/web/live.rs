//! Server-sent events: the log of a box, and the steps of all work items. A client that reconnects continues where it
//! stopped, because the id of each event is its position.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::stream::{self, Stream};
use model::escape::escape_terminal;
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::sleep;
use web_base::header::header_text;

use super::api::query::StrictQuery;
use super::facts::log::{LogSlice, SliceEnd, read_slice};
use super::facts::run::FoundRun;
use super::problem::Problem;
use super::rules::log_style::{LogRenderer, LogStyle, LogView};
use super::{Web, WebState, query};
use crate::exit::OrGeneral;

/// Interval between two reads of a log or the database.
const PAUSE: Duration = Duration::from_millis(500);
/// Largest slice in one event: the longest line of an agent's events.
const PIECE_MAX_BYTES: usize = agent::reader::LINE_LIMIT;
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
    renderer: LogRenderer,
    is_over: bool,
    _place: OwnedSemaphorePermit,
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
    let open = move |web: &Web| Ok(FoundRun::open(&web.service.home, &asked_slug, &asked_run)?);
    let style = LogStyle::of(&query(&web, open).await?.meta.manifest.provider, from.log);
    let next = last_seen(&headers).unwrap_or(from.after);
    let renderer = LogRenderer::new(style);
    let log = Log { web, slug, run, next, renderer, is_over: false, _place: place };
    Ok(Sse::new(stream::unfold(log, next_piece)).keep_alive(KeepAlive::default()))
}

async fn next_piece(mut log: Log) -> Option<(Result<Event, Infallible>, Log)> {
    if log.is_over {
        return None;
    }
    loop {
        let (slug, run, from) = (log.slug.clone(), log.run.clone(), log.next);
        let looked = query(&log.web, move |web| {
            read_next(&FoundRun::open(&web.service.home, &slug, &run)?, from)
        });
        let Ok((piece, is_over)) = looked.await else {
            // The server's log has the reason; the client reconnects.
            return None;
        };
        if piece.next > from {
            log.next = piece.next;
            let text = escape_terminal(&log.renderer.push(&piece.text)).into_owned();
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

/// The next slice of a log, and whether the log has ended.
fn read_next(found: &FoundRun, from: u64) -> Result<(LogSlice, bool), Problem> {
    // Read before the log: an ended box prints nothing more.
    let runs = found.is_running()?;
    let cut = if runs { SliceEnd::WholeLine } else { SliceEnd::Anywhere };
    let piece = read_slice(&found.log()?, from, PIECE_MAX_BYTES, cut).or_general()?;
    Ok((piece, !runs))
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

fn last_seen(headers: &HeaderMap) -> Option<u64> {
    header_text(headers, "last-event-id")?.parse().ok()
}
