//! Upstream's commit messages that may close or reopen issues of the fork once they are merged.
//!
//! A forge reads the messages of all commits that reach the default branch, and takes `#5` for the issue of the repository
//! that they reach: upstream's fix of upstream's issue closes the fork's.

use forge::{ForgeAddress, Remote, find_foreign_actions};
use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::message::{first_of, start_of};
use super::words::counted;

/// Extended regular expressions that match every message by which something can be closed or reopened.
pub(crate) const ACTION_PATTERNS: [&str; 2] =
    ["clos|fix|resolv|implement|reopen", "[#!][0-9]|g[hl]-[0-9]|(issue|work_item):|https?://"];

/// Commits that are kept by name, and that are shown.
const KEPT: usize = 100;
const SHOWN: usize = 8;

/// Characters of a reference that are kept.
const REFERENCE_CHARS: usize = 100;

/// Segments of an address after the name of a repository.
const THREADS: [&str; 5] = ["issues", "work_items", "pull", "pulls", "merge_requests"];

/// Commits of upstream whose messages may act on issues of the fork.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UpstreamActions {
    /// The newest ones.
    pub(crate) commits: Vec<ActingCommit>,
    /// Number of all of them.
    pub(crate) count: usize,
    /// Not all messages could be read.
    #[serde(default)]
    pub(crate) is_cut: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ActingCommit {
    pub(crate) sha: Sha,
    /// References as they are written, the first few.
    pub(crate) references: String,
}

impl UpstreamActions {
    /// Adds a message, if it may act on issues of the fork at this address.
    pub(crate) fn read(&mut self, commit: &Sha, message: &str, fork: Option<&ForgeAddress>) {
        let start = start_of(message);
        self.is_cut |= start.len() < message.len();
        let acting = find_foreign_actions(start, 0);
        let mut own: Vec<&str> =
            acting.into_iter().filter(|reference| is_of_fork(reference, fork)).collect();
        own.dedup();
        if own.is_empty() {
            return;
        }
        self.count += 1;
        if self.commits.len() < KEPT {
            let own = own
                .iter()
                .map(|reference| &reference[..reference.floor_char_boundary(REFERENCE_CHARS)]);
            self.commits.push(ActingCommit { sha: commit.clone(), references: first_of(own) });
        }
    }

    /// The sentence for the person who merges; none if no message acts.
    pub(crate) fn point(&self) -> Option<String> {
        let unread = "not all messages of upstream's commits could be read";
        if self.count == 0 {
            let words = "so it is not known whether merging them closes issues of the fork";
            return self.is_cut.then(|| format!("{unread}, {words}"));
        }
        let shown = self.commits.iter().take(SHOWN);
        let shown: Vec<String> =
            shown.map(|commit| format!("{} ({})", commit.sha.short(), commit.references)).collect();
        let more = match self.count - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let unread = if self.is_cut { format!("; {unread}") } else { String::new() };
        let messages = counted(self.count, "message");
        Some(format!(
            "merging may close or reopen issues of the fork, by {messages} of upstream's commits: {}{more}{unread}",
            shown.join(", ")
        ))
    }
}

/// The fork's address on a forge; none if it is in a folder.
pub(crate) fn fork_address(url: &str) -> Option<ForgeAddress> {
    match ForgeAddress::parse_remote(url) {
        Some(Remote::Hosted(address)) => Some(address),
        Some(Remote::Local(_)) | None => None,
    }
}

/// Returns whether a reference may be one to an issue of the fork. The server is not compared: it may have several names.
fn is_of_fork(reference: &str, fork: Option<&ForgeAddress>) -> bool {
    let (name, is_bare) = match reference.split_once("://") {
        Some((_, address)) => (name_in(address), false),
        // `[issue:5]` and `[issue:group/project/5]`.
        None if let Some((_, target)) = bracketed(reference) => match target.rsplit_once('/') {
            Some((name, _)) => (Some(name.to_owned()), false),
            None => (None, true),
        },
        // `GH-5` has no mark.
        None if !reference.contains(['#', '!']) => (None, true),
        None => {
            let name = reference.split(['#', '!']).next().unwrap_or_default();
            let is_name = |c: char| c.is_alphanumeric() || "._-/~".contains(c);
            // A name with other characters is punctuation before the mark.
            (Some(name.to_owned()), name.is_empty() || !name.chars().all(is_name))
        }
    };
    let is_forks = |name: String| {
        let Some(fork) = fork else { return false };
        let (name, full) = (name.to_lowercase(), fork.full_name().to_lowercase());
        // GitLab knows projects of the same group by their name alone.
        name == fork.repo.to_lowercase() || name == full || name.ends_with(&format!("/{full}"))
    };
    is_bare || name.is_some_and(is_forks)
}

