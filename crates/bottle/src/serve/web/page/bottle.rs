//! `/bottles/<slug>`: one bottle with its runs, events and actions.

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use maud::{Markup, html};
use orchestrator_db::WorkEvent;
use serde::Deserialize;

use super::super::auth::Principal;
use super::super::facts::case::{BottleFacts, Case, load_bottle_facts};
use super::super::facts::missing::{MissingBottle, find_missing};
use super::super::facts::run::RunSummary;
use super::super::facts::timeline;
use super::super::problem::Problem;
use super::super::rules::action::{PROMPT_MAX_CHARS, UserAction};
use super::super::rules::format;
use super::super::{WebState, query};
use super::{Sheet, ago, badge, fact, frame, home, line};

#[derive(Debug, Deserialize)]
pub(crate) struct BottleParams {
    /// The action that was accepted just before.
    requested: Option<UserAction>,
}

pub(crate) async fn show(
    State(web): State<WebState>,
    Extension(principal): Extension<Principal>,
    Path(slug): Path<String>,
    params: Result<Query<BottleParams>, QueryRejection>,
) -> Response {
    let name = slug.clone();
    let loaded = query(&web, move |web| {
        Ok((web.service.store.last_event()?, load_bottle_facts(web, &name)?))
    });
    let (seq, loaded) = match loaded.await {
        Ok(loaded) => loaded,
        Err(problem) => return show_missing(&web, &principal, slug, problem).await,
    };
    let notice = params.ok().and_then(|Query(params)| params.requested).map(UserAction::notice);
    let form_token = web.auth.form_token(&principal);
    let sheet = Sheet {
        title: loaded.case.title(),
        main: render(&loaded, notice, form_token.as_deref(), host::clock::now()),
        live: Some(format!("/live?after={seq}")),
        calls: None,
    };
    frame(&web, Some(&principal), &sheet)
}

