//! The configuration that the three programs share: `~/.config/bottleworks/config.toml`.
//!
//! A value of the environment outranks the file, and the file outranks the default. The file contains no secret: it names
//! the variable, the file or the command that has one.
//!
//! - `key`: every key, with its variable and its default
//! - `edit`: changes of the file that keep its comments
//! - `command`: `config list|get|set|unset|path`
//! - `token`: the token of a forge

mod command;
mod edit;
mod key;
mod token;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use egress::model_route::{Price, Upstream, WireApi};
use engine::agent_plan::{AgentOptions, KeyLocation};
use host::dirs::Dirs;
use model::id::RemoteName;
use sandbox::spec::{BoxLimits, MIB};
use serde::{Deserialize, Serialize};

use crate::agent_settings::parse_price;

pub(crate) use command::trace_settings;
pub use command::{ConfigCommand, SharedConfigCommand, cmd_config, cmd_shared_config};
pub(crate) use edit::ConfigEdit;
pub use edit::set_values;
pub use key::{KEYS, Key};
pub use token::{FORGE_TOKEN_VARIABLE, SecretError};

/// Variable with the path of the file, instead of the usual one.
const PATH_VARIABLE: &str = "BOTTLEWORKS_CONFIG";

/// Configuration as the file and the environment have it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The default agent: a provider, or a name from `agents`.
    pub agent: Option<String>,
    /// The default model.
    pub model: Option<String>,
    pub agents: BTreeMap<String, AgentEntry>,
    /// By host name.
    pub forges: BTreeMap<String, ForgeEntry>,
    pub limits: LimitsEntry,
    pub notify: NotifyEntry,
    pub identity: IdentityEntry,
    pub remotes: RemotesEntry,
    pub security: SecurityEntry,
    pub fleet: FleetEntry,
}

/// An agent by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentEntry {
    pub provider: Option<String>,
    pub model: Option<String>,
    pub variant: Option<String>,
    pub persona: Option<String>,
    pub url: Option<String>,
    pub wire: Option<String>,
    pub key_env: Option<String>,
    pub key_file: Option<PathBuf>,
    pub key_command: Option<String>,
    pub login: Option<bool>,
    pub price: Option<String>,
}

/// A forge by host name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ForgeEntry {
    pub kind: Option<String>,
    pub token_env: Option<String>,
    pub token_file: Option<PathBuf>,
    pub token_command: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsEntry {
    pub timeout_secs: Option<u64>,
    pub silence_secs: Option<u64>,
    pub memory_mb: Option<u64>,
    pub disk_mb: Option<u64>,
    pub processes: Option<u64>,
    pub cpu_percent: Option<u32>,
    pub max_usd: Option<f64>,
    pub max_tokens: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NotifyEntry {
    pub command: Option<String>,
}

/// Author of published commits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IdentityEntry {
    pub name: Option<String>,
    pub email: Option<String>,
    pub sign_off: Option<bool>,
    pub agent_trailer: Option<bool>,
    /// Key of GnuPG for published commits of bot-bottle, by a name that gpg knows.
    pub gpg_key: Option<String>,
}

/// Names of the remotes of a fork.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RemotesEntry {
    pub origin: Option<RemoteName>,
    pub upstream: Option<RemoteName>,
}

/// Sources of advisories for `forklift security`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SecurityEntry {
    /// Folders and addresses, separated by commas.
    pub advisories: Option<String>,
}

