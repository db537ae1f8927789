//! Names in the prose: flags and subcommands exist, and no key of a file is left out.

use std::collections::BTreeSet;
use std::fs;

use clap::Command;

use super::page::{Page, Part, every_page, root};
use super::place::Place;

/// Flags of other programs.
const FOREIGN: &[&str] = &["--security-opt"];

/// Spans of code in the text of a page.
fn spans(page: &Page) -> Vec<String> {
    let mut found = Vec::new();
    for part in &page.parts {
        let Part::Text(lines) = part else { continue };
        for line in lines {
            found.extend(line.split('`').skip(1).step_by(2).map(|span| span.replace('\\', "")));
        }
    }
    found
}

/// Pages that describe the programs as they are; decisions describe them as they were.
fn pages() -> impl Iterator<Item = Page> {
    every_page().into_iter().filter(|page| !page.path.starts_with("docs/decisions/"))
}

#[test]
fn every_flag_in_the_prose_exists() {
    let mut known: BTreeSet<String> = FOREIGN.iter().map(|flag| (*flag).to_owned()).collect();
    for command in [forklift::command(), wf::command(), bottle::command()] {
        add_flags(command, &mut known);
    }
    for page in pages() {
        for span in spans(&page).into_iter().filter(|span| !span.starts_with("cargo ")) {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
            let words = span.split(|c: char| !is_part(c)).filter(|word| word.starts_with("--"));
            for word in words.filter(|word| word.len() > 2) {
                assert!(known.contains(word), "{}: {word} in `{span}`", page.path);
            }
        }
    }
}

fn add_flags(mut command: Command, known: &mut BTreeSet<String>) {
    command.build();
    let longs = command.get_arguments().filter_map(|arg| arg.get_long());
    known.extend(longs.map(|long| format!("--{long}")));
    for subcommand in command.get_subcommands() {
        add_flags(subcommand.clone(), known);
    }
}

#[test]
fn every_subcommand_in_the_prose_exists() {
    for page in pages() {
        for span in spans(&page) {
            let words: Vec<&str> = span.split(' ').collect();
            let command = match words.first() {
                Some(&"forklift") => forklift::command(),
                Some(&"wf") => wf::command(),
                Some(&"bot-bottle") => bottle::command(),
                _ => continue,
            };
            let names = words.get(1).copied().unwrap_or_default();
            for name in names.split(['|', ',']).filter(|name| is_name(name)) {
                let exists = command.find_subcommand(name).is_some();
                assert!(exists, "{}: there is no {name} in `{span}`", page.path);
            }
        }
    }
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
        && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

/// The program names the keys that it knows when it meets one that it does not.
#[test]
fn every_key_of_fork_md_is_documented() {
    let page = fs::read_to_string(root().join("docs/forklift.md")).expect("the page");
    for (rules, least) in [("nonsense: 1", 8), ("resolve: [{path: a, nonsense: 1}]", 3)] {
        let place = Place::new("fork");
        let script = format!(
            "cd my-fork && printf '%s\\n' --- '{rules}' --- text > FORK.md && git commit -qam rules && git push -q origin HEAD:main && forklift changelog"
        );
        let output = place.run(&script);
        assert_eq!(output.status, Some(2), "{}", output.stdout);
        let (_, known) = output.stdout.split_once("expected one of").expect(&output.stdout);
        let line = known.lines().next().unwrap_or_default();
        let keys: Vec<&str> = line.split(',').map(|key| key.trim_matches([' ', '`'])).collect();
        assert!(keys.len() >= least, "{}", output.stdout);
        for key in keys {
            assert!(page.contains(&format!("{key}:")), "{key} is not in docs/forklift.md");
        }
    }
}

/// Each key that the code reads by its name is in PROFILE.md, of which the reference has a copy.
#[test]
fn every_key_of_the_profile_is_documented() {
    let page = fs::read_to_string(root().join("crates/wf/PROFILE.md")).expect("the page");
    let source = fs::read_to_string(root().join("crates/wf/src/rules/profile.rs")).expect("it");
    let code = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let is_key = |word: &&str| {
        word.contains('_') && word.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    };
    let keys: BTreeSet<&str> = code.split('"').skip(1).step_by(2).filter(is_key).collect();
    assert!(keys.len() > 25, "{keys:?}");
    for key in keys {
        assert!(page.contains(&format!("`{key}`")), "{key} is not in PROFILE.md");
    }
}
