//! One agent on one mission: resolved, sent into its box, listened to, and its answer taken.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agent::{AgentOutcome, AgentReport, Progress, Provider, SessionRequest, Usage};
use engine::agent_plan::{AgentTask, ResolvedAgent};
use engine::agent_result::{AgentClaim, agent_result};
use engine::agent_run::{AgentEvent, AgentExit, AgentRun};
use engine::record::ExitRecord;
use host::file::write_atomic;
use model::verdict::Ended;
use sandbox::spec::MountAccess;

use super::runner::{BoxOptions, StageRunner, box_run};
use super::{StageContext, StageRunError};

/// The end of an agent's log in which an answer is looked for.
const TEXT_CAP: usize = 4 << 20;
/// What is kept of its log.
const LOG_CAP: usize = 16 << 20;

/// What an agent is sent to do.
pub(super) struct Mission<'a> {
    pub(super) context: StageContext<'a>,
    pub(super) provider: Provider,
    pub(super) resolved: &'a ResolvedAgent,
    /// The name of the box.
    pub(super) name: &'a str,
    /// The log in the run's directory.
    pub(super) log: &'a str,
    pub(super) prompt: String,
    pub(super) session: SessionRequest,
    /// What the conversation used before.
    pub(super) used: Usage,
    /// Files for the box's read-only folder.
    pub(super) files: BTreeMap<String, String>,
    pub(super) workspace: PathBuf,
    pub(super) access: MountAccess,
    pub(super) state: PathBuf,
    pub(super) deadline_secs: u64,
}

/// How a mission ended, if the box did its part.
pub(super) struct Told {
    pub(super) report: AgentReport,
    pub(super) claim: AgentClaim,
    /// Where an answer is looked for.
    pub(super) text: String,
}

impl StageRunner {
    /// Sends an agent and waits for it. What it printed is kept in the run's directory however it ended.
    pub(super) async fn send(&self, mission: Mission<'_>) -> Result<Told, StageRunError> {
        let context = mission.context;
        let launcher = self.launcher(context, mission.resolved.secrets()).await?;
        let run = box_run(context.run_dir)?;
        let task = AgentTask {
            run: &run,
            prompt: mission.prompt,
            context: None,
            session: mission.session,
            mcp: Vec::new(),
        };
        let mut plan = mission.resolved.plan(task).map_err(StageRunError::config)?;
        plan.files.extend(mission.files);
        let options = BoxOptions {
            name: mission.name,
            workspace: mission.workspace,
            access: mission.access,
            state: mission.state,
            deadline_secs: mission.deadline_secs,
        };
        let agent_run = AgentRun { layout: self.box_layout(context, options).await?, plan: &plan };
        agent_run.start(&launcher).map_err(StageRunError::failed)?;
        host::failpoint::hit(&format!("wf-{}-box", mission.name));
        let heard = |heard| self.hear(heard);
        let done = agent_run.attend(mission.used, context.cancel, heard).await;
        let log = read_log(&agent_run.box_dir().path().join("stdout.log"));
        let path = context.run_dir.join(mission.log);
        write_atomic(&path, &log, 0o600).map_err(StageRunError::failed)?;
        let done = done.map_err(StageRunError::failed)?;
        context.record(&plan.argv, &done.record, &log);
        self.note_egress(mission.name, &done.record);
        check_end(&done.record, mission.deadline_secs, context)?;
        Ok(tell(mission.provider, done, &log))
    }

    /// What the box reached, what it was refused, and what the model cost.
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

    fn hear(&self, heard: AgentEvent) {
        match heard {
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
                self.ui.status(&format!("{reason}: stopping the agent"))
            }
        }
    }
}

/// A box that did not let its agent come to an end is a failure, whatever the agent said before.
fn check_end(
    record: &ExitRecord,
    deadline: u64,
    context: StageContext<'_>,
) -> Result<(), StageRunError> {
    let failed = |message: String| Err(StageRunError::Failed(message));
    match &record.ended {
        Ended::Exited { .. } | Ended::Signalled { .. } => Ok(()),
        Ended::OutOfTime if record.fell_silent => {
            failed("the agent was ended because nothing was heard of it for too long".to_owned())
        }
        Ended::OutOfTime => failed(format!("the agent was out of time after {deadline} s")),
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

/// Programs whose events we know tell their answer; of the others all that they printed is looked at.
fn tell(provider: Provider, done: AgentExit, log: &[u8]) -> Told {
    let waiting = done.record.egress.as_ref().and_then(|egress| egress.usage.waiting_until);
    let claim = match &done.report.outcome {
        // A question is an answer.
        AgentOutcome::NeedsClarification { .. } => AgentClaim::Finished,
        _ => agent_result(&done.report, waiting).claim,
    };
    let text = match provider.prints_events() {
        true => done.report.answer.clone().unwrap_or_default(),
        false => {
            let from = log.len().saturating_sub(TEXT_CAP);
            String::from_utf8_lossy(&log[from..]).into_owned()
        }
    };
    Told { report: done.report, claim, text }
}

impl Told {
    /// What it said, if it says that it came to its end.
    pub(super) fn answer(self) -> Result<String, StageRunError> {
        match self.claim {
            AgentClaim::Finished => Ok(self.text),
            AgentClaim::Failed { reason } => {
                Err(StageRunError::Failed(format!("the agent failed: {reason}")))
            }
            AgentClaim::Waiting { until } => {
                let until = until.map(|until| format!(" until {until}")).unwrap_or_default();
                Err(StageRunError::Failed(format!("the model has no more to give{until}")))
            }
        }
    }
}

fn read_log(path: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(path).unwrap_or_default();
    bytes.truncate(LOG_CAP);
    bytes
}
