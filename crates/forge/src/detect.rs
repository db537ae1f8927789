//! Which kind of forge a server is: what the person says, else what its name says, else what it answers.

use std::path::Path;

use hyper::Method;
use serde::Deserialize;

use crate::address::WebBase;
use crate::error::ForgeError;
use crate::http::{Ask, Client, Patience, Repeat};

/// A kind of forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgeKind {
    /// Gitea, and Forgejo, which answers alike.
    Gitea,
    /// GitHub.
    GitHub,
    /// GitLab.
    GitLab,
}

/// What Gitea and Forgejo answer to anybody.
#[derive(Debug, Deserialize)]
struct Version {
    version: String,
}

impl ForgeKind {
    /// Reads the name of a kind, as a configuration gives it.
    pub fn parse(word: &str) -> Option<Self> {
        match word.to_ascii_lowercase().as_str() {
            "gitea" | "forgejo" => Some(Self::Gitea),
            "github" => Some(Self::GitHub),
            "gitlab" => Some(Self::GitLab),
            _ => None,
        }
    }

    /// Its name, as people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gitea => "Gitea",
            Self::GitHub => "GitHub",
            Self::GitLab => "GitLab",
        }
    }
}

/// The kind of a server whose name alone says it.
pub fn choose_kind(host: &str) -> Option<ForgeKind> {
    let is = |domain: &str| {
        host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    match host {
        _ if is("github.com") => Some(ForgeKind::GitHub),
        _ if is("gitlab.com") => Some(ForgeKind::GitLab),
        "codeberg.org" | "gitea.com" => Some(ForgeKind::Gitea),
        _ => None,
    }
}

/// Asks a server for its kind. No token is sent to a server of which nothing is known yet.
pub async fn observe_kind(
    base: &WebBase,
    ca_file: Option<&Path>,
    patience: &Patience,
) -> Result<ForgeKind, ForgeError> {
    let client = Client::open(base.clone(), None, ca_file, patience.clone()).await?;
    let ask = Ask {
        method: Method::GET,
        path: base.path(&["api", "v1", "version"]),
        body: None,
        action: "say which kind of forge it is".to_owned(),
        repeat: Repeat::Harmless,
    };
    let unknown = || ForgeError::UnknownForge { host: base.host.clone() };
    match client.call_json::<Version>(&ask).await {
        Ok((answer, _)) if answer.version.starts_with(|c: char| c.is_ascii_digit()) => {
            Ok(ForgeKind::Gitea)
        }
        Ok(_) => Err(unknown()),
        Err(
            error @ (ForgeError::Unreachable { .. }
            | ForgeError::Server { .. }
            | ForgeError::RateLimited { .. }),
        ) => Err(error),
        Err(_) => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_names_say_enough() {
        assert_eq!(choose_kind("github.com"), Some(ForgeKind::GitHub));
        assert_eq!(choose_kind("ssh.github.com"), Some(ForgeKind::GitHub));
        assert_eq!(choose_kind("notgithub.com"), None);
        assert_eq!(choose_kind("github.com.example"), None);
        assert_eq!(choose_kind("altssh.gitlab.com"), Some(ForgeKind::GitLab));
        assert_eq!(choose_kind("codeberg.org"), Some(ForgeKind::Gitea));
        assert_eq!(choose_kind("git.example"), None);
    }

    #[test]
    fn a_kind_is_named_in_any_case() {
        assert_eq!(ForgeKind::parse("Forgejo"), Some(ForgeKind::Gitea));
        assert_eq!(ForgeKind::parse("gitlab").map(ForgeKind::name), Some("GitLab"));
        assert_eq!(ForgeKind::parse("svn"), None);
    }
}
