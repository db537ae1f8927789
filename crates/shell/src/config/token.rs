//! Secrets that the configuration names a place of: the token of a forge, and the secrets of the fleet. A token has one variable for all programs, the older variables of each, and the configuration by host.

use std::path::Path;
use std::time::Duration;

use host::process::{ProcessError, RunLimits, run};
use host::signal::Cancel;
use model::command::{CommandExit, CommandSpec};
use model::secret::Secret;

use super::{Config, FleetEntry, ForgeEntry, expand_home};

/// Variable with the token of the forge, in all programs.
pub const FORGE_TOKEN_VARIABLE: &str = "BOTTLEWORKS_FORGE_TOKEN";

/// Long enough for a person to unlock a keyring.
const COMMAND_LIMIT: Duration = Duration::from_secs(120);

#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("{key} names the variable {name}, which is not set")]
    NoVariable { key: String, name: String },
    #[error(transparent)]
    File(#[from] host::file::FileError),
    #[error("the command of {key} could not be run")]
    Run { key: String, source: ProcessError },
    #[error("the command of {key} {how}")]
    Failed { key: String, how: String },
    #[error("could not start a thread for the command of {key}")]
    Thread { key: String },
}

impl Config {
    /// The token for a host: from the shared variable, from the program's `older` ones, or from the configuration.
    pub fn forge_token(
        &self,
        host: Option<&str>,
        older: &[&str],
    ) -> Result<Option<Secret>, SecretError> {
        let names = [FORGE_TOKEN_VARIABLE].into_iter().chain(older.iter().copied());
        let mut values = names.filter_map(host::env::var).map(|value| value.trim().to_owned());
        if let Some(token) = values.find(|value| !value.is_empty()) {
            return Ok(Some(Secret::new(token)));
        }
        let entry = host.and_then(|host| Some((host, self.forges.get(host)?)));
        entry.map_or(Ok(None), |(host, entry)| read_token(host, entry))
    }
}

impl FleetEntry {
    /// The password of the database; `None` if the configuration names none.
    pub fn password(&self) -> Result<Option<Secret>, SecretError> {
        let place = SecretPlace {
            variable: self.password_env.as_deref(),
            file: self.password_file.as_deref(),
            command: self.password_command.as_deref(),
        };
        place.read(|kind| format!("fleet.password_{kind}"))
    }

    /// The secret of the account in the store of bottles; `None` if the configuration names none.
    pub fn bottles_secret(&self) -> Result<Option<Secret>, SecretError> {
        let place = SecretPlace {
            variable: self.bottles_secret_env.as_deref(),
            file: self.bottles_secret_file.as_deref(),
            command: self.bottles_secret_command.as_deref(),
        };
        place.read(|kind| format!("fleet.bottles_secret_{kind}"))
    }

    /// The key by which the fleet seals its bottles; `None` if the configuration names none.
    pub fn bottles_key(&self) -> Result<Option<Secret>, SecretError> {
        let place = SecretPlace {
            variable: self.bottles_key_env.as_deref(),
            file: self.bottles_key_file.as_deref(),
            command: self.bottles_key_command.as_deref(),
        };
        place.read(|kind| format!("fleet.bottles_key_{kind}"))
    }
}

fn read_token(host: &str, entry: &ForgeEntry) -> Result<Option<Secret>, SecretError> {
    let place = SecretPlace {
        variable: entry.token_env.as_deref(),
        file: entry.token_file.as_deref(),
        command: entry.token_command.as_deref(),
    };
    place.read(|kind| format!("forges.\"{host}\".token_{kind}"))
}

/// Places of a secret, in this order.
struct SecretPlace<'a> {
    variable: Option<&'a str>,
    file: Option<&'a Path>,
    command: Option<&'a str>,
}

