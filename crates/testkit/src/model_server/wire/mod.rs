//! The APIs by which agents talk to models: what a request says, and how an answer looks.
//!
//! Each file knows one API, and nothing else here knows any.

mod chat;
mod messages;
mod responses;

use serde_json::{Value, json};

use super::Usage;
use super::tool::{Call, Offer};

/// An API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Anthropic's Messages.
    Messages,
    /// OpenAI's Chat Completions.
    Chat,
    /// OpenAI's Responses.
    Responses,
    /// None of them.
    Other,
}

/// Response of the model.
#[derive(Debug)]
pub(super) struct Reply {
    /// The number of the turn; `None` for side calls.
    pub(super) turn: Option<usize>,
    pub(super) model: String,
    pub(super) say: Say,
    pub(super) usage: Usage,
}

/// Part of a response.
#[derive(Debug)]
pub(super) enum Say {
    Text(String),
    Call(Call),
}

impl Reply {
    /// An identifier that no other turn of the conversation has.
    fn id(&self, prefix: &str) -> String {
        self.turn.map_or_else(|| format!("{prefix}_side"), |turn| format!("{prefix}_{turn}"))
    }
}

impl Wire {
    /// Number of turns that the assistant has had in the conversation.
    pub(super) fn turns_so_far(self, body: &Value) -> usize {
        match self {
            Self::Messages | Self::Chat => count_runs(entries(&body["messages"]), is_assistant),
            Self::Responses => responses::turns_so_far(body),
            Self::Other => 0,
        }
    }

    /// The tools on offer.
    pub(super) fn offers(self, body: &Value) -> Vec<Offer> {
        match self {
            Self::Messages => messages::offers(body),
            Self::Chat => chat::offers(body),
            Self::Responses => responses::offers(body),
            Self::Other => Vec::new(),
        }
    }

    /// Reasoning effort.
    pub(super) fn effort(self, body: &Value) -> Option<String> {
        let fields: &[&str] = match self {
            Self::Messages => &["/output_config/effort", "/thinking/budget_tokens"],
            Self::Chat => &["/reasoning_effort"],
            Self::Responses => &["/reasoning/effort"],
            Self::Other => &[],
        };
        let mut values = fields.iter().filter_map(|field| body.pointer(field));
        values.find(|value| !value.is_null()).map(plain_text)
    }

    /// The text of the last tool result.
    pub(super) fn last_tool_result(self, body: &Value) -> Option<String> {
        match self {
            Self::Messages => messages::last_tool_result(body),
            Self::Chat => chat::last_tool_result(body),
            Self::Responses => responses::last_tool_result(body),
            Self::Other => None,
        }
    }

    /// An answer as events, each with its end.
    pub(super) fn render_events(self, reply: &Reply) -> Vec<String> {
        match self {
            Self::Messages => messages::render_events(reply),
            Self::Chat => chat::render_events(reply),
            Self::Responses => responses::render_events(reply),
            Self::Other => Vec::new(),
        }
    }

    /// An answer in one piece.
    pub(super) fn render_whole(self, reply: &Reply) -> Value {
        match self {
            Self::Messages => messages::render_whole(reply),
            Self::Chat => chat::render_whole(reply),
            Self::Responses => responses::render_whole(reply),
            Self::Other => Value::Null,
        }
    }

    /// The body of an error.
    pub(super) fn render_error(self, status: u16, message: &str) -> Value {
        let kind = error_kind(status);
        match self {
            Self::Messages => {
                json!({ "type": "error", "error": { "type": kind, "message": message } })
            }
            Self::Chat | Self::Responses | Self::Other => {
                json!({ "error": { "message": message, "type": kind, "param": null, "code": kind } })
            }
        }
    }
}

fn error_kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    }
}

fn is_assistant(message: &Value) -> bool {
    message["role"] == "assistant"
}

/// Number of unbroken runs of such items. An API may spread one turn over several items.
fn count_runs<'a>(
    items: impl IntoIterator<Item = &'a Value>,
    belongs: impl Fn(&Value) -> bool,
) -> usize {
    let mut runs = 0;
    let mut within = false;
    for item in items {
        let belongs = belongs(item);
        runs += usize::from(belongs && !within);
        within = belongs;
    }
    runs
}

/// The items of a list; none, if it is not a list.
fn entries(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// The text of a content, which may be a string or a list of parts.
fn plain_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => content.to_string(),
    }
}

/// A text in two pieces, so that clients have something to put together.
fn halves(text: &str) -> [&str; 2] {
    let middle = text.floor_char_boundary(text.len() / 2);
    let (first, second) = text.split_at(middle);
    [first, second]
}

fn named_event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_turns(wire: Wire, body: &Value, turns: usize) {
        assert_eq!(wire.turns_so_far(body), turns);
    }

    #[test]
    fn a_turn_is_a_run_of_what_the_assistant_said() {
        let [ask, call, result] = ["user", "assistant", "tool"].map(|role| json!({ "role": role }));
        check_turns(Wire::Chat, &json!({ "messages": [ask] }), 0);
        check_turns(Wire::Chat, &json!({ "messages": [ask, call, result] }), 1);
        check_turns(Wire::Chat, &json!({ "messages": [ask, call, result, call, ask] }), 2);
        check_turns(Wire::Messages, &json!({ "messages": [ask, call, call, ask] }), 1);
    }

    #[test]
    fn responses_spreads_a_turn_over_several_items() {
        let items = ["reasoning", "function_call", "function_call_output", "custom_tool_call"];
        let [reasoning, call, output, custom] = items.map(|kind| json!({ "type": kind }));
        let ask = json!({ "type": "message", "role": "user" });
        let said = json!({ "type": "message", "role": "assistant" });
        check_turns(Wire::Responses, &json!({ "input": [ask] }), 0);
        check_turns(Wire::Responses, &json!({ "input": "a plain prompt" }), 0);
        check_turns(Wire::Responses, &json!({ "input": [ask, reasoning, said, call, output] }), 1);
        let resumed = json!({ "input": [ask, reasoning, call, output, custom, output, said, ask] });
        check_turns(Wire::Responses, &resumed, 3);
    }

    #[test]
    fn effort_is_where_each_api_has_it() {
        let check = |wire: Wire, body: Value, effort: Option<&str>| {
            assert_eq!(wire.effort(&body).as_deref(), effort);
        };
        check(Wire::Chat, json!({ "reasoning_effort": "high" }), Some("high"));
        check(Wire::Responses, json!({ "reasoning": { "effort": "low" } }), Some("low"));
        check(Wire::Responses, json!({ "reasoning": null }), None);
        check(Wire::Messages, json!({ "output_config": { "effort": "high" } }), Some("high"));
        check(Wire::Messages, json!({ "thinking": { "budget_tokens": 16000 } }), Some("16000"));
    }

    #[test]
    fn halves_keep_characters_whole() {
        assert_eq!(halves("aéb"), ["a", "éb"]);
        assert_eq!(halves(""), ["", ""]);
    }
}
