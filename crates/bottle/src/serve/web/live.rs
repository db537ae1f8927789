//! News as they come, by server-sent events: the log of a box, and the steps of any work. A reader that was cut off goes
//! on where it was, because the name of each event says how far it had come.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use engine::box_dir::BoxDir;
use engine::launch::{self, BoxStatus};
use futures_util::stream::{self, Stream};
use model::escape::escape_terminal;
use sandbox::spec::BoxOutput;
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::sleep;

use super::api::query::Asked;
use super::facts::log::{Cut, Piece, read_piece};
use super::facts::run::FoundRun;
use super::problem::Problem;
use super::rules::told::{Style, View};
use super::{Shared, Web, ask};
use crate::exit::OrExit;

/// How often a log and the state are looked at.
const PAUSE: Duration = Duration::from_millis(500);
/// As much as one event carries: the longest line that an agent's events may have.
const PIECE_MAX_BYTES: usize = agent::reader::LINE_LIMIT;
/// SQLite counts no further.
const SEQ_MAX: u64 = i64::MAX as u64;

/// Where to begin; a browser that comes again says it in a header, which counts more.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct From {
    #[serde(default)]
    after: u64,
    /// What to show of a log.
    #[serde(default)]
    log: View,
}

/// What comes next, and from whom.
struct Log {
    web: Shared,
    slug: String,
    run: String,
    next: u64,
    style: Style,
    is_over: bool,
    _place: OwnedSemaphorePermit,
}

struct WorkNews {
    web: Shared,
    next: u64,
    _place: OwnedSemaphorePermit,
}

/// Follows the log of a run's box until the box has ended and everything was told.
pub(crate) async fn follow_log(
    State(web): State<Shared>,
    Path((slug, run)): Path<(String, String)>,
    headers: HeaderMap,
    Asked(from): Asked<From>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let place = take_place(&web)?;
    let (asked_slug, asked_run) = (slug.clone(), run.clone());
    let open = move |web: &Web| Ok(FoundRun::open(&web.service.home, &asked_slug, &asked_run)?);
    let style = Style::of(&ask(&web, open).await?.meta.manifest.provider, from.log);
    let next = last_seen(&headers).unwrap_or(from.after);
    let log = Log { web, slug, run, next, style, is_over: false, _place: place };
    Ok(Sse::new(stream::unfold(log, next_piece)).keep_alive(KeepAlive::default()))
}

async fn next_piece(mut log: Log) -> Option<(Result<Event, Infallible>, Log)> {
    if log.is_over {
        return None;
    }
    loop {
        let (slug, run, from) = (log.slug.clone(), log.run.clone(), log.next);
        let looked = ask(&log.web, move |web| {
            let found = FoundRun::open(&web.service.home, &slug, &run)?;
            look(&found.place()?, found.dir.is_closed(), from)
        });
        let Ok((piece, is_over)) = looked.await else {
            // The log says why; the reader comes again.
            return None;
        };
        if piece.next > from {
            log.next = piece.next;
            let text = escape_terminal(&log.style.render(&piece.text)).into_owned();
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

/// What there is from a place on, and whether more can come.
fn look(place: &BoxDir, is_closed: bool, from: u64) -> Result<(Piece, bool), Problem> {
    // Looked at before the log is read: what was printed until then is all there is.
    let runs = match launch::box_status(place).or_general()? {
        BoxStatus::Running => true,
        BoxStatus::NeverStarted => !is_closed,
        BoxStatus::Ended(_) | BoxStatus::Orphaned => false,
    };
    let cut = if runs { Cut::Line } else { Cut::Anywhere };
    let path = place.stdout(BoxOutput::Log { cap: 0 });
    let piece = read_piece(&path, from, PIECE_MAX_BYTES, cut).or_general()?;
    Ok((piece, !runs))
}

/// Tells that something happened to any work, so that an open page can be shown anew.
pub(crate) async fn follow_work(
    State(web): State<Shared>,
    headers: HeaderMap,
    Asked(from): Asked<From>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let place = take_place(&web)?;
    let next = last_seen(&headers).unwrap_or(from.after).min(SEQ_MAX);
    let news = WorkNews { web, next, _place: place };
    Ok(Sse::new(stream::unfold(news, next_step)).keep_alive(KeepAlive::default()))
}

async fn next_step(mut news: WorkNews) -> Option<(Result<Event, Infallible>, WorkNews)> {
    loop {
        let from = news.next;
        let newest = ask(&news.web, move |web| {
            let events = web.service.store.events_since(from, NEWS_MAX)?;
            Ok(events.last().map(|event| event.seq))
        });
        if let Some(seq) = newest.await.ok()? {
            news.next = seq;
            return Some((Ok(Event::default().id(seq.to_string()).data("news")), news));
        }
        sleep(PAUSE).await;
    }
}

/// More news than this come in two events, which does no harm.
const NEWS_MAX: usize = 500;

fn take_place(web: &Shared) -> Result<OwnedSemaphorePermit, Problem> {
    let words = "too many pages are being told what happens; close one";
    let full = Problem::new(StatusCode::SERVICE_UNAVAILABLE, words);
    Arc::clone(&web.streams).try_acquire_owned().or(Err(full))
}

fn last_seen(headers: &HeaderMap) -> Option<u64> {
    headers.get("last-event-id")?.to_str().ok()?.parse().ok()
}
