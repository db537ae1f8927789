//! Which commit a name means, and how two commits are related.

use std::ffi::OsString;

use model::id::Sha;

use super::GitError;
use super::call::{Answer, Call, Git, args};

impl Git {
    pub(super) async fn resolve_commit(&self, rev: &str) -> Result<Option<Sha>, GitError> {
        let answer = self.ask(Call::new(argv_resolve(rev))).await?;
        read_commit(&answer)
    }

    pub(super) async fn is_ancestor(&self, older: &Sha, newer: &Sha) -> Result<bool, GitError> {
        let answer = self.ask(Call::new(argv_is_ancestor(older, newer))).await?;
        read_yes_no(&answer)
    }

    pub(super) async fn merge_base(&self, one: &Sha, other: &Sha) -> Result<Option<Sha>, GitError> {
        let answer = self.ask(Call::new(argv_merge_base(one, other))).await?;
        read_commit(&answer)
    }
}

fn argv_resolve(rev: &str) -> Vec<OsString> {
    let commit = format!("{rev}^{{commit}}");
    args(["rev-parse", "--verify", "--quiet", "--end-of-options", &commit])
}

fn argv_is_ancestor(older: &Sha, newer: &Sha) -> Vec<OsString> {
    args(["merge-base", "--is-ancestor", older.as_str(), newer.as_str()])
}

fn argv_merge_base(one: &Sha, other: &Sha) -> Vec<OsString> {
    args(["merge-base", one.as_str(), other.as_str()])
}

/// Status 1 means that there is none; any other failure means that git could not tell.
fn read_commit(answer: &Answer) -> Result<Option<Sha>, GitError> {
    match answer.status {
        0 => read_sha(answer).map(Some),
        1 => Ok(None),
        _ => Err(answer.failure()),
    }
}

fn read_yes_no(answer: &Answer) -> Result<bool, GitError> {
    match answer.status {
        0 => Ok(true),
        1 => Ok(false),
        _ => Err(answer.failure()),
    }
}

fn read_sha(answer: &Answer) -> Result<Sha, GitError> {
    let text = String::from_utf8_lossy(&answer.stdout);
    let line = text.lines().next().unwrap_or_default();
    Sha::parse(line).map_err(|error| answer.unreadable(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: i32, stdout: &str) -> Answer {
        Answer {
            args: "x".to_owned(),
            status,
            stdout: stdout.as_bytes().to_vec(),
            stderr: b"fatal: no\n".to_vec(),
            truncated: false,
        }
    }

    #[test]
    fn a_name_cannot_pass_for_an_option() {
        let argv = argv_resolve("--output=x").join(" ".as_ref()).into_string().unwrap();
        insta::assert_snapshot!(argv, @"rev-parse --verify --quiet --end-of-options --output=x^{commit}");
    }

    #[test]
    fn yes_no_and_cannot_tell_are_three_answers() {
        assert!(read_yes_no(&answer(0, "")).unwrap());
        assert!(!read_yes_no(&answer(1, "")).unwrap());
        let error = read_yes_no(&answer(128, "")).unwrap_err();
        assert_eq!(error.to_string(), "git x failed (status 128): fatal: no");
    }

    #[test]
    fn a_commit_is_there_or_not_or_unreadable() {
        let sha = "a".repeat(40);
        assert_eq!(read_commit(&answer(0, &format!("{sha}\n"))).unwrap().unwrap().as_str(), sha);
        assert_eq!(read_commit(&answer(1, "")).unwrap(), None);
        assert!(matches!(read_commit(&answer(0, "abc")), Err(GitError::Parse { .. })));
        assert!(matches!(read_commit(&answer(128, "")), Err(GitError::Failed { .. })));
    }
}
