//! The stage runner: chooses the backend and lays out boxes and workspaces.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use engine::agent_run::BoxLayout;
use engine::launch::Launcher;
use engine::sweep::sweep_orphans;
use engine::trial::choose_backend;
use engine::workspace::{MergeBegun, WorkspaceOptions, make_harness_state, make_workspace};
use host::dirs::Dirs;
use model::id::{BoxName, RunId};
use model::secret::Secret;
use sandbox::backend::BackendKind;
use sandbox::spec::{BoxLimits, BoxUser, MountAccess, Root};
use shell::Ui;
use shell::agent_settings::DEFAULT_IMAGE;
use shell::config::Config;
use tokio::sync::OnceCell;

use super::{StageContext, StageResult, StageRunError};
use crate::disk::project_dirs::agents_dir;
use crate::disk::run_dir::BOXES_DIR;
use crate::disk::{ProjectDirs, load_secrets};
use crate::exit::{OrExit, WfExit, WfResult};
use crate::rules::profile::Profile;

/// The agent's copy of the branch, in the run's directory.
pub(super) const WORKSPACE: &str = "workspace";
/// The copy that tests run in; the suites of one run share it.
pub(super) const TEST_WORKSPACE: &str = "test-workspace";
/// The copy of read-only agents.
pub(super) const REVIEW_WORKSPACE: &str = "review-workspace";
/// The host's repository, into which an agent's commits are imported.
pub(super) const IMPORT_REPO: &str = "repo.git";
/// Home directories of boxes without an agent's memory.
pub(super) const BOX_STATE: &str = "box-state";

#[derive(Debug)]
pub(crate) struct StageRunner {
    pub(crate) dirs: ProjectDirs,
    pub(crate) ui: Ui,
    secrets: Vec<Secret>,
    pub(crate) agents: PathBuf,
    backend: OnceCell<ChosenBackend>,
    /// A person wants to wait for a quota in this run, whatever the profile says.
    pub(crate) wait_quota: bool,
    /// Held for a checkout: those of one workstream share a mirror.
    checkouts: tokio::sync::Mutex<()>,
    /// Notes for the run's record.
    notes: Mutex<Vec<String>>,
}

#[derive(Debug, Clone)]
struct ChosenBackend {
    kind: BackendKind,
    root: Root,
}

impl StageRunner {
    pub(crate) fn new(dirs: &ProjectDirs, ui: &Ui) -> WfResult<Self> {
        let user_dirs = Dirs::from_env().or_exit(WfExit::Config)?;
        Ok(Self {
            dirs: dirs.clone(),
            ui: ui.clone(),
            secrets: load_secrets(dirs)?,
            agents: agents_dir(&user_dirs),
            backend: OnceCell::new(),
            wait_quota: false,
            checkouts: tokio::sync::Mutex::new(()),
            notes: Mutex::new(Vec::new()),
        })
    }

    pub(super) fn note(&self, message: String) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(message);
    }

    pub(crate) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn backend(&self, profile: &Profile) -> StageResult<ChosenBackend> {
        let choose = async {
            let wanted = profile.box_backend.as_deref().map(str::parse).transpose();
            let wanted: Option<BackendKind> = wanted.map_err(StageRunError::config)?;
            let image = profile.box_image.as_deref().unwrap_or(DEFAULT_IMAGE);
            let choice = choose_backend(wanted, image, &self.dirs.runs_dir()).await;
            let choice = choice.map_err(StageRunError::config)?;
            let root = choice.kind.root(image, None);
            Ok(ChosenBackend { kind: choice.kind, root })
        };
        self.backend.get_or_try_init(|| choose).await.cloned()
    }
}

impl StageContext<'_> {
    /// Layout of a box in the run's directory, with `folder` of the run as its workspace.
    pub(super) async fn box_layout(
        &self,
        name: &str,
        folder: &str,
        harness_state: PathBuf,
        deadline_secs: u64,
    ) -> StageResult<BoxLayout> {
        let access = match folder {
            REVIEW_WORKSPACE => MountAccess::ReadOnly,
            _ => MountAccess::ReadWrite,
        };
        let shared = Config::load().map_err(StageRunError::config)?;
        Ok(BoxLayout {
            run: self.box_run()?,
            name: BoxName::parse(name)?,
            box_dir: self.run_dir.join(BOXES_DIR).join(name),
            root: self.runner.backend(self.profile).await?.root,
            workspace: self.run_dir.join(folder),
            access,
            harness_state,
            user: BoxUser::of_caller(),
            limits: BoxLimits {
                free_floor_bytes: self.profile.disk_floor_bytes(),
                ..shared.box_limits()
            },
            deadline_secs,
        })
    }

    /// Launcher of boxes; `more` are further values to redact. Orphaned containers are removed before each box: one of
    /// them may still work in the same folders.
    pub(super) async fn launcher(&self, more: Vec<Secret>) -> StageResult<Launcher> {
        self.refuse_stopped()?;
        let StageRunner { ui, secrets, .. } = self.runner;
        let backend = self.runner.backend(self.profile).await?.kind;
        sweep_orphans(backend, ui).await?;
        let secrets = secrets.iter().cloned().chain(more).collect();
        Ok(Launcher::of_this_program(backend, secrets)?)
    }

    /// Makes a copy of the commit on the workstream's branch, without anything else of the user's repository.
    pub(super) async fn checkout(&self, folder: &str) -> StageResult<()> {
        self.checkout_merge(folder, None).await
    }

    /// The same, with a merge that is in progress.
    pub(super) async fn checkout_merge(
        &self,
        folder: &str,
        merge: Option<MergeBegun>,
    ) -> StageResult<()> {
        self.refuse_stopped()?;
        let meta = &self.workstream.meta;
        let base = merge.as_ref().map_or_else(|| meta.base_sha.clone(), |it| it.theirs.clone());
        let options = WorkspaceOptions {
            branch: meta.branch.clone(),
            base: self.head.clone(),
            others: vec![(format!("base/{}", meta.base_branch), base)],
            owner: BoxUser::of_caller(),
            merge,
        };
        let (path, mirror) = (self.run_dir.join(folder), self.runner.dirs.mirror(&meta.id));
        let log = Some(Arc::clone(self.log));
        let _one = self.runner.checkouts.lock().await;
        let notes = make_workspace(self.product.user(), &options, &path, &mirror, log).await?;
        notes.messages().into_iter().for_each(|message| self.runner.note(message));
        Ok(())
    }

    /// The machine that boxes run on, in words that tell whether programs of one run in another.
    pub(super) async fn box_place(&self) -> StageResult<String> {
        let backend = self.runner.backend(self.profile).await?;
        Ok(format!("{:?} {:?}", backend.kind, backend.root))
    }

    /// The home directory of boxes without an agent's memory. Each purpose has its own: what a hook or a test of the agent
    /// leaves in a home must not reach the tests or the reviewer.
    pub(super) fn blank_state(&self, purpose: &str) -> StageResult<PathBuf> {
        let path = self.run_dir.join(BOX_STATE).join(purpose);
        make_harness_state(&path, BoxUser::of_caller())?;
        Ok(path)
    }

    /// The run's name for its boxes. Its own name may be longer, and the project's name may contain two dots.
    pub(super) fn box_run(&self) -> StageResult<RunId> {
        let name = self.run_dir.file_name().unwrap_or_default().to_string_lossy();
        let short: String = name.replace("..", "__").chars().take(RUN_MAX).collect();
        Ok(RunId::parse(&short)?)
    }
}

const RUN_MAX: usize = 120;
