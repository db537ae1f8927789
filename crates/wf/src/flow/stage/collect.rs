//! Collection of an agent's work: a box commits what the agent left uncommitted, then the branch is exported as a bundle
//! into a repository of the host. Git on the host never opens the workspace.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use engine::box_command::{BoxCommand, BoxCommandResult};
use engine::export::{ExportRequest, Exported, export, import_ref, make_import_repo};
use host::git::GitIdentity;
use model::verdict::Ended;
use sandbox::spec::{MountAccess, ProgramMount};

use super::runner::{BoxOptions, IMPORT_REPO, StageRunner, WORKSPACE, box_run};
use super::{CollectedWork, ImplementRequest, StageContext, StageRunError};
use crate::flow::product::identity;

/// Seconds for the commit, the product's hooks included.
const COMMIT_SECS: u64 = 120;

/// Path of the product's hooks in the box.
const HOOKS: &str = "/opt/bottleworks/hooks";

/// Exit status of the script on a wrong branch.
const OTHER_BRANCH: i32 = 30;

/// Commits everything but the results of tests. `exit 0` where there is nothing to commit.
const SCRIPT: &str = r#"
set -eu
[ "$(git symbolic-ref --quiet HEAD)" = "refs/heads/$1" ] || exit 30
git add --all -- . ':(top,exclude)test-results'
if git diff --cached --quiet; then exit 0; fi
exec git -c "core.hooksPath=$3" commit --quiet --no-gpg-sign --no-edit -m "$2"
"#;

impl StageRunner {
    /// Collects the agent's work. The flow judges it.
    pub(crate) async fn collect(
        &self,
        request: ImplementRequest<'_>,
    ) -> Result<CollectedWork, StageRunError> {
        if let Some(refused) = self.commit_rest(request).await? {
            return Ok(CollectedWork::Refused(refused));
        }
        let context = request.context;
        let meta = &context.workstream.meta;
        let path = context.run_dir.join(IMPORT_REPO);
        let mirror = self.dirs.mirror(&meta.id);
        let pins = [request.head];
        let repo = make_import_repo(&path, context.product.user(), &mirror, &pins)
            .await
            .map_err(StageRunError::failed)?
            .logged(Arc::clone(context.log));
        let run = box_run(context.run_dir)?;
        let box_layout =
            self.box_layout(context, self.box_options(context, "export", COMMIT_SECS)?).await?;
        let options = ExportRequest {
            run: &run,
            agent_box: &box_layout.spec(),
            branch: &meta.branch,
            known: std::slice::from_ref(request.head),
        };
        let launcher = self.launcher(context, Vec::new()).await?;
        match export(&launcher, &options, &repo, 1).await.map_err(StageRunError::failed)? {
            Exported::Tip(tip) => {
                let name = import_ref(&run, &meta.branch).map_err(StageRunError::failed)?;
                Ok(CollectedWork::Commits { repo, name, tip })
            }
            Exported::NothingNew => Ok(CollectedWork::Nothing),
            Exported::NoBranch => {
                Ok(CollectedWork::Refused(format!("the agent deleted the branch {}", meta.branch)))
            }
            Exported::Refused(reason) => Ok(CollectedWork::Refused(reason)),
        }
    }

    fn box_options<'a>(
        &self,
        context: StageContext<'_>,
        name: &'a str,
        deadline_secs: u64,
    ) -> Result<BoxOptions<'a>, StageRunError> {
        Ok(BoxOptions {
            name,
            workspace: context.run_dir.join(WORKSPACE),
            access: MountAccess::ReadWrite,
            state: self.blank_state(context)?,
            deadline_secs,
        })
    }

    /// Commits what the agent left, as the user and with the product's hooks. Returns the reason of a refusal.
    async fn commit_rest(
        &self,
        request: ImplementRequest<'_>,
    ) -> Result<Option<String>, StageRunError> {
        let context = request.context;
        let box_layout =
            self.box_layout(context, self.box_options(context, "commit", COMMIT_SECS)?).await?;
        let hooks = find_hooks(context).await?;
        let message = format!("{}: {}", request.commit.id, request.commit.title);
        let branch = context.workstream.meta.branch.as_str();
        let argv = ["/bin/sh", "-c", SCRIPT, "commit", branch, &message, hooks.inside()];
        let mut command = BoxCommand::new(box_layout, argv.map(str::to_owned).to_vec());
        command.env = commit_env(&identity(context.product).await.map_err(|failure| {
            StageRunError::Failed(format!(
                "the identity for the commit could not be read: {failure}"
            ))
        })?);
        command.programs = hooks.mount();
        let launcher = self.launcher(context, Vec::new()).await?;
        let end = command.run(&launcher, context.cancel).await.map_err(StageRunError::failed)?;
        read_commit(&end, context)
    }
}

fn read_commit(
    end: &BoxCommandResult,
    context: StageContext<'_>,
) -> Result<Option<String>, StageRunError> {
    match &end.record.ended {
        Ended::Exited { code: 0 } => Ok(None),
        Ended::Exited { code: OTHER_BRANCH } => Ok(Some(format!(
            "the agent left its workspace on another branch than {}",
            context.workstream.meta.branch
        ))),
        Ended::Exited { code } => Ok(Some(format!(
            "what the agent left could not be committed (status {code}): {}",
            end.tail().trim()
        ))),
        Ended::OutOfTime => {
            Ok(Some(format!("what the agent left could not be committed within {COMMIT_SECS} s")))
        }
        Ended::Stopped => Err(StageRunError::Stopped("stopped while committing".to_owned())),
        other => Err(StageRunError::Failed(format!("the box for the commit failed: {other:?}"))),
    }
}

/// Environment of the commit: the user's identity, and no git configuration of the agent.
fn commit_env(who: &GitIdentity) -> BTreeMap<String, String> {
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

/// The product's hooks. They run only inside the box, because they may start programs that the agent changed.
enum Hooks {
    None,
    /// A folder of the user.
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

async fn find_hooks(context: StageContext<'_>) -> Result<Hooks, StageRunError> {
    let configured = context.product.hooks_path().await.map_err(StageRunError::failed)?;
    let hooks = match configured {
        Some(path) if !path.starts_with(['/', '~']) => {
            return Ok(Hooks::Tracked(format!("/workspace/{path}")));
        }
        Some(path) if path.starts_with('/') => PathBuf::from(path),
        Some(_) => return Ok(Hooks::None),
        None => context.product.user().common_dir().join("hooks"),
    };
    Ok(if has_hook(&hooks) { Hooks::Folder(hooks) } else { Hooks::None })
}

/// Reports whether a folder has a hook of a commit; samples do not count.
fn has_hook(folder: &std::path::Path) -> bool {
    ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"]
        .iter()
        .any(|name| folder.join(name).is_file())
}
