//! Logging in with the admin token, and out again.

use axum::Extension;
use axum::extract::rejection::{FormRejection, QueryRejection};
use axum::extract::{Form, Query, State};
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use maud::html;
use serde::Deserialize;

use super::super::WebState;
use super::super::action::{ActionForm, read_form};
use super::super::auth::Principal;
use super::super::problem::Problem;
use super::{Sheet, frame};

/// Query of the page: the address after the login.
#[derive(Debug, Deserialize)]
pub(crate) struct LoginParams {
    #[serde(default)]
    next: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoginForm {
    admin_token: String,
    #[serde(default)]
    next: String,
}

pub(crate) async fn show(
    State(web): State<WebState>,
    next: Result<Query<LoginParams>, QueryRejection>,
) -> Response {
    let next = next.map(|Query(next)| next.next).unwrap_or_default();
    render(&web, &next, None)
}

pub(crate) async fn log_in(
    State(web): State<WebState>,
    headers: HeaderMap,
    form: Result<Form<LoginForm>, FormRejection>,
) -> Response {
    let form = match form {
        Ok(Form(form)) => form,
        Err(error) => {
            return super::problem(&web, &Problem::new(error.status(), error.body_text()));
        }
    };
    if !web.auth.is_from_us(&headers) {
        let problem = Problem::new(StatusCode::FORBIDDEN, "log in on this server's own page");
        return super::problem(&web, &problem);
    }
    // The right token is always accepted: guesses of others must not lock its owner out. It has at least 32 characters.
    let Some(token) = web.auth.accepts(form.admin_token.trim()) else {
        return refuse_login(&web, &form.next);
    };
    match web.auth.sessions.open(token, host::clock::now()) {
        Ok(id) => {
            tracing::info!("a user logged in");
            let cookie = web.auth.cookie(Some(&id)).into_iter().collect::<HeaderMap>();
            (cookie, Redirect::to(safe_next(&form.next))).into_response()
        }
        Err(error) => super::problem(&web, &Problem::failed(&error)),
    }
}

/// Refuses a wrong token; after too many of them within a minute, with the time to wait.
fn refuse_login(web: &WebState, next: &str) -> Response {
    let Err(wait) = web.auth.tries.count(host::clock::monotonic()) else {
        tracing::warn!("a login with a wrong token");
        let mut response = render(web, next, Some("That is not the token."));
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        return response;
    };
    tracing::warn!("too many login attempts");
    let message = format!("Too many tries. Wait {} seconds.", wait.as_secs() + 1);
    let mut response = render(web, next, Some(&message));
    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
    response
}

pub(crate) async fn log_out(
    State(web): State<WebState>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
    form: Result<Form<ActionForm>, FormRejection>,
) -> Response {
    if let Err(problem) = read_form(&web, &principal, &headers, form) {
        return super::problem(&web, &problem);
    }
    if let Principal::Session { id } = &principal {
        web.auth.sessions.close(id);
    }
    let cookie = web.auth.cookie(None).into_iter().collect::<HeaderMap>();
    (cookie, Redirect::to("/login")).into_response()
}

/// An address on this server; any other one becomes the first page.
pub(crate) fn safe_next(path: &str) -> &str {
    let ours = path.starts_with("/bottles/") || path.starts_with("/runs/");
    let plain = |c: char| c.is_ascii_alphanumeric() || "/_-.".contains(c);
    if ours && path.chars().all(plain) && !path.contains("..") { path } else { "/" }
}

fn render(web: &WebState, next: &str, error: Option<&str>) -> Response {
    let main = html! {
        section.lone {
            h1 { "Log in" }
            @if let Some(error) = error { p.notice.bad role="alert" { (error) } }
            @match web.auth.has_token() {
                true => form.stack method="post" action="/login" {
                    input type="hidden" name="next" value=(safe_next(next));
                    label for="admin-token" { "Admin token" }
                    input #admin-token type="password" name="admin_token" required autofocus
                        autocomplete="current-password" spellcheck="false";
                    button.primary { "Log in" }
                    p.hint { "It is in the file named by " code { "admin_token_file" } "." }
                },
                false => p { "There is no token to log in with: " code { "admin_token_file" } " is not set." },
            }
        }
    };
    frame(web, None, &Sheet::still("Log in", main))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_leads_to_a_page_of_this_server() {
        assert_eq!(safe_next("/bottles/worker-issue-1"), "/bottles/worker-issue-1");
        for path in [
            "",
            "/",
            "//evil.example",
            "https://evil.example",
            "/bottles/../x",
            "/bottles/\\e",
            "/bottles/a?b",
            "/runs//evil.example:80/",
        ] {
            assert_eq!(safe_next(path), "/", "{path}");
        }
    }
}
