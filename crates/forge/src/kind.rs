//! Kinds of forges: the data by which they differ, for every crate that depends on it.
//!
//! To add a kind, add a variant to [`ForgeKind`] and follow the compiler. It requires the data in this file,
//! the webhooks in `webhook/delivery`, the probe in `detect` and the client in [`crate::Forge::open`]. A
//! server that speaks GitHub's dialect needs no client of its own: it becomes a flavour of `github_like`.
//! Then add a fake to `testkit::fake_forge` and a line to the list in `tests/it/forge_contract.rs`.

use base64ct::{Base64, Encoding};
use model::secret::Secret;
use serde::{Deserialize, Serialize};

use crate::address::{ForgeAddress, WebBase};
use crate::gh_login;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForgeKind {
    /// Gitea, and Forgejo, which has the same API.
    Gitea,
    /// GitHub and GitHub Enterprise Server.
    GitHub,
    GitLab,
    /// Bare repositories in a folder, with issues and pull requests in files beside them.
    Folder,
}

impl ForgeKind {
    /// Lists all kinds, in the order in which an unknown server is probed.
    pub fn all() -> impl Iterator<Item = Self> {
        std::iter::successors(Some(Self::Gitea), |kind| kind.next())
    }

    /// Returns the next kind. A match, so that a new variant cannot be missing from [`Self::all`].
    fn next(self) -> Option<Self> {
        match self {
            Self::Gitea => Some(Self::GitHub),
            Self::GitHub => Some(Self::GitLab),
            Self::GitLab => Some(Self::Folder),
            Self::Folder => None,
        }
    }

    /// Parses the name in a configuration, in any case.
    pub fn parse(word: &str) -> Option<Self> {
        let word = word.to_ascii_lowercase();
        Self::all().find(|kind| kind.word() == word || kind.aliases().contains(&word.as_str()))
    }

    /// Returns the names that [`Self::parse`] accepts, for an error message.
    pub fn words() -> String {
        let words: Vec<&str> = Self::all().map(Self::word).collect();
        match words.split_last() {
            Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
            None => String::new(),
        }
    }

