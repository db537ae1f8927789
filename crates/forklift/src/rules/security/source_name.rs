//! Names of sources of advisories: a folder or a repository on this machine, or the address of a repository.

use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SourceName {
    /// A folder of files; with a ref, or without files of its own, a repository.
    Path { path: PathBuf, git_ref: Option<String> },
    /// A repository elsewhere, of which a copy is kept.
    Address { url: String, git_ref: Option<String> },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadSource {
    #[error("the source of advisories is empty")]
    Empty,
    #[error(
        "'{0}' is not a source of advisories: name a folder, or an address that begins with https://"
    )]
    Scheme(String),
    #[error("'{0}' cannot be the name of a branch, a tag or a commit")]
    Ref(String),
    #[error(
        "'{0}' is a folder of this machine; FORK.md may name addresses alone, and folders belong into the configuration"
    )]
    Folder(String),
}

impl SourceName {
    /// Parses `FOLDER` or `https://ADDRESS`, each perhaps with `#REF`. Relative folders are relative to `base`.
    pub(crate) fn parse(text: &str, base: &Path) -> Result<Self, BadSource> {
        let shown = || shown(text);
        let (place, git_ref) = match text.trim().rsplit_once('#') {
            Some((place, name)) => (place, Some(name)),
            None => (text.trim(), None),
        };
        let is_odd = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\@{".contains(c);
        if let Some(name) = git_ref
            && (name.is_empty()
                || name.starts_with('-')
                || name.contains("..")
                || name.contains(is_odd))
        {
            return Err(BadSource::Ref(shown()));
        }
        let git_ref = git_ref.map(str::to_owned);
        if place.is_empty() {
            return Err(BadSource::Empty);
        }
        match place.split_once("://") {
            Some(("https" | "http" | "ssh", _)) if !place.contains(char::is_whitespace) => {
                Ok(Self::Address { url: place.to_owned(), git_ref })
            }
            Some(("file", path)) => Ok(Self::Path { path: PathBuf::from(path), git_ref }),
            Some(_) => Err(BadSource::Scheme(shown())),
            // A helper of git such as `ext::` runs a command.
            None if place.contains("::") || place.starts_with('-') => {
                Err(BadSource::Scheme(shown()))
            }
            None => Ok(Self::Path { path: base.join(place), git_ref }),
        }
    }

    /// Parses a source that a repository names: it may not reach into the folders of this machine, nor use its keys.
    pub(crate) fn parse_foreign(text: &str) -> Result<Self, BadSource> {
        match Self::parse(text, Path::new("/"))? {
            Self::Address { url, git_ref } if url.starts_with("https://") => {
                Ok(Self::Address { url, git_ref })
            }
            Self::Address { .. } => Err(BadSource::Scheme(shown(text))),
            Self::Path { .. } => Err(BadSource::Folder(shown(text))),
        }
    }

    pub(crate) fn git_ref(&self) -> Option<&str> {
        match self {
            Self::Path { git_ref, .. } | Self::Address { git_ref, .. } => git_ref.as_deref(),
        }
    }
}

fn shown(text: &str) -> String {
    model::escape::escape_line(&text.chars().take(80).collect::<String>()).into_owned()
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path { path, .. } => write!(f, "{}", path.display())?,
            Self::Address { url, .. } => f.write_str(url)?,
        }
        match self.git_ref() {
            Some(name) => write!(f, "#{name}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, BadSource> {
        SourceName::parse(text, Path::new("/base")).map(|source| source.to_string())
    }

    #[test]
    fn folders_and_addresses_are_told_apart() {
        assert_eq!(parse("osv").as_deref(), Ok("/base/osv"));
        assert_eq!(parse("/srv/osv#osv").as_deref(), Ok("/srv/osv#osv"));
        assert_eq!(parse("file:///srv/osv").as_deref(), Ok("/srv/osv"));
        let address = "https://github.com/rustsec/advisory-db#osv";
        assert_eq!(parse(address).as_deref(), Ok(address));
    }

    #[test]
    fn what_runs_a_command_or_is_an_option_is_refused() {
        for text in [
            "",
            "#x",
            "ext::sh -c x",
            "-x",
            "git://h/x",
            "/srv#-x",
            "/srv#a..b",
            "/srv#",
            "https://h/a b",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_fork_names_no_folder_of_this_machine() {
        for text in ["/etc", "../x", "file:///etc", "http://h/x", "ssh://h/x"] {
            assert!(SourceName::parse_foreign(text).is_err(), "{text}");
        }
        assert!(SourceName::parse_foreign("https://github.com/golang/vulndb").is_ok());
    }
}
