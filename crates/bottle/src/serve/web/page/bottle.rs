//! `/bottles/<slug>`: one bottle, its runs, what happened, and the buttons.

use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use jiff::Timestamp;
use maud::{Markup, html};
use orchestrator_db::WorkEvent;
use serde::Deserialize;

use super::super::door::Visitor;
use super::super::facts::case::{Case, load_bottle};
use super::super::facts::run::RunFacts;
use super::super::facts::timeline;
use super::super::rules::wish::{PROMPT_MAX_CHARS, Wish};
use super::super::rules::words;
use super::super::{Shared, ask};
use super::{Sheet, ago, badge, fact, frame, home, line};

/// What was asked for just before.
#[derive(Debug, Deserialize)]
pub(crate) struct Asked {
    #[serde(default)]
    asked: String,
}

struct Loaded {
    seq: u64,
    case: Case,
    branch: String,
    base_branch: String,
    runs: Vec<Arc<RunFacts>>,
    events: Vec<WorkEvent>,
}

/// Shows it.
pub(crate) async fn show(
    State(web): State<Shared>,
    Extension(visitor): Extension<Visitor>,
    Path(slug): Path<String>,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Response {
    let loaded = ask(&web, move |web| {
        let seq = web.service.store.last_event()?;
        let (case, bottle, record) = load_bottle(web, &slug)?;
        let events = match case.issue.as_ref().filter(|_| case.orchestrated) {
            Some(issue) => web.service.store.work_events(&issue.key())?,
            None => Vec::new(),
        };
        let runs = web.closed.of_bottle(&bottle, &record);
        let (branch, base_branch) = (record.branch.to_string(), record.base_branch.to_string());
        Ok(Loaded { seq, case, branch, base_branch, runs, events })
    });
    let loaded = match loaded.await {
        Ok(loaded) => loaded,
        Err(problem) => return super::problem(&web, &problem),
    };
    let notice = asked.ok().and_then(|Query(asked)| notice_of(&asked.asked));
    let form_token = web.door.form_token(&visitor);
    let sheet = Sheet {
        title: loaded.case.title(),
        main: render(&loaded, notice, form_token.as_deref(), host::clock::now()),
        live: Some(format!("/live?after={}", loaded.seq)),
    };
    frame(&web, Some(&visitor), &sheet)
}

fn notice_of(word: &str) -> Option<&'static str> {
    let wishes = [Wish::Freeze, Wish::Resume { prompt: String::new() }, Wish::Destroy];
    wishes.iter().find(|wish| wish.event() == word).map(Wish::notice)
}

fn render(
    loaded: &Loaded,
    notice: Option<&str>,
    form_token: Option<&str>,
    now: Timestamp,
) -> Markup {
    let Loaded { case, runs, .. } = loaded;
    let slug = case.slug.clone().unwrap_or_default();
    html! {
        p.path { a href="/" { "Bottles" } " / " (slug) }
        div.head.big { h1 { bdi { (line(&case.title())) } } (badge(case.standing)) }
        @if let Some(words) = notice { p.notice.good role="status" { (words) } }
        @if !case.reason.is_empty() { p.reason { (line(&case.reason)) } }
        (home::facts(case, now))
        (actions(case, &slug, form_token))
        section {
            h2 { "Runs " span.count { (runs.len()) } }
            @if runs.is_empty() { p.hint { "No run yet." } }
            ul.runs { @for run in runs.iter().rev() { li { (run_row(run, now)) } } }
        }
        @if !loaded.events.is_empty() {
            section { h2 { "What happened" } (super::timeline(&newest_first(&loaded.events), now)) }
        }
        section {
            h2 { "Details" }
            dl.grid {
                (fact("branch", &html! { code { (line(&loaded.branch)) } }))
                (fact("for", &html! { code { (line(&loaded.base_branch)) } }))
                @if let Some(backend) = &case.backend { (fact("sandbox", &html! { (backend) })) }
                (fact("began", &ago(case.created_at, now)))
                (fact("as JSON", &html! { a href={ "/api/v1/bottles/" (slug) } { "bottle" } }))
            }
        }
    }
}

fn newest_first(events: &[WorkEvent]) -> Vec<timeline::Moment> {
    let mut list = timeline::of_events(events);
    list.reverse();
    list
}

fn run_row(run: &RunFacts, now: Timestamp) -> Markup {
    html! {
        a.run href={ "/runs/" (run.slug) "/" (run.run) } {
            strong {
                @match &run.verdict {
                    Some(verdict) => (line(&verdict.words)),
                    None => (run.doing),
                }
            }
            span.facts {
                span { (ago(run.started_at, now)) }
                @if let Some(end) = run.finished_at { span { "took " (words::between(run.started_at, end)) } }
                @if run.commits > 0 { span { (words::plural(run.commits, "commit", "commits")) } }
                @if let Some(cost) = run.cost_usd { span { (words::dollars(cost)) } }
                @if run.watchdog_fired { span.warn { "no report" } }
            }
        }
    }
}

/// The buttons that make sense, for those who may press them.
fn actions(case: &Case, slug: &str, form_token: Option<&str>) -> Markup {
    let Some(token) = form_token else { return html! {} };
    if !case.orchestrated {
        return html! {
            p.hint { "It was started by hand. End it with " code { "bot-bottle freeze " (slug) } "." }
        };
    }
    let fits = |wish: &Wish| wish.check(case.standing).is_ok();
    let action = |word: &str| format!("/bottles/{slug}/{word}");
    let hidden = html! { input type="hidden" name="token" value=(token); };
    html! {
        section.actions aria-label="Actions" {
            @if fits(&Wish::Resume { prompt: "x".to_owned() }) {
                form.stack method="post" action=(action("resume")) {
                    (hidden)
                    label for="prompt" { "Go on, with these words for the agent" }
                    textarea #prompt name="prompt" rows="3" required maxlength=(PROMPT_MAX_CHARS) {}
                    button.primary { "Resume" }
                }
            }
            div.row {
                @if fits(&Wish::Freeze) {
                    form method="post" action=(action("freeze")) { (hidden) button { "Freeze" } }
                }
                @if fits(&Wish::Destroy) {
                    details.sure {
                        summary.button { "Destroy…" }
                        form method="post" action=(action("destroy")) {
                            (hidden)
                            p { "The workspace and the agent's memory are removed. Commits and records stay." }
                            button.danger { "Destroy it" }
                        }
                    }
                }
            }
        }
    }
}
