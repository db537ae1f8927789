//! Summary of several forks and branches as a page: those that need a person first. Pure.

use std::path::PathBuf;

use jiff::Timestamp;
use maud::{Markup, html};
use model::exit::ForkliftExit;
use model::id::BranchName;
use serde::Serialize;

use super::aggregate_status::WORST_FIRST;
use super::page::render_frame;
use super::review::ReviewPoint;
use super::words::counted;

/// Points of a result that the page shows; more are counted.
const POINTS_SHOWN: usize = 5;

/// End of one sync.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SummaryRow {
    pub(crate) fork: PathBuf,
    /// Branch of upstream, where FORK.md lists pairs of branches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<BranchName>,
    /// Branch of the fork that it goes into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) into: Option<BranchName>,
    pub(crate) run: Option<String>,
    pub(crate) verdict: Option<serde_json::Value>,
    pub(crate) words: String,
    /// Points of the result that a person has to look at.
    pub(crate) look_at: Vec<ReviewPoint>,
    pub(crate) pull: Option<String>,
    pub(crate) branch: Option<String>,
    /// The command to type next.
    pub(crate) next: Option<String>,
    pub(crate) status: u8,
    #[serde(skip)]
    pub(crate) outcome: ForkliftExit,
}

pub(crate) fn render_html(rows: &[SummaryRow], now: Timestamp) -> String {
    let done = rows.iter().filter(|row| row.outcome == ForkliftExit::Success).count();
    let title = format!("Forks, {}", now.strftime("%Y-%m-%d %H:%M UTC"));
    let body = html! {
        p {
            (counted(rows.len(), "sync")) ", " (done) " without a problem, "
            (counted(rows.len() - done, "sync")) " for a person."
        }
        @for row in sorted(rows) { (section(row)) }
    };
    render_frame(&title, "", &body)
}

/// The worst first; those of one status in their order.
fn sorted(rows: &[SummaryRow]) -> Vec<&SummaryRow> {
    let mut rows: Vec<&SummaryRow> = rows.iter().collect();
    let place = |row: &&SummaryRow| {
        let place = WORST_FIRST.iter().position(|status| *status == row.outcome);
        (place, row.look_at.is_empty())
    };
    rows.sort_by_key(place);
    rows
}

fn section(row: &SummaryRow) -> Markup {
    let class = if row.outcome == ForkliftExit::Success { "mark agreed" } else { "mark differed" };
    html! {
        section {
            h3 { span class=(class) { (row.status) } " " (row.fork.display()) }
            @if let (Some(from), Some(into)) = (&row.from, &row.into) {
                p.small { (from) " of upstream into " (into) }
            }
            p { (row.words) }
            @if !row.look_at.is_empty() {
                ul { @for point in row.look_at.iter().take(POINTS_SHOWN) { (point_row(point)) } }
                @if row.look_at.len() > POINTS_SHOWN {
                    p.small { "and " (row.look_at.len() - POINTS_SHOWN) " more" }
                }
            }
            p.small { (links(row)) }
            @if let Some(next) = &row.next { p.small { "next: " code { (next) } } }
        }
    }
}

fn point_row(point: &ReviewPoint) -> Markup {
    html! {
        li {
            @if let Some(path) = &point.path { code { (path) } ": " }
            (point.what)
        }
    }
}

/// The pull request, or the branch. Only addresses of the web become links.
fn links(row: &SummaryRow) -> Markup {
    let is_web = |url: &&String| url.starts_with("https://") || url.starts_with("http://");
    html! {
        @match (row.pull.as_ref().filter(is_web), &row.pull, &row.branch) {
            (Some(url), ..) => { a href=(url) rel="noreferrer" { (url) } }
            (None, Some(pull), _) => { (pull) }
            (None, None, Some(branch)) => { "branch " (branch) }
            (None, None, None) => { "nothing is published" }
        }
        @if let Some(run) = &row.run { ", run " (run) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::review::PointKind;
    use super::*;

    fn row(fork: &str, outcome: ForkliftExit) -> SummaryRow {
        SummaryRow {
            fork: fork.into(),
            from: None,
            into: None,
            run: None,
            verdict: None,
            words: format!("words of {fork}"),
            look_at: Vec::new(),
            pull: None,
            branch: None,
            next: None,
            status: outcome.code(),
            outcome,
        }
    }

    fn point(path: &str) -> ReviewPoint {
        ReviewPoint {
            path: Some(path.to_owned()),
            what: "was dropped".to_owned(),
            kind: PointKind::Grave,
        }
    }

    #[test]
    fn what_needs_a_person_stands_first() {
        let looked =
            SummaryRow { look_at: vec![point("a.c")], ..row("looked", ForkliftExit::Success) };
        let rows = [
            row("good", ForkliftExit::Success),
            looked,
            row("stuck", ForkliftExit::Stuck),
            row("broken", ForkliftExit::Machine),
        ];
        let order: Vec<String> =
            sorted(&rows).iter().map(|row| row.fork.display().to_string()).collect();
        assert_eq!(order, ["broken", "stuck", "looked", "good"]);
        let page = render_html(&rows, Timestamp::UNIX_EPOCH);
        assert!(page.contains("4 syncs, 2 without a problem, 2 syncs for a person."), "{page}");
    }

    #[test]
    fn no_text_of_others_acts_on_the_page() {
        let points: Vec<ReviewPoint> = (0..7).map(|n| point(&format!("<i>{n}"))).collect();
        let bad = SummaryRow {
            words: "<script>alert(1)</script>".to_owned(),
            pull: Some("javascript:alert(1)".to_owned()),
            look_at: points,
            ..row("<b>", ForkliftExit::Success)
        };
        let page = render_html(&[bad], Timestamp::UNIX_EPOCH);
        assert!(!page.contains("<script") && !page.contains("<b>") && !page.contains("<i>"));
        assert!(!page.contains("href"), "{page}");
        assert!(page.contains("and 2 more"), "{page}");
    }
}
