//! What the fake server knows: one repository, its pull requests, comments and labels.

use std::collections::BTreeMap;

use super::{LOGIN, TOKEN};

/// Unless it is told otherwise, a server gives no larger pages.
const PAGE_MAX: usize = 50;

/// A pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakePull {
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Its text.
    pub body: String,
    /// The branch with the changes.
    pub head: String,
    /// The branch to be merged into.
    pub base: String,
    /// Whether it is open.
    pub open: bool,
    /// Whether it was merged.
    pub merged: bool,
    /// Whether its branch is in a fork.
    pub from_fork: bool,
    /// The ids of its labels.
    pub labels: Vec<u64>,
}

/// A comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeComment {
    /// Its id.
    pub id: u64,
    /// The number of what it is on.
    pub on: u64,
    /// Its text.
    pub body: String,
}

#[derive(Debug)]
pub(super) struct World {
    /// The front page, without a slash at its end.
    pub(super) root: String,
    pub(super) token: String,
    pub(super) login: String,
    pub(super) account_hidden: bool,
    pub(super) page_max: usize,
    pub(super) pulls: Vec<FakePull>,
    pub(super) comments: Vec<FakeComment>,
    /// By name; the id is the place in the list, from 1.
    pub(super) labels: Vec<String>,
    pub(super) branches: BTreeMap<String, String>,
}

impl World {
    pub(super) fn new(root: String) -> Self {
        Self {
            root,
            token: TOKEN.to_owned(),
            login: LOGIN.to_owned(),
            account_hidden: false,
            page_max: PAGE_MAX,
            pulls: Vec::new(),
            comments: Vec::new(),
            labels: Vec::new(),
            branches: BTreeMap::new(),
        }
    }

    pub(super) fn open_pull(&mut self, title: &str, body: &str, head: &str, base: &str) -> u64 {
        let number = self.pulls.len() as u64 + 1;
        self.pulls.push(FakePull {
            number,
            title: title.to_owned(),
            body: body.to_owned(),
            head: head.to_owned(),
            base: base.to_owned(),
            open: true,
            merged: false,
            from_fork: false,
            labels: Vec::new(),
        });
        number
    }

    pub(super) fn find_pull(&self, number: u64) -> Option<&FakePull> {
        self.pulls.iter().find(|pull| pull.number == number)
    }

    /// # Panics
    /// When there is no such pull request.
    pub(super) fn change_pull(&mut self, number: u64, change: impl FnOnce(&mut FakePull)) {
        let pull = self.pulls.iter_mut().find(|pull| pull.number == number);
        change(pull.expect("a pull request with this number"));
    }

    pub(super) fn comment(&mut self, on: u64, body: &str) -> FakeComment {
        let comment = FakeComment { id: self.comments.len() as u64 + 1, on, body: body.to_owned() };
        self.comments.push(comment.clone());
        comment
    }
}
