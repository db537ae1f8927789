//! One run of forklift: its part of the engine's run.

use std::path::{Path, PathBuf};

use agent::Usage;
use engine::agent_result::AgentClaim;
use engine::attribution::Attribution;
use engine::box_command::BoxCommandSummary;
use engine::evidence::{NewCommit, Pins};
use engine::report::Reporter;
use engine::run::{
    BoxSettings, ImportSource, Phase, Product, Run, RunError, RunOptions, SavedRun, SetupCommand,
};
use engine::workspace::{WorkspaceError, WorkspaceOptions, copy_folder, find_deep_folder};
use forge::NewPull;
use host::git::{SealedRepo, UserRepo};
use host::signal::Cancel;
use model::exit::{ExitStatus, ForkliftExit};
use model::id::{BranchName, RunId, Sha};
use model::verdict::Ended;
use run_store::run_dir::{self, RunDir};
use sandbox::spec::{BoxUser, MountAccess, Root};
use shell::Ui;
use shell::runtime::{stop_status, unless_stopped};

use super::attempt::AttemptStore;
use super::earlier::{earlier_publications, find_later_result};
use super::integrate::{Integration, ResultAccounts};
use super::notify::notify;
use super::observe::fork_key;
use super::progress::with_ticks;
use super::publish::{new_branch, unpublished};
use super::pull::{ForgePlan, open_pull};
use super::record::{ForkRecord, ForkRunRecord};
use super::show::show_end;
use crate::commands::ForkliftDirs;
use crate::commands::run_args::AgentWhen;
use crate::exit::{Failure, OrExit};
use crate::rules::STUCK_FILE;
use crate::rules::judge::{ResultFacts, Verdict, judge};
use crate::rules::publish_mode::PublishMode;
use crate::rules::pull_text::{ForkPullFacts, render_pull};
use crate::rules::test_gate::{MadeBy, judge_tests};

/// Bytes of the agent's note that are read.
const STUCK_CAP: usize = 64 * 1024;

/// Commits of upstream that a pull request counts.
const MOST_INCOMING: usize = 5000;

const UNRELATED: &str =
    "upstream has no history in common with the fork; if that is right, say --allow-unrelated";

pub(crate) struct ForkRun<'a> {
    pub(crate) run: Run<ForkRecord>,
    pub(crate) ui: &'a Ui,
    pub(crate) repo: UserRepo,
    pub(super) forge: ForgePlan,
    pub(crate) cache: PathBuf,
    pub(super) places: ForkliftDirs,
}

impl<'a> ForkRun<'a> {
    /// Opens a run on disk: a new one, or one whose forklift was killed.
    pub(crate) fn open(
        ui: &'a Ui,
        places: &ForkliftDirs,
        dir: RunDir,
        repo: UserRepo,
        cancel: Cancel,
    ) -> Result<Self, Failure> {
        let saved = SavedRun::<ForkRecord>::load(dir).map_err(Self::failure)?;
        let forge = ForgePlan::find(&saved.record.fork.forge, places)?;
        if saved.record.withdraws.is_none() {
            let path = &saved.record.fork.path;
            let back = AttemptStore::from_env().and_then(|store| store.bring_back(path));
            // What is wrong with the records must not keep a run from its work.
            back.unwrap_or_else(|failure| ui.warn(&failure.to_string()));
        }
        let settings = &saved.record.settings;
        let boxes = BoxSettings {
            backend: settings.backend,
            root: settings.image.clone().map_or(Root::HostUsr, Root::Image),
            workspace: saved.dir.workspace(),
            harness_state: saved.dir.harness_state(),
            limits: places.shared.box_limits(),
            agent_secs: settings.timeout_secs,
            agent_access: MountAccess::ReadWrite,
        };
        let earlier_usage = match &saved.record.resumed_from {
            Some(earlier) => usage_of(&places.runs, earlier)?,
            None => Usage::default(),
        };
        let secrets: Vec<_> = forge.token.iter().cloned().collect();
        shell::terminal::hide(saved.secrets().into_iter().chain(secrets.clone()));
        let run =
            Run::open(saved, RunOptions { boxes, secrets, earlier_usage, cancel, lease: None });
        let run = run.map_err(Self::failure)?;
        let repo = repo.logged(run.git_log());
        Ok(Self { run, ui, repo, forge, cache: places.cache.clone(), places: places.clone() })
    }

