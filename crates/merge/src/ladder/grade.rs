//! The rungs, and how sure an answer of a rung is meant to be before anybody has tried it in a fork.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A step of the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    /// What the owner ruled, and what the fork's people always do with this path, folder or kind of file.
    Policy,
    /// The same hunk, or one much like it, was resolved before.
    Memory,
    /// The sides differ in whitespace only, or one contains the other.
    Same,
    /// The changes lie apart inside the lines.
    Token,
    /// A program that knows the language.
    Structure,
    /// A file that a program makes: one side is taken, then the program is run.
    Regenerate,
}

impl Rung {
    /// All of them, in the order in which they are named.
    pub const ALL: [Self; 6] =
        [Self::Policy, Self::Memory, Self::Same, Self::Token, Self::Structure, Self::Regenerate];

    /// Its name.
    #[must_use]
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

    /// Its version: it grows when the same conflict may get another answer.
    #[must_use]
    pub fn version(self) -> u32 {
        1
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.name(), self.version())
    }
}

/// What kind of answer it is. Answers of one grade have one record, in the shipped table and in each fork.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grade {
    /// The rung that gave it.
    pub rung: Rung,
    /// Which of the rung's ways led to it; answers that were reached in different ways support each other.
    pub way: &'static str,
    /// Grades of one family do better or worse than expected together.
    pub family: String,
    /// The whole name.
    pub name: String,
}

impl Grade {
    /// A grade whose family is its way, and whose name says how it differs from others of that way.
    #[must_use]
    pub fn new(rung: Rung, way: &'static str, detail: impl fmt::Display) -> Self {
        Self { rung, way, family: way.to_owned(), name: format!("{rung} {way} {detail}") }
    }

    /// The same, in a narrower family.
    #[must_use]
    pub fn of_family(self, family: impl fmt::Display) -> Self {
        Self { family: format!("{} {family}", self.family), ..self }
    }
}
