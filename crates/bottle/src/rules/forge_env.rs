//! Variables of a forge run: the forge, the repository, the issue. They are for the sidecar and the host; none of them
//! reaches the agent.

use forge::{ALLOW_HTTP_VARIABLE, ForgeKind, PlainHttp, WebBase};
use serde::{Deserialize, Serialize};

/// Variable with the token. It is not in [`ForgeEnv`], which is written to disk.
pub(crate) const TOKEN_VARIABLE: &str = "FORGE_TOKEN";

const FILE: &str = "file://";

const WATCHDOG_SECS: u64 = 1800;

/// Organisation whose members may assign issues to agents, by default.
pub(crate) const DEFAULT_ORG: &str = "bot-bottle";

/// Forge, repository and issue of a forge run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ForgeEnv {
    pub(crate) kind: ForgeKind,
    /// Front page of the forge, such as `https://git.example`, or `file:///path` for a folder of repositories.
    pub(crate) web: String,
    pub(crate) owner: String,
    pub(crate) repo: String,
    /// The assigned issue: it defines what may be written to.
    pub(crate) issue: u64,
    /// The assigned pull request, once there is one.
    pub(crate) pull: Option<u64>,
    pub(crate) org: String,
    /// Accounts that may instruct agents beside the members of the organisation.
    #[serde(default)]
    pub(crate) triggers: Vec<String>,
    /// Seconds without a sign of life after which the run counts as done without a report.
    pub(crate) watchdog_secs: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) allow_http: bool,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ForgeEnvFault {
    #[error("{0} is not set; a forge run needs it, see: bot-bottle orchestrate start --help")]
    Missing(&'static str),
    #[error("{name} cannot be '{value}': {rule}")]
    Wrong { name: &'static str, value: String, rule: String },
}

pub(crate) fn parse_forge_env(
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<ForgeEnv, ForgeEnvFault> {
    let given =
        |name: &str| lookup(name).map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
    let needed = |name| given(name).ok_or(ForgeEnvFault::Missing(name));
    let url = given("FORGE_URL");
    let kind = match given("FORGE_KIND") {
        Some(word) => {
            let unknown = || wrong("FORGE_KIND", &word, &ForgeKind::words());
            ForgeKind::parse(&word).ok_or_else(unknown)?
        }
        None if url.as_ref().is_some_and(|url| url.starts_with(FILE)) => ForgeKind::Folder,
        None => ForgeKind::Gitea,
    };
    let api = kind.api_variable().and_then(|(name, path)| Some((name, path, given(name)?)));
    let web = match (api, url, kind.api_variable()) {
        (Some((name, path, api)), _, _) => {
            let rule = format!("give http(s)://host[:port][/path]{path}");
            web_of_api(kind, &api).ok_or_else(|| wrong(name, &api, &rule))?
        }
        (None, Some(url), _) => {
            let rule = match kind {
                ForgeKind::Folder => "give file:///absolute/path",
                ForgeKind::Gitea | ForgeKind::GitHub | ForgeKind::GitLab => {
                    "give http(s)://host[:port][/path]"
                }
            };
            parse_web(kind, &url).ok_or_else(|| wrong("FORGE_URL", &url, rule))?
        }
        (None, None, Some((name, _))) => return Err(ForgeEnvFault::Missing(name)),
        (None, None, None) => return Err(ForgeEnvFault::Missing("FORGE_URL")),
    };
    let name = |variable| {
        let text = needed(variable)?;
        match text.split('/').all(is_name) {
            true => Ok(text),
            false => Err(wrong(variable, &text, "letters, digits, '-', '_' and '.'")),
        }
    };
    let number = |variable, text: String| match text.parse::<u64>() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(wrong(variable, &text, "give a number from 1")),
    };
    let optional = |variable| given(variable).map(|text| number(variable, text)).transpose();
    Ok(ForgeEnv {
        owner: name("FORGE_OWNER")?,
        repo: name("FORGE_REPO")?,
        issue: number("FORGE_ISSUE_NUMBER", needed("FORGE_ISSUE_NUMBER")?)?,
        pull: optional("FORGE_PR_NUMBER")?,
        org: given("FORGE_ORG").unwrap_or_else(|| DEFAULT_ORG.to_owned()),
        triggers: given("FORGE_TRIGGERS").map_or_else(Vec::new, |text| {
            text.split(',').map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect()
        }),
        watchdog_secs: optional("FORGE_WATCHDOG_TIMEOUT")?.unwrap_or(WATCHDOG_SECS),
        allow_http: ForgeEnv::allows_http(&lookup),
        kind,
        web,
    })
}

fn wrong(name: &'static str, value: &str, rule: &str) -> ForgeEnvFault {
    // An address may hold a password, which belongs in no message.
    let address = value.split_once("://");
    let hidden = address.and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?.1)));
    let shown =
        hidden.map_or_else(|| value.to_owned(), |(scheme, host)| format!("{scheme}://***@{host}"));
    let value = shown.escape_debug().take(80).collect();
    ForgeEnvFault::Wrong { name, value, rule: rule.to_owned() }
}

