//! What the fork's owner ruled about paths. A ruling outranks whatever was learned.

use serde::{Deserialize, Serialize};

use super::decide::Trust;
use crate::contract::Protected;

/// What shall be done about conflicts at some paths.
#[derive(Clone, Debug, PartialEq)]
pub enum Ruling {
    /// Take the fork's version.
    Ours,
    /// Take upstream's version.
    Theirs,
    /// Act with another trust than elsewhere.
    Trust(Trust),
    /// The file is made by a program: take a side, then run the command in a box.
    Regenerate(Regenerate),
}

/// How a file is made anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Regenerate {
    /// The side to start from.
    pub from: RegenerateFrom,
    /// The command, for the box.
    pub command: String,
}

/// The side that a program starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RegenerateFrom {
    /// The fork's.
    Ours,
    /// Upstream's.
    #[default]
    Theirs,
}

/// The rulings of a fork; the first one of a kind that covers a path counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    rulings: Vec<(Protected, Ruling)>,
}

impl Rules {
    /// Adds a ruling for paths that match a pattern: a path, a folder, `*` inside a name, `**` for anything.
    #[must_use]
    pub fn with(mut self, pattern: &str, ruling: Ruling) -> Self {
        self.rulings.push((Protected::new([pattern]), ruling));
        self
    }

    /// The trust that counts at a path.
    #[must_use]
    pub fn trust_at(&self, path: &[u8], usual: Trust) -> Trust {
        let trust = self.covering(path).find_map(|ruling| match ruling {
            Ruling::Trust(trust) => Some(*trust),
            Ruling::Ours | Ruling::Theirs | Ruling::Regenerate(_) => None,
        });
        trust.unwrap_or(usual)
    }

    /// The ruling that settles a path, if there is one.
    #[must_use]
    pub fn ruling_at(&self, path: &[u8]) -> Option<&Ruling> {
        self.covering(path).find(|ruling| !matches!(ruling, Ruling::Trust(_)))
    }

    fn covering(&self, path: &[u8]) -> impl Iterator<Item = &Ruling> {
        let path = path.to_vec();
        let covers = move |(pattern, _): &&(Protected, Ruling)| pattern.covers(&path);
        self.rulings.iter().filter(covers).map(|(_, ruling)| ruling)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ruling_that_covers_a_path_counts() {
        let rules = Rules::default()
            .with("docs/logo.svg", Ruling::Ours)
            .with("docs", Ruling::Theirs)
            .with("src/secret", Ruling::Trust(Trust::NEVER));
        assert_eq!(rules.ruling_at(b"docs/logo.svg"), Some(&Ruling::Ours));
        assert_eq!(rules.ruling_at(b"docs/a/b"), Some(&Ruling::Theirs));
        assert_eq!(rules.ruling_at(b"src/secret/x"), None);
        assert_eq!(rules.trust_at(b"src/secret/x", Trust::USUAL), Trust::NEVER);
        assert_eq!(rules.trust_at(b"src/x", Trust::USUAL), Trust::USUAL);
    }
}
