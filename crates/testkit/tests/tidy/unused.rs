//! Every public item of a library is named in another file of the workspace.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, item_of, load};

/// Crates that are programs: what they call `pub` is for themselves, and the compiler finds what is unused.
const PROGRAMS: [&str; 3] = ["forklift", "bottle", "testkit"];

#[test]
fn what_is_public_is_used_elsewhere() {
    let (sources, targets) = (load("crates"), load("fuzz"));
    let mut files_with: BTreeMap<&str, usize> = BTreeMap::new();
    for source in sources.iter().chain(&targets) {
        for word in words(&source.text).collect::<BTreeSet<_>>() {
            *files_with.entry(word).or_default() += 1;
        }
    }
    let mut unused = Vec::new();
    for source in sources.iter().filter(|source| is_library(source)) {
        for (kind, name) in public_items(source.production()) {
            let is_used = files_with.get(name).is_some_and(|files| *files > 1)
                || (kind != "fn" && kind != "const" && kind != "static" && is_part(source, name));
            if !is_used {
                unused.push(format!("{}: {kind} {name}", source.path));
            }
        }
    }
    assert!(unused.is_empty(), "public and named in no other file: {unused:#?}");
}

fn is_library(source: &Source) -> bool {
    source.path.split('/').nth(2) == Some("src") && !PROGRAMS.contains(&source.crate_name())
}

fn public_items(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(item_of).filter(|item| item.2).map(|(kind, name, _)| (kind, name))
}

/// True if a type is part of another item in its file, such as a return type: then others have it without
/// naming it.
fn is_part(source: &Source, name: &str) -> bool {
    let mut lines = source.production().lines();
    lines.any(|line| {
        let defines = item_of(line).is_some_and(|item| item.1 == name);
        let is_impl = line.trim_start().starts_with("impl");
        !defines && !is_impl && words(line).any(|word| word == name)
    })
}

/// The words of a text without its comments.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let words = code.flat_map(|line| line.split(|c: char| !(c.is_alphanumeric() || c == '_')));
    words.filter(|word| !word.is_empty())
}
