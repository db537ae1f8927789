//! One run of a bottle: what bot-bottle adds to the engine's run.

use std::collections::BTreeSet;

use agent::{Provider, Usage};
use engine::agent_result::{AgentClaim, AgentResult};
use engine::agent_run::AgentExit;
use engine::box_command::BoxCommandSummary;
use engine::evidence::Pins;
use engine::report::Reporter;
use engine::run::{
    BoxSettings, ImportSource, Phase, Product, Run, RunError, RunOptions, SavedRun, SetupCommand,
};
use engine::workspace::WorkspaceOptions;
use host::git::SealedRepo;
use host::safe_read::read_beneath;
use host::signal::StopSignal;
use model::exit::BottleExit;
use model::id::Sha;
use model::verdict::Ended;
use orchestrator_db::BottleStep;
use run_store::operation_log::{Operation, OperationOutcome as Done};
use run_store::run_dir::RunDir;
use sandbox::spec::{BoxUser, MountAccess};
use serde_json::json;

use super::access::ForgeAccess;
use super::attestation::{load_operations, mark_unsigned, sign_statements};
use super::bottle::{Bottle, BottleState, Record, Session, WorkspaceState};
use super::context::{RunContext, TransientFailure};
use super::leaks::scan_outgoing;
use super::observe::Source;
use super::publish::Publisher;
use super::resolve::{box_limits, root_of};
use super::run_record::{BottleRunPart, SidecarEnd};
use super::show::show_end;
use super::sidecar::SidecarPlace;
use super::travel;
use crate::exit::{Failure, OrGeneral};
use crate::rules::issue_text::own_digest_mark;
use crate::rules::judge::{ActingMessage, AgentWork, Verdict, headless_status, judge};
use crate::rules::session::session_of;

/// Largest number of commits whose messages are read; the evidence bounds them too.
const MESSAGES_MAX: usize = 10_000;

/// A run of a bottle that is in progress.
pub(crate) struct BottleRun<'a> {
    pub(crate) run: Run<BottleRunPart>,
    pub(crate) context: RunContext<'a>,
    pub(crate) bottle: Bottle,
    pub(crate) record: Record,
    pub(crate) source: Source,
    /// The forge of a forge run; `None` without a token.
    pub(crate) access: Option<ForgeAccess>,
}

impl<'a> BottleRun<'a> {
    /// Opens a run on disk: a new one, or one whose bot-bottle was killed.
    pub(crate) fn open(
        context: RunContext<'a>,
        bottle: Bottle,
        record: Record,
        dir: RunDir,
        mut source: Source,
        access: Option<ForgeAccess>,
    ) -> Result<Self, Failure> {
        let saved = SavedRun::<BottleRunPart>::load(dir).map_err(Self::failure)?;
        let part = &saved.record.product;
        let boxes = BoxSettings {
            backend: part.backend,
            root: root_of(part.backend, &part.bottle),
            workspace: bottle.workspace(),
            harness_state: bottle.harness_state(),
            limits: box_limits(&part.manifest.limits)?,
            agent_secs: part.manifest.limits.timeout_secs,
            agent_access: match part.planning {
                true => MountAccess::ReadOnly,
                false => MountAccess::ReadWrite,
            },
        };
        let secrets: Vec<_> = access.iter().map(|access| access.token.clone()).collect();
        shell::terminal::hide(saved.secrets().into_iter().chain(secrets.clone()));
        let options = RunOptions {
            boxes,
            secrets,
            earlier_usage: used_by(&record, &part.manifest.provider),
            cancel: context.cancel.clone(),
            lease: context.rows.lease_file(saved.dir.path()),
        };
        let run = Run::open(saved, options).map_err(Self::failure)?;
        source.repo = source.repo.logged(run.git_log());
        Ok(Self { run, context, bottle, record, source, access })
    }

