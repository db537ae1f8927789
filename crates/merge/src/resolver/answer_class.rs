//! Strategies of the resolver and the classes of their answers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A way to find answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResolveStrategy {
    /// Rules of the owner, and what people usually did with this path, folder or kind of file.
    Policy,
    /// Resolutions of the same or a similar hunk.
    Memory,
    /// Sides that differ in whitespace only, or of which one contains the other.
    Same,
    /// Merge of changes inside lines, token by token.
    Token,
    /// An external program that merges by syntax.
    Structure,
    /// Regeneration: one side is taken, then the command that generates the file runs.
    Regenerate,
}

impl ResolveStrategy {
    pub const ALL: [Self; 6] =
        [Self::Policy, Self::Memory, Self::Same, Self::Token, Self::Structure, Self::Regenerate];

    /// Name in records and rules.
    pub fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Memory => "memory",
            Self::Same => "same",
            Self::Token => "token",
            Self::Structure => "structure",
            Self::Regenerate => "regenerate",
        }
    }

    /// Version; raised when the same conflict may get another answer.
    pub fn version(self) -> u32 {
        1
    }
}

impl fmt::Display for ResolveStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.name(), self.version())
    }
}

/// Class of answers whose precision is measured together, in the shipped table and in each fork.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AnswerClass {
    pub strategy: ResolveStrategy,
    /// Method of the strategy. Equal answers by different methods support each other.
    pub method: &'static str,
    /// Classes of one family do better or worse than expected together.
    pub family: String,
    pub name: String,
}

impl AnswerClass {
    /// Class in the family of its method; `detail` tells it from others of the method.
    pub fn new(strategy: ResolveStrategy, method: &'static str, detail: impl fmt::Display) -> Self {
        Self {
            strategy,
            method,
            family: method.to_owned(),
            name: format!("{strategy} {method} {detail}"),
        }
    }

    /// The same class in a narrower family.
    #[must_use]
    pub fn of_family(self, family: impl fmt::Display) -> Self {
        Self { family: format!("{} {family}", self.family), ..self }
    }
}
