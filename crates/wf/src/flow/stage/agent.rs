//! Agents of the stages, each in a sealed box of its own: the implementer in a copy of the branch, reviewers and
//! planners in a copy that they cannot change.

use std::path::Path;
use std::time::Duration;

use agent::{AgentOutcome, AgentReport, Progress, Provider, SessionRequest};
use egress::ModelUsage;
use engine::agent_plan::{AgentTask, ResolvedAgent};
use engine::agent_result::{AgentClaim, agent_result};
use engine::agent_run::{AgentEvent, AgentExit, AgentRun};
use engine::record::ExitRecord;
use host::file::write_atomic;
use model::verdict::Ended;

use super::runner::{REVIEW_WORKSPACE, StageRunner, WORKSPACE};
use super::session::AgentMemory;
use super::{StageContext, StageResult, StageRunError};
use crate::disk::run_dir::{DIFF, IMPLEMENT_LOG, REVIEW_LOG};
use crate::rules::agent_choice::AgentChoice;
use crate::rules::agent_retry::{RetryTally, TransientFailure, judge_transient, next_pause};
use crate::rules::compete::Competitor;
use crate::rules::profile::Profile;

/// Size of the end of a log in which an answer is searched.
const ANSWER_CAP: usize = 4 << 20;
const LOG_CAP: usize = 16 << 20;
/// The log of a draft, in its run's directory.
const PLAN_LOG: &str = "plan.log";

pub(super) struct StageJob<'a> {
    pub(super) name: &'a str,
    pub(super) log: &'a str,
    pub(super) agent: &'a (Provider, ResolvedAgent),
    pub(super) prompt: &'a str,
    pub(super) timeout: Duration,
    /// A file for the box's read-only folder.
    pub(super) file: Option<(&'a str, &'a str)>,
}

struct StageAgentResult {
    /// Usage of the model; it counts against the caps of a second box of the stage.
    used: ModelUsage,
    report: AgentReport,
    claim: AgentClaim,
    exit_code: Option<i32>,
    /// The text in which an answer is searched.
    text: String,
}

