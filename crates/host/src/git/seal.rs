//! Environment and flags of sealed git calls, in one place.
//!
//! A repository that holds an agent's objects is data. Configuration, attributes, replacement refs, grafts
//! and commit-graph files, by which git can be made to run a program or to trust false data, have no effect.

use std::ffi::OsString;
use std::path::Path;

use super::call::argv_with;

/// Hash algorithm of a repository's object ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectFormat {
    /// 40 digits.
    Sha1,
    /// 64 digits.
    Sha256,
}

impl ObjectFormat {
    /// Returns git's name for the format.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Sha1, Self::Sha256].into_iter().find(|format| format.as_str() == text)
    }

    /// Returns the id of the empty tree, which git knows without having the object.
    pub fn empty_tree(self) -> &'static str {
        match self {
            Self::Sha1 => "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
            Self::Sha256 => "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
        }
    }

    /// Returns the id that means "no object".
    pub(super) fn zero(self) -> String {
        "0".repeat(self.empty_tree().len())
    }
}

/// Variables of every sealed call; there are no others.
const ENV: [(&str, &str); 16] = [
    ("PATH", "/usr/bin:/bin"),
    ("HOME", "/nonexistent"),
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "/bin/false"),
    ("GIT_SSH_COMMAND", "/bin/false"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_GRAFT_FILE", "/dev/null"),
    ("GIT_ALLOW_PROTOCOL", "file"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "/bin/false"),
];

const WITHOUT_GRAPH: &str = "core.commitGraph=false";

/// Settings of every sealed call, which outrank those of any file.
const SETTINGS: [&str; 19] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    WITHOUT_GRAPH,
    "transfer.fsckObjects=true",
    "fetch.fsckObjects=true",
    "gc.auto=0",
    "maintenance.auto=false",
    "fetch.writeCommitGraph=false",
    "protocol.allow=never",
    "protocol.file.allow=always",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=no",
    "safe.bareRepository=explicit",
    "credential.helper=",
    "gpg.program=/bin/false",
    "log.showSignature=false",
    "core.symlinks=false",
    // The empty graft file is intended; git's advice about it would fill the logs.
    "advice.graftFileDeprecated=false",
];

/// Variables that keep a call from trusting or running anything unexpected. A push needs the user's
/// configuration and credentials, and has these besides.
const ENV_OF_PUSH: [(&str, &str); 5] = [
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_GRAFT_FILE", "/dev/null"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "/bin/false"),
];

/// Overrides of settings that the user may have made for their own pushes; ours sends one commit to one
/// branch.
const SETTINGS_OF_PUSH: [&str; 13] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.commitGraph=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "safe.bareRepository=explicit",
    "push.followTags=false",
    "push.gpgSign=false",
    "push.recurseSubmodules=no",
    "push.pushOption=",
    "push.negotiate=false",
];

/// Returns the whole environment of a sealed call. Attributes come from the empty tree, so that no file in a
/// commit can name a filter or a diff driver.
pub(super) fn sealed_env(format: ObjectFormat) -> Vec<(OsString, OsString)> {
    let mut env = init_env();
    env.push(("GIT_ATTR_SOURCE".into(), format.empty_tree().into()));
    env
}

/// Returns the environment for creating a repository, which has no tree to name yet.
pub(super) fn init_env() -> Vec<(OsString, OsString)> {
    ENV.iter().map(|&(name, value)| (name.into(), value.into())).collect()
}

/// Returns the flags before the command of a sealed call.
pub(super) fn sealed_flags(git_dir: Option<&Path>) -> Vec<OsString> {
    flags(git_dir, &SETTINGS)
}

pub(super) fn believe_commit_graph(flags: &mut [OsString]) {
    for flag in flags.iter_mut().filter(|flag| *flag == WITHOUT_GRAPH) {
        *flag = "core.commitGraph=true".into();
    }
}

/// Returns the variables that a push adds to the user's environment.
pub(super) fn push_env(format: ObjectFormat) -> Vec<(&'static str, &'static str)> {
    let attributes = ("GIT_ATTR_SOURCE", format.empty_tree());
    ENV_OF_PUSH.into_iter().chain([attributes]).collect()
}

