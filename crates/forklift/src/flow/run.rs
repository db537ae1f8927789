//! One run, phase by phase. Each phase leaves its mark in the metadata when it is done, so a forklift that was
//! killed is followed by another one that goes on from the last mark.

use std::path::PathBuf;
use std::sync::Arc;

use agent::{Progress, Usage};
use engine::agent_plan::AgentPlan;
use engine::agent_result::{AgentClaim, agent_result};
use engine::agent_run::AgentEvent;
use engine::evidence::{self, Bounds};
use engine::export::{ExportRequest, Exported, export, import_ref, make_import_repo};
use engine::launch::{self, BoxStatus};
use engine::record::ExitRecord;
use engine::workspace::{
    AGENT_IDENTITY, WorkspaceOptions, copy_folder, make_harness_state, make_workspace,
};
use forge::NewPull;
use host::git::{CommitDraft, GitIdentity, GitLog, OldValue, SealedRepo, UserRepo};
use host::signal::Cancel;
use merge::clean::{Conflict, MergeAttempt, MergeOptions, try_merge};
use merge::contract::{
    Contract, ContractBounds, ContractEnds, ContractFormat, judge_contract, observe_contract,
    render_contract,
};
use merge::pattern::PathPatterns;
use merge::rebase::{RebaseAttempt, try_rebase};
use merge::resolver::decide::TrustThreshold;
use model::exit::ForkliftExit;
use model::id::{RunId, Sha};
use model::redact::Redactor;
use model::secret::Secret;
use model::verdict::Ended;
use run_store::commands_log::CommandsLog;
use run_store::env_snapshot::LaterSnapshot;
use run_store::metadata::{save_mark, save_metadata};
use run_store::operation_log::{Operation, OperationLog, OperationOutcome as Done};
use run_store::run_dir::RunDir;
use sandbox::spec::BoxUser;
use serde_json::json;

use super::metadata::{Metadata, Phase, Publication};
use super::notify::notify;
use super::publish;
use super::pull::{ForgePlan, open_pull};
use super::resolver::Handover;
use super::show::show_end;
use crate::cli::AgentWhen;
use crate::exit::{Failure, OrExit, Outcome};
use crate::rules::judge::{Aftermath, Import, Verdict, judge};
use crate::rules::pull_text::{Incoming, render_pull};
use crate::rules::strategy::Strategy;
use crate::ui::Ui;

/// Bytes of the agent's note that are read.
const STUCK_CAP: usize = 64 * 1024;

/// Commits of upstream that a pull request counts.
const MOST_INCOMING: usize = 5000;

/// Conflicts that are named while a run goes on; all of them are in its metadata.
const CONFLICTS_SHOWN: usize = 20;

/// Who merges that needed no agent are by.
const HOST_IDENTITY: (&str, &str) = ("forklift", "forklift@bottle.invalid");

/// The agent's note, in the root of the workspace.
pub(crate) const STUCK_FILE: &str = "STUCK.md";

/// What is left for the agent, in its harness state.
const CONFLICTS_FILE: &str = "conflicts.md";

/// How far the host came by itself.
enum Alone {
    /// To the end.
    Done,
    /// Somebody has to go on, perhaps from there.
    Rest(Option<Handover>),
}

/// A run under way.
pub(crate) struct Run<'a> {
    pub(crate) ui: &'a Ui,
    pub(crate) dir: RunDir,
    pub(crate) meta: Metadata,
    pub(crate) repo: UserRepo,
    /// What is started in the box.
    pub(crate) plan: AgentPlan,
    /// Where the pull request goes.
    pub(crate) forge: ForgePlan,
    pub(crate) secrets: Vec<Secret>,
    pub(crate) cancel: Cancel,
    /// Where mirrors of forks are kept.
    pub(crate) cache: PathBuf,
    /// What the conversation had used before, if this run goes on with one.
    pub(crate) used_before: Usage,
    /// What programs this machine has: asked while the agent works, because some take their time to answer.
    pub(crate) snapshot: LaterSnapshot,
}

