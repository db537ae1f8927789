//! Modes of publishing: how far a run goes with a verified commit.

use serde::{Deserialize, Serialize};

/// Modes, each with less effect on others than the one before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PublishMode {
    /// Push the branch and open or renew the pull request.
    #[default]
    Full,
    /// Push the branch.
    BranchOnly,
    /// Keep the commit in the run's directory.
    Keep,
    /// The same, and say what would be done.
    DryRun,
}

impl PublishMode {
    pub(crate) fn pushes(self) -> bool {
        match self {
            Self::Full | Self::BranchOnly => true,
            Self::Keep | Self::DryRun => false,
        }
    }

    /// Reason why a publication is not complete, for a mode that leaves something out.
    pub(crate) fn note(self, branch: &str, url: &str) -> Option<String> {
        match self {
            Self::Full => None,
            Self::BranchOnly => Some("no pull request: --no-pull-request was given".to_owned()),
            Self::Keep => Some("nothing was pushed: --no-push was given".to_owned()),
            Self::DryRun => {
                Some(format!("dry run: nothing was pushed; {branch} would go to {url}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_mode_that_publishes_all_has_nothing_to_add() {
        let note = |mode: PublishMode| mode.note("forklift/a", "/srv/a.git");
        assert_eq!(note(PublishMode::Full), None);
        for mode in [PublishMode::BranchOnly, PublishMode::Keep, PublishMode::DryRun] {
            assert!(note(mode).is_some_and(|note| note.contains("--") || note.contains("dry run")));
            assert!(mode > PublishMode::Full);
        }
        assert!(PublishMode::BranchOnly.pushes() && !PublishMode::Keep.pushes());
    }
}
