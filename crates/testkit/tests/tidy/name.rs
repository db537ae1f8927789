//! The names of types: one meaning each, in the field's words.

use std::collections::BTreeMap;

use crate::source::{item_of, load};

/// Type names that may be defined in more than one place.
const DUPLICATED_MAX: usize = 40;

/// Lines that look like pointers to decisions: the examples in this file.
const POINTERS_MAX: usize = 3;

/// Words that no type has in its name any more: readers had to look them up.
const RETIRED: &[&str] = &[
    "Asked", "Cellar", "Chore", "Desk", "Dispute", "Errand", "Foreman", "Heard", "Hired", "Keeper",
    "Leash", "Lookout", "Mission", "News", "Patience", "Rounds", "Rung", "Scales", "Seat", "Shelf",
    "Sight", "Sighting", "Staff", "Told", "Trouble", "Unwanted", "Veil", "Visitor", "Wish",
    "Workshop",
];

#[test]
fn a_type_name_has_one_meaning() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, path) in types() {
        found.entry(name).or_default().push(path);
    }
    found.retain(|_, paths| paths.len() > 1);
    let count = found.len();
    assert!(count <= DUPLICATED_MAX, "{count} names, {DUPLICATED_MAX} may be: {found:#?}");
}

#[test]
fn retired_words_are_in_no_type_name() {
    let mut found: Vec<String> = Vec::new();
    for (name, path) in types() {
        if words_of(&name).iter().any(|word| RETIRED.contains(word)) || name.contains("WayOut") {
            found.push(format!("{path}: {name}"));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// A reader has the repository and nothing else: `(D12)` says nothing there.
#[test]
fn no_comment_points_to_a_decision_by_its_number() {
    let mut found: Vec<String> = Vec::new();
    for source in load("crates") {
        let lines = source.text.lines().enumerate();
        let pointing = lines.filter(|(_, line)| points_to_decision(line));
        found.extend(pointing.map(|(at, _)| format!("{}:{}", source.path, at + 1)));
    }
    let count = found.len();
    assert!(count <= POINTERS_MAX, "{count} lines, {POINTERS_MAX} may be: {found:#?}");
}

/// A reader scans for a noun or a verb. Help texts and API documents are read as sentences and may ask.
#[test]
fn doc_comments_begin_with_what_they_describe() {
    let is_for_users = |path: &str| {
        let parts = ["/commands/", "/serve/web/", "/cli.rs", "forklift/src/lib.rs"];
        parts.iter().any(|part| path.contains(part))
    };
    let mut found: Vec<String> = Vec::new();
    for source in load("crates").iter().filter(|source| !is_for_users(&source.path)) {
        let lines = source.production().lines().enumerate();
        let asking = lines.filter(|(_, line)| begins_with_a_question(line));
        found.extend(asking.map(|(at, _)| format!("{}:{}", source.path, at + 1)));
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// True if a doc comment's line begins with a word such as "What".
fn begins_with_a_question(line: &str) -> bool {
    let line = line.trim_start();
    let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
    let first = text.and_then(|text| text.split_whitespace().next());
    first.is_some_and(|word| ["What", "How", "Whether", "Whoever", "Who"].contains(&word))
}

/// The types that programs define, with their files. Associated types are no names of their own.
fn types() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for source in load("crates") {
        let mut is_after_impl = false;
        for line in source.production().lines() {
            is_after_impl |= line.contains("impl");
            let Some((kind, name, _)) = item_of(line) else { continue };
            let is_type = ["struct", "enum", "trait", "type", "union"].contains(&kind);
            let is_associated = kind == "type" && line.starts_with(' ') && is_after_impl;
            if is_type && !is_associated {
                found.push((name.to_owned(), source.path.clone()));
            }
        }
    }
    found
}

/// `BoxStatus` is made of `Box` and `Status`.
fn words_of(name: &str) -> Vec<&str> {
    let starts: Vec<usize> =
        name.char_indices().filter(|(_, c)| c.is_uppercase()).map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([name.len()]);
    starts.iter().zip(ends).map(|(start, end)| &name[*start..end]).collect()
}

/// True if a line contains something like `(D12` or `(5.8, D56`.
fn points_to_decision(line: &str) -> bool {
    line.match_indices('(').any(|(at, _)| {
        let inside = &line[at + 1..];
        let plain = inside.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let plain =
            if plain.len() < inside.len() { plain.trim_start_matches(", ") } else { inside };
        let digits = plain.strip_prefix('D');
        digits.is_some_and(|digits| digits.starts_with(|c: char| c.is_ascii_digit()))
    })
}

#[test]
fn pointers_and_questions_are_recognised() {
    for line in ["/// Ends it (D12).", "// as it says (5.8, D56)", "//! (D5, D62 to D65)"] {
        assert!(points_to_decision(line), "{line}");
    }
    for line in ["fn call(Data)", "// (Debian 12)", "f(D::default())"] {
        assert!(!points_to_decision(line), "{line}");
    }
    assert!(begins_with_a_question("    /// What it is."));
    assert!(!begins_with_a_question("    /// State of what it is."));
    assert_eq!(words_of("BoxStatus"), ["Box", "Status"]);
}
