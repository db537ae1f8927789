//! Pull requests, the same for every forge.

use model::id::BranchName;
use serde::Serialize;
use serde_json::Value;

use crate::check_report::CheckReport;
use crate::thread::ThreadState;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PullRequest {
    pub number: u64,
    /// Page for people; never requested.
    pub url: String,
    pub title: String,
    /// Text; empty if it has none.
    pub body: String,
    pub state: ThreadState,
    /// True if it was merged; it is closed then too.
    pub merged: bool,
    /// True if it could be merged, where the forge reports it.
    pub mergeable: Option<bool>,
    /// The branch with the changes; it may be deleted.
    pub head_branch: String,
    /// The commit that branch is or was at.
    pub head_sha: String,
    /// True if the branch is in another repository, which anyone may have created.
    pub from_fork: bool,
    pub base_branch: String,
    pub author: String,
    pub labels: Vec<String>,
    pub assignees: Vec<String>,
    /// Number of comments in the conversation, where the forge reports it.
    #[serde(skip)]
    pub comments: Option<u64>,
    /// True while its author does not consider it finished. The title is without the forge's mark for that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub draft: bool,
    /// True if it conflicts with its base, where the forge reports it. A forge that still computes it may say so too.
    #[serde(skip)]
    pub has_conflicts: Option<bool>,
    /// True if its base has commits that it lacks, where the forge reports it.
    #[serde(skip)]
    pub is_behind: bool,
    /// Checks of its newest commit, where the forge reports them with it.
    #[serde(skip)]
    pub checks: Option<Vec<CheckReport>>,
}

/// Changes to a pull request; absent fields stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PullEdit<'a> {
    pub(crate) title: Option<&'a str>,
    pub(crate) body: Option<&'a str>,
    pub(crate) close: bool,
    /// True for a draft, false for one that is ready; with it goes the title, because some forges have the mark there.
    pub(crate) draft: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPull {
    pub title: String,
    pub body: String,
    /// The branch with the changes, already pushed.
    pub head: BranchName,
    pub base: BranchName,
    /// True if it is not ready for review.
    pub draft: bool,
}

impl PullRequest {
    pub fn is_open(&self) -> bool {
        self.state == ThreadState::Open
    }

    pub(crate) fn is_between(&self, head: &BranchName, base: &BranchName) -> bool {
        self.head_branch == head.as_str() && self.base_branch == base.as_str()
    }
}

impl PullEdit<'_> {
    /// Renders the fields that change, under a forge's own names for the text and for a closed state.
    pub(crate) fn fields(
        &self,
        body_name: &str,
        (state, closed): (&str, &str),
        mark: DraftMark,
    ) -> Value {
        let title = self.title.map(|title| mark.title(title, self.draft == Some(true)));
        let title = title.as_deref().map(|title| ("title", title));
        let body = self.body.map(|body| (body_name, body));
        [title, body, self.close.then_some((state, closed))].into_iter().flatten().collect()
    }

    /// Verb for an error message.
    pub(crate) fn verb(&self) -> &'static str {
        if self.close { "close" } else { "update" }
    }
}

/// Mark of a draft in its title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DraftMark {
    /// The forge has a field of its own.
    Field,
    /// The title begins with this.
    Prefix(&'static str),
}

impl DraftMark {
    /// The title as the forge gets it.
    pub(crate) fn title(self, title: &str, draft: bool) -> String {
        match self {
            Self::Prefix(prefix) if draft => format!("{prefix}{title}"),
            Self::Prefix(_) | Self::Field => title.to_owned(),
        }
    }
}

/// Prefixes of titles that mark a draft on one forge or another.
const DRAFT_PREFIXES: [&str; 4] = ["wip:", "[wip]", "draft:", "[draft]"];

/// Splits the mark of a draft from a title. `known` is the forge's own word, where it has one.
pub(crate) fn split_draft(title: String, known: Option<bool>) -> (String, bool) {
    let lower = title.to_ascii_lowercase();
    let prefix = DRAFT_PREFIXES.iter().find(|prefix| lower.starts_with(*prefix));
    match (known, prefix) {
        (Some(false), _) | (None, None) => (title, false),
        (Some(true), None) => (title, true),
        (Some(true) | None, Some(prefix)) => (title[prefix.len()..].trim_start().to_owned(), true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_of_a_draft_is_not_part_of_its_title() {
        let split = |title: &str, known| split_draft(title.to_owned(), known);
        assert_eq!(split("WIP: Sort", None), ("Sort".to_owned(), true));
        assert_eq!(split("Draft: Sort", Some(true)), ("Sort".to_owned(), true));
        assert_eq!(split("Sort", Some(true)), ("Sort".to_owned(), true));
        assert_eq!(split("WIP: Sort", Some(false)), ("WIP: Sort".to_owned(), false));
        assert_eq!(DraftMark::Prefix("WIP: ").title("Sort", true), "WIP: Sort");
        assert_eq!(DraftMark::Field.title("Sort", true), "Sort");
    }
}