/// The kind and the target of a reference that stood in brackets.
fn bracketed(reference: &str) -> Option<(&str, &str)> {
    reference.split_once(':').filter(|_| !reference.contains(['#', '!']))
}

/// Path of the repository in an address of an issue.
fn name_in(address: &str) -> Option<String> {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let segments: Vec<&str> = path.split('/').skip(1).filter(|it| !it.is_empty()).collect();
    let at = segments.iter().rposition(|it| THREADS.contains(&it.to_ascii_lowercase().as_str()))?;
    let own: Vec<&str> = segments[..at].iter().copied().filter(|it| *it != "-").collect();
    Some(own.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sha() -> Sha {
        Sha::parse(&"a".repeat(40)).unwrap()
    }

    #[track_caller]
    fn check(message: &str, expected: &str) {
        for url in ["https://git.example/group/Ours/fork.git", "git@git.example:ours/fork.git"] {
            let mut actions = UpstreamActions::default();
            actions.read(&sha(), message, fork_address(url).as_ref());
            let found = actions.commits.first().map_or("", |commit| commit.references.as_str());
            assert_eq!(found, expected, "{url}: {message}");
        }
    }

    #[test]
    fn references_to_issues_of_the_fork_are_found_in_every_spelling() {
        check("a fix\n\nFixes #5", "#5");
        check("Closes GH-5, gh-6", "GH-5, gh-6");
        check(
            "Resolves: https://git.example/ours/fork/issues/5",
            "https://git.example/ours/fork/issues/5",
        );
        let gitlab = "https://git.example/group/ours/fork/-/issues/5";
        check(&format!("Closing {gitlab}."), gitlab);
        check("Implements OURS/Fork#5", "OURS/Fork#5");
        check("fixed fork#5", "fork#5");
        check("Reopens #5 and !6", "#5, !6");
        check("Closes GL-5", "GL-5");
        check("Closes [issue:5] and [work_item:ours/fork/6]", "issue:5, work_item:ours/fork/6");
        check("Closes [issue:group/ours/fork/5]", "issue:group/ours/fork/5");
        let upper = "HTTPS://GIT.EXAMPLE/Ours/Fork/Issues/5";
        check(&format!("Fixes <{upper}>"), upper);
        let comment = "https://git.example/ours/fork/issues/5#note_1";
        check(&format!("Fixes {comment}"), comment);
        check("fixes (x)#5", "x)#5");
        check("closes #1, #2, #3, #4", "#1, #2, #3 and 1 more");
    }

    #[test]
    fn mentions_and_issues_of_others_are_left_alone() {
        check("fix a crash (#13)", "");
        check("Fixes upstream/fork2#5, other/fork#6", "");
        check("Closes [issue:upstream/project/5]", "");
        check("Fixes https://git.example/upstream/project/issues/5", "");
        check("Fixes https://git.example/issues/5", "");
        check("Fixes: 1234567 (\"x\")", "");
        let mut actions = UpstreamActions::default();
        actions.read(&sha(), "Fixes ours/fork#5", None);
        assert_eq!(actions, UpstreamActions::default());
    }

    #[test]
    fn patterns_match_whatever_the_parser_finds() {
        // The words and marks of the patterns, as git reads them.
        let stems: Vec<&str> = ACTION_PATTERNS[0].split('|').collect();
        for word in ["Closes", "FIXING", "resolved", "implement", "reopened"] {
            assert_eq!(find_foreign_actions(&format!("{word} #5"), 0), ["#5"]);
            let word = word.to_lowercase();
            assert!(stems.iter().any(|stem| word.contains(stem)), "{word}");
        }
    }

    #[test]
    fn many_messages_are_counted_and_unread_ones_are_said() {
        let mut actions = UpstreamActions::default();
        assert_eq!(actions.point(), None);
        for _ in 0..1000 {
            actions.read(&sha(), "Fixes #5", None);
        }
        assert_eq!((actions.commits.len(), actions.count), (KEPT, 1000));
        let point = actions.point().unwrap();
        assert!(point.contains("by 1000 messages") && point.ends_with("and 992 more"), "{point}");
        let mut unread = UpstreamActions::default();
        unread.read(&sha(), &"x ".repeat(1 << 20), None);
        assert!(unread.point().unwrap().starts_with("not all messages"));
    }
}
