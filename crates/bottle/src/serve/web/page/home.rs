//! `/`: every case; those that need a person come first.

use std::collections::BTreeMap;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use maud::{Markup, html};

use super::super::action::READ_ONLY;
use super::super::api::query::StrictQuery;
use super::super::auth::Principal;
use super::super::facts::case::{Case, RunProgress, load_cases};
use super::super::problem::Problem;
use super::super::rules::action::PROMPT_MAX_CHARS;
use super::super::rules::case_status::CaseStatus;
use super::super::rules::format;
use super::super::{WebState, query};
use super::filter::{CaseFilter, CaseGrouping};
use super::{Sheet, ago, badge, frame, line, link};

/// Cases shown for each status; the API lists all.
const SHOWN_MAX: usize = 100;

pub(crate) async fn show(
    State(web): State<WebState>,
    Extension(principal): Extension<Principal>,
    filter: Result<StrictQuery<CaseFilter>, Problem>,
) -> Response {
    let filter = match filter {
        Ok(StrictQuery(filter)) => filter,
        Err(problem) => return super::problem(&web, &problem),
    };
    let loaded = query(&web, |web| Ok((web.service.store.last_event()?, load_cases(web)?))).await;
    match loaded {
        Ok((seq, cases)) => {
            let now = host::clock::now();
            let calls = count_calls(&cases);
            let sheet = Sheet {
                title: title(calls),
                calls: Some(calls),
                main: render(
                    &cases,
                    &principal,
                    &repository_problems(&web),
                    &CardView { now, form_token: web.auth.form_token(&principal), filter },
                ),
                live: Some(format!("/live?after={seq}")),
            };
            frame(&web, Some(&principal), &sheet)
        }
        Err(problem) => super::problem(&web, &problem),
    }
}

/// Title of the page, with the number of cases that need a person first: it is what a tab shows.
fn title(calls: usize) -> String {
    if calls == 0 { "Bottles".to_owned() } else { format!("({calls}) Bottles") }
}

fn count_calls(cases: &[Case]) -> usize {
    cases.iter().filter(|case| case.status == CaseStatus::NeedsAttention).count()
}

/// What every card needs beside its case.
struct CardView {
    now: Timestamp,
    /// The token of forms; `None` for a reader.
    form_token: Option<String>,
    filter: CaseFilter,
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
    let calls = count_calls(cases);
    let shown: Vec<&Case> = cases.iter().filter(|case| view.filter.matches(case)).collect();
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
        // The script shows it where the browser can give notice, and nobody was asked yet.
        p.notify hidden { button type="button" data-notify { "Notify me when a bottle needs me" } }
        (view.filter.form(cases))
        @if shown.len() < cases.len() {
            p.hint { (shown.len()) " of " (cases.len()) " are shown." }
        }
        @if view.filter.group == CaseGrouping::Status {
            @for (status, list) in by_status(&shown) { (group(status, &list, view)) }
        } @else {
            @for (key, list) in by_key(&shown, view.filter.group) { (named_group(&key, &list, view)) }
        }
    }
}

/// Cases of each status, newest first; what needs a person comes first.
fn by_status<'a>(shown: &[&'a Case]) -> Vec<(CaseStatus, Vec<&'a Case>)> {
    let of = |status: CaseStatus| {
        let mut list: Vec<&Case> =
            shown.iter().copied().filter(|case| case.status == status).collect();
        list.sort_by_key(|case| std::cmp::Reverse(case.updated_at));
        (status, list)
    };
    CaseStatus::ALL.map(of).into_iter().filter(|(_, list)| !list.is_empty()).collect()
}

/// Cases of each group, in the order of their status and then newest first.
fn by_key<'a>(shown: &[&'a Case], by: CaseGrouping) -> BTreeMap<String, Vec<&'a Case>> {
    let mut groups: BTreeMap<String, Vec<&Case>> = BTreeMap::new();
    for case in shown {
        groups.entry(by.key_of(case)).or_default().push(case);
    }
    for list in groups.values_mut() {
        list.sort_by_key(|case| (case.status, std::cmp::Reverse(case.updated_at)));
    }
    groups
}

/// A group that is no status: each card says its own.
fn named_group(key: &str, list: &[&Case], view: &CardView) -> Markup {
    html! {
        section.group {
            h2 { (line(key)) " " span.count { (list.len()) } }
            (cards(list, view))
        }
    }
}

fn cards(list: &[&Case], view: &CardView) -> Markup {
    html! {
        ul.cases { @for case in list.iter().take(SHOWN_MAX) { li { (card(case, view)) } } }
        @if list.len() > SHOWN_MAX {
            p.hint {
                "And " (list.len() - SHOWN_MAX) " more: " a href="/api/v1/bottles" { "all bottles" } "."
            }
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
    let body = cards(list, view);
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
                @if view.filter.group != CaseGrouping::Status { " " (badge(case.status)) }
            }
            @match &case.question {
                Some(question) => (ask(question)),
                None => @if !case.reason.is_empty() { p.reason { (line(&case.reason)) } },
            }
            @if let Some(progress) = &case.progress { (at_work(progress, now)) }
            (facts(case, now))
            @if let (Some(_), Some(slug), Some(token)) = (&case.question, &case.slug, &view.form_token) {
                (answer_box(slug, token))
            }
        }
    }
}

/// Progress of a run at work.
pub(super) fn at_work(progress: &RunProgress, now: Timestamp) -> Markup {
    html! {
        @if !progress.step.is_empty() { p.step { (line(&progress.step)) } }
        ul.facts.progress {
            li { time datetime=(progress.started_at) data-since { (format::elapsed(progress.started_at, now)) } " so far" }
            li { (progress.doing) }
            @if let Some(tokens) = progress.tokens { li { (format::count(tokens)) " tokens" } }
            @if let Some(cost) = progress.cost_usd { li { (format::dollars(cost)) " so far" } }
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
