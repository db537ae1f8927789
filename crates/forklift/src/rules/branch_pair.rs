//! Branches of upstream and the branches of the fork that they go into, as `branches` of FORK.md lists them.

use model::id::BranchName;
use serde::{Deserialize, Serialize};

use super::target::Target;

/// A branch of upstream, and the branch of the fork that it goes into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BranchPair {
    pub(crate) upstream: BranchName,
    pub(crate) ours: BranchName,
}

impl BranchPair {
    /// Upstream's branch as a target that no tag of the same name is taken for.
    pub(crate) fn target(&self) -> Target {
        Target::Named(format!("refs/heads/{}", self.upstream))
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadPairs {
    /// Two pull requests into one branch would replace each other.
    #[error("'{ours}' stands twice; one branch of upstream goes into it")]
    Twice { ours: BranchName },
}

pub(crate) fn check_pairs(pairs: &[BranchPair]) -> Result<(), BadPairs> {
    for (number, pair) in pairs.iter().enumerate() {
        if pairs[..number].iter().any(|earlier| earlier.ours == pair.ours) {
            return Err(BadPairs::Twice { ours: pair.ours.clone() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair((upstream, ours): (&str, &str)) -> BranchPair {
        let name = |text| BranchName::parse(text).expect("a name");
        BranchPair { upstream: name(upstream), ours: name(ours) }
    }

    fn check(pairs: &[(&str, &str)]) -> Option<String> {
        let pairs: Vec<BranchPair> = pairs.iter().copied().map(pair).collect();
        check_pairs(&pairs).err().map(|bad| bad.to_string())
    }

    #[test]
    fn a_branch_of_the_fork_has_one_source() {
        assert_eq!(check(&[]), None);
        assert_eq!(check(&[("main", "main"), ("main", "next"), ("v1", "v1")]), None);
        let twice = check(&[("v1", "ours"), ("main", "main"), ("v2", "ours")]);
        assert_eq!(
            twice.as_deref(),
            Some("'ours' stands twice; one branch of upstream goes into it")
        );
    }

    #[test]
    fn a_tag_of_the_same_name_is_not_meant() {
        assert_eq!(pair(("v1", "v1")).target().to_string(), "refs/heads/v1");
    }
}
