//! One run, phase by phase. Each phase leaves its mark in the metadata when it is done, so whoever takes over from a
//! killed bot-bottle goes on from the last mark.

use std::sync::Arc;

use agent::{Provider, Usage};
use engine::agent_plan::AgentPlan;
use engine::agent_result::agent_result;
use engine::box_command::BoxCommand;
use engine::evidence::{self, Bounds, Pins};
use engine::export::{ExportRequest, Exported, export, make_import_repo};
use engine::launch::{self, BoxStatus};
use engine::terminal::AttachedTerminal;
use engine::workspace::{AGENT_IDENTITY, WorkspaceOptions, make_harness_state, make_workspace};
use host::git::{GitLog, SealedRepo};
use host::safe_read::read_beneath;
use model::exit::BottleExit;
use model::id::Sha;
use model::redact::Redactor;
use model::secret::Secret;
use model::verdict::Ended;
use orchestrator_db::BottleStep;
use run_store::commands_log::CommandsLog;
use run_store::env_snapshot::LaterSnapshot;
use run_store::metadata::save_metadata;
use run_store::operation_log::{Operation, OperationOutcome as Done};
use run_store::run_dir::RunDir;
use sandbox::spec::BoxUser;
use serde_json::json;

use super::access::ForgeAccess;
use super::attend::has_work;
use super::attestation::{owe, settle_statements};
use super::bottle::{Bottle, BottleState, Record, Session, WorkspaceState};
use super::desk::open_log;
use super::keeper::{Keeper, Trouble};
use super::leaks::scan_outgoing;
use super::metadata::{Metadata, Phase};
use super::observe::Source;
use super::publish::Publisher;
use super::show::show_end;
use super::sidecar::SidecarPlace;
use super::standing;
use crate::exit::{Failure, OrExit, Outcome};
use crate::rules::judge::{Aftermath, Import, Verdict, headless_status, judge};
use crate::rules::session::session_of;

/// A run under way.
pub(crate) struct Run<'a> {
    pub(crate) keeper: Keeper<'a>,
    pub(crate) bottle: Bottle,
    pub(crate) record: Record,
    pub(crate) dir: RunDir,
    pub(crate) meta: Metadata,
    pub(crate) source: Source,
    pub(crate) plan: AgentPlan,
    /// The forge, for forge runs; without a token there is none.
    pub(crate) access: Option<ForgeAccess>,
    pub(crate) secrets: Vec<Secret>,
    /// What the conversation had used before, if this run goes on with one.
    pub(crate) used_before: Usage,
    /// Where a person sits, once the box of such a run is about to be started.
    pub(crate) seat: Option<AttachedTerminal>,
    /// What programs this machine has: asked while the agent works, because some take their time to answer.
    pub(crate) snapshot: LaterSnapshot,
}

