//! Version of the installed git, and the minimum that is required.

use std::fmt;
use std::path::Path;

use tokio::sync::OnceCell;

use super::call::{Git, argv};
use super::{GitError, seal};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GitVersion {
    pub major: u32,
    pub minor: u32,
}

/// The first release with all required features: `merge-tree --write-tree` and `safe.bareRepository` came
/// last.
pub const MINIMUM: GitVersion = GitVersion { major: 2, minor: 38 };

impl fmt::Display for GitVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

pub async fn version() -> Result<GitVersion, GitError> {
    let git = Git::new(Path::new("/"), seal::init_env(), Vec::new());
    let answer = git.query(argv("version")).await?;
    let text = String::from_utf8_lossy(&answer.stdout);
    parse_version(&text).ok_or_else(|| answer.unreadable("no version number in it"))
}

/// A version that was found to be new enough; git is asked once in the life of a process.
static ENOUGH: OnceCell<GitVersion> = OnceCell::const_new();

/// Returns the version of the installed git, or an error if it is too old.
pub async fn check_version() -> Result<GitVersion, GitError> {
    let ask = || async {
        let found = version().await?;
        if found < MINIMUM {
            return Err(GitError::TooOld { found, needed: MINIMUM });
        }
        Ok(found)
    };
    ENOUGH.get_or_try_init(ask).await.copied()
}

fn parse_version(text: &str) -> Option<GitVersion> {
    let number = text.strip_prefix("git version ")?.split_whitespace().next()?;
    let mut parts = number.split('.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?.parse().ok()?;
    Some(GitVersion { major, minor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_in_all_their_dresses() {
        for text in
            ["git version 2.39.5\n", "git version 2.39.5 (Apple Git-154)\n", "git version 2.39.rc1"]
        {
            assert_eq!(parse_version(text), Some(GitVersion { major: 2, minor: 39 }), "{text}");
        }
        assert_eq!(parse_version("git 2.39"), None);
        assert_eq!(parse_version("git version two"), None);
    }

    #[test]
    fn versions_are_compared_by_number() {
        let of = |major, minor| GitVersion { major, minor };
        assert!(of(2, 9) < MINIMUM && MINIMUM < of(2, 100) && of(2, 100) < of(3, 0));
    }
}
