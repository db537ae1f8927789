//! Pages of the documentation as text, directives and fenced blocks.
//!
//! A directive is an HTML comment on a line of its own before a block:
//!
//! - `<!-- place: fork -->`: this block and those after it run in a new place of that kind
//! - `<!-- not run: reason -->`: the next block is not run
//! - `<!-- status: 3 -->`: the next block ends with that status

use std::fs;
use std::path::{Path, PathBuf};

/// Languages that a block may have. Those that are run come first; a shell script under another name would escape.
const LANGUAGES: &[&str] = &[
    "sh",
    "console",
    "toml",
    "markdown",
    "json",
    "yaml",
    "ini",
    "crontab",
    "text",
    "http",
    "dockerfile",
];

/// The folder of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// A file of Markdown with its path from the repository's root.
pub(crate) struct Page {
    pub(crate) path: String,
    pub(crate) parts: Vec<Part>,
}

pub(crate) enum Part {
    /// Lines outside blocks that are run.
    Text(Vec<String>),
    Block(Block),
}

/// A fenced block.
pub(crate) struct Block {
    /// The line of its fence, from 1.
    pub(crate) line: usize,
    pub(crate) language: String,
    pub(crate) lines: Vec<String>,
    /// The kind of place that is made for it and for the blocks after it.
    pub(crate) place: Option<String>,
    pub(crate) not_run: Option<String>,
    pub(crate) status: i32,
}

impl Block {
    /// The block is of a language that is run.
    pub(crate) fn is_shell(&self) -> bool {
        matches!(self.language.as_str(), "sh" | "console")
    }
}

impl Page {
    pub(crate) fn load(path: &str) -> Self {
        let text = fs::read_to_string(root().join(path));
        let text = text.unwrap_or_else(|error| panic!("{path}: {error}"));
        Self { path: path.to_owned(), parts: parse(path, &text) }
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Block(block) => Some(block),
        })
    }

    /// The page as Markdown again.
    pub(crate) fn render(&self) -> String {
        let mut text = String::new();
        let mut push = |line: &str| {
            text.push_str(line);
            text.push('\n');
        };
        for part in &self.parts {
            match part {
                Part::Text(lines) => lines.iter().for_each(|line| push(line)),
                Part::Block(block) => {
                    push(&format!("```{}", block.language));
                    block.lines.iter().for_each(|line| push(line));
                    push("```");
                }
            }
        }
        text
    }
}

/// Every page: README.md and what is below docs.
pub(crate) fn every_page() -> Vec<Page> {
    let mut paths = vec!["README.md".to_owned()];
    add_pages(&root().join("docs"), "docs", &mut paths);
    paths.sort();
    paths.iter().map(|path| Page::load(path)).collect()
}

fn add_pages(folder: &Path, name: &str, paths: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = format!("{name}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            add_pages(&entry.path(), &path, paths);
        } else if entry.path().extension().is_some_and(|kind| kind == "md") {
            paths.push(path);
        }
    }
}

/// Directives since the last block.
#[derive(Default)]
struct Directives {
    place: Option<String>,
    not_run: Option<String>,
    status: i32,
}

impl Directives {
    fn read(&mut self, at: &str, line: &str) {
        let Some(comment) = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"))
        else {
            return;
        };
        let Some((name, value)) = comment.split_once(": ") else { return };
        match name {
            "place" => self.place = Some(value.to_owned()),
            "not run" => self.not_run = Some(value.to_owned()),
            "status" => self.status = value.parse().unwrap_or_else(|_| panic!("{at}: {value}")),
            _ => {}
        }
    }
}

fn parse(path: &str, text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut prose: Vec<String> = Vec::new();
    let mut directives = Directives::default();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let at = format!("{path}:{}", number + 1);
        let Some(language) = line.strip_prefix("```") else {
            let inner = line.trim_start_matches([' ', '>']);
            assert!(!inner.starts_with("```"), "{at}: a block starts at the margin");
            directives.read(&at, line);
            prose.push(line.to_owned());
            continue;
        };
        assert!(LANGUAGES.contains(&language), "{at}: ```{language} is none of {LANGUAGES:?}");
        let body = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
        let body: Vec<String> = body.map(str::to_owned).collect();
        parts.push(Part::Text(std::mem::take(&mut prose)));
        let Directives { place, not_run, status } = std::mem::take(&mut directives);
        let language = language.to_owned();
        let line = number + 1;
        parts.push(Part::Block(Block { line, language, lines: body, place, not_run, status }));
    }
    parts.push(Part::Text(prose));
    parts
}

#[test]
fn a_page_is_parsed_and_rendered_without_a_change() {
    for page in every_page() {
        let text = fs::read_to_string(root().join(&page.path)).expect("the page");
        assert_eq!(page.render(), text, "{}", page.path);
    }
}
