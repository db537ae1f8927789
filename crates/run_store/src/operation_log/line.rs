//! One operation and the line that it becomes.

use jiff::Timestamp;
use model::redact::Redactor;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::redact_json;

/// Something that was done, or was about to be done, to the world.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// What, such as `branch.push`.
    pub op: String,
    /// To what, such as a branch or a pull request.
    pub target: String,
    /// How far it came.
    pub outcome: OperationOutcome,
    /// What else is worth knowing; `Null` when nothing is. Digests instead of long texts.
    pub detail: Value,
}

/// How far an operation came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OperationOutcome {
    /// Written down before it happens, to be found again after a crash.
    Intended,
    /// It happened.
    Done,
    /// It was not allowed.
    Refused,
    /// It was tried and did not work.
    Failed,
}

impl Operation {
    /// An operation about which nothing else is worth knowing.
    pub fn new(
        op: impl Into<String>,
        target: impl Into<String>,
        outcome: OperationOutcome,
    ) -> Self {
        Self { op: op.into(), target: target.into(), outcome, detail: Value::Null }
    }

    /// Adds what else is worth knowing.
    #[must_use]
    pub fn with_detail(mut self, detail: Value) -> Self {
        self.detail = detail;
        self
    }
}

/// Redacts what the caller said. The numbers and digests of the chain are ours and stay as they
/// are: a digest that a redactor took for a token would break the chain.
pub(super) fn redact(operation: &Operation, redactor: &Redactor) -> serde_json::Result<Operation> {
    let detail = redact_json(redactor, &serde_json::to_string(&operation.detail)?)?;
    Ok(Operation {
        op: redactor.redact(&operation.op).into_owned(),
        target: redactor.redact(&operation.target).into_owned(),
        outcome: operation.outcome,
        detail: serde_json::from_str(&detail)?,
    })
}

/// A line as it is written, in the order of its keys.
#[derive(Serialize)]
struct OperationLine<'a> {
    seq: u64,
    ts: Timestamp,
    prev: &'a str,
    op: &'a str,
    target: &'a str,
    outcome: OperationOutcome,
    detail: &'a Value,
}

/// Renders the line, without its line break.
pub(super) fn render_line(
    seq: u64,
    ts: Timestamp,
    prev: &str,
    operation: &Operation,
) -> serde_json::Result<String> {
    let Operation { op, target, outcome, detail } = operation;
    serde_json::to_string(&OperationLine { seq, ts, prev, op, target, outcome: *outcome, detail })
}
