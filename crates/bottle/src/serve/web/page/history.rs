//! `/history`: the runs of the last days, what they cost, and the newest ones by themselves.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use jiff::civil::Date;
use maud::{Markup, html};
use serde::Deserialize;

use super::super::api::query::StrictQuery;
use super::super::auth::Principal;
use super::super::facts::run::RunSummary;
use super::super::problem::Problem;
use super::super::rules::format;
use super::super::rules::history::{DayOfRuns, PastRun, by_day};
use super::super::{Web, WebState, query};
use super::{Sheet, ago, frame, line};
use crate::flow::bottle::Bottle;
use crate::rules::budget::day_of;

const DAYS: u16 = 30;
const DAYS_MAX: u16 = 366;
/// Runs that are listed one by one.
const LISTED_MAX: usize = 100;
/// Size of the plot, in its own units.
const PLOT: (usize, usize) = (600, 120);

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct HistoryParams {
    /// Number of days; 30 where it is not said.
    days: Option<u16>,
    /// Runs of this repository alone, as `owner/name`.
    repo: String,
}

struct HistoryPage {
    days: Vec<(Date, DayOfRuns)>,
    /// Newest first.
    newest: Vec<(Arc<RunSummary>, String)>,
    repo: String,
}

pub(crate) async fn show(
    State(web): State<WebState>,
    Extension(principal): Extension<Principal>,
    params: Result<StrictQuery<HistoryParams>, Problem>,
) -> Response {
    let loaded = match params {
        Ok(StrictQuery(params)) => query(&web, move |web| load(web, params)).await,
        Err(problem) => Err(problem),
    };
    match loaded {
        Ok(history) => {
            let main = render(&history, host::clock::now());
            frame(&web, Some(&principal), &Sheet::still("History", main))
        }
        Err(problem) => super::problem(&web, &problem),
    }
}

fn load(web: &Web, params: HistoryParams) -> Result<HistoryPage, Problem> {
    let count @ 1..=DAYS_MAX = params.days.unwrap_or(DAYS) else {
        return Err(Problem::wrong(format!("days must be from 1 to {DAYS_MAX}")));
    };
    let mut runs = Vec::new();
    for (bottle, record) in Bottle::all(&web.service.home)?.into_iter().flat_map(|it| it.1) {
        let repo = record.forge.as_ref().map(|env| format!("{}/{}", env.owner, env.repo));
        let repo = repo.unwrap_or_default();
        if params.repo.is_empty() || params.repo == repo {
            let of_bottle = web.closed.of_bottle(&bottle, &record);
            runs.extend(of_bottle.into_iter().map(|run| (run, repo.clone())));
        }
    }
    runs.sort_by_key(|(run, _)| std::cmp::Reverse(run.started_at));
    let past = runs.iter().map(|(run, _)| PastRun {
        day: day_of(run.started_at),
        verdict: run.verdict.as_ref().map(|verdict| verdict.kind.as_str()),
        tokens: run.tokens,
        usd: run.cost_usd,
    });
    let days = by_day(past, day_of(host::clock::now()), count);
    runs.truncate(LISTED_MAX);
    Ok(HistoryPage { days, newest: runs, repo: params.repo })
}

fn render(history: &HistoryPage, now: Timestamp) -> Markup {
    let HistoryPage { days, newest, repo } = history;
    let total = days.iter().fold(DayOfRuns::default(), |sum, (_, day)| DayOfRuns {
        runs: sum.runs + day.runs,
        published: sum.published + day.published,
        tokens: sum.tokens.saturating_add(day.tokens),
        usd: sum.usd + day.usd,
    });
    html! {
        p.path { a href="/" { "Bottles" } " / History" }
        h1 { "History" @if !repo.is_empty() { " of " bdi { (line(repo)) } } }
        p.summary { (sum_up(&total, days.len())) }
        (span_links(days.len(), repo))
        (plot("Runs a day", days, |day| to_f64(day.runs), |value| format!("{value:.0}")))
        (plot("Cost a day", days, |day| day.usd, format::dollars))
        (table(days))
        section {
            h2 { "Newest runs " span.count { (newest.len()) } }
            @if newest.is_empty() { p.hint { "No run yet." } }
            ul.runs { @for (run, repo) in newest { li { (run_row(run, repo, now)) } } }
        }
    }
}

