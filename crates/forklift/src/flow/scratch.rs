//! Scratch folders of a run: the workspace and harness state of a box beside the agent's, where no agent has been.

use std::path::PathBuf;

use engine::agent_run::BoxLayout;
use engine::run::Product;
use engine::workspace::{make_checkout, make_harness_state};
use host::git::SealedRepo;
use model::id::Sha;
use sandbox::spec::BoxUser;

use super::run::ForkRun;
use crate::exit::{Failure, OrExit};

/// Folders of a run whose names begin with `prefix`.
pub(super) struct Scratch<'a> {
    pub(super) run: &'a ForkRun<'a>,
    pub(super) prefix: &'static str,
}

impl Scratch<'_> {
    pub(super) fn folder(&self, name: &str) -> PathBuf {
        self.run.run.dir.path().join(format!("{}-{name}", self.prefix))
    }

    /// Checks out a commit, anew if there was one.
    pub(super) async fn check_out(&self, repo: &SealedRepo, commit: &Sha) -> Result<(), Failure> {
        self.remove()?;
        let (branch, owner) = (&self.run.run.record.fork.branch, BoxUser::of_caller());
        let workspace = self.folder("workspace");
        make_checkout(repo, branch, commit, &workspace, owner).await.or_machine()?;
        make_harness_state(&self.folder("state"), owner).or_machine()
    }

    /// The box of this name in these folders.
    pub(super) fn layout(&self, name: &str, timeout_secs: u64) -> Result<BoxLayout, Failure> {
        let layout = self.run.run.layout(name, timeout_secs).map_err(ForkRun::failure)?;
        let (workspace, harness_state) = (self.folder("workspace"), self.folder("state"));
        Ok(BoxLayout { workspace, harness_state, ..layout })
    }

    pub(super) fn remove(&self) -> Result<(), Failure> {
        for name in ["workspace", "state", "program"] {
            host::file::remove_tree_safely(&self.folder(name)).or_machine()?;
        }
        Ok(())
    }
}
