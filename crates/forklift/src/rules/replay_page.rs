//! A replay as a page: files that were resolved otherwise than people did first, then every merge. Pure.

use maud::{Markup, html};
use merge::resolver::habit::Resolution;
use merge::resolver::replayed::{DifferentLines, Otherwise};

use super::page::render_frame;
use super::replay_summary::{FileRow, ReplayOutcome, ReplayReport, ReplayRow, left_out, numbers};
use super::words::counted;

pub(crate) fn render_html(report: &ReplayReport) -> String {
    let title = format!("Replay of {}", report.fork);
    let body = html! {
        p { (range(report)) }
        (totals(report))
        (otherwise(report))
        (merges(report))
        @for line in left_out(&report.summary) { p.small { (line) } }
    };
    render_frame(&title, "", &body)
}

/// The merges in words: how many, of what, from when to when.
fn range(report: &ReplayReport) -> String {
    let mut dates: Vec<&str> = report.merges.iter().filter_map(|row| row.date.as_deref()).collect();
    dates.sort_unstable();
    let when = match (dates.first(), dates.last()) {
        (Some(first), Some(last)) if first != last => format!(", {first} to {last}"),
        (Some(day), _) => format!(", {day}"),
        _ => String::new(),
    };
    format!(
        "{} of {} into {}{when}. Each was made again with what was known before it, at trust {}: \
        an answer that was less sure was left to an agent or a person.",
        counted(report.summary.merges, "merge"),
        report.upstream,
        report.fork,
        report.summary.trust
    )
}

fn totals(report: &ReplayReport) -> Markup {
    html! {
        ul.totals {
            @for outcome in ReplayOutcome::ALL {
                li {
                    (mark(outcome)) " " (outcome.shown().0) ": " (report.summary.count(outcome))
                }
            }
        }
        div.strip aria-hidden="true" {
            @for row in &report.merges { (mark(ReplayOutcome::of(row))) }
        }
        @for line in numbers(&report.summary) { p { (line) } }
    }
}

fn mark(outcome: ReplayOutcome) -> Markup {
    let class = match outcome {
        ReplayOutcome::Clean => "mark clean",
        ReplayOutcome::Agreed => "mark agreed",
        ReplayOutcome::Differed => "mark differed",
        ReplayOutcome::Open => "mark open",
    };
    html! { span class=(class) { (outcome.shown().1) } }
}

/// Files that were resolved otherwise than people did, the newest merge first.
fn otherwise(report: &ReplayReport) -> Markup {
    let found: Vec<(&ReplayRow, &FileRow, &Otherwise)> = report
        .merges
        .iter()
        .rev()
        .flat_map(|row| row.files.iter().map(move |file| (row, file)))
        .filter_map(|(row, file)| Some((row, file, file.otherwise.as_ref()?)))
        .collect();
    html! {
        h2 { "Resolved otherwise than people did: " (counted(found.len(), "file")) }
        @if found.is_empty() {
            p { (none_differs(report)) }
        }
        @for (row, file, otherwise) in found {
            section.file {
                h3 { (file.path) }
                p.small { (name(row)) }
                p {
                    "The resolver " (resolver_words(otherwise.resolver))
                    @if let Some(confidence) = file.confidence {
                        ", with a confidence of " (format!("{confidence:.2}"))
                    }
                    "; people " (people_words(otherwise.people)) "."
                }
                @for lines in &otherwise.hunks { (side_by_side(lines)) }
                @if otherwise.more > 0 {
                    p.small { "and " (counted(otherwise.more, "difference")) " more" }
                }
            }
        }
    }
}

fn none_differs(report: &ReplayReport) -> &'static str {
    if report.summary.score.files_resolved == 0 {
        "None, because no file was resolved without an agent."
    } else {
        "None. Everything that was resolved is what people committed."
    }
}

