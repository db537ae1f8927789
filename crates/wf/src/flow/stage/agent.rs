//! Agents of the stages, each in a sealed box of its own: the implementer in a copy of the branch, reviewers and
//! planners in a copy that they cannot change.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent::{AgentOutcome, AgentReport, Progress, Provider, SessionRequest, Usage};
use engine::agent_plan::{AgentTask, ResolvedAgent};
use engine::agent_result::{AgentClaim, agent_result};
use engine::agent_run::{AgentEvent, AgentExit, AgentRun};
use engine::record::ExitRecord;
use host::file::write_atomic;
use model::id::Sha;
use model::verdict::Ended;
use sandbox::spec::MountAccess;

use super::runner::{BoxOptions, REVIEW_WORKSPACE, StageRunner, WORKSPACE, box_run};
use super::session::AgentMemory;
use super::{ImplementRequest, ReviewRequest, StageContext, StageRunError};
use crate::disk::run_dir::{DIFF, IMPLEMENT_LOG, REVIEW_LOG};
use crate::rules::agent_choice::AgentChoice;
use crate::rules::profile::{Profile, SuiteRunner};
use crate::rules::prompt::{
    ImplementTask, ReviewTask, render_breakdown, render_implement, render_review,
};

/// Size of the end of a log in which an answer is searched.
const ANSWER_CAP: usize = 4 << 20;
/// Limit on the kept log of an agent.
const LOG_CAP: usize = 16 << 20;
/// The log of a draft, in its run's directory.
const PLAN_LOG: &str = "plan.log";

/// One agent and its task.
struct AgentJob<'a> {
    context: StageContext<'a>,
    provider: Provider,
    resolved: &'a ResolvedAgent,
    /// The name of the box.
    name: &'a str,
    /// The log in the run's directory.
    log: &'a str,
    prompt: String,
    session: SessionRequest,
    /// Usage of the resumed session before this run.
    earlier_usage: Usage,
    /// Files for the box's read-only folder.
    files: BTreeMap<String, String>,
    workspace: PathBuf,
    access: MountAccess,
    state: PathBuf,
    timeout: Duration,
}

/// Task of an agent that only reads.
struct ReadOnlyTask<'a> {
    name: &'a str,
    log: &'a str,
    choice: &'a AgentChoice,
    head: &'a Sha,
    prompt: String,
    files: BTreeMap<String, String>,
    timeout: Duration,
}

/// Result of an agent whose box ended normally.
struct StageAgentResult {
    report: AgentReport,
    claim: AgentClaim,
    /// The text in which an answer is searched.
    text: String,
}

impl StageRunner {
    /// Runs an agent that implements a micro-commit in a copy of the workstream's branch. Returns its answer.
    pub(crate) async fn implement(
        &self,
        request: ImplementRequest<'_>,
    ) -> Result<String, StageRunError> {
        let ImplementRequest { context, .. } = request;
        if !context.profile.secrets_implement.is_empty() {
            return Err(StageRunError::Config(
                "SECRETS_IMPLEMENT cannot be granted: nothing secret goes into a box".to_owned(),
            ));
        }
        let (provider, resolved) =
            self.resolve_agent(context.profile, &context.profile.implement).await?;
        self.checkout(context, request.head, WORKSPACE).await?;
        let id = &context.workstream.meta.id;
        let mut memory = AgentMemory::open(&self.dirs.agents_dir(id), provider)?;
        let job = |memory: &AgentMemory, name| AgentJob {
            context,
            provider,
            resolved: &resolved,
            name,
            log: IMPLEMENT_LOG,
            prompt: implement_prompt(request),
            session: memory.next_session(),
            earlier_usage: memory.used(),
            files: BTreeMap::new(),
            workspace: context.run_dir.join(WORKSPACE),
            access: MountAccess::ReadWrite,
            state: memory.state(),
            timeout: context.profile.implement_timeout,
        };
        let mut result = self.run_agent(job(&memory, "implement")).await?;
        if memory.is_known() && result.lost_its_session() {
            self.ui.status("the session could not be resumed; starting a new one");
            memory.forget();
            result = self.run_agent(job(&memory, "implement-anew")).await?;
        }
        memory.keep(&result.report)?;
        result.answer()
    }

