//! `init`: the part of it that the three programs share. One short conversation on a terminal, or flags for scripts; what is
//! there already is the default, so that a second `init` changes nothing. Everything is decided before anything is written.

use std::io::IsTerminal;
use std::path::Path;

use agent::Provider;
use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use engine::agent_plan::AgentOptions;
use inquire::{InquireError, Select, Text};
use model::exit::ExitStatus;

use crate::agent_choice::{AgentCandidate, complete_agents, observe_candidates};
use crate::config::{Config, ConfigEdit};
use crate::failure::{Failure, OrExit};
use crate::ui::Ui;

/// Answers that all programs ask for.
#[derive(Debug, Clone, Default, Args)]
pub struct InitArgs {
    /// Ask nothing: take the flags, what is there, and defaults
    #[arg(long, short)]
    pub yes: bool,
    /// The default agent: opencode, codex, claude, pi, or a name of the configuration
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete_agents))]
    pub provider: Option<String>,
    /// The agent's model
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// The address of the model server, if it is one of your own
    #[arg(long, value_name = "URL")]
    pub model_url: Option<String>,
    /// A command line that prints the model's key
    #[arg(long, value_name = "COMMAND")]
    pub key_command: Option<String>,
    /// A command line that prints the forge's token
    #[arg(long, value_name = "COMMAND")]
    pub token_command: Option<String>,
}

/// Source of the answers that no flag gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InitAsker {
    Person,
    Defaults,
}

impl InitAsker {
    /// Asks on a terminal, unless the user wants no questions. A flag that cannot be right is refused before anything is
    /// asked or written.
    pub fn new<S: ExitStatus>(program: &str, args: &InitArgs) -> Result<Self, Failure<S>> {
        if let Some(name) = &args.provider {
            let config = Config::load().or_exit(S::USAGE)?;
            check_provider(program, name, config.agent_options(name).or_exit(S::USAGE)?.provider)?;
        }
        if args.yes {
            return Ok(Self::Defaults);
        }
        if !std::io::stdin().is_terminal() {
            let message = "there is no terminal to ask on";
            let remedy = format!("take flags and defaults with: {program} init --yes");
            return Err(Failure::usage(message).with_remedy(remedy));
        }
        Ok(Self::Person)
    }

    /// The flag, or the user's answer; `default` is what Enter gives.
    pub fn ask<S: ExitStatus>(
        self,
        label: &str,
        typed: Option<&str>,
        default: &str,
    ) -> Result<String, Failure<S>> {
        match (typed, self) {
            (Some(typed), _) => Ok(typed.to_owned()),
            (None, Self::Defaults) => Ok(default.to_owned()),
            (None, Self::Person) => {
                read_answer(Text::new(label).with_initial_value(default).prompt())
            }
        }
    }

    fn choose<S: ExitStatus>(
        self,
        label: &str,
        choices: Vec<String>,
        default: usize,
    ) -> Result<String, Failure<S>> {
        match self {
            Self::Defaults => Ok(choices.into_iter().nth(default).unwrap_or_default()),
            Self::Person => {
                read_answer(Select::new(label, choices).with_starting_cursor(default).prompt())
            }
        }
    }
}

/// Refuses an agent that cannot run by what `init` asks for: the programs that play a script or are started by a template.
fn check_provider<S: ExitStatus>(
    program: &str,
    name: &str,
    provider: Provider,
) -> Result<(), Failure<S>> {
    let needed = match provider {
        Provider::Scripted => "a script",
        Provider::Command => "a command line",
        Provider::OpenCode | Provider::Codex | Provider::Claude | Provider::Pi => return Ok(()),
    };
    let kind = provider.name();
    let remedy = match (program, provider) {
        ("forklift", Provider::Scripted) => {
            "use it for one run: forklift --provider scripted --script FILE".to_owned()
        }
        ("wf", _) => format!(
            "choose another (opencode, codex, claude or pi), or name it in the profile that wf init writes: \
             AGENT_IMPLEMENT={kind} and AGENT_IMPLEMENT_{}",
            if provider == Provider::Scripted { "SCRIPT" } else { "CMD" }
        ),
        ("bot-bottle", _) => format!(
            "write its manifest, with provider = \"{kind}\" and {}: bot-bottle agent new NAME",
            if provider == Provider::Scripted { "script" } else { "command" }
        ),
        _ => "choose another: opencode, codex, claude or pi".to_owned(),
    };
    let message = format!(
        "the agent '{name}' cannot be the default: it needs {needed}, which init does not ask for"
    );
    Err(Failure::usage(message).with_remedy(remedy))
}

