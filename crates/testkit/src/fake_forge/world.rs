//! State of a fake server: one repository with its issues, pull requests and comments, and organisations.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::{LOGIN, Numbering, OWNER, TOKEN, time};

/// Largest page by default.
const PAGE_MAX: usize = 50;

/// Kind of thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// An issue.
    Issue,
    /// A pull request.
    Pull,
}

/// An issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeIssue {
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Its text.
    pub body: String,
    /// True if it is open.
    pub open: bool,
    /// Its labels.
    pub labels: Vec<String>,
    /// Its assignees.
    pub assignees: Vec<String>,
    pub author: String,
    /// Account that set its labels and assignees.
    pub set_by: String,
}

impl FakeIssue {
    pub(super) fn has_labels(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.labels.iter().any(|own| own == name))
    }
}

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
    /// True if it is open.
    pub open: bool,
    /// True if it was merged.
    pub merged: bool,
    /// True if its branch is in a fork.
    pub from_fork: bool,
    pub author: String,
    /// True if it is a draft.
    pub draft: bool,
    /// True if it conflicts with its base.
    pub has_conflicts: bool,
    /// True if its base has commits that it lacks.
    pub is_behind: bool,
    /// Its labels.
    pub labels: Vec<String>,
    /// Its assignees.
    pub assignees: Vec<String>,
    /// Accounts whose review was asked for.
    pub reviewers: Vec<String>,
}

/// A check of a commit, with its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeCheck {
    /// Its number, given by the server.
    pub id: u64,
    /// The commit.
    pub sha: String,
    /// Its name.
    pub name: String,
    /// Its state, as Gitea spells it: `pending`, `success` or `failure`.
    pub state: String,
    /// Its log.
    pub log: String,
}

/// An answer to the remark of a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeAnswer {
    /// The number of the review.
    pub review: u64,
    pub author: String,
    /// Its text.
    pub body: String,
    /// When, as the server writes it.
    pub created_at: String,
}

/// A comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeComment {
    /// Its id.
    pub id: u64,
    /// Kind of the thread that it is on.
    pub room: Room,
    /// Number of that thread.
    pub on: u64,
    pub author: String,
    /// Its text.
    pub body: String,
    /// When, as the server writes it.
    pub created_at: String,
}

/// A review of a pull request, with one remark on a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeReview {
    /// The number of the pull request.
    pub pull: u64,
    pub author: String,
    /// The review as a whole.
    pub body: String,
    /// Verdict, as Gitea spells it: `COMMENT`, `APPROVED` or `REQUEST_CHANGES`.
    pub state: String,
    /// The file of the remark.
    pub path: String,
    /// The remark.
    pub remark: String,
}

/// A repository in the list of an organisation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeRepository {
    /// `owner/name`.
    pub full_name: String,
    /// True if nothing can be changed there.
    pub archived: bool,
    /// True if the account may push.
    pub may_push: bool,
}

/// A webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeHook {
    /// Its id.
    pub id: u64,
    pub url: String,
    /// Secret to sign with, or to send along; never shown.
    pub secret: String,
    /// Events, as they were requested.
    pub events: Vec<String>,
}

/// A file of the server's, or a redirect in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FakeFile {
    /// Its bytes, for whoever has the token.
    Bytes(Vec<u8>),
    /// The address of another server.
    Elsewhere(String),
}

/// State of a fake server.
#[derive(Debug)]
pub struct World {
    /// The front page, without a slash at its end.
    pub(crate) root: String,
    pub(crate) token: String,
    pub(crate) login: String,
    pub(crate) account_hidden: bool,
    pub(crate) page_max: usize,
    pub(crate) numbering: Numbering,
    pub(crate) issues: Vec<FakeIssue>,
    pub(crate) pulls: Vec<FakePull>,
    pub(crate) comments: Vec<FakeComment>,
    pub(crate) reviews: Vec<FakeReview>,
    pub(crate) hooks: Vec<FakeHook>,
    pub(crate) checks: Vec<FakeCheck>,
    pub(crate) answers: Vec<FakeAnswer>,
    /// Reviews whose thread is resolved.
    pub(crate) resolved: BTreeSet<u64>,
    /// Issues that the server says come before each issue.
    pub(crate) blockers: BTreeMap<u64, Vec<u64>>,
    /// Files by the path at which the server has them.
    pub(crate) files: BTreeMap<String, FakeFile>,
    /// Accounts with a thumbs-up on each comment.
    pub(crate) thumbs: BTreeMap<u64, Vec<String>>,
    pub(crate) branches: BTreeMap<String, String>,
    /// The members of each organisation.
    pub(crate) orgs: BTreeMap<String, BTreeSet<String>>,
    /// Labels of the repository; a label's number is its place, from 1.
    pub(crate) labels: Vec<String>,
    /// The repositories of each organisation or account.
    pub(crate) repositories: BTreeMap<String, Vec<FakeRepository>>,
    /// The repository that git finds here.
    pub(crate) git_dir: Option<PathBuf>,
}