fn side_by_side(lines: &DifferentLines) -> Markup {
    let side = |name: &str, lines: &[String]| {
        html! {
            div {
                h4 { (name) }
                @if lines.is_empty() { p.small { "nothing" } } @else { pre { (lines.join("\n")) } }
            }
        }
    };
    html! {
        p.small { "at line " (lines.line) }
        div.sides {
            (side("resolver", &lines.resolver))
            (side("people", &lines.people))
        }
    }
}

fn resolver_words(choice: Resolution) -> &'static str {
    match choice {
        Resolution::Ours => "kept the fork's version",
        Resolution::Theirs => "took upstream's version",
        Resolution::Absent => "deleted the file",
        Resolution::Base => "went back to the common version",
        _ => "merged both sides",
    }
}

fn people_words(choice: Resolution) -> &'static str {
    match choice {
        Resolution::Other => "wrote something else",
        other => resolver_words(other),
    }
}

fn name(row: &ReplayRow) -> String {
    let date = row.date.as_deref().unwrap_or_default();
    format!("{} {date} {}", row.merge.short(), row.subject)
}

/// A row for each merge, the newest first.
fn merges(report: &ReplayReport) -> Markup {
    html! {
        h2 { "All merges" }
        div.wide {
            table {
                thead {
                    tr {
                        th { "" } th { "date" } th { "merge" } th { "subject" }
                        th.number { "in conflict" } th.number { "resolved" }
                        th.number { "as people did" }
                    }
                }
                tbody {
                    @for row in report.merges.iter().rev() {
                        tr {
                            td { (mark(ReplayOutcome::of(row))) }
                            td.day { (row.date.as_deref().unwrap_or_default()) }
                            td.id { code { (row.merge.short()) } }
                            td { (row.subject) (files(row)) }
                            td.number data-name="in conflict" { (row.conflicts) }
                            td.number data-name="resolved" { (row.score.files_resolved) }
                            td.number data-name="as people did" { (row.score.files_agreed) }
                        }
                    }
                }
            }
        }
    }
}

/// The files in conflict, folded.
fn files(row: &ReplayRow) -> Markup {
    html! {
        @if !row.files.is_empty() {
            details {
                summary { (counted(row.files.len(), "file")) }
                ul {
                    @for file in &row.files { li { code { (file.path) } ": " (file.outcome.words()) } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::replay_summary::tests::replayed;

    #[test]
    fn a_page_loads_nothing_and_escapes_what_others_said() {
        let page = render_html(&replayed());
        assert!(page.contains("&lt;b&gt;") && !page.contains("<b>"));
        assert!(!page.contains("http") && !page.contains("<script"));
    }

    #[test]
    fn files_that_were_resolved_otherwise_come_first_with_both_versions() {
        let mut report = replayed();
        let otherwise = report.merges[2].files[0].otherwise.as_mut().unwrap();
        otherwise.hunks.push(DifferentLines {
            line: 7,
            resolver: vec!["<fork>".to_owned()],
            people: vec!["theirs".to_owned()],
        });
        let page = render_html(&report);
        let (first, second) = page.split_once("All merges").unwrap();
        assert!(first.contains("Resolved otherwise than people did: 1 file"), "{page}");
        assert!(first.contains("&lt;fork&gt;") && first.contains("at line 7"), "{page}");
        assert!(first.contains("kept the fork's version"), "{page}");
        assert_eq!(second.matches("<tr>").count(), 1 + report.merges.len());
        assert!(page.contains("org/upstream into org/fork"), "{page}");
    }

    #[test]
    fn a_replay_that_resolved_nothing_does_not_boast() {
        let mut report = replayed();
        report.merges.iter_mut().flat_map(|row| &mut row.files).for_each(|file| {
            file.otherwise = None;
        });
        assert!(render_html(&report).contains("is what people committed"));
        report.summary.score.files_resolved = 0;
        let page = render_html(&report);
        assert!(page.contains("no file was resolved") && !page.contains("is what people"));
    }
}
