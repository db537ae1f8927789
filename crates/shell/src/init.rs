//! `init`: the part of it that the three programs share. One short conversation on a terminal, or flags for scripts; what is
//! there already is the default, so that a second `init` changes nothing. Everything is decided before anything is written.

use std::io::IsTerminal;
use std::path::Path;

use agent::{Provider, RequiredSetting};
use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use engine::agent_plan::AgentOptions;
use inquire::{InquireError, Select, Text};
use model::exit::ExitStatus;
use serde_json::{Value, json};

use crate::agent_choice::{
    AgentCandidate, complete_agents, find_ready, missing_agent, observe_candidates,
};
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

impl InitArgs {
    /// True if a flag is about an agent and would be lost without one.
    fn names_agent_settings(&self) -> bool {
        [&self.model, &self.model_url, &self.key_command].into_iter().any(Option::is_some)
    }
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
}

/// Refuses an agent that cannot run by what `init` asks for: the programs that play a script or are started by a template.
fn check_provider<S: ExitStatus>(
    program: &str,
    name: &str,
    provider: Provider,
) -> Result<(), Failure<S>> {
    let Some(setting) = provider.required_setting() else { return Ok(()) };
    let (needed, variable, field) = match setting {
        RequiredSetting::Script => ("a script", "SCRIPT", "script"),
        RequiredSetting::Command => ("a command line", "CMD", "command"),
    };
    let kind = provider.name();
    let remedy = match (program, setting) {
        ("forklift", RequiredSetting::Script) => {
            "use it for one run: forklift --provider scripted --script FILE".to_owned()
        }
        ("wf", _) => format!(
            "choose another (opencode, codex, claude or pi), or name it in the profile that wf init writes: \
             AGENT_IMPLEMENT={kind} and AGENT_IMPLEMENT_{variable}"
        ),
        ("bot-bottle", _) => format!(
            "write its manifest, with provider = \"{kind}\" and {field}: bot-bottle agent new NAME"
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
    /// The default agent; none if none was chosen and none was found that is ready.
    pub agent: Option<InitAgent>,
    program: &'static str,
    edit: ConfigEdit,
}

/// The agent that `init` makes the default.
#[derive(Debug)]
pub struct InitAgent {
    /// A provider, or a name of the configuration.
    pub name: String,
    /// Its options, by the configuration that is to be written.
    pub options: AgentOptions,
}

impl SharedAnswers {
    /// Writes what is new to the shared configuration, and prints what the agent still needs.
    ///
    /// Returns what was written, for scripts.
    pub fn write<S: ExitStatus>(&self, ui: &Ui, agents: &Path) -> Result<Value, Failure<S>> {
        let is_changed = self.edit.write().or_exit(S::USAGE)?;
        let config = Config::load().or_exit(S::USAGE)?;
        let candidates = observe_candidates(&config, agents, |_| {});
        let (agent, next) = match &self.agent {
            Some(InitAgent { name, .. }) => {
                let how = if is_changed { "written to" } else { "unchanged in" };
                let chosen = candidates.iter().find(|it| it.name == *name);
                (
                    format!("{name}, {how} {}", self.edit.path.display()),
                    chosen.and_then(AgentCandidate::missing),
                )
            }
            None => {
                let (message, remedy) = missing_agent(self.program, &candidates);
                (format!("none is chosen yet: {message}"), Some(remedy))
            }
        };
        ui.result("agent", &agent);
        next.iter().for_each(|next| ui.result("next", next));
        let name = self.agent.as_ref().map(|agent| &agent.name);
        Ok(json!({
            "agent": name, "config": self.edit.path, "is_changed": is_changed, "next": next,
        }))
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
    let mut changes = Vec::new();
    let mut add = |key: String, value: Option<String>| {
        changes.extend(value.filter(|value| !value.is_empty()).map(|value| (key, value)));
    };
    if let Some(name) = &name {
        let entry = config.agents.get(name).cloned().unwrap_or_default();
        let key_before = entry.key_command.unwrap_or_default();
        let label = format!("Command that prints the key of {name} (empty: its variable)");
        let key = asker.ask(&label, args.key_command.as_deref(), &key_before)?;
        add("agent".to_owned(), Some(name.clone()));
        add(format!("agents.{name}.key_command"), Some(key));
        add(format!("agents.{name}.model"), args.model.clone());
        add(format!("agents.{name}.url"), args.model_url.clone());
    } else if args.names_agent_settings() {
        let message = "--model, --model-url and --key-command are for an agent, and none is named";
        let remedy = "name it with --provider opencode, codex, claude, pi or a name of yours";
        return Err(Failure::usage(message).with_remedy(remedy));
    }
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
    let agent = match name {
        Some(name) => {
            let options = edit.config.agent_options(&name).or_exit(S::USAGE)?;
            Some(InitAgent { name, options })
        }
        None => None,
    };
    Ok(SharedAnswers { agent, program, edit })
}

/// The agent that was named, the user's answer, or else the configured one or one that is ready. A guess is not kept: without
/// any of them there is none.
fn ask_agent<S: ExitStatus>(
    config: &Config,
    args: &InitArgs,
    asker: InitAsker,
    agents: &Path,
) -> Result<Option<String>, Failure<S>> {
    if let Some(name) = &args.provider {
        return Ok(Some(name.clone()));
    }
    let candidates = observe_candidates(config, agents, |_| {});
    let ready = find_ready(&candidates, "").map(|it| it.name.clone());
    let default = config.agent.clone().or(ready);
    match asker {
        InitAsker::Defaults => Ok(default),
        InitAsker::Person => {
            let names: Vec<String> = candidates.iter().map(|it| it.name.clone()).collect();
            let shown = default.unwrap_or_else(|| Provider::Claude.name().to_owned());
            let cursor = names.iter().position(|name| *name == shown).unwrap_or(0);
            let answer = Select::new("Agent", names).with_starting_cursor(cursor).prompt();
            read_answer(answer).map(Some)
        }
    }
}
