//! The seam between agents and the rest: who can be asked, and what asking takes.

use std::collections::BTreeMap;

/// What starts an agent in a box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCommand {
    /// The program, as the box sees it, and its arguments. Never a secret: arguments are public.
    pub argv: Vec<String>,
    /// Variables of this agent, beside those that every box has.
    pub env: BTreeMap<String, String>,
    /// Files that must be in the box's read-only folder before the command starts.
    pub files: Vec<GuestFile>,
}

/// A file for the read-only folder of a box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestFile {
    /// Its name in that folder.
    pub name: String,
    /// What is in it. The agent can read it, so it holds no secret.
    pub bytes: Vec<u8>,
}

/// The agents that can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// Plays a script: no model, the same every time.
    Scripted,
}

/// A name that no agent has.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no agent \"{name}\"; choose one of: {known}", known = known_names())]
pub struct UnknownProvider {
    name: String,
}

impl Provider {
    /// All of them, in the order in which they are offered.
    pub const ALL: [Self; 1] = [Self::Scripted];

    /// Finds an agent by its name.
    pub fn parse(name: &str) -> Result<Self, UnknownProvider> {
        let found = Self::ALL.into_iter().find(|provider| provider.name() == name);
        found.ok_or_else(|| UnknownProvider { name: name.escape_debug().to_string() })
    }

    /// The name that people give.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scripted => "scripted",
        }
    }
}

fn known_names() -> String {
    Provider::ALL.map(Provider::name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_is_found_by_its_own_name() {
        for provider in Provider::ALL {
            assert_eq!(Provider::parse(provider.name()), Ok(provider));
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        for (name, shown) in
            [("gpt", "gpt"), ("", ""), ("Scripted", "Scripted"), ("a\x1b", "a\\u{1b}")]
        {
            let error = Provider::parse(name).unwrap_err().to_string();
            assert_eq!(error, format!("there is no agent \"{shown}\"; choose one of: scripted"));
        }
    }
}
