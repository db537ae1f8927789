//! Result of an agent in its own account: claims, never evidence.

use agent::{AgentOutcome, AgentReport, QuotaReset, Usage};
use serde::{Deserialize, Serialize};

/// Claim of an agent about its end. A claimed failure is believed, a claimed success is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum AgentClaim {
    Finished,
    Failed {
        reason: String,
    },
    /// The quota of its model is exhausted, until this time if known.
    Waiting {
        until: Option<String>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentResult {
    pub claim: AgentClaim,
    pub answer: Option<String>,
    /// The conversation's id, by which it can be resumed.
    pub session: Option<String>,
    pub tool_calls: usize,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cost_usd: Option<f64>,
    /// The usage of the whole conversation, for a run that resumes it.
    #[serde(default)]
    pub thread_usage: Option<Usage>,
}

/// Converts an agent's report for the record and the judge.
///
/// An agent that did not finish while its model server asked to wait is waiting, whatever it claims: some claim nothing.
pub fn agent_result(report: &AgentReport, waiting: Option<jiff::Timestamp>) -> AgentResult {
    let failed = |reason: String| AgentClaim::Failed { reason };
    let claim = match (&report.outcome, waiting) {
        (AgentOutcome::Finished, _) => AgentClaim::Finished,
        (_, Some(until)) => AgentClaim::Waiting { until: Some(until.to_string()) },
        (AgentOutcome::Failed { reason }, None) => failed(reason.clone()),
        (AgentOutcome::ModelRefused { status: Some(status), message }, None) => {
            failed(format!("the model answered {status}: {message}"))
        }
        (AgentOutcome::ModelRefused { status: None, message }, None) => {
            failed(format!("the model did not answer: {message}"))
        }
        (AgentOutcome::QuotaExhausted { until, .. }, None) => {
            AgentClaim::Waiting { until: until.as_ref().map(render_reset) }
        }
        (AgentOutcome::PermissionDenied, None) => failed("it was denied a permission".to_owned()),
        (AgentOutcome::NeedsClarification { question }, None) => {
            failed(format!("it asks: {question}"))
        }
        (AgentOutcome::Interrupted, None) => failed("its words break off before an end".to_owned()),
    };
    AgentResult {
        claim,
        answer: report.answer.clone(),
        session: report.session_id.clone(),
        tool_calls: report.tool_calls.len(),
        input_tokens: report.usage.input + report.usage.cache_read + report.usage.cache_write,
        output_tokens: report.usage.output + report.usage.reasoning,
        cost_usd: report.cost_usd,
        thread_usage: report.thread_usage,
    }
}

fn render_reset(until: &QuotaReset) -> String {
    match until {
        QuotaReset::InSecs(secs) => format!("{secs} s from then"),
        QuotaReset::UnixSecs(secs) => i64::try_from(*secs)
            .ok()
            .and_then(|secs| jiff::Timestamp::from_second(secs).ok())
            .map_or_else(|| secs.to_string(), |time| time.to_string()),
        QuotaReset::Words(words) => words.clone(),
    }
}