impl World {
    pub(super) fn new(root: String, numbering: Numbering) -> Self {
        Self {
            root,
            token: TOKEN.to_owned(),
            login: LOGIN.to_owned(),
            account_hidden: false,
            page_max: PAGE_MAX,
            numbering,
            issues: Vec::new(),
            pulls: Vec::new(),
            comments: Vec::new(),
            reviews: Vec::new(),
            hooks: Vec::new(),
            checks: Vec::new(),
            answers: Vec::new(),
            resolved: BTreeSet::new(),
            blockers: BTreeMap::new(),
            files: BTreeMap::new(),
            thumbs: BTreeMap::new(),
            branches: BTreeMap::new(),
            orgs: BTreeMap::new(),
            labels: Vec::new(),
            repositories: BTreeMap::new(),
            git_dir: None,
        }
    }

    /// Makes a webhook.
    pub(crate) fn add_hook(&mut self, url: &str, secret: &str, events: Vec<String>) -> FakeHook {
        let id = self.hooks.iter().map(|hook| hook.id).max().unwrap_or_default() + 1;
        let hook = FakeHook { id, url: url.to_owned(), secret: secret.to_owned(), events };
        self.hooks.push(hook.clone());
        hook
    }

    /// Removes a webhook, and says whether it was there.
    pub(crate) fn remove_hook(&mut self, id: &str) -> bool {
        let before = self.hooks.len();
        self.hooks.retain(|hook| hook.id.to_string() != id);
        self.hooks.len() < before
    }

    pub(super) fn open_issue(
        &mut self,
        title: &str,
        body: &str,
        labels: &[&str],
        assignees: &[&str],
    ) -> u64 {
        let number = self.next_number(Room::Issue);
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        self.issues.push(FakeIssue {
            number,
            title: title.to_owned(),
            body: body.to_owned(),
            open: true,
            labels: owned(labels),
            assignees: owned(assignees),
            author: OWNER.to_owned(),
            set_by: OWNER.to_owned(),
        });
        number
    }

    /// Opens an issue of the token's account.
    pub(crate) fn open_own_issue(
        &mut self,
        title: &str,
        body: &str,
        labels: Vec<String>,
        assignees: Vec<String>,
    ) -> u64 {
        let number = self.open_issue(title, body, &[], &[]);
        let login = self.login.clone();
        self.change_issue(number, |issue| {
            (issue.labels, issue.assignees) = (labels, assignees);
            issue.author.clone_from(&login);
            issue.set_by = login;
        });
        number
    }

    pub(crate) fn open_pull(&mut self, title: &str, body: &str, head: &str, base: &str) -> u64 {
        let number = self.next_number(Room::Pull);
        self.pulls.push(FakePull {
            number,
            title: title.to_owned(),
            body: body.to_owned(),
            head: head.to_owned(),
            base: base.to_owned(),
            open: true,
            merged: false,
            from_fork: false,
            author: self.login.clone(),
            draft: false,
            has_conflicts: false,
            is_behind: false,
            labels: Vec::new(),
            assignees: Vec::new(),
            reviewers: Vec::new(),
        });
        number
    }

    pub(crate) fn find_issue(&self, number: u64) -> Option<&FakeIssue> {
        self.issues.iter().find(|issue| issue.number == number)
    }

    pub(crate) fn find_pull(&self, number: u64) -> Option<&FakePull> {
        self.pulls.iter().find(|pull| pull.number == number)
    }

    /// Which of the two has this number, where they share their numbers.
    pub(crate) fn room_of(&self, number: u64) -> Option<Room> {
        let issue = self.find_issue(number).map(|_| Room::Issue);
        issue.or_else(|| self.find_pull(number).map(|_| Room::Pull))
    }