impl StageContext<'_> {
    /// Runs an agent that implements a micro-commit in a copy of the workstream's branch. Returns its answer.
    pub(crate) async fn implement(&self, prompt: &str) -> StageResult<String> {
        let profile = self.profile;
        if !profile.secrets_implement.is_empty() {
            return Err(StageRunError::Config(
                "SECRETS_IMPLEMENT cannot be granted: nothing secret goes into a box".to_owned(),
            ));
        }
        let agents_dir = self.runner.dirs.agents_dir(&self.workstream.meta.id);
        self.implement_with(&profile.implement, &agents_dir, prompt).await
    }

    /// Runs an agent of a competition, with a memory of its own.
    pub(crate) async fn implement_as(
        &self,
        competitor: &Competitor,
        prompt: &str,
    ) -> StageResult<String> {
        let agents_dir = self.runner.dirs.agents_dir(&self.workstream.meta.id);
        let agents_dir = agents_dir.join(format!("compete-{}", competitor.name));
        self.implement_with(&competitor.agent, &agents_dir, prompt).await
    }

    async fn implement_with(
        &self,
        choice: &AgentChoice,
        agents_dir: &Path,
        prompt: &str,
    ) -> StageResult<String> {
        let profile = self.profile;
        let agent = self.runner.resolve_agent(profile, choice).await?;
        let mut memory = AgentMemory::open(agents_dir, agent.0)?;
        self.checkout_ready(WORKSPACE, &memory.state()).await?;
        let job = StageJob {
            name: "implement",
            log: IMPLEMENT_LOG,
            agent: &agent,
            prompt,
            timeout: profile.implement_timeout,
            file: None,
        };
        let known = memory.is_known();
        let mut result = self.run_patiently(&job, WORKSPACE, Some(&mut memory)).await?;
        if known && result.lost_its_session() {
            self.runner.ui.status("the session could not be resumed; starting a new one");
            memory.forget();
            let job = StageJob { name: "implement-anew", ..job };
            result = self.run_agent(&job, (WORKSPACE, Some(&memory)), &result.used).await?;
        }
        memory.keep(&result.report)?;
        result.answer()
    }

    /// Runs a reviewer, always in a new session: one that remembers its approval looks less carefully.
    pub(crate) async fn review(&self, prompt: &str, patch: &str) -> StageResult<String> {
        let Profile { review, review_timeout, .. } = self.profile;
        let file = Some((DIFF, patch));
        self.run_read_only("review", REVIEW_LOG, review, prompt, *review_timeout, file).await
    }

    pub(crate) async fn draft(&self, prompt: &str) -> StageResult<String> {
        let Profile { plan, breakdown_timeout, .. } = self.profile;
        self.run_read_only("plan", PLAN_LOG, plan, prompt, *breakdown_timeout, None).await
    }

    async fn run_read_only(
        &self,
        name: &str,
        log: &str,
        choice: &AgentChoice,
        prompt: &str,
        timeout: Duration,
        file: Option<(&str, &str)>,
    ) -> StageResult<String> {
        let agent = &self.runner.resolve_agent(self.profile, choice).await?;
        self.checkout(REVIEW_WORKSPACE).await?;
        let job = StageJob { name, log, agent, prompt, timeout, file };
        self.run_patiently(&job, REVIEW_WORKSPACE, None).await?.answer()
    }

    /// Runs an agent, and again after transient failures, within the stage's time and what is left of its caps.
    async fn run_patiently(
        &self,
        job: &StageJob<'_>,
        folder: &'static str,
        mut memory: Option<&mut AgentMemory>,
    ) -> StageResult<StageAgentResult> {
        let mut policy = self.profile.retry;
        policy.wait_quota |= self.runner.wait_quota;
        let (mut tally, mut left, mut tries) = (RetryTally::default(), job.timeout, 1);
        let mut used = ModelUsage::default();
        loop {
            let name =
                if tries == 1 { job.name.to_owned() } else { format!("{}-{tries}", job.name) };
            let attempt = StageJob { name: &name, timeout: left, ..*job };
            let start = host::clock::monotonic();
            let result = self.run_agent(&attempt, (folder, memory.as_deref()), &used).await?;
            left = left.saturating_sub(start.elapsed());
            used = sum(&used, &result.used);
            let now = host::clock::now();
            let waiting = result.used.waiting_until;
            let failure = judge_transient(&result.report.outcome, result.exit_code, waiting, now);
            let Some(failure) = failure else { return Ok(StageAgentResult { used, ..result }) };
            let pause = next_pause(&policy, &failure, tally, now);
            let Some(pause) = pause.filter(|_| left > Duration::from_secs(1)) else {
                return Ok(StageAgentResult { used, ..result });
            };
            match failure {
                TransientFailure::Model => tally.retries += 1,
                TransientFailure::Quota { .. } => tally.waited += pause,
            }
            self.pause(job.name, &result, pause).await?;
            if let Some(memory) = &mut memory {
                memory.adopt(&result.report)?;
            }
            tries += 1;
        }
    }

    /// Waits before an agent is tried again.
    async fn pause(
        &self,
        name: &str,
        result: &StageAgentResult,
        pause: Duration,
    ) -> StageResult<()> {
        let why = match &result.claim {
            AgentClaim::Failed { reason } => reason.clone(),
            AgentClaim::Waiting { until: Some(until) } => {
                format!("the quota is used up until {until}")
            }
            AgentClaim::Waiting { until: None } => "the quota is used up".to_owned(),
            AgentClaim::Finished => String::new(),
        };
        let message = format!("{name}: {why}; trying again in {} s", pause.as_secs());
        self.runner.ui.status(&message);
        self.runner.note(message);
        tokio::select! {
            _reason = self.cancel.cancelled() => Err(self.stopped("stopped while waiting")),
            () = tokio::time::sleep(pause) => Ok(()),
        }
    }

    /// Runs an agent without a memory in a copy that it may change. Returns its answer.
    pub(super) async fn run_writer(&self, job: &StageJob<'_>) -> StageResult<String> {
        self.run_patiently(job, WORKSPACE, None).await?.answer()
    }

    /// Runs an agent to its end in a folder of the run and keeps its log. Only the implementer has a memory. `used` is what an earlier box of the stage has used of the caps.
    async fn run_agent(
        &self,
        job: &StageJob<'_>,
        (folder, memory): (&'static str, Option<&AgentMemory>),
        used: &ModelUsage,
    ) -> StageResult<StageAgentResult> {
        let (provider, resolved) = job.agent;
        let state = match memory {
            Some(memory) => memory.state(),
            None => self.blank_state(job.name)?,
        };
        let fresh = || SessionRequest::Fresh { id: None };
        let launcher = self.launcher(resolved.secrets()).await?;
        let task = AgentTask {
            run: &self.box_run()?,
            prompt: job.prompt.to_owned(),
            context: None,
            session: memory.map_or_else(fresh, AgentMemory::next_session),
            mcp: Vec::new(),
        };
        let mut plan = resolved.plan(task).map_err(StageRunError::config)?;
        if let Some(model) = plan.egress.as_mut().and_then(|egress| egress.model.as_mut()) {
            model.caps = model.caps.less(used);
        }
        if memory.is_some() {
            // A read-only workspace has no place for them, and a merge in progress does not exclude them.
            plan.programs.extend(self.linked_mounts());
        }
        plan.files.extend(job.file.map(|(name, text)| (name.to_owned(), text.to_owned())));
        let layout = self.box_layout(job.name, folder, state, job.timeout.as_secs()).await?;
        let agent_run = AgentRun { layout, plan: &plan };
        agent_run.start(&launcher)?;
        host::failpoint::hit(&format!("wf-{}-box", job.name));
        let report = |event| self.runner.report(event);
        let earlier_usage = memory.map(AgentMemory::used).unwrap_or_default();
        let exit = agent_run.attend(earlier_usage, self.cancel, report).await;
        let log = read_log(&agent_run.box_dir().path().join("stdout.log"));
        write_atomic(&self.run_dir.join(job.log), &log, 0o600)?;
        let exit = exit?;
        self.record(&plan.argv, &exit.record, &log);
        self.runner.note_egress(job.name, &exit.record);
        self.check_end(&exit.record, job.timeout)?;
        Ok(StageAgentResult::new(*provider, exit, &log))
    }

    /// A box that ended its agent is a failure, whatever the agent reported before.
    fn check_end(&self, record: &ExitRecord, timeout: Duration) -> StageResult<()> {
        let failed = |message: String| Err(StageRunError::Failed(message));
        if let Ended::OutOfSpace | Ended::Infra { .. } = record.ended
            && let Some(error) = self.disk_full()
        {
            return Err(error);
        }
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
            Ended::Stopped | Ended::Frozen => Err(self.stopped("the agent's box was stopped")),
            Ended::Infra { reason } => failed(format!("the agent's box failed: {reason}")),
        }
    }
}

