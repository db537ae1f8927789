//! One run of an agent, phase by phase, for every product.
//!
//! A run is a directory. Each phase leaves its mark in the record when it is done, so a process that was killed is
//! followed by another one that opens the directory and continues from the last mark. [`Run::open`] is the only way to
//! a [`Run`]: a new one is written to disk by [`create`] and then opened like any other.
//!
//! - `record`: the record on disk
//! - `product`: the trait of a product
//! - `phase`: the phases, and the push that publishing consists of

mod phase;
mod product;
mod record;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::Usage;
use host::file::{FileError, write_atomic, write_transient};
use host::git::{GitError, GitLog, SealedRepo, UserRepo};
use host::lock::{FileLock, LockError, LockKind};
use host::signal::Cancel;
use model::id::{BoxName, IdError, Sha};
use model::redact::Redactor;
use model::secret::Secret;
use run_store::StoreError;
use run_store::commands_log::CommandsLog;
use run_store::env_snapshot::LaterSnapshot;
use run_store::metadata::{save_mark, save_metadata};
use run_store::operation_log::OperationLog;
use run_store::run_dir::RunDir;
use sandbox::backend::BackendKind;
use sandbox::error::SandboxError;
use sandbox::spec::{BoxLimits, BoxUser, MountAccess, Root};

use crate::agent_plan::AgentPlan;
use crate::agent_run::{AgentExit, AgentRun, AgentRunError, BoxLayout};
use crate::box_command::{BoxCommand, BoxCommandSummary};
use crate::evidence::Pins;
use crate::export::{ExportError, make_import_repo};
use crate::launch::{LaunchError, Launcher};
use crate::lease_file::LeaseFile;
use crate::report::{Reporter, report_agent_event};
use crate::terminal::AttachedTerminal;
use crate::workspace::{WorkspaceError, WorkspaceOptions, make_harness_state, make_workspace};

pub use phase::{ForgeClaim, Push, Pushed, advance, gather_evidence};
pub use product::{ImportSource, Product, SetupCommand};
pub use record::{ImportOutcome, Phase, ProductRecord, RunRecord};

/// The plan in the run directory. Names the locations of keys and contains none.
const PLAN_FILE: &str = "plan.json";

