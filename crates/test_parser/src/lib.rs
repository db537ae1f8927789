//! Tests that a source file defines: their names, whether they run, and what they assert.
//!
//! The file is parsed, not searched: a test in a comment, in a string or in code that is never compiled is no test. Nothing is
//! run, so tests that a program makes at run time are not seen, and a macro is seen by its tokens alone.
//!
//! A crate of its own because the grammars are C code that takes long to compile.

mod language;
mod source;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use language::Language;

/// Largest file that is parsed, in bytes.
const FILE_CAP: usize = 1 << 20;

/// Name of a test in its file, with the names of its modules, classes or suites in front.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TestName(String);

impl TestName {
    /// Joins the names from the outermost scope to the test.
    pub fn new<S: AsRef<str>>(parts: &[S]) -> Self {
        let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
        Self(parts.join(" > "))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestState {
    Active,
    Skipped,
}

/// Reason for which a test does not run, or runs only sometimes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// It never runs; the reason in a few words.
    Never(&'static str),
    /// It runs if this source text holds.
    When(String),
    /// It runs, and may fail.
    MayFail,
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never(reason) => f.write_str(reason),
            Self::When(text) => write!(f, "only under: {text}"),
            Self::MayFail => f.write_str("expected to fail"),
        }
    }
}

/// One test. Texts are tokens with single blanks between them, so that layout and comments do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Test {
    pub conditions: BTreeSet<Condition>,
    /// Each assertion with the number of times it occurs. Code that cannot be reached does not count.
    pub assertions: BTreeMap<String, usize>,
    pub body: String,
    pub tokens: usize,
}

impl Test {
    pub fn state(&self) -> TestState {
        let never = |condition: &Condition| matches!(condition, Condition::Never(_));
        if self.conditions.iter().any(never) { TestState::Skipped } else { TestState::Active }
    }
}

pub type Tests = BTreeMap<TestName, Test>;

/// Result of parsing a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParsedTests {
    /// No language that is known.
    NotSource,
    /// Too large or nested too deeply to be parsed.
    Unreadable,
    Tests(Tests),
}

/// Returns whether a file of this name is parsed at all.
pub fn is_source(path: &[u8]) -> bool {
    Language::of(path).is_some()
}

pub fn parse_tests(path: &[u8], bytes: &[u8]) -> ParsedTests {
    let Some(language) = Language::of(path) else { return ParsedTests::NotSource };
    if bytes.len() > FILE_CAP {
        return ParsedTests::Unreadable;
    }
    let text = String::from_utf8_lossy(bytes);
    if !language.signs().iter().any(|sign| text.contains(sign)) {
        return ParsedTests::Tests(Tests::new());
    }
    match language.tests(path, bytes) {
        Some(tests) => ParsedTests::Tests(tests),
        None => ParsedTests::Unreadable,
    }
}
