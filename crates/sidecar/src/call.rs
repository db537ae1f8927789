//! The six methods and their parameters, strictly parsed: a call with an unknown field is refused.

use std::num::NonZeroU64;

use forge::ThreadKind;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The methods, by the names that agents know them by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgeMethod {
    ReadIssue,
    /// Reads a pull request.
    ReadPr,
    /// Reads a conversation.
    ReadComments,
    /// Comments on what the run was assigned.
    PostComment,
    /// Replaces the text of what the run was assigned.
    UpdateDescription,
    /// Says that the work is done.
    SignalDone,
}

/// How the work ended, in the agent's own judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DoneStatus {
    Success,
    /// It could not be done.
    Failure,
    /// A person must decide or help first.
    Blocked,
}

/// A call whose parameters were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ForgeCall {
    ReadIssue { number: u64 },
    ReadPr { number: u64 },
    ReadComments { number: u64, kind: Option<ThreadKind> },
    PostComment { number: u64, kind: Option<ThreadKind>, body: String },
    UpdateDescription { number: u64, kind: Option<ThreadKind>, body: String },
    SignalDone { status: DoneStatus, summary: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NumberParams {
    number: NonZeroU64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThreadParams {
    number: NonZeroU64,
    kind: Option<KindWord>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextParams {
    number: NonZeroU64,
    kind: Option<KindWord>,
    body: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DoneParams {
    status: DoneStatus,
    summary: String,
}

/// Only where issues and pull requests are numbered apart does it matter.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KindWord {
    Issue,
    PullRequest,
}

impl ForgeMethod {
    /// All of them, in the order of the protocol.
    pub const ALL: [Self; 6] = [
        Self::ReadIssue,
        Self::ReadPr,
        Self::ReadComments,
        Self::PostComment,
        Self::UpdateDescription,
        Self::SignalDone,
    ];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadIssue => "read_issue",
            Self::ReadPr => "read_pr",
            Self::ReadComments => "read_comments",
            Self::PostComment => "post_comment",
            Self::UpdateDescription => "update_description",
            Self::SignalDone => "signal_done",
        }
    }

    /// What it does, for an agent that chooses among tools.
    pub fn description(self) -> &'static str {
        match self {
            Self::ReadIssue => "Read an issue: title, body, labels, assignees, state.",
            Self::ReadPr => "Read a pull request: title, body, branches, merge state.",
            Self::ReadComments => {
                "Read the whole conversation on an issue or pull request, reviews included."
            }
            Self::PostComment => {
                "Post a comment on the assigned issue or its pull request. Others are refused."
            }
            Self::UpdateDescription => {
                "Replace the body of the assigned issue or its pull request. Others are refused."
            }
            Self::SignalDone => {
                "Say that this unit of work is complete. Call it once, at the very end."
            }
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// The JSON schema of its parameters.
    pub(crate) fn schema(self) -> Value {
        let number =
            json!({ "type": "integer", "minimum": 1, "description": "issue or pull request" });
        let kind = json!({
            "type": "string", "enum": ["issue", "pull_request"],
            "description": "which of the two, where they are numbered apart",
        });
        let body = json!({ "type": "string", "description": "Markdown" });
        let (fields, required) = match self {
            Self::ReadIssue | Self::ReadPr => (json!({ "number": number }), json!(["number"])),
            Self::ReadComments => (json!({ "number": number, "kind": kind }), json!(["number"])),
            Self::PostComment | Self::UpdateDescription => {
                (json!({ "number": number, "kind": kind, "body": body }), json!(["number", "body"]))
            }
            Self::SignalDone => {
                let status = json!({ "type": "string", "enum": ["success", "failure", "blocked"] });
                let summary =
                    json!({ "type": "string", "description": "what was done, for people" });
                (json!({ "status": status, "summary": summary }), json!(["status", "summary"]))
            }
        };
        json!({
            "type": "object", "properties": fields, "required": required,
            "additionalProperties": false,
        })
    }
}

impl DoneStatus {
    /// One word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Blocked => "blocked",
        }
    }
}

impl ForgeCall {
    /// Reads parameters by name. The error is a sentence for the agent.
    pub(crate) fn parse(method: ForgeMethod, params: Value) -> Result<Self, String> {
        Ok(match method {
            ForgeMethod::ReadIssue => {
                Self::ReadIssue { number: read::<NumberParams>(params)?.number.get() }
            }
            ForgeMethod::ReadPr => {
                Self::ReadPr { number: read::<NumberParams>(params)?.number.get() }
            }
            ForgeMethod::ReadComments => {
                let ThreadParams { number, kind } = read(params)?;
                Self::ReadComments { number: number.get(), kind: kind.map(KindWord::meaning) }
            }
            ForgeMethod::PostComment => {
                let TextParams { number, kind, body } = read(params)?;
                let kind = kind.map(KindWord::meaning);
                Self::PostComment { number: number.get(), kind, body }
            }
            ForgeMethod::UpdateDescription => {
                let TextParams { number, kind, body } = read(params)?;
                let kind = kind.map(KindWord::meaning);
                Self::UpdateDescription { number: number.get(), kind, body }
            }
            ForgeMethod::SignalDone => {
                let DoneParams { status, summary } = read(params)?;
                Self::SignalDone { status, summary }
            }
        })
    }
}

impl KindWord {
    fn meaning(self) -> ThreadKind {
        match self {
            Self::Issue => ThreadKind::Issue,
            Self::PullRequest => ThreadKind::Pull,
        }
    }
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, String> {
    if !params.is_object() {
        return Err("parameters are given by name, as an object".to_owned());
    }
    serde_json::from_value(params).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refuse(method: ForgeMethod, params: Value, why: &str) {
        let error = ForgeCall::parse(method, params).unwrap_err();
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn parameters_are_read_strictly() {
        let comment = json!({ "number": 3, "body": "hello" });
        let expected = ForgeCall::PostComment { number: 3, kind: None, body: "hello".to_owned() };
        assert_eq!(ForgeCall::parse(ForgeMethod::PostComment, comment), Ok(expected));
        refuse(
            ForgeMethod::ReadIssue,
            json!({ "number": 3, "repo": "other" }),
            "unknown field `repo`",
        );
        refuse(ForgeMethod::ReadIssue, json!({ "number": "3" }), "invalid type");
        refuse(ForgeMethod::ReadIssue, json!({ "number": 0 }), "nonzero");
        refuse(ForgeMethod::ReadIssue, json!({ "number": -1 }), "invalid value");
        refuse(ForgeMethod::ReadIssue, json!([3]), "by name");
        refuse(ForgeMethod::ReadIssue, Value::Null, "by name");
        refuse(ForgeMethod::PostComment, json!({ "number": 3 }), "missing field `body`");
        refuse(
            ForgeMethod::SignalDone,
            json!({ "status": "ok", "summary": "" }),
            "unknown variant",
        );
    }

    #[test]
    fn a_schema_names_what_the_reader_takes() {
        for method in ForgeMethod::ALL {
            let schema = method.schema();
            assert_eq!(schema["additionalProperties"], false);
            let mut params = json!({});
            for name in schema["required"].as_array().unwrap() {
                let name = name.as_str().unwrap();
                let field = &schema["properties"][name];
                let value = if field["type"] == "integer" { json!(1) } else { json!("x") };
                params[name] = field["enum"].get(0).cloned().unwrap_or(value);
            }
            ForgeCall::parse(method, params).unwrap();
            assert_eq!(ForgeMethod::parse(method.name()), Some(method));
        }
    }
}