/// Lock in the run directory, held by the process that works on the run.
const LOCK_FILE: &str = "lock";

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Agent(#[from] AgentRunError),
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    Export(#[from] ExportError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Name(#[from] IdError),
    #[error("could not open the terminal of the box")]
    Terminal(#[source] std::io::Error),
    #[error("could not {doing} {path}", path = path.display())]
    Plan { doing: &'static str, path: PathBuf, source: std::io::Error },
}

#[derive(Debug)]
pub struct SavedRun<R: ProductRecord> {
    pub dir: RunDir,
    pub record: RunRecord<R>,
    pub plan: AgentPlan,
}

impl<R: ProductRecord> SavedRun<R> {
    pub fn load(dir: RunDir) -> Result<Self, RunError> {
        Ok(Self { record: RunRecord::load(&dir)?, plan: load_plan(&dir)?, dir })
    }

    /// The keys of its model, as far as they still exist, for the redactor.
    pub fn secrets(&self) -> Vec<Secret> {
        self.plan.key.values().unwrap_or_default()
    }
}

/// Writes the first record and the plan of a run. Nothing has been started yet, so only phases that the product names wait
/// for the disk.
pub fn create<P: Product>(
    dir: &RunDir,
    record: &RunRecord<P::Record>,
    plan: &AgentPlan,
    secrets: &[Secret],
) -> Result<(), RunError> {
    let write = if record.phase < P::DURABLE_FROM { write_transient } else { write_atomic };
    save_plan(dir, plan, write)?;
    Ok(save::<P>(dir, &Redactor::new(secrets.to_vec()), record)?)
}

fn save_plan(
    dir: &RunDir,
    plan: &AgentPlan,
    write: fn(&Path, &[u8], u32) -> Result<(), FileError>,
) -> Result<(), RunError> {
    let path = dir.path().join(PLAN_FILE);
    let failed = |source| RunError::Plan { doing: "write", path: path.clone(), source };
    let bytes = serde_json::to_vec_pretty(plan).map_err(|error| failed(error.into()))?;
    Ok(write(&path, &bytes, 0o600)?)
}

fn save<P: Product>(
    dir: &RunDir,
    redactor: &Redactor,
    record: &RunRecord<P::Record>,
) -> Result<(), StoreError> {
    let save = if record.phase < P::DURABLE_FROM { save_mark } else { save_metadata };
    save(dir, redactor, record)
}

pub fn load_plan(dir: &RunDir) -> Result<AgentPlan, RunError> {
    let path = dir.path().join(PLAN_FILE);
    std::fs::read(&path)
        .and_then(|bytes| Ok(serde_json::from_slice(&bytes)?))
        .map_err(|source| RunError::Plan { doing: "read", path, source })
}

/// Returns whether a process works on the run.
pub fn is_alive(dir: &RunDir) -> Result<bool, LockError> {
    host::lock::is_held(&dir.path().join(LOCK_FILE))
}

#[derive(Debug, Clone)]
pub struct BoxSettings {
    pub backend: BackendKind,
    pub root: Root,
    pub workspace: PathBuf,
    pub harness_state: PathBuf,
    pub limits: BoxLimits,
    pub agent_secs: u64,
    /// The agent's access to the workspace; other boxes of the run may write there.
    pub agent_access: MountAccess,
}

#[derive(Debug)]
pub struct Run<R: ProductRecord> {
    pub dir: RunDir,
    pub record: RunRecord<R>,
    pub plan: AgentPlan,
    pub boxes: BoxSettings,
    pub cancel: Cancel,
    pub redactor: Arc<Redactor>,
    /// The user's terminal, from the launch of the box until it is attended.
    pub terminal: Option<AttachedTerminal>,
    secrets: Vec<Secret>,
    earlier_usage: Usage,
    lease: Option<LeaseFile>,
    commands: Arc<CommandsLog>,
    /// The programs of this machine: looked up while the agent works, because some take long to answer.
    snapshot: LaterSnapshot,
    /// For [`is_alive`]. Two processes are kept apart by a lock of the product, so this one may fail.
    lock: Option<FileLock>,
}

#[derive(Debug)]
pub struct RunOptions {
    pub boxes: BoxSettings,
    /// Values that must never be written, beside the keys of the plan.
    pub secrets: Vec<Secret>,
    pub earlier_usage: Usage,
    pub cancel: Cancel,
    /// The boxes of the run end with this lease.
    pub lease: Option<LeaseFile>,
}

impl<R: ProductRecord> Run<R> {
    /// Opens a run on disk: a new one, or one whose process was killed.
    pub fn open(saved: SavedRun<R>, options: RunOptions) -> Result<Self, RunError> {
        let mut secrets = saved.secrets();
        let SavedRun { dir, record, plan } = saved;
        let RunOptions { boxes, secrets: more, earlier_usage, cancel, lease } = options;
        secrets.extend(more);
        let redactor = Arc::new(Redactor::new(secrets.clone()));
        let commands = CommandsLog::open(&dir, Arc::clone(&redactor))?;
        let lock = LockKind::Exclusive { note: "run" };
        let lock = FileLock::try_acquire(&dir.path().join(LOCK_FILE), lock).ok();
        Ok(Self {
            commands: Arc::new(commands),
            dir,
            record,
            plan,
            boxes,
            cancel,
            lease,
            redactor,
            terminal: None,
            secrets,
            earlier_usage,
            snapshot: LaterSnapshot::default(),
            lock,
        })
    }

    /// Replaces a plan without an agent. The keys of the new one are redacted from now on.
    pub fn decide_agent(&mut self, plan: AgentPlan) -> Result<(), RunError> {
        save_plan(&self.dir, &plan, write_transient)?;
        self.secrets.extend(plan.key.values().unwrap_or_default());
        self.redactor = Arc::new(Redactor::new(self.secrets.clone()));
        self.commands = Arc::new(CommandsLog::open(&self.dir, Arc::clone(&self.redactor))?);
        self.plan = plan;
        Ok(())
    }

    pub fn git_log(&self) -> GitLog {
        self.commands.callback()
    }

    /// Removes the lock. A closed run has none.
    fn remove_lock(&mut self) {
        if let Some(lock) = self.lock.take() {
            std::fs::remove_file(lock.path()).ok();
        }
    }

    /// Opens the operation log. It has one writer at a time and in some runs that is a sidecar, so it is opened for each
    /// use and closed again.
    pub fn operations(&self) -> Result<OperationLog, StoreError> {
        OperationLog::open_or_create(&self.dir, Arc::clone(&self.redactor))
    }

    pub fn layout(&self, name: &str, deadline_secs: u64) -> Result<BoxLayout, RunError> {
        let name = BoxName::parse(name)?;
        Ok(BoxLayout {
            run: self.dir.id().clone(),
            box_dir: self.dir.box_dir(&name),
            name,
            root: self.boxes.root.clone(),
            workspace: self.boxes.workspace.clone(),
            access: MountAccess::ReadWrite,
            harness_state: self.boxes.harness_state.clone(),
            user: BoxUser::of_caller(),
            limits: self.boxes.limits.clone(),
            deadline_secs,
        })
    }

    pub fn agent_run(&self) -> Result<AgentRun<'_>, RunError> {
        let layout = self.layout("agent", self.boxes.agent_secs)?;
        let layout = BoxLayout { access: self.boxes.agent_access, ..layout };
        Ok(AgentRun { layout, plan: &self.plan })
    }

    pub fn launcher(&self) -> Result<Launcher, LaunchError> {
        let launcher = Launcher::of_this_program(self.boxes.backend, self.secrets.clone())?;
        Ok(Launcher { lease: self.lease.clone(), ..launcher })
    }

    /// Waits for the agent's box and reports the agent's progress.
    pub async fn attend(
        &self,
        terminal: Option<AttachedTerminal>,
        reporter: &dyn Reporter,
    ) -> Result<AgentExit, RunError> {
        let agent_run = self.agent_run()?;
        let report = |event| report_agent_event(reporter, event);
        let attended = match terminal {
            Some(terminal) => agent_run.attend_terminal(Some(terminal), &self.cancel, report).await,
            None => agent_run.attend(self.earlier_usage, &self.cancel, report).await,
        };
        Ok(attended?)
    }

    /// Runs a line in a box of its own, with the agent's network access but without its model. A box of that name that
    /// was started before is waited for instead.
    pub async fn run_line(
        &self,
        layout: BoxLayout,
        line: &str,
    ) -> Result<BoxCommandSummary, RunError> {
        let mut command = BoxCommand::shell(layout, line);
        command.policy = self.plan.egress.as_ref().map(|egress| egress.policy.clone());
        self.run_command(command, line).await
    }

    /// Runs a command in a box of its own, recorded as `name`.
    pub async fn run_command(
        &self,
        command: BoxCommand,
        name: &str,
    ) -> Result<BoxCommandSummary, RunError> {
        let result = command.run(&self.launcher()?, &self.cancel).await?;
        Ok(result.summary(name.to_owned()))
    }

    /// Makes the workspace and the harness state. What a killed process left half-done is removed first.
    pub async fn make_workspace(
        &mut self,
        source: &UserRepo,
        options: &WorkspaceOptions,
        mirror: &Path,
        reporter: &dyn Reporter,
    ) -> Result<(), RunError> {
        self.remove_workspace()?;
        let BoxSettings { workspace, harness_state, .. } = &self.boxes;
        let log = Some(self.git_log());
        let notes = make_workspace(source, options, workspace, mirror, log).await?;
        make_harness_state(harness_state, options.owner)?;
        notes.messages().iter().for_each(|message| reporter.note(message));
        self.record.workspace = Some(notes);
        Ok(())
    }

    pub fn remove_workspace(&self) -> Result<(), FileError> {
        host::file::remove_tree_safely(&self.boxes.workspace)?;
        host::file::remove_tree_safely(&self.boxes.harness_state)
    }

    /// Makes the host's repository of this run, with exactly what the pinned commits reach.
    pub async fn make_import_repo(
        &self,
        source: &ImportSource<'_>,
    ) -> Result<SealedRepo, RunError> {
        let Pins { base, upstream } = &source.pins;
        let wants: Vec<&Sha> = [base, upstream].into_iter().chain(&source.others).collect();
        let repo = make_import_repo(&self.dir.repo(), source.repo, &source.mirror, &wants).await?;
        Ok(repo.logged(self.git_log()))
    }

    /// The host's repository of this run, which was made before.
    pub fn import_repo(&self, source: &UserRepo) -> SealedRepo {
        SealedRepo::open(&self.dir.repo(), source.object_format())
    }
}