impl Run<'_> {
    /// Goes on from the last mark to the end.
    pub(crate) async fn advance(mut self) -> Outcome {
        let redactor = Arc::new(Redactor::new(self.secrets.clone()));
        let commands = CommandsLog::open(&self.dir, Arc::clone(&redactor))
            .map(Arc::new)
            .or_exit(ForkliftExit::Machine)?;
        let open =
            if self.dir.operations().exists() { OperationLog::open } else { OperationLog::create };
        let operations = open(&self.dir, Arc::clone(&redactor)).or_exit(ForkliftExit::Machine)?;
        let log = commands.callback();
        self.repo = self.repo.clone().logged(Arc::clone(&log));
        while self.meta.phase < Phase::Closed {
            let next = match self.meta.phase {
                Phase::Pinned => self.prepare(&log).await?,
                Phase::Prepared => self.set_up().await?,
                Phase::SetUp => self.launch(&operations)?,
                Phase::Launched => self.wait(&operations).await?,
                Phase::Ended => self.import(&log).await?,
                Phase::Imported => self.judge(),
                Phase::Judged => self.check().await?,
                Phase::Checked => self.publish(&operations).await?,
                Phase::Published | Phase::Closed => {
                    return self.close(&redactor, &operations).await;
                }
            };
            self.meta.phase = next;
            // Before the agent works there is nothing that a power failure could take away.
            let save = if next < Phase::Launched { save_mark } else { save_metadata };
            save(&self.dir, &redactor, &self.meta).or_exit(ForkliftExit::Machine)?;
            host::failpoint::hit(&format!("{next:?}").to_lowercase());
        }
        Ok(ForkliftExit::Success)
    }

    async fn prepare(&mut self, log: &GitLog) -> Result<Phase, Failure> {
        // Half a workspace of a forklift that was killed is worth nothing.
        for folder in [self.dir.workspace(), self.dir.harness_state()] {
            host::file::remove_tree_safely(&folder).or_exit(ForkliftExit::Machine)?;
        }
        if let Some(earlier) = self.meta.resumed_from.clone() {
            return self.take_over(&earlier).await;
        }
        let handover = match self.meta.settings.agent_when {
            AgentWhen::Always => None,
            AgentWhen::Conflict => match self.integrate_alone(log).await? {
                Alone::Done => return Ok(Phase::Imported),
                Alone::Rest(handover) => handover,
            },
        };
        self.ui.phase("prepare", "copying the fork into a workspace of its own");
        let owner = BoxUser::of_caller();
        let (pins, branch) = (&self.meta.pins, &self.meta.fork.branch);
        let wish = WorkspaceOptions {
            branch: branch.clone(),
            base: pins.base.clone(),
            others: vec![(format!("upstream/{branch}"), pins.upstream.clone())],
            owner,
            merge: handover.as_ref().and_then(|handover| handover.begun.clone()),
        };
        let workspace = self.dir.workspace();
        let mirror = self.mirror();
        let notes = make_workspace(&self.repo, &wish, &workspace, &mirror, Some(Arc::clone(log)));
        let notes = notes.await.map_err(workspace_failure)?;
        for submodule in &notes.submodules {
            self.ui.note(&format!("submodule {submodule} stays empty in the workspace"));
        }
        if notes.lfs_pointers {
            self.ui.note("large files (LFS) are in the workspace as pointers");
        }
        let state = self.dir.harness_state();
        make_harness_state(&state, owner).or_exit(ForkliftExit::Machine)?;
        if let Some(handover) = handover {
            // No agent has been here yet, so the folder is still ours to write to.
            let page = state.join(CONFLICTS_FILE);
            host::file::write_transient(&page, handover.briefs.as_bytes(), 0o644)
                .or_exit(ForkliftExit::Machine)?;
            engine::workspace::give(&state, owner).or_exit(ForkliftExit::Machine)?;
        }
        self.meta.workspace = Some(notes);
        Ok(Phase::Prepared)
    }

    /// Goes on from where an earlier run left its workspace. The earlier run stays as it is; its note is answered and
    /// would only be taken for a new one.
    async fn take_over(&self, earlier: &RunId) -> Result<Phase, Failure> {
        self.ui.phase("prepare", &format!("copying the workspace of {earlier}"));
        let from = RunDir::open(&self.dir.path().with_file_name(earlier.as_str()));
        let from = from.or_exit(ForkliftExit::Usage)?;
        for (from, to) in [
            (from.workspace(), self.dir.workspace()),
            (from.harness_state(), self.dir.harness_state()),
        ] {
            copy_folder(&from, &to).await.map_err(workspace_failure)?;
        }
        match std::fs::remove_file(self.dir.workspace().join(STUCK_FILE)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).or_exit(ForkliftExit::Machine)
            }
            _ => Ok(Phase::Prepared),
        }
    }

    /// What git can do by itself needs no agent. It is done by the host, in its own repository, and judged like any
    /// other result.
    async fn integrate_alone(&mut self, log: &GitLog) -> Result<Alone, Failure> {
        let strategy = self.meta.settings.strategy;
        self.ui.phase("merge", &format!("trying to {} without an agent", strategy.name()));
        let (pins, branch) = (self.meta.pins.clone(), self.meta.fork.branch.clone());
        let repo = self.import_repo(log).await?;
        let identity = host_identity();
        let message = format!(
            "Merge upstream/{branch} into {branch}\n\nUpstream-commit: {}\n",
            pins.upstream
        );
        let name = import_ref(self.dir.id(), &branch).or_exit(ForkliftExit::Internal)?;
        let when = self.meta.started_at;
        let wish = MergeOptions { message: &message, identity: &identity, when, name: &name };
        let done = match strategy {
            Strategy::Merge => {
                let attempt = try_merge(&repo, &pins.base, &pins.upstream, wish).await;
                match attempt.or_exit(ForkliftExit::Machine)? {
                    MergeAttempt::Clean { commit, .. } => Some(commit),
                    MergeAttempt::Conflicts(conflicts) => {
                        self.note_conflicts(&conflicts);
                        return self.merge_with_resolver(&repo, wish).await;
                    }
                    MergeAttempt::Unrelated => {
                        self.ui.note("the histories have nothing in common");
                        None
                    }
                }
            }
            Strategy::Rebase => {
                let attempt = try_rebase(&repo, &pins.base, &pins.upstream, wish).await;
                self.read_rebase(attempt.or_exit(ForkliftExit::Machine)?)
            }
        };
        let Some(commit) = done else { return Ok(Alone::Rest(None)) };
        self.take_result(&repo, &commit, HOST_IDENTITY).await?;
        self.meta.merged_alone = true;
        self.ui.note("no conflicts: no agent is needed");
        Ok(Alone::Done)
    }

    /// Settles conflicts as far as that is trusted. A merge that is all resolved needs no agent, unless work of the fork
    /// would be lost by it: then somebody has to look at all of it.
    async fn merge_with_resolver(
        &mut self,
        repo: &SealedRepo,
        wish: MergeOptions<'_>,
    ) -> Result<Alone, Failure> {
        if self.meta.settings.trust() == TrustThreshold::NEVER {
            return Ok(Alone::Rest(None));
        }
        let resolved = self.resolve_conflicts(repo).await?;
        let MergeOptions { identity, message, when, name } = wish;
        if !resolved.rest.is_empty() {
            let handover = self.hand_over(repo, &resolved, identity, message).await?;
            return Ok(Alone::Rest(Some(handover)));
        }
        let parents = [self.meta.pins.base.clone(), self.meta.pins.upstream.clone()];
        let made = CommitDraft { tree: &resolved.tree, parents: &parents, identity, when, message };
        let commit = repo.commit_tree(made).await.or_exit(ForkliftExit::Machine)?;
        repo.update_ref(name, &commit, OldValue::Missing).await.or_exit(ForkliftExit::Machine)?;
        self.take_result(repo, &commit, HOST_IDENTITY).await?;
        let lost = self.meta.contract.as_ref().is_some_and(|contract| contract.lost);
        if lost && !self.meta.settings.accept_loss {
            self.ui.note("resolving all of it would lose work of the fork: the agent looks at it");
            (self.meta.evidence, self.meta.contract, self.meta.resolver) = (None, None, None);
            return Ok(Alone::Rest(None));
        }
        self.meta.merged_alone = true;
        self.ui.note("every conflict is resolved: no agent is needed");
        Ok(Alone::Done)
    }

    /// Gathers what the host can say about a result.
    async fn take_result(
        &mut self,
        repo: &SealedRepo,
        tip: &Sha,
        identity: (&str, &str),
    ) -> Result<(), Failure> {
        let pins = self.meta.pins.clone();
        let found = evidence::gather(repo, &pins, tip, identity, Bounds::default()).await;
        self.meta.evidence = Some(found.or_exit(ForkliftExit::Machine)?);
        self.meta.contract = self.account(repo, tip).await?;
        self.compare_with_resolver(repo, tip).await
    }

    fn read_rebase(&mut self, attempt: RebaseAttempt) -> Option<Sha> {
        match attempt {
            RebaseAttempt::Clean { commit, made, dropped } => {
                let words = format!("{made} commits made anew, {} dropped", dropped.len());
                self.ui.note(&words);
                Some(commit)
            }
            RebaseAttempt::Conflicts { at, conflicts } => {
                self.ui.note(&format!("commit {} of the fork does not fit", at.short()));
                self.note_conflicts(&conflicts);
                None
            }
            RebaseAttempt::Unrelated => {
                self.ui.note("the histories have nothing in common");
                None
            }
            RebaseAttempt::TooMany => {
                self.ui.note("the fork has too many commits of its own to rebase without an agent");
                None
            }
        }
    }

    fn note_conflicts(&mut self, conflicts: &[Conflict]) {
        let shown = |conflict: &Conflict| format!("{} ({})", conflict.path, conflict.kind.as_str());
        self.meta.conflicts = conflicts.iter().map(shown).collect();
        let more = conflicts.len().saturating_sub(CONFLICTS_SHOWN);
        let mut list: Vec<&str> =
            self.meta.conflicts.iter().take(CONFLICTS_SHOWN).map(String::as_str).collect();
        let rest = format!("and {more} more");
        list.extend((more > 0).then_some(rest.as_str()));
        self.ui.note(&format!("conflicts ({}): {}", conflicts.len(), list.join(", ")));
    }

    /// What became of everything that was the fork's; nothing for histories that have nothing in common.
    async fn account(&self, repo: &SealedRepo, tip: &Sha) -> Result<Option<Contract>, Failure> {
        let pins = &self.meta.pins;
        let parted = repo.merge_base(&pins.base, &pins.upstream).await;
        let Some(merge_base) = parted.or_exit(ForkliftExit::Machine)? else { return Ok(None) };
        let ends = ContractEnds {
            merge_base,
            base: pins.base.clone(),
            upstream: pins.upstream.clone(),
            tip: tip.clone(),
        };
        let protected = PathPatterns::new(&self.meta.settings.rules.protect);
        let facts = observe_contract(repo, &ends, &protected, ContractBounds::default()).await;
        Ok(Some(judge_contract(&facts.or_exit(ForkliftExit::Machine)?)))
    }

    async fn import_repo(&self, log: &GitLog) -> Result<SealedRepo, Failure> {
        let pins = &self.meta.pins;
        let made = make_import_repo(
            &self.dir.repo(),
            &self.repo,
            &self.mirror(),
            &[&pins.base, &pins.upstream],
        )
        .await;
        Ok(made.or_exit(ForkliftExit::Machine)?.logged(Arc::clone(log)))
    }

    fn launch(&mut self, operations: &OperationLog) -> Result<Phase, Failure> {
        let settings = &self.meta.settings;
        self.ui.phase(
            "launch",
            &format!(
                "starting {} in a sealed {} box, {} s",
                settings.provider, settings.backend, settings.timeout_secs
            ),
        );
        let agent_run = self.agent_run()?;
        let spec = agent_run.spec();
        let sealed = json!({
            "backend": settings.backend, "argv": spec.argv, "agent": self.plan.argv, "limits": spec.limits,
        });
        let operation = Operation::new("launch", "agent", Done::Intended).with_detail(sealed);
        operations.append(&operation).or_exit(ForkliftExit::Machine)?;
        agent_run.start(&self.launcher()?).or_exit(ForkliftExit::Machine)?;
        self.snapshot.begin();
        Ok(Phase::Launched)
    }

    async fn wait(&mut self, operations: &OperationLog) -> Result<Phase, Failure> {
        let agent_run = self.agent_run()?;
        let seen = launch::box_status(&agent_run.box_dir()).or_exit(ForkliftExit::Machine)?;
        if seen == BoxStatus::NeverStarted {
            return Ok(Phase::SetUp);
        }
        let attended = agent_run.attend(self.used_before, &self.cancel, |heard| self.hear(heard));
        let done = attended.await.or_exit(ForkliftExit::Machine)?;
        let (record, report) = (done.record, done.report);
        let waiting = record.egress.as_ref().and_then(|report| report.usage.waiting_until);
        self.meta.agent = Some(agent_result(&report, waiting));
        self.tell_egress(&record);
        let ended = json!({"ended": record.ended, "wall_ms": record.wall_ms});
        let operation = Operation::new("box", "agent", Done::Done).with_detail(ended);
        operations.append(&operation).or_exit(ForkliftExit::Machine)?;
        self.ui.event("box", &json!({"ended": record.ended, "ready_ms": record.ready_ms}));
        self.meta.agent_box = Some(record);
        Ok(Phase::Ended)
    }

    async fn import(&mut self, log: &GitLog) -> Result<Phase, Failure> {
        self.meta.stuck = self.read_stuck().await?;
        let done = self.meta.agent_box.as_ref().is_some_and(|record| {
            matches!(record.ended, Ended::Exited { .. } | Ended::Signalled { .. })
        });
        if !done {
            return Ok(Phase::Imported);
        }
        self.ui.phase("import", "taking the agent's commits out of the box");
        let pins = self.meta.pins.clone();
        let repo = self.import_repo(log).await?;
        let wish = ExportRequest {
            run: self.dir.id(),
            agent_box: &self.agent_run()?.spec(),
            branch: &self.meta.fork.branch,
            known: &[pins.base.clone(), pins.upstream.clone()],
        };
        let attempt = self.dir.next_box("export");
        let exported = export(&self.launcher()?, &wish, &repo, attempt).await;
        match exported.or_exit(ForkliftExit::Machine)? {
            Exported::Tip(tip) => self.take_result(&repo, &tip, AGENT_IDENTITY).await?,
            Exported::NothingNew => {}
            Exported::NoBranch => {
                self.meta.import_refused = Some(format!("the branch '{}' is gone", wish.branch));
            }
            Exported::Refused(reason) => self.meta.import_refused = Some(reason),
        }
        Ok(Phase::Imported)
    }

    fn judge(&mut self) -> Phase {
        self.ui.phase("judge", "verifying against the pinned commits");
        let ended = match &self.meta.agent_box {
            Some(record) => record.ended.clone(),
            None if self.meta.merged_alone => Ended::Exited { code: 0 },
            None => Ended::Infra { reason: "the box left no record".to_owned() },
        };
        let import = match (&self.meta.import_refused, &self.meta.evidence) {
            (Some(reason), _) => Import::Refused(reason.clone()),
            (None, Some(evidence)) => Import::Commits(Box::new(evidence.clone())),
            (None, None) => Import::Nothing,
        };
        let stuck = self.meta.stuck.is_some();
        let claim =
            self.meta.agent.as_ref().map_or(AgentClaim::Finished, |agent| agent.claim.clone());
        let lost = self.meta.contract.as_ref().is_some_and(|contract| contract.lost);
        let lost = lost && !self.meta.settings.accept_loss;
        let strategy = self.meta.settings.strategy;
        let after = Aftermath { ended, stuck, claim, import, lost, strategy };
        self.meta.verdict = Some(judge(&after));
        Phase::Judged
    }

    async fn publish(&mut self, operations: &OperationLog) -> Result<Phase, Failure> {
        let tip = self.meta.evidence.as_ref().and_then(|evidence| evidence.tip.clone());
        if let (Some(Verdict::Publish), Some(tip)) = (&self.meta.verdict, tip) {
            self.ui.phase("publish", "pushing the branch to origin");
            let repo = SealedRepo::open(&self.dir.repo(), self.repo.object_format());
            let url = &self.meta.fork.origin;
            let mut published =
                publish::publish(&repo, operations, url, self.dir.id(), &tip).await?;
            if published.problem.is_none() {
                let pull = self.pull_request(&repo, &published).await?;
                let folder = self.dir.path();
                open_pull(&self.forge, &pull, operations, folder, &mut published).await?;
            }
            self.meta.publication = Some(published);
        }
        Ok(Phase::Published)
    }

    async fn pull_request(
        &self,
        repo: &SealedRepo,
        published: &Publication,
    ) -> Result<NewPull, Failure> {
        let pins = &self.meta.pins;
        let known = std::slice::from_ref(&pins.base);
        let incoming = repo.new_commits(&pins.upstream, known, MOST_INCOMING).await;
        let incoming: Vec<Incoming> = incoming
            .or_exit(ForkliftExit::Machine)?
            .into_iter()
            .map(|commit| Incoming { sha: commit.sha.short().to_owned(), subject: commit.subject })
            .collect();
        let contract = self.meta.contract.as_ref();
        let contract = contract.map(|it| render_contract(it, ContractFormat::Markdown));
        let text = render_pull(&self.meta, &incoming, contract.as_deref());
        Ok(NewPull {
            title: text.title,
            body: text.body,
            head: published.branch.clone(),
            base: self.meta.fork.branch.clone(),
        })
    }

    /// Writes the last word and shows it.
    async fn close(mut self, redactor: &Redactor, operations: &OperationLog) -> Outcome {
        let verdict = self.meta.verdict.clone().unwrap_or(Verdict::UpToDate);
        let failed = self.meta.publication.as_ref().is_some_and(|sent| sent.problem.is_some());
        let status = if failed { ForkliftExit::PublishFailed } else { verdict.status() };
        self.meta.phase = Phase::Closed;
        self.meta.finished_at = Some(host::clock::now());
        self.meta.exit_status = Some(status.code());
        self.meta.operations_head = Some(operations.head().head);
        self.snapshot.save(&self.dir, redactor).await.or_exit(ForkliftExit::Machine)?;
        self.dir.close(redactor, &self.meta).or_exit(ForkliftExit::Machine)?;
        show_end(self.ui, &self.dir, &self.meta, &verdict);
        notify(self.ui, &self.dir, &self.meta).await;
        Ok(status)
    }

    /// The agent's note, read as what it is: a file of somebody who may have wanted to fool us. A note that the fork
    /// itself carries is none.
    async fn read_stuck(&self) -> Result<Option<String>, Failure> {
        let read = host::safe_read::read_beneath(&self.dir.workspace(), STUCK_FILE, STUCK_CAP);
        let note = match read {
            Ok(None) => return Ok(None),
            Ok(Some(file)) => file.bytes,
            Err(refused) => return Ok(Some(format!("({refused})"))),
        };
        let own = self.repo.read_blob(&self.meta.pins.base, STUCK_FILE, STUCK_CAP).await;
        let own = own.or_exit(ForkliftExit::Machine)?;
        let same = own.is_some_and(|blob| blob.bytes == note);
        Ok((!same).then(|| String::from_utf8_lossy(&note).into_owned()))
    }

    fn hear(&self, heard: AgentEvent) {
        match heard {
            AgentEvent::Progress(progress) => self.tell(&progress),
            AgentEvent::Stopping(reason) => self.ui.note(&format!("{reason}: stopping the agent")),
        }
    }

    fn tell(&self, progress: &Progress) {
        let (kind, words) = match progress {
            Progress::SessionStarted { id } => ("session", format!("session {id}")),
            Progress::ToolCall { name, summary } => ("tool", format!("{name}: {summary}")),
            Progress::Text(text) => ("text", text.clone()),
            Progress::Tokens(usage) => ("tokens", format!("{} tokens so far", usage.total())),
            Progress::Retrying { reason } => ("retry", format!("asking the model again: {reason}")),
        };
        self.ui.progress(kind, &words);
    }

    /// What the box reached and what it was refused.
    fn tell_egress(&self, record: &ExitRecord) {
        let Some(report) = &record.egress else { return };
        for line in egress::render_summary(&report.summary) {
            self.ui.note(&line);
        }
        self.ui.event("egress", &json!({"summary": report.summary, "usage": report.usage}));
    }
}

/// Who the host's own commits are by.
pub(super) fn host_identity() -> GitIdentity {
    GitIdentity { name: HOST_IDENTITY.0.to_owned(), email: HOST_IDENTITY.1.to_owned() }
}

/// Shallow and partial clones are the person's to mend; everything else is the machine's fault.
pub(super) fn workspace_failure(error: engine::workspace::WorkspaceError) -> Failure {
    use engine::workspace::WorkspaceError as E;
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
    Err::<(), _>(error).or_exit(status).expect_err("it is an error")
}
