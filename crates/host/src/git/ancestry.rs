//! Resolution of names to commits, and ancestry between commits.

use std::ffi::OsString;
use std::fmt::Display;

use model::id::Sha;

use super::call::{Git, GitCall, GitOutput, argv, argv_with};
use super::{GitError, RefName};

impl Git {
    /// Resolves a revision to a commit, if it names one.
    pub async fn resolve_commit(&self, rev: &str) -> Result<Option<Sha>, GitError> {
        read_commit(&self.call(argv_resolve(rev)).await?)
    }

    /// Resolves refs to commits, in the order given; `None` for a ref that is missing or not a commit.
    pub async fn resolve_refs(&self, names: &[RefName]) -> Result<Vec<Option<Sha>>, GitError> {
        self.find_all(names, "commit").await
    }

    /// Returns whether all of these commits are here.
    pub async fn has_commits(&self, commits: &[Sha]) -> Result<bool, GitError> {
        Ok(self.find_all(commits, "commit").await?.iter().all(Option::is_some))
    }

    /// Returns the trees of these commits, in the order given; `None` for a missing commit.
    pub async fn trees_of(&self, commits: &[Sha]) -> Result<Vec<Option<Sha>>, GitError> {
        self.find_all(commits, "tree").await
    }

    /// Resolves names to objects of one kind. Names are whole refs or ids, so none contains a line break.
    async fn find_all(
        &self,
        names: &[impl Display],
        kind: &str,
    ) -> Result<Vec<Option<Sha>>, GitError> {
        let input: String = names.iter().map(|name| format!("{name}^{{{kind}}}\n")).collect();
        let call = GitCall::new(argv("cat-file --batch-check=%(objectname)"));
        let answer = self.query(call.reading(input.as_bytes())).await?;
        read_found(&answer, names.len())
    }

    /// Returns whether `older` is `newer` or one of its ancestors. In a sealed repository the commits alone
    /// count: replacement refs, grafts and commit-graph files have no effect.
    pub async fn is_ancestor(&self, older: &Sha, newer: &Sha) -> Result<bool, GitError> {
        let argv = argv_with("merge-base --is-ancestor", [older.as_str(), newer.as_str()]);
        Ok(self.call(argv).await?.found()?.is_some())
    }

    /// Returns whether `older` is `newer` or is reached from it along first parents alone.
    pub async fn is_on_main_line(&self, older: &Sha, newer: &Sha) -> Result<bool, GitError> {
        let range = [newer.as_str(), &format!("^{older}"), "--"];
        let answer = self.query(argv_with("rev-list --first-parent --count", range)).await?;
        let steps = String::from_utf8_lossy(&answer.stdout).trim_end().to_owned();
        Ok(self.resolve_commit(&format!("{newer}~{steps}")).await?.as_ref() == Some(older))
    }

    /// Lists the commits from `exclude` to `tip` along first parents, oldest first.
    pub async fn first_parents(&self, tip: &Sha, exclude: &Sha) -> Result<Vec<Sha>, GitError> {
        let range = [tip.as_str(), &format!("^{exclude}"), "--"];
        self.query(argv_with("rev-list --first-parent --reverse", range)).await?.parse_ids()
    }

    /// Counts the commits reachable from `tip` and not from `exclude`.
    pub async fn count_commits(&self, tip: &Sha, exclude: &Sha) -> Result<usize, GitError> {
        let range = [tip.as_str(), &format!("^{exclude}"), "--"];
        let answer = self.query(argv_with("rev-list --count", range)).await?;
        let text = String::from_utf8_lossy(&answer.stdout);
        text.trim_end().parse().map_err(|error| answer.unreadable(error))
    }

    /// Returns the committer's date of the oldest commit reachable from `tip` and not from `exclude`, in seconds since 1970.
    pub async fn oldest_new_commit(
        &self,
        tip: &Sha,
        exclude: &Sha,
    ) -> Result<Option<i64>, GitError> {
        let range = [tip.as_str(), &format!("^{exclude}"), "--"];
        let answer = self.query(argv_with("log --no-patch --format=%ct", range)).await?;
        let text = String::from_utf8_lossy(&answer.stdout);
        Ok(text.lines().filter_map(|line| line.parse().ok()).min())
    }

    /// Returns a best common ancestor, if there is one.
    pub async fn merge_base(&self, one: &Sha, other: &Sha) -> Result<Option<Sha>, GitError> {
        let argv = argv_with("merge-base", [one.as_str(), other.as_str()]);
        read_commit(&self.call(argv).await?)
    }
}

fn argv_resolve(rev: &str) -> Vec<OsString> {
    let commit = format!("{rev}^{{commit}}");
    argv_with("rev-parse --verify --quiet --end-of-options", [commit])
}

fn read_commit(answer: &GitOutput) -> Result<Option<Sha>, GitError> {
    answer.found()?.map(GitOutput::parse_id).transpose()
}

/// Reads an id from each line, or the name followed by `missing`.
fn read_found(answer: &GitOutput, count: usize) -> Result<Vec<Option<Sha>>, GitError> {
    let text = String::from_utf8_lossy(&answer.stdout);
    let read = |line: &str| match line.strip_suffix(" missing") {
        Some(_) => Ok(None),
        None => Sha::parse(line).map(Some).map_err(|error| answer.unreadable(error)),
    };
    answer.all_of(text.lines().map(read).collect::<Result<_, _>>()?, count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::call::tests::answer;

    #[test]
    fn a_name_cannot_pass_for_an_option() {
        let argv = argv_resolve("--output=x").join(" ".as_ref()).into_string().unwrap();
        insta::assert_snapshot!(argv, @"rev-parse --verify --quiet --end-of-options --output=x^{commit}");
    }

    #[test]
    fn yes_no_and_cannot_tell_are_three_answers() {
        assert!(answer(0, "").found().unwrap().is_some());
        assert!(answer(1, "").found().unwrap().is_none());
        let failed = GitOutput { stderr: b"fatal: no\n".to_vec(), ..answer(128, "") };
        let error = failed.found().unwrap_err();
        assert_eq!(error.to_string(), "git x failed (status 128): fatal: no");
    }

    #[test]
    fn a_commit_is_there_or_not_or_unreadable() {
        let sha = "a".repeat(40);
        assert_eq!(read_commit(&answer(0, format!("{sha}\n"))).unwrap().unwrap().as_str(), sha);
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