    /// Id of the conversation at a terminal, if the agent saved it under the id that it was given.
    fn session_at_terminal(&self) -> Option<String> {
        self.run.plan.terminal.as_ref()?;
        let known = self.record.session.clone().filter(|_| self.run.record.resumes_session);
        let id = known.map_or_else(|| session_of(self.run.dir.id()), |session| session.id);
        let kept = Provider::parse(&self.run.plan.provider).ok()?.transcript(&id)?;
        let found = read_beneath(&self.bottle.harness_state(), &format!("home/{kept}"), 1);
        found.ok().flatten().map(|_| id)
    }

    /// Makes the workspace of a new bottle, or brings new commits into that of a frozen one.
    async fn prepare_workspace(&mut self) -> Result<Phase, Failure> {
        if self.record.workspace != WorkspaceState::Absent {
            if Box::pin(self.merge_alone()).await? {
                return Ok(Phase::Imported);
            }
            if let Some(how) = self.bring_news().await? {
                self.run.record.verdict = Some(Verdict::NotRehydrated { how });
                return Ok(Phase::Published);
            }
            self.record.known_base = self.run.record.pins.base.clone();
            self.record.host_merge = None;
            self.record.workspace_twin = None;
            self.bottle.save(&self.record)?;
            return Ok(Phase::Prepared);
        }
        self.context.ui.phase("prepare", "copying the repository into a workspace of its own");
        let pins = &self.run.record.pins;
        let options = WorkspaceOptions {
            branch: pins.branch.clone(),
            base: pins.base.clone(),
            others: vec![(pins.base_source.name_of(&pins.base_branch), pins.base.clone())],
            owner: BoxUser::of_caller(),
            merge: None,
        };
        let mirror = self.source.mirror(self.context.home);
        let ui = self.context.ui;
        let made = self.run.make_workspace(&self.source.repo, &options, &mirror, ui).await;
        made.map_err(Self::failure)?;
        self.record.workspace = WorkspaceState::Made;
        self.bottle.save(&self.record)?;
        Ok(Phase::Prepared)
    }

    /// The verdict about a run that a person stopped.
    pub(super) fn stopped(&self) -> Option<Verdict> {
        self.context.stop_words().map(|how| Verdict::Unfinished { how })
    }

    /// True if the last run of a forge's wake-up was cut off before its agent could do anything about it.
    fn is_cut_off(&self) -> bool {
        let Run { record, .. } = &self.run;
        let waits = |result: &AgentResult| matches!(result.claim, AgentClaim::Waiting { .. });
        matches!(record.verdict, Some(Verdict::Infra { .. }))
            || record.agent_result.as_ref().is_some_and(waits)
    }

    /// Messages of the agent's commits that would act on issues of the forge when they are merged. Without a forge they do
    /// nothing.
    async fn acting_messages(&self) -> Result<Vec<ActingMessage>, Failure> {
        let Run { record, .. } = &self.run;
        let (Some(tip), Some(env)) = (record.tip(), &record.forge) else { return Ok(Vec::new()) };
        if record.evidence.as_ref().is_some_and(|evidence| evidence.too_large) {
            return Ok(Vec::new());
        }
        let repo = self.run.import_repo(&self.source.repo);
        let known = [record.pins.start.clone(), record.pins.base.clone()];
        let messages = repo.new_messages(&tip, &known, MESSAGES_MAX).await.or_general()?;
        Ok(messages
            .iter()
            .filter_map(|(commit, message)| ActingMessage::find(commit, message, env.issue))
            .collect())
    }

