//! The owner's rules for paths (`resolve:` in FORK.md). A rule outranks everything that was learned.

use serde::{Deserialize, Serialize};

use super::decide::TrustThreshold;
use super::hunk::Side;
use crate::pattern::PathPatterns;

/// Treatment of conflicts at matching paths.
#[derive(Clone, Debug, PartialEq)]
pub enum PathRule {
    Ours,
    Theirs,
    Trust(TrustThreshold),
    /// Regenerate the file: take a side, then run the command in a box.
    Regenerate(Regenerate),
}

/// Regeneration of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Regenerate {
    pub from: Side,
    /// Shell command that runs in the box.
    pub command: String,
}

/// Rules of a fork. The first rule of a kind that matches a path counts.
#[derive(Clone, Debug, Default)]
pub struct ResolveRules {
    rules: Vec<(PathPatterns, PathRule)>,
}

impl ResolveRules {
    pub const fn new() -> Self {
        Self { rules: Vec::new() }
    }

    /// Adds a rule for paths that match a gitignore-like pattern.
    #[must_use]
    pub fn with(mut self, pattern: &str, rule: PathRule) -> Self {
        self.rules.push((PathPatterns::new([pattern]), rule));
        self
    }

    pub fn trust_at(&self, path: &[u8], usual: TrustThreshold) -> TrustThreshold {
        let trust = self.matching(path).find_map(|rule| match rule {
            PathRule::Trust(trust) => Some(*trust),
            PathRule::Ours | PathRule::Theirs | PathRule::Regenerate(_) => None,
        });
        trust.unwrap_or(usual)
    }

    /// Rule that resolves conflicts at a path, if there is one.
    pub fn rule_at(&self, path: &[u8]) -> Option<&PathRule> {
        self.matching(path).find(|rule| !matches!(rule, PathRule::Trust(_)))
    }

    fn matching(&self, path: &[u8]) -> impl Iterator<Item = &PathRule> {
        let path = path.to_vec();
        let matches = move |(pattern, _): &&(PathPatterns, PathRule)| pattern.matches(&path);
        self.rules.iter().filter(matches).map(|(_, rule)| rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_matches_a_path_counts() {
        let rules = ResolveRules::default()
            .with("docs/logo.svg", PathRule::Ours)
            .with("docs", PathRule::Theirs)
            .with("src/secret", PathRule::Trust(TrustThreshold::NEVER));
        assert_eq!(rules.rule_at(b"docs/logo.svg"), Some(&PathRule::Ours));
        assert_eq!(rules.rule_at(b"docs/a/b"), Some(&PathRule::Theirs));
        assert_eq!(rules.rule_at(b"src/secret/x"), None);
        assert_eq!(rules.trust_at(b"src/secret/x", TrustThreshold::DEFAULT), TrustThreshold::NEVER);
        assert_eq!(rules.trust_at(b"src/x", TrustThreshold::DEFAULT), TrustThreshold::DEFAULT);
    }
}
