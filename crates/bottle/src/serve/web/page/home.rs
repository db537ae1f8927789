//! `/`: every case; those that need a person come first.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use maud::{Markup, html};

use super::super::action::READ_ONLY;
use super::super::auth::Principal;
use super::super::facts::case::{Case, load_cases};
use super::super::rules::action::PROMPT_MAX_CHARS;
use super::super::rules::case_status::CaseStatus;
use super::super::rules::format;
use super::super::{WebState, query};
use super::{Sheet, ago, frame, line, link};

/// Cases shown for each status; the API lists all.
const SHOWN_MAX: usize = 100;

pub(crate) async fn show(
    State(web): State<WebState>,
    Extension(principal): Extension<Principal>,
) -> Response {
    let loaded = query(&web, |web| Ok((web.service.store.last_event()?, load_cases(web)?))).await;
    match loaded {
        Ok((seq, cases)) => {
            let now = host::clock::now();
            let sheet = Sheet {
                title: title(&cases),
                main: render(
                    &cases,
                    &principal,
                    &repository_problems(&web),
                    &CardView { now, form_token: web.auth.form_token(&principal) },
                ),
                live: Some(format!("/live?after={seq}")),
            };
            frame(&web, Some(&principal), &sheet)
        }
        Err(problem) => super::problem(&web, &problem),
    }
}

/// Title of the page, with the number of cases that need a person first: it is what a tab shows.
fn title(cases: &[Case]) -> String {
    let calls = cases.iter().filter(|case| case.status == CaseStatus::NeedsAttention).count();
    if calls == 0 { "Bottles".to_owned() } else { format!("({calls}) Bottles") }
}

/// What every card needs beside its case.
struct CardView {
    now: Timestamp,
    /// The token of forms; `None` for a reader.
    form_token: Option<String>,
}

fn repository_problems(web: &WebState) -> Vec<(String, String)> {
    web.service.vitals.problems().into_iter().collect()
}

fn render(
    cases: &[Case],
    principal: &Principal,
    problems: &[(String, String)],
    view: &CardView,
) -> Markup {
    let of = |status: CaseStatus| {
        let mut list: Vec<&Case> = cases.iter().filter(|case| case.status == status).collect();
        list.sort_by_key(|case| std::cmp::Reverse(case.updated_at));
        list
    };
    let calls = of(CaseStatus::NeedsAttention).len();
    html! {
        h1 {
            @match calls {
                0 if cases.is_empty() => "No bottles yet",
                0 => "Nothing needs you",
                1 => "One bottle needs you",
                _ => { (calls) " bottles need you" }
            }
        }
        p.summary { (summary(cases)) }
        @for (repo, problem) in problems {
            p.notice.bad role="alert" { strong { (line(repo)) } ": " (line(problem)) }
        }
        @if *principal == Principal::Reader { p.notice.hint { (READ_ONLY) "." } }
        @if cases.is_empty() {
            p { "Assign an issue to a member of the bots' organisation and label it " code { "bot-bottle:<agent>" } "." }
        }
        @for status in CaseStatus::ALL {
            @let list = of(status);
            @if !list.is_empty() { (group(status, &list, view)) }
        }
    }
}

fn summary(cases: &[Case]) -> Markup {
    let count = |of: CaseStatus| cases.iter().filter(|case| case.status == of).count();
    let cost: f64 = cases.iter().filter_map(|case| case.cost_usd).sum();
    let shown = [CaseStatus::Running, CaseStatus::Queued, CaseStatus::Waiting, CaseStatus::Frozen];
    let mut parts: Vec<String> = shown
        .into_iter()
        .filter(|of| count(*of) > 0)
        .map(|of| format!("{} {}", count(of), of.badge()))
        .collect();
    if cost > 0.0 {
        parts.push(format!("{} in all", format::dollars(cost)));
    }
    html! { (parts.join(" · ")) }
}

fn group(status: CaseStatus, list: &[&Case], view: &CardView) -> Markup {
    let (heading, meaning) = status.heading();
    let body = html! {
        ul.cases { @for case in list.iter().take(SHOWN_MAX) { li { (card(case, view)) } } }
        @if list.len() > SHOWN_MAX {
            p.hint {
                "And " (list.len() - SHOWN_MAX) " more: " a href="/api/v1/bottles" { "all bottles" } "."
            }
        }
    };
    html! {
        section class={ "group " (status.name()) } {
            @match status {
                CaseStatus::Destroyed => details {
                    summary { h2 { (heading) " " span.count { (list.len()) } } }
                    (body)
                },
                _ => {
                    h2 { (heading) " " span.count { (list.len()) } " " small { (meaning) } }
                    (body)
                },
            }
        }
    }
}

fn card(case: &Case, view: &CardView) -> Markup {
    let (title, now) = (case.title(), view.now);
    html! {
        article class={ "case " (case.status.name()) } {
            h3 {
                @match &case.slug {
                    Some(slug) => a href={ "/bottles/" (slug) } { bdi { (line(&title)) } },
                    None => bdi { (line(&title)) },
                }
            }
            @match &case.question {
                Some(question) => (ask(question)),
                None => @if !case.reason.is_empty() { p.reason { (line(&case.reason)) } },
            }
            (facts(case, now))
            @if let (Some(_), Some(slug), Some(token)) = (&case.question, &case.slug, &view.form_token) {
                (answer_box(slug, token))
            }
        }
    }
}

/// The agent's question, line by line.
pub(super) fn ask(question: &str) -> Markup {
    html! {
        blockquote.question {
            @for text in question.lines().filter(|text| !text.trim().is_empty()) { p { (line(text)) } }
        }
    }
}

/// A form that resumes the bottle with the answer.
fn answer_box(slug: &str, token: &str) -> Markup {
    let id = format!("answer-{slug}");
    html! {
        form.stack.answer method="post" action={ "/bottles/" (slug) "/resume" } {
            input type="hidden" name="token" value=(token);
            label for=(id) { "Answer" }
            textarea id=(id) name="prompt" rows="2" required maxlength=(PROMPT_MAX_CHARS) {}
            button.primary { "Answer and resume" }
        }
    }
}

/// The facts below a case.
pub(super) fn facts(case: &Case, now: Timestamp) -> Markup {
    html! {
        ul.facts {
            @if let Some(issue) = &case.issue {
                li.issue { (link(issue.url.as_ref(), &line(&format!("{}/{}#{}", issue.owner, issue.repo, issue.number)))) }
            }
            @if let Some(pull) = &case.pull {
                li.pull { (link(pull.url.as_ref(), &format!("PR #{}", pull.number))) }
            }
            @if !case.agent.is_empty() { li.agent { (line(&case.agent)) } }
            @if case.updated_at > Timestamp::UNIX_EPOCH { li.age { (ago(case.updated_at, now)) } }
            @if let Some(at) = case.not_before { li { "continues " (ago(at, now)) } }
            @if let Some(at) = case.destroy_at { li { "destroyed " (ago(at, now)) } }
            @if let Some(cost) = case.cost_usd { li.cost { (format::dollars(cost)) } }
            @if case.runs.len() > 1 { li { (case.runs.len()) " runs" } }
            @if let (CaseStatus::Running, Some(slug), Some(run)) = (case.status, &case.slug, case.runs.last()) {
                li { a href={ "/runs/" (slug) "/" (run) } { "watch" } }
            }
        }
    }
}
