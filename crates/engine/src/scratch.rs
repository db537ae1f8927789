//! Scratch folders of a run: the workspace and harness state of a box beside the agent's, where no agent has been.

use std::path::PathBuf;

use host::file::FileError;
use host::git::SealedRepo;
use model::id::{BranchName, Sha};
use sandbox::spec::BoxUser;

use crate::agent_run::BoxLayout;
use crate::run::{ProductRecord, Run, RunError};
use crate::workspace::{make_checkout, make_harness_state};

/// Folders of a run whose names begin with `prefix`.
#[derive(Debug)]
pub struct Scratch<'a, R: ProductRecord> {
    pub run: &'a Run<R>,
    pub prefix: &'static str,
    /// Name of the branch that is checked out.
    pub branch: &'a BranchName,
}

impl<R: ProductRecord> Scratch<'_, R> {
    pub fn folder(&self, name: &str) -> PathBuf {
        self.run.dir.path().join(format!("{}-{name}", self.prefix))
    }

    /// Checks out a commit, anew if there was one.
    pub async fn check_out(&self, repo: &SealedRepo, commit: &Sha) -> Result<(), RunError> {
        self.remove()?;
        let owner = BoxUser::of_caller();
        make_checkout(repo, self.branch, commit, &self.folder("workspace"), owner).await?;
        Ok(make_harness_state(&self.folder("state"), owner)?)
    }

    /// The box of this name in these folders.
    pub fn layout(&self, name: &str, timeout_secs: u64) -> Result<BoxLayout, RunError> {
        let layout = self.run.layout(name, timeout_secs)?;
        let (workspace, harness_state) = (self.folder("workspace"), self.folder("state"));
        Ok(BoxLayout { workspace, harness_state, ..layout })
    }

    pub fn remove(&self) -> Result<(), FileError> {
        for name in ["workspace", "state", "program"] {
            host::file::remove_tree_safely(&self.folder(name))?;
        }
        Ok(())
    }
}
