//! Base directories of the user, after the XDG base directory specification.
//!
//! The rule is a pure function of home and variables; only [`Dirs::from_env`] reads the machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::env;

/// The four base directories of one user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dirs {
    state: PathBuf,
    config: PathBuf,
    cache: PathBuf,
    data: PathBuf,
}

/// `HOME` is missing or relative, so no base directory can be derived.
#[derive(Debug, Error)]
#[error("HOME is not set to an absolute path, so there is no place for state and configuration")]
pub struct NoHome;

impl Dirs {
    /// Takes the directories from the environment of this process.
    pub fn from_env() -> Result<Self, NoHome> {
        let home = env::home().ok_or(NoHome)?;
        Ok(Self::new(&home, env::var_os))
    }

    /// Derives the directories. The specification says that a relative value is invalid and is to be ignored:
    /// following one would scatter state over whatever directory a command ran in.
    pub fn new(home: &Path, lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        let base = |name: &str, default: &str| {
            lookup(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
                .unwrap_or_else(|| home.join(default))
        };
        Self {
            state: base("XDG_STATE_HOME", ".local/state"),
            config: base("XDG_CONFIG_HOME", ".config"),
            cache: base("XDG_CACHE_HOME", ".cache"),
            data: base("XDG_DATA_HOME", ".local/share"),
        }
    }

    /// State that outlives a restart: run directories, databases.
    pub fn state_home(&self) -> &Path {
        &self.state
    }

    /// Configuration that the user edits.
    pub fn config_home(&self) -> &Path {
        &self.config
    }

    /// Cached files, which may be deleted at any time.
    pub fn cache_home(&self) -> &Path {
        &self.cache
    }

    /// Data that belongs to the user.
    pub fn data_home(&self) -> &Path {
        &self.data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state_for(value: Option<&str>) -> PathBuf {
        let dirs = Dirs::new(Path::new("/home/ada"), |name| {
            value.filter(|_| name == "XDG_STATE_HOME").map(OsString::from)
        });
        assert_eq!(dirs.config_home(), Path::new("/home/ada/.config"));
        dirs.state_home().to_path_buf()
    }

    #[test]
    fn the_defaults_lie_under_home() {
        assert_eq!(state_for(None), Path::new("/home/ada/.local/state"));
    }

    #[test]
    fn an_absolute_value_is_followed() {
        assert_eq!(state_for(Some("/srv/state")), Path::new("/srv/state"));
    }

    #[test]
    fn relative_and_empty_values_are_ignored() {
        assert_eq!(state_for(Some("state")), Path::new("/home/ada/.local/state"));
        assert_eq!(state_for(Some("")), Path::new("/home/ada/.local/state"));
    }
}
