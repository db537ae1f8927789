//! Workspace in: a copy of the wanted commits that leads nowhere and takes nothing else along, made from a checkout that
//! stays as it is.

mod content;
mod refusal;
mod user;

use std::path::PathBuf;

use testkit::{Fork, Hermetic, Repo};

use crate::support::Project;

/// A project and the workspace that the engine made of it.
struct Made {
    project: Project,
    path: PathBuf,
    git: Repo,
}

async fn make(fork: impl FnOnce(&Hermetic) -> Fork) -> Made {
    make_of(Project::new(fork).await, "workspace").await
}

/// Makes a workspace of this name.
async fn make_of(project: Project, name: &str) -> Made {
    let path = project.hermetic.root().join("run").join(name);
    project.workspace_at(&path).await.expect("a workspace");
    Made { project, git: Repo::open(&path), path }
}

impl Made {
    /// Whether the workspace has an object, by itself.
    fn has(&self, object: &str) -> bool {
        self.git.try_git(&["cat-file", "-e", object]).is_ok()
    }
}
