//! Sparse worktrees. Git keeps their folders in a configuration of the worktree's own, for which it sets
//! `extensions.worktreeConfig` in the repository's.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use model::id::{BranchName, Sha};

use super::WorktreeRepo;
use crate::git::GitError;
use crate::git::call::{GitCall, argv, argv_with};

const CHECKOUT_LIMIT: Duration = Duration::from_secs(600);

impl WorktreeRepo {
    /// Creates a branch at `base` and checks out these folders of it, and the files beside and above them, in a new folder.
    pub async fn add_sparse_worktree(
        &self,
        path: &Path,
        branch: &BranchName,
        base: &Sha,
        folders: &[String],
    ) -> Result<(), GitError> {
        let values =
            [branch.as_str().as_ref(), OsStr::new("--"), path.as_os_str(), base.as_str().as_ref()];
        let words = "worktree add --quiet --no-checkout --no-track -b";
        self.git().run(GitCall::new(argv_with(words, values)).within(CHECKOUT_LIMIT)).await?;
        self.fill_sparse(path, folders).await
    }

    /// Checks out an existing branch in the same way.
    pub async fn reopen_sparse_worktree(
        &self,
        path: &Path,
        branch: &BranchName,
        folders: &[String],
    ) -> Result<(), GitError> {
        let values = [OsStr::new("--"), path.as_os_str(), branch.as_str().as_ref()];
        let call = GitCall::new(argv_with("worktree add --quiet --no-checkout", values));
        self.git().run(call.within(CHECKOUT_LIMIT)).await?;
        self.fill_sparse(path, folders).await
    }

    async fn fill_sparse(&self, path: &Path, folders: &[String]) -> Result<(), GitError> {
        let lines: String = folders.iter().map(|folder| format!("{folder}\n")).collect();
        let call = GitCall::new(argv("sparse-checkout set --cone --stdin"));
        let git = self.git_at(path);
        git.run(call.reading(lines.as_bytes()).within(CHECKOUT_LIMIT)).await?;
        git.run(GitCall::new(argv("read-tree -m -u HEAD")).within(CHECKOUT_LIMIT)).await
    }
}