/// Says what became of a bottle that is not here, with the way back to its issue.
async fn show_missing(
    web: &WebState,
    principal: &Principal,
    slug: String,
    problem: Problem,
) -> Response {
    if problem.status() != StatusCode::NOT_FOUND {
        return super::problem(web, &problem);
    }
    let name = slug.clone();
    let found = query(web, move |web| find_missing(web, &name)).await;
    let Ok(Some(missing)) = found else { return super::problem(web, &problem) };
    let main = render_missing(&slug, &missing, host::clock::now());
    let mut response = frame(web, Some(principal), &Sheet::still(slug, main));
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

fn render_missing(slug: &str, missing: &MissingBottle, now: Timestamp) -> Markup {
    let MissingBottle { fate, issue, successor, events } = missing;
    let title = if issue.title.is_empty() { slug } else { &issue.title };
    let place = format!("{}/{}#{}", issue.owner, issue.repo, issue.number);
    html! {
        p.path { a href="/" { "Bottles" } " / " (line(slug)) }
        h1 { bdi { (line(title)) } }
        p.notice.bad { (line(fate)) "." }
        ul.facts {
            li { (super::link(issue.url.as_ref(), &line(&place))) }
            @if let Some(slug) = successor {
                li { "its issue has another bottle now: " a href={ "/bottles/" (slug) } { (line(slug)) } }
            }
        }
        @if !events.is_empty() {
            section { h2 { "Events" } (super::timeline(&newest_first(events), now)) }
        }
        p { a.button href="/" { "All bottles" } }
    }
}

fn render(
    loaded: &BottleFacts,
    notice: Option<&str>,
    form_token: Option<&str>,
    now: Timestamp,
) -> Markup {
    let BottleFacts { case, record, runs, events } = loaded;
    let slug = case.slug.clone().unwrap_or_default();
    html! {
        p.path { a href="/" { "Bottles" } " / " (slug) }
        div.head.big { h1 { bdi { (line(&case.title())) } } (badge(case.status)) }
        @if let Some(notice) = notice { p.notice.good role="status" { (notice) } }
        @match &case.question {
            Some(question) => (home::ask(question)),
            None => @if !case.reason.is_empty() { p.reason { (line(&case.reason)) } },
        }
        @if let Some(progress) = &case.progress { (home::at_work(progress, now)) }
        (home::facts(case, now))
        (actions(case, &slug, form_token))
        section {
            h2 { "Runs " span.count { (runs.len()) } }
            @match &case.host {
                Some(host) => p.hint { "Its runs are on host " (line(host)) ", which has the bottle." },
                None => @if runs.is_empty() { p.hint { "No run yet." } },
            }
            ul.runs { @for run in runs.iter().rev() { li { (run_row(run, now)) } } }
        }
        @if !events.is_empty() {
            section { h2 { "Events" } (super::timeline(&newest_first(events), now)) }
        }
        section {
            h2 { "Details" }
            dl.grid {
                (fact("branch", &html! { code { (line(record.branch.as_str())) } }))
                (fact("for", &html! { code { (line(record.base_branch.as_str())) } }))
                @if let Some(backend) = &case.backend { (fact("sandbox", &html! { (backend) })) }
                (fact("began", &ago(case.created_at, now)))
                @if let Some(at) = case.saved_at { (fact("saved", &ago(at, now))) }
                (fact("as JSON", &html! { a href={ "/api/v1/bottles/" (slug) } { "bottle" } }))
            }
        }
        (removal(case, &slug, form_token))
    }
}

fn newest_first(events: &[WorkEvent]) -> Vec<timeline::Moment> {
    let mut list = timeline::of_events(events);
    list.reverse();
    list
}

fn run_row(run: &RunSummary, now: Timestamp) -> Markup {
    html! {
        a.run href={ "/runs/" (run.slug) "/" (run.run) } {
            strong {
                @match &run.verdict {
                    Some(verdict) => (line(&verdict.message)),
                    None => (run.doing),
                }
            }
            span.facts {
                span { (ago(run.started_at, now)) }
                @if let Some(end) = run.finished_at { span { "took " (format::between(run.started_at, end)) } }
                @if run.commits > 0 { span { (format::plural(run.commits, "commit", "commits")) } }
                @if let Some(cost) = run.cost_usd { span { (format::dollars(cost)) } }
                @if run.watchdog_fired { span.warn { "no report" } }
            }
        }
    }
}

/// The actions that the status allows, for principals who may request them.
fn actions(case: &Case, slug: &str, form_token: Option<&str>) -> Markup {
    let Some(token) = form_token else { return html! {} };
    if !case.orchestrated {
        return html! {
            p.hint { "It was started by hand. Freeze it with " code { "bot-bottle freeze " (slug) } "." }
        };
    }
    let fits = |action: UserAction| action.check(case.status, "x").is_ok();
    let action = |word: &str| format!("/bottles/{slug}/{word}");
    let hidden = html! { input type="hidden" name="token" value=(token); };
    if !fits(UserAction::Resume) && !fits(UserAction::Freeze) {
        return html! {};
    }
    html! {
        section.actions aria-label="Actions" {
            @if fits(UserAction::Resume) {
                form.stack method="post" action=(action("resume")) {
                    (hidden)
                    label for="prompt" {
                        @if case.question.is_some() { "Answer" } @else { "Resume with this prompt" }
                    }
                    textarea #prompt name="prompt" rows="3" required maxlength=(PROMPT_MAX_CHARS) {}
                    button.primary { "Resume" }
                }
            }
            @if fits(UserAction::Freeze) {
                form method="post" action=(action("freeze")) { (hidden) button { "Freeze" } }
            }
        }
    }
}

/// The way to remove the bottle, apart from what goes on with it.
fn removal(case: &Case, slug: &str, form_token: Option<&str>) -> Markup {
    let Some(token) = form_token.filter(|_| case.orchestrated) else { return html! {} };
    if UserAction::Destroy.check(case.status, "").is_err() {
        return html! {};
    }
    html! {
        section.removal {
            h2 { "Remove this bottle" }
            details.sure {
                summary.button { "Destroy…" }
                form method="post" action={ "/bottles/" (slug) "/destroy" } {
                    input type="hidden" name="token" value=(token);
                    p { "This removes the workspace and the agent's memory. Commits and records stay." }
                    button.danger { "Destroy it" }
                }
            }
        }
    }
}