    pub(crate) fn open_pull_between(&self, head: &str, base: &str) -> Option<&FakePull> {
        self.pulls.iter().find(|pull| pull.open && pull.head == head && pull.base == base)
    }

    /// Changes an issue.
    ///
    /// # Panics
    /// When there is none with this number.
    pub(crate) fn change_issue(&mut self, number: u64, change: impl FnOnce(&mut FakeIssue)) {
        let issue = self.issues.iter_mut().find(|issue| issue.number == number);
        change(issue.expect("an issue with this number"));
    }

    /// # Panics
    /// When there is no such pull request.
    pub(crate) fn change_pull(&mut self, number: u64, change: impl FnOnce(&mut FakePull)) {
        let pull = self.pulls.iter_mut().find(|pull| pull.number == number);
        change(pull.expect("a pull request with this number"));
    }

    /// Changes title, text and state of either kind of thread; what is `None` stays.
    ///
    /// # Panics
    /// When there is no such thread.
    pub(super) fn edit_thread(
        &mut self,
        room: Room,
        number: u64,
        title: Option<String>,
        body: Option<String>,
        open: Option<bool>,
    ) {
        let edit = |fields: (&mut String, &mut String, &mut bool)| {
            *fields.0 = title.unwrap_or_else(|| fields.0.clone());
            *fields.1 = body.unwrap_or_else(|| fields.1.clone());
            *fields.2 = open.unwrap_or(*fields.2);
        };
        match room {
            Room::Issue => {
                self.change_issue(number, |it| edit((&mut it.title, &mut it.body, &mut it.open)));
            }
            Room::Pull => {
                self.change_pull(number, |it| edit((&mut it.title, &mut it.body, &mut it.open)));
            }
        }
    }

    pub(crate) fn comment(&mut self, room: Room, on: u64, author: &str, body: &str) -> FakeComment {
        let comment = FakeComment {
            id: self.comments.len() as u64 + 1,
            room,
            on,
            author: author.to_owned(),
            body: body.to_owned(),
            created_at: time::now(),
        };
        self.comments.push(comment.clone());
        comment
    }

    /// Replaces the text of a comment of the token's account; `None` if there is none.
    pub(crate) fn change_comment(&mut self, id: &str, body: &str) -> Option<FakeComment> {
        let login = self.login.clone();
        let own =
            |comment: &&mut FakeComment| comment.id.to_string() == id && comment.author == login;
        let comment = self.comments.iter_mut().find(own)?;
        body.clone_into(&mut comment.body);
        Some(comment.clone())
    }

    /// Newest check of each name on a commit.
    pub(crate) fn checks_of(&self, sha: &str) -> Vec<FakeCheck> {
        let mut newest: BTreeMap<&str, &FakeCheck> = BTreeMap::new();
        for check in self.checks.iter().filter(|check| check.sha == sha) {
            newest.insert(&check.name, check);
        }
        newest.into_values().cloned().collect()
    }

    pub(crate) fn find_check(&self, id: &str) -> Option<&FakeCheck> {
        self.checks.iter().find(|check| check.id.to_string() == id)
    }

    /// Answers the remark of a review as the token's account.
    pub(crate) fn answer(&mut self, review: u64, body: &str) {
        let (author, created_at) = (self.login.clone(), time::now());
        self.answers.push(FakeAnswer { review, author, body: body.to_owned(), created_at });
    }

    pub(crate) fn comments_on(&self, room: Room, number: u64) -> Vec<FakeComment> {
        let on = |comment: &&FakeComment| comment.room == room && comment.on == number;
        self.comments.iter().filter(on).cloned().collect()
    }

    pub(crate) fn sha_of(&self, branch: &str) -> &str {
        /// Tip of a branch that no test has set.
        const SOME_SHA: &str = "22ae629398a82910ba5dd962b4238a7a5dc63d62";
        self.branches.get(branch).map_or(SOME_SHA, String::as_str)
    }

    fn next_number(&self, room: Room) -> u64 {
        let (issues, pulls) = (self.issues.len() as u64, self.pulls.len() as u64);
        match (self.numbering, room) {
            (Numbering::Shared, _) => issues + pulls + 1,
            (Numbering::Separate, Room::Issue) => issues + 1,
            (Numbering::Separate, Room::Pull) => pulls + 1,
        }
    }
}
