//! The stage runner: chooses the backend and lays out boxes and workspaces.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use engine::agent_run::BoxLayout;
use engine::launch::Launcher;
use engine::sweep::sweep_orphans;
use engine::workspace::{WorkspaceOptions, make_harness_state, make_workspace};
use host::dirs::Dirs;
use model::exit::WfExit;
use model::id::{BoxName, RunId, Sha};
use model::secret::Secret;
use sandbox::backend::BackendKind;
use sandbox::choice;
use sandbox::spec::{BoxLimits, BoxUser, MountAccess, Root};
use shell::agent_settings::DEFAULT_IMAGE;
use tokio::sync::OnceCell;

use super::{StageContext, StageRunError};
use crate::disk::project_dirs::ProjectDirs;
use crate::disk::secrets::load_secrets;
use crate::exit::{Failure, OrExit};
use crate::rules::profile::Profile;
use crate::ui::Ui;

/// The agent's copy of the branch, in the run's directory.
pub(super) const WORKSPACE: &str = "workspace";
/// The copy that tests run in; the suites of one run share it.
pub(super) const TEST_WORKSPACE: &str = "test-workspace";
/// The copy of read-only agents.
pub(super) const REVIEW_WORKSPACE: &str = "review-workspace";
/// The host's repository, into which an agent's commits are imported.
pub(super) const IMPORT_REPO: &str = "repo.git";
/// The home directory of boxes without an agent's memory.
pub(super) const BOX_STATE: &str = "box-state";

/// Runs the stages of a project that need boxes.
#[derive(Debug)]
pub(crate) struct StageRunner {
    pub(super) dirs: ProjectDirs,
    pub(super) ui: Ui,
    /// Values to redact from every log.
    pub(super) secrets: Vec<Secret>,
    /// Directory of installed agents.
    pub(super) agents: PathBuf,
    backend: OnceCell<ChosenBackend>,
    /// Notes for the run's record.
    notes: Mutex<Vec<String>>,
}

#[derive(Debug, Clone)]
struct ChosenBackend {
    kind: BackendKind,
    root: Root,
    reason: String,
}

#[derive(Debug)]
pub(super) struct BoxOptions<'a> {
    pub(super) name: &'a str,
    pub(super) workspace: PathBuf,
    pub(super) access: MountAccess,
    pub(super) state: PathBuf,
    pub(super) deadline_secs: u64,
}

impl StageRunner {
    pub(crate) fn new(dirs: &ProjectDirs, ui: &Ui) -> Result<Self, Failure> {
        let user_dirs = Dirs::from_env().or_exit(WfExit::Config)?;
        Ok(Self {
            dirs: dirs.clone(),
            ui: ui.clone(),
            secrets: load_secrets(dirs)?,
            agents: user_dirs.data_home().join("bottleworks/agents"),
            backend: OnceCell::new(),
            notes: Mutex::new(Vec::new()),
        })
    }

    /// Adds a note to the run's record.
    pub(super) fn note(&self, message: String) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(message);
    }

    /// Takes the notes since the last call.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Layout of a box in the run's directory.
    pub(super) async fn box_layout(
        &self,
        context: StageContext<'_>,
        options: BoxOptions<'_>,
    ) -> Result<BoxLayout, StageRunError> {
        let backend = self.backend(context.profile).await?;
        Ok(BoxLayout {
            run: box_run(context.run_dir)?,
            name: BoxName::parse(options.name).map_err(StageRunError::failed)?,
            box_dir: context.run_dir.join("boxes").join(options.name),
            root: backend.root,
            workspace: options.workspace,
            access: options.access,
            harness_state: options.state,
            user: BoxUser::of_caller(),
            limits: BoxLimits::default(),
            deadline_secs: options.deadline_secs,
        })
    }

    /// Launcher of boxes; `more` are further values to redact. Orphaned containers are removed first: one of them may
    /// still work in the same folders.
    pub(super) async fn launcher(
        &self,
        context: StageContext<'_>,
        more: Vec<Secret>,
    ) -> Result<Launcher, StageRunError> {
        context.refuse_stopped()?;
        let backend = self.backend(context.profile).await?.kind;
        sweep_orphans(backend, &self.ui).await.map_err(StageRunError::failed)?;
        let secrets = self.secrets.iter().cloned().chain(more).collect();
        Launcher::of_this_program(backend, secrets).map_err(StageRunError::failed)
    }

    /// Describes the chosen backend and the reason for the choice.
    pub(crate) async fn describe_backend(
        &self,
        profile: &Profile,
    ) -> Result<String, StageRunError> {
        self.backend(profile).await.map(|backend| backend.reason)
    }

    async fn backend(&self, profile: &Profile) -> Result<ChosenBackend, StageRunError> {
        let look = async {
            let wanted = profile.box_backend.as_deref().map(str::parse).transpose();
            let wanted: Option<BackendKind> = wanted.map_err(StageRunError::config)?;
            let image = profile.box_image.as_deref().unwrap_or(DEFAULT_IMAGE);
            let found = choice::observe(wanted, image).await;
            let choice = choice::choose(wanted, &found, image).map_err(StageRunError::config)?;
            let root = choice.kind.root(image, None);
            let reason = format!("{}: {}", choice.kind, choice.reason);
            Ok(ChosenBackend { kind: choice.kind, root, reason })
        };
        self.backend.get_or_try_init(|| look).await.cloned()
    }

    /// Makes a copy of a commit on the workstream's branch, without anything else of the user's repository.
    pub(super) async fn checkout(
        &self,
        context: StageContext<'_>,
        commit: &Sha,
        folder: &str,
    ) -> Result<PathBuf, StageRunError> {
        context.refuse_stopped()?;
        let meta = &context.workstream.meta;
        let path = context.run_dir.join(folder);
        let options = WorkspaceOptions {
            branch: meta.branch.clone(),
            base: commit.clone(),
            others: vec![(format!("base/{}", meta.base_branch), meta.base_sha.clone())],
            owner: BoxUser::of_caller(),
            merge: None,
        };
        let mirror = self.dirs.mirror(&meta.id);
        let notes = make_workspace(
            context.product.user(),
            &options,
            &path,
            &mirror,
            Some(Arc::clone(context.log)),
        )
        .await
        .map_err(StageRunError::failed)?;
        notes.messages().into_iter().for_each(|message| self.note(message));
        Ok(path)
    }

    /// The home directory of a box without an agent's memory.
    pub(super) fn blank_state(&self, context: StageContext<'_>) -> Result<PathBuf, StageRunError> {
        let path = context.run_dir.join(BOX_STATE);
        make_harness_state(&path, BoxUser::of_caller()).map_err(StageRunError::failed)?;
        Ok(path)
    }
}

/// Limit on the run's name in a box.
const RUN_MAX: usize = 120;

/// The run's name for its boxes. Its own name may be longer, and the project's name may contain two dots.
pub(super) fn box_run(run_dir: &Path) -> Result<RunId, StageRunError> {
    let name = run_dir.file_name().unwrap_or_default().to_string_lossy().replace("..", "__");
    let short: String = name.chars().take(RUN_MAX).collect();
    RunId::parse(&short).map_err(StageRunError::failed)
}
