//! `/spending`: what runs spent on a day, and how much of each budget is left.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use jiff::civil::Date;
use maud::{Markup, html};

use super::super::api::query::StrictQuery;
use super::super::api::spending::DayParams;
use super::super::auth::Principal;
use super::super::facts::spending::{
    BudgetUse, IssueUse, SpendingReport, SpendingUnit, load_spending,
};
use super::super::problem::Problem;
use super::super::rules::format;
use super::super::{WebState, query};
use super::{Sheet, frame, line};
use crate::rules::budget::{day_of, render_usd};

pub(crate) async fn show(
    State(web): State<WebState>,
    Extension(principal): Extension<Principal>,
    params: Result<StrictQuery<DayParams>, Problem>,
) -> Response {
    let day = params.and_then(|StrictQuery(params)| params.date());
    let loaded = match day {
        Ok(day) => query(&web, move |web| load_spending(web, day)).await,
        Err(problem) => Err(problem),
    };
    match loaded {
        Ok(report) => {
            let sheet = Sheet::still("Spending", render(&report));
            frame(&web, Some(&principal), &sheet)
        }
        Err(problem) => super::problem(&web, &problem),
    }
}

fn render(report: &SpendingReport) -> Markup {
    let SpendingReport { day, budgets, issues } = report;
    html! {
        p.path { a href="/" { "Bottles" } " / spending" }
        h1 { "Spending on " (day) }
        p.summary { (days(*day)) }
        section {
            h2 { "Budgets" }
            @if budgets.is_empty() {
                p.hint { "No budget of a day is set; see " code { "[budget]" } " in the configuration of serve." }
            } @else {
                table {
                    thead { tr { th { "for" } th { "spent" } th { "reserved" } th { "limit" } } }
                    tbody { @for used in budgets { (budget_row(used)) } }
                }
            }
        }
        section {
            h2 { "Issues " span.count { (issues.len()) } }
            @if issues.is_empty() {
                p.hint { "No run was started on this day." }
            } @else {
                table {
                    thead { tr { th { "issue" } th { "runs" } th { "tokens" } th { "dollars" } th { "reserved" } } }
                    tbody { @for issue in issues { (issue_row(issue)) } }
                }
            }
        }
    }
}

/// Links to the days beside this one; there is none after today.
fn days(day: Date) -> Markup {
    let next = day.tomorrow().ok().filter(|next| *next <= day_of(host::clock::now()));
    html! {
        "A run counts on the day on which it was reserved, in UTC."
        @if let Ok(before) = day.yesterday() { " " a href={ "/spending?day=" (before) } { (before) } }
        @if let Some(next) = next { " · " a href={ "/spending?day=" (next) } { (next) } }
    }
}

fn budget_row(used: &BudgetUse) -> Markup {
    let show = |amount: u64| amount_in(used.unit, amount);
    let is_full = used.spent.saturating_add(used.reserved) >= used.limit;
    html! {
        tr {
            td { (line(&used.of)) }
            td { span.warn[is_full] { (show(used.spent)) } }
            td { (show(used.reserved)) }
            td { (show(used.limit)) }
        }
    }
}

fn issue_row(issue: &IssueUse) -> Markup {
    let IssueUse { owner, repo, number, runs, uncounted, .. } = issue;
    let tokens = amount_in(SpendingUnit::Tokens, issue.reserved_tokens);
    let dollars = amount_in(SpendingUnit::MicroUsd, issue.reserved_micro_usd);
    html! {
        tr {
            td { (line(&format!("{owner}/{repo}#{number}"))) }
            td { (runs) }
            td { (format::count(issue.tokens)) }
            td { (amount_in(SpendingUnit::MicroUsd, issue.micro_usd)) }
            td {
                (tokens) ", " (dollars)
                @if *uncounted > 0 { " (" (format::plural(to_usize(*uncounted), "run", "runs")) " not counted)" }
            }
        }
    }
}

fn amount_in(unit: SpendingUnit, amount: u64) -> String {
    match unit {
        SpendingUnit::Tokens => format!("{} tokens", format::count(amount)),
        SpendingUnit::MicroUsd => render_usd(amount),
    }
}

fn to_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
