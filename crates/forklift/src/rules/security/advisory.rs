//! An advisory as forklift uses it: checked, cut to size and free of control characters.

use std::fmt;

use jiff::Timestamp;
use model::id::Sha;
use serde::{Deserialize, Serialize};

use super::severity::Severity;

/// Longest identifier. Those of the known databases have at most 40 characters.
const ID_BYTES: usize = 64;

/// Identifier of an advisory. It may stand in a branch name, a file name or a table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct AdvisoryId(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{shown}' cannot be the identifier of an advisory: letters, digits, '.', '_', ':' and '-', such as CVE-2024-1234"
)]
pub(crate) struct BadId {
    shown: String,
}

impl AdvisoryId {
    pub(crate) fn parse(text: &str) -> Result<Self, BadId> {
        let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
        let starts = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        let is_good = starts
            && text.len() <= ID_BYTES
            && text.bytes().all(is_legal)
            && !text.contains("..")
            && !text.ends_with(['.', ':']);
        match is_good {
            true => Ok(Self(text.to_owned())),
            false => {
                let start: String = text.chars().take(ID_BYTES).collect();
                Err(BadId { shown: model::escape::escape_line(&start).into_owned() })
            }
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether two identifiers are the same, in any case.
    pub(crate) fn is(&self, other: &str) -> bool {
        self.0.eq_ignore_ascii_case(other)
    }
}

impl fmt::Display for AdvisoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for AdvisoryId {
    type Error = BadId;

    fn try_from(text: String) -> Result<Self, BadId> {
        Self::parse(&text)
    }
}

impl From<AdvisoryId> for String {
    fn from(id: AdvisoryId) -> Self {
        id.0
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Advisory {
    pub(crate) id: AdvisoryId,
    pub(crate) aliases: Vec<AdvisoryId>,
    pub(crate) summary: String,
    pub(crate) severity: Severity,
    pub(crate) is_withdrawn: bool,
    /// When it was last changed, as far as it says.
    pub(crate) modified: Option<Timestamp>,
    /// Names of affected packages, as `name` and as `ecosystem/name`, in lower case.
    pub(crate) packages: Vec<String>,
    pub(crate) ranges: Vec<AdvisoryRange>,
    /// Addresses of fixes.
    pub(crate) fix_urls: Vec<String>,
}

/// Where a vulnerability begins and ends, in commits or in versions. The order of events in a file says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AdvisoryRange {
    /// Address of the repository, for commits.
    pub(crate) repo: Option<String>,
    /// Names of the package that the range is about.
    pub(crate) packages: Vec<String>,
    /// `None` for "always was there".
    pub(crate) introduced: Vec<Option<Point>>,
    pub(crate) fixed: Vec<Point>,
    /// The fix is known only to lie between these commits, the second of which is `fixed`.
    pub(crate) fixed_within: Option<(Sha, Sha)>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Point {
    Commit(Sha),
    Version(String),
}

impl Point {
    pub(crate) fn commit(&self) -> Option<&Sha> {
        match self {
            Self::Commit(commit) => Some(commit),
            Self::Version(_) => None,
        }
    }
}

impl Advisory {
    /// Every commit that the advisory names as a fix, in ranges and addresses.
    pub(crate) fn fix_commits(&self) -> impl Iterator<Item = Sha> + '_ {
        let fixed = self.ranges.iter().flat_map(|range| &range.fixed);
        fixed
            .filter_map(Point::commit)
            .cloned()
            .chain(self.fix_urls.iter().filter_map(|url| commit_of_url(url)))
    }

    /// Every commit that the advisory names as a beginning.
    pub(crate) fn begin_commits(&self) -> impl Iterator<Item = Sha> + '_ {
        let begins = self.ranges.iter().flat_map(|range| &range.introduced).flatten();
        begins.filter_map(Point::commit).cloned()
    }

    /// Commits that begin a range beside other beginnings, with the fixes of that range: which fix ends which is a matter of
    /// history.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (Sha, Sha)> + '_ {
        let several = self.ranges.iter().filter(|range| range.introduced.len() > 1);
        several.flat_map(|range| {
            let begins = range.introduced.iter().flatten().filter_map(Point::commit);
            let fixes = || range.fixed.iter().filter_map(Point::commit);
            let pairs = begins.flat_map(move |begin| fixes().map(move |fix| (begin, fix)));
            // One commit may end a hole and begin it again in another way.
            let pairs = pairs.filter(|(begin, fix)| begin != fix);
            pairs.map(|(begin, fix)| (begin.clone(), fix.clone()))
        })
    }

    /// Returns whether the advisory is known by this identifier.
    pub(crate) fn is_called(&self, id: &str) -> bool {
        self.id.is(id) || self.aliases.iter().any(|alias| alias.is(id))
    }
}

/// The commit in an address such as `https://github.com/owner/name/commit/ID`.
pub(crate) fn commit_of_url(url: &str) -> Option<Sha> {
    let (_, rest) = url.split_once("/commit/").or_else(|| url.split_once("/commits/"))?;
    let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
    Sha::parse(&rest[..end].to_ascii_lowercase()).ok()
}

/// The number in the address of a pull request, such as `https://github.com/owner/name/pull/7`.
pub(crate) fn pull_of_url(url: &str) -> Option<u32> {
    let (_, rest) = url.split_once("/pull/").or_else(|| url.split_once("/merge_requests/"))?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_neither_a_path_nor_an_option_nor_a_page() {
        for text in ["CVE-2024-1234", "GO-2021-0063", "GHSA-r33q-22hv-j29q", "OSV-2024-1053", "a:1"]
        {
            assert!(AdvisoryId::parse(text).is_ok(), "{text}");
        }
        let long = "a".repeat(65);
        for text in ["", "-x", "../x", "a/b", "a..b", "a b", "a\u{1b}[2J", "a\n", ".x", "x.", &long]
        {
            assert!(AdvisoryId::parse(text).is_err(), "{text:?}");
        }
        let shown = AdvisoryId::parse("a\u{1b}[2J").expect_err("refused").to_string();
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }

    #[test]
    fn commits_and_pull_requests_are_read_from_addresses() {
        let sha = "a".repeat(40);
        let commit = |url: &str| commit_of_url(url).map(|it| it.to_string());
        assert_eq!(commit(&format!("https://x/o/n/commit/{sha}#diff")), Some(sha.clone()));
        assert_eq!(commit(&format!("https://x/o/n/-/commit/{}", sha.to_uppercase())), Some(sha));
        assert_eq!(commit("https://x/o/n/commit/abc"), None);
        assert_eq!(pull_of_url("https://x/o/n/pull/21896/files"), Some(21_896));
        assert_eq!(pull_of_url("https://x/o/n/pull/"), None);
        assert_eq!(pull_of_url("https://x/o/n/pull/99999999999"), None);
    }
}
