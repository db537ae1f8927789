//! Logging in with the board's token, and out again.

use axum::Extension;
use axum::extract::rejection::{FormRejection, QueryRejection};
use axum::extract::{Form, Query, State};
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use web_base::auth::Principal;

use super::action::{BoardForm, read_form};
use super::{BoardState, PageError, page};

/// Query of the page: the address after the login.
#[derive(Debug, Deserialize)]
pub(super) struct BoardLoginParams {
    #[serde(default)]
    next: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BoardLoginForm {
    token: String,
    #[serde(default)]
    next: String,
}

pub(super) async fn show(
    State(board): State<BoardState>,
    next: Result<Query<BoardLoginParams>, QueryRejection>,
) -> Response {
    let next = next.map(|Query(params)| params.next).unwrap_or_default();
    page::login(&board, safe_next(&next), None)
}

pub(super) async fn log_in(
    State(board): State<BoardState>,
    headers: HeaderMap,
    form: Result<Form<BoardLoginForm>, FormRejection>,
) -> Response {
    let form = match form {
        Ok(Form(form)) => form,
        Err(error) => {
            return page::problem(&board, &PageError::new(error.status(), error.body_text()));
        }
    };
    if !board.auth.is_from_us(&headers) {
        let error = PageError::new(StatusCode::FORBIDDEN, "log in on this server's own page");
        return page::problem(&board, &error);
    }
    // The right token is always accepted: guesses of others must not lock its owner out.
    let Some(token) = board.auth.accepts(form.token.trim()) else {
        return refuse(&board, &form.next);
    };
    match board.auth.sessions.open(token, host::clock::now()) {
        Ok(id) => {
            let cookie = board.auth.cookie(Some(&id)).into_iter().collect::<HeaderMap>();
            (cookie, Redirect::to(safe_next(&form.next))).into_response()
        }
        Err(error) => page::problem(
            &board,
            &PageError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        ),
    }
}

fn refuse(board: &BoardState, next: &str) -> Response {
    let next = safe_next(next);
    let Err(wait) = board.auth.tries.count(host::clock::monotonic()) else {
        let mut response = page::login(board, next, Some("That is not the token."));
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        return response;
    };
    let message = format!("Too many tries. Wait {} seconds.", wait.as_secs() + 1);
    let mut response = page::login(board, next, Some(&message));
    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
    response
}

pub(super) async fn log_out(
    State(board): State<BoardState>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
    form: Result<Form<BoardForm>, FormRejection>,
) -> Response {
    if let Err(error) = read_form(&board, &principal, &headers, form) {
        return page::problem(&board, &error);
    }
    if let Principal::Session { id } = &principal {
        board.auth.sessions.close(id);
    }
    let cookie = board.auth.cookie(None).into_iter().collect::<HeaderMap>();
    (cookie, Redirect::to("/login")).into_response()
}

/// An address on this server; any other one becomes the board.
pub(super) fn safe_next(path: &str) -> &str {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let id = path.strip_prefix("/workstreams/");
    if id.is_some_and(|id| !id.is_empty() && id.chars().all(plain)) { path } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_leads_to_a_page_of_this_board() {
        assert_eq!(safe_next("/workstreams/login_form-2"), "/workstreams/login_form-2");
        for path in [
            "",
            "//evil.example",
            "https://e",
            "/workstreams/",
            "/workstreams/a/b",
            "/workstreams/..",
            "/live",
        ] {
            assert_eq!(safe_next(path), "/", "{path}");
        }
    }
}
