//! Repositories of which no honest workspace can be made are refused by name, with what to do about it.

use engine::workspace::{WorkspaceError, refuse_incomplete};
use host::git::UserRepo;
use testkit::{Fork, Repo};

use crate::support::{Project, user_env};

#[tokio::test]
async fn a_shallow_clone_is_refused_by_name() {
    let project = Project::new(Fork::shallow).await;
    let error = refusal(&project).await;
    assert!(matches!(error, WorkspaceError::Shallow { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("work/fork") && text.contains("--unshallow"), "{text}");
}

#[tokio::test]
async fn a_partial_clone_is_refused_by_name() {
    let mut project = Project::new(|hermetic| Fork::new(hermetic).clean_merge()).await;
    let clone = project.hermetic.work().join("partial");
    let origin = &project.fork.origin;
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    let address = format!("file://{}", origin.dir().display());
    let target = clone.to_string_lossy();
    origin.git(&["clone", "--quiet", "--filter=blob:none", "--template=", &address, &target]);
    let env = user_env(&project.hermetic);
    project.repo = UserRepo::discover_as(&clone, env).await.expect("a repository");
    let error = refusal(&project).await;
    assert!(matches!(error, WorkspaceError::Partial { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("work/partial") && text.contains("--refetch"), "{text}");
    // Following the advice helps.
    let (_, advice) = text.split_once("run in it first: ").expect("advice");
    let mut shell = project.hermetic.command("sh");
    project.hermetic.run_ok(shell.args(["-c", advice]).current_dir(&clone));
    let env = user_env(&project.hermetic);
    let repo = UserRepo::discover_as(&clone, env).await.expect("a repository");
    assert_eq!(refuse_incomplete(&repo).map_err(|error| error.to_string()), Ok(()));
    Repo::open(clone).git(&["fsck", "--connectivity-only"]);
}

async fn refusal(project: &Project) -> WorkspaceError {
    let path = project.hermetic.root().join("workspace");
    let error = project.workspace_at(&path).await.expect_err("a refusal");
    assert!(!path.exists(), "half a workspace was left");
    error
}
