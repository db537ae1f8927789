//! Agent manifests: provider, model and limits. Read strictly: an unknown key is a mistake
//! that would otherwise go unnoticed.

use core::net::SocketAddr;
use std::collections::BTreeMap;
use std::path::PathBuf;

use agent::{ModelUse, Provider, RequiredSetting};
use egress::{EgressPolicy, EgressProfile};
use merge::pattern::check_pattern;
use model::id::{AgentName, IdError};
use serde::{Deserialize, Serialize};
use shell::agent_settings::egress_policy;

const TIMEOUT_SECS: u64 = 1800;
const SILENCE_SECS: u64 = 300;
const TIMEOUT_MAX_SECS: u64 = 86_400;
const CHECK_ROUNDS_MAX: u32 = 10;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentManifest {
    /// opencode, codex, claude, pi, command, scripted, or a name of the shared configuration, which becomes `agent`.
    pub(crate) provider: String,
    /// An agent of the shared configuration, whose provider is `provider`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    /// The model, with or without its server's name before a slash.
    pub(crate) model: Option<String>,
    /// Reasoning effort of the model.
    pub(crate) variant: Option<String>,
    /// One of the agent's own personas.
    pub(crate) persona: Option<String>,
    /// Instructions before every task.
    #[serde(default)]
    pub(crate) prompt: String,
    pub(crate) bottle: Option<String>,
    /// Command line of the provider `command`.
    pub(crate) command: Option<Vec<String>>,
    /// Script of the provider `scripted`, relative to the manifest's folder.
    pub(crate) script: Option<PathBuf>,
    /// Paths that the agent must not change; a result that does is not published.
    #[serde(default = "usual_protection")]
    pub(crate) protect: Vec<String>,
    /// Paths that the agent may change although they are protected or act by themselves, such as git hooks and files that
    /// agents obey.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) allow_paths: Vec<String>,
    /// Line for the shell that the result must pass before it is published, in place of the repository's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) check: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) check_timeout_secs: Option<u64>,
    /// Runs that a failing check may cause, before the result is published as a draft.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) check_rounds: Option<u32>,
    /// True if a plan has to be approved before the work on an issue.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) plan: bool,
    /// True if published commits are signed with the host's key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) sign_commits: bool,
    /// Labels of new pull requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) pull_labels: Vec<String>,
    #[serde(default)]
    pub(crate) server: ServerTable,
    #[serde(default)]
    pub(crate) egress: EgressTable,
    #[serde(default)]
    pub(crate) limits: LimitsTable,
    #[serde(default)]
    pub(crate) spend: SpendTable,
}

/// The model server, if the model's name does not identify it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerTable {
    pub(crate) url: Option<String>,
    /// messages, chat or responses.
    pub(crate) wire: Option<String>,
    pub(crate) key_env: Option<String>,
    /// A file (mode 0600) with the key.
    pub(crate) key_file: Option<PathBuf>,
    /// A command line that prints the key.
    pub(crate) key_command: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EgressTable {
    /// none, model-only, packages or open.
    pub(crate) profile: Option<String>,
    #[serde(default)]
    pub(crate) allow: Vec<String>,
    #[serde(default)]
    pub(crate) permit_private: Vec<SocketAddr>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitsTable {
    pub(crate) timeout_secs: u64,
    pub(crate) silence_secs: u64,
    pub(crate) memory_mb: Option<u64>,
    pub(crate) disk_mb: Option<u64>,
    pub(crate) processes: Option<u64>,
    pub(crate) cpu_percent: Option<u32>,
}

impl Default for LimitsTable {
    fn default() -> Self {
        Self {
            timeout_secs: TIMEOUT_SECS,
            silence_secs: SILENCE_SECS,
            memory_mb: None,
            disk_mb: None,
            processes: None,
            cpu_percent: None,
        }
    }
}

/// Spending limits of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SpendTable {
    pub(crate) max_usd: Option<f64>,
    pub(crate) max_tokens: Option<u64>,
    /// Dollars per million input tokens.
    pub(crate) input_price: Option<f64>,
    /// Dollars per million output tokens.
    pub(crate) output_price: Option<f64>,
    /// Prices of other models that members may choose, by name or the start of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) prices: BTreeMap<String, PriceTable>,
}