    pub(super) async fn make_import_repo(&self) -> Result<SealedRepo, Failure> {
        self.run.make_import_repo(&self.import_source()).await.map_err(Self::failure)
    }

    /// Copies the workspace of an earlier run, which stays as it is. The earlier note is answered and would only be
    /// read as a new one.
    async fn take_over(&mut self, earlier: &RunId) -> Result<Phase, Failure> {
        self.ui.phase("prepare", &format!("copying the workspace of {earlier}"));
        let from =
            RunDir::open(&self.run.dir.path().with_file_name(earlier.as_str())).or_usage()?;
        let BoxSettings { workspace, harness_state, .. } = self.run.boxes.clone();
        let pairs = [(from.workspace(), &workspace), (from.harness_state(), &harness_state)];
        if let Some(folder) = pairs.iter().find_map(|(from, to)| find_deep_folder(from, to)) {
            let reason = format!("the agent left folders too deep to be copied: {folder}");
            return Ok(self.refuse(reason));
        }
        for (from, to) in pairs {
            let copying = async { copy_folder(&from, to).await.map_err(workspace_failure) };
            unless_stopped(&self.run.cancel, with_ticks(self.ui, "copying", copying)).await?;
        }
        match std::fs::remove_file(workspace.join(STUCK_FILE)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).or_machine(),
            _ => Ok(Phase::Prepared),
        }
    }

    /// Makes the workspace, or finishes the work without an agent. Fails as soon as a signal arrives.
    async fn prepare_stoppable(&mut self) -> Result<Phase, Failure> {
        self.run.remove_workspace().or_machine()?;
        self.restore_fix().await?;
        if let Some(earlier) = self.run.record.resumed_from.clone() {
            return self.take_over(&earlier).await;
        }
        if !self.run.record.settings.allow_unrelated && !self.has_common_history().await? {
            return Ok(self.refuse(UNRELATED.to_owned()));
        }
        let handover = match self.run.record.settings.agent_when {
            AgentWhen::Always => None,
            AgentWhen::Conflict => match self.integrate_alone().await? {
                Integration::Done => return Ok(Phase::Imported),
                Integration::Rest(handover) => handover,
            },
        };
        if self.run.plan.is_undecided() {
            self.decide_agent().await?;
        }
        self.ui.phase("prepare", "copying the fork into a workspace of its own");
        let owner = BoxUser::of_caller();
        let ForkRecord { pins, fork, .. } = &self.run.record.product;
        let options = WorkspaceOptions {
            branch: fork.branch.clone(),
            base: pins.base.clone(),
            others: vec![(format!("upstream/{}", fork.upstream_branch()), pins.upstream.clone())],
            owner,
            merge: handover.as_ref().and_then(|handover| handover.begun.clone()),
        };
        let mirror = self.mirror();
        let cancel = self.run.cancel.clone();
        let (run, repo, ui) = (&mut self.run, &self.repo, self.ui);
        let making =
            async { run.make_workspace(repo, &options, &mirror, ui).await.map_err(Self::failure) };
        unless_stopped(&cancel, with_ticks(ui, "copying", making)).await?;
        if let Some(handover) = handover {
            // No agent has been here yet, so the host may write to the folder.
            let state = &self.run.boxes.harness_state;
            let page = state.join(handover.file);
            host::file::write_transient(&page, handover.text.as_bytes(), 0o644).or_machine()?;
            engine::workspace::give(state, owner).or_machine()?;
        }
        Ok(Phase::Prepared)
    }

    /// Fails after a signal: no box is started any more.
    pub(super) fn refuse_if_stopped(&self) -> Result<(), Failure> {
        match self.run.cancel.reason() {
            Some(reason) => Err(Failure::new(stop_status(&reason), format!("stopped: {reason}"))),
            None => Ok(()),
        }
    }

    /// Ends the run without an agent.
    fn refuse(&mut self, reason: String) -> Phase {
        self.run.record.verdict = Some(Verdict::Refused { reasons: vec![reason] });
        Phase::Checked
    }

    async fn has_common_history(&self) -> Result<bool, Failure> {
        let Pins { base, upstream } = &self.run.record.pins;
        Ok(self.repo.merge_base(base, upstream).await.or_machine()?.is_some())
    }

    pub(super) async fn pull_request(
        &self,
        repo: &SealedRepo,
        branch: &BranchName,
    ) -> Result<NewPull, Failure> {
        let record = &self.run.record;
        if let Some(step) = &record.train {
            return self.train_pull(step, branch).await;
        }
        let known = std::slice::from_ref(&record.pins.base);
        let incoming = repo.new_commits(&record.pins.upstream, known, MOST_INCOMING).await;
        let incoming: Vec<NewCommit> =
            incoming.or_machine()?.into_iter().map(NewCommit::from).collect();
        let run_path = shown_path(self.run.dir.path());
        let (incoming, run_path) = (incoming.as_slice(), run_path.as_str());
        Ok(render_pull(&ForkPullFacts { record, head: branch, incoming, run_path }))
    }

    /// The agent's note, read as untrusted data. A note that the fork itself carries does not count.
    async fn read_stuck(&self) -> Result<Option<String>, Failure> {
        let read = host::safe_read::read_beneath(&self.run.boxes.workspace, STUCK_FILE, STUCK_CAP);
        let note = match read {
            Ok(None) => return Ok(None),
            Ok(Some(file)) => file.bytes,
            Err(refused) => return Ok(Some(format!("({refused})"))),
        };
        let own = self
            .repo
            .read_blob(&self.run.record.pins.base, STUCK_FILE, STUCK_CAP)
            .await
            .or_machine()?;
        let same = own.is_some_and(|blob| blob.bytes == note);
        Ok((!same).then(|| String::from_utf8_lossy(&note).into_owned()))
    }

    /// The mirror of the fork. A fix has one of its own: its stand-in is no part of what an update wants, which would have to
    /// pack the fork's history anew.
    pub(super) fn mirror(&self) -> PathBuf {
        let end = if self.run.record.fix.is_some() { "-fix.git" } else { ".git" };
        self.cache.join("mirrors").join(format!("{}{end}", fork_key(&self.repo)))
    }
}

