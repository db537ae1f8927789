//! The real key: its source, and the single place that fetches it.
//!
//! Many calls may find at once that the key has expired. One of them fetches the new one and the others wait
//! for it, since a source that rotates tokens would invalidate all but the last.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use host::process::{RunLimits, run};
use host::signal::Cancel;
use model::command::{CommandExit, CommandSpec};
use model::redact::SecretMask;
use model::secret::Secret;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;
use tokio::sync::Mutex;

/// Source of a key on this host. It names the place and never holds the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeySource {
    /// A variable of this process's environment.
    Env(String),
    /// A file that only its owner can read.
    File(PathBuf),
    /// A program, with its arguments, that prints the key.
    Command(Vec<String>),
    /// A JSON file that only its owner can read, in which a program keeps its login: the places of the token and of the
    /// account's id.
    Login { path: PathBuf, pointer: String, account: Option<String> },
    /// The server needs none.
    None,
}

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeyError {
    #[error("the variable {0} with the model key is not set")]
    Unset(String),
    #[error("could not read the model key")]
    File(#[from] host::file::FileError),
    #[error("could not ask {program} for the model key")]
    Start { program: String, source: host::process::ProcessError },
    /// The program failed. Its output may hold secrets and is not shown.
    #[error("{program} gave no model key: it ended with {exit:?}")]
    Command { program: String, exit: CommandExit },
    #[error("{path} has no login that can be used", path = .0.display())]
    NoLogin(PathBuf),
    #[error("the model key is empty or holds characters that no header can carry")]
    Malformed,
    #[error("stopped while reading the model key")]
    Stopped,
}

const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// The key of a run, fetched on first use.
#[derive(Clone)]
pub struct KeyStore {
    source: KeySource,
    held: Arc<Mutex<FetchedKey>>,
}

/// A key, and the number of the fetch it came from; 0 before the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct FetchedKey {
    pub(crate) secret: Option<Secret>,
    /// Id of the account that a login belongs to.
    pub(crate) account: Option<String>,
    /// Finds this key and those before it, which a server may still repeat.
    pub(crate) mask: Arc<SecretMask>,
    known: Vec<Secret>,
    generation: u64,
}

impl KeyStore {
    #[must_use]
    pub fn new(source: KeySource) -> Self {
        Self { source, held: Arc::default() }
    }

    /// Returns the key, fetching it on first use.
    pub(crate) async fn current(&self) -> Result<FetchedKey, KeyError> {
        let mut held = self.held.lock().await;
        if held.generation == 0 {
            self.fetch_into(&mut held).await?;
        }
        Ok(held.clone())
    }

    /// Returns a key that differs from `refused`, if the source has one by now. A caller that arrives during
    /// a fetch gets the result of that fetch.
    pub(crate) async fn replace(
        &self,
        refused: &FetchedKey,
    ) -> Result<Option<FetchedKey>, KeyError> {
        let mut held = self.held.lock().await;
        if held.generation == refused.generation {
            self.fetch_into(&mut held).await?;
        }
        let shown = |key: &Option<Secret>| key.as_ref().map(|key| key.expose().to_owned());
        let is_new = shown(&held.secret) != shown(&refused.secret);
        Ok(is_new.then(|| held.clone()))
    }

    async fn fetch_into(&self, held: &mut FetchedKey) -> Result<(), KeyError> {
        held.secret = fetch(&self.source).await?;
        held.account = match &self.source {
            KeySource::Login { path, account: Some(pointer), .. } => {
                Some(read_login(path, pointer).await?.expose().to_owned())
            }
            _ => None,
        };
        held.known.extend(held.secret.clone());
        held.mask = Arc::new(SecretMask::new(&held.known));
        held.generation += 1;
        Ok(())
    }
}

impl fmt::Debug for KeyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyStore").field("source", &self.source).finish_non_exhaustive()
    }
}

async fn fetch(source: &KeySource) -> Result<Option<Secret>, KeyError> {
    match source {
        KeySource::None => Ok(None),
        KeySource::Env(name) => {
            let value = host::env::var(name).ok_or_else(|| KeyError::Unset(name.clone()))?;
            read_key(value.as_bytes()).map(Some)
        }
        KeySource::File(path) => {
            let path = path.clone();
            let read = tokio::task::spawn_blocking(move || host::file::read_private(&path));
            let Ok(bytes) = read.await else { return Err(KeyError::Stopped) };
            read_key(&bytes?).map(Some)
        }
        KeySource::Command(argv) => read_key(&ask_program(argv).await?).map(Some),
        KeySource::Login { path, pointer, .. } => read_login(path, pointer).await.map(Some),
    }
}

/// Reads a value of a login file. The program that owns the file renews it.
async fn read_login(path: &Path, pointer: &str) -> Result<Secret, KeyError> {
    let file = path.to_path_buf();
    let read = tokio::task::spawn_blocking(move || host::file::read_private(&file));
    let Ok(bytes) = read.await else { return Err(KeyError::Stopped) };
    let login: Value = serde_json::from_slice(&bytes?).unwrap_or_default();
    match login.pointer(pointer).and_then(Value::as_str) {
        Some(value) => read_key(value.as_bytes()),
        None => Err(KeyError::NoLogin(path.to_path_buf())),
    }
}