    /// Returns the name in configurations, in records and in the paths of webhooks.
    pub fn word(self) -> &'static str {
        match self {
            Self::Gitea => "gitea",
            Self::GitHub => "github",
            Self::GitLab => "gitlab",
            Self::Folder => "folder",
        }
    }

    fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::Gitea => &["forgejo"],
            Self::GitHub | Self::GitLab | Self::Folder => &[],
        }
    }

    /// Returns the name in sentences.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gitea => "Gitea",
            Self::GitHub => "GitHub",
            Self::GitLab => "GitLab",
            Self::Folder => "folder",
        }
    }

    /// Returns whether a host name alone identifies a server of this kind.
    pub(crate) fn owns_host(self, host: &str) -> bool {
        let is = |domain: &str| {
            host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        match self {
            Self::Gitea => matches!(host, "codeberg.org" | "gitea.com"),
            Self::GitHub => is("github.com") || is("ghe.com"),
            Self::GitLab => is("gitlab.com"),
            Self::Folder => false,
        }
    }

    /// Returns the environment variable with the address of the API, for kinds whose address is usually given that way,
    /// and the path of that API below the front page. All kinds accept the front page in `FORGE_URL`.
    pub fn api_variable(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Gitea => Some(("FORGE_GITEA_API", "/api/v1")),
            Self::GitHub | Self::GitLab | Self::Folder => None,
        }
    }

    /// Returns the value of the `Authorization` header with the token for git; `None` where git needs none.
    /// Gitea takes the token as it is, the other servers take it as the password of a fixed user.
    pub fn git_authorization(self, token: &Secret) -> Option<String> {
        let user = match self {
            Self::Gitea => return Some(format!("token {}", token.expose())),
            Self::GitHub => "x-access-token",
            Self::GitLab => "oauth2",
            Self::Folder => return None,
        };
        let pair = format!("{user}:{}", token.expose());
        Some(format!("Basic {}", Base64::encode_string(pair.as_bytes())))
    }

    pub fn needs_token(self) -> bool {
        match self {
            Self::Gitea | Self::GitHub | Self::GitLab => true,
            Self::Folder => false,
        }
    }

    /// Returns the repository with its whole owner, and without the sub-path of the installation.
    pub fn repository_path(self, address: &ForgeAddress, web: Option<&WebBase>) -> String {
        match self {
            // Repositories may lie in nested groups: everything before the name is their owner.
            Self::GitLab => address.project_path(web.unwrap_or(&address.root_base())),
            Self::Gitea | Self::GitHub | Self::Folder => address.full_name(),
        }
    }

    /// Returns the path of an issue's page below its repository.
    pub fn issue_page(self, number: u64) -> String {
        match self {
            Self::Gitea | Self::GitHub => format!("/issues/{number}"),
            Self::GitLab => format!("/-/issues/{number}"),
            Self::Folder => folder_page(number),
        }
    }

    /// Returns the path of a pull request's page below its repository.
    pub fn pull_page(self, number: u64) -> String {
        match self {
            Self::Gitea => format!("/pulls/{number}"),
            Self::GitHub => format!("/pull/{number}"),
            Self::GitLab => format!("/-/merge_requests/{number}"),
            Self::Folder => folder_page(number),
        }
    }

    /// Returns the value of `MERGE_MODE` that selects a pull request there; `None` where there is no such mode.
    pub fn merge_mode(self) -> Option<&'static str> {
        match self {
            Self::Gitea => Some("gitea_pr"),
            Self::GitHub => Some("github_pr"),
            Self::GitLab => Some("gitlab_mr"),
            Self::Folder => None,
        }
    }

    /// Finds the token of the kind's own command-line program, if the user is logged in with it.
    pub async fn find_login(self, host: &str) -> Option<Secret> {
        match self {
            Self::GitHub => gh_login::find_login(host).await,
            Self::Gitea | Self::GitLab | Self::Folder => None,
        }
    }
}

/// Returns the file of a thread, relative to the repository's address without `.git`.
fn folder_page(number: u64) -> String {
    format!(".git.forge/threads/{number:06}.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_named_in_any_case() {
        assert_eq!(ForgeKind::parse("Forgejo"), Some(ForgeKind::Gitea));
        assert_eq!(ForgeKind::parse("gitlab").map(ForgeKind::name), Some("GitLab"));
        assert_eq!(ForgeKind::parse("svn"), None);
        assert_eq!(ForgeKind::words(), "gitea, github, gitlab or folder");
    }

    /// Records and webhook files hold this name.
    #[test]
    fn the_word_is_what_a_record_holds() {
        for kind in ForgeKind::all() {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.word());
            assert_eq!(ForgeKind::parse(kind.word()), Some(kind));
        }
    }

    #[test]
    fn each_kind_has_its_own_header_for_git() {
        let token = Secret::new("t0ken");
        let shown = |kind: ForgeKind| kind.git_authorization(&token);
        assert_eq!(shown(ForgeKind::Gitea).as_deref(), Some("token t0ken"));
        let pair = |user: &str| Base64::encode_string(format!("{user}:t0ken").as_bytes());
        assert_eq!(shown(ForgeKind::GitHub), Some(format!("Basic {}", pair("x-access-token"))));
        assert_eq!(shown(ForgeKind::GitLab), Some(format!("Basic {}", pair("oauth2"))));
        assert_eq!(shown(ForgeKind::Folder), None);
    }

    #[test]
    fn only_where_groups_nest_are_they_part_of_the_repository() {
        let Some(crate::Remote::Hosted(address)) =
            ForgeAddress::parse_remote("https://lab.example/a/b/app.git")
        else {
            panic!("a hosted repository");
        };
        assert_eq!(ForgeKind::GitLab.repository_path(&address, None), "a/b/app");
        assert_eq!(ForgeKind::Gitea.repository_path(&address, None), "b/app");
    }
}
