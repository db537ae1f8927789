//! A patch series: names and headers of its files. Pure.
//!
//! The header of a patch follows DEP-3, the convention of Debian for patches that a distribution carries.

use jiff::Timestamp;
use merge::delta::change::{NamedChange, UpstreamState};

/// Letters of a file's name.
const SLUG_CHARS: usize = 50;

/// Name of the list of patches, as quilt has it.
pub(crate) const SERIES: &str = "series";

/// The name of a patch: its number and the change's name.
pub(crate) fn patch_name(number: usize, change: &str) -> String {
    let mut slug = String::new();
    for c in change.chars().map(|c| c.to_ascii_lowercase()) {
        match c {
            'a'..='z' | '0'..='9' => slug.push(c),
            _ if slug.ends_with('-') || slug.is_empty() => {}
            _ => slug.push('-'),
        }
        if slug.len() >= SLUG_CHARS {
            break;
        }
    }
    let slug = slug.trim_matches('-');
    format!("{number:04}-{}.patch", if slug.is_empty() { "change" } else { slug })
}

/// Facts about a patch for its header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PatchHeader<'a> {
    pub(crate) change: &'a NamedChange,
    /// Author and date of its newest commit.
    pub(crate) author: Option<&'a str>,
    pub(crate) updated: Option<i64>,
    /// Ids of its commits.
    pub(crate) commits: &'a [String],
}

/// Renders the header. No line of it can be taken for a part of a patch.
pub(crate) fn render_header(header: PatchHeader<'_>) -> String {
    let PatchHeader { change, author, updated, commits } = header;
    let mut text = format!("Description: {}\n", one_line(&change.name));
    for line in change.intent.iter().flat_map(|intent| intent.lines()) {
        text.push_str(&format!(
            " {}\n",
            if line.trim().is_empty() { "." } else { line.trim_end() }
        ));
    }
    for commit in commits {
        text.push_str(&format!("Origin: vendor, commit:{commit}\n"));
    }
    if let Some(author) = author {
        text.push_str(&format!("Author: {}\n", one_line(author)));
    }
    match &change.upstream {
        None => {}
        Some(UpstreamState::NotSent) => text.push_str("Forwarded: no\n"),
        Some(UpstreamState::Open(url)) => {
            text.push_str(&format!("Forwarded: {}\n", one_line(url)));
        }
        Some(UpstreamState::Rejected(url)) => {
            text.push_str(&format!("Forwarded: {} (rejected)\n", one_line(url)));
        }
        Some(UpstreamState::Merged(version)) => {
            text.push_str(&format!("Applied-Upstream: {}\n", one_line(version)));
        }
    }
    if let Some(when) = &change.retire_when {
        text.push_str(&format!("Retire-When: {}\n", one_line(when)));
    }
    let day = updated.and_then(|seconds| Timestamp::from_second(seconds).ok());
    if let Some(day) = day {
        text.push_str(&format!("Last-Update: {}\n", day.strftime("%Y-%m-%d")));
    }
    text.push_str("---\n");
    text
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Message of a commit of the stack: it can be given its change again by its trailer.
pub(crate) fn commit_message(change: &NamedChange) -> String {
    let name = one_line(&change.name);
    let intent = change.intent.as_ref().map(|intent| format!("{}\n\n", intent.trim()));
    format!("{name}\n\n{}{}: {name}\n", intent.unwrap_or_default(), merge::delta::change::TRAILER)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use merge::delta::LineCount;
    use merge::delta::change::Ground;

    use super::*;

    fn change(upstream: Option<UpstreamState>) -> NamedChange {
        NamedChange {
            name: "Log in\n--- a/x".to_owned(),
            ground: Ground::Declared,
            intent: Some("single sign-on\n\n--- a/f\n+++ b/f\n".to_owned()),
            upstream,
            retire_when: Some("2.0".to_owned()),
            commits: BTreeSet::new(),
            files: BTreeMap::new(),
            lines: LineCount::default(),
        }
    }

    #[test]
    fn a_name_is_a_file_name_on_any_system() {
        assert_eq!(patch_name(7, "net: Fix [x] / ../y"), "0007-net-fix-x-y.patch");
        assert_eq!(patch_name(1, "…"), "0001-change.patch");
        assert!(patch_name(1, &"a".repeat(500)).len() < 70);
    }

    #[test]
    fn a_header_says_what_the_fork_says_and_is_no_patch() {
        let change = change(Some(UpstreamState::Open("https://x/1".to_owned())));
        let header = PatchHeader {
            change: &change,
            author: Some("Ada <a@x>"),
            updated: Some(86_400),
            commits: &["abc".to_owned()],
        };
        insta::assert_snapshot!(render_header(header), @r"
        Description: Log in --- a/x
         single sign-on
         .
         --- a/f
         +++ b/f
        Origin: vendor, commit:abc
        Author: Ada <a@x>
        Forwarded: https://x/1
        Retire-When: 2.0
        Last-Update: 1970-01-02
        ---
        ");
    }

    #[test]
    fn a_commit_of_the_stack_names_its_change() {
        let message = commit_message(&change(None));
        assert!(message.starts_with("Log in --- a/x\n\n"), "{message}");
        assert!(message.ends_with("\nFork-Change: Log in --- a/x\n"), "{message}");
    }
}