/// Returns the flags before the command of a push.
pub(super) fn push_flags(git_dir: &Path) -> Vec<OsString> {
    flags(Some(git_dir), &SETTINGS_OF_PUSH)
}

fn flags(git_dir: Option<&Path>, settings: &[&str]) -> Vec<OsString> {
    let git_dir = git_dir.map(|git_dir| {
        let mut flag = OsString::from("--git-dir=");
        flag.push(git_dir);
        flag
    });
    let settings = settings.iter().flat_map(|&setting| ["-c".into(), setting.into()]);
    argv_with("--no-pager", git_dir.into_iter().chain(settings))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(parts: &[OsString]) -> String {
        parts.join(" ".as_ref()).into_string().unwrap().replace(" -c ", "\n-c ")
    }

    #[test]
    fn the_sealed_environment_is_exactly_this() {
        let env = sealed_env(ObjectFormat::Sha1);
        let lines = env.into_iter().map(|(name, value)| text(&[name, value]));
        insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r"
        PATH /usr/bin:/bin
        HOME /nonexistent
        LC_ALL C
        GIT_CONFIG_NOSYSTEM 1
        GIT_CONFIG_GLOBAL /dev/null
        GIT_TERMINAL_PROMPT 0
        GIT_ASKPASS /bin/false
        GIT_SSH_COMMAND /bin/false
        GIT_NO_LAZY_FETCH 1
        GIT_NO_REPLACE_OBJECTS 1
        GIT_GRAFT_FILE /dev/null
        GIT_ALLOW_PROTOCOL file
        GIT_OPTIONAL_LOCKS 0
        GIT_LITERAL_PATHSPECS 1
        GIT_PAGER cat
        GIT_EDITOR /bin/false
        GIT_ATTR_SOURCE 4b825dc642cb6eb9a060e54bf8d69288fbee4904
        ");
    }

    #[test]
    fn the_sealed_flags_are_exactly_these() {
        insta::assert_snapshot!(text(&sealed_flags(Some(Path::new("/r/host.git")))), @r"
        --no-pager --git-dir=/r/host.git
        -c core.hooksPath=/dev/null
        -c core.fsmonitor=false
        -c core.attributesFile=/dev/null
        -c core.commitGraph=false
        -c transfer.fsckObjects=true
        -c fetch.fsckObjects=true
        -c gc.auto=0
        -c maintenance.auto=false
        -c fetch.writeCommitGraph=false
        -c protocol.allow=never
        -c protocol.file.allow=always
        -c submodule.recurse=false
        -c fetch.recurseSubmodules=no
        -c safe.bareRepository=explicit
        -c credential.helper=
        -c gpg.program=/bin/false
        -c log.showSignature=false
        -c core.symlinks=false
        -c advice.graftFileDeprecated=false
        ");
    }

    #[test]
    fn a_push_has_these_flags() {
        insta::assert_snapshot!(text(&push_flags(Path::new("/r/host.git"))), @r"
        --no-pager --git-dir=/r/host.git
        -c core.hooksPath=/dev/null
        -c core.fsmonitor=false
        -c core.attributesFile=/dev/null
        -c core.commitGraph=false
        -c gc.auto=0
        -c maintenance.auto=false
        -c submodule.recurse=false
        -c safe.bareRepository=explicit
        -c push.followTags=false
        -c push.gpgSign=false
        -c push.recurseSubmodules=no
        -c push.pushOption=
        -c push.negotiate=false
        ");
    }

    #[test]
    fn a_format_is_read_as_git_spells_it() {
        assert_eq!(ObjectFormat::parse("sha256"), Some(ObjectFormat::Sha256));
        assert_eq!(ObjectFormat::parse("sha3"), None);
        assert_eq!(ObjectFormat::Sha1.zero().len(), 40);
        assert_eq!(ObjectFormat::Sha256.zero().len(), 64);
    }
}
