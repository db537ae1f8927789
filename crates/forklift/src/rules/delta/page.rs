//! The inventory as a page: numbers, a plot of its size over the past merges of upstream, and a table of the changes. Pure.

use maud::{Markup, html};

use super::report::DeltaReport;
use super::table::{HEAD, assigned_words, conflict_words, line_words, no_commit_words, row};
use crate::rules::page::render_frame;
use crate::rules::words::counted;

const PLOT_STYLE: &str = include_str!("page.css");

/// Size of the plot, in its own units.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 220.0;

/// The fork's size after a merge of upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SizePoint {
    /// Seconds since 1970.
    pub(crate) seconds: i64,
    pub(crate) day: String,
    /// The merge, shortened; or words for the fork as it is.
    pub(crate) merge: String,
    /// Lines that differ from what was merged.
    pub(crate) lines: u64,
}

pub(crate) fn render_page(report: &DeltaReport, names: [&str; 2], sizes: &[SizePoint]) -> String {
    let [fork, upstream] = names;
    let title = format!("What {fork} has of its own");
    let body = html! {
        p {
            (line_words(report.lines)) " lines in " (counted(report.files, "file")) ", in "
            (counted(report.changes.len(), "change")) ", beside " (upstream) " at "
            code { (report.parted.short()) } "."
        }
        p { "Assigned: " (assigned_words(report)) "." }
        @if let Some(words) = no_commit_words(report) { p.small { "Without a commit: " (words) "." } }
        @if report.past_merges > 0 { p.small { "Conflicts: " (conflict_words(report)) "." } }
        (plot(sizes))
        (changes(report))
    };
    render_frame(&title, PLOT_STYLE, &body)
}

/// The plot: a line over time, each merge a dot with its numbers.
fn plot(sizes: &[SizePoint]) -> Markup {
    let ([first, .., last], Some(most)) = (sizes, sizes.iter().map(|point| point.lines).max())
    else {
        return html! { p.small { "Too few merges of upstream are known for a plot." } };
    };
    let places: Vec<(f64, f64)> =
        sizes.iter().map(|point| (across(point, first, last), up(point.lines, most))).collect();
    let line: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    html! {
        h2 { "Size over time" }
        p.small {
            "Lines that were added or removed beside upstream's commit, after each of "
            (counted(sizes.len() - 1, "merge")) " of upstream and today."
        }
        div.wide {
            svg.plot viewBox=(format!("-10 -10 {} {}", WIDTH + 20.0, HEIGHT + 20.0)) role="img"
                aria-label=(format!("from {} lines to {}", first.lines, last.lines)) {
                line.axis x1="0" y1=(HEIGHT) x2=(WIDTH) y2=(HEIGHT) {}
                polyline points=(line.join(" ")) {}
                @for (point, (x, y)) in sizes.iter().zip(&places) {
                    circle cx=(format!("{x:.1}")) cy=(format!("{y:.1}")) r="3" {
                        title { (point.day) ", " (point.merge) ": " (counted(usize::try_from(point.lines).unwrap_or(usize::MAX), "line")) }
                    }
                }
            }
        }
        p.small { (first.day) ": " (first.lines) ", " (last.day) ": " (last.lines) ", most: " (most) "." }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a plot needs no more")]
fn across(point: &SizePoint, first: &SizePoint, last: &SizePoint) -> f64 {
    let span = (last.seconds - first.seconds).max(1) as f64;
    (WIDTH * (point.seconds - first.seconds) as f64 / span).clamp(0.0, WIDTH)
}

#[expect(clippy::cast_precision_loss, reason = "a plot needs no more")]
fn up(lines: u64, most: u64) -> f64 {
    HEIGHT - HEIGHT * lines as f64 / most.max(1) as f64
}

fn changes(report: &DeltaReport) -> Markup {
    html! {
        h2 { "Changes" }
        div.wide {
            table {
                thead { tr { @for name in HEAD { th { (name.to_lowercase()) } } } }
                tbody {
                    @for change in &report.changes {
                        tr { @for (name, cell) in HEAD.iter().zip(row(change)) { td data-name=(name.to_lowercase()) { (cell) } } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use merge::delta::change::Ground;
    use merge::delta::state::ChangeState;

    use super::super::check::tests::{change, report};
    use super::*;

    fn point(seconds: i64, lines: u64) -> SizePoint {
        SizePoint { seconds, day: "2026-01-02".to_owned(), merge: "abc".to_owned(), lines }
    }

    #[test]
    fn a_page_has_every_change_and_loads_nothing() {
        let report = report(vec![
            change("<b>one</b>", Ground::Commit, ChangeState::Whole, '1'),
            change("two", Ground::Declared, ChangeState::Whole, '2'),
        ]);
        let page =
            render_page(&report, ["me/fork", "them/project"], &[point(0, 10), point(100, 40)]);
        assert!(page.contains("&lt;b&gt;one") && !page.contains("<b>one"), "{page}");
        assert!(!page.contains("http") && !page.contains("<script"), "{page}");
        assert_eq!(page.matches("<tr>").count(), 3);
        assert!(page.contains("0.0,165.0 900.0,0.0"), "{page}");
    }

    #[test]
    fn one_point_is_no_plot() {
        let page = render_page(&report(Vec::new()), ["a", "b"], &[point(0, 10)]);
        assert!(page.contains("Too few merges") && !page.contains("<svg"), "{page}");
    }
}
