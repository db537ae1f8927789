//! `project_profile.env`: how a project is built, tested, reviewed and merged. Every key has a default.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use forge::ForgeKind;
use model::env_file::EnvFile;
use serde::Serialize;

use super::agent_choice::{AgentChoice, AgentNames, parse_agent};
use super::agent_retry::{AgentRetryPolicy, parse_retry};
use super::compete::{Competitor, parse_compete};
use super::sparse::{SparseChoice, parse_sparse};
use super::workspace_setup::{WorkspaceSetup, parse_setup};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Profile {
    /// Relative to the worktree; none means that make is not used.
    pub(crate) makefile: Option<String>,
    pub(crate) suites: Vec<Suite>,
    /// The target of the merge gate; the unit suite's if none is named.
    pub(crate) merge_gate_target: Option<String>,
    pub(crate) test_in: TestIn,
    pub(crate) setup: WorkspaceSetup,
    pub(crate) sparse: SparseChoice,
    /// Variables that tests on the host get beside the usual ones.
    pub(crate) test_env: Vec<String>,
    pub(crate) implement_timeout: Duration,
    pub(crate) review_timeout: Duration,
    pub(crate) test_timeout: Duration,
    pub(crate) breakdown_timeout: Duration,
    /// Tries that a micro-commit gets in one run.
    pub(crate) rounds: usize,
    pub(crate) retry: AgentRetryPolicy,
    pub(crate) pause: Pause,
    /// The whole branch is reviewed before a merge.
    pub(crate) has_branch_review: bool,
    /// `None` lets `wf merge` choose from what the machine offers.
    pub(crate) merge_mode: Option<MergeMode>,
    /// The repository on the forge, if origin does not name it.
    pub(crate) forge_url: Option<String>,
    pub(crate) max_files: usize,
    pub(crate) max_lines: u64,
    pub(crate) forbidden_paths: Vec<String>,
    /// Only paths below these may change; empty means any path.
    pub(crate) allowed_paths: Vec<String>,
    pub(crate) implement: AgentChoice,
    /// Agents that implement the same micro-commit; none for the implementer alone.
    pub(crate) compete: Vec<Competitor>,
    pub(crate) review: AgentChoice,
    /// Agent that drafts plans; the reviewer by default.
    pub(crate) plan: AgentChoice,
    pub(crate) test_egress: String,
    pub(crate) agent_egress: String,
    /// Hosts that agents may reach beside what their profile allows.
    pub(crate) agent_allow: Vec<String>,
    /// Addresses of this network that count as public, such as that of a model server.
    pub(crate) permit_private: Vec<String>,
    /// The backend that boxes must come from; what the machine offers if none is named.
    pub(crate) box_backend: Option<String>,
    pub(crate) box_image: Option<String>,
    /// Free disk space in MiB below which no box starts or goes on.
    pub(crate) disk_floor_mb: u64,
    pub(crate) is_qa_strict: bool,
    pub(crate) docs_path: String,
    pub(crate) raw_requirements: Vec<String>,
    /// Folder of stories in the product.
    pub(crate) stories_path: String,
    pub(crate) notify_cmd: Vec<String>,
    pub(crate) secrets_implement: Vec<String>,
    pub(crate) secrets_test: Vec<String>,
    /// Paths in which what only looks like a secret may be committed.
    pub(crate) secrets_allowed: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) how: SuiteRunner,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SuiteRunner {
    /// A command of its own, by arguments and never by a shell.
    Command(Vec<String>),
    Make(String),
    /// Not at all, with the reason.
    Skip(&'static str),
}

impl SuiteRunner {
    /// The command line, or the reason why there is none.
    pub(crate) fn line(&self) -> Result<String, &'static str> {
        match self {
            Self::Command(argv) => Ok(argv.join(" ")),
            Self::Make(target) => Ok(format!("make {target}")),
            Self::Skip(why) => Err(why),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TestIn {
    Box,
    Host,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Pause {
    /// After every micro-commit.
    EveryCommit,
    /// At the gates that are there anyway.
    Gates,
}

/// Route of a finished workstream to the default branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
pub(crate) enum MergeMode {
    Local,
    Forge(ForgeKind),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} must be {rule}")]
pub(crate) struct ProfileError {
    pub(super) key: String,
    pub(super) rule: &'static str,
}

impl Profile {
    pub(crate) fn disk_floor_bytes(&self) -> u64 {
        self.disk_floor_mb.saturating_mul(1 << 20)
    }
}

impl MergeMode {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Forge(kind) => kind.merge_mode().unwrap_or_default(),
        }
    }

    fn all() -> impl Iterator<Item = Self> {
        let forges = ForgeKind::all().filter(|kind| kind.merge_mode().is_some());
        std::iter::once(Self::Local).chain(forges.map(Self::Forge))
    }
}

impl From<MergeMode> for &'static str {
    fn from(mode: MergeMode) -> Self {
        mode.word()
    }
}

/// Reads a profile; an empty file is a whole one.
#[cfg(test)]
pub(crate) fn parse_profile(file: &EnvFile) -> Result<Profile, ProfileError> {
    parse_known(file, &AgentNames::default()).map(|(profile, _)| profile)
}

/// Reads a profile, and returns all keys that mean something beside it.
pub(crate) fn parse_known(
    file: &EnvFile,
    agents: &AgentNames,
) -> Result<(Profile, BTreeSet<String>), ProfileError> {
    let keys = Keys { file, agents, known: RefCell::default() };
    let makefile = keys.get("MAKEFILE_PATH").unwrap_or("Makefile").to_owned();
    let docs_path = keys.text("DOCS_PATH", "docs");
    let stories_path = keys.text("STORIES_PATH", "stories");
    let paths =
        [("MAKEFILE_PATH", &makefile), ("DOCS_PATH", &docs_path), ("STORIES_PATH", &stories_path)];
    for (key, path) in paths {
        if !is_inside(path) {
            return Err(ProfileError { key: key.to_owned(), rule: "a path inside the repository" });
        }
    }
    let makefile = Some(makefile).filter(|path| !path.is_empty());
    let profile = Profile {
        suites: SUITES.map(|name| choose_suite(&keys, name, makefile.is_some())).to_vec(),
        merge_gate_target: keys.optional("MAKE_TARGET_MERGE_GATE_TEST"),
        makefile,
        test_in: keys.choice("TEST_IN", TestIn::Box, "box or host", |word| match word {
            "box" => Some(TestIn::Box),
            "host" => Some(TestIn::Host),
            _ => None,
        })?,
        setup: parse_setup(&keys)?,
        sparse: parse_sparse(&keys)?,
        implement_timeout: keys.seconds("IMPLEMENT_TIMEOUT", 1200)?,
        review_timeout: keys.seconds("REVIEW_TIMEOUT", 600)?,
        test_timeout: keys.seconds("TEST_TIMEOUT", 300)?,
        breakdown_timeout: keys.seconds("BREAKDOWN_TIMEOUT", 180)?,
        rounds: usize::try_from(keys.number("ROUNDS", 1)?).unwrap_or(usize::MAX),
        retry: parse_retry(&keys)?,
        pause: choose_pause(&keys)?,
        has_branch_review: keys.flag("BRANCH_REVIEW")?,
        merge_mode: keys.merge_mode()?,
        forge_url: keys.optional("FORGE_URL"),
        test_env: keys.list("TEST_ENV", ""),
        max_files: usize::try_from(keys.number("COMMITSIZE_MAX_FILES", 10)?).unwrap_or(usize::MAX),
        max_lines: keys.number("COMMITSIZE_MAX_LOC", 200)?,
        forbidden_paths: keys.list("FORBIDDEN_PATHS", "secrets/ .env"),
        allowed_paths: keys.list("ALLOWED_PATHS", ""),
        implement: parse_agent(&keys, "IMPLEMENT", None, &agents.implement)?,
        compete: parse_compete(&keys)?,
        review: parse_agent(&keys, "REVIEW", None, &agents.review)?,
        plan: parse_agent(&keys, "PLAN", Some("REVIEW"), &agents.review)?,
        test_egress: keys.egress("TEST_EGRESS", "none")?,
        agent_egress: keys.egress("AGENT_EGRESS", "model-only")?,
        agent_allow: keys.list("AGENT_ALLOW", ""),
        permit_private: keys.list("AGENT_PERMIT_PRIVATE", ""),
        box_backend: keys.choice("BOX_BACKEND", None, "docker or bwrap", |word| {
            ["docker", "bwrap"].contains(&word).then(|| Some(word.to_owned()))
        })?,
        box_image: keys.optional("BOX_IMAGE"),
        disk_floor_mb: keys.number("BOX_DISK_FLOOR_MB", 512)?,
        is_qa_strict: keys.flag("QA_STRICT")?,
        docs_path,
        raw_requirements: keys.list("RAW_REQUIREMENTS_PATHS", "requirements/raw"),
        stories_path,
        notify_cmd: keys.list("NOTIFY_CMD", ""),
        secrets_implement: keys.list("SECRETS_IMPLEMENT", ""),
        secrets_test: keys.list("SECRETS_TEST", ""),
        secrets_allowed: keys.list("SECRETS_ALLOWED_PATHS", ""),
    };
    Ok((profile, keys.known.into_inner()))
}

/// The suites in the order in which they run.
const SUITES: [&str; 4] = ["unit", "integration", "smoke", "e2e"];

/// A command of its own outranks a target, and a target its default.
fn choose_suite(keys: &Keys<'_>, name: &'static str, has_make: bool) -> Suite {
    let upper = name.to_ascii_uppercase();
    let command = keys.get(&format!("TEST_CMD_{upper}")).unwrap_or_default();
    let alias = if name == "unit" { keys.get("MAKE_TARGET_TEST") } else { None };
    let target = keys.get(&format!("MAKE_TARGET_{upper}")).or(alias);
    let target = target.map_or_else(|| format!("test-{name}"), str::to_owned);
    let how = if !command.is_empty() {
        SuiteRunner::Command(command.split_whitespace().map(str::to_owned).collect())
    } else if !has_make {
        SuiteRunner::Skip("no command configured and make is not used")
    } else if target.is_empty() {
        SuiteRunner::Skip("no target configured")
    } else {
        SuiteRunner::Make(target)
    };
    Suite { name, how }
}

fn choose_pause(keys: &Keys<'_>) -> Result<Pause, ProfileError> {
    let hitl = keys.choice("HITL_MODE", Pause::Gates, HITL_RULE, |word| match word {
        "strict" => Some(Pause::EveryCommit),
        "stage-only" | "exceptions" | "off" => Some(Pause::Gates),
        _ => None,
    })?;
    Ok(if keys.flag("SUPERVISED_MODE")? { Pause::EveryCommit } else { hitl })
}

const HITL_RULE: &str = "strict, stage-only, exceptions or off";

/// Reports whether a path stays inside the repository: relative and without `..`.
pub(crate) fn is_inside(path: &str) -> bool {
    !path.starts_with('/') && path.split('/').all(|part| part != "..")
}

/// Reads values by their meaning, and notes the keys that were asked for.
pub(super) struct Keys<'a> {
    file: &'a EnvFile,
    pub(super) agents: &'a AgentNames,
    known: RefCell<BTreeSet<String>>,
}

