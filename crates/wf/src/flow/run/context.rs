//! State of one cycle: its directory, its logs and the records of its stages.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use host::git::{GitLog, WorktreeRepo};
use host::lock::FileLock;
use jiff::Timestamp;
use model::id::{Sha, WorkstreamId};
use model::redact::Redactor;
use run_store::commands_log::CommandsLog;
use shell::Ui;

use super::RunOptions;
use super::compete::KeptEvidence;
use crate::disk::event_log::EventLog;
use crate::disk::{
    DiskResult, OpenRun, ProjectDirs, StateFile, WfRunDir, Workstream, load_secrets,
};
use crate::exit::{Failure, OrExit, WfExit, WfResult};
use crate::rules::constraint::ChangeLimits;
use crate::rules::manifest::Tested;
use crate::rules::pipeline::{RunStage, StageOutcome};
use crate::rules::plan::{MicroCommit, Plan};
use crate::rules::profile::Profile;
use crate::rules::result::{StageRecord, StageStatus};
use crate::rules::review::Review;
use crate::rules::run_id::run_stem;

pub(crate) struct RunContext {
    pub(super) dirs: ProjectDirs,
    pub(super) id: WorkstreamId,
    pub(crate) run: WfRunDir,
    pub(super) redactor: Arc<Redactor>,
    events: EventLog,
    pub(super) log: Arc<CommandsLog>,
    pub(super) git_log: GitLog,
    pub(super) started: Timestamp,
    pub(super) lock: Option<FileLock>,
    /// Held while the process lives, so that another run does not treat this one as dead.
    _alive: FileLock,
    pub(super) product: Option<WorktreeRepo>,
    pub(super) profile: Option<Profile>,
    pub(super) workstream: Option<Workstream>,
    pub(super) plan: Option<Plan>,
    pub(super) plan_text: String,
    pub(crate) commit: Option<MicroCommit>,
    pub(super) head_before: Option<Sha>,
    pub(super) head: Option<Sha>,
    pub(super) accepted_base: Option<Sha>,
    pub(super) review: Option<Review>,
    /// None before TEST.
    pub(super) tested: Option<Tested>,
    /// Tests and review that a competition made of the head.
    pub(super) kept: Option<KeptEvidence>,
    pub(super) touched: Option<usize>,
    pub(super) notes: Vec<String>,
    pub(super) stages: BTreeMap<RunStage, StageRecord>,
    pub(super) accepted: Option<Sha>,
    stage_started: Instant,
}

/// Owner of a run, for its lock file. Projects may share an ops directory, so it includes the project's name.
pub(crate) fn owner_of(dirs: &ProjectDirs, id: &WorkstreamId) -> String {
    format!("{}.{id}", dirs.project.name)
}

impl RunContext {
    /// Creates the run directory before anything else, so that every run has one.
    pub(super) fn begin(options: &RunOptions<'_>, lock: Option<FileLock>) -> WfResult<Self> {
        let dirs = options.runner.dirs.clone();
        let started = host::clock::now();
        let redactor = Arc::new(Redactor::new(load_secrets(&dirs)?));
        let stem = run_stem(started, &dirs.project.name, options.id);
        let owner = owner_of(&dirs, options.id);
        let (run, alive) = WfRunDir::create(&dirs.runs_dir(), &stem, &owner)?;
        let log =
            CommandsLog::open_in(&run.path(), Arc::clone(&redactor)).or_exit(WfExit::General)?;
        let log = Arc::new(log);
        Ok(Self {
            id: options.id.clone(),
            events: EventLog::create(&run)?,
            run,
            redactor,
            git_log: log.callback(),
            log,
            started,
            lock,
            _alive: alive,
            product: None,
            profile: None,
            workstream: None,
            plan: None,
            plan_text: String::new(),
            commit: None,
            head_before: None,
            head: None,
            accepted_base: None,
            review: None,
            tested: None,
            kept: None,
            touched: None,
            notes: Vec::new(),
            stages: BTreeMap::new(),
            accepted: None,
            stage_started: host::clock::monotonic(),
            dirs,
        })
    }

