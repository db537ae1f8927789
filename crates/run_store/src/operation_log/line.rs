//! One operation and the line that it becomes.

use jiff::Timestamp;
use model::redact::Redactor;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::redact_json;

/// An effect on the world, done or intended.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// Name, such as `branch.push`.
    pub op: String,
    /// Object, such as a branch or a pull request.
    pub target: String,
    pub outcome: OperationOutcome,
    /// Further facts; `Null` if there are none. Digests instead of long texts.
    pub detail: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OperationOutcome {
    /// Recorded beforehand, to be found again after a crash.
    Intended,
    Done,
    /// Not allowed.
    Refused,
    /// Tried without success.
    Failed,
}

impl Operation {
    pub fn new(
        op: impl Into<String>,
        target: impl Into<String>,
        outcome: OperationOutcome,
    ) -> Self {
        Self { op: op.into(), target: target.into(), outcome, detail: Value::Null }
    }

    #[must_use]
    pub fn with_detail(mut self, detail: Value) -> Self {
        self.detail = detail;
        self
    }
}

/// Redacts the caller's texts. The numbers and digests of the chain stay: a digest that the redactor took for a token
/// would break the chain.
pub(super) fn redact(operation: &Operation, redactor: &Redactor) -> serde_json::Result<Operation> {
    let detail = redact_json(redactor, &serde_json::to_string(&operation.detail)?)?;
    Ok(Operation {
        op: redactor.redact(&operation.op).into_owned(),
        target: redactor.redact(&operation.target).into_owned(),
        outcome: operation.outcome,
        detail: serde_json::from_str(&detail)?,
    })
}

/// A line of the log; keys are written in this order.
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