impl Run<'_> {
    /// Goes on from the last mark to the end.
    pub(crate) async fn advance(mut self) -> Outcome {
        let redactor = Arc::new(Redactor::new(self.secrets.clone()));
        let commands =
            CommandsLog::open(&self.dir, Arc::clone(&redactor)).map(Arc::new).or_general()?;
        let log = commands.callback();
        self.source.repo = self.source.repo.clone().logged(Arc::clone(&log));
        while self.meta.phase < Phase::Published {
            let next = match self.meta.phase {
                Phase::Pinned => self.prepare(&log).await?,
                Phase::Prepared => self.set_up().await?,
                Phase::SetUp => self.launch(&redactor).await?,
                Phase::Launched => self.wait(&redactor).await?,
                Phase::Ended => self.import(&log, &redactor).await?,
                Phase::Imported => self.judge().await?,
                Phase::Judged => self.publish(&redactor).await?,
                Phase::Published | Phase::Closed => break,
            };
            self.meta.phase = next;
            save_metadata(&self.dir, &redactor, &self.meta).or_general()?;
            host::failpoint::hit(&format!("{next:?}").to_lowercase());
        }
        self.close(&redactor).await
    }

    /// Makes the workspace of a new bottle, or brings what is new into that of a frozen one.
    async fn prepare(&mut self, log: &GitLog) -> Result<Phase, Failure> {
        if self.record.workspace != WorkspaceState::Absent {
            if let Some(how) = self.bring_news().await? {
                self.meta.verdict = Some(Verdict::NotRehydrated { how });
                return Ok(Phase::Published);
            }
            self.record.known_base = self.meta.pins.base.clone();
            self.bottle.save(&self.record)?;
            return Ok(Phase::Prepared);
        }
        self.keeper.ui.phase("prepare", "copying the repository into a workspace of its own");
        // Half a workspace of somebody who was killed is worth nothing.
        for folder in [self.bottle.workspace(), self.bottle.harness_state()] {
            host::file::remove_tree_safely(&folder).or_general()?;
        }
        let pins = &self.meta.pins;
        let wish = WorkspaceOptions {
            branch: pins.branch.clone(),
            base: pins.base.clone(),
            others: vec![(format!("origin/{}", pins.base_branch), pins.base.clone())],
            owner: BoxUser::of_caller(),
            merge: None,
        };
        let (workspace, mirror) = (self.bottle.workspace(), self.mirror());
        let made =
            make_workspace(&self.source.repo, &wish, &workspace, &mirror, Some(Arc::clone(log)));
        self.meta.workspace = Some(made.await.or_general()?);
        make_harness_state(&self.bottle.harness_state(), BoxUser::of_caller()).or_general()?;
        self.record.workspace = WorkspaceState::Made;
        self.bottle.save(&self.record)?;
        Ok(Phase::Prepared)
    }

    /// Runs the bottle's set-up once, in a workspace where no agent has been.
    async fn set_up(&mut self) -> Result<Phase, Failure> {
        let line = self.meta.bottle.setup_line();
        if let (WorkspaceState::Made, Some(line)) = (self.record.workspace, line) {
            self.keeper.ui.phase("setup", "running the bottle's set-up in a box");
            let site = self.site(
                &format!("setup-{}", self.dir.next_box("setup")),
                self.meta.bottle.setup_secs(),
            )?;
            let mut chore = BoxCommand::shell(site, &line);
            chore.policy = self.plan.egress.as_ref().map(|egress| egress.policy.clone());
            let summary = self.run_chore(chore).await?;
            let passed = summary.ended == Ended::Exited { code: 0 };
            let how =
                format!("{}: {}", summary.ended.class(), summary.tail.lines().last().unwrap_or(""));
            self.meta.setup = Some(summary);
            if !passed {
                self.meta.verdict = Some(Verdict::SetupFailed { how });
                return Ok(Phase::Published);
            }
        }
        self.record.workspace = WorkspaceState::SetUp;
        self.bottle.save(&self.record)?;
        self.meta.seal = Some(self.seal().await?);
        Ok(Phase::SetUp)
    }

    /// Starts the sidecar, then the box beside it. One that was started before is not started again.
    async fn launch(&mut self, redactor: &Arc<Redactor>) -> Result<Phase, Failure> {
        let agent_run = self.agent_run()?;
        if launch::box_status(&agent_run.box_dir()).or_general()? != BoxStatus::NeverStarted {
            return Ok(Phase::Launched);
        }
        let secs = self.meta.manifest.limits.timeout_secs;
        let words =
            format!("starting {} in a sealed {} box, {secs} s", self.meta.agent, self.meta.backend);
        self.keeper.ui.phase("launch", &words);
        let spec = agent_run.spec();
        let sealed = json!({ "backend": self.meta.backend, "limits": spec.limits, "relays": spec.relays,
                "terminal": spec.terminal });
        let intent = Operation::new("launch", "agent", Done::Intended).with_detail(sealed);
        // The log has one writer at a time: from here on it is the sidecar.
        open_log(&self.dir, redactor)?.append(&intent).or_general()?;
        if let Some(access) = &self.access {
            let place = SidecarPlace::of(&self.dir)?;
            if !place.is_alive()? {
                place.start(&self.dir, access).await?;
            }
        }
        // Whoever takes over from a killed keeper may have no terminal; the box says then that nobody sits there.
        let seat = match &self.plan.terminal {
            Some(_) if host::terminal::is_present() => {
                // From here on the terminal is the agent's.
                self.keeper.ui.finish();
                Some(AttachedTerminal::open(&agent_run.box_dir()).or_general()?)
            }
            Some(_) | None => None,
        };
        agent_run.start(&self.launcher()?).or_general()?;
        self.seat = seat;
        self.snapshot.begin();
        Ok(Phase::Launched)
    }

    async fn wait(&mut self, redactor: &Arc<Redactor>) -> Result<Phase, Failure> {
        if launch::box_status(&self.agent_run()?.box_dir()).or_general()? == BoxStatus::NeverStarted
        {
            return Ok(Phase::SetUp);
        }
        let done = self.attend().await?;
        let (record, report) = (done.record, done.report);
        let waiting = record.egress.as_ref().and_then(|report| report.usage.waiting_until);
        let summary = agent_result(&report, waiting);
        let provider = self.meta.manifest.provider.clone();
        if let Some(id) = summary.session.clone().or_else(|| self.session_at_terminal()) {
            self.record.session = Some(Session { provider, id, usage: summary.thread_usage });
        }
        self.meta.said = Some(summary);
        let ended = json!({ "ended": record.ended, "wall_ms": record.wall_ms });
        let log = open_log(&self.dir, redactor)?;
        log.append(&Operation::new("box", "agent", Done::Done).with_detail(ended)).or_general()?;
        if let Some(end) = &self.meta.sidecar {
            let outcome = match end {
                super::metadata::SidecarEnd::Stopped => Done::Done,
                super::metadata::SidecarEnd::Died { .. } => Done::Failed,
            };
            let line = Operation::new("sidecar", "forge", outcome).with_detail(json!(end));
            log.append(&line).or_general()?;
        }
        self.meta.agent_box = Some(record);
        self.bottle.save(&self.record)?;
        Ok(Phase::Ended)
    }

    /// The conversation that was held at a terminal, if the agent has kept it under the name that we gave it.
    fn session_at_terminal(&self) -> Option<String> {
        self.plan.terminal.as_ref()?;
        let known = self.record.session.clone().filter(|_| self.meta.resumes_session);
        let id = known.map_or_else(|| session_of(self.dir.id()), |session| session.id);
        let kept = Provider::parse(&self.plan.provider).ok()?.transcript(&id)?;
        let found = read_beneath(&self.bottle.harness_state(), &format!("home/{kept}"), 1);
        found.ok().flatten().map(|_| id)
    }

    /// Takes the agent's commits out of the workspace, by a box, into a repository of the host's.
    async fn import(&mut self, log: &GitLog, redactor: &Redactor) -> Result<Phase, Failure> {
        if !self.meta.agent_box.as_ref().is_some_and(|record| has_work(&record.ended)) {
            return Ok(Phase::Imported);
        }
        self.keeper.ui.phase("import", "taking the agent's commits out of the box");
        let pins = self.meta.pins.clone();
        let repo = self.import_repo(log).await?;
        let wish = ExportRequest {
            run: self.dir.id(),
            agent_box: &self.agent_run()?.spec(),
            branch: &pins.branch,
            known: &[pins.start.clone(), pins.base.clone()],
        };
        let exported = export(&self.launcher()?, &wish, &repo, self.dir.next_box("export"))
            .await
            .or_general()?;
        match exported {
            Exported::Tip(tip) => {
                let ends = Pins { base: pins.start.clone(), upstream: pins.base.clone() };
                let found =
                    evidence::gather(&repo, &ends, &tip, AGENT_IDENTITY, Bounds::default()).await;
                self.meta.evidence = Some(found.or_general()?);
                self.meta.scans =
                    scan_outgoing(&repo, &pins, &tip, redactor, self.dir.path()).await?;
            }
            Exported::NothingNew => {}
            Exported::NoBranch => {
                self.meta.import_refused = Some(format!("the branch '{}' is gone", pins.branch));
            }
            Exported::Refused(reason) => self.meta.import_refused = Some(reason),
        }
        Ok(Phase::Imported)
    }

    async fn import_repo(&self, log: &GitLog) -> Result<SealedRepo, Failure> {
        let pins = &self.meta.pins;
        let wants: Vec<&Sha> = [&pins.start, &pins.base, &self.record.base].into_iter().collect();
        let made =
            make_import_repo(&self.dir.repo(), &self.source.repo, &self.mirror(), &wants).await;
        Ok(made.or_general()?.logged(Arc::clone(log)))
    }

    async fn judge(&mut self) -> Result<Phase, Failure> {
        let ended = match &self.meta.agent_box {
            Some(record) => record.ended.clone(),
            None => Ended::Infra { reason: "the box left no record".to_owned() },
        };
        let import = match (&self.meta.import_refused, &self.meta.evidence) {
            (Some(reason), _) => Import::Refused(reason.clone()),
            (None, Some(evidence)) => Import::Commits(Box::new(evidence.clone())),
            (None, None) => Import::Nothing,
        };
        let report = self.meta.done.as_ref().map(|event| event.status);
        let changed = self.changed_paths().await?;
        self.meta.verdict = Some(judge(&Aftermath {
            ended,
            report,
            import,
            scans: &self.meta.scans,
            protected: &self.meta.manifest.protect,
            changed: &changed,
        }));
        Ok(Phase::Judged)
    }

    /// Paths whose content is neither the branch's nor the base's: what a merge brings is the base's to answer for.
    async fn changed_paths(&self) -> Result<Vec<Vec<u8>>, Failure> {
        let Some(tip) = self.meta.evidence.as_ref().and_then(|evidence| evidence.tip.clone())
        else {
            return Ok(Vec::new());
        };
        let repo = SealedRepo::open(&self.dir.repo(), self.source.repo.object_format());
        let pins = &self.meta.pins;
        let ours = repo.changed_entries(&pins.start, &tip).await.or_general()?;
        let theirs = repo.changed_entries(&pins.base, &tip).await.or_general()?;
        let theirs: std::collections::BTreeSet<Vec<u8>> =
            theirs.into_iter().map(|entry| entry.path).collect();
        Ok(ours.into_iter().map(|entry| entry.path).filter(|path| theirs.contains(path)).collect())
    }

    async fn publish(&mut self, redactor: &Arc<Redactor>) -> Result<Phase, Failure> {
        let tip = self.meta.evidence.as_ref().and_then(|evidence| evidence.tip.clone());
        let (Some(Verdict::Publish), Some(tip), Some(access)) =
            (&self.meta.verdict, tip, &self.access)
        else {
            return Ok(Phase::Published);
        };
        self.keeper.ui.phase("publish", "pushing the branch and opening the pull request");
        let repo = SealedRepo::open(&self.dir.repo(), self.source.repo.object_format());
        let log = open_log(&self.dir, redactor)?;
        let publisher = Publisher {
            access,
            log: &log,
            redactor,
            url: &self.source.url,
            title_before: self.record.pull_title.as_deref(),
        };
        let (sent, trouble) = publisher.publish(&repo, &self.meta, &tip).await?;
        if let (Some(trouble), Trouble::Wait) = (trouble, self.keeper.trouble) {
            // The run stays open at this step. Who takes it up again looks at the forge first.
            return Err(trouble);
        }
        if sent.pushed {
            self.record.published = Some(tip);
        }
        if let Some(pull) = &sent.pull {
            // From the next run on the agent may write to it.
            self.record.pull = Some(pull.number);
            self.record.pull_title = Some(pull.title.clone());
        }
        self.meta.publication = Some(sent);
        self.bottle.save(&self.record)?;
        Ok(Phase::Published)
    }

    /// Freezes the bottle, writes the last word and shows it.
    async fn close(mut self, redactor: &Arc<Redactor>) -> Outcome {
        let done = self.meta.done.as_ref().map(|event| event.status);
        let ended = self.meta.agent_box.as_ref().map(|record| record.ended.clone());
        let failed = self.meta.publication.as_ref().is_some_and(|sent| sent.problem.is_some());
        let status = match ended {
            Some(ended) if !failed => headless_status(&ended, done),
            _ => BottleExit::OwnFailure.code(),
        };
        standing::step(self.keeper.home, &self.record, BottleStep::Freeze)?;
        self.record.state = BottleState::Frozen;
        self.bottle.save(&self.record)?;
        self.meta.phase = Phase::Closed;
        self.meta.finished_at = Some(host::clock::now());
        self.meta.exit_status = Some(status);
        self.meta.operations_head = Some(open_log(&self.dir, redactor)?.head().head);
        // Owed first, closed second, signed third: whoever is killed in between leaves a run that the next command signs.
        owe(self.keeper.ui, self.keeper.home, &self.bottle, &self.dir);
        self.snapshot.save(&self.dir, redactor).await.or_general()?;
        self.dir.close(redactor, &self.meta).or_general()?;
        host::failpoint::hit("closed");
        settle_statements(self.keeper.ui, self.keeper.home);
        show_end(self.keeper.ui, &self.dir, &self.meta);
        Ok(status)
    }
}