    /// Runs an agent that reviews a diff. Every review is a new session: a reviewer that remembers its approval looks less
    /// carefully.
    pub(crate) async fn review(&self, request: ReviewRequest<'_>) -> Result<String, StageRunError> {
        let ReviewRequest { context, commit, block, head, patch, weakened } = request;
        let task = ReviewTask { id: &commit.id, title: &commit.title, block, weakened };
        let task = ReadOnlyTask {
            name: "review",
            log: REVIEW_LOG,
            choice: &context.profile.review,
            head,
            prompt: render_review(&task),
            files: BTreeMap::from([(DIFF.to_owned(), patch.to_owned())]),
            timeout: context.profile.review_timeout,
        };
        self.run_read_only(context, task).await
    }

    /// Runs an agent that drafts micro-commits for a story.
    pub(crate) async fn draft(
        &self,
        context: StageContext<'_>,
        head: &Sha,
        plan: &str,
        story: &str,
    ) -> Result<String, StageRunError> {
        let (profile, title) = (context.profile, &context.workstream.meta.title);
        let task = ReadOnlyTask {
            name: "plan",
            log: PLAN_LOG,
            choice: &profile.plan,
            head,
            prompt: render_breakdown(title, plan, story, profile.max_files, profile.max_lines),
            files: BTreeMap::new(),
            timeout: profile.breakdown_timeout,
        };
        self.run_read_only(context, task).await
    }

    async fn run_read_only(
        &self,
        context: StageContext<'_>,
        task: ReadOnlyTask<'_>,
    ) -> Result<String, StageRunError> {
        let (provider, resolved) = self.resolve_agent(context.profile, task.choice).await?;
        let job = AgentJob {
            context,
            provider,
            resolved: &resolved,
            name: task.name,
            log: task.log,
            prompt: task.prompt,
            session: SessionRequest::Fresh { id: None },
            earlier_usage: Usage::default(),
            files: task.files,
            workspace: self.checkout(context, task.head, REVIEW_WORKSPACE).await?,
            access: MountAccess::ReadOnly,
            state: self.blank_state(context)?,
            timeout: task.timeout,
        };
        self.run_agent(job).await?.answer()
    }

    /// Runs an agent to its end. Its log is kept in the run's directory however it ended.
    async fn run_agent(&self, job: AgentJob<'_>) -> Result<StageAgentResult, StageRunError> {
        let context = job.context;
        let launcher = self.launcher(context, job.resolved.secrets()).await?;
        let run = box_run(context.run_dir)?;
        let task = AgentTask {
            run: &run,
            prompt: job.prompt,
            context: None,
            session: job.session,
            mcp: Vec::new(),
        };
        let mut plan = job.resolved.plan(task).map_err(StageRunError::config)?;
        plan.files.extend(job.files);
        let options = BoxOptions {
            name: job.name,
            workspace: job.workspace,
            access: job.access,
            state: job.state,
            deadline_secs: job.timeout.as_secs(),
        };
        let agent_run = AgentRun { layout: self.box_layout(context, options).await?, plan: &plan };
        agent_run.start(&launcher).map_err(StageRunError::failed)?;
        host::failpoint::hit(&format!("wf-{}-box", job.name));
        let report = |event| self.report(event);
        let exit = agent_run.attend(job.earlier_usage, context.cancel, report).await;
        let log = read_log(&agent_run.box_dir().path().join("stdout.log"));
        let path = context.run_dir.join(job.log);
        write_atomic(&path, &log, 0o600).map_err(StageRunError::failed)?;
        let exit = exit.map_err(StageRunError::failed)?;
        context.record(&plan.argv, &exit.record, &log);
        self.note_egress(job.name, &exit.record);
        check_end(&exit.record, job.timeout, context)?;
        Ok(StageAgentResult::new(job.provider, exit, &log))
    }

    /// Notes what the box reached, what it was refused, and what the model cost.
    fn note_egress(&self, name: &str, record: &ExitRecord) {
        let Some(report) = &record.egress else { return };
        for line in egress::render_summary(&report.summary) {
            self.note(format!("{name}: {line}"));
        }
        let usage = &report.usage;
        if usage.requests > 0 {
            let (requests, read, written) = (usage.requests, usage.input, usage.output);
            let cost =
                if usage.usd > 0.0 { format!(", {:.2} USD", usage.usd) } else { String::new() };
            self.note(format!(
                "{name}: {requests} calls of the model, {read} tokens in, {written} out{cost}"
            ));
        }
        if let Some(cap) = &usage.cap_hit {
            self.note(format!("{name}: the cap was reached: {cap}"));
        }
    }

