//! What an agent made comes out of its workspace: first what it left uncommitted is committed, in a box, then the branch
//! comes out as a bundle into a repository of the host's. No git of the host opens the workspace.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use engine::box_command::{BoxCommand, BoxCommandResult};
use engine::export::{ExportRequest, Exported, export, import_ref, make_import_repo};
use host::git::Identity;
use model::verdict::Ended;
use sandbox::spec::{Access, ProgramMount};

use super::workshop::{BoxWish, IMPORT_REPO, WORKSPACE, Workshop, box_run};
use super::{ImplementOrder, Scene, StageError, Work};
use crate::flow::product::identity;

/// Seconds for the commit, the product's hooks included.
const COMMIT_SECS: u64 = 120;

/// Where the product's hooks stand in the box.
const HOOKS: &str = "/opt/bottleworks/hooks";

/// The status by which the script says that the branch is not the one.
const OTHER_BRANCH: i32 = 30;

/// Commits everything but the results of tests (D78). `exit 0` where there is nothing to commit.
const SCRIPT: &str = r#"
set -eu
[ "$(git symbolic-ref --quiet HEAD)" = "refs/heads/$1" ] || exit 30
git add --all -- . ':(top,exclude)test-results'
if git diff --cached --quiet; then exit 0; fi
exec git -c "core.hooksPath=$3" commit --quiet --no-gpg-sign --no-edit -m "$2"
"#;

impl Workshop {
    /// Takes the agent's work out. It is judged by others.
    pub(crate) async fn collect(&self, order: ImplementOrder<'_>) -> Result<Work, StageError> {
        if let Some(refused) = self.commit_rest(order).await? {
            return Ok(Work::Refused(refused));
        }
        let scene = order.scene;
        let meta = &scene.workstream.meta;
        let path = scene.run_dir.join(IMPORT_REPO);
        let mirror = self.site.mirror(&meta.id);
        let pins = [order.head];
        let repo = make_import_repo(&path, scene.product.user(), &mirror, &pins)
            .await
            .map_err(StageError::failed)?
            .logged(Arc::clone(scene.log));
        let run = box_run(scene.run_dir)?;
        let seat = self.seat(scene, self.wish_for(scene, "export", COMMIT_SECS)?).await?;
        let wish = ExportRequest {
            run: &run,
            agent_box: &seat.spec(),
            branch: &meta.branch,
            known: std::slice::from_ref(order.head),
        };
        let launcher = self.launcher(scene, Vec::new()).await?;
        match export(&launcher, &wish, &repo, 1).await.map_err(StageError::failed)? {
            Exported::Tip(tip) => {
                let name = import_ref(&run, &meta.branch).map_err(StageError::failed)?;
                Ok(Work::Commits { repo, name, tip })
            }
            Exported::NothingNew => Ok(Work::Nothing),
            Exported::NoBranch => {
                Ok(Work::Refused(format!("the agent deleted the branch {}", meta.branch)))
            }
            Exported::Refused(reason) => Ok(Work::Refused(reason)),
        }
    }

    fn wish_for<'a>(
        &self,
        scene: Scene<'_>,
        name: &'a str,
        deadline_secs: u64,
    ) -> Result<BoxWish<'a>, StageError> {
        Ok(BoxWish {
            name,
            workspace: scene.run_dir.join(WORKSPACE),
            access: Access::ReadWrite,
            state: self.blank_state(scene)?,
            deadline_secs,
        })
    }

    /// Commits what the agent left, as the person and with the product's hooks (D128). The reason, if it is refused.
    async fn commit_rest(&self, order: ImplementOrder<'_>) -> Result<Option<String>, StageError> {
        let scene = order.scene;
        let seat = self.seat(scene, self.wish_for(scene, "commit", COMMIT_SECS)?).await?;
        let hooks = find_hooks(scene).await?;
        let message = format!("{}: {}", order.commit.id, order.commit.title);
        let branch = scene.workstream.meta.branch.as_str();
        let argv = ["/bin/sh", "-c", SCRIPT, "commit", branch, &message, hooks.inside()];
        let mut chore = BoxCommand::new(seat, argv.map(str::to_owned).to_vec());
        chore.env = commit_env(&identity(scene.product).await.map_err(|failure| {
            StageError::Failed(format!("whose commit it is could not be found out: {failure}"))
        })?);
        chore.programs = hooks.mount();
        let launcher = self.launcher(scene, Vec::new()).await?;
        let end = chore.run(&launcher, scene.cancel).await.map_err(StageError::failed)?;
        read_commit(&end, scene)
    }
}

fn read_commit(end: &BoxCommandResult, scene: Scene<'_>) -> Result<Option<String>, StageError> {
    match &end.record.ended {
        Ended::Exited { code: 0 } => Ok(None),
        Ended::Exited { code: OTHER_BRANCH } => Ok(Some(format!(
            "the agent left its workspace on another branch than {}",
            scene.workstream.meta.branch
        ))),
        Ended::Exited { code } => Ok(Some(format!(
            "what the agent left could not be committed (status {code}): {}",
            end.tail().trim()
        ))),
        Ended::OutOfTime => {
            Ok(Some(format!("what the agent left could not be committed within {COMMIT_SECS} s")))
        }
        Ended::Stopped => Err(StageError::Stopped("stopped while committing".to_owned())),
        other => Err(StageError::Failed(format!("the box for the commit failed: {other:?}"))),
    }
}

/// The agent's own configuration plays no part in whose commit it is.
fn commit_env(who: &Identity) -> BTreeMap<String, String> {
    [
        ("GIT_AUTHOR_NAME", who.name.as_str()),
        ("GIT_AUTHOR_EMAIL", &who.email),
        ("GIT_COMMITTER_NAME", &who.name),
        ("GIT_COMMITTER_EMAIL", &who.email),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_EDITOR", "/bin/true"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// The product's hooks, honoured inside the box and nowhere else: what they start may be the agent's (D128).
enum Hooks {
    None,
    /// A folder of the person's.
    Folder(PathBuf),
    /// A folder of the repository itself, as the box has it.
    Tracked(String),
}

impl Hooks {
    fn inside(&self) -> &str {
        match self {
            Self::None => "/dev/null",
            Self::Folder(_) => HOOKS,
            Self::Tracked(path) => path,
        }
    }

    fn mount(&self) -> Vec<ProgramMount> {
        match self {
            Self::None | Self::Tracked(_) => Vec::new(),
            Self::Folder(host) => {
                vec![ProgramMount { host: host.clone(), inside: HOOKS.to_owned() }]
            }
        }
    }
}

async fn find_hooks(scene: Scene<'_>) -> Result<Hooks, StageError> {
    let said = scene.product.hooks_path().await.map_err(StageError::failed)?;
    let hooks = match said {
        Some(path) if !path.starts_with(['/', '~']) => {
            return Ok(Hooks::Tracked(format!("/workspace/{path}")));
        }
        Some(path) if path.starts_with('/') => PathBuf::from(path),
        Some(_) => return Ok(Hooks::None),
        None => scene.product.user().common_dir().join("hooks"),
    };
    Ok(if has_hook(&hooks) { Hooks::Folder(hooks) } else { Hooks::None })
}

/// Samples are no hooks, and a folder without any need not be shown to the box.
fn has_hook(folder: &std::path::Path) -> bool {
    ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"]
        .iter()
        .any(|name| folder.join(name).is_file())
}
