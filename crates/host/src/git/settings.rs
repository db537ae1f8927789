//! What a person's configuration says that has to be known beforehand, all asked at once.

use std::ffi::OsString;

use model::id::RemoteName;

use super::GitError;
use super::call::{Git, GitCall, GitOutput, args};

/// The settings that matter: ways to answer a prompt, remotes, and the marks of a partial clone.
const PATTERN: &str = r"^(core\.(askpass|sshcommand)|extensions\.partialclone|remote\..*\.(url|promisor|partialclonefilter))$";

/// The names of the settings that are set, of those that matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GitSettings {
    names: Vec<String>,
}

impl GitSettings {
    /// Asks git, which reads every file that the person has.
    pub(super) async fn observe(git: &Git) -> Result<Self, GitError> {
        read_settings(&git.ask(GitCall::new(argv_settings())).await?)
    }

    /// The person has a program that answers for them when git asks for a password.
    pub(super) fn has_askpass(&self) -> bool {
        self.has("core.askpass")
    }

    /// The person has chosen how ssh is called.
    pub(super) fn has_ssh_command(&self) -> bool {
        self.has("core.sshcommand")
    }

    /// A clone that left objects behind says so in either of two places, by the age of its git.
    pub(super) fn is_partial_clone(&self) -> bool {
        let marks = [".promisor", ".partialclonefilter"];
        self.has("extensions.partialclone")
            || self.names.iter().any(|name| marks.iter().any(|mark| name.ends_with(mark)))
    }

    /// There is a remote of this name, and it leads somewhere.
    pub(super) fn has_remote(&self, remote: &RemoteName) -> bool {
        self.has(&format!("remote.{remote}.url"))
    }

    fn has(&self, wanted: &str) -> bool {
        self.names.iter().any(|name| name == wanted)
    }
}

fn argv_settings() -> Vec<OsString> {
    args(["config", "-z", "--name-only", "--get-regexp", PATTERN])
}

/// Status 1 means that nothing of all this is set. Git writes names in small letters, but for the name of a remote.
fn read_settings(answer: &GitOutput) -> Result<GitSettings, GitError> {
    match answer.status {
        0 | 1 => {}
        _ => return Err(answer.failure()),
    }
    let names = answer.stdout.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    Ok(GitSettings {
        names: names.map(|name| String::from_utf8_lossy(name).into_owned()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(status: i32, stdout: &str) -> Result<GitSettings, GitError> {
        read_settings(&GitOutput {
            args: "config".to_owned(),
            status,
            stdout: stdout.as_bytes().to_vec(),
            stderr: b"fatal: bad config line 1".to_vec(),
            truncated: false,
        })
    }

    #[test]
    fn remotes_are_told_apart_by_their_whole_names() {
        let found = settings(0, "remote.origin.url\0remote.Up.url\0").unwrap();
        let has = |name: &str| found.has_remote(&RemoteName::parse(name).unwrap());
        assert!(has("origin") && has("Up"));
        assert!(!has("up") && !has("orig"));
        assert!(!found.is_partial_clone() && !found.has_askpass());
    }

    #[test]
    fn either_mark_tells_of_a_partial_clone() {
        for mark in
            ["extensions.partialclone", "remote.a.promisor", "remote.a.b.partialclonefilter"]
        {
            assert!(settings(0, &format!("core.askpass\0{mark}\0")).unwrap().is_partial_clone());
        }
    }

    #[test]
    fn nothing_set_is_no_failure_and_a_broken_file_is_one() {
        assert_eq!(settings(1, "").unwrap(), GitSettings { names: Vec::new() });
        assert!(matches!(settings(128, ""), Err(GitError::Failed { .. })));
    }
}