impl Product for ForkRun<'_> {
    type Record = ForkRecord;
    type Status = ForkliftExit;
    type Failure = Failure;

    const DURABLE_FROM: Phase = Phase::Launched;

    fn run(&self) -> &Run<ForkRecord> {
        &self.run
    }

    fn run_mut(&mut self) -> &mut Run<ForkRecord> {
        &mut self.run
    }

    fn reporter(&self) -> &dyn Reporter {
        self.ui
    }

    fn failure(error: RunError) -> Failure {
        match error {
            RunError::Workspace(error) => workspace_failure(error),
            RunError::Plan { doing: "read", path, source } => {
                Failure::usage(format!("the run has no plan in {}: {source}", path.display()))
            }
            other => Failure::of(ForkliftExit::Machine, other),
        }
    }

    async fn prepare(&mut self) -> Result<Phase, Failure> {
        // A signal ends git at once here, because nothing has been started that has to be ended in order. Later it does not:
        // a run that was stopped is judged and recorded.
        let patient = self.repo.clone();
        self.repo = patient.clone().cancelled_by(self.run.cancel.clone());
        let prepared = self.prepare_stoppable().await;
        self.repo = patient;
        let phase = prepared?;
        self.refuse_if_stopped()?;
        Ok(phase)
    }

    fn setup_command(&self) -> Option<SetupCommand> {
        let setup = self.run.record.settings.rules.setup.clone()?;
        Some(SetupCommand { line: setup.line, timeout_secs: setup.timeout_secs })
    }

    fn setup_failed(&self, setup: &BoxCommandSummary) -> Verdict {
        Verdict::SetupFailed { how: setup.how() }
    }

    async fn after_box(&mut self) -> Result<(), Failure> {
        self.restore_fix().await?;
        self.run.record.stuck = self.read_stuck().await?;
        Ok(())
    }

    fn has_work(ended: &Ended) -> bool {
        matches!(ended, Ended::Exited { .. } | Ended::Signalled { .. })
    }

    fn import_source(&self) -> ImportSource<'_> {
        ImportSource {
            repo: &self.repo,
            mirror: self.mirror(),
            branch: self.run.record.fork.branch.clone(),
            pins: self.run.record.pins.clone(),
            others: Vec::new(),
        }
    }

    fn attribution(&self) -> Option<&Attribution> {
        self.run.record.attribution.as_ref()
    }

    async fn inspect(&mut self, repo: &SealedRepo, tip: &Sha) -> Result<(), Failure> {
        let ResultAccounts { contract, account, tests } = self.accounts(repo, tip).await?;
        let record = &mut self.run.record;
        record.contract = Some(contract);
        record.account = Some(account);
        record.tests = Some(tests);
        self.run.record.message_points = self.read_messages(repo, tip).await?;
        self.run.record.upstream_actions = self.read_upstream_messages(repo).await?;
        self.inspect_fix(repo, tip).await?;
        self.compare_with_resolver(repo, tip).await
    }

    async fn judge(&mut self) -> Result<Verdict, Failure> {
        self.note_fix_maker();
        let record = &self.run.record;
        let ended = match record.merged_alone {
            true => Ended::Exited { code: 0 },
            false => record.ended(),
        };
        let claim = record.agent_result.as_ref().map(|result| result.claim.clone());
        let by_git = record.merged_alone && record.resolver.is_none();
        let made_by = if by_git { MadeBy::Git } else { MadeBy::AgentOrResolver };
        let verdict = judge(&ResultFacts {
            ended,
            stuck: record.stuck.is_some(),
            claim: claim.unwrap_or(AgentClaim::Finished),
            import: record.import_outcome(),
            lost: record.fork_lost(),
            dropped: record.upstream_dropped(),
            strategy: record.settings.strategy,
            allow_paths: record.settings.allowed_paths(),
        });
        Ok(judge_tests(verdict, record.tests.as_ref(), made_by, record.settings.accept_loss))
    }

    async fn check(&mut self) -> Result<(), Failure> {
        self.run_check().await
    }

    async fn publish(&mut self) -> Result<(), Failure> {
        if let Some(withdrawal) = self.run.record.withdraws.clone() {
            return self.withdraw(withdrawal).await;
        }
        let (Some(Verdict::Publish), Some(tip)) = (&self.run.record.verdict, self.run.record.tip())
        else {
            return Ok(());
        };
        let repo = self.run.import_repo(&self.repo);
        let tip = self.commit_to_publish(&repo, tip).await?;
        if !self.run.record.settings.publish_mode.pushes() {
            return self.hold_back(&repo, &tip).await;
        }
        self.refuse_if_stopped()?;
        self.ui.phase("publish", "pushing the branch to origin");
        let log = self.run.operations().or_machine()?;
        if let Some(later) = find_later_result(self.runs(), self.run.dir.id(), &self.run.record)? {
            let problem = format!("{later} published a later result for this fork");
            let branch = new_branch(self.run.dir.id())?.branch;
            self.run.record.publication = Some(unpublished(branch, tip, problem));
            return Ok(());
        }
        let mut to = self.choose_destination(&tip).await?;
        let mut pushed =
            self.push_to(&repo, &tip, &to).run(&log, &self.run.redactor).await.or_machine()?;
        if to.replaces.is_some() && !pushed.publication.pushed && !pushed.unreachable {
            // Others pushed a moment ago, or origin allows no branch to be rewritten.
            let problem = pushed.publication.problem.unwrap_or_default();
            self.ui.note(&format!("{} could not be renewed ({problem})", to.branch));
            to = new_branch(self.run.dir.id())?;
            pushed =
                self.push_to(&repo, &tip, &to).run(&log, &self.run.redactor).await.or_machine()?;
        }
        let mut published = pushed.publication;
        if published.pushed {
            let pull = self.pull_request(&repo, &published.branch).await?;
            self.note_pushed(&published).await;
            let earlier = earlier_publications(self.runs(), &self.run.record)?;
            let folder = self.run.dir.path();
            match self.run.record.settings.publish_mode {
                PublishMode::BranchOnly => self.leave_out_pull(&pull, &mut published)?,
                PublishMode::Full | PublishMode::Keep | PublishMode::DryRun => {
                    open_pull(&self.forge, &pull, &log, (folder, &earlier), &mut published).await?;
                }
            }
        }
        self.run.record.publication = Some(published);
        Ok(())
    }

    async fn before_launch(&mut self) -> Result<(), Failure> {
        self.refuse_if_stopped()
    }

    async fn before_close(&mut self) -> Result<(ForkliftExit, u8), Failure> {
        let status = match (&self.run.record.verdict, self.run.cancel.reason()) {
            (Some(Verdict::Stopped), Some(reason)) => stop_status(&reason),
            _ => final_status(&self.run.record),
        };
        Ok((status, status.code()))
    }

    async fn after_close(&mut self) {
        let Run { dir, record, .. } = &self.run;
        show_end(self.ui, dir, record, &final_verdict(record));
        notify(self.ui, dir, record).await;
    }
}

