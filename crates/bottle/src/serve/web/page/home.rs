//! `/`: every case, what needs a person first.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use maud::{Markup, html};

use super::super::door::Visitor;
use super::super::facts::case::{Case, load_cases};
use super::super::rules::standing::Standing;
use super::super::rules::words;
use super::super::wish::READ_ONLY;
use super::super::{Shared, ask};
use super::{Sheet, ago, frame, line, link};

/// So many of one standing; who needs more asks the API.
const SHOWN_MAX: usize = 100;

/// Shows it.
pub(crate) async fn show(
    State(web): State<Shared>,
    Extension(visitor): Extension<Visitor>,
) -> Response {
    let loaded = ask(&web, |web| Ok((web.service.store.last_event()?, load_cases(web)?))).await;
    match loaded {
        Ok((seq, cases)) => {
            let now = host::clock::now();
            let sheet = Sheet {
                title: "Bottles".to_owned(),
                main: render(&cases, &visitor, now),
                live: Some(format!("/live?after={seq}")),
            };
            frame(&web, Some(&visitor), &sheet)
        }
        Err(problem) => super::problem(&web, &problem),
    }
}

fn render(cases: &[Case], visitor: &Visitor, now: Timestamp) -> Markup {
    let of = |standing: Standing| {
        let mut list: Vec<&Case> = cases.iter().filter(|case| case.standing == standing).collect();
        list.sort_by_key(|case| std::cmp::Reverse(case.updated_at));
        list
    };
    let calls = of(Standing::NeedsAttention).len();
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
        @if *visitor == Visitor::Reader { p.notice.hint { (READ_ONLY) "." } }
        @if cases.is_empty() {
            p { "Assign an issue to a member of the bots' organisation and label it " code { "bot-bottle:<agent>" } "." }
        }
        @for standing in Standing::ALL {
            @let list = of(standing);
            @if !list.is_empty() { (group(standing, &list, now)) }
        }
    }
}

fn summary(cases: &[Case]) -> Markup {
    let count = |of: Standing| cases.iter().filter(|case| case.standing == of).count();
    let cost: f64 = cases.iter().filter_map(|case| case.cost_usd).sum();
    let shown = [Standing::Running, Standing::Queued, Standing::Waiting, Standing::Frozen];
    let mut parts: Vec<String> = shown
        .into_iter()
        .filter(|of| count(*of) > 0)
        .map(|of| format!("{} {}", count(of), of.badge()))
        .collect();
    if cost > 0.0 {
        parts.push(format!("{} in all", words::dollars(cost)));
    }
    html! { (parts.join(" · ")) }
}

fn group(standing: Standing, list: &[&Case], now: Timestamp) -> Markup {
    let (heading, meaning) = standing.heading();
    let body = html! {
        ul.cases { @for case in list.iter().take(SHOWN_MAX) { li { (card(case, now)) } } }
        @if list.len() > SHOWN_MAX {
            p.hint {
                "And " (list.len() - SHOWN_MAX) " more: " a href="/api/v1/bottles" { "all bottles" } "."
            }
        }
    };
    html! {
        section class={ "group " (standing.name()) } {
            @match standing {
                Standing::Destroyed => details {
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

fn card(case: &Case, now: Timestamp) -> Markup {
    let title = case.title();
    html! {
        article class={ "case " (case.standing.name()) } {
            h3 {
                @match &case.slug {
                    Some(slug) => a href={ "/bottles/" (slug) } { bdi { (line(&title)) } },
                    None => bdi { (line(&title)) },
                }
            }
            @if !case.reason.is_empty() { p.reason { (line(&case.reason)) } }
            (facts(case, now))
        }
    }
}

/// The line of small facts below a case.
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
            @if let Some(at) = case.not_before { li { "goes on " (ago(at, now)) } }
            @if let Some(at) = case.destroy_at { li { "goes away " (ago(at, now)) } }
            @if let Some(cost) = case.cost_usd { li.cost { (words::dollars(cost)) } }
            @if case.runs.len() > 1 { li { (case.runs.len()) " runs" } }
            @if let (Standing::Running, Some(slug), Some(run)) = (case.standing, &case.slug, case.runs.last()) {
                li { a href={ "/runs/" (slug) "/" (run) } { "watch" } }
            }
        }
    }
}