fn read_answer<T, S: ExitStatus>(answer: Result<T, InquireError>) -> Result<T, Failure<S>> {
    answer.map_err(|error| match error {
        InquireError::OperationCanceled | InquireError::OperationInterrupted => {
            Failure::new(S::GENERAL, "stopped; nothing was written")
        }
        other => Failure::of(S::GENERAL, other),
    })
}

/// Answers about the default agent, its key and the forge's token: checked, and not yet written.
#[derive(Debug)]
pub struct SharedAnswers {
    /// The default agent: a provider, or a name of the configuration.
    pub agent: String,
    /// Options of that agent, by the configuration that is to be written.
    pub options: AgentOptions,
    edit: ConfigEdit,
}

impl SharedAnswers {
    /// Writes what is new to the shared configuration, and prints what the agent still needs.
    pub fn write<S: ExitStatus>(&self, ui: &Ui, agents: &Path) -> Result<(), Failure<S>> {
        let is_changed = self.edit.write().or_exit(S::USAGE)?;
        let how = if is_changed { "written to" } else { "unchanged in" };
        ui.result("agent", &format!("{}, {how} {}", self.agent, self.edit.path.display()));
        let config = Config::load().or_exit(S::USAGE)?;
        let candidates = observe_candidates(&config, agents, |_| {});
        let chosen = candidates.iter().find(|it| it.name == self.agent);
        if let Some(missing) = chosen.and_then(AgentCandidate::missing) {
            ui.result("next", &missing);
        }
        Ok(())
    }
}

/// Asks for the default agent, its key and the forge's token, and checks the answers. Writes nothing.
pub fn ask_shared<S: ExitStatus>(
    program: &'static str,
    args: &InitArgs,
    asker: InitAsker,
    (agents, forge): (&Path, Option<&str>),
) -> Result<SharedAnswers, Failure<S>> {
    let config = Config::load().or_exit(S::USAGE)?;
    let name = ask_agent(&config, args, asker, agents)?;
    let entry = config.agents.get(&name).cloned().unwrap_or_default();
    let key_before = entry.key_command.unwrap_or_default();
    let label = format!("Command that prints the key of {name} (empty: its variable)");
    let key = asker.ask(&label, args.key_command.as_deref(), &key_before)?;
    let mut changes = vec![("agent".to_owned(), name.clone())];
    let mut add = |key: String, value: Option<String>| {
        changes.extend(value.filter(|value| !value.is_empty()).map(|value| (key, value)));
    };
    add(format!("agents.{name}.key_command"), Some(key));
    add(format!("agents.{name}.model"), args.model.clone());
    add(format!("agents.{name}.url"), args.model_url.clone());
    if let Some(host) = forge {
        let before = config.forges.get(host).and_then(|it| it.token_command.clone());
        let label = format!("Command that prints the token for {host} (empty: a variable)");
        let token =
            asker.ask(&label, args.token_command.as_deref(), &before.unwrap_or_default())?;
        add(format!("forges.\"{host}\".token_command"), Some(token));
    }
    let list: Vec<(&str, Option<&str>)> =
        changes.iter().map(|(key, value)| (key.as_str(), Some(value.as_str()))).collect();
    let edit = ConfigEdit::prepare(program, &list).or_exit(S::USAGE)?;
    let options = edit.config.agent_options(&name).or_exit(S::USAGE)?;
    Ok(SharedAnswers { agent: name, options, edit })
}

/// The configured agent is the default, else one that is ready, else the first.
fn ask_agent<S: ExitStatus>(
    config: &Config,
    args: &InitArgs,
    asker: InitAsker,
    agents: &Path,
) -> Result<String, Failure<S>> {
    if let Some(name) = &args.provider {
        return Ok(name.clone());
    }
    let candidates = observe_candidates(config, agents, |_| {});
    let names: Vec<String> = candidates.iter().map(|it| it.name.clone()).collect();
    let configured = names.iter().position(|name| config.agent.as_ref() == Some(name));
    let ready = candidates.iter().position(AgentCandidate::is_ready);
    let claude = names.iter().position(|name| name == Provider::Claude.name());
    let default = configured.or(ready).or(claude).unwrap_or(0);
    asker.choose("Agent", names, default)
}
