//! The forge's variables: where it is, which repository, which issue. They are for the sidecar and the host; none of
//! them reaches the agent.

use serde::{Deserialize, Serialize};

/// The variable with the token. It is no part of [`ForgeEnv`], which is written down.
pub(crate) const TOKEN_VARIABLE: &str = "FORGE_TOKEN";

/// Half an hour.
const WATCHDOG_SECS: u64 = 1800;

const DEFAULT_ORG: &str = "bot-bottle";

/// What a forge run is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ForgeEnv {
    /// The base of the API, such as `https://git.example/api/v1`.
    pub(crate) api: String,
    pub(crate) owner: String,
    pub(crate) repo: String,
    /// The assigned issue: it defines what may be written to.
    pub(crate) issue: u64,
    /// The assigned pull request, once there is one.
    pub(crate) pull: Option<u64>,
    /// Whose members may assign issues to agents.
    pub(crate) org: String,
    /// Seconds without a word from the agent's side after which the run counts as done without a report.
    pub(crate) watchdog_secs: u64,
}

/// What is wrong with the variables.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ForgeEnvFault {
    #[error("{0} is not set; a forge run needs it, see: bot-bottle orchestrate start --help")]
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
    let api = needed("FORGE_GITEA_API")?;
    if web_of(&api).is_none() {
        let rule = "give http(s)://host[:port][/path]/api/v1";
        return Err(wrong("FORGE_GITEA_API", &api, rule));
    }
    let name = |variable| {
        let text = needed(variable)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        match text.chars().all(plain) && !text.starts_with('.') {
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
        watchdog_secs: optional("FORGE_WATCHDOG_TIMEOUT")?.unwrap_or(WATCHDOG_SECS),
        api,
    })
}

fn wrong(name: &'static str, value: &str, rule: &'static str) -> ForgeEnvFault {
    let value = value.escape_debug().take(80).collect();
    ForgeEnvFault::Wrong { name, value, rule }
}

/// The front page that an API base belongs to.
fn web_of(api: &str) -> Option<&str> {
    let web = api.trim_end_matches('/').strip_suffix("/api/v1")?;
    let rest = web.strip_prefix("https://").or_else(|| web.strip_prefix("http://"))?;
    let plain = !rest.is_empty() && !rest.contains(['@', '?', '#', ' ']);
    plain.then_some(web)
}

impl ForgeEnv {
    /// The forge's front page.
    pub(crate) fn web(&self) -> &str {
        web_of(&self.api).unwrap_or(&self.api)
    }

    /// The repository's address there.
    pub(crate) fn remote_url(&self) -> String {
        format!("{}/{}/{}.git", self.web(), self.owner, self.repo)
    }

    /// The issue's page.
    pub(crate) fn issue_url(&self) -> String {
        format!("{}/{}/{}/issues/{}", self.web(), self.owner, self.repo, self.issue)
    }

    /// A pull request's page.
    pub(crate) fn pull_url(&self, number: u64) -> String {
        format!("{}/{}/{}/pulls/{number}", self.web(), self.owner, self.repo)
    }

    /// The same as variables again, for the sidecar.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let mut list = vec![
            ("FORGE_GITEA_API", self.api.clone()),
            ("FORGE_OWNER", self.owner.clone()),
            ("FORGE_REPO", self.repo.clone()),
            ("FORGE_ISSUE_NUMBER", self.issue.to_string()),
            ("FORGE_ORG", self.org.clone()),
            ("FORGE_WATCHDOG_TIMEOUT", self.watchdog_secs.to_string()),
        ];
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
        let env = read(&[("FORGE_PR_NUMBER", "318"), ("FORGE_ORG", "agents")]).expect("they read");
        let list = env.variables();
        let again = parse_forge_env(|name| {
            list.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
        });
        assert_eq!(again, Ok(env));
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
