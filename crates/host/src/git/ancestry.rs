//! Resolution of names to commits, and ancestry between commits.

use std::ffi::OsString;
use std::fmt::Display;

use model::id::Sha;

use super::GitError;
use super::call::{Git, GitCall, GitOutput, args};

impl Git {
    pub(super) async fn resolve_commit(&self, rev: &str) -> Result<Option<Sha>, GitError> {
        let answer = self.ask(GitCall::new(argv_resolve(rev))).await?;
        read_commit(&answer)
    }

    /// Resolves many names in one call, in the order given. Names are whole refs or ids, so none contains a
    /// line break.
    pub(super) async fn resolve_all(
        &self,
        names: &[impl Display],
    ) -> Result<Vec<Option<Sha>>, GitError> {
        self.find_all(names, "commit").await
    }

    /// Returns the trees of many commits, in the order given; `None` for a missing commit.
    pub(super) async fn trees_of(&self, commits: &[Sha]) -> Result<Vec<Option<Sha>>, GitError> {
        self.find_all(commits, "tree").await
    }

    /// Returns those of the commits whose own tree is missing.
    pub(super) async fn without_tree(&self, commits: &[Sha]) -> Result<Vec<Sha>, GitError> {
        let found = self.find_all(commits, "tree").await?;
        let lost = commits.iter().zip(found).filter(|(_, tree)| tree.is_none());
        Ok(lost.map(|(commit, _)| commit.clone()).collect())
    }

    /// Resolves names to objects of one kind.
    async fn find_all(
        &self,
        names: &[impl Display],
        kind: &str,
    ) -> Result<Vec<Option<Sha>>, GitError> {
        let input: String = names.iter().map(|name| format!("{name}^{{{kind}}}\n")).collect();
        let call = GitCall::new(args(["cat-file", "--batch-check=%(objectname)"]));
        let answer = self.ask(call.reading(input.as_bytes())).await?.success()?;
        read_found(&answer, names.len())
    }

    pub(super) async fn is_ancestor(&self, older: &Sha, newer: &Sha) -> Result<bool, GitError> {
        let answer = self.ask(GitCall::new(argv_is_ancestor(older, newer))).await?;
        read_yes_no(&answer)
    }

    pub(super) async fn merge_base(&self, one: &Sha, other: &Sha) -> Result<Option<Sha>, GitError> {
        let answer = self.ask(GitCall::new(argv_merge_base(one, other))).await?;
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

/// Reads the commit. Status 1 means that there is none; any other failure is git's own.
fn read_commit(answer: &GitOutput) -> Result<Option<Sha>, GitError> {
    match answer.status {
        0 => read_sha(answer).map(Some),
        1 => Ok(None),
        _ => Err(answer.failure()),
    }
}

/// Reads an id from each line, or the name followed by `missing`.
fn read_found(answer: &GitOutput, count: usize) -> Result<Vec<Option<Sha>>, GitError> {
    let text = String::from_utf8_lossy(&answer.stdout);
    let read = |line: &str| match line.strip_suffix(" missing") {
        Some(_) => Ok(None),
        None => Sha::parse(line).map(Some).map_err(|error| answer.unreadable(error)),
    };
    let found: Vec<_> = text.lines().map(read).collect::<Result<_, _>>()?;
    if found.len() != count {
        return Err(answer.unreadable(format!("{} answers to {count} questions", found.len())));
    }
    Ok(found)
}

fn read_yes_no(answer: &GitOutput) -> Result<bool, GitError> {
    match answer.status {
        0 => Ok(true),
        1 => Ok(false),
        _ => Err(answer.failure()),
    }
}

fn read_sha(answer: &GitOutput) -> Result<Sha, GitError> {
    let text = String::from_utf8_lossy(&answer.stdout);
    let line = text.lines().next().unwrap_or_default();
    Sha::parse(line).map_err(|error| answer.unreadable(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: i32, stdout: &str) -> GitOutput {
        GitOutput {
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

    #[test]
    fn names_are_found_or_missing_in_the_order_asked() {
        let sha = "a".repeat(40);
        let text = format!("refs/heads/gone^{{commit}} missing\n{sha}\n");
        let found = read_found(&answer(0, &text), 2).unwrap();
        assert_eq!(found, [None, Some(Sha::parse(&sha).unwrap())]);
        assert!(matches!(read_found(&answer(0, &text), 3), Err(GitError::Parse { .. })));
        assert!(matches!(read_found(&answer(0, "what?\n"), 1), Err(GitError::Parse { .. })));
    }
}
