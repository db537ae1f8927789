//! Which kind of forge a server is: what the person says, else what its name says, else what it answers.

use serde::Deserialize;

use crate::address::{ForgeAddress, WebBase};
use crate::error::ForgeError;
use crate::forge::ForgeSetting;
use crate::http::{Ask, Client, Dialect, Paging, Reply, Silence};

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

/// For a server of which nothing is known yet.
const PLAIN: Dialect = Dialect {
    token_word: "",
    accept: "application/json",
    headers: &[],
    paging: Paging { size_field: "", size: 0, total_header: "", silence: Silence::Unclear },
};

/// Headers by which the two others are known, whatever their status.
const GITHUB_HEADERS: [&str; 2] = ["x-github-enterprise-version", "x-github-request-id"];
const GITLAB_HEADER: &str = "x-gitlab-meta";

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
fn choose_kind(host: &str) -> Option<ForgeKind> {
    let is = |domain: &str| {
        host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    match host {
        _ if is("github.com") || is("ghe.com") => Some(ForgeKind::GitHub),
        _ if is("gitlab.com") => Some(ForgeKind::GitLab),
        "codeberg.org" | "gitea.com" => Some(ForgeKind::Gitea),
        _ => None,
    }
}

/// The kind of a forge: what the person says, else what its name says, else what it answers.
pub async fn find_kind(
    address: &ForgeAddress,
    setting: &ForgeSetting,
) -> Result<ForgeKind, ForgeError> {
    let named = || choose_kind(setting.web.as_ref().map_or(&address.host, |web| &web.host));
    match setting.kind.or_else(named) {
        Some(kind) => Ok(kind),
        None => observe_kind(address, setting).await,
    }
}

/// Asks a server for its kind. No token is sent to a server of which nothing is known yet.
async fn observe_kind(
    address: &ForgeAddress,
    setting: &ForgeSetting,
) -> Result<ForgeKind, ForgeError> {
    let base = setting.web.clone().unwrap_or_else(|| address.web_base());
    // What stands before the owner is an installation's path for the first kind, and may be groups for the others.
    let root = setting.web.clone().unwrap_or_else(|| address.root_base());
    let gitea = ask(&base, &["api", "v1", "version"], setting).await?;
    if gitea.status.is_success() && serde_json::from_slice(&gitea.body).is_ok_and(is_gitea) {
        return Ok(ForgeKind::Gitea);
    }
    let github = ask(&root, &["api", "v3", "meta"], setting).await?;
    if GITHUB_HEADERS.iter().any(|name| github.headers.contains_key(*name)) {
        return Ok(ForgeKind::GitHub);
    }
    let gitlab = ask(&root, &["api", "v4", "version"], setting).await?;
    if gitlab.headers.contains_key(GITLAB_HEADER) {
        return Ok(ForgeKind::GitLab);
    }
    let host = base.host.clone();
    let statuses = [gitea, github, gitlab].map(|reply| reply.status.as_u16());
    Err(match statuses.into_iter().find(|status| matches!(status, 401 | 403)) {
        Some(status) => ForgeError::LoginWanted { host, status },
        None => ForgeError::UnknownForge { host },
    })
}

/// A number, or the word of one that was built without being told its number.
fn is_gitea(answer: Version) -> bool {
    answer.version.starts_with(|c: char| c.is_ascii_digit()) || answer.version == "development"
}

/// Any answer tells something, but for those of a server that is down or busy.
async fn ask(
    base: &WebBase,
    segments: &[&str],
    setting: &ForgeSetting,
) -> Result<Reply, ForgeError> {
    let (ca_file, patience) = (setting.ca_file.as_deref(), setting.patience.clone());
    let client = Client::open(base.clone(), &PLAIN, None, ca_file, patience).await?;
    let ask = Ask::get(base.path(segments), "say which kind of forge it is");
    let reply = client.send(&ask).await?;
    match client.read_status(&ask, &reply) {
        Some(error @ (ForgeError::Server { .. } | ForgeError::RateLimited { .. })) => Err(error),
        Some(_) | None => Ok(reply),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_names_say_enough() {
        assert_eq!(choose_kind("github.com"), Some(ForgeKind::GitHub));
        assert_eq!(choose_kind("ssh.github.com"), Some(ForgeKind::GitHub));
        assert_eq!(choose_kind("acme.ghe.com"), Some(ForgeKind::GitHub));
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
