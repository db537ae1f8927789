//! Location of the model's key on this host. Plans name it; the key is looked up late and written nowhere.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use egress::model_route::KeySource;
use host::file::{FileError, is_pipe, read_private, read_private_or_pipe};
use model::env_file::EnvFile;
use model::secret::Secret;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ResolveAgentError;

/// Variable by which a key from a settings file reaches the shim.
const KEY_VARIABLE: &str = "BOTTLEWORKS_MODEL_KEY";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyLocation {
    Nowhere,
    /// A setting in a settings file, which only its owner may read.
    Settings {
        path: PathBuf,
        name: String,
    },
    Variable(String),
    /// A file of its own, which the shim reads.
    File(PathBuf),
    /// The output of a command, which the shim runs.
    Command(Vec<String>),
    /// The login of the agent's own program, which the shim reads.
    Login {
        path: PathBuf,
        pointer: String,
        account: Option<String>,
    },
}

impl KeyLocation {
    /// The user's command line, run by a shell outside the box.
    pub fn command_line(line: &str) -> Self {
        Self::Command(["/bin/sh", "-c", line].map(str::to_owned).to_vec())
    }

    /// The variables with the key for the shim; none where it looks the key up itself.
    pub fn variables(&self) -> Result<Vec<(String, Secret)>, ResolveAgentError> {
        match self {
            Self::File(path) if is_pipe(path) => {
                Ok(vec![(KEY_VARIABLE.to_owned(), read_key_file(path)?)])
            }
            Self::Nowhere | Self::File(_) | Self::Command(_) | Self::Login { .. } => Ok(Vec::new()),
            Self::Settings { path, name } => {
                Ok(vec![(KEY_VARIABLE.to_owned(), read_setting(path, name)?)])
            }
            Self::Variable(name) => match host::env::var(name) {
                Some(value) => Ok(vec![(name.clone(), Secret::new(value))]),
                None => Err(ResolveAgentError::NoKey { name: name.clone() }),
            },
        }
    }

    /// The key's value, for the redactor; this also proves that it exists before anything starts. Only the shim knows the
    /// output of a command.
    pub fn values(&self) -> Result<Vec<Secret>, ResolveAgentError> {
        if let Self::File(path) = self {
            return Ok(vec![read_key_file(path)?]);
        }
        if let Self::Login { path, .. } = self {
            return read_tokens(path);
        }
        Ok(self.variables()?.into_iter().map(|(_, secret)| secret).collect())
    }

    pub(super) fn source(&self) -> KeySource {
        match self {
            Self::Nowhere => KeySource::None,
            Self::Settings { .. } => KeySource::Env(KEY_VARIABLE.to_owned()),
            Self::Variable(name) => KeySource::Env(name.clone()),
            // The shim cannot read it a second time.
            Self::File(path) if is_pipe(path) => KeySource::Env(KEY_VARIABLE.to_owned()),
            Self::File(path) => KeySource::File(path.clone()),
            Self::Command(argv) => KeySource::Command(argv.clone()),
            Self::Login { path, pointer, account } => KeySource::Login {
                path: path.clone(),
                pointer: pointer.clone(),
                account: account.clone(),
            },
        }
    }
}

impl fmt::Display for KeyLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nowhere => f.write_str("no key"),
            Self::Settings { path, name } => write!(f, "{name} in {}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Command(_) => f.write_str("a command"),
            Self::Login { path, .. } => write!(f, "the login in {}", path.display()),
        }
    }
}

/// Every token of a login file, the one that renews the others among them.
fn read_tokens(path: &Path) -> Result<Vec<Secret>, ResolveAgentError> {
    const SHORTEST: usize = 20;
    fn collect(value: &Value, tokens: &mut Vec<Secret>) {
        match value {
            Value::String(text) if text.len() >= SHORTEST => {
                tokens.push(Secret::new(text.as_str()));
            }
            Value::Array(values) => values.iter().for_each(|value| collect(value, tokens)),
            Value::Object(fields) => fields.values().for_each(|value| collect(value, tokens)),
            _ => {}
        }
    }
    let file: Value = serde_json::from_slice(&read_private(path)?).unwrap_or_default();
    let mut tokens = Vec::new();
    collect(&file, &mut tokens);
    Ok(tokens)
}

fn read_key_file(path: &Path) -> Result<Secret, FileError> {
    let bytes = read_once(path)?;
    Ok(Secret::new(String::from_utf8_lossy(&bytes).trim()))
}

/// Reads a file of secrets. What a pipe had is kept for the life of the process, because it can be read once.
pub fn read_once(path: &Path) -> Result<Vec<u8>, FileError> {
    static PIPES: Mutex<BTreeMap<PathBuf, Vec<u8>>> = Mutex::new(BTreeMap::new());
    if !is_pipe(path) {
        return read_private(path);
    }
    let mut pipes = PIPES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(bytes) = pipes.get(path) {
        return Ok(bytes.clone());
    }
    let bytes = read_private_or_pipe(path)?;
    pipes.insert(path.to_path_buf(), bytes.clone());
    Ok(bytes)
}

fn read_setting(path: &Path, name: &str) -> Result<Secret, ResolveAgentError> {
    let fault = |reason: String| ResolveAgentError::Settings { path: path.to_path_buf(), reason };
    let bytes = read_once(path)?;
    let file = EnvFile::parse_bytes(&bytes).map_err(|error| fault(error.to_string()))?;
    let value = file.get(name).ok_or_else(|| fault(format!("{name} is not in it")))?;
    Ok(Secret::new(value))
}
