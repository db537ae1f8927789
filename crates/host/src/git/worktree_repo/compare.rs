//! Differences between two commits of the user's repository, and the result of merging them.

use std::ffi::OsString;

use model::id::Sha;

use super::WorktreeRepo;
use crate::git::call::{GitCall, argv, argv_with};
use crate::git::parse::filled_fields;
use crate::git::{CommitDraft, GitError, MergedTree};

impl WorktreeRepo {
    /// Lists the paths that differ between two commits, sorted by their bytes; both names of a renamed file.
    pub async fn changed_paths(&self, from: &Sha, to: &Sha) -> Result<Vec<Vec<u8>>, GitError> {
        let answer = self.git().query(argv_names(from, to)).await?;
        Ok(parse_names(&answer.stdout))
    }

    /// Same as [`Self::changed_paths`] for many pairs of commits, in their order. Two processes share the
    /// work, which is fastest on two processors.
    pub async fn changed_paths_of(
        &self,
        pairs: &[(Sha, Sha)],
    ) -> Result<Vec<Vec<Vec<u8>>>, GitError> {
        let (first, second) = pairs.split_at(pairs.len().div_ceil(2));
        let (first, second) = tokio::join!(self.lists_of(first), self.lists_of(second));
        let mut lists = first?;
        lists.extend(second?);
        Ok(lists)
    }

    async fn lists_of(&self, pairs: &[(Sha, Sha)]) -> Result<Vec<Vec<Vec<u8>>>, GitError> {
        if pairs.is_empty() {
            return Ok(Vec::new());
        }
        // A commit followed by another one is compared with that one, whatever its parents are.
        let lines: String = pairs.iter().map(|(from, to)| format!("{to} {from}\n")).collect();
        let call = GitCall::new(argv(LISTS)).reading(lines.as_bytes());
        let parse = |bytes| parse_lists(bytes, pairs.iter().map(|(_, to)| to));
        let problem = "it does not answer for every pair of commits";
        self.git().query(call).await?.parse(parse, problem)
    }

    /// Lists the subjects of the commits that `to` has and `from` lacks, newest first.
    pub async fn subjects(&self, from: &Sha, to: &Sha) -> Result<Vec<String>, GitError> {
        let range = [to.as_str(), &format!("^{from}"), "--"];
        let words = "log -z --no-patch --no-color --format=tformat:%s";
        let answer = self.git().query(argv_with(words, range)).await?;
        let fields = filled_fields(&answer.stdout);
        Ok(fields.map(|field| String::from_utf8_lossy(field).into_owned()).collect())
    }

    /// Lists the commits that `to` has and `from` lacks with their subjects, newest first.
    pub async fn commits_between(
        &self,
        from: &Sha,
        to: &Sha,
    ) -> Result<Vec<(Sha, String)>, GitError> {
        let range = [to.as_str(), &format!("^{from}"), "--"];
        let words = "log -z --no-patch --no-color --format=tformat:%H:%s";
        let answer = self.git().query(argv_with(words, range)).await?;
        let commit = |field: &[u8]| {
            let text = String::from_utf8_lossy(field);
            let (sha, subject) = text.split_once(':')?;
            Some((Sha::parse(sha).ok()?, subject.to_owned()))
        };
        answer.parse(
            |bytes| filled_fields(bytes).map(commit).collect(),
            "it is not a list of commits",
        )
    }

    /// Merges two commits, touching neither files nor refs.
    pub async fn merge_tree(&self, ours: &Sha, theirs: &Sha) -> Result<MergedTree, GitError> {
        self.git().merge_tree(ours, theirs).await
    }

    /// Creates a commit that nothing points at yet.
    pub async fn commit_tree(&self, draft: CommitDraft<'_>) -> Result<Sha, GitError> {
        self.git().commit_tree(draft).await
    }
}

fn argv_names(from: &Sha, to: &Sha) -> Vec<OsString> {
    let words = "diff-tree -r -z --name-only --no-renames --no-ext-diff \
        --ignore-submodules=none --end-of-options";
    argv_with(words, [from.as_str(), to.as_str(), "--"])
}

const LISTS: &str = "diff-tree --stdin --always -r -z --name-status --no-renames --no-ext-diff \
    --ignore-submodules=none";

fn parse_names(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = filled_fields(bytes).map(<[u8]>::to_vec).collect();
    names.sort();
    names.dedup();
    names
}

/// Parses one list per commit. Each begins with the commit's id; a status letter precedes each name, so that
/// a name that looks like an id is not taken for one.
fn parse_lists<'a>(
    bytes: &[u8],
    heads: impl Iterator<Item = &'a Sha>,
) -> Option<Vec<Vec<Vec<u8>>>> {
    let mut fields = bytes.split(|&byte| byte == 0).peekable();
    let mut lists = Vec::new();
    for head in heads {
        if fields.next()? != head.as_str().as_bytes() {
            return None;
        }
        let mut names = Vec::new();
        while fields.next_if(|field| field.len() == 1).is_some() {
            names.push(fields.next()?.to_vec());
        }
        names.sort_unstable();
        names.dedup();
        lists.push(names);
    }
    (fields.next() == Some(b"") && fields.next().is_none()).then_some(lists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_many_commits_are_told_apart_even_by_odd_names() {
        let ids = ["a", "b", "a"].map(|letter| Sha::parse(&letter.repeat(40)).unwrap());
        let [a, b, _] = ids.clone().map(|id| id.to_string());
        let text = format!("{a}\0A\0{b}\0M\0A\0{b}\0{a}\0D\0x y\0");
        let lists = parse_lists(text.as_bytes(), ids.iter()).unwrap();
        assert_eq!(
            lists,
            [vec![b"A".to_vec(), b.clone().into_bytes()], vec![], vec![b"x y".to_vec()]]
        );
        assert_eq!(parse_lists(text.as_bytes(), ids[..2].iter()), None);
        assert_eq!(parse_lists(format!("{a}\0").as_bytes(), ids.iter()), None);
        assert_eq!(parse_lists(format!("{a}\0A\0").as_bytes(), ids[..1].iter()), None);
    }

    #[test]
    fn names_are_sorted_by_their_bytes_d105() {
        let names = parse_names(b"b\0a \xc3\xa9\0a\0B\0");
        assert_eq!(names, [&b"B"[..], b"a", b"a \xc3\xa9", b"b"]);
    }
}
