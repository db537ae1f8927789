//! What the fork's owner ruled about paths. A ruling outranks whatever was learned.

use serde::{Deserialize, Serialize};

use super::decide::TrustThreshold;
use super::hunk::Side;
use crate::contract::Protected;

/// What shall be done about conflicts at some paths.
#[derive(Clone, Debug, PartialEq)]
pub enum PathRule {
    /// Take the fork's version.
    Ours,
    /// Take upstream's version.
    Theirs,
    /// Act with another trust than elsewhere.
    Trust(TrustThreshold),
    /// The file is made by a program: take a side, then run the command in a box.
    Regenerate(Regenerate),
}

/// How a file is made anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Regenerate {
    /// The side to start from.
    pub from: Side,
    /// The command, for the box.
    pub command: String,
}

/// The rulings of a fork; the first one of a kind that covers a path counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResolveRules {
    rules: Vec<(Protected, PathRule)>,
}

impl ResolveRules {
    /// Adds a ruling for paths that match a pattern: a path, a folder, `*` inside a name, `**` for anything.
    #[must_use]
    pub fn with(mut self, pattern: &str, rule: PathRule) -> Self {
        self.rules.push((Protected::new([pattern]), rule));
        self
    }

    /// The trust that counts at a path.
    #[must_use]
    pub fn trust_at(&self, path: &[u8], usual: TrustThreshold) -> TrustThreshold {
        let trust = self.covering(path).find_map(|rule| match rule {
            PathRule::Trust(trust) => Some(*trust),
            PathRule::Ours | PathRule::Theirs | PathRule::Regenerate(_) => None,
        });
        trust.unwrap_or(usual)
    }

    /// The ruling that resolves a path, if there is one.
    #[must_use]
    pub fn rule_at(&self, path: &[u8]) -> Option<&PathRule> {
        self.covering(path).find(|rule| !matches!(rule, PathRule::Trust(_)))
    }

    fn covering(&self, path: &[u8]) -> impl Iterator<Item = &PathRule> {
        let path = path.to_vec();
        let covers = move |(pattern, _): &&(Protected, PathRule)| pattern.covers(&path);
        self.rules.iter().filter(covers).map(|(_, rule)| rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ruling_that_covers_a_path_counts() {
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
