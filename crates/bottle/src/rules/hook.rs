//! Webhooks that this home installed: the repository, the receiver, and the file of each.

use forge::ForgeKind;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::forge_env::{is_name, web_of_api};

const VERSION: u32 = 1;

/// File of a webhook, with its secrets; only its owner can read it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HookFile {
    pub(crate) version: u32,
    pub(crate) kind: ForgeKind,
    /// The forge's server, with its port where that is not the usual one.
    pub(crate) host: String,
    /// The repository with its owner.
    pub(crate) repo: String,
    /// Address that the forge posts to.
    pub(crate) url: String,
    /// Newest first; a delivery may be signed with any. More than one only until the forge has confirmed the newest.
    pub(crate) secrets: Vec<String>,
    /// Time of the forge's confirmation.
    pub(crate) installed_at: Option<Timestamp>,
}

impl HookFile {
    /// A webhook that the forge has not confirmed yet. Until it has, older secrets count too.
    pub(crate) fn begin(place: &HookPlace, url: &str, secret: &str, before: Option<&Self>) -> Self {
        let known = before.map(|file| file.secrets.clone()).unwrap_or_default();
        Self {
            version: VERSION,
            kind: place.kind,
            host: place.host.clone(),
            repo: place.repo.clone(),
            url: url.to_owned(),
            secrets: [secret.to_owned()].into_iter().chain(known).collect(),
            installed_at: None,
        }
    }

