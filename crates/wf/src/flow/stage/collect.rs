//! Collection of an agent's work: a box commits what the agent left uncommitted, then the branch is exported as a bundle
//! into a repository of the host. Git on the host never opens the workspace.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use engine::box_command::BoxCommand;
use engine::export::{ExportRequest, Exported, export, import_ref, make_import_repo};
use host::git::{GitIdentity, RefName, SealedRepo};
use model::id::Sha;
use model::inert::inert_line;
use model::verdict::Ended;
use sandbox::spec::ProgramMount;

use super::runner::{IMPORT_REPO, WORKSPACE};
use super::{StageContext, StageResult, StageRunError};
use crate::flow::product::identity;
use crate::rules::plan::MicroCommit;

/// Seconds for the commit, the product's hooks included.
const COMMIT_SECS: u64 = 120;

const HOOKS: &str = "/opt/bottleworks/hooks";

const OTHER_BRANCH: i32 = 30;

/// Commits everything but the results of tests. They are taken back, not left out: `git add` fails when a path that it is to
/// exclude is ignored. `exit 0` where there is nothing to commit.
const SCRIPT: &str = r#"
set -eu
[ "$(git symbolic-ref --quiet HEAD)" = "refs/heads/$1" ] || exit 30
git add --all -- .
git reset --quiet -- ':(top)test-results'
if git diff --cached --quiet; then exit 0; fi
exec git -c "core.hooksPath=$3" commit --quiet --no-gpg-sign --no-edit -m "$2"
"#;

/// Work of an agent, collected from its workspace.
#[derive(Debug, Clone)]
pub(crate) enum CollectedWork {
    Nothing,
    Commits { repo: SealedRepo, name: RefName, tip: Sha },
    Refused(String),
}

impl StageContext<'_> {
    /// Collects the agent's work on a micro-commit. The flow judges it.
    pub(crate) async fn collect(&self, commit: &MicroCommit) -> StageResult<CollectedWork> {
        let message = format!("{}: {}", commit.id, inert_line(&commit.title));
        self.collect_from(&message, &[self.head]).await
    }

    /// Commits what the agent left with this message, and imports its branch. `known` are the commits that it started from.
    pub(super) async fn collect_from(
        &self,
        message: &str,
        known: &[&Sha],
    ) -> StageResult<CollectedWork> {
        if let Some(refused) = self.commit_rest(message).await? {
            return Ok(CollectedWork::Refused(refused));
        }
        let meta = &self.workstream.meta;
        let (path, mirror) = (self.run_dir.join(IMPORT_REPO), self.runner.dirs.mirror(&meta.id));
        let repo = make_import_repo(&path, self.product.user(), &mirror, known).await?;
        let repo = repo.logged(Arc::clone(self.log));
        let run = self.box_run()?;
        let layout =
            self.box_layout("export", WORKSPACE, self.blank_state("export")?, COMMIT_SECS).await?;
        let known: Vec<Sha> = known.iter().copied().cloned().collect();
        let request = ExportRequest {
            run: &run,
            agent_box: &layout.spec(),
            branch: &meta.branch,
            known: &known,
            // The rest was committed just now.
            lists_uncommitted: false,
        };
        let launcher = self.launcher(Vec::new()).await?;
        Ok(match export(&launcher, &request, &repo, 1).await? {
            Exported::Tip(tip) => {
                let name = import_ref(&run, &meta.branch)?;
                CollectedWork::Commits { repo, name, tip }
            }
            Exported::NothingNew => CollectedWork::Nothing,
            Exported::NoBranch => {
                CollectedWork::Refused(format!("the agent deleted the branch {}", meta.branch))
            }
            Exported::Refused(reason) => CollectedWork::Refused(reason),
        })
    }

    /// Commits what the agent left, as the user and with the product's hooks. Returns the reason of a refusal.
    async fn commit_rest(&self, message: &str) -> StageResult<Option<String>> {
        let layout =
            self.box_layout("commit", WORKSPACE, self.blank_state("commit")?, COMMIT_SECS).await?;
        let hooks = self.find_hooks().await?;
        let branch = self.workstream.meta.branch.as_str();
        let argv = ["/bin/sh", "-c", SCRIPT, "commit", branch, message, &hooks.inside];
        let mut command = BoxCommand::new(layout, argv.map(str::to_owned).to_vec());
        command.env = commit_env(&identity(self.product).await.map_err(|failure| {
            StageRunError::Failed(format!(
                "the identity for the commit could not be read: {failure}"
            ))
        })?);
        command.programs = hooks.mounts;
        let launcher = self.launcher(Vec::new()).await?;
        let end = command.run(&launcher, self.cancel).await?;
        match &end.record.ended {
            Ended::Exited { code: 0 } => Ok(None),
            Ended::Exited { code: OTHER_BRANCH } => {
                Ok(Some(format!("the agent left its workspace on another branch than {branch}")))
            }
            Ended::Exited { code } => Ok(Some(format!(
                "what the agent left could not be committed (status {code}): {}",
                end.tail().trim()
            ))),
            Ended::OutOfTime => Ok(Some(format!(
                "what the agent left could not be committed within {COMMIT_SECS} s"
            ))),
            Ended::Stopped => Err(StageRunError::Stopped("stopped while committing".to_owned())),
            other => {
                Err(StageRunError::Failed(format!("the box for the commit failed: {other:?}")))
            }
        }
    }

    async fn find_hooks(&self) -> StageResult<Hooks> {
        let unmounted = |inside| Ok(Hooks { inside, mounts: Vec::new() });
        let host = match self.product.hooks_path().await? {
            // A folder of the repository itself.
            Some(path) if !path.starts_with(['/', '~']) => {
                return unmounted(format!("/workspace/{path}"));
            }
            Some(path) if path.starts_with('~') => return unmounted("/dev/null".to_owned()),
            Some(path) => PathBuf::from(path),
            None => self.product.user().common_dir().join("hooks"),
        };
        // Samples do not count.
        let names = ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"];
        if !names.iter().any(|name| host.join(name).is_file()) {
            return unmounted("/dev/null".to_owned());
        }
        let mounts = vec![ProgramMount { host, inside: HOOKS.to_owned() }];
        Ok(Hooks { inside: HOOKS.to_owned(), mounts })
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
struct Hooks {
    /// Their folder as the box has it.
    inside: String,
    mounts: Vec<ProgramMount>,
}