/// True if a text can be the name of a repository, an owner, or a group of an owner.
pub(crate) fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !text.is_empty() && text.chars().all(plain) && !text.starts_with('.')
}

/// The front page of an API's address.
pub(super) fn web_of_api(kind: ForgeKind, api: &str) -> Option<String> {
    let (_, path) = kind.api_variable()?;
    api.trim_end_matches('/').strip_suffix(path).and_then(|web| parse_web(kind, web))
}

/// Parses a front page; credentials, queries and fragments are refused.
pub(crate) fn parse_web(kind: ForgeKind, url: &str) -> Option<String> {
    let web = url.trim_end_matches('/');
    let is_sound = match kind {
        ForgeKind::Folder => web.strip_prefix(FILE).is_some_and(|path| path.starts_with('/')),
        ForgeKind::Gitea | ForgeKind::GitHub | ForgeKind::GitLab => WebBase::parse(web).is_some(),
    };
    (is_sound && !web.contains(['@', '?', '#', ' '])).then(|| web.to_owned())
}

impl ForgeEnv {
    pub(crate) fn allows_http(lookup: impl Fn(&str) -> Option<String>) -> bool {
        PlainHttp::parse(lookup(ALLOW_HTTP_VARIABLE).as_deref()) == PlainHttp::Allowed
    }

    pub(crate) fn plain_http(&self) -> PlainHttp {
        if self.allow_http { PlainHttp::Allowed } else { PlainHttp::Refused }
    }

    pub(crate) fn remote_url(&self) -> String {
        format!("{}.git", self.repository_page())
    }

    pub(crate) fn issue_url(&self) -> String {
        format!("{}{}", self.repository_page(), self.kind.issue_page(self.issue))
    }

    pub(crate) fn pull_url(&self, number: u64) -> String {
        format!("{}{}", self.repository_page(), self.kind.pull_page(number))
    }

    fn repository_page(&self) -> String {
        format!("{}/{}/{}", self.web, self.owner, self.repo)
    }

