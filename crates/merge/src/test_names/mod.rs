//! Tests by name: each test that the fork or upstream has is in the result, runs there, and asserts what it did.
//!
//! [`observe`] reads the changed files of the four trees, [`missing_tests`] decides from their tests alone.

mod compare;
mod observe;

use std::collections::BTreeMap;

use model::escape::escape_line;
use serde::{Deserialize, Serialize};
use test_parser::Tests;

use crate::path::TreePath;

pub use compare::missing_tests;
pub use observe::observe;

/// Tests of the changed files of a tree.
pub type TestsByPath = BTreeMap<TreePath, Tests>;

/// Account of the tests of both sides. A test that the other side removed, or renamed, is not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TestAccount {
    /// Tests of a side that the result does not have.
    pub missing: Vec<TestFinding>,
    /// Tests that ran on a side and do not run in the result.
    pub skipped: Vec<TestFinding>,
    /// Tests that assert less than they did, or something else.
    pub weakened: Vec<TestFinding>,
    /// Files whose tests could not be read on one of the sides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<TreePath>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestFinding {
    pub path: TreePath,
    /// The names of its modules, classes or suites, and its own.
    pub name: String,
    pub note: String,
}

impl TestAccount {
    /// True if a test is missing or does not run.
    pub fn is_lost(&self) -> bool {
        !self.missing.is_empty() || !self.skipped.is_empty()
    }

    /// Lines about missing and skipped tests.
    pub fn losses(&self) -> Vec<String> {
        let missing = self.missing.iter().map(|it| it.line("missing test"));
        missing.chain(self.skipped.iter().map(|it| it.line("skipped test"))).collect()
    }

    /// Lines about what a person has to look at before the result is merged.
    pub fn looks(&self) -> Vec<String> {
        let weakened = self.weakened.iter().map(|it| it.line("weakened test"));
        let unread = self.unread.iter().map(|path| format!("tests could not be read: {path}"));
        self.losses().into_iter().chain(weakened).chain(unread).collect()
    }
}

impl TestFinding {
    fn line(&self, what: &str) -> String {
        let Self { path, name, note } = self;
        format!("{what}: {path}: {} ({})", escape_line(name), escape_line(note))
    }
}