    /// Paths whose content is neither the branch's nor the base's: a merge of the base changes nothing.
    async fn changed_paths(&self) -> Result<Vec<Vec<u8>>, Failure> {
        let Some(tip) = self.run.record.tip() else { return Ok(Vec::new()) };
        // Such a result is refused, and git would take as long over it as the agent wants.
        if self.run.record.evidence.as_ref().is_some_and(|evidence| evidence.too_large) {
            return Ok(Vec::new());
        }
        let repo = self.run.import_repo(&self.source.repo);
        let pins = &self.run.record.pins;
        let ours = repo.changed_entries(&pins.start, &tip).await.or_general()?;
        let theirs = repo.changed_entries(&pins.base, &tip).await.or_general()?;
        let theirs: BTreeSet<Vec<u8>> = theirs.into_iter().map(|entry| entry.path).collect();
        Ok(ours.into_iter().map(|entry| entry.path).filter(|path| theirs.contains(path)).collect())
    }
}

/// Marks of the descriptions that the agent wrote in a run, from the operation log.
fn own_descriptions(dir: &RunDir) -> Result<Vec<String>, Failure> {
    let written = |line: &serde_json::Value| {
        let is_done = line["op"] == "forge.update_description" && line["outcome"] == "done";
        let digest = line.pointer("/detail/text_sha256").and_then(|digest| digest.as_str());
        digest.filter(|_| is_done).map(own_digest_mark)
    };
    Ok(load_operations(dir)?.iter().filter_map(written).collect())
}

/// Returns whether a run has begun to publish, from the operation log.
fn has_publication(dir: &RunDir) -> Result<bool, Failure> {
    Ok(load_operations(dir)?.iter().any(|line| line["op"] == "push"))
}

/// Usage of this agent's conversation before the run.
fn used_by(record: &Record, provider: &str) -> Usage {
    let session = record.session.as_ref().filter(|session| session.provider == provider);
    session.and_then(|session| session.usage).unwrap_or_default()
}