    /// The webhook once the forge has it: from now on one secret counts.
    pub(crate) fn confirmed(mut self, now: Timestamp) -> Self {
        self.secrets.truncate(1);
        self.installed_at = Some(now);
        self
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HookPlace {
    pub(crate) kind: ForgeKind,
    pub(crate) host: String,
    pub(crate) repo: String,
}

impl HookPlace {
    /// The file below the folder of hooks: `<host>/<owner>/<repo>.json`; `None` for unsafe names.
    pub(crate) fn file(&self) -> Option<String> {
        let host = self.host.replace(':', "_");
        let parts_fit = is_name(&host) && self.repo.split('/').all(is_name);
        (parts_fit && self.repo.contains('/')).then(|| format!("{host}/{}.json", self.repo))
    }
}

/// Repository that a user names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RepositoryChoice {
    pub(crate) remote: String,
    /// Kind and front page of its forge, if it is the forge of the variables.
    pub(crate) forge: Option<(ForgeKind, String)>,
}

/// Reads the whole address of a repository, or `owner/name` on the forge of `FORGE_GITEA_API`, whose value `api` is.
pub(crate) fn parse_repository(word: &str, api: Option<&str>) -> Result<RepositoryChoice, String> {
    if word.contains("://") {
        return Ok(RepositoryChoice { remote: word.to_owned(), forge: None });
    }
    let parts: Vec<&str> = word.split('/').collect();
    if parts.len() != 2 || parts.iter().any(|part| part.is_empty()) {
        return Err(format!(
            "'{}' is not a repository: give owner/name, or its whole address",
            word.escape_debug()
        ));
    }
    let api = api.ok_or_else(|| {
        format!(
            "the forge of {word} is not known: set FORGE_GITEA_API, or give the repository's whole address"
        )
    })?;
    let kind = ForgeKind::Gitea;
    let web = web_of_api(kind, api.trim())
        .ok_or("FORGE_GITEA_API must be http(s)://host[:port][/path]/api/v1")?;
    Ok(RepositoryChoice { remote: format!("{web}/{word}.git"), forge: Some((kind, web)) })
}

/// The address that the forge posts to: as given, or for a server alone the route of `bot-bottle serve` for this kind of
/// forge.
pub(crate) fn receiver_of(url: &str, kind: ForgeKind) -> Result<String, String> {
    let wrong = || {
        format!(
            "'{}' is not an address for a webhook: give http(s)://host[:port][/path]",
            url.escape_debug()
        )
    };
    let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
    let plain = |c: char| c.is_ascii_graphic() && !"@\"<>\\^`{}|#".contains(c);
    if !matches!(scheme, "http" | "https") || rest.is_empty() || !rest.chars().all(plain) {
        return Err(wrong());
    }
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    match (host.is_empty(), path.is_empty()) {
        (true, _) => Err(wrong()),
        (false, true) => Ok(format!("{scheme}://{host}/webhooks/{}", kind.word())),
        (false, false) => Ok(url.to_owned()),
    }
}

/// The server of an address, and its port.
pub(crate) fn server_of(url: &str) -> Option<(String, u16)> {
    let (scheme, rest) = url.split_once("://")?;
    let usual = match scheme {
        "https" => 443,
        "http" => 80,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next().filter(|it| !it.is_empty())?;
    match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, "")) => Some((address.to_owned(), usual)),
        Some((address, port)) => Some((address.to_owned(), port.strip_prefix(':')?.parse().ok()?)),
        None => match authority.rsplit_once(':') {
            Some((host, port)) => Some((host.to_owned(), port.parse().ok()?)),
            None => Some((authority.to_owned(), usual)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_of_an_address_has_a_port() {
        let at = |url| server_of(url).map(|(host, port)| format!("{host} {port}"));
        assert_eq!(at("https://b.example/webhooks").as_deref(), Some("b.example 443"));
        assert_eq!(at("http://127.0.0.1:8080").as_deref(), Some("127.0.0.1 8080"));
        assert_eq!(at("http://[::1]:8080/x").as_deref(), Some("::1 8080"));
        assert_eq!(at("https://[::1]/x").as_deref(), Some("::1 443"));
        for odd in ["b.example", "ftp://b", "https://", "https://b:x"] {
            assert_eq!(at(odd), None, "{odd}");
        }
    }

    fn place(host: &str, repo: &str) -> HookPlace {
        HookPlace { kind: ForgeKind::Gitea, host: host.to_owned(), repo: repo.to_owned() }
    }

    #[test]
    fn a_repository_is_named_in_short_or_in_full() {
        let api = Some("https://git.example/sub/api/v1/");
        let remote = |word, api| parse_repository(word, api).map(|meant| meant.remote);
        assert_eq!(remote("me/app", api).as_deref(), Ok("https://git.example/sub/me/app.git"));
        let whole = "https://github.com/me/app";
        assert_eq!(remote(whole, None).as_deref(), Ok(whole));
        assert!(remote("me/app", None).expect_err("refused").contains("FORGE_GITEA_API"));
        for odd in ["app", "a/b/c", "/app", "me/", ""] {
            assert!(remote(odd, api).is_err(), "{odd}");
        }
    }

    #[test]
    fn a_bare_server_becomes_the_place_where_serve_listens() {
        let at = |url| receiver_of(url, ForgeKind::GitLab);
        assert_eq!(at("https://b.example").as_deref(), Ok("https://b.example/webhooks/gitlab"));
        assert_eq!(
            at("http://b.example:8080/").as_deref(),
            Ok("http://b.example:8080/webhooks/gitlab")
        );
        assert_eq!(at("https://b.example/x/y").as_deref(), Ok("https://b.example/x/y"));
        for odd in [
            "b.example",
            "ftp://b",
            "https://",
            "https:///x",
            "https://u:p@b",
            "https://b/ x",
            "https://b/\u{202e}",
        ] {
            assert!(at(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn a_repository_has_a_file_and_no_name_leads_elsewhere() {
        let file = |host: &str, repo: &str| place(host, repo).file();
        assert_eq!(
            file("git.example:3000", "me/app").as_deref(),
            Some("git.example_3000/me/app.json")
        );
        assert_eq!(file("gitlab.com", "a/b/app").as_deref(), Some("gitlab.com/a/b/app.json"));
        for (host, repo) in
            [("h", "../x"), ("h", "a/.."), ("..", "a/b"), ("h", "a"), ("h", "a//b"), ("", "a/b")]
        {
            assert_eq!(file(host, repo), None, "{host} {repo}");
        }
    }

    #[test]
    fn old_secrets_count_until_the_forge_has_the_new_one() {
        let first =
            HookFile::begin(&place("h", "a/b"), "u", "one", None).confirmed(Timestamp::UNIX_EPOCH);
        let second = HookFile::begin(&place("h", "a/b"), "u", "two", Some(&first));
        assert_eq!(second.secrets, ["two", "one"]);
        let third = HookFile::begin(&place("h", "a/b"), "u", "three", Some(&second));
        assert_eq!(third.secrets, ["three", "two", "one"]);
        assert_eq!(third.confirmed(Timestamp::UNIX_EPOCH).secrets, ["three"]);
    }
}
