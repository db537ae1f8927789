//! The page, for people: rendered here, readable without scripts, and everything that came from outside escaped twice:
//! what could mislead the eye by us, what could act in a browser by the templates.

pub(crate) mod bottle;
mod diff;
pub(crate) mod home;
pub(crate) mod login;
pub(crate) mod run;

use std::borrow::Cow;

use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use jiff::Timestamp;
use maud::{DOCTYPE, Markup, html};
use model::escape::{escape_line, escape_terminal};

use super::asset::VERSION;
use super::door::Visitor;
use super::facts::timeline::Moment;
use super::problem::Problem;
use super::rules::standing::Standing;
use super::rules::words;
use super::{Shared, Web};

/// A page, before it has its frame.
pub(crate) struct Sheet {
    pub(crate) title: String,
    pub(crate) main: Markup,
    /// Where news come from that make this page worth showing anew.
    pub(crate) live: Option<String>,
}

/// A page in its frame.
pub(crate) fn frame(web: &Web, visitor: Option<&Visitor>, sheet: &Sheet) -> Response {
    let form_token = visitor.and_then(|visitor| web.door.form_token(visitor));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (line(&sheet.title)) " · bot-bottle" }
                link rel="icon" type="image/svg+xml" href={ "/icon.svg?" (VERSION) };
                link rel="stylesheet" href={ "/style.css?" (VERSION) };
                script src={ "/live.js?" (VERSION) } defer {}
            }
            body {
                a.skip href="#main" { "To the content" }
                header.bar {
                    a.brand href="/" { (logo()) "bot-bottle" }
                    @match visitor {
                        Some(Visitor::Session { .. }) => form method="post" action="/logout" {
                            input type="hidden" name="token" value=(form_token.unwrap_or_default());
                            button.quiet { "Log out" }
                        },
                        Some(Visitor::User { name }) => span.quiet { (line(name)) },
                        Some(Visitor::Reader) => span.quiet { "read only" },
                        Some(Visitor::Bearer) | None => {},
                    }
                }
                main #main data-live=[&sheet.live] { (sheet.main) }
                footer {
                    "bot-bottle " (VERSION) " · "
                    a href="/api/v1/openapi.json" { "API" } " · " a href="/metrics" { "metrics" }
                }
            }
        }
    };
    Html(page.into_string()).into_response()
}

/// What went wrong, for people.
pub(crate) fn problem(web: &Shared, problem: &Problem) -> Response {
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
    };
    let mut response = frame(web, None, &sheet);
    *response.status_mut() = status;
    if status == StatusCode::SERVICE_UNAVAILABLE {
        let soon = axum::http::HeaderValue::from_static("5");
        response.headers_mut().insert(axum::http::header::RETRY_AFTER, soon);
    }
    response
}

/// Text from outside, on one line.
fn line(text: &str) -> Cow<'_, str> {
    escape_line(text)
}

/// Text from outside, on as many lines as it has.
fn lines(text: &str) -> Cow<'_, str> {
    escape_terminal(text)
}

/// A moment, as people count from now.
fn ago(at: Timestamp, now: Timestamp) -> Markup {
    let span = words::between(at, now);
    html! {
        time datetime=(at) title=(full_time(at)) {
            @match at <= now { true => { (span) " ago" }, false => { "in " (span) } }
        }
    }
}

fn full_time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn badge(standing: Standing) -> Markup {
    html! { span class={ "badge " (standing.name()) } { (standing.badge()) } }
}

/// A link to elsewhere, where there is an address.
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
                li class=[moment.standing.map(Standing::name)] {
                    strong { (line(&moment.what)) } " "
                    (ago(moment.at, now))
                    @if !moment.more.is_empty() { p { (line(&moment.more)) } }
                }
            }
        }
    }
}

/// Something with a name, in a list of facts.
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
