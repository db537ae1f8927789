//! The forge's variables: where it is, which repository, which issue. They are for the sidecar and the host; none of
//! them reaches the agent.

use serde::{Deserialize, Serialize};

/// The variable with the token. It is no part of [`ForgeEnv`], which is written down.
pub(crate) const TOKEN_VARIABLE: &str = "FORGE_TOKEN";

/// Half an hour.
const WATCHDOG_SECS: u64 = 1800;

/// Whose members may assign issues to agents, where nobody says otherwise.
pub(crate) const DEFAULT_ORG: &str = "bot-bottle";

/// The kinds of forges, as they are called here.
const KINDS: [&str; 3] = ["gitea", "github", "gitlab"];

/// What a forge run is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ForgeEnv {
    /// `gitea` (which Forgejo is too), `github` or `gitlab`.
    pub(crate) kind: String,
    /// The forge's front page, such as `https://git.example`.
    pub(crate) web: String,
    pub(crate) owner: String,
    pub(crate) repo: String,
    /// The assigned issue: it defines what may be written to.
    pub(crate) issue: u64,
    /// The assigned pull request, once there is one.
    pub(crate) pull: Option<u64>,
    /// Whose members may assign issues to agents.
    pub(crate) org: String,
    /// Who else may say what is to be done; members of the organisation always may.
    #[serde(default)]
    pub(crate) triggers: Vec<String>,
    /// Seconds without a word from the agent's side after which the run counts as done without a report.
    pub(crate) watchdog_secs: u64,
}

/// What is wrong with the variables.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ForgeEnvFault {
    #[error("{0} is not set; a forge run needs it")]
    Missing(&'static str),
    #[error("{name} cannot be '{value}': {rule}")]
    Wrong { name: &'static str, value: String, rule: &'static str },
}

/// Reads the variables.
pub(crate) fn parse_forge_env(
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<ForgeEnv, ForgeEnvFault> {
    let given =
        |name: &str| lookup(name).map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
    let needed = |name| given(name).ok_or(ForgeEnvFault::Missing(name));
    let kind = given("FORGE_KIND").unwrap_or_else(|| "gitea".to_owned());
    let web = match kind.as_str() {
        "gitea" => {
            let api = needed("FORGE_GITEA_API")?;
            let rule = "give http(s)://host[:port][/path]/api/v1";
            web_of_api(&api).ok_or_else(|| wrong("FORGE_GITEA_API", &api, rule))?
        }
        known if KINDS.contains(&known) => {
            let url = needed("FORGE_URL")?;
            parse_web(&url)
                .ok_or_else(|| wrong("FORGE_URL", &url, "give http(s)://host[:port][/path]"))?
        }
        other => return Err(wrong("FORGE_KIND", other, "gitea, github or gitlab")),
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
        kind,
        web,
    })
}

fn wrong(name: &'static str, value: &str, rule: &'static str) -> ForgeEnvFault {
    let value = value.escape_debug().take(80).collect();
    ForgeEnvFault::Wrong { name, value, rule }
}

/// Of an owner (where groups are within groups: of each) and of a repository.
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !text.is_empty() && text.chars().all(plain) && !text.starts_with('.')
}

/// The front page that a Gitea's API base belongs to.
pub(super) fn web_of_api(api: &str) -> Option<String> {
    api.trim_end_matches('/').strip_suffix("/api/v1").and_then(parse_web)
}

/// A front page without credentials and without anything behind it.
fn parse_web(url: &str) -> Option<String> {
    let web = url.trim_end_matches('/');
    let rest = web.strip_prefix("https://").or_else(|| web.strip_prefix("http://"))?;
    let plain = !rest.is_empty() && !rest.contains(['@', '?', '#', ' ']);
    plain.then(|| web.to_owned())
}

impl ForgeEnv {
    /// The repository's address there.
    pub(crate) fn remote_url(&self) -> String {
        format!("{}/{}/{}.git", self.web, self.owner, self.repo)
    }

    /// The issue's page.
    pub(crate) fn issue_url(&self) -> String {
        let inner = if self.kind == "gitlab" { "-/issues" } else { "issues" };
        format!("{}/{}/{}/{inner}/{}", self.web, self.owner, self.repo, self.issue)
    }

    /// A pull request's page.
    pub(crate) fn pull_url(&self, number: u64) -> String {
        let inner = match self.kind.as_str() {
            "gitlab" => "-/merge_requests",
            "github" => "pull",
            _ => "pulls",
        };
        format!("{}/{}/{}/{inner}/{number}", self.web, self.owner, self.repo)
    }

    /// The same as variables again, for the sidecar.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let mut list = match self.kind.as_str() {
            "gitea" => vec![("FORGE_GITEA_API", format!("{}/api/v1", self.web))],
            _ => vec![("FORGE_KIND", self.kind.clone()), ("FORGE_URL", self.web.clone())],
        };
        list.extend([
            ("FORGE_OWNER", self.owner.clone()),
            ("FORGE_REPO", self.repo.clone()),
            ("FORGE_ISSUE_NUMBER", self.issue.to_string()),
            ("FORGE_ORG", self.org.clone()),
            ("FORGE_WATCHDOG_TIMEOUT", self.watchdog_secs.to_string()),
        ]);
        if !self.triggers.is_empty() {
            list.push(("FORGE_TRIGGERS", self.triggers.join(",")));
        }
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
