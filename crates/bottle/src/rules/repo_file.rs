//! `.bot-bottle.toml`: what a repository says about its own bottles. It is read from the base branch, never from the work of
//! an agent.

use serde::Deserialize;

use super::agent_manifest::{AgentManifest, ManifestFault, parse_toml};

/// Name of the file, at the root of the repository.
pub(crate) const REPO_FILE: &str = ".bot-bottle.toml";

const CHECK_SECS: u64 = 1800;
const CHECK_ROUNDS: u32 = 2;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RepoFile {
    /// Line for the shell that a result must pass before it is published.
    pub(crate) check: Option<String>,
    pub(crate) check_timeout_secs: Option<u64>,
}

/// The check of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckRules {
    pub(crate) line: String,
    pub(crate) timeout_secs: u64,
    /// Runs that a failing check may cause, before the result is published as a draft.
    pub(crate) rounds: u32,
}

pub(crate) fn parse_repo_file(text: &str) -> Result<RepoFile, ManifestFault> {
    let file: RepoFile = parse_toml(text)?;
    match file.check.as_ref().is_some_and(|line| line.trim().is_empty()) {
        true => {
            let what = "give a line for the shell".to_owned();
            Err(ManifestFault::Value { key: "check", what })
        }
        false => Ok(file),
    }
}

/// Chooses the check: the operator's manifest comes before the repository. `None` if neither has one.
pub(crate) fn choose_check(manifest: &AgentManifest, file: &RepoFile) -> Option<CheckRules> {
    let line = manifest.check.as_ref().or(file.check.as_ref())?.clone();
    let secs = match manifest.check {
        Some(_) => manifest.check_timeout_secs,
        None => manifest.check_timeout_secs.or(file.check_timeout_secs),
    };
    let rounds = manifest.check_rounds.unwrap_or(CHECK_ROUNDS);
    Some(CheckRules { line, timeout_secs: secs.unwrap_or(CHECK_SECS), rounds })
}

#[cfg(test)]
mod tests {
    use super::super::agent_manifest::parse_agent;
    use super::*;

    #[test]
    fn the_operators_check_comes_before_the_repositorys() {
        let file =
            parse_repo_file("check = \"make test\"\ncheck_timeout_secs = 60\n").expect("read");
        let manifest =
            |text: &str| parse_agent(&format!("provider = \"pi\"\n{text}")).expect("read");
        let chosen = |text: &str| choose_check(&manifest(text), &file).expect("a check");
        let own = CheckRules { line: "make test".to_owned(), timeout_secs: 60, rounds: 2 };
        assert_eq!(chosen(""), own);
        let line = "true".to_owned();
        let expected = CheckRules { line, timeout_secs: 1800, rounds: 0 };
        assert_eq!(chosen("check = \"true\"\ncheck_rounds = 0"), expected);
        assert_eq!(choose_check(&manifest(""), &RepoFile::default()), None);
    }

    #[test]
    fn a_word_that_is_not_known_is_named() {
        let fault = parse_repo_file("chekc = \"x\"").expect_err("refused").to_string();
        assert!(fault.contains("chekc"), "{fault}");
        assert!(parse_repo_file("check = \"\"").is_err());
    }
}