    pub(super) fn enter(&mut self, stage: RunStage, ui: &Ui) {
        self.stage_started = host::clock::monotonic();
        self.events.append(stage.key(), "start", 0.0);
        if matches!(stage, RunStage::Implement | RunStage::Test | RunStage::Review) {
            ui.phase(stage.key(), stage.key());
        }
        // During LOCK the journal may still describe a dead run; that stage reads it before writing it.
        if self.lock.is_some() && stage != RunStage::Lock {
            // Ignored: without the journal a later crash is only harder to explain.
            self.write_journal(stage).ok();
        }
    }

    pub(super) fn leave(&mut self, stage: RunStage, report: &StageOutcome) {
        let seconds = self.stage_started.elapsed().as_secs_f64();
        let (status, notes) = match report {
            StageOutcome::Passed | StageOutcome::AllDone | StageOutcome::Nothing => {
                (StageStatus::Passed, String::new())
            }
            StageOutcome::Skipped { message } => (StageStatus::Skipped, message.clone()),
            StageOutcome::Blocked { by } | StageOutcome::NotAccepted { by } => {
                (StageStatus::Blocked, by.join(","))
            }
            StageOutcome::Unapproved { message } => (StageStatus::Blocked, message.clone()),
            StageOutcome::ChangesRequested { message }
            | StageOutcome::Failed { message, .. }
            | StageOutcome::Stopped { message } => (StageStatus::Failed, message.clone()),
        };
        let went_on = matches!(status, StageStatus::Passed | StageStatus::Skipped);
        let word = if went_on { "complete" } else { "failed" };
        self.events.append(stage.key(), word, seconds);
        let notes = self.redactor.redact(&notes).into_owned();
        self.stages.insert(stage, StageRecord { status, duration_seconds: seconds, notes });
    }

    pub(super) fn write_journal(&self, stage: RunStage) -> DiskResult<()> {
        let run = OpenRun {
            stem: self.run.stem().to_owned(),
            directory: self.run.name().to_owned(),
            stage: stage.key().to_owned(),
            started: self.started,
            micro_commit: self.commit.as_ref().map(|commit| commit.id.clone()),
            accepted: self.accepted.clone(),
        };
        run.save(&self.dirs, &self.id)
    }

    /// Writes a file of the run, redacted.
    pub(super) fn save(&self, name: &str, bytes: &[u8]) -> WfResult<()> {
        let bytes = self.redactor.redact_bytes(bytes);
        host::file::write_atomic(&self.run.file(name), &bytes, 0o600).or_exit(WfExit::General)
    }

    /// The product repository, which LOAD opened.
    pub(super) fn product(&self) -> WfResult<&WorktreeRepo> {
        known(&self.product, "the product was not opened")
    }

    /// The profile, which LOAD read.
    pub(super) fn profile(&self) -> WfResult<&Profile> {
        known(&self.profile, "the profile was not read")
    }

    /// The workstream, which LOAD read.
    pub(super) fn loaded(&self) -> WfResult<&Workstream> {
        known(&self.workstream, "the workstream was not loaded")
    }

    /// The micro-commit that SELECT chose.
    pub(super) fn selected(&self) -> WfResult<&MicroCommit> {
        known(&self.commit, "no micro-commit was selected")
    }

    /// Tip of the branch at the start of the run.
    pub(super) fn head_before(&self) -> WfResult<&Sha> {
        self.head_before
            .as_ref()
            .ok_or_else(|| Failure::new(WfExit::Implement, "the worktree has no commit"))
    }

    pub(super) fn limits(&self) -> WfResult<ChangeLimits<'_>> {
        let profile = self.profile()?;
        Ok(ChangeLimits {
            id: &self.selected()?.id,
            max_files: profile.max_files,
            max_lines: profile.max_lines,
            allowed: &profile.allowed_paths,
            forbidden: &profile.forbidden_paths,
            expected: &self.loaded()?.meta.expected_paths,
        })
    }

    pub(super) fn block(&self) -> &str {
        let range = self.commit.as_ref().map(|commit| commit.block.clone()).unwrap_or_default();
        self.plan_text.get(range).unwrap_or_default()
    }
}

/// A value that an earlier stage must have set.
fn known<'a, T>(value: &'a Option<T>, otherwise: &str) -> WfResult<&'a T> {
    value.as_ref().ok_or_else(|| Failure::new(WfExit::Internal, otherwise))
}