    /// The variables for the sidecar's environment.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let mut list = match self.kind.api_variable() {
            Some((name, path)) => vec![(name, format!("{}{path}", self.web))],
            None => vec![("FORGE_URL", self.web.clone())],
        };
        list.extend([
            ("FORGE_KIND", self.kind.word().to_owned()),
            ("FORGE_OWNER", self.owner.clone()),
            ("FORGE_REPO", self.repo.clone()),
            ("FORGE_ISSUE_NUMBER", self.issue.to_string()),
            ("FORGE_ORG", self.org.clone()),
            ("FORGE_WATCHDOG_TIMEOUT", self.watchdog_secs.to_string()),
        ]);
        if !self.triggers.is_empty() {
            list.push(("FORGE_TRIGGERS", self.triggers.join(",")));
        }
        list.extend(self.allow_http.then(|| (ALLOW_HTTP_VARIABLE, "1".to_owned())));
        list.extend(self.pull.map(|number| ("FORGE_PR_NUMBER", number.to_string())));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(changes: &[(&str, &str)]) -> Result<ForgeEnv, ForgeEnvFault> {
        let usual = [
            ("FORGE_GITEA_API", "https://git.example/sub/api/v1/"),
            ("FORGE_OWNER", "didericis"),
            ("FORGE_REPO", "bot-bottle"),
            ("FORGE_ISSUE_NUMBER", "317"),
            ("FORGE_PR_NUMBER", ""),
        ];
        let all: Vec<_> = changes.iter().chain(&usual).collect();
        parse_forge_env(|name| all.iter().find(|it| it.0 == name).map(|it| it.1.to_owned()))
    }

    #[test]
    fn the_variables_of_the_document_are_read() {
        let env = read(&[]).expect("they read");
        assert_eq!((env.issue, env.pull, env.org.as_str()), (317, None, "bot-bottle"));
        assert_eq!(env.watchdog_secs, 1800);
        assert_eq!(env.remote_url(), "https://git.example/sub/didericis/bot-bottle.git");
        assert_eq!(env.issue_url(), "https://git.example/sub/didericis/bot-bottle/issues/317");
        assert_eq!(read(&[("FORGE_PR_NUMBER", "318")]).expect("it reads").pull, Some(318));
    }

    #[test]
    fn they_come_back_as_they_went() {
        let more =
            [("FORGE_PR_NUMBER", "318"), ("FORGE_ORG", "agents"), ("FORGE_TRIGGERS", "a, b")];
        let env = read(&more).expect("they read");
        assert_eq!(env.triggers, ["a", "b"]);
        let list = env.variables();
        let again = parse_forge_env(|name| {
            list.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
        });
        assert_eq!(again, Ok(env));
    }

    #[test]
    fn other_kinds_are_named_by_their_front_page() {
        let env = read(&[("FORGE_KIND", "gitlab"), ("FORGE_URL", "https://lab.example/")]);
        let env = env.expect("they read");
        assert_eq!(env.issue_url(), "https://lab.example/didericis/bot-bottle/-/issues/317");
        let list = env.variables();
        let again = parse_forge_env(|name| {
            list.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
        });
        assert_eq!(again, Ok(env));
        let env = read(&[("FORGE_KIND", "github"), ("FORGE_URL", "https://hub.example")]);
        let page = env.expect("they read").pull_url(4);
        assert_eq!(page, "https://hub.example/didericis/bot-bottle/pull/4");
        assert!(read(&[("FORGE_KIND", "svn")]).is_err());
        assert!(read(&[("FORGE_KIND", "github")]).is_err(), "it has no address");
    }

    #[test]
    fn a_folder_of_repositories_is_a_forge() {
        let env = read(&[("FORGE_URL", "file:///srv/git/"), ("FORGE_GITEA_API", "")]);
        let env = env.expect("they read");
        assert_eq!(env.kind, ForgeKind::Folder);
        assert_eq!(env.remote_url(), "file:///srv/git/didericis/bot-bottle.git");
        let page = "file:///srv/git/didericis/bot-bottle.git.forge/threads/000317.json";
        assert_eq!(env.issue_url(), page);
        let list = env.variables();
        let again = parse_forge_env(|name| {
            list.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
        });
        assert_eq!(again, Ok(env));
        let relative = read(&[("FORGE_URL", "file://srv"), ("FORGE_GITEA_API", "")]);
        assert!(relative.expect_err("refused").to_string().contains("file:///absolute/path"));
    }

    /// The sidecar opens the same forge, so it needs the same permission.
    #[test]
    fn plain_http_is_allowed_by_a_variable_that_goes_along() {
        let refused = read(&[]).expect("they read");
        assert_eq!(refused.plain_http(), PlainHttp::Refused);
        let allowed = read(&[("FORGE_ALLOW_HTTP", "1")]).expect("they read");
        assert_eq!(allowed.plain_http(), PlainHttp::Allowed);
        assert!(allowed.variables().contains(&("FORGE_ALLOW_HTTP", "1".to_owned())));
        let record = serde_json::to_value(&refused).expect("it renders");
        assert_eq!(record.get("allow_http"), None, "records of earlier versions have none");
        assert_eq!(serde_json::from_value::<ForgeEnv>(record).expect("it reads"), refused);
    }

    #[test]
    fn what_is_missing_or_odd_is_named() {
        let said = |change| read(&[change]).expect_err("refused").to_string();
        assert!(said(("FORGE_OWNER", " ")).contains("FORGE_OWNER is not set"));
        assert!(said(("FORGE_ISSUE_NUMBER", "0")).contains("from 1"));
        assert!(said(("FORGE_REPO", "../x")).contains("FORGE_REPO"));
        assert!(said(("FORGE_GITEA_API", "https://u:p@h/api/v1")).contains("FORGE_GITEA_API"));
        assert!(said(("FORGE_GITEA_API", "ftp://h/api/v1")).contains("FORGE_GITEA_API"));
        assert!(said(("FORGE_WATCHDOG_TIMEOUT", "soon")).contains("FORGE_WATCHDOG_TIMEOUT"));
    }
}
