//! What lies between two commits of the product, and what merging them would give.

use std::ffi::OsString;

use model::id::Sha;

use super::ProductRepo;
use crate::git::call::{Call, args};
use crate::git::{Capped, FileNumbers, GitError, MergedTree, NewCommit};

impl ProductRepo {
    /// The paths that differ between two commits, sorted by their bytes; both names of a renamed file.
    pub async fn changed_paths(&self, from: &Sha, to: &Sha) -> Result<Vec<Vec<u8>>, GitError> {
        let answer = self.git().ask(Call::new(argv_names(from, to))).await?.success()?;
        Ok(parse_names(&answer.stdout))
    }

    /// How much differs between two commits.
    pub async fn diff_numbers(&self, from: &Sha, to: &Sha) -> Result<Vec<FileNumbers>, GitError> {
        self.git().diff_numbers(from, to).await
    }

    /// The first `cap` bytes of the patch from one commit to another.
    pub async fn diff(&self, from: &Sha, to: &Sha, cap: usize) -> Result<Capped, GitError> {
        self.git().diff(from, to, cap).await
    }

    /// A best common ancestor, if the two have one.
    pub async fn merge_base(&self, one: &Sha, other: &Sha) -> Result<Option<Sha>, GitError> {
        self.git().merge_base(one, other).await
    }

    /// The subjects of the commits that `to` has and `from` has not, newest first.
    pub async fn subjects(&self, from: &Sha, to: &Sha) -> Result<Vec<String>, GitError> {
        let answer = self.git().ask(Call::new(argv_subjects(from, to))).await?.success()?;
        let fields = answer.stdout.split(|&byte| byte == 0).filter(|field| !field.is_empty());
        Ok(fields.map(|field| String::from_utf8_lossy(field).into_owned()).collect())
    }

    /// Merges two commits, touching neither files nor refs.
    pub async fn merge_tree(&self, ours: &Sha, theirs: &Sha) -> Result<MergedTree, GitError> {
        self.git().merge_tree(ours, theirs).await
    }

    /// Makes a commit that nothing points at yet.
    pub async fn commit_tree(&self, wish: NewCommit<'_>) -> Result<Sha, GitError> {
        self.git().commit_tree(wish).await
    }
}

fn argv_names(from: &Sha, to: &Sha) -> Vec<OsString> {
    let mut argv = args(["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff"]);
    argv.extend(args(["--ignore-submodules=none", "--end-of-options"]));
    argv.extend(args([from.as_str(), to.as_str(), "--"]));
    argv
}

fn argv_subjects(from: &Sha, to: &Sha) -> Vec<OsString> {
    let exclude = format!("^{from}");
    args([
        "log",
        "-z",
        "--no-patch",
        "--no-color",
        "--format=tformat:%s",
        to.as_str(),
        &exclude,
        "--",
    ])
}

fn parse_names(bytes: &[u8]) -> Vec<Vec<u8>> {
    let fields = bytes.split(|&byte| byte == 0).filter(|field| !field.is_empty());
    let mut names: Vec<Vec<u8>> = fields.map(<[u8]>::to_vec).collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_by_their_bytes_d105() {
        let names = parse_names(b"b\0a \xc3\xa9\0a\0B\0");
        assert_eq!(names, [&b"B"[..], b"a", b"a \xc3\xa9", b"b"]);
    }
}
