//! Choice of the agent where none is named: the only one that is installed and has a key.

use std::path::Path;

use agent::Provider;
use clap_complete::engine::CompletionCandidate;
use engine::agent_plan::{AgentOptions, ResolveAgentError, has_login, locate_key};
use engine::install;
use model::exit::ExitStatus;

use crate::config::Config;
use crate::failure::Failure;

/// An agent that could be chosen, and what it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCandidate {
    /// A provider, or a name of the configuration.
    pub name: String,
    program: ProgramState,
    /// Where the key is, or what is missing.
    key: Result<String, String>,
    /// True if the agent's own program has a login here that the user has not allowed yet.
    has_login: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProgramState {
    Installed,
    /// On the user's PATH, in a form that boxes cannot take.
    OnPath,
    Missing,
}

/// Observes the agents of the configuration and those that can be installed. `fill` adds what the user typed.
pub fn observe_candidates(
    config: &Config,
    agents: &Path,
    fill: impl Fn(&mut AgentOptions),
) -> Vec<AgentCandidate> {
    let providers = Provider::all().filter(|it| it.program().is_some());
    let rest = providers.map(|it| it.name().to_owned());
    let rest = rest.filter(|name| !config.agents.contains_key(name));
    let observe = |name: String| {
        let mut options = config.agent_options(&name).ok()?;
        let program = options.provider.program()?;
        fill(&mut options);
        let program = match install::find_any(agents, &program) {
            Some(_) => ProgramState::Installed,
            None if host::tool::which(program.name).is_some() => ProgramState::OnPath,
            None => ProgramState::Missing,
        };
        let key = locate_key(&options).map_err(|error| missing_words(&error));
        let vendor = options.provider.vendor().unwrap_or_default();
        let has_login = key.is_err() && !options.login && has_login(options.provider, vendor);
        Some(AgentCandidate { name, program, key, has_login })
    };
    config.agents.keys().cloned().chain(rest).filter_map(observe).collect()
}

fn missing_words(error: &ResolveAgentError) -> String {
    match error {
        ResolveAgentError::NoKey { name } => format!("set {name}"),
        other => model::error_chain(other),
    }
}

/// Chooses the agent of work that names none: the configured one, `usual` if it is ready, or else the first one that is.
pub fn choose_default(config: &Config, agents: &Path, usual: &str) -> Option<String> {
    if let Some(name) = &config.agent {
        return Some(name.clone());
    }
    let candidates = observe_candidates(config, agents, |_| {});
    find_ready(&candidates, usual).map(|it| it.name.clone())
}

/// Finds the candidate of this name if it is ready, or else the first one that is.
pub(crate) fn find_ready<'a>(
    candidates: &'a [AgentCandidate],
    usual: &str,
) -> Option<&'a AgentCandidate> {
    let mut ready = candidates.iter().filter(|it| it.is_ready());
    ready.clone().find(|it| it.name == usual).or_else(|| ready.next())
}

/// Chooses the only agent that is installed and has a key.
pub fn choose_agent<S: ExitStatus>(
    program: &str,
    candidates: &[AgentCandidate],
) -> Result<AgentCandidate, Failure<S>> {
    let is_installed = |it: &&AgentCandidate| it.program == ProgramState::Installed;
    let ready: Vec<&AgentCandidate> =
        candidates.iter().filter(is_installed).filter(|it| it.key.is_ok()).collect();
    match ready.as_slice() {
        [only] => return Ok((*only).clone()),
        [] => {}
        [first, ..] => {
            let shown = |it: &&AgentCandidate| format!("{} ({})", it.name, it.key_text());
            let list: Vec<String> = ready.iter().map(shown).collect();
            let message =
                format!("an agent is needed, and several could be used: {}", list.join(", "));
            let name = &first.name;
            let remedy = format!(
                "choose one with --provider {name}, or for good with: {program} config set agent {name}"
            );
            return Err(Failure::usage(message).with_remedy(remedy));
        }
    }
    let (message, mut remedy) = missing_agent(program, candidates);
    if !candidates.iter().any(|it| it.key.is_ok() || is_installed(&it)) {
        remedy += &format!(", or run: {program} init");
    }
    Err(Failure::usage(message).with_remedy(remedy))
}

/// The reason why no candidate is ready, and the step that is left for the nearest one.
pub(crate) fn missing_agent(program: &str, candidates: &[AgentCandidate]) -> (String, String) {
    let is_installed = |it: &&AgentCandidate| it.program == ProgramState::Installed;
    let keyed = candidates.iter().find(|it| it.key.is_ok());
    let installed = candidates.iter().find(is_installed);
    let on_path = candidates.iter().find(|it| it.program == ProgramState::OnPath);
    match (keyed, installed, on_path) {
        (Some(it), _, _) => (
            format!(
                "an agent is needed: {} has a key ({}) and is not installed for boxes",
                it.name,
                it.key_text()
            ),
            format!("install it with: forklift agents install {}", it.name),
        ),
        (None, Some(it), _) if it.has_login => (
            format!("an agent is needed: {} is installed and has no key", it.name),
            format!(
                "let it use the login of its own program: {program} config set agents.{}.login true",
                it.name
            ),
        ),
        (None, Some(it), _) => (
            format!(
                "an agent is needed: {} is installed and has no key: {}",
                it.name,
                it.key_text()
            ),
            format!(
                "or name a command that prints the key: {program} config set agents.{}.key_command COMMAND",
                it.name
            ),
        ),
        (None, None, found) => {
            let name = found.map_or("claude", |it| it.name.as_str());
            let key = candidates.iter().find(|it| it.name == name).map(AgentCandidate::key_text);
            (
                "an agent is needed, and none is installed that has a key".to_owned(),
                format!(
                    "install one with: forklift agents install {name}; then {}",
                    key.unwrap_or("give it a key")
                ),
            )
        }
    }
}