/// The database and the store of bottles that the hosts of a fleet share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FleetEntry {
    /// Address in PostgreSQL; `None` for the file in the home.
    pub database: Option<String>,
    pub password_env: Option<String>,
    pub password_file: Option<PathBuf>,
    pub password_command: Option<String>,
    pub ca_file: Option<PathBuf>,
    /// False if `serve` leaves bottles to the workers.
    pub run_bottles: Option<bool>,
    /// Address of the store of bottles; `None` if bottles stay on their hosts.
    pub bottles: Option<String>,
    pub bottles_endpoint: Option<String>,
    pub bottles_region: Option<String>,
    /// Account or access key in the store.
    pub bottles_account: Option<String>,
    pub bottles_secret_env: Option<String>,
    pub bottles_secret_file: Option<PathBuf>,
    pub bottles_secret_command: Option<String>,
    pub bottles_key_env: Option<String>,
    pub bottles_key_file: Option<PathBuf>,
    pub bottles_key_command: Option<String>,
    /// Room for frozen bottles on this host, in GB.
    pub bottles_max_gb: Option<u64>,
    /// Days for which earlier states are kept.
    pub bottles_keep_days: Option<u64>,
}

impl FleetEntry {
    /// The file of certificates, below the home folder where the path begins so.
    pub fn ca_file(&self) -> Option<PathBuf> {
        self.ca_file.as_deref().map(expand_home)
    }

