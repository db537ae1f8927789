//! The book as a whole: its table of contents, its links, the tests that it names, and the commands that it does not run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::page::{Block, Page, Part, every_page, root};

/// Pages outside docs whose links are looked at too.
const OTHERS: &[&str] = &[
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "STYLE.md",
    "AGENTS.md",
    "crates/wf/PROFILE.md",
    "examples/README.md",
];

#[test]
fn the_summary_names_every_page_once() {
    let links = links(&Page::load("docs/SUMMARY.md"));
    let named: BTreeSet<String> = links.iter().map(|link| format!("docs/{link}")).collect();
    assert_eq!(named.len(), links.len(), "a page is named twice");
    let is_page = |path: &String| path.starts_with("docs/") && path != "docs/SUMMARY.md";
    let pages: BTreeSet<String> =
        every_page().into_iter().map(|page| page.path).filter(is_page).collect();
    assert_eq!(pages.difference(&named).collect::<Vec<_>>(), Vec::<&String>::new(), "not named");
    assert_eq!(named.difference(&pages).collect::<Vec<_>>(), Vec::<&String>::new(), "no pages");
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut broken = Vec::new();
    let others = OTHERS.iter().map(|path| Page::load(path));
    for page in every_page().into_iter().chain(others) {
        for link in links(&page) {
            if !link.contains("://") && !leads_somewhere(&page.path, &link) {
                broken.push(format!("{}: {link}", page.path));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

fn leads_somewhere(page: &str, link: &str) -> bool {
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    let target = if path.is_empty() { PathBuf::from(page) } else { folder.join(path) };
    let target = root().join(target);
    if heading.is_empty() {
        // In the built book only pages of docs become HTML.
        let leaves = page.starts_with("docs/")
            && path.ends_with(".md")
            && !target.canonicalize().is_ok_and(|target| target.starts_with(root().join("docs")));
        return target.exists() && !leaves;
    }
    let text = fs::read_to_string(target).unwrap_or_default();
    text.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == heading)
}

/// Name of a heading in links: lower case, hyphens for blanks, no punctuation.
fn anchor(heading: &str) -> String {
    let is_kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let text = heading.trim_start_matches('#').trim();
    text.chars().filter(is_kept).collect::<String>().to_lowercase().replace(' ', "-")
}

/// Targets of the links in the text of a page.
fn links(page: &Page) -> Vec<String> {
    let mut found = Vec::new();
    for part in &page.parts {
        let Part::Text(lines) = part else { continue };
        for line in lines {
            let outside_code: String = line.split('`').step_by(2).collect();
            let targets = outside_code.split("](").skip(1);
            found.extend(targets.filter_map(|rest| rest.split(')').next()).map(str::to_owned));
        }
    }
    found
}

/// A promise is worth as much as the test behind it.
#[test]
fn every_promise_names_a_test_that_exists() {
    let tests = tests_of_the_workspace();
    assert!(tests.len() > 1000, "{} tests", tests.len());
    let mut count = 0;
    for name in ["sealed", "verified", "answers"] {
        let path = format!("docs/explanation/{name}.md");
        let page = Page::load(&path);
        let lines = page.parts.iter().filter_map(|part| match part {
            Part::Text(lines) => Some(lines),
            Part::Block(_) => None,
        });
        let rows = lines.flatten().filter_map(|line| line.strip_suffix(" |")?.rsplit_once("| "));
        for name in rows.flat_map(|(_, cell)| cell.split('`').skip(1).step_by(2)) {
            assert!(tests.contains(name), "{path}: there is no test {name}");
            count += 1;
        }
    }
    assert!(count > 60, "{count} tests are named");
}

/// Names of all tests, and of the promises that a macro makes tests of.
fn tests_of_the_workspace() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    add_tests(&root().join("crates"), &mut names);
    names
}

fn add_tests(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            add_tests(&path, names);
            continue;
        }
        if path.extension().is_none_or(|kind| kind != "rs") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source file");
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let is_test = line.trim() == "#[test]" || line.trim().starts_with("#[tokio::test");
            if is_test {
                let next = lines[at..].iter().take(6).find_map(|line| line.split_once("fn "));
                names.extend(next.and_then(|(_, rest)| rest.split('(').next()).map(str::to_owned));
            }
        }
        if path.display().to_string().contains("engine/tests/it/contract") {
            let listed = lines.iter().filter_map(|line| line.trim().strip_suffix(','));
            names.extend(
                listed.filter(|name| text.contains(&format!("fn {name}("))).map(str::to_owned),
            );
        }
    }
}

/// What no test runs is at least a command line that the programs accept.
#[test]
fn commands_that_are_not_run_are_accepted_by_the_command_lines() {
    let mut count = 0;
    for page in every_page() {
        let is_unrun = |block: &&Block| match block.language.as_str() {
            "sh" | "console" => block.not_run.is_some(),
            other => matches!(other, "crontab" | "yaml"),
        };
        for block in page.blocks().filter(is_unrun) {
            for line in &block.lines {
                count += usize::from(accept(&format!("{}:{}", page.path, block.line), line));
            }
        }
    }
    for path in ["examples/actions/forklift.yml", "examples/compose/compose.yaml"] {
        let text = fs::read_to_string(root().join(path)).expect("an example");
        let accepted = text.lines().filter(|line| accept(path, line)).count();
        assert!(accepted > 0, "{path} has no command");
        count += accepted;
    }
    assert!(count > 20, "{count} commands were found");
}

/// Parses a line that starts one of the programs; `false` for other lines.
fn accept(at: &str, line: &str) -> bool {
    let words = split_words(line.trim_start_matches("$ "));
    let is_before = |word: &String| {
        matches!(word.as_str(), "-" | "run:" | "command:")
            || word.contains('=')
            || word.chars().all(|c| c.is_ascii_digit() || matches!(c, '*' | '/'))
    };
    let words: Vec<String> = words.into_iter().skip_while(is_before).collect();
    let name = words.first().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    let command = match name {
        "forklift" => forklift::command(),
        "wf" => wf::command(),
        "bot-bottle" => bottle::command(),
        _ => return false,
    };
    if let Err(error) = command.try_get_matches_from(&words) {
        panic!("{at}: {line}\n{error}");
    }
    true
}

/// Words of a line of a shell, without what redirects it or comes after a comment's mark.
fn split_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (None, '>' | '|' | '#' | '&') => break,
            (None, ' ') => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            (Some(mark), c) if c == mark => quote = None,
            (_, c) => word.push(c),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}