impl SpendTable {
    pub(crate) fn has_price(&self) -> bool {
        self.input_price.is_some() && self.output_price.is_some()
    }
}

/// Dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PriceTable {
    pub(crate) input: f64,
    pub(crate) output: f64,
}

impl AgentManifest {
    /// True if its agent talks to a model through the proxy, which counts what that costs.
    pub(crate) fn uses_model(&self) -> bool {
        let provider = Provider::parse(&self.provider);
        match provider.map(Provider::model_use) {
            Ok(ModelUse::Always) => true,
            Ok(ModelUse::IfNamed) => self.model.is_some() || self.server.url.is_some(),
            Ok(ModelUse::Never) | Err(_) => false,
        }
    }

    /// Uses another model, with its price. A model without one counts as the dearest that is known.
    pub(crate) fn use_model(&mut self, model: String) {
        if self.model.as_ref() == Some(&model) {
            return;
        }
        let spend = &mut self.spend;
        let named = spend.prices.iter().filter(|(name, _)| model.starts_with(name.as_str()));
        let price = named.max_by_key(|(name, _)| name.len()).map(|(_, price)| *price);
        let known = spend.prices.values().map(|price| (price.input, price.output));
        let dearest = known
            .chain(spend.input_price.zip(spend.output_price))
            .reduce(|one, other| (one.0.max(other.0), one.1.max(other.1)));
        let price = price.map(|price| (price.input, price.output)).or(dearest);
        (spend.input_price, spend.output_price) = price.unzip();
        self.model = Some(model);
    }
}

/// Fault in a manifest; the caller names the file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ManifestFault {
    #[error("line {line}: {what}")]
    Malformed { line: usize, what: String },
    #[error("{key}: {what}")]
    Value { key: &'static str, what: String },
}

/// Changes to these files run with the rights of the build, so they need a person.
fn usual_protection() -> Vec<String> {
    [".gitea/workflows", ".forgejo/workflows", ".github/workflows", ".gitlab-ci.yml"]
        .map(str::to_owned)
        .to_vec()
}

/// Parses TOML; the fault names the line.
pub(crate) fn parse_toml<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, ManifestFault> {
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text[..start].matches('\n').count() + 1;
        let what = error.message().lines().map(str::trim).collect::<Vec<_>>().join(", ");
        ManifestFault::Malformed { line, what }
    })
}

/// Parses an agent's manifest and checks every value that needs no look at the machine.
#[cfg(test)]
pub(crate) fn parse_agent(text: &str) -> Result<AgentManifest, ManifestFault> {
    parse_agent_of(text, &BTreeMap::new())
}

/// Parses an agent's manifest, whose `provider` may be one of these agents of the shared configuration.
pub(crate) fn parse_agent_of(
    text: &str,
    own: &BTreeMap<String, Provider>,
) -> Result<AgentManifest, ManifestFault> {
    let mut manifest: AgentManifest = parse_toml(text)?;
    let name = manifest.agent.take().unwrap_or_else(|| manifest.provider.clone());
    match own.get(&name) {
        Some(provider) => {
            manifest.agent = Some(name.clone()).filter(|name| name != provider.name());
            provider.name().clone_into(&mut manifest.provider);
        }
        None => manifest.provider = name,
    }
    let provider = manifest.provider()?;
    let needs = |key, what: &str| Err(ManifestFault::Value { key, what: what.to_owned() });
    match provider.required_setting() {
        Some(RequiredSetting::Script) if manifest.script.is_none() => {
            return needs("script", "the provider 'scripted' needs a script");
        }
        Some(RequiredSetting::Command) if manifest.command.as_ref().is_none_or(Vec::is_empty) => {
            return needs("command", "the provider 'command' needs a command");
        }
        Some(RequiredSetting::Script | RequiredSetting::Command) | None => {}
    }
    if let Some(bottle) = &manifest.bottle {
        let wrong =
            |error| ManifestFault::Value { key: "bottle", what: invalid_name("bottle", &error) };
        AgentName::parse(bottle).map_err(wrong)?;
    }
    let keys = &manifest.server;
    let places = [keys.key_env.is_some(), keys.key_file.is_some(), keys.key_command.is_some()];
    if places.iter().filter(|set| **set).count() > 1 {
        return needs("server", "give one of key_env, key_file and key_command");
    }
    let secs = manifest.limits.timeout_secs;
    if !(1..=TIMEOUT_MAX_SECS).contains(&secs) {
        return needs("limits.timeout_secs", "give 1 to 86400 seconds");
    }
    if manifest.check.as_ref().is_some_and(|line| line.trim().is_empty()) {
        return needs("check", "give a line for the shell");
    }
    if manifest.check_timeout_secs.is_some_and(|secs| !(1..=TIMEOUT_MAX_SECS).contains(&secs)) {
        return needs("check_timeout_secs", "give 1 to 86400 seconds");
    }
    if manifest.check_rounds.is_some_and(|rounds| rounds > CHECK_ROUNDS_MAX) {
        return needs("check_rounds", "give 0 to 10 runs");
    }
    for pattern in &manifest.protect {
        check_pattern(pattern).map_err(|error| fault("protect", &error))?;
    }
    for pattern in &manifest.allow_paths {
        check_pattern(pattern).map_err(|error| fault("allow_paths", &error))?;
    }
    let spend = &manifest.spend;
    if spend.max_usd.is_some() && !spend.has_price() {
        return needs("spend.max_usd", "dollars are counted with input_price and output_price");
    }
    let others = spend.prices.values().flat_map(|price| [Some(price.input), Some(price.output)]);
    let numbers = [spend.max_usd, spend.input_price, spend.output_price].into_iter().chain(others);
    if numbers.flatten().any(|number| !number.is_finite() || number < 0.0) {
        return needs("spend", "give amounts from 0");
    }
    manifest.policy()?;
    Ok(manifest)
}