    fn report(&self, event: AgentEvent) {
        match event {
            AgentEvent::Progress(Progress::ToolCall { name, summary }) => {
                self.ui.status(&format!("  {name}: {summary}"));
            }
            AgentEvent::Progress(Progress::Retrying { reason }) => {
                self.ui.status(&format!("  asking the model again: {reason}"));
            }
            AgentEvent::Progress(
                Progress::SessionStarted { .. } | Progress::Text(_) | Progress::Tokens(_),
            ) => {}
            AgentEvent::Stopping(reason) => {
                self.ui.status(&format!("{reason}: stopping the agent"));
            }
        }
    }
}

/// A box that ended its agent is a failure, whatever the agent reported before.
fn check_end(
    record: &ExitRecord,
    timeout: Duration,
    context: StageContext<'_>,
) -> Result<(), StageRunError> {
    let failed = |message: String| Err(StageRunError::Failed(message));
    match &record.ended {
        Ended::Exited { .. } | Ended::Signalled { .. } => Ok(()),
        Ended::OutOfTime if record.fell_silent => {
            failed("the agent was ended because it was silent for too long".to_owned())
        }
        Ended::OutOfTime => {
            failed(format!("the agent was out of time after {} s", timeout.as_secs()))
        }
        Ended::OutOfMemory => failed("the agent's box used all its memory".to_owned()),
        Ended::OutOfSpace => failed("the agent's box used all its disk space".to_owned()),
        Ended::Stopped | Ended::Frozen => {
            let reason = context.cancel.reason().map(|reason| reason.to_string());
            let message = reason.unwrap_or_else(|| "the agent's box was stopped".to_owned());
            Err(StageRunError::Stopped(message))
        }
        Ended::Infra { reason } => failed(format!("the agent's box failed: {reason}")),
    }
}

impl StageAgentResult {
    /// Programs with known events report their answer; for others the whole output is searched.
    fn new(provider: Provider, exit: AgentExit, log: &[u8]) -> Self {
        let waiting = exit.record.egress.as_ref().and_then(|egress| egress.usage.waiting_until);
        let claim = match &exit.report.outcome {
            // A question is an answer.
            AgentOutcome::NeedsClarification { .. } => AgentClaim::Finished,
            _ => agent_result(&exit.report, waiting).claim,
        };
        let text = match provider.prints_events() {
            true => exit.report.answer.clone().unwrap_or_default(),
            false => {
                let from = log.len().saturating_sub(ANSWER_CAP);
                String::from_utf8_lossy(&log[from..]).into_owned()
            }
        };
        Self { report: exit.report, claim, text }
    }

    /// An agent that failed before its first tool call may not have found its session.
    fn lost_its_session(&self) -> bool {
        matches!(self.claim, AgentClaim::Failed { .. }) && self.report.tool_calls.is_empty()
    }

    /// The answer, if the agent reports that it finished.
    fn answer(self) -> Result<String, StageRunError> {
        let failed = |message| Err(StageRunError::Failed(message));
        match self.claim {
            AgentClaim::Finished => Ok(self.text),
            AgentClaim::Failed { reason } => failed(format!("the agent failed: {reason}")),
            AgentClaim::Waiting { until } => {
                let until = until.map(|until| format!(" until {until}")).unwrap_or_default();
                failed(format!("the model's quota is used up{until}"))
            }
        }
    }
}

fn implement_prompt(request: ImplementRequest<'_>) -> String {
    let (profile, meta) = (request.context.profile, &request.context.workstream.meta);
    render_implement(&ImplementTask {
        id: &request.commit.id,
        title: &request.commit.title,
        block: request.block,
        branch: meta.branch.as_str(),
        max_files: profile.max_files,
        max_lines: profile.max_lines,
        allowed: &profile.allowed_paths,
        forbidden: &profile.forbidden_paths,
        expected: &meta.expected_paths,
        tests: &test_lines(profile),
        timeout_secs: profile.implement_timeout.as_secs(),
        history: request.history,
    })
}

fn test_lines(profile: &Profile) -> Vec<String> {
    let line = |how: &SuiteRunner| match how {
        SuiteRunner::Command(argv) => Some(argv.join(" ")),
        SuiteRunner::Make(target) => Some(format!("make {target}")),
        SuiteRunner::Skip(_) => None,
    };
    profile.suites.iter().filter_map(|suite| line(&suite.how)).collect()
}

fn read_log(path: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(path).unwrap_or_default();
    bytes.truncate(LOG_CAP);
    bytes
}
