//! Server-sent events: an open page is told when the board changed, and now and then while a run is active.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive};
use axum::response::{IntoResponse, Response, Sse};
use futures_util::stream;
use tokio::sync::OwnedSemaphorePermit;

use super::{BoardState, PageError, answer, query};
use crate::exit::Failure;
use crate::flow::board::{BoardStamp, observe_stamp};

const PAUSE: Duration = Duration::from_millis(500);
/// Longest time without an event while a run is active: its step and its time go on.
const STEP: Duration = Duration::from_secs(5);

struct BoardStream {
    board: BoardState,
    stamp: Option<BoardStamp>,
    sent: Instant,
    number: u64,
    _place: OwnedSemaphorePermit,
}

pub(super) async fn follow(State(board): State<BoardState>) -> Response {
    let Ok(place) = Arc::clone(&board.streams).try_acquire_owned() else {
        let message = "too many pages are open; close one";
        return answer(
            &board,
            "/api/live",
            &PageError::new(StatusCode::SERVICE_UNAVAILABLE, message),
        );
    };
    let sent = host::clock::monotonic();
    let state = BoardStream { board, stamp: None, sent, number: 0, _place: place };
    Sse::new(stream::unfold(state, next)).keep_alive(KeepAlive::default()).into_response()
}

async fn next(mut state: BoardStream) -> Option<(Result<Event, Infallible>, BoardStream)> {
    loop {
        let stamp = query(&state.board, |board| observe_stamp(&board.dirs).map_err(Failure::from))
            .await
            .ok()?;
        let is_first = state.stamp.is_none();
        let is_old = stamp.has_run() && state.sent.elapsed() >= STEP;
        let is_new = !is_first && state.stamp.as_ref() != Some(&stamp);
        state.stamp = Some(stamp);
        if is_new || is_old {
            state.sent = host::clock::monotonic();
            state.number += 1;
            let event = Event::default().id(state.number.to_string()).data("news");
            return Some((Ok(event), state));
        }
        tokio::time::sleep(PAUSE).await;
    }
}