impl AgentManifest {
    pub(crate) fn provider(&self) -> Result<Provider, ManifestFault> {
        Provider::parse(&self.provider).map_err(|error| fault("provider", &error))
    }

    /// Egress policy. The default is its model and package registries, and no egress for an agent without a model.
    pub(crate) fn policy(&self) -> Result<Option<EgressPolicy>, ManifestFault> {
        let profile = match (&self.egress.profile, self.provider()?.model_use()) {
            (None, ModelUse::Never | ModelUse::IfNamed) => return Ok(None),
            (None, ModelUse::Always) => EgressProfile::Packages,
            (Some(word), _) => word.parse().map_err(|error| fault("egress.profile", &error))?,
        };
        let policy = egress_policy(profile, &self.egress.allow, &self.egress.permit_private);
        Ok(Some(policy.map_err(|error| fault("egress.allow", &error))?))
    }
}

/// Message about a text that cannot be the name of an agent or a bottle.
pub(crate) fn invalid_name(noun: &str, error: &IdError) -> String {
    format!("\"{}\" is not a valid {noun} name: {}", error.value(), error.rule())
}

fn fault<E: std::error::Error>(key: &'static str, error: &E) -> ManifestFault {
    ManifestFault::Value { key, what: error.to_string() }
}

pub(crate) const AGENT_TEMPLATE: &str = r#"# An agent: provider, model and limits.
provider = "claude"
# model = "anthropic/claude-sonnet-4-5"
prompt = """
You are a careful engineer. Make small commits with clear messages, and run the tests before you commit.
"""
# bottle = "default"
# plan = true               # the agent writes a plan first, and works once a member approves it
# check = "make test"       # run on the result before it is published; without it, the one in .bot-bottle.toml
# check_rounds = 2          # runs that a failing check may cause before the result becomes a draft

[egress]
profile = "packages"        # none, model-only, packages or open

[limits]
timeout_secs = 1800
silence_secs = 300

[spend]
# max_tokens = 2000000
# input_price = 3.0         # dollars per million tokens
# output_price = 15.0
# prices = { "claude-haiku" = { input = 1.0, output = 5.0 } }   # of models that members choose with /model
"#;

