//! Request to an agent, and its validation.
//!
//! Everything that reaches an argument list is checked here, once for all agents: a value that begins with a
//! dash would be read as an option, and a session id comes from an agent's own output.

use guest::script::Script;
use serde_json::{Map, Value};

pub use model::wire::{Price, WireApi};

use crate::provider::Provider;

/// Length limit of a prompt in bytes. Linux accepts no argument above 128 KiB, its closing zero included, and
/// some agents need theirs in one piece; the rest is room for a prefix.
const PROMPT_LIMIT: usize = 128 * 1024 - 16;

#[derive(Debug, Clone, PartialEq)]
pub struct AgentRequest {
    /// Command that starts the program in the box, from [`crate::Program::launcher`]; empty for its name on
    /// the PATH.
    pub launcher: Vec<String>,
    /// The task. At a terminal it may be empty: then the user begins.
    pub prompt: String,
    pub manner: Interaction,
    /// The model, by its name at the model route.
    pub model: Option<String>,
    /// Reasoning effort, in the agent's own terms, such as `high`.
    pub variant: Option<String>,
    pub agent: Option<String>,
    pub session: SessionRequest,
    pub model_route: ModelEndpoint,
    pub mcp: Vec<McpServer>,
    /// The folder to work in, as the box sees it; the command is started there.
    pub workspace: String,
    pub run_title: String,
    /// Price of the model, for agents that compute costs.
    pub price: Option<Price>,
    /// Script of [`Provider::Scripted`].
    pub script: Option<Script>,
    /// Command line of [`Provider::Command`].
    pub template: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Interaction {
    /// Without a user: one prompt, events as lines, and the end.
    #[default]
    Headless,
    /// With its own interface on a terminal, used interactively.
    Terminal,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionRequest {
    /// A new one. Agents that accept an id use this one, which is a version 4 UUID.
    Fresh { id: Option<String> },
    /// An earlier one, by the id that the agent printed.
    Resume(String),
}

/// Endpoint of the model, as the box sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelEndpoint {
    /// Such as `http://127.0.0.1:3128/-/model`: without `/v1`.
    pub base_url: String,
    pub wire: WireApi,
    /// Placeholder of the key in the box. The real one is added outside.
    pub dummy_key: String,
}

impl ModelEndpoint {
    /// Returns the base URL for OpenAI-like clients.
    pub(crate) fn v1(&self) -> String {
        format!("{}/v1", self.base_url.trim_end_matches('/'))
    }

    /// Returns the base URL for Anthropic's clients.
    pub(crate) fn root(&self) -> &str {
        self.base_url.trim_end_matches('/')
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// Its name, part of the names of its tools: letters, digits, `-` and `_`.
    pub name: String,
    pub transport: Transport,
}

/// Transport to a tool server from inside the box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    Http {
        url: String,
    },
    /// A program in the box, started by the agent.
    Stdio {
        command: String,
        args: Vec<String>,
    },
}

/// A request that the agent does not support.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    #[error("{provider} does not talk to models by `{wire}`; it takes: {known}", provider = provider.name(),
        wire = wire.name(), known = wire_names(*provider))]
    WrongWire { provider: Provider, wire: WireApi },
    #[error("{provider} needs the name of a model", provider = provider.name())]
    NoModel { provider: Provider },
    #[error("{provider} cannot be given {what}", provider = provider.name())]
    Unsupported { provider: Provider, what: &'static str },
    #[error("\"{value}\" cannot be {what}: {rule}", value = value.escape_debug())]
    BadValue { what: &'static str, value: String, rule: &'static str },
    #[error("the prompt has {bytes} bytes; an agent takes at most {PROMPT_LIMIT}")]
    PromptTooLong { bytes: usize },
    #[error("the prompt is empty")]
    NoPrompt,
    #[error("the prompt has a zero byte in it")]
    ZeroInPrompt,
    #[error("the scripted agent needs a script")]
    NoScript,
    #[error("the agent `command` needs a program to start")]
    NoTemplate,
    #[error("there is no placeholder {{{name}}}; choose one of: {{prompt}}, {{prompt_file}}, {{workspace}}, {{model}}",
        name = name.escape_debug())]
    UnknownPlaceholder { name: String },
}

