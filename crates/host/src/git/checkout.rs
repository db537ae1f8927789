//! The user's checkout: its branch and its uncommitted changes, and changes that the user asks to have in it.

use std::ffi::OsString;

use model::id::{BranchName, Sha};

use super::call::{GitCall, argv, argv_with};
use super::merge::CommitDraft;
use super::parse::nul_fields;
use super::{GitError, GitIdentity, UserRepo};
use crate::file::FileError;

/// The index of a snapshot, so that the user's own is not touched.
const INDEX_VARIABLE: &str = "GIT_INDEX_FILE";

impl UserRepo {
    /// Returns the branch that is checked out; `None` for a detached HEAD.
    pub async fn head_branch(&self) -> Result<Option<BranchName>, GitError> {
        let answer = self.git.call(argv("symbolic-ref --quiet --short HEAD")).await?;
        let Some(answer) = answer.found()? else { return Ok(None) };
        let name = String::from_utf8_lossy(&answer.stdout);
        BranchName::parse(name.trim_end()).map(Some).map_err(|error| answer.unreadable(error))
    }

    /// Lists the paths with changes that are not committed. Ignored files and submodules are not among them.
    pub async fn uncommitted_paths(&self) -> Result<Vec<String>, GitError> {
        let words = "status --porcelain=v1 -z --untracked-files=all --no-renames \
            --ignore-submodules=all";
        self.git.query(argv(words)).await?.parse(parse_status, "it is not a status")
    }

    /// Commits the checkout as it is, with all that [`uncommitted_paths`](Self::uncommitted_paths) lists, on top of `head`.
    /// Nothing points at the commit; the branch, the index and the files stay as they are.
    pub async fn snapshot_changes(
        &self,
        head: &Sha,
        identity: &GitIdentity,
        message: &str,
    ) -> Result<Sha, GitError> {
        let folder = tempfile::tempdir().map_err(|error| {
            let path = std::env::temp_dir();
            GitError::Prepare { source: FileError::io("create a folder in", &path)(error), path }
        })?;
        let mut git = self.git.clone();
        git.set_env(INDEX_VARIABLE, folder.path().join("index"));
        git.run(argv_with("read-tree", [head.as_str()])).await?;
        git.run(argv("add --all")).await?;
        let tree = git.query(argv("write-tree")).await?.parse_id()?;
        let (parents, when) = (std::slice::from_ref(head), crate::clock::now());
        git.commit_tree(CommitDraft { tree: &tree, parents, identity, when, message }).await
    }

    /// Returns the name and the address of the user, as far as git's configuration has them.
    pub async fn user_identity(&self) -> Result<(Option<String>, Option<String>), GitError> {
        let (name, email) =
            tokio::join!(self.config_get("user.name"), self.config_get("user.email"));
        Ok((name?, email?))
    }

    /// Applies a patch to the files of the checkout, whole or not at all. The index stays as it is.
    pub async fn apply_patch(&self, patch: &[u8]) -> Result<(), GitError> {
        let call = GitCall::new(argv("apply --whitespace=nowarn -"));
        self.git.run(call.reading(patch)).await
    }

    /// Checks out a branch; git refuses where uncommitted changes would be lost.
    pub async fn switch_branch(&self, branch: &BranchName) -> Result<(), GitError> {
        self.git.run(argv_switch(branch)).await
    }
}

fn argv_switch(branch: &BranchName) -> Vec<OsString> {
    argv_with("switch --quiet --no-guess", [branch.as_str()])
}

/// Parses entries of two status letters, a blank and a path, each ended by NUL.
fn parse_status(bytes: &[u8]) -> Option<Vec<String>> {
    let path =
        |entry: &&[u8]| entry.get(3..).map(|path| String::from_utf8_lossy(path).into_owned());
    nul_fields(bytes)?.iter().map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_a_list_of_paths() {
        let paths = parse_status(b" M a b\0?? new\nline\0D  gone\0");
        assert_eq!(paths.unwrap(), ["a b", "new\nline", "gone"]);
        assert_eq!(parse_status(b"").unwrap(), Vec::<String>::new());
        assert_eq!(parse_status(b" M cut off"), None);
    }
}