pub(crate) fn final_verdict(record: &ForkRunRecord) -> Verdict {
    record.verdict.clone().unwrap_or(Verdict::UpToDate)
}

/// Exit status of a run: that of its verdict, unless a verified commit could not be published.
pub(crate) fn final_status(record: &ForkRunRecord) -> ForkliftExit {
    let failed = record.publication.as_ref().is_some_and(|sent| sent.problem.is_some());
    let recorded = ForkliftExit::ALL.iter().find(|it| Some(it.code()) == record.exit_status);
    match (failed, final_verdict(record)) {
        (true, _) => ForkliftExit::PublishFailed,
        // The signal is in the record alone.
        (false, verdict @ Verdict::Stopped) => recorded.copied().unwrap_or(verdict.status()),
        (false, verdict) => verdict.status(),
    }
}

/// A path below the home folder, without the user's name.
pub(super) fn shown_path(path: &Path) -> String {
    let home = host::env::var_os("HOME").map(PathBuf::from);
    match home.as_deref().and_then(|home| path.strip_prefix(home).ok()) {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}

fn usage_of(runs: &Path, run: &RunId) -> Result<Usage, Failure> {
    let dir = run_dir::find(runs, run.as_str()).or_usage()?;
    let record = ForkRunRecord::load(&dir).or_machine()?;
    Ok(record.agent_result.and_then(|result| result.thread_usage).unwrap_or_default())
}

/// The user can complete shallow and partial clones; other errors are failures of the machine.
pub(super) fn workspace_failure(error: WorkspaceError) -> Failure {
    use WorkspaceError as E;
    let status = match error {
        E::Shallow { .. } | E::Partial { .. } => ForkliftExit::Usage,
        E::Mirror(_)
        | E::Git(_)
        | E::File(_)
        | E::Name(_)
        | E::Incomplete { .. }
        | E::Copy { .. }
        | E::Process(_) => ForkliftExit::Machine,
    };
    Failure::of(status, error)
}