impl StageRunner {
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
                Progress::SessionStarted { .. }
                | Progress::ToolEnd(_)
                | Progress::Text(_)
                | Progress::Tokens(_),
            ) => {}
            AgentEvent::Stopping(reason) => {
                self.ui.status(&format!("{reason}: stopping the agent"));
            }
        }
    }
}

impl StageAgentResult {
    /// Programs with known events report their answer; for others the whole output is searched.
    fn new(provider: Provider, exit: AgentExit, log: &[u8]) -> Self {
        let used = exit.record.egress.as_ref().map(|egress| egress.usage.clone());
        let used = used.unwrap_or_default();
        let waiting = used.waiting_until;
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
        let exit_code = match exit.record.ended {
            Ended::Exited { code } => Some(code),
            _ => None,
        };
        Self { used, report: exit.report, claim, exit_code, text }
    }

    /// An agent that failed before its first tool call may not have found its session.
    fn lost_its_session(&self) -> bool {
        matches!(self.claim, AgentClaim::Failed { .. }) && self.report.tool_calls.is_empty()
    }

    fn answer(self) -> StageResult<String> {
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

/// Adds the usage of two boxes, for the caps of a third one.
fn sum(one: &ModelUsage, other: &ModelUsage) -> ModelUsage {
    ModelUsage {
        requests: one.requests + other.requests,
        input: one.input + other.input,
        output: one.output + other.output,
        cache_read: one.cache_read + other.cache_read,
        cache_write: one.cache_write + other.cache_write,
        usd: one.usd + other.usd,
        estimated: one.estimated + other.estimated,
        ..other.clone()
    }
}

fn read_log(path: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(path).unwrap_or_default();
    bytes.truncate(LOG_CAP);
    bytes
}
