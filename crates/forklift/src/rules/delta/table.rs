//! The inventory for people: a few lines of numbers and a table of changes. Pure.

use merge::delta::LineCount;
use merge::delta::change::{Ground, UpstreamState};

use super::report::{ChangeRow, DeltaReport};
use crate::rules::words::counted;

/// Headings of the table.
pub(crate) const HEAD: [&str; 9] =
    ["CHANGE", "INTENT", "FILES", "LINES", "AGE", "CONFLICTS", "UPSTREAM", "RETIRE WHEN", "BY"];

pub(crate) fn row(change: &ChangeRow) -> Vec<String> {
    vec![
        change.name.clone(),
        change.intent.clone().unwrap_or_else(none),
        change.files.len().to_string(),
        line_words(change.lines),
        change.oldest_days.map_or_else(none, age),
        change.conflicts.to_string(),
        upstream_words(change.upstream.as_ref()),
        change.retire_when.clone().unwrap_or_else(none),
        change.ground.as_str().to_owned(),
    ]
}

fn none() -> String {
    "-".to_owned()
}

pub(crate) fn line_words(lines: LineCount) -> String {
    format!("+{} -{}", lines.added, lines.removed)
}

pub(crate) fn upstream_words(state: Option<&UpstreamState>) -> String {
    match state {
        None => none(),
        Some(UpstreamState::NotSent) => "not sent".to_owned(),
        Some(UpstreamState::Open(url)) => format!("open: {url}"),
        Some(UpstreamState::Merged(version)) => format!("merged in {version}"),
        Some(UpstreamState::Rejected(url)) => format!("rejected: {url}"),
    }
}

/// An age in the largest unit that fits.
pub(crate) fn age(days: i64) -> String {
    match days {
        ..60 => counted(usize::try_from(days).unwrap_or_default(), "day"),
        60..730 => counted(usize::try_from(days / 30).unwrap_or_default(), "month"),
        _ => counted(usize::try_from(days / 365).unwrap_or_default(), "year"),
    }
}

/// Counts of lines by what names them, and of those that are left.
pub(crate) fn assigned_words(report: &DeltaReport) -> String {
    let named =
        [Ground::Declared, Ground::Trailer, Ground::Commit].into_iter().filter_map(|ground| {
            let count = report.by_ground.get(&ground).copied().filter(|&count| count > 0)?;
            Some(format!("{count} by {}", by_words(ground)))
        });
    let named: Vec<String> = named.collect();
    let left = report.by_ground.get(&Ground::Path).copied().unwrap_or_default();
    let percent = report.assigned_percent();
    match (named.is_empty(), left) {
        (true, 0) => "nothing to assign".to_owned(),
        (_, 0) => format!("all lines: {}", named.join(", ")),
        (true, _) => format!("none of {left} lines has a name; they are listed by folder"),
        (false, _) => format!(
            "{percent} % of the lines: {}; {left} are left and listed by folder",
            named.join(", ")
        ),
    }
}

fn by_words(ground: Ground) -> &'static str {
    match ground {
        Ground::Declared => "FORK.toml",
        Ground::Trailer => "a trailer",
        Ground::Commit => "their commit",
        Ground::Path => "their folder",
    }
}

/// Where lines without a commit come from.
pub(crate) fn no_commit_words(report: &DeltaReport) -> Option<String> {
    let lines = report.without_commit;
    if lines.total() == 0 {
        return None;
    }
    let parts = [
        (lines.merges, "made by merges"),
        (lines.upstream, "of upstream in other versions"),
        (lines.unknown, "not traced"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, words)| format!("{count} {words}"))
        .collect();
    Some(format!("{}: {}", counted(lines.total(), "line"), parts.join(", ")))
}

/// Paths that are named.
const WORST_PATHS: usize = 3;

/// The paths in which past merges conflicted most often.
pub(crate) fn conflict_words(report: &DeltaReport) -> String {
    let merges = counted(report.past_merges, "past merge");
    let worst: Vec<String> = report
        .conflict_paths
        .iter()
        .take(WORST_PATHS)
        .map(|path| format!("{} ({})", path.path, path.merges))
        .collect();
    match worst.is_empty() {
        true => format!("none in {merges} of upstream"),
        false => format!(
            "in {} over {merges} of upstream; most often {}",
            counted(report.conflict_paths.len(), "path"),
            worst.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_in_the_largest_unit_that_fits() {
        for (days, words) in [
            (0, "0 days"),
            (1, "1 day"),
            (59, "59 days"),
            (60, "2 months"),
            (729, "24 months"),
            (730, "2 years"),
        ] {
            assert_eq!(age(days), words);
        }
    }

    #[test]
    fn every_state_at_upstream_has_its_words() {
        let text = || "x".to_owned();
        let states = [
            (None, "-"),
            (Some(UpstreamState::NotSent), "not sent"),
            (Some(UpstreamState::Open(text())), "open: x"),
            (Some(UpstreamState::Merged(text())), "merged in x"),
            (Some(UpstreamState::Rejected(text())), "rejected: x"),
        ];
        for (state, words) in states {
            assert_eq!(upstream_words(state.as_ref()), words);
        }
    }
}