const NO_OPTION: &str = "it is empty, begins with a dash or has control characters";
const NAME_RULE: &str =
    "only letters, digits, `-` and `_`, at most 128 of them, no dash at the beginning";

impl AgentRequest {
    /// Checks that this agent supports the request, before anything is built from it.
    pub(crate) fn check(&self, provider: Provider) -> Result<(), AgentError> {
        if provider == Provider::Scripted {
            return Ok(());
        }
        if !provider.wire_apis().contains(&self.model_route.wire) {
            return Err(AgentError::WrongWire { provider, wire: self.model_route.wire });
        }
        check_prompt(&self.prompt, self.manner)?;
        for (what, value) in
            [("a model", &self.model), ("a variant", &self.variant), ("an agent", &self.agent)]
        {
            if let Some(value) = value {
                check_word(what, value)?;
            }
        }
        check_word("a title", &self.run_title)?;
        if let SessionRequest::Resume(id) | SessionRequest::Fresh { id: Some(id) } = &self.session {
            check_name("a session id", id)?;
        }
        for server in &self.mcp {
            check_name("the name of a tool server", &server.name)?;
        }
        let what = match provider {
            Provider::Command if self.resumed().is_some() => "a session to resume",
            Provider::Command if self.variant.is_some() => "a variant",
            Provider::Codex | Provider::Pi | Provider::Command if self.agent.is_some() => {
                "an agent"
            }
            Provider::OpenCode
                if self.manner == Interaction::Terminal && self.variant.is_some() =>
            {
                "a variant at a terminal"
            }
            _ => return Ok(()),
        };
        Err(AgentError::Unsupported { provider, what })
    }

    pub(crate) fn model_for(&self, provider: Provider) -> Result<&str, AgentError> {
        self.model.as_deref().ok_or(AgentError::NoModel { provider })
    }

    /// Returns the id of the session to resume, if any.
    pub(crate) fn resumed(&self) -> Option<&str> {
        match &self.session {
            SessionRequest::Resume(id) => Some(id),
            SessionRequest::Fresh { .. } => None,
        }
    }

    /// Returns the tool servers by name, each as `entry` renders it.
    pub(crate) fn mcp_servers(&self, entry: impl Fn(&Transport) -> Value) -> Value {
        let servers = self.mcp.iter().map(|server| (server.name.clone(), entry(&server.transport)));
        servers.collect::<Map<_, _>>().into()
    }

    pub(crate) fn first_message(&self) -> Option<&str> {
        Some(self.prompt.as_str()).filter(|prompt| !prompt.is_empty())
    }

    pub(crate) fn program(&self, name: &str) -> Vec<String> {
        if self.launcher.is_empty() { vec![name.to_owned()] } else { self.launcher.clone() }
    }
}

/// Adds an option with its value, if there is one.
pub(crate) fn push_option(argv: &mut Vec<String>, option: &str, value: Option<&str>) {
    argv.extend(value.into_iter().flat_map(|value| [option, value]).map(str::to_owned));
}

fn check_prompt(prompt: &str, manner: Interaction) -> Result<(), AgentError> {
    match prompt {
        "" if manner == Interaction::Terminal => Ok(()),
        _ if prompt.trim().is_empty() => Err(AgentError::NoPrompt),
        _ if prompt.contains('\0') => Err(AgentError::ZeroInPrompt),
        _ if prompt.len() > PROMPT_LIMIT => Err(AgentError::PromptTooLong { bytes: prompt.len() }),
        _ => Ok(()),
    }
}

fn check_word(what: &'static str, value: &str) -> Result<(), AgentError> {
    if value.is_empty() || value.starts_with('-') || value.chars().any(char::is_control) {
        return Err(AgentError::BadValue { what, value: value.to_owned(), rule: NO_OPTION });
    }
    Ok(())
}

fn check_name(what: &'static str, value: &str) -> Result<(), AgentError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if value.is_empty() || value.len() > 128 || value.starts_with('-') || !value.chars().all(plain)
    {
        return Err(AgentError::BadValue { what, value: value.to_owned(), rule: NAME_RULE });
    }
    Ok(())
}

