//! `init`: the part of it that the three programs share. One short conversation on a terminal, or flags for scripts; what is
//! there already is the default, so that a second `init` changes nothing.

use std::io::IsTerminal;
use std::path::Path;

use agent::Provider;
use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use inquire::{InquireError, Select, Text};
use model::exit::ExitStatus;

use crate::agent_choice::{AgentCandidate, complete_agents, observe_candidates};
use crate::config::{Config, set_values};
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
        if let Some(name) = &args.provider
            && !Config::load().or_exit(S::USAGE)?.agents.contains_key(name)
        {
            Provider::parse(name).or_exit(S::USAGE)?;
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

fn read_answer<T, S: ExitStatus>(answer: Result<T, InquireError>) -> Result<T, Failure<S>> {
    answer.map_err(|error| match error {
        InquireError::OperationCanceled | InquireError::OperationInterrupted => {
            Failure::new(S::GENERAL, "stopped; nothing was written")
        }
        other => Failure::of(S::GENERAL, other),
    })
}

/// Asks for the default agent, its key and the forge's token, and writes what is new to the shared configuration.
pub fn init_shared<S: ExitStatus>(
    ui: &Ui,
    program: &'static str,
    args: &InitArgs,
    asker: InitAsker,
    (agents, forge): (&Path, Option<&str>),
) -> Result<(), Failure<S>> {
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
    let is_changed = set_values(program, &list).or_exit(S::USAGE)?;
    let path = crate::config::path_of_user().or_exit(S::USAGE)?;
    let how = if is_changed { "written to" } else { "unchanged in" };
    ui.result("agent", &format!("{name}, {how} {}", path.display()));
    let config = Config::load().or_exit(S::USAGE)?;
    let candidates = observe_candidates(&config, agents, |_| {});
    if let Some(missing) =
        candidates.iter().find(|it| it.name == name).and_then(AgentCandidate::missing)
    {
        ui.result("next", &missing);
    }
    Ok(())
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