    /// The rule that the places of the secrets break.
    fn broken_rule(&self) -> Option<(&'static str, &'static str)> {
        let count = |places: [bool; 3]| places.into_iter().filter(|is_set| *is_set).count();
        let Self { password_env: env, password_file: file, password_command: command, .. } = self;
        let passwords = count([env.is_some(), file.is_some(), command.is_some()]);
        let secrets = count([
            self.bottles_secret_env.is_some(),
            self.bottles_secret_file.is_some(),
            self.bottles_secret_command.is_some(),
        ]);
        let keys = count([
            self.bottles_key_env.is_some(),
            self.bottles_key_file.is_some(),
            self.bottles_key_command.is_some(),
        ]);
        match (passwords, secrets, keys) {
            (2.., ..) => Some((
                "fleet.password_*",
                "name one of password_env, password_file and password_command",
            )),
            (_, 2.., _) => Some((
                "fleet.bottles_secret_*",
                "name one of bottles_secret_env, bottles_secret_file and bottles_secret_command",
            )),
            (.., 2..) => Some((
                "fleet.bottles_key_*",
                "name one of bottles_key_env, bottles_key_file and bottles_key_command",
            )),
            _ => None,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigFileError {
    #[error(transparent)]
    Home(#[from] host::dirs::NoHome),
    #[error("could not read {path}", path = path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}: line {line}: {what}", path = path.display())]
    Malformed { path: PathBuf, line: usize, what: String },
    #[error("{variable} cannot be '{value}': {rule}")]
    Variable { variable: &'static str, value: String, rule: String },
    #[error("{path}: {key}: {rule}", path = path.display())]
    Value { path: PathBuf, key: String, rule: String },
}

impl Config {
    /// Loads the file of this user, which may be missing, and the environment.
    pub fn load() -> Result<Self, ConfigFileError> {
        let path = path_of_user()?;
        let text = read(&path)?;
        parse(&path, &text, host::env::var)
    }

    /// Options of an agent: an entry of `agents` by its name, or a provider by its own.
    pub fn agent_options(&self, name: &str) -> Result<AgentOptions, agent::UnknownProvider> {
        let entry = self.agents.get(name).cloned().unwrap_or_default();
        let provider = agent::Provider::parse(entry.provider.as_deref().unwrap_or(name))?;
        let mut options = AgentOptions::new(provider);
        options.key = entry.key();
        options.login = entry.login.unwrap_or(false);
        options.price = entry.price();
        options.model = entry.model.or_else(|| self.model.clone());
        options.variant = entry.variant;
        options.agent = entry.persona;
        options.url = entry.url;
        options.wire = entry.wire;
        Ok(options)
    }

    /// Checks the name of an agent: one of `agents`, or a provider.
    fn check_agent(&self, name: &str) -> Result<(), String> {
        if self.knows_agent(name) {
            return Ok(());
        }
        let providers = agent::Provider::all().filter(|it| it.program().is_some());
        let providers = providers.map(|it| it.name().to_owned());
        let providers = providers.filter(|it| !self.agents.contains_key(it));
        let known: Vec<String> = self.agents.keys().cloned().chain(providers).collect();
        Err(format!("there is no agent {name:?}; choose one of: {}", known.join(", ")))
    }

    /// Limits of a box, as far as the user set them.
    pub fn box_limits(&self) -> BoxLimits {
        let (limits, usual) = (&self.limits, BoxLimits::default());
        BoxLimits {
            memory_bytes: limits.memory_mb.map_or(usual.memory_bytes, |mb| mb * MIB),
            workspace_bytes: limits.disk_mb.map_or(usual.workspace_bytes, |mb| mb * MIB),
            pids: limits.processes.unwrap_or(usual.pids),
            cpu_percent: limits.cpu_percent.unwrap_or(usual.cpu_percent),
            ..usual
        }
    }
}

impl AgentEntry {
    fn key(&self) -> Option<KeyLocation> {
        let file = self.key_file.as_deref().map(|path| KeyLocation::File(expand_home(path)));
        let command = || self.key_command.as_deref().map(KeyLocation::command_line);
        file.or_else(command).or_else(|| self.key_env.clone().map(KeyLocation::Variable))
    }

    /// The price; the parser has checked it.
    fn price(&self) -> Option<Price> {
        self.price.as_deref().and_then(parse_price)
    }
}

/// Path of the file: `BOTTLEWORKS_CONFIG`, or the usual one below `XDG_CONFIG_HOME`.
pub(crate) fn path_of_user() -> Result<PathBuf, ConfigFileError> {
    match host::env::var_os(PATH_VARIABLE).filter(|path| !path.is_empty()) {
        Some(path) => Ok(PathBuf::from(path)),
        None => Ok(Dirs::from_env()?.config_home().join("bottleworks/config.toml")),
    }
}

/// Text of the file; empty if there is none.
fn read(path: &Path) -> Result<String, ConfigFileError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(source) => Err(ConfigFileError::Read { path: path.to_path_buf(), source }),
    }
}

/// Parses the file, and lays the variables of the environment over it.
fn parse(
    path: &Path,
    text: &str,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<Config, ConfigFileError> {
    let malformed = |error: toml::de::Error| {
        let start = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text[..start].matches('\n').count() + 1;
        let what = error.message().to_owned();
        ConfigFileError::Malformed { path: path.to_path_buf(), line, what }
    };
    let config: Config = toml::from_str(text).map_err(malformed)?;
    check(path, &config)?;
    let mut table: toml::Table = toml::from_str(text).map_err(malformed)?;
    let mut is_changed = false;
    for key in KEYS {
        let Some((variable, value)) = key.find_variable(&lookup) else { continue };
        let wrong =
            |rule: String| ConfigFileError::Variable { variable, value: value.clone(), rule };
        insert(&mut table, key.name, key.kind.parse(&value).map_err(wrong)?);
        if key.name == "agent" {
            config.check_agent(&value).map_err(wrong)?;
        }
        is_changed = true;
    }
    if !is_changed {
        return Ok(config);
    }
    table.try_into().map_err(malformed)
}

/// Checks what the types do not say.
fn check(path: &Path, config: &Config) -> Result<(), ConfigFileError> {
    let wrong = |key: String, rule: &str| {
        Err(ConfigFileError::Value { path: path.to_path_buf(), key, rule: rule.to_owned() })
    };
    if let Some(Err(rule)) = config.agent.as_deref().map(|name| config.check_agent(name)) {
        return wrong("agent".to_owned(), &rule);
    }
    for (name, entry) in &config.agents {
        let at = |key: &str| format!("agents.{name}.{key}");
        let provider = entry.provider.as_deref().unwrap_or(name);
        if entry.provider.is_none() && agent::Provider::parse(name).is_err() {
            let rule = "a name of your own needs it first: opencode, codex, claude or pi";
            return wrong(at("provider"), rule);
        }
        if let Err(error) = agent::Provider::parse(provider) {
            return wrong(at("provider"), &error.to_string());
        }
        if let Some(Err(error)) = entry.url.as_deref().map(Upstream::parse) {
            return wrong(at("url"), &error.to_string());
        }
        if entry.wire.as_deref().is_some_and(|wire| WireApi::parse(wire).is_none()) {
            return wrong(at("wire"), "use messages, chat or responses");
        }
        if entry.price.as_deref().is_some_and(|price| parse_price(price).is_none()) {
            return wrong(at("price"), "give dollars for a million tokens as \"IN,OUT\"");
        }
        let keys = [entry.key_env.is_some(), entry.key_file.is_some(), entry.key_command.is_some()];
        let count = keys.into_iter().filter(|is_set| *is_set).count();
        if count > 1 {
            return wrong(at("key_*"), "name one of key_env, key_file and key_command");
        }
        if entry.login == Some(true) && (count > 0 || entry.url.is_some()) {
            return wrong(
                at("login"),
                "a login stands instead of a key, and goes to the vendor's own server",
            );
        }
    }
    if config.identity.gpg_key.as_deref().is_some_and(|key| !is_key_name(key)) {
        return wrong("identity.gpg_key".to_owned(), "give its fingerprint or its address");
    }
    if let Some((key, rule)) = config.fleet.broken_rule() {
        return wrong(key.to_owned(), rule);
    }
    for (host, entry) in &config.forges {
        let kind = entry.kind.as_deref();
        if kind.is_some_and(|kind| forge::ForgeKind::parse(kind).is_none()) {
            let rule = format!("use {}", forge::ForgeKind::words());
            return wrong(format!("forges.\"{host}\".kind"), &rule);
        }
    }
    Ok(())
}

fn is_key_name(key: &str) -> bool {
    !key.trim().is_empty() && !key.chars().any(char::is_control)
}

/// Inserts a value at a key with dots, none of which belongs to a name.
fn insert(table: &mut toml::Table, name: &str, value: toml::Value) {
    match name.split_once('.') {
        None => {
            table.insert(name.to_owned(), value);
        }
        Some((first, rest)) => {
            let inner = table.entry(first).or_insert_with(|| toml::Table::new().into());
            if let Some(inner) = inner.as_table_mut() {
                insert(inner, rest, value);
            }
        }
    }
}

/// A path with `~/` at its start, below the home folder.
fn expand_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), host::env::home()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_path_buf(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_text(text: &str, variables: &[(&str, &str)]) -> Result<Config, String> {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        parse(Path::new("/c.toml"), text, lookup).map_err(|error| error.to_string())
    }

    #[test]
    fn the_environment_outranks_the_file_and_the_file_the_default() {
        let text = "agent = 'claude'\n[limits]\ntimeout_secs = 60\nmemory_mb = 512\n";
        let config = parse_text(text, &[("BOTTLEWORKS_PROVIDER", "codex")]).expect("good");
        assert_eq!(config.agent.as_deref(), Some("codex"));
        assert_eq!((config.limits.timeout_secs, config.limits.silence_secs), (Some(60), None));
        assert_eq!(config.box_limits().memory_bytes, 512 * MIB);
        assert_eq!(config.box_limits().pids, BoxLimits::default().pids);
    }

    #[track_caller]
    fn refuse(text: &str, expected: &str) {
        assert_eq!(parse_text(text, &[]).expect_err("refused"), expected);
    }

    #[test]
    fn the_database_of_a_fleet_has_one_password() {
        let page = include_str!("../../../../docs/fleet.md");
        let block = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
        let fleet = parse_text(block.expect("a block"), &[]).expect("it is accepted").fleet;
        assert!(fleet.database.is_some() && fleet.password_file.is_some());
        let other = [("BOTTLEWORKS_FLEET_DATABASE", "postgres://bot@other/bottles")];
        let fleet =
            parse_text("[fleet]\ndatabase = 'postgres://a/b'\n", &other).expect("fine").fleet;
        assert_eq!(fleet.database.as_deref(), Some("postgres://bot@other/bottles"));
        refuse(
            "[fleet]\ndatabase = 'a'\npassword_env = 'A'\npassword_file = '/b'\n",
            "/c.toml: fleet.password_*: name one of password_env, password_file and password_command",
        );
    }

    #[test]
    fn a_mistake_is_named_with_its_line_and_the_known_keys() {
        refuse(
            "# mine\nagnet = 'claude'\n",
            "/c.toml: line 2: unknown field `agnet`, expected one of `agent`, `model`, `agents`, `forges`, `limits`, \
             `notify`, `identity`, `remotes`, `security`, `fleet`",
        );
        refuse(
            "[limits]\ntimeout_secs = 'long'\n",
            "/c.toml: line 2: invalid type: string \"long\", expected u64",
        );
        refuse(
            "[agents.local]\nmodel = 'x'\n",
            "/c.toml: agents.local.provider: a name of your own needs it first: opencode, codex, claude or pi",
        );
        refuse(
            "[agents.claude]\nkey_env = 'A'\nkey_file = '/b'\n",
            "/c.toml: agents.claude.key_*: name one of key_env, key_file and key_command",
        );
        refuse(
            "[agents.claude]\nprice = 'cheap'\n",
            "/c.toml: agents.claude.price: give dollars for a million tokens as \"IN,OUT\"",
        );
    }

    #[test]
    fn an_agent_that_does_not_exist_is_refused_with_those_that_do() {
        refuse(
            "agent = 'gpt5'\n[agents.local]\nprovider = 'pi'\nurl = 'http://127.0.0.1:1'\n",
            "/c.toml: agent: there is no agent \"gpt5\"; choose one of: local, opencode, codex, claude, pi",
        );
        let error = parse_text("", &[("BOTTLEWORKS_PROVIDER", "gpt5")]).expect_err("refused");
        assert_eq!(
            error,
            "BOTTLEWORKS_PROVIDER cannot be 'gpt5': there is no agent \"gpt5\"; choose one of: opencode, codex, \
             claude, pi"
        );
        for known in ["claude", "local"] {
            let text = format!("agent = '{known}'\n[agents.local]\nprovider = 'pi'\n");
            assert!(parse_text(&text, &[]).is_ok(), "{known}");
        }
    }

    #[test]
    fn addresses_and_ways_to_talk_are_checked_where_they_are_set() {
        refuse(
            "[agents.pi]\nurl = '127.0.0.1:1'\n",
            "/c.toml: agents.pi.url: \"127.0.0.1:1\" is not the base address of a model server, such as \
             https://api.example.com",
        );
        refuse(
            "[agents.pi]\nwire = 'smoke'\n",
            "/c.toml: agents.pi.wire: use messages, chat or responses",
        );
    }

    #[test]
    fn a_variable_that_cannot_be_is_named() {
        let error = parse_text("", &[("BOTTLEWORKS_TIMEOUT", "soon")]).expect_err("refused");
        assert_eq!(error, "BOTTLEWORKS_TIMEOUT cannot be 'soon': give a whole number");
    }

    #[test]
    fn an_agent_has_the_options_of_its_entry() {
        let text = "model = 'anthropic/m'\n[agents.local]\nprovider = 'opencode'\nmodel = 'qwen'\n\
                    url = 'http://127.0.0.1:1/v1'\nkey_command = 'pass show x'\nprice = '1,2'\n";
        let config = parse_text(text, &[]).expect("good");
        let local = config.agent_options("local").expect("known");
        assert_eq!(
            (local.provider, local.model.as_deref()),
            (agent::Provider::OpenCode, Some("qwen"))
        );
        assert_eq!(local.key, Some(KeyLocation::command_line("pass show x")));
        assert!(local.price.is_some() && local.url.is_some());
        let pi = config.agent_options("pi").expect("a provider");
        assert_eq!((pi.model.as_deref(), pi.key), (Some("anthropic/m"), None));
        assert!(config.agent_options("gpt").is_err());
    }
}
