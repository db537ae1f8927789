//! The source files of the workspace, as text.

use std::fs;
use std::path::{Path, PathBuf};

/// A Rust file below `crates/`.
pub(crate) struct Source {
    /// Path below the repository.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// Folder of its crate.
    pub(crate) fn crate_name(&self) -> &str {
        self.path.split('/').nth(1).unwrap_or_default()
    }

    /// The part that ends up in a program: nothing of a test file, and all before the module of unit tests elsewhere.
    pub(crate) fn production(&self) -> &str {
        let is_test = ["/tests/", "/benches/"].iter().any(|part| self.path.contains(part))
            || self.path.ends_with("/tests.rs")
            || self.crate_name() == "testkit";
        if is_test { "" } else { &self.text[..start_of_tests(&self.text)] }
    }
}

/// Position of `#[cfg(test)] mod … {`, or the end of the text.
fn start_of_tests(text: &str) -> usize {
    let marks = text.match_indices("#[cfg(test)]\n").map(|(at, _)| at);
    let opens_module = |at: &usize| {
        let mut after = text[*at..].lines().skip_while(|line| line.starts_with("#["));
        after.next().is_some_and(|line| {
            let line = line.strip_prefix("pub(crate) ").unwrap_or(line);
            line.starts_with("mod ") && line.ends_with('{')
        })
    };
    let mut starts = marks.filter(|at| *at == 0 || text.as_bytes()[at - 1] == b'\n');
    starts.find(opens_module).unwrap_or(text.len())
}

/// The name that a word begins with: `Name<T>` is about `Name`.
pub(crate) fn leading_name(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    &text[..end]
}

/// The item that a line defines, such as `("fn", "run")`, and whether it is `pub` without limits.
pub(crate) fn item_of(line: &str) -> Option<(&str, &str, bool)> {
    let line = line.trim_start();
    let (is_public, mut rest) = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with(' ') => (true, &rest[1..]),
        Some(rest) if rest.starts_with('(') => (false, rest.split_once(") ")?.1),
        _ => (false, line),
    };
    for modifier in ["async ", "unsafe ", "const fn "] {
        if let Some(after) = rest.strip_prefix(modifier) {
            rest = if modifier == "const fn " { &rest["const ".len()..] } else { after };
        }
    }
    let (kind, after) = rest.split_once(' ')?;
    let kinds = ["fn", "struct", "enum", "trait", "type", "union", "const", "static"];
    let name = leading_name(after);
    (kinds.contains(&kind) && !name.is_empty()).then_some((kind, name, is_public))
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

pub(crate) fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).expect("a folder").flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

pub(crate) fn name_of(path: &Path) -> String {
    path.file_name().expect("a name").to_string_lossy().into_owned()
}

/// Every Rust file below a folder of the repository, in order.
pub(crate) fn sources_below(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![root().join(folder)];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() && name_of(&path) != "target" {
                waiting.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

pub(crate) fn sources() -> Vec<PathBuf> {
    sources_below("crates")
}

/// The same, read.
pub(crate) fn load(folder: &str) -> Vec<Source> {
    let root = root();
    let read = |path: PathBuf| Source {
        text: fs::read_to_string(&path).expect("a source file"),
        path: path.strip_prefix(&root).expect("below it").to_string_lossy().into_owned(),
    };
    sources_below(folder).into_iter().map(read).collect()
}

#[test]
fn items_are_found_in_lines() {
    assert_eq!(item_of("pub struct Run<'a> {"), Some(("struct", "Run", true)));
    assert_eq!(item_of("    pub(crate) async fn end(self) {"), Some(("fn", "end", false)));
    assert_eq!(item_of("pub const fn limit() -> u8 {"), Some(("fn", "limit", true)));
    assert_eq!(item_of("pub const LIMIT: u8 = 1;"), Some(("const", "LIMIT", true)));
    assert_eq!(item_of("let kind = 3;"), None);
}

#[test]
fn tests_begin_with_their_module() {
    let text = "fn a() {}\n#[cfg(test)]\nuse b;\n#[cfg(test)]\nmod tests {\n}\n";
    assert_eq!(&text[start_of_tests(text)..], "#[cfg(test)]\nmod tests {\n}\n");
    assert_eq!(start_of_tests("#[cfg(test)]\nmod tests;\n"), 24);
}