/// The template with another agent, by the name of a provider or of the shared configuration, and another model.
pub(crate) fn render_template(agent: &str, model: Option<&str>) -> String {
    let text = AGENT_TEMPLATE.replace("\"claude\"", &format!("{agent:?}"));
    let sample = "# model = \"anthropic/claude-sonnet-4-5\"";
    match model {
        Some(model) => text.replace(sample, &format!("model = {model:?}")),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_has_the_agent_that_was_chosen() {
        let text = render_template("pi", Some("openai/gpt-5"));
        let manifest = parse_agent(&text).expect("it reads");
        assert_eq!(
            (manifest.provider.as_str(), manifest.model.as_deref()),
            ("pi", Some("openai/gpt-5"))
        );
        assert_eq!(render_template("claude", None), AGENT_TEMPLATE);
    }

    #[test]
    fn a_provider_may_be_an_agent_of_the_configuration() {
        let own = [("local".to_owned(), Provider::OpenCode), ("pi".to_owned(), Provider::Pi)];
        let parse = |text: &str| {
            let manifest =
                parse_agent_of(text, &own.clone().into()).map_err(|it| it.to_string())?;
            Ok::<_, String>((manifest.provider, manifest.agent))
        };
        let local = Ok(("opencode".to_owned(), Some("local".to_owned())));
        assert_eq!(parse("provider = \"local\""), local);
        assert_eq!(parse("provider = \"pi\""), Ok(("pi".to_owned(), None)));
        assert!(parse("provider = \"remote\"").is_err_and(|it| it.contains("remote")));
        assert!(parse("provider = \"pi\"\nagent = \"remote\"").is_err());
    }

    #[track_caller]
    fn refuse(text: &str, words: &[&str]) {
        let fault = parse_agent(text).expect_err("refused").to_string();
        assert!(words.iter().all(|word| fault.contains(word)), "{fault}");
    }

    #[test]
    fn the_template_is_a_manifest() {
        let manifest = parse_agent(AGENT_TEMPLATE).expect("it reads");
        assert_eq!(manifest.limits, LimitsTable::default());
        assert!(manifest.protect.contains(&".github/workflows".to_owned()));
    }

    #[test]
    fn an_unknown_word_is_named_with_its_line() {
        refuse("provider = \"claude\"\nmodle = \"x\"\n", &["line 2", "modle"]);
        refuse("provider = \"claude\"\n[limits]\ntimeout = 3\n", &["line 3", "timeout"]);
        refuse("provider = \"claude\n", &["line 1"]);
    }

    #[test]
    fn values_that_cannot_be_are_refused_by_name() {
        refuse("provider = \"clod\"", &["provider", "clod", "claude"]);
        refuse("provider = \"scripted\"", &["script"]);
        refuse("provider = \"pi\"\ncheck = \" \"", &["check", "a line for the shell"]);
        refuse("provider = \"pi\"\ncheck_rounds = 11", &["check_rounds"]);
        refuse("provider = \"command\"\ncommand = []", &["command"]);
        refuse("provider = \"pi\"\n[egress]\nprofile = \"all\"", &["egress.profile", "all"]);
        refuse("provider = \"pi\"\n[limits]\ntimeout_secs = 0", &["limits.timeout_secs"]);
        refuse("provider = \"pi\"\n[spend]\nmax_usd = 3.0", &["spend.max_usd", "input_price"]);
        refuse("provider = \"pi\"\n[server]\nkey_env = \"A\"\nkey_file = \"b\"", &["one of"]);
    }

    #[test]
    fn another_model_has_its_own_price_or_the_dearest() {
        let text = "provider = \"pi\"\nmodel = \"mid\"\n[spend]\nmax_usd = 1.0\ninput_price = 3.0\n\
                    output_price = 15.0\nprices = { \"lar\" = { input = 2.0, output = 90.0 }, \
                    \"large\" = { input = 5.0, output = 25.0 } }\n";
        let price = |model: &str| {
            let mut manifest = parse_agent(text).expect("it reads");
            manifest.use_model(model.to_owned());
            assert_eq!(manifest.model.as_deref(), Some(model));
            (manifest.spend.input_price, manifest.spend.output_price)
        };
        assert_eq!(price("mid"), (Some(3.0), Some(15.0)));
        assert_eq!(price("large-2"), (Some(5.0), Some(25.0)), "the longest name");
        assert_eq!(price("other"), (Some(5.0), Some(90.0)), "each number of the dearest");
        refuse(&text.replace("90.0", "-1.0"), &["spend"]);
    }

    #[test]
    fn an_agent_without_a_model_reaches_nothing() {
        let policy = |text| parse_agent(text).expect("it reads").policy().expect("a policy");
        assert!(policy("provider = \"scripted\"\nscript = \"a.toml\"").is_none());
        assert_eq!(policy("provider = \"pi\"").map(|it| it.profile), Some(EgressProfile::Packages));
    }
}