impl SecretPlace<'_> {
    /// `key` is the name of the setting of each kind of place.
    fn read(&self, key: impl Fn(&str) -> String) -> Result<Option<Secret>, SecretError> {
        if let Some(name) = self.variable {
            let value = host::env::var(name).filter(|value| !value.trim().is_empty());
            let missing = || SecretError::NoVariable { key: key("env"), name: name.to_owned() };
            return Ok(Some(Secret::new(value.ok_or_else(missing)?.trim())));
        }
        if let Some(path) = self.file {
            let bytes = host::file::read_private_or_pipe(&expand_home(path))?;
            return Ok(Some(Secret::new(String::from_utf8_lossy(&bytes).trim())));
        }
        self.command.map(|line| run_command(key("command"), line)).transpose()
    }
}

/// Runs the user's command on a thread of its own, because the caller may be on a runtime already.
fn run_command(key: String, line: &str) -> Result<Secret, SecretError> {
    let spec = CommandSpec::new("/bin/sh").args(["-c", line]);
    // It is the user's own program and needs their environment: keyrings, agents, configuration.
    let spec =
        host::env::vars_os().into_iter().fold(spec, |spec, (name, value)| spec.env(name, value));
    let limits = RunLimits { timeout: Some(COMMAND_LIMIT), ..RunLimits::default() };
    let work = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        Some(runtime.block_on(run(&spec, &limits, &Cancel::new())))
    };
    let ran = std::thread::scope(|scope| scope.spawn(work).join().ok().flatten());
    let failed = |how: String| SecretError::Failed { key: key.clone(), how };
    match ran {
        None => Err(SecretError::Thread { key }),
        Some(Err(source)) => Err(SecretError::Run { key, source }),
        Some(Ok(output)) if output.exit != CommandExit::Exited(0) => {
            Err(failed(format!("failed ({:?})", output.exit)))
        }
        Some(Ok(output)) => match String::from_utf8_lossy(&output.stdout).trim() {
            "" => Err(failed("printed nothing".to_owned())),
            token => Ok(Secret::new(token)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(entry: ForgeEntry) -> Result<Option<String>, String> {
        let mut config = Config::default();
        config.forges.insert("git.example.org".to_owned(), entry);
        let found = config.forge_token(Some("git.example.org"), &["BOTTLEWORKS_TEST_UNSET"]);
        found.map(|token| token.map(|it| it.expose().to_owned())).map_err(|it| it.to_string())
    }

    #[test]
    fn a_command_prints_the_token() {
        let command = |line: &str| ForgeEntry {
            token_command: Some(line.to_owned()),
            ..ForgeEntry::default()
        };
        assert_eq!(token(command("echo t-1")), Ok(Some("t-1".to_owned())));
        let failed = "the command of forges.\"git.example.org\".token_command failed (Exited(3))";
        assert_eq!(token(command("exit 3")), Err(failed.to_owned()));
        let silent = "the command of forges.\"git.example.org\".token_command printed nothing";
        assert_eq!(token(command("true")), Err(silent.to_owned()));
        assert_eq!(token(ForgeEntry::default()), Ok(None));
    }

    #[test]
    fn the_password_of_a_database_is_in_a_variable_a_file_or_a_command() {
        let password = |fleet: FleetEntry| {
            fleet
                .password()
                .map(|it| it.map(|it| it.expose().to_owned()))
                .map_err(|it| it.to_string())
        };
        let command = Some("echo geheim".to_owned());
        let printed = password(FleetEntry { password_command: command, ..Default::default() });
        assert_eq!(printed, Ok(Some("geheim".to_owned())));
        assert_eq!(password(FleetEntry::default()), Ok(None));
        let name = Some("BOTTLEWORKS_TEST_UNSET".to_owned());
        let error = password(FleetEntry { password_env: name, ..Default::default() });
        let words =
            "fleet.password_env names the variable BOTTLEWORKS_TEST_UNSET, which is not set";
        assert_eq!(error, Err(words.to_owned()));
    }

    #[test]
    fn a_variable_that_is_named_and_not_set_is_a_mistake() {
        let entry = ForgeEntry {
            token_env: Some("BOTTLEWORKS_TEST_UNSET".to_owned()),
            ..Default::default()
        };
        let error = token(entry).expect_err("refused");
        assert!(error.ends_with("BOTTLEWORKS_TEST_UNSET, which is not set"), "{error}");
        assert!(Config::default().forge_token(Some("other.example"), &[]).expect("fine").is_none());
    }
}
