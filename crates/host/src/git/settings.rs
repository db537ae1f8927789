//! The user's git settings that must be known in advance, read in one call.

use model::id::RemoteName;

use super::GitError;
use super::call::{Git, GitOutput, argv_with};
use super::parse::filled_fields;

/// Pattern of the relevant settings: ways to answer a prompt, remotes, and the marks of a partial clone.
const PATTERN: &str = r"^(core\.(askpass|sshcommand)|extensions\.partialclone|remote\..*\.(url|promisor|partialclonefilter))$";

/// Names of the relevant settings that are set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GitSettings {
    names: Vec<String>,
}

impl GitSettings {
    /// Runs git, which reads every configuration file of the user.
    pub(super) async fn observe(git: &Git) -> Result<Self, GitError> {
        let argv = argv_with("config -z --name-only --get-regexp", [PATTERN]);
        read_settings(&git.call(argv).await?)
    }

    /// Returns whether the user has a program that answers git's password prompts.
    pub(super) fn has_askpass(&self) -> bool {
        self.has("core.askpass")
    }

    pub(super) fn has_ssh_command(&self) -> bool {
        self.has("core.sshcommand")
    }

    /// Returns the settings that mark a partial clone; which of them there are depends on the version of git.
    pub(super) fn partial_clone_marks(&self) -> impl Iterator<Item = &str> {
        let marks = ["extensions.partialclone", ".promisor", ".partialclonefilter"];
        let is_mark = move |name: &&str| marks.iter().any(|mark| name.ends_with(mark));
        self.names.iter().map(String::as_str).filter(is_mark)
    }

    /// Returns whether a remote of this name exists and has a URL.
    pub(super) fn has_remote(&self, remote: &RemoteName) -> bool {
        self.has(&format!("remote.{remote}.url"))
    }

    fn has(&self, wanted: &str) -> bool {
        self.names.iter().any(|name| name == wanted)
    }
}

/// Reads the names. Git prints them in lower case, except for the name of a remote.
fn read_settings(answer: &GitOutput) -> Result<GitSettings, GitError> {
    answer.found()?;
    let names = filled_fields(&answer.stdout);
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
        assert!(found.partial_clone_marks().next().is_none() && !found.has_askpass());
    }

    #[test]
    fn either_mark_tells_of_a_partial_clone() {
        for mark in
            ["extensions.partialclone", "remote.a.promisor", "remote.a.b.partialclonefilter"]
        {
            let found = settings(0, &format!("core.askpass\0{mark}\0")).unwrap();
            assert_eq!(found.partial_clone_marks().collect::<Vec<_>>(), [mark]);
        }
    }

    #[test]
    fn nothing_set_is_no_failure_and_a_broken_file_is_one() {
        assert_eq!(settings(1, "").unwrap(), GitSettings { names: Vec::new() });
        assert!(matches!(settings(128, ""), Err(GitError::Failed { .. })));
    }
}