fn sum_up(total: &DayOfRuns, days: usize) -> String {
    let mut text = format!(
        "{} in {}, {} published",
        format::plural(total.runs, "run", "runs"),
        format::plural(days, "day", "days"),
        total.published
    );
    if total.tokens > 0 {
        text.push_str(&format!(", {} tokens", format::count(total.tokens)));
    }
    if total.usd > 0.0 {
        text.push_str(&format!(", {} as far as it is known", format::dollars(total.usd)));
    }
    text + "."
}

fn span_links(shown: usize, repo: &str) -> Markup {
    html! {
        form.filter method="get" action="/history" {
            label { "Days "
                select name="days" {
                    @for days in [7, 30, 90, 366] {
                        option value=(days) selected[days == shown] { (days) }
                    }
                }
            }
            @if !repo.is_empty() { input type="hidden" name="repo" value=(line(repo)); }
            button { "Show" }
            @if !repo.is_empty() { a href="/history" { "All repositories" } }
        }
    }
}

/// A bar for each day. The numbers stand in the table below it.
fn plot(
    heading: &str,
    days: &[(Date, DayOfRuns)],
    value: impl Fn(&DayOfRuns) -> f64,
    show: impl Fn(f64) -> String,
) -> Markup {
    let most = days.iter().map(|(_, day)| value(day)).fold(0.0, f64::max);
    if most <= 0.0 {
        return html! {};
    }
    let (width, height) = (to_f64(PLOT.0), to_f64(PLOT.1));
    let step = width / to_f64(days.len().max(1));
    let ends = days.first().map(|it| it.0).zip(days.last().map(|it| it.0));
    html! {
        figure.plot {
            figcaption { (heading) ", at most " (show(most)) }
            svg viewBox={ "0 0 " (PLOT.0) " " (PLOT.1) } preserveAspectRatio="none" aria-hidden="true" {
                @for (index, (day, of_day)) in days.iter().enumerate() {
                    @let bar = value(of_day) / most * height;
                    @if bar > 0.0 {
                        rect x=(format!("{:.1}", step * to_f64(index) + step * 0.1)) y=(format!("{:.1}", height - bar))
                            width=(format!("{:.1}", step * 0.8)) height=(format!("{bar:.1}")) {
                            title { (day) ": " (show(value(of_day))) }
                        }
                    }
                }
            }
            @if let Some((first, last)) = ends { p.axis { span { (first) } span { (last) } } }
        }
    }
}

/// The days with runs, newest first.
fn table(days: &[(Date, DayOfRuns)]) -> Markup {
    let busy = || days.iter().rev().filter(|(_, day)| day.runs > 0);
    html! {
        @if busy().next().is_some() {
            details {
                summary { "The numbers" }
                div.scroll tabindex="0" role="region" aria-label="Runs by day" { table {
                    thead { tr { th { "day (UTC)" } th.n { "runs" } th.n { "published" } th.n { "tokens" } th.n { "cost" } } }
                    tbody { @for (day, it) in busy() {
                        tr {
                            td { (day) } td.n { (it.runs) } td.n { (it.published) }
                            td.n { (format::count(it.tokens)) } td.n { (format::dollars(it.usd)) }
                        }
                    } }
                } }
            }
        }
    }
}

fn run_row(run: &RunSummary, repo: &str, now: Timestamp) -> Markup {
    html! {
        a.run href={ "/runs/" (run.slug) "/" (run.run) } {
            strong {
                @match &run.verdict {
                    Some(verdict) => (line(&verdict.message)),
                    None => (run.doing),
                }
            }
            span.facts {
                span { (line(&run.slug)) }
                @if !repo.is_empty() { span { (line(repo)) } }
                span { (ago(run.started_at, now)) }
                @if let Some(end) = run.finished_at { span { "took " (format::between(run.started_at, end)) } }
                @if let Some(tokens) = run.tokens { span { (format::count(tokens)) " tokens" } }
                @if let Some(cost) = run.cost_usd { span { (format::dollars(cost)) } }
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "it is drawn")]
fn to_f64(count: usize) -> f64 {
    count as f64
}