impl AgentCandidate {
    /// True if it can be started.
    pub(crate) fn is_ready(&self) -> bool {
        self.program == ProgramState::Installed && self.key.is_ok()
    }

    /// Steps that are left before it can be started; `None` if there are none.
    pub(crate) fn missing(&self) -> Option<String> {
        let install = (self.program != ProgramState::Installed)
            .then(|| format!("forklift agents install {}", self.name));
        let parts: Vec<String> = install.into_iter().chain(self.key.clone().err()).collect();
        (!parts.is_empty()).then(|| parts.join("; then "))
    }

    /// The sentence about the choice, with its reason.
    pub fn reason(&self) -> String {
        format!(
            "using {}: the only agent that is installed and has a key ({})",
            self.name,
            self.key_text()
        )
    }

    fn key_text(&self) -> &str {
        self.key.as_ref().map_or_else(String::as_str, String::as_str)
    }
}

/// Names for a shell that completes the name of an agent: the built-in ones and those of the configuration.
pub fn complete_agents() -> Vec<CompletionCandidate> {
    let own = Config::load().map(|config| config.agents.into_keys().collect::<Vec<_>>());
    let known = Provider::all().map(|provider| provider.name().to_owned());
    let own = own.unwrap_or_default();
    let known: Vec<String> = known.filter(|name| !own.contains(name)).collect();
    own.into_iter().chain(known).map(CompletionCandidate::new).collect()
}

/// Names of the agents that can be installed.
pub fn complete_programs() -> Vec<CompletionCandidate> {
    let known = Provider::all().filter(|provider| provider.program().is_some());
    known.map(|provider| CompletionCandidate::new(provider.name())).collect()
}

#[cfg(test)]
mod tests {
    use model::exit::ForkliftExit;

    use super::*;

    fn candidate(name: &str, program: ProgramState, key: Result<&str, &str>) -> AgentCandidate {
        let key = key.map(str::to_owned).map_err(str::to_owned);
        AgentCandidate { name: name.to_owned(), program, key, has_login: false }
    }

    fn words(candidates: &[AgentCandidate]) -> [String; 2] {
        match choose_agent::<ForkliftExit>("wf", candidates) {
            Ok(chosen) => [chosen.reason(), String::new()],
            Err(failure) => {
                assert_eq!(failure.status, ForkliftExit::Usage);
                [failure.to_string(), failure.remedy().unwrap_or_default().to_owned()]
            }
        }
    }

    use ProgramState::{Installed, Missing, OnPath};

    #[test]
    fn the_only_one_that_is_ready_is_taken() {
        let candidates = [
            candidate("codex", Installed, Err("set OPENAI_API_KEY")),
            candidate("claude", Installed, Ok("ANTHROPIC_API_KEY")),
            candidate("pi", Missing, Ok("ANTHROPIC_API_KEY")),
        ];
        let reason =
            "using claude: the only agent that is installed and has a key (ANTHROPIC_API_KEY)";
        assert_eq!(words(&candidates), [reason, ""]);
    }

    #[test]
    fn several_are_listed_with_the_flag() {
        let candidates = [
            candidate("local", Installed, Ok("no key")),
            candidate("claude", Installed, Ok("ANTHROPIC_API_KEY")),
        ];
        assert_eq!(
            words(&candidates),
            [
                "an agent is needed, and several could be used: local (no key), claude (ANTHROPIC_API_KEY)",
                "choose one with --provider local, or for good with: wf config set agent local",
            ]
        );
    }

    #[test]
    fn what_is_missing_is_said_with_the_command_that_mends_it() {
        let keyless = Err("set ANTHROPIC_API_KEY");
        let none = [candidate("claude", Missing, keyless)];
        assert_eq!(
            words(&none),
            [
                "an agent is needed, and none is installed that has a key",
                "install one with: forklift agents install claude; then set ANTHROPIC_API_KEY, or run: wf init",
            ]
        );
        let with_key = [candidate("claude", OnPath, Ok("ANTHROPIC_API_KEY"))];
        assert_eq!(
            words(&with_key),
            [
                "an agent is needed: claude has a key (ANTHROPIC_API_KEY) and is not installed for boxes",
                "install it with: forklift agents install claude",
            ]
        );
        let logged_in =
            AgentCandidate { has_login: true, ..candidate("claude", Installed, keyless) };
        assert_eq!(
            words(&[logged_in]),
            [
                "an agent is needed: claude is installed and has no key",
                "let it use the login of its own program: wf config set agents.claude.login true",
            ]
        );
        let installed = [candidate("claude", Installed, keyless)];
        assert_eq!(
            words(&installed),
            [
                "an agent is needed: claude is installed and has no key: set ANTHROPIC_API_KEY",
                "or name a command that prints the key: wf config set agents.claude.key_command COMMAND",
            ]
        );
    }
}
