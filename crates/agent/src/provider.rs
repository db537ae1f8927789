//! The agents, and their differences as methods of [`Provider`].
//!
//! To add an agent: add a variant here, follow the compiler, and write a module beside `claude` with a
//! `command` (its start) and an event parser (the meaning of its lines). Other crates call these methods and
//! do not compare providers, so a new variant needs no search.

use std::collections::BTreeMap;

use crate::program::Program;
use crate::request::{AgentError, AgentRequest, WireApi};
use crate::{claude, codex, command, opencode, pi, scripted};

/// Command that starts an agent in a box: in the workspace, with an empty stdin.
///
/// An open and silent stdin makes most agents wait for its end, so it has to be `/dev/null`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentCommand {
    /// The program, as the box sees it, and its arguments. Never a secret: arguments are public.
    pub argv: Vec<String>,
    /// Variables of this agent, beside those that every box has.
    pub env: BTreeMap<String, String>,
    /// Files by name for the box's read-only folder. The agent can read them, so they contain no secret.
    pub files: BTreeMap<String, String>,
    /// Files by path for the agent's home, which replace what was there. They contain no secret either.
    pub home: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Provider {
    #[default]
    OpenCode,
    Codex,
    Claude,
    Pi,
    /// A custom program, started by a template.
    Command,
    /// Plays a script, without a model.
    Scripted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelUse {
    /// A model has to be chosen.
    Always,
    /// Only if the user names one.
    IfNamed,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequiredSetting {
    Command,
    Script,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no agent \"{name}\"; choose one of: {known}", known = known_names())]
pub struct UnknownProvider {
    name: String,
}

impl Provider {
    /// All of them, in the order in which they are offered.
    pub fn all() -> impl Iterator<Item = Self> {
        std::iter::successors(Some(Self::OpenCode), |provider| provider.next())
    }

    /// The agent after this one in [`Self::all`], so that a new one cannot be left out of it.
    fn next(self) -> Option<Self> {
        match self {
            Self::OpenCode => Some(Self::Codex),
            Self::Codex => Some(Self::Claude),
            Self::Claude => Some(Self::Pi),
            Self::Pi => Some(Self::Command),
            Self::Command => Some(Self::Scripted),
            Self::Scripted => None,
        }
    }

    /// Returns whether the agent takes the tools of an MCP server. Those that do not have the `forge` command instead.
    pub fn speaks_mcp(self) -> bool {
        match self {
            Self::OpenCode | Self::Codex | Self::Claude | Self::Command => true,
            Self::Pi | Self::Scripted => false,
        }
    }

    pub fn model_use(self) -> ModelUse {
        match self {
            Self::OpenCode | Self::Codex | Self::Claude | Self::Pi => ModelUse::Always,
            Self::Command => ModelUse::IfNamed,
            Self::Scripted => ModelUse::Never,
        }
    }

    /// Returns the vendor whose server the agent calls by default, as the prefix of that vendor's models.
    pub fn vendor(self) -> Option<&'static str> {
        match self {
            Self::Claude => Some("anthropic"),
            Self::Codex => Some("openai"),
            Self::OpenCode | Self::Pi | Self::Command | Self::Scripted => None,
        }
    }

    pub fn required_setting(self) -> Option<RequiredSetting> {
        match self {
            Self::Command => Some(RequiredSetting::Command),
            Self::Scripted => Some(RequiredSetting::Script),
            Self::OpenCode | Self::Codex | Self::Claude | Self::Pi => None,
        }
    }

    /// Returns whether the agent prints events with its answer. Otherwise its whole output is the answer.
    pub fn prints_events(self) -> bool {
        match self {
            Self::OpenCode | Self::Codex | Self::Claude | Self::Pi => true,
            Self::Command | Self::Scripted => false,
        }
    }

    /// Returns whether the output has events that can be shown as text.
    pub fn has_events(self) -> bool {
        match self {
            Self::OpenCode | Self::Codex | Self::Claude | Self::Pi | Self::Scripted => true,
            Self::Command => false,
        }
    }

    pub fn can_resume(self) -> bool {
        match self {
            Self::OpenCode | Self::Codex | Self::Claude | Self::Pi => true,
            Self::Command | Self::Scripted => false,
        }
    }

    /// Returns the path of a session's transcript relative to the home, for an agent that accepts a session
    /// id. At a terminal its output is not parsed, and this file shows whether there is a session to resume.
    pub fn transcript(self, session: &str) -> Option<String> {
        match self {
            Self::Claude => Some(claude::transcript(session)),
            Self::OpenCode | Self::Codex | Self::Pi | Self::Command | Self::Scripted => None,
        }
    }

    pub fn parse(name: &str) -> Result<Self, UnknownProvider> {
        let found = Self::all().find(|provider| provider.name() == name);
        found.ok_or_else(|| UnknownProvider { name: name.escape_debug().to_string() })
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::OpenCode => "opencode",
            Self::Codex => "codex",
            Self::Claude => "claude",
            Self::Pi => "pi",
            Self::Command => "command",
            Self::Scripted => "scripted",
        }
    }

    /// Returns the wire APIs that this agent supports, its preferred one first. The scripted one has none.
    pub fn wire_apis(self) -> &'static [WireApi] {
        match self {
            Self::OpenCode | Self::Pi | Self::Command => {
                &[WireApi::Chat, WireApi::Messages, WireApi::Responses]
            }
            Self::Codex => &[WireApi::Responses],
            Self::Claude => &[WireApi::Messages],
            Self::Scripted => &[],
        }
    }

    pub fn default_wire(self) -> Option<WireApi> {
        self.wire_apis().first().copied()
    }

    /// Returns the package of its program; `None` for those that this project does not install.
    pub fn program(self) -> Option<Program> {
        match self {
            Self::OpenCode => Some(opencode::PROGRAM),
            Self::Codex => Some(codex::PROGRAM),
            Self::Claude => Some(claude::PROGRAM),
            Self::Pi => Some(pi::PROGRAM),
            Self::Command | Self::Scripted => None,
        }
    }

    pub fn command(self, request: &AgentRequest) -> Result<AgentCommand, AgentError> {
        request.check(self)?;
        match self {
            Self::OpenCode => opencode::command(request),
            Self::Codex => Ok(codex::command(request)),
            Self::Claude => claude::command(request),
            Self::Pi => pi::command(request),
            Self::Command => command::command(request),
            Self::Scripted => {
                request.script.as_ref().map(scripted::command).ok_or(AgentError::NoScript)
            }
        }
    }
}

/// Returns the path in the box of a file in the read-only folder.
pub(crate) fn in_box(name: &str) -> String {
    format!("{}/{name}", guest::BOX_DIR)
}

/// Variables or files from fixed names and values.
pub(crate) fn texts<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn known_names() -> String {
    Provider::all().map(Provider::name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_is_found_by_its_own_name() {
        for provider in Provider::all() {
            assert_eq!(Provider::parse(provider.name()), Ok(provider));
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        for (name, shown) in
            [("gpt", "gpt"), ("", ""), ("Scripted", "Scripted"), ("a\x1b", "a\\u{1b}")]
        {
            let error = Provider::parse(name).unwrap_err().to_string();
            assert_eq!(
                error,
                format!(
                    "there is no agent \"{shown}\"; choose one of: \
                     opencode, codex, claude, pi, command, scripted"
                )
            );
        }
    }

    #[test]
    fn an_agent_talks_in_its_own_way_first() {
        let wires: Vec<_> = Provider::all().map(Provider::default_wire).collect();
        assert_eq!(
            wires,
            [
                Some(WireApi::Chat),
                Some(WireApi::Responses),
                Some(WireApi::Messages),
                Some(WireApi::Chat),
                Some(WireApi::Chat),
                None
            ]
        );
    }
}