async fn ask_program(argv: &[String]) -> Result<Vec<u8>, KeyError> {
    let (program, args) = argv.split_first().ok_or(KeyError::Malformed)?;
    let mut spec = CommandSpec::new(program).args(args);
    // It is the user's own program and needs their environment: keyrings, agents, configuration.
    for (name, value) in host::env::vars_os() {
        spec = spec.env(name, value);
    }
    let limits = RunLimits { timeout: Some(COMMAND_TIMEOUT), ..RunLimits::default() };
    let output = run(&spec, &limits, &Cancel::new())
        .await
        .map_err(|source| KeyError::Start { program: program.clone(), source })?;
    if output.exit == CommandExit::Exited(0) {
        Ok(output.stdout)
    } else {
        Err(KeyError::Command { program: program.clone(), exit: output.exit })
    }
}

/// Parses a key: one word of visible ASCII. Surrounding white space comes from the editor.
fn read_key(bytes: &[u8]) -> Result<Secret, KeyError> {
    let bytes = bytes.trim_ascii();
    if bytes.is_empty() || !bytes.iter().all(u8::is_ascii_graphic) {
        return Err(KeyError::Malformed);
    }
    Ok(Secret::new(String::from_utf8_lossy(bytes)))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn private(path: &std::path::Path, text: &str) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    }

    fn shown(key: &FetchedKey) -> &str {
        key.secret.as_ref().unwrap().expose()
    }

    #[tokio::test]
    async fn a_file_is_read_once_and_again_when_the_key_was_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        private(&path, "first\n");
        let store = KeyStore::new(KeySource::File(path.clone()));
        let first = store.current().await.unwrap();
        private(&path, "second\n");
        assert_eq!(shown(&store.current().await.unwrap()), "first");
        let second = store.replace(&first).await.unwrap().unwrap();
        assert_eq!(shown(&second), "second");
        // A second caller that was refused with the old key gets the new one without a fetch.
        private(&path, "third\n");
        assert_eq!(shown(&store.replace(&first).await.unwrap().unwrap()), "second");
    }

    #[tokio::test]
    async fn a_key_that_stays_the_same_is_not_tried_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        private(&path, "same");
        let store = KeyStore::new(KeySource::File(path));
        let key = store.current().await.unwrap();
        assert!(store.replace(&key).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_file_that_others_can_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        fs::write(&path, "k").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let error = KeyStore::new(KeySource::File(path)).current().await.unwrap_err();
        assert!(matches!(error, KeyError::File(_)));
    }

    #[tokio::test]
    async fn a_program_prints_the_key() {
        let argv = ["/bin/sh", "-c", "echo from-a-program"].map(str::to_owned).to_vec();
        let store = KeyStore::new(KeySource::Command(argv));
        assert_eq!(shown(&store.current().await.unwrap()), "from-a-program");
        let argv = ["/bin/sh", "-c", "echo k; exit 3"].map(str::to_owned).to_vec();
        let error = KeyStore::new(KeySource::Command(argv)).current().await.unwrap_err();
        assert!(matches!(error, KeyError::Command { .. }), "{error}");
    }

    #[tokio::test]
    async fn a_login_is_read_from_its_file_again_after_it_was_renewed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("auth.json");
        private(&path, r#"{"tokens":{"access_token":"first","account_id":"acc-1"}}"#);
        let (pointer, account) = ("/tokens/access_token".to_owned(), "/tokens/account_id");
        let account = Some(account.to_owned());
        let source = KeySource::Login { path: path.clone(), pointer, account };
        let store = KeyStore::new(source.clone());
        let key = store.current().await.unwrap();
        assert_eq!((shown(&key), key.account.as_deref()), ("first", Some("acc-1")));
        private(&path, r#"{"tokens":{"access_token":"second","account_id":"acc-1"}}"#);
        let fresh = store.replace(&key).await.unwrap().unwrap();
        assert_eq!(shown(&fresh), "second");
        private(&path, r#"{"OPENAI_API_KEY":null}"#);
        let error = KeyStore::new(source).current().await.unwrap_err();
        assert!(error.to_string().contains("has no login"), "{error}");
    }

    #[tokio::test]
    async fn a_missing_variable_is_named_and_no_key_is_ever_shown() {
        let source = KeySource::Env("BOTTLEWORKS_SURELY_UNSET".to_owned());
        let error = KeyStore::new(source).current().await.unwrap_err();
        assert!(error.to_string().contains("BOTTLEWORKS_SURELY_UNSET"));
        let argv = ["/bin/echo", "hunter2"].map(str::to_owned).to_vec();
        let store = KeyStore::new(KeySource::Command(argv[..1].to_vec()));
        assert!(store.current().await.is_err());
        let store = KeyStore::new(KeySource::None);
        let key = store.current().await.unwrap();
        assert!(key.secret.is_none());
        let secret = Some(Secret::new("hunter2"));
        let held = FetchedKey { known: secret.iter().cloned().collect(), secret, ..key };
        assert!(!format!("{store:?} {held:?}").contains("hunter2"));
    }

    #[test]
    fn a_key_is_one_word() {
        assert!(read_key(b" sk-1 \n").is_ok());
        for bytes in [&b""[..], b" \n", b"two words", b"a\nb", b"\xff"] {
            assert!(read_key(bytes).is_err());
        }
    }
}
