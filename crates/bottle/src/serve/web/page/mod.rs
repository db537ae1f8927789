//! The page, for people: rendered on the server and readable without scripts. Text from users and agents is escaped twice:
//! control and bidirectional characters here, HTML by the templates.

pub(crate) mod bottle;
mod diff;
mod filter;
pub(crate) mod history;
pub(crate) mod home;
pub(crate) mod login;
pub(crate) mod run;
pub(crate) mod service;
pub(crate) mod spending;
pub(crate) mod steps;

use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use jiff::Timestamp;
use maud::{DOCTYPE, Markup, html};
// Both escape text: onto one line, and line by line.
use model::escape::{escape_line as line, escape_terminal as lines};
use web_base::asset::VERSION;

use super::auth::Principal;
use super::facts::timeline::Moment;
use super::problem::Problem;
use super::rules::case_status::CaseStatus;
use super::rules::format;
use super::{Web, WebState};

/// A page without its frame.
pub(crate) struct Sheet {
    pub(crate) title: String,
    pub(crate) main: Markup,
    /// Event stream that makes the page reload.
    pub(crate) live: Option<String>,
    /// Number of cases that need a person, on the pages that count them.
    pub(crate) calls: Option<usize>,
}

impl Sheet {
    /// A page that does not reload.
    pub(crate) fn still(title: impl Into<String>, main: Markup) -> Self {
        Self { title: title.into(), main, live: None, calls: None }
    }
}

/// A page in its frame.
pub(crate) fn frame(web: &Web, principal: Option<&Principal>, sheet: &Sheet) -> Response {
    let form_token = principal.and_then(|principal| web.auth.form_token(principal));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (line(&sheet.title)) " · bot-bottle" }
                link rel="icon" type="image/svg+xml" href={ "/icon.svg?v=" (VERSION) "&calls=" (sheet.calls.unwrap_or(0)) };
                link rel="stylesheet" href={ "/style.css?" (VERSION) };
                script src={ "/live.js?" (VERSION) } defer {}
            }
            body {
                a.skip href="#main" { "Skip to content" }
                header.bar {
                    a.brand href="/" { (logo()) "bot-bottle" }
                    @match principal {
                        Some(Principal::Session { .. }) => form method="post" action="/logout" {
                            input type="hidden" name="token" value=(form_token.unwrap_or_default());
                            button.quiet { "Log out" }
                        },
                        Some(Principal::User { name }) => span.quiet { (line(name)) },
                        Some(Principal::Reader) => span.quiet { "read only" },
                        Some(Principal::Bearer) | None => {},
                    }
                }
                main #main data-live=[&sheet.live] data-calls=[sheet.calls] { (sheet.main) }
                footer {
                    "bot-bottle " (VERSION) " · "
                    a href="/history" { "history" } " · "
                    a href="/service" { "service" } " · "
                    a href="/spending" { "spending" } " · "
                    a href="/api/v1/openapi.json" { "API" } " · " a href="/metrics" { "metrics" }
                }
            }
        }
    };
    Html(page.into_string()).into_response()
}

pub(crate) fn problem(web: &WebState, problem: &Problem) -> Response {
    let status = problem.status();
    let sheet = Sheet {
        title: status.canonical_reason().unwrap_or("Problem").to_owned(),
        main: html! {
            section.lone {
                p.code { (status.as_u16()) }
                h1 { (status.canonical_reason().unwrap_or("Problem")) }
                p { (line(problem.detail())) }
                p { a.button href="/" { "All bottles" } }
            }
        },
        live: None,
        calls: None,
    };
    let mut response = frame(web, None, &sheet);
    *response.status_mut() = status;
    if status == StatusCode::SERVICE_UNAVAILABLE {
        let soon = axum::http::HeaderValue::from_static("5");
        response.headers_mut().insert(axum::http::header::RETRY_AFTER, soon);
    }
    response
}

fn ago(at: Timestamp, now: Timestamp) -> Markup {
    let span = format::between(at, now);
    html! {
        time datetime=(at) title=(full_time(at)) {
            @match at <= now { true => { (span) " ago" }, false => { "in " (span) } }
        }
    }
}

fn full_time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn badge(status: CaseStatus) -> Markup {
    html! { span class={ "badge " (status.name()) } { (status.badge()) } }
}

/// A link, if there is an address.
fn link(url: Option<&String>, text: &str) -> Markup {
    html! {
        @match url {
            Some(url) => a href=(url) rel="noopener noreferrer" { (text) },
            None => (text),
        }
    }
}

fn timeline(list: &[Moment], now: Timestamp) -> Markup {
    html! {
        ol.timeline {
            @for moment in list {
                li class=[moment.status.map(CaseStatus::name)] {
                    strong { (line(&moment.what)) } " "
                    (ago(moment.at, now))
                    @if !moment.more.is_empty() { p { (line(&moment.more)) } }
                }
            }
        }
    }
}

fn fact(name: &str, value: &Markup) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

/// The bottle, drawn in the colour of the text around it.
fn logo() -> Markup {
    html! {
        svg.logo viewBox="0 0 24 24" aria-hidden="true" {
            path d="M10 2h4v2.5l-.5.5v3.2c2.6 1 4.2 3 4.2 5.8v6a2 2 0 0 1-2 2H8.3a2 2 0 0 1-2-2v-6c0-2.8 1.6-4.8 4.2-5.8V5l-.5-.5z" {}
            path.drop d="M8.3 14.5h7.4v5.3h-7.4z" {}
        }
    }
}
