//! Progress of a run, for the user or the script that started it.

use agent::{Progress, snippet};
use serde_json::{Value, json};

use crate::agent_run::AgentEvent;
use crate::record::ExitRecord;

/// Output of a command while a run is under way.
pub trait Reporter {
    fn phase(&self, name: &str, message: &str);
    fn note(&self, message: &str);
    /// Progress of the agent.
    fn progress(&self, kind: &str, message: &str);
    /// An event for scripts.
    fn event(&self, name: &str, fields: &Value);
    /// The terminal belongs to the agent from now on; nothing more is drawn on it.
    fn release_terminal(&self);
}

pub(crate) fn report_agent_event(reporter: &dyn Reporter, event: AgentEvent) {
    let (kind, message) = match event {
        AgentEvent::Stopping(reason) => {
            return reporter.note(&format!("{reason}: stopping the agent"));
        }
        AgentEvent::Progress(Progress::SessionStarted { id }) => {
            ("session", format!("session {id}"))
        }
        AgentEvent::Progress(Progress::ToolCall { name, summary }) => {
            ("tool", format!("{name}: {summary}"))
        }
        AgentEvent::Progress(Progress::Text(text)) => ("text", snippet(&text)),
        // The next call shows that this one has ended.
        AgentEvent::Progress(Progress::ToolEnd(_)) => return,
        AgentEvent::Progress(Progress::Tokens(usage)) => {
            ("tokens", format!("{} tokens so far", usage.total()))
        }
        AgentEvent::Progress(Progress::Retrying { reason }) => {
            ("retry", format!("asking the model again: {reason}"))
        }
    };
    reporter.progress(kind, &message);
}

/// Reports connections and refusals of a box.
pub(crate) fn report_egress(reporter: &dyn Reporter, record: &ExitRecord) {
    let Some(report) = &record.egress else { return };
    for line in egress::render_summary(&report.summary) {
        reporter.note(&line);
    }
    reporter.event("egress", &json!({"summary": report.summary, "usage": report.usage}));
}