impl<'a> Keys<'a> {
    pub(super) fn note(&self, key: String) {
        self.known.borrow_mut().insert(key);
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        self.note(key.to_owned());
        self.file.get(key)
    }

    pub(super) fn optional(&self, key: &str) -> Option<String> {
        self.get(key).filter(|value| !value.is_empty()).map(str::to_owned)
    }

    pub(super) fn text(&self, key: &str, default: &str) -> String {
        self.optional(key).unwrap_or_else(|| default.to_owned())
    }

    pub(super) fn list(&self, key: &str, default: &str) -> Vec<String> {
        let text = self.get(key).unwrap_or(default);
        text.split_whitespace().map(str::to_owned).collect()
    }

    pub(super) fn choice<T>(
        &self,
        key: &str,
        default: T,
        rule: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ProfileError> {
        match self.get(key) {
            None | Some("") => Ok(default),
            Some(word) => read(word).ok_or_else(|| ProfileError { key: key.to_owned(), rule }),
        }
    }

    pub(super) fn number(&self, key: &str, default: u64) -> Result<u64, ProfileError> {
        Ok(self.positive(key, "a whole number of 1 or more")?.unwrap_or(default))
    }

    pub(super) fn positive(
        &self,
        key: &str,
        rule: &'static str,
    ) -> Result<Option<u64>, ProfileError> {
        self.choice(key, None, rule, |word| {
            word.parse().ok().filter(|&number| number >= 1).map(Some)
        })
    }

    /// A day is more than any stage should take, and keeps sums from overflowing.
    pub(super) fn seconds(&self, key: &str, default: u64) -> Result<Duration, ProfileError> {
        let rule = "a number of seconds from 1 to 86400";
        let secs = self.choice(key, default, rule, |word| {
            word.parse().ok().filter(|secs| (1..=86_400).contains(secs))
        })?;
        Ok(Duration::from_secs(secs))
    }

    pub(super) fn flag(&self, key: &str) -> Result<bool, ProfileError> {
        self.choice(key, false, "true or false", |word| match word {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        })
    }

    fn merge_mode(&self) -> Result<Option<MergeMode>, ProfileError> {
        self.choice("MERGE_MODE", None, "local, gitea_pr, github_pr or gitlab_mr", |word| {
            MergeMode::all().find(|mode| mode.word() == word).map(Some)
        })
    }

    pub(super) fn egress(&self, key: &str, default: &'static str) -> Result<String, ProfileError> {
        let profiles = ["none", "model-only", "packages", "open"];
        self.choice(key, default.to_owned(), "none, model-only, packages or open", |word| {
            profiles.contains(&word).then(|| word.to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Profile, ProfileError> {
        parse_profile(&EnvFile::parse(text).unwrap())
    }

    fn suite(text: &str, at: usize) -> SuiteRunner {
        read(text).unwrap().suites[at].how.clone()
    }

    fn make(target: &str) -> SuiteRunner {
        SuiteRunner::Make(target.to_owned())
    }

    #[test]
    fn an_empty_profile_has_the_defaults() {
        let profile = read("").unwrap();
        assert_eq!(profile.makefile.as_deref(), Some("Makefile"));
        assert_eq!(profile.implement_timeout, Duration::from_secs(1200));
        assert_eq!(profile.review_timeout, Duration::from_secs(600));
        assert_eq!((profile.max_files, profile.max_lines), (10, 200));
        assert_eq!(
            (profile.implement.provider.as_str(), profile.review.provider.as_str()),
            ("codex", "claude")
        );
        assert_eq!((profile.merge_mode, profile.pause), (None, Pause::Gates));
    }

    #[test]
    fn a_command_outranks_a_target_and_a_target_its_default() {
        assert_eq!(suite("", 0), make("test-unit"));
        assert_eq!(suite("MAKE_TARGET_TEST=check\n", 0), make("check"));
        assert_eq!(suite("MAKE_TARGET_TEST=check\nMAKE_TARGET_UNIT=u\n", 0), make("u"));
        let argv = ["npm", "run", "test:unit"].map(str::to_owned).to_vec();
        assert_eq!(suite("TEST_CMD_UNIT=\"npm run test:unit\"\n", 0), SuiteRunner::Command(argv));
        assert!(matches!(suite("MAKE_TARGET_E2E=\n", 3), SuiteRunner::Skip(_)));
    }

    #[test]
    fn an_empty_makefile_path_switches_make_off() {
        let text = "MAKEFILE_PATH=\nTEST_CMD_UNIT=\"npm test\"\nTEST_CMD_SMOKE=\"\"\n";
        assert_eq!(read(text).unwrap().makefile, None);
        assert!(matches!(suite(text, 0), SuiteRunner::Command(_)));
        assert!(matches!(suite(text, 2), SuiteRunner::Skip(_)));
    }

    #[test]
    fn the_sample_of_the_specification_is_read() {
        let text = "MAKEFILE_PATH=Makefile              # Path\nMERGE_MODE=github_pr                # How\nSUPERVISED_MODE=false               # true = require\n";
        assert_eq!(read(text).unwrap().merge_mode, Some(MergeMode::Forge(ForgeKind::GitHub)));
    }

    #[test]
    fn supervision_pauses_after_every_commit() {
        assert_eq!(read("SUPERVISED_MODE=true\n").unwrap().pause, Pause::EveryCommit);
        assert_eq!(read("HITL_MODE=strict\n").unwrap().pause, Pause::EveryCommit);
        assert_eq!(read("HITL_MODE=stage-only\n").unwrap().pause, Pause::Gates);
        assert_eq!(
            read("HITL_MODE=off\nSUPERVISED_MODE=true\n").unwrap().pause,
            Pause::EveryCommit
        );
    }

    #[test]
    fn bad_values_name_their_key() {
        for (text, key) in [
            ("TEST_TIMEOUT=0\n", "TEST_TIMEOUT"),
            ("REVIEW_TIMEOUT=ten\n", "REVIEW_TIMEOUT"),
            ("MERGE_MODE=svn\n", "MERGE_MODE"),
            ("HITL_MODE=maybe\n", "HITL_MODE"),
            ("QA_STRICT=yes\n", "QA_STRICT"),
            ("MAKEFILE_PATH=../Makefile\n", "MAKEFILE_PATH"),
            ("DOCS_PATH=/etc\n", "DOCS_PATH"),
            ("AGENT_REVIEW=gpt\n", "AGENT_REVIEW"),
            ("AGENT_REVIEW=command\n", "AGENT_REVIEW_CMD"),
            ("COMMITSIZE_MAX_FILES=-1\n", "COMMITSIZE_MAX_FILES"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(key), "{text}: {error}");
        }
    }
}
