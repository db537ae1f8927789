//! `/runs/<slug>/<run>/log.txt`: the whole log of a run's box as a file. Tokens are masked in it, as everywhere.

use std::convert::Infallible;
use std::path::PathBuf;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream;

use super::facts::log::{SliceEnd, read_slice};
use super::facts::run::FoundRun;
use super::{WebState, page, query};
use crate::exit::OrGeneral;

/// Bytes that are read at once: whole lines, so that no token is cut in two.
const SLICE_BYTES: usize = agent::reader::LINE_LIMIT;

pub(crate) async fn log_file(
    State(web): State<WebState>,
    Path((slug, run)): Path<(String, String)>,
) -> Response {
    let name = format!("attachment; filename=\"{run}.log.txt\"");
    let open = move |web: &super::Web| Ok(FoundRun::open(&web.service.home, &slug, &run)?.log()?);
    match query(&web, open).await {
        Ok(path) => {
            let slices = stream::unfold((web, path, 0), next_slice);
            let mut response = Body::from_stream(slices).into_response();
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
            // A run that was found has a plain name.
            if let Ok(name) = HeaderValue::from_str(&name) {
                headers.insert(CONTENT_DISPOSITION, name);
            }
            response
        }
        Err(problem) => page::problem(&web, &problem),
    }
}

type LogPosition = (WebState, PathBuf, u64);

/// The next part of the log; none at its end, or where it cannot be read any more.
async fn next_slice(
    (web, path, from): LogPosition,
) -> Option<(Result<String, Infallible>, LogPosition)> {
    let file = path.clone();
    let read = move |_: &super::Web| {
        let lines = read_slice(&file, from, SLICE_BYTES, SliceEnd::WholeLine).or_general()?;
        Ok(match lines.next > from {
            true => lines,
            false => read_slice(&file, from, SLICE_BYTES, SliceEnd::Anywhere).or_general()?,
        })
    };
    let slice = query(&web, read).await.ok()?;
    (slice.next > from).then_some((Ok(slice.text), (web, path, slice.next)))
}
