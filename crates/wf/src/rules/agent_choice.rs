//! The `AGENT_*` keys of the profile: agent, model, key and limits of a stage.

use std::collections::BTreeSet;

use agent::Provider;
use serde::Serialize;

use super::profile::{Keys, ProfileError};

/// Agents that a profile may name, and those of stages for which it names none.
#[derive(Debug, Clone)]
pub(crate) struct AgentNames {
    /// Names of the shared configuration, beside the providers.
    pub(crate) own: BTreeSet<String>,
    pub(crate) implement: String,
    pub(crate) review: String,
}

/// The usual agents, where the machine offers nothing else.
impl Default for AgentNames {
    fn default() -> Self {
        let [implement, review] =
            [Provider::Codex, Provider::Claude].map(|it| it.name().to_owned());
        Self { own: BTreeSet::new(), implement, review }
    }
}

impl AgentNames {
    pub(super) fn has(&self, name: &str) -> bool {
        self.own.contains(name) || Provider::parse(name).is_ok()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct AgentChoice {
    /// A provider, or a name of the shared configuration.
    pub(crate) provider: String,
    /// The argument template of the provider `command`.
    pub(crate) command: Vec<String>,
    /// Script of the provider `scripted`: a path, relative to the project's folder.
    pub(crate) script: Option<String>,
    pub(crate) model: Option<String>,
    /// Reasoning effort of the model.
    pub(crate) variant: Option<String>,
    /// Model server other than the model's usual one, and its wire protocol.
    pub(crate) url: Option<String>,
    pub(crate) wire: Option<String>,
    pub(crate) key: KeyChoice,
    pub(crate) max_usd: Option<f64>,
    pub(crate) max_tokens: Option<u64>,
    /// Dollars for a million tokens that are read, and that are written.
    pub(crate) price: Option<(f64, f64)>,
    /// Seconds without output or traffic after which the agent is ended.
    pub(crate) silence_secs: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeyChoice {
    /// In the variable that is usual for the model's server.
    Usual,
    Variable(String),
    File(String),
    Command(Vec<String>),
}

/// Parses the agent of a stage. Without a provider every key comes from the fallback: models fit one agent only.
pub(super) fn parse_agent(
    file: &Keys<'_>,
    stage: &str,
    fallback: Option<&str>,
    default: &str,
) -> Result<AgentChoice, ProfileError> {
    let source = match fallback {
        Some(other) if file.optional(&format!("AGENT_{stage}")).is_none() => other,
        _ => stage,
    };
    let key = |suffix: &str| {
        file.note(format!("AGENT_{stage}{suffix}"));
        format!("AGENT_{source}{suffix}")
    };
    let choice = AgentChoice {
        provider: file.choice(&key(""), default.to_owned(), PROVIDER_RULE, |word| {
            file.agents.has(word).then(|| word.to_owned())
        })?,
        command: file.list(&key("_CMD"), ""),
        script: file.optional(&key("_SCRIPT")),
        model: file.optional(&key("_MODEL")),
        variant: file.optional(&key("_VARIANT")),
        url: file.optional(&key("_MODEL_URL")),
        wire: file.choice(&key("_WIRE"), None, "messages, chat or responses", |word| {
            ["messages", "chat", "responses"].contains(&word).then(|| Some(word.to_owned()))
        })?,
        key: parse_key(file, key)?,
        max_usd: file.choice(&key("_MAX_USD"), None, "dollars, such as 2.50", |word| {
            parse_amount(word).map(Some)
        })?,
        max_tokens: file.positive(&key("_MAX_TOKENS"), "a whole number of 1 or more")?,
        price: file.choice(&key("_PRICE"), None, PRICE_RULE, |word| {
            let (input, output) = word.split_once(',')?;
            Some(Some((parse_amount(input)?, parse_amount(output)?)))
        })?,
        silence_secs: file.positive(&key("_SILENCE"), "a number of seconds, 1 or more")?,
    };
    check(&choice, key)?;
    Ok(choice)
}

pub(super) const PROVIDER_RULE: &str =
    "codex, claude, opencode, pi, scripted, command or a name of config.toml";
const PRICE_RULE: &str = "dollars for a million tokens as IN,OUT";

fn parse_amount(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|amount: &f64| amount.is_finite() && *amount >= 0.0)
}

fn parse_key(file: &Keys<'_>, key: impl Fn(&str) -> String) -> Result<KeyChoice, ProfileError> {
    let variable = file.optional(&key("_KEY_VAR")).map(KeyChoice::Variable);
    let path = file.optional(&key("_KEY_FILE")).map(KeyChoice::File);
    let command = Some(file.list(&key("_KEY_CMD"), "")).filter(|argv| !argv.is_empty());
    let mut named = [variable, path, command.map(KeyChoice::Command)].into_iter().flatten();
    let first = named.next().unwrap_or(KeyChoice::Usual);
    match named.next() {
        None => Ok(first),
        Some(_) => Err(ProfileError {
            key: key("_KEY_VAR"),
            rule: "the only place of the key: a variable, a file or a command",
        }),
    }
}

fn check(choice: &AgentChoice, key: impl Fn(&str) -> String) -> Result<(), ProfileError> {
    let wrong = |suffix, rule| Err(ProfileError { key: key(suffix), rule });
    match choice.provider.as_str() {
        "command" if choice.command.is_empty() => {
            wrong("_CMD", "a command line, since the agent is 'command'")
        }
        "scripted" if choice.script.is_none() => {
            wrong("_SCRIPT", "a file, since the agent is 'scripted'")
        }
        _ if choice.max_usd.is_some() && choice.price.is_none() => {
            wrong("_PRICE", "set as well, since dollars can only be counted by a price")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use model::env_file::EnvFile;

    use super::*;
    use crate::rules::profile::{parse_known, parse_profile};

    fn read(text: &str) -> Result<AgentChoice, ProfileError> {
        parse_profile(&EnvFile::parse(text).unwrap()).map(|profile| profile.implement)
    }

    #[test]
    fn the_rule_names_every_provider() {
        for provider in Provider::all() {
            assert!(PROVIDER_RULE.contains(provider.name()), "{}", provider.name());
        }
    }

    #[test]
    fn every_part_of_a_choice_is_read() {
        let choice = read(
            "AGENT_IMPLEMENT=pi\nAGENT_IMPLEMENT_MODEL=m\nAGENT_IMPLEMENT_VARIANT=high\nAGENT_IMPLEMENT_MODEL_URL=http://127.0.0.1:8080\nAGENT_IMPLEMENT_WIRE=chat\nAGENT_IMPLEMENT_KEY_FILE=/k\nAGENT_IMPLEMENT_MAX_USD=2.5\nAGENT_IMPLEMENT_PRICE=1,10\nAGENT_IMPLEMENT_MAX_TOKENS=9\nAGENT_IMPLEMENT_SILENCE=60\n",
        )
        .unwrap();
        assert_eq!((choice.provider.as_str(), choice.model.as_deref()), ("pi", Some("m")));
        assert_eq!(choice.key, KeyChoice::File("/k".to_owned()));
        assert_eq!((choice.max_usd, choice.price), (Some(2.5), Some((1.0, 10.0))));
        assert_eq!((choice.max_tokens, choice.silence_secs), (Some(9), Some(60)));
    }

    #[test]
    fn what_contradicts_itself_names_its_key() {
        for (text, key) in [
            ("AGENT_IMPLEMENT=command\n", "AGENT_IMPLEMENT_CMD"),
            ("AGENT_IMPLEMENT=scripted\n", "AGENT_IMPLEMENT_SCRIPT"),
            ("AGENT_IMPLEMENT_MAX_USD=1\n", "AGENT_IMPLEMENT_PRICE"),
            ("AGENT_IMPLEMENT_KEY_VAR=A\nAGENT_IMPLEMENT_KEY_FILE=/k\n", "AGENT_IMPLEMENT_KEY_VAR"),
            ("AGENT_IMPLEMENT_PRICE=cheap\n", "AGENT_IMPLEMENT_PRICE"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(key), "{text}: {error}");
        }
    }

    #[test]
    fn an_agent_may_be_one_of_the_configuration() {
        let text = "AGENT_IMPLEMENT=local\nCOMPETE=local,codex\n";
        assert!(read(text).is_err(), "the name is unknown");
        let own = ["local".to_owned()].into();
        let names = AgentNames { own, review: "pi".to_owned(), ..AgentNames::default() };
        let (profile, _) = parse_known(&EnvFile::parse(text).unwrap(), &names).unwrap();
        assert_eq!((&*profile.implement.provider, &*profile.review.provider), ("local", "pi"));
        assert_eq!((&*profile.plan.provider, profile.compete.len()), ("pi", 2));
    }

    #[test]
    fn every_key_is_in_the_reference() {
        let reference = include_str!("../../PROFILE.md").replace("<STAGE>", "REVIEW");
        let (_, known) = parse_known(&EnvFile::default(), &AgentNames::default()).unwrap();
        assert_eq!(known.len(), 57 + 3 * 14);
        for key in known {
            let key = key.replace("AGENT_IMPLEMENT", "AGENT_REVIEW");
            let key = key.replace("AGENT_PLAN", "AGENT_REVIEW");
            assert!(reference.contains(&format!("`{key}`")), "{key} is not in PROFILE.md");
        }
    }

    #[test]
    fn the_reviewer_drafts_plans_unless_somebody_else_is_named() {
        let plan = |text: &str| parse_profile(&EnvFile::parse(text).unwrap()).unwrap().plan;
        assert_eq!(plan("AGENT_REVIEW=codex\nAGENT_REVIEW_MODEL=m\n").model.as_deref(), Some("m"));
        assert_eq!(plan("AGENT_REVIEW=codex\nAGENT_PLAN=claude\n").provider, "claude");
    }
}
