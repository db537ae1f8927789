//! `config`: shows and changes the configuration that the three programs share.

use clap::Subcommand;
use model::exit::ExitStatus;
use serde::Serialize;
use serde_json::json;

use super::edit::{find_key, set_values};
use super::key::{KEYS, Key};
use super::token::FORGE_TOKEN_VARIABLE;
use super::{Config, parse, path_of_user, read};
use crate::failure::{Failure, OrExit};
use crate::start::Program;
use crate::ui::Ui;

/// Show or change the configuration that forklift, wf and bot-bottle share
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// The same as list
    Show,
    #[command(flatten)]
    Shared(SharedConfigCommand),
}

/// Commands about the shared configuration, for programs that have a configuration of their own as well.
#[derive(Debug, Subcommand)]
pub enum SharedConfigCommand {
    /// Show every setting, and whether it comes from the environment, the file or the default
    List,
    /// Print one setting
    Get {
        /// The key, such as limits.timeout_secs
        key: String,
    },
    /// Write one setting to the file; its comments stay
    Set {
        /// The key, such as agent or agents.claude.key_command
        key: String,
        /// The value
        value: String,
    },
    /// Remove one setting from the file
    Unset {
        /// The key
        key: String,
    },
    /// Print the path of the file
    Path,
}

/// A setting with its origin.
#[derive(Debug, Serialize)]
struct SettingRow {
    key: String,
    value: Option<String>,
    origin: Origin,
    variable: Option<&'static str>,
    default: &'static str,
    help: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Origin {
    Environment,
    File,
    Default,
}

pub fn cmd_config<S: ExitStatus>(
    ui: &Ui,
    program: &'static Program,
    command: &ConfigCommand,
) -> Result<(), Failure<S>> {
    match command {
        ConfigCommand::Show => list(ui),
        ConfigCommand::Shared(command) => cmd_shared_config(ui, program, command),
    }
}

pub fn cmd_shared_config<S: ExitStatus>(
    ui: &Ui,
    program: &'static Program,
    command: &SharedConfigCommand,
) -> Result<(), Failure<S>> {
    match command {
        SharedConfigCommand::List => list(ui),
        SharedConfigCommand::Get { key } => get(ui, program, key),
        SharedConfigCommand::Set { key, value } => set(ui, program, key, Some(value)),
        SharedConfigCommand::Unset { key } => set(ui, program, key, None),
        SharedConfigCommand::Path => {
            let path = path_of_user().or_exit(S::USAGE)?.display().to_string();
            match ui.is_json() {
                true => ui.document(&path),
                false => ui.line(&path),
            }
            Ok(())
        }
    }
}

fn list<S: ExitStatus>(ui: &Ui) -> Result<(), Failure<S>> {
    let path = path_of_user().or_exit(S::USAGE)?;
    let text = read(&path).or_exit(S::USAGE)?;
    let file = parse(&path, &text, |_| None).or_exit(S::USAGE)?;
    let config = parse(&path, &text, host::env::var).or_exit(S::USAGE)?;
    let rows: Vec<SettingRow> = KEYS.iter().flat_map(|key| rows_of(key, &file, &config)).collect();
    ui.document(&rows);
    let cell = |row: &SettingRow| {
        let origin = match row.origin {
            Origin::Environment => row.variable.unwrap_or_default().to_owned(),
            Origin::File => "file".to_owned(),
            Origin::Default => "default".to_owned(),
        };
        let value = row.value.clone().unwrap_or_else(|| format!("({})", row.default));
        vec![row.key.clone(), value, origin]
    };
    ui.table(&["KEY", "VALUE", "FROM"], rows.iter().map(cell));
    let token = host::env::var(FORGE_TOKEN_VARIABLE).is_some_and(|value| !value.is_empty());
    let token = if token { "is set and outranks the file" } else { "is not set" };
    ui.status(&format!("the file is {}; {FORGE_TOKEN_VARIABLE} {token}", path.display()));
    Ok(())
}

/// Settings that are not the default and where they come from, for `--verbose`. A file that cannot be read is reported by the
/// command itself.
pub(crate) fn trace_settings() -> Vec<String> {
    let Ok(path) = path_of_user() else { return Vec::new() };
    let text = read(&path).unwrap_or_default();
    let parsed = (parse(&path, &text, |_| None), parse(&path, &text, host::env::var));
    let (Ok(file), Ok(config)) = parsed else { return Vec::new() };
    let rows = KEYS.iter().flat_map(|key| rows_of(key, &file, &config));
    let rows = rows.filter(|row| row.origin != Origin::Default);
    let shown = |row: SettingRow| {
        let origin = match row.origin {
            Origin::Environment => row.variable.unwrap_or_default().to_owned(),
            Origin::File | Origin::Default => path.display().to_string(),
        };
        format!("setting {} = {}  # {origin}", row.key, row.value.unwrap_or_default())
    };
    let is_set = |name: &&&str| host::env::var(name).is_some_and(|value| !value.is_empty());
    let others = [FORGE_TOKEN_VARIABLE].into_iter().chain(host::web_proxy::VARIABLES);
    let others: Vec<&str> = others.collect();
    let others = others.iter().filter(is_set).map(|name| format!("setting {name} is set"));
    rows.map(shown).chain(others).collect()
}

/// One row for a key, or one for each name of the user.
fn rows_of(key: &'static Key, file: &Config, config: &Config) -> Vec<SettingRow> {
    let row = |path: Vec<String>, shown: String| {
        let is_variable = key.find_variable(host::env::var).is_some();
        let origin = match file.value_of(&path) {
            _ if is_variable => Origin::Environment,
            Some(_) => Origin::File,
            None => Origin::Default,
        };
        let value = config.value_of(&path);
        let Key { variable, default, help, .. } = *key;
        SettingRow { key: shown, value, origin, variable, default, help }
    };
    let parts: Vec<&str> = key.name.split('.').collect();
    let names: Vec<&String> = match parts.as_slice() {
        ["agents", ..] => file.agents.keys().collect(),
        ["forges", ..] => file.forges.keys().collect(),
        _ => {
            return vec![row(
                parts.iter().map(|it| (*it).to_owned()).collect(),
                key.name.to_owned(),
            )];
        }
    };
    let last = parts.last().copied().unwrap_or_default();
    let named = |name: &String| {
        let path = vec![parts[0].to_owned(), name.clone(), last.to_owned()];
        let quote = if name.contains('.') { "\"" } else { "" };
        row(path, format!("{}.{quote}{name}{quote}.{last}", parts[0]))
    };
    // Of a name of the user only what is set, or every agent would fill a screen.
    names.into_iter().map(named).filter(|row| row.value.is_some()).collect()
}

fn get<S: ExitStatus>(ui: &Ui, program: &'static Program, name: &str) -> Result<(), Failure<S>> {
    let (path, key) = find_key(program.name, name).or_exit(S::USAGE)?;
    let config = Config::load().or_exit(S::USAGE)?;
    let Some(value) = config.value_of(&path) else {
        let message = format!("{name} is not set (default: {})", key.default);
        let remedy = format!("set it with: {} config set {name} VALUE", program.name);
        return Err(Failure::new(S::GENERAL, message).with_remedy(remedy));
    };
    match ui.is_json() {
        true => ui.document(&value),
        false => ui.line(&value),
    }
    Ok(())
}

fn set<S: ExitStatus>(
    ui: &Ui,
    program: &'static Program,
    name: &str,
    value: Option<&str>,
) -> Result<(), Failure<S>> {
    let is_changed = set_values(program.name, &[(name, value)]).or_exit(S::USAGE)?;
    let path = path_of_user().or_exit(S::USAGE)?;
    let what = if is_changed { "written to" } else { "already so in" };
    ui.status(&format!("{what} {}", path.display()));
    let (_, key) = find_key(program.name, name).or_exit(S::USAGE)?;
    if let Some((variable, _)) = key.find_variable(host::env::var) {
        ui.warn(&format!("{variable} is set and outranks the file"));
    }
    ui.document(&json!({ "key": name, "value": value, "path": path, "is_changed": is_changed }));
    Ok(())
}
