//! Git calls with the user's home, configuration and credentials, but without prompts.
//!
//! A run started by a timer cannot answer a password prompt, so each kind of prompt is disabled unless the
//! user has set up a program that answers it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::call::{Git, argv_with};
use super::settings::GitSettings;
use crate::env;

const ASKPASS: &str = "GIT_ASKPASS";
const SSH_COMMAND: &str = "GIT_SSH_COMMAND";
const CONFIG_COUNT: &str = "GIT_CONFIG_COUNT";
/// Variables by which the user may have chosen how prompts are answered.
const KEPT: [&str; 3] = [ASKPASS, SSH_COMMAND, "GIT_SSH"];

const FIXED: [(&str, &str); 7] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "/bin/false"),
    ("LC_ALL", "C"),
];

const SETTINGS: [&str; 7] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "fetch.writeCommitGraph=false",
    "submodule.recurse=false",
    "credential.interactive=false",
];

/// Environment of the user, cleaned for calling git on their behalf.
#[derive(Clone)]
pub struct UserEnv {
    vars: Vec<(OsString, OsString)>,
}

impl std::fmt::Debug for UserEnv {
    /// Prints names only: values may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.vars.iter().map(|(name, _)| name)).finish()
    }
}

impl UserEnv {
    pub fn from_env() -> Self {
        Self::new(env::vars_os())
    }

    /// Takes an environment and drops every variable that could point git elsewhere, such as the `GIT_DIR`
    /// that git sets for hooks and aliases.
    pub fn new(vars: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let fixed = FIXED.iter().map(|&(name, value)| (name.into(), value.into()));
        let kept = vars.into_iter().filter(|(name, _)| name != "LC_ALL" && is_kept(name));
        Self { vars: kept.chain(fixed).collect() }
    }

    /// Sets one variable, for credentials that this program provides.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.vars.retain(|(known, _)| known != name);
        self.vars.push((name.into(), value.into()));
        self
    }

    pub(super) fn into_vars(self) -> Vec<(OsString, OsString)> {
        self.vars
    }

    fn has(&self, name: &str) -> bool {
        self.vars.iter().any(|(known, _)| known == name)
    }
}

fn is_kept(name: &OsStr) -> bool {
    !name.as_bytes().starts_with(b"GIT_") || KEPT.iter().any(|kept| name == *kept)
}

/// Returns the flags before the command of a call in the user's repository.
pub(super) fn user_flags() -> Vec<OsString> {
    argv_with("--no-pager", SETTINGS.iter().flat_map(|&setting| ["-c", setting]))
}

/// Disables the prompts for which the user has not set up an answering program.
pub(super) fn close_prompts(git: &mut Git, settings: &GitSettings) {
    let env = UserEnv { vars: git.env.clone() };
    if !env.has(ASKPASS) && !settings.has_askpass() {
        git.set_env(ASKPASS, "/bin/false");
    }
    let has_ssh = env.has(SSH_COMMAND) || env.has("GIT_SSH");
    if !has_ssh && !settings.has_ssh_command() {
        git.set_env(SSH_COMMAND, "ssh -oBatchMode=yes");
    }
}

/// Keeps git from rewriting a URL: the user's rules have been applied to it, and git applies each of them once. The longest
/// prefix decides, and no prefix is longer than the URL.
pub(super) fn keep_url(git: &mut Git, url: &str) {
    for rule in ["insteadOf", "pushInsteadOf"] {
        add_setting(git, format!("url.{url}.{rule}"), url);
    }
}

/// Adds a setting to those that the environment has, such as the header with the token of a forge.
fn add_setting(git: &mut Git, key: String, value: &str) {
    let known = git.env.iter().find(|(name, _)| name == CONFIG_COUNT);
    let count = known.and_then(|(_, count)| count.to_str()?.parse().ok()).unwrap_or(0_usize);
    git.set_env(CONFIG_COUNT, (count + 1).to_string());
    git.set_env(&format!("GIT_CONFIG_KEY_{count}"), key);
    git.set_env(&format!("GIT_CONFIG_VALUE_{count}"), value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_of(vars: &[(&str, &str)]) -> Vec<String> {
        let vars = vars.iter().map(|&(name, value)| (name.into(), value.into()));
        let mut names: Vec<_> = UserEnv::new(vars)
            .vars
            .into_iter()
            .filter(|(name, _)| !FIXED.iter().any(|(fixed, _)| name == fixed))
            .map(|(name, _)| name.into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_points_git_elsewhere_is_dropped() {
        let vars = [
            ("HOME", "/h"),
            ("GIT_DIR", "/evil"),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_EXEC_PATH", "/evil"),
            ("GIT_SSH_COMMAND", "ssh -i key"),
            ("SSH_AUTH_SOCK", "/s"),
        ];
        assert_eq!(names_of(&vars), ["GIT_SSH_COMMAND", "HOME", "SSH_AUTH_SOCK"]);
    }

    #[test]
    fn the_language_is_always_ours() {
        let env = UserEnv::new([("LC_ALL".into(), "de_DE.UTF-8".into())]);
        let found: Vec<_> = env.vars.iter().filter(|(name, _)| name == "LC_ALL").collect();
        assert_eq!(found, [&(OsString::from("LC_ALL"), OsString::from("C"))]);
    }

    fn plain_git() -> Git {
        Git {
            program: "git".into(),
            cwd: "/".into(),
            env: Vec::new(),
            flags: Vec::new(),
            log: None,
            cancel: crate::signal::Cancel::new(),
        }
    }

    #[test]
    fn an_address_is_kept_beside_the_settings_that_are_there() {
        let env = UserEnv::new([])
            .with(CONFIG_COUNT, "1")
            .with("GIT_CONFIG_KEY_0", "http.https://forge/.extraHeader")
            .with("GIT_CONFIG_VALUE_0", "Authorization: token x");
        let mut git = Git { env: env.into_vars(), ..plain_git() };
        keep_url(&mut git, "https://forge/a");
        let value = |name: &str| {
            let found = git.env.iter().filter(|(known, _)| known == name);
            found.map(|(_, value)| value.to_str().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(value(CONFIG_COUNT), ["3"]);
        assert_eq!(value("GIT_CONFIG_KEY_0"), ["http.https://forge/.extraHeader"]);
        assert_eq!(value("GIT_CONFIG_KEY_2"), ["url.https://forge/a.pushInsteadOf"]);
    }

    #[test]
    fn an_environment_does_not_show_its_values() {
        let env = UserEnv::new([("TOKEN".into(), "hunter2".into())]);
        assert!(!format!("{env:?}").contains("hunter2"));
    }

    #[test]
    fn the_flags_for_a_person_are_exactly_these() {
        let flags = user_flags().join(" ".as_ref()).into_string().unwrap();
        insta::assert_snapshot!(flags.replace(" -c ", "\n-c "), @r"
        --no-pager
        -c core.hooksPath=/dev/null
        -c core.fsmonitor=false
        -c gc.auto=0
        -c maintenance.auto=false
        -c fetch.writeCommitGraph=false
        -c submodule.recurse=false
        -c credential.interactive=false
        ");
    }
}