fn wire_names(provider: Provider) -> String {
    let names: Vec<_> = provider.wire_apis().iter().map(|wire| wire.name()).collect();
    names.join(", ")
}

#[cfg(test)]
pub(crate) mod samples {
    use super::*;

    /// A request as most tests want it.
    pub(crate) fn sample(wire: WireApi) -> AgentRequest {
        AgentRequest {
            launcher: Vec::new(),
            prompt: "Merge upstream".to_owned(),
            manner: Interaction::Headless,
            model: Some("scripted".to_owned()),
            variant: None,
            agent: None,
            session: SessionRequest::Fresh { id: None },
            model_route: ModelEndpoint {
                base_url: "http://127.0.0.1:3128/-/model".to_owned(),
                wire,
                dummy_key: "dummy-1".to_owned(),
            },
            mcp: Vec::new(),
            workspace: guest::WORKSPACE.to_owned(),
            run_title: "run-1".to_owned(),
            price: None,
            script: None,
            template: None,
        }
    }

    /// One tool server of each kind.
    pub(crate) fn sample_servers() -> Vec<McpServer> {
        vec![
            McpServer {
                name: "forge".to_owned(),
                transport: Transport::Http { url: "http://127.0.0.1:3129/mcp".to_owned() },
            },
            McpServer {
                name: "probe".to_owned(),
                transport: Transport::Stdio {
                    command: "prog".to_owned(),
                    args: vec!["arg".to_owned()],
                },
            },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::samples::{sample, sample_servers};
    use super::*;

    #[track_caller]
    fn refused(change: impl FnOnce(&mut AgentRequest), words: &str) {
        let mut request = sample(WireApi::Messages);
        change(&mut request);
        let error = Provider::Claude.command(&request).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }

    #[test]
    fn a_way_to_talk_that_the_agent_lacks_is_named() {
        refused(
            |request| request.model_route.wire = WireApi::Chat,
            "claude does not talk to models by `chat`; it takes: messages",
        );
    }

    #[test]
    fn a_prompt_must_fit_into_an_argument() {
        refused(|request| request.prompt = " \n".to_owned(), "the prompt is empty");
        refused(|request| request.prompt = "a\0b".to_owned(), "zero byte");
        refused(|request| request.prompt = "x".repeat(PROMPT_LIMIT + 1), "has 131057 bytes");
        let mut request = sample(WireApi::Messages);
        request.prompt = "x".repeat(PROMPT_LIMIT);
        assert!(Provider::Claude.command(&request).is_ok());
    }

    #[test]
    fn at_a_terminal_a_person_may_begin() {
        let mut request = sample(WireApi::Messages);
        request.manner = Interaction::Terminal;
        request.prompt = String::new();
        assert!(Provider::Claude.command(&request).is_ok());
        refused(|request| request.prompt = String::new(), "the prompt is empty");
    }

    #[test]
    fn no_value_passes_for_an_option() {
        refused(|request| request.model = Some("-c".to_owned()), "\"-c\" cannot be a model");
        refused(|request| request.variant = Some(String::new()), "cannot be a variant");
        refused(|request| request.agent = Some("a\nb".to_owned()), "\"a\\nb\" cannot be an agent");
        refused(|request| request.run_title = "--x".to_owned(), "cannot be a title");
        for id in ["--help", "../x", "a b", ""] {
            refused(
                |request| request.session = SessionRequest::Resume(id.to_owned()),
                "cannot be a session id",
            );
        }
    }

    #[test]
    fn a_tool_server_has_a_plain_name() {
        refused(
            |request| {
                request.mcp = sample_servers();
                request.mcp[1].name = "a.b".to_owned();
            },
            "\"a.b\" cannot be the name of a tool server",
        );
    }

    #[test]
    fn the_scripted_agent_needs_only_its_script() {
        let mut request = sample(WireApi::Chat);
        request.prompt = String::new();
        assert_eq!(Provider::Scripted.command(&request), Err(AgentError::NoScript));
        request.script = Some(Script::default());
        assert!(Provider::Scripted.command(&request).is_ok());
    }
}