impl Product for BottleRun<'_> {
    type Record = BottleRunPart;
    type Status = u8;
    type Failure = Failure;

    const DURABLE_FROM: Phase = Phase::Pinned;

    fn run(&self) -> &Run<BottleRunPart> {
        &self.run
    }

    fn run_mut(&mut self) -> &mut Run<BottleRunPart> {
        &mut self.run
    }

    fn reporter(&self) -> &dyn Reporter {
        self.context.ui
    }

    fn failure(error: RunError) -> Failure {
        match error {
            // A failure of git may be transient, which its error tells.
            RunError::Git(error) => Failure::of(BottleExit::General, error),
            other => Failure::of(BottleExit::General, other),
        }
    }

    async fn prepare(&mut self) -> Result<Phase, Failure> {
        let phase = self.prepare_workspace().await?;
        self.context.rows.check_lease()?;
        // A run that was stopped begins no set-up and no agent.
        match (phase, self.stopped()) {
            (Phase::Prepared, Some(verdict)) => {
                self.run.record.verdict = Some(verdict);
                Ok(Phase::Published)
            }
            (phase, _) => Ok(phase),
        }
    }

    /// The bottle's set-up runs once, in a workspace where no agent has been.
    fn setup_command(&self) -> Option<SetupCommand> {
        let bottle = &self.run.record.bottle;
        let line = bottle.setup_line().filter(|_| self.record.workspace == WorkspaceState::Made)?;
        Some(SetupCommand { line, timeout_secs: bottle.setup_secs() })
    }

    fn setup_failed(&self, setup: &BoxCommandSummary) -> Verdict {
        if let Some(stopped) = self.stopped() {
            return stopped;
        }
        let how = format!("{}: {}", setup.ended.class(), setup.last_line());
        Verdict::SetupFailed { how }
    }

    async fn after_setup(&mut self) -> Result<(), Failure> {
        self.record.workspace = WorkspaceState::SetUp;
        self.bottle.save(&self.record)?;
        self.run.record.seal = Some(self.seal().await?);
        Ok(())
    }

    /// A sidecar that is alive was started after the intent was written, by a process that was killed before it started
    /// the box. The log has one writer at a time, and that is the sidecar now.
    fn launch_is_logged(&self) -> Result<bool, Failure> {
        Ok(self.access.is_some() && SidecarPlace::of(&self.run.dir)?.is_alive()?)
    }

    /// Starts the sidecar; from here on it is the writer of the operation log.
    async fn before_launch(&mut self) -> Result<(), Failure> {
        self.context.rows.check_lease()?;
        let Some(access) = &self.access else { return Ok(()) };
        let place = SidecarPlace::of(&self.run.dir)?;
        match place.is_alive()? {
            true => place.wait_ready().await,
            false => place.start(&self.run.dir, access).await,
        }
    }

    async fn attend(&mut self) -> Result<AgentExit, Failure> {
        self.attend_with_watchdog().await
    }

    async fn after_box(&mut self) -> Result<(), Failure> {
        self.run.record.lost_lease |= self.context.rows.has_lost_lease();
        let result = self.run.record.agent_result.clone();
        let session = result.as_ref().and_then(|result| result.session.clone());
        if let Some(id) = session.or_else(|| self.session_at_terminal()) {
            let provider = self.run.record.manifest.provider.clone();
            let usage = result.and_then(|result| result.thread_usage);
            self.record.session = Some(Session { provider, id, usage });
        }
        if let Some(end) = &self.run.record.sidecar {
            let outcome = match end {
                SidecarEnd::Stopped => Done::Done,
                SidecarEnd::Died { .. } => Done::Failed,
            };
            let line = Operation::new("sidecar", "forge", outcome).with_detail(json!(end));
            self.run.operations().and_then(|log| log.append(&line)).or_general()?;
        }
        self.bottle.save(&self.record)
    }

    /// True if the ended box may hold commits.
    fn has_work(ended: &Ended) -> bool {
        !matches!(ended, Ended::Infra { .. })
    }

    fn import_source(&self) -> ImportSource<'_> {
        let pins = &self.run.record.pins;
        ImportSource {
            repo: &self.source.repo,
            mirror: self.source.mirror(self.context.home),
            branch: pins.branch.clone(),
            pins: Pins { base: pins.start.clone(), upstream: pins.base.clone() },
            others: vec![self.record.base.clone()],
        }
    }

    async fn inspect(&mut self, repo: &SealedRepo, tip: &Sha) -> Result<(), Failure> {
        let Run { record, redactor, dir, .. } = &self.run;
        let scans = scan_outgoing(repo, &record.pins, tip, redactor, dir.path()).await?;
        self.run.record.scans = scans;
        Ok(())
    }

    async fn judge(&mut self) -> Result<Verdict, Failure> {
        // Without its lease a run stays as it is, for whoever has the lease next.
        self.context.rows.check_lease()?;
        if self.run.record.lost_lease {
            let reason = "the lease on its issue was lost while its agent ran".to_owned();
            return Ok(Verdict::Infra { reason });
        }
        if let Some(stopped) = self.stopped() {
            return Ok(stopped);
        }
        let changed = self.changed_paths().await?;
        let acting = self.acting_messages().await?;
        let record = &self.run.record;
        // A merge of the host has no agent whose end could matter.
        let ended = match record.merged_alone {
            Some(_) => Ended::Exited { code: 0 },
            None => record.ended(),
        };
        Ok(judge(&AgentWork {
            ended,
            report: record.done.as_ref().map(|event| event.status),
            import: record.import_outcome(),
            scans: &record.scans,
            protected: &record.manifest.protect,
            allowed: &record.manifest.allow_paths,
            changed: &changed,
            acting: &acting,
            planning: record.planning,
        }))
    }

    async fn check(&mut self) -> Result<(), Failure> {
        let checked = Box::pin(self.run_check()).await;
        self.context.rows.check_lease()?;
        if let Some(stopped) = self.stopped() {
            self.run.record.verdict = Some(stopped);
        }
        checked
    }

    async fn publish(&mut self) -> Result<(), Failure> {
        self.context.rows.check_lease()?;
        // What was begun to be published is published: origin may have it already.
        if let Some(stopped) = self.stopped()
            && !has_publication(&self.run.dir)?
        {
            self.run.record.verdict = Some(stopped);
        }
        if self.run.record.verdict == Some(Verdict::Planned) {
            return Box::pin(self.propose_plan()).await;
        }
        let verdict = self.run.record.verdict.as_ref();
        let (true, Some(tip), true) = (
            verdict.is_some_and(Verdict::is_published),
            self.run.record.tip(),
            self.access.is_some(),
        ) else {
            return Ok(());
        };
        self.context.ui.phase("publish", "pushing the branch and opening the pull request");
        let repo = self.run.import_repo(&self.source.repo);
        let commit = Box::pin(self.sign_result(&repo, &tip)).await?;
        let Some(access) = &self.access else { return Ok(()) };
        let publisher = Publisher {
            access,
            log: &self.run.operations().or_general()?,
            redactor: &self.run.redactor,
            urls: self.source.push_urls()?,
            rows: self.context.rows,
            title_before: self.record.pull_title.as_deref(),
            public_url: self.context.public_url,
            keep_text: self.run.record.merged_alone.is_some(),
        };
        let (sent, transient) = publisher.publish(&repo, &self.run.record, &commit).await?;
        if let (Some(failure), TransientFailure::Wait) = (transient, self.context.transient) {
            // The run stays open at this phase. The process that continues it looks at the forge first.
            return Err(failure);
        }
        if sent.pushed {
            if self.run.record.merged_alone.is_some() {
                self.record.host_merge = Some(commit.clone());
            } else {
                self.record.workspace_twin = self.record.signed.clone();
            }
            self.record.published = Some(commit);
        }
        if let Some(pull) = &sent.pull {
            // From the next run on the agent may write to it.
            self.record.pull = Some(pull.number);
            self.record.pull_title = Some(pull.title.clone());
        }
        self.run.record.publication = Some(sent);
        self.bottle.save(&self.record)
    }

    /// Freezes the bottle. The note that statements are owed comes before the record is final and the signature after it:
    /// a kill in between leaves a run that the next command signs.
    async fn before_close(&mut self) -> Result<(u8, u8), Failure> {
        let record = &self.run.record;
        let done = record.done.as_ref().map(|event| event.status);
        let failed = record.publication.as_ref().is_some_and(|sent| sent.problem.is_some());
        let status = match &record.agent_box {
            // As in shells: 130 for an agent that Ctrl-C stopped.
            Some(agent_box) if !failed && agent_box.ended == Ended::Stopped => {
                let signal = self.context.stop_signal().unwrap_or(StopSignal::Terminate);
                128 + signal.number()
            }
            Some(agent_box) if !failed => headless_status(&agent_box.ended, done),
            None if !failed && record.merged_alone.is_some() => 0,
            _ => BottleExit::OwnFailure.code(),
        };
        let RunContext { ui, home, rows, .. } = self.context;
        // Where bottles travel, the row says so once the store has it.
        if self.record.forge.is_none() || !travel::has_store(home)? {
            rows.step(&self.record, BottleStep::Freeze)?;
        }
        self.record.state = BottleState::Frozen;
        // The agent's own description of its issue is no news for it.
        self.record.seen_comments.extend(own_descriptions(&self.run.dir)?);
        if self.is_cut_off() {
            // The agent did not look at what woke it, so it is woken for it once more.
            let started = self.run.record.started_at;
            self.record.wakeups.retain(|wakeup| wakeup.at < started);
        }
        self.bottle.save(&self.record)?;
        mark_unsigned(ui, home, &self.bottle, &self.run.dir);
        Ok((status, status))
    }

    async fn after_close(&mut self) {
        sign_statements(self.context.ui, self.context.home);
        show_end(self.context.ui, &self.run.dir, &self.run.record);
    }
}
