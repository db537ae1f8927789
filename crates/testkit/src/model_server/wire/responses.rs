//! OpenAI's Responses.

use serde_json::{Value, json};

use super::{Reply, Say, count_runs, entries, halves, is_assistant, named_event, plain_text};
use crate::model_server::tool::{Call, Kind, Offer};

/// Tools that an agent keeps back are found by these. The server asks for them on its own account, so they are no part
/// of the turns.
const SEARCH: &str = "tool_search_call";
const FOUND: &str = "tool_search_output";

/// Number of turns that the assistant has had.
pub(super) fn turns_so_far(body: &Value) -> usize {
    let is_search = |item: &&Value| item["type"] == SEARCH || item["type"] == FOUND;
    count_runs(entries(&body["input"]).iter().filter(|item| !is_search(item)), is_assistant_side)
}

/// Returns whether an item of the conversation is the assistant's.
fn is_assistant_side(item: &Value) -> bool {
    match item["type"].as_str() {
        // What a client may leave out is the type of a message.
        None | Some("message") => is_assistant(item),
        Some("reasoning" | "item_reference") => true,
        Some(kind) => kind.ends_with("_call"),
    }
}

pub(super) fn offers(body: &Value) -> Vec<Offer> {
    let found = entries(&body["input"]).iter().filter(|item| item["type"] == FOUND);
    let tools =
        entries(&body["tools"]).iter().chain(found.flat_map(|item| entries(&item["tools"])));
    let mut offers: Vec<_> = tools.flat_map(|tool| offers_of_entry(tool, None)).collect();
    // What a search did not find, another will not find either.
    if entries(&body["input"]).last().is_some_and(|item| item["type"] == FOUND) {
        for offer in offers.iter_mut().filter(|offer| offer.kind == Kind::Search) {
            offer.kind = Kind::Hosted;
        }
    }
    offers
}

/// The tools of an entry, which may be a namespace of several.
fn offers_of_entry(tool: &Value, namespace: Option<&str>) -> Vec<Offer> {
    let of = |name: &Value, kind| {
        let name = name.as_str().unwrap_or_default().to_owned();
        vec![Offer { namespace: namespace.map(str::to_owned), name, kind }]
    };
    match tool["type"].as_str().unwrap_or_default() {
        "namespace" => {
            let inner = entries(&tool["tools"]).iter();
            inner.flat_map(|inner| offers_of_entry(inner, tool["name"].as_str())).collect()
        }
        "function" => of(&tool["name"], Kind::Function),
        "custom" => of(&tool["name"], Kind::Custom),
        "local_shell" => of(&tool["type"], Kind::LocalShell),
        "tool_search" if tool["execution"] == "client" => of(&tool["type"], Kind::Search),
        _ => of(&tool["type"], Kind::Hosted),
    }
}

pub(super) fn last_tool_result(body: &Value) -> Option<String> {
    let is_result =
        |item: &&Value| item["type"].as_str().is_some_and(|kind| kind.ends_with("_call_output"));
    entries(&body["input"]).iter().rfind(is_result).map(|item| plain_text(&item["output"]))
}

pub(super) fn render_events(reply: &Reply) -> Vec<String> {
    let whole = render_whole(reply);
    let mut begun = whole.clone();
    begun["status"] = json!("in_progress");
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    let item = item(reply);
    let mut events = vec![
        json!({ "type": "response.created", "response": begun }),
        json!({ "type": "response.in_progress", "response": begun }),
        json!({ "type": "response.output_item.added", "output_index": 0, "item": opening(&item) }),
    ];
    let item_id = &item["id"];
    let mut tell = |field: &str, text: &str, name: &str| {
        for half in halves(text) {
            events.push(json!({
                "type": format!("response.{name}.delta"), "item_id": item_id, "output_index": 0,
                "content_index": 0, "delta": half,
            }));
        }
        events.push(json!({
            "type": format!("response.{name}.done"), "item_id": item_id, "output_index": 0,
            "content_index": 0, field: text,
        }));
    };
    match &reply.say {
        Say::Text(text) => tell("text", text, "output_text"),
        Say::Call(call) => match call.offer.kind {
            Kind::Function => {
                tell("arguments", &call.input.to_string(), "function_call_arguments");
            }
            Kind::Custom => tell("input", &plain_text(&call.input), "custom_tool_call_input"),
            Kind::LocalShell | Kind::Search | Kind::Hosted => {}
        },
    }
    events.push(json!({ "type": "response.output_item.done", "output_index": 0, "item": item }));
    events.push(json!({ "type": "response.completed", "response": whole }));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = json!(number);
    }
    events.iter().map(named_event).collect()
}

pub(super) fn render_whole(reply: &Reply) -> Value {
    let (input, output) = (reply.usage.whole_input(), reply.usage.output);
    json!({
        "id": reply.id("resp"), "object": "response", "created_at": 0, "status": "completed",
        "model": reply.model, "output": [item(reply)], "error": null, "incomplete_details": null,
        "usage": {
            "input_tokens": input, "output_tokens": output, "total_tokens": input + output,
            "input_tokens_details": { "cached_tokens": reply.usage.cached },
            "output_tokens_details": { "reasoning_tokens": 0 },
        },
    })
}

/// The one item of an answer.
fn item(reply: &Reply) -> Value {
    match &reply.say {
        Say::Text(text) => json!({
            "type": "message", "id": reply.id("msg"), "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "text": text, "annotations": [] }],
        }),
        Say::Call(call) => call_item(reply, call),
    }
}

fn call_item(reply: &Reply, Call { offer, input }: &Call) -> Value {
    let call_id = reply.id("call");
    match offer.kind {
        Kind::Function | Kind::Hosted => {
            let mut item = json!({
                "type": "function_call", "id": reply.id("fc"), "call_id": call_id,
                "name": offer.name, "arguments": input.to_string(), "status": "completed",
            });
            if let Some(namespace) = &offer.namespace {
                item["namespace"] = json!(namespace);
            }
            item
        }
        Kind::Custom => json!({
            "type": "custom_tool_call", "id": reply.id("ctc"), "call_id": call_id,
            "name": offer.name, "input": plain_text(input), "status": "completed",
        }),
        Kind::LocalShell => json!({
            "type": "local_shell_call", "id": reply.id("lsh"), "call_id": call_id,
            "status": "completed",
            "action": { "type": "exec", "command": input["command"], "env": {} },
        }),
        // Not the identifier of the call that follows in the same turn.
        Kind::Search => json!({
            "type": SEARCH, "id": reply.id("tsc"), "call_id": reply.id("search"),
            "execution": "client", "arguments": input, "status": "completed",
        }),
    }
}

/// The same item before anything was said.
fn opening(item: &Value) -> Value {
    let mut opening = item.clone();
    opening["status"] = json!("in_progress");
    for field in ["arguments", "input"] {
        if item[field].is_string() {
            opening[field] = json!("");
        }
    }
    if item["content"].is_array() {
        opening["content"] = json!([]);
    }
    opening
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_opened_and_hosted_tools_are_seen() {
        let probe = json!({ "type": "function", "name": "echo_upper" });
        let body = json!({ "tools": [
            { "type": "function", "name": "exec_command" },
            { "type": "custom", "name": "apply_patch" },
            { "type": "namespace", "name": "mcp__probe", "tools": [probe] },
            { "type": "local_shell" },
            { "type": "web_search" },
        ] });
        let seen: Vec<_> =
            offers(&body).iter().map(|offer| (offer.full_name(), offer.kind)).collect();
        let expected = [
            ("exec_command", Kind::Function),
            ("apply_patch", Kind::Custom),
            ("mcp__probe__echo_upper", Kind::Function),
            ("local_shell", Kind::LocalShell),
            ("web_search", Kind::Hosted),
        ];
        assert_eq!(seen, expected.map(|(name, kind)| (name.to_owned(), kind)));
    }

    #[test]
    fn what_a_search_found_is_on_offer_in_the_same_turn() {
        let search = json!({ "type": "tool_search", "execution": "client" });
        let probe = json!({ "type": "function", "name": "echo_upper" });
        let space = json!({ "type": "namespace", "name": "mcp__probe", "tools": [probe] });
        let [call, found] = [json!({ "type": SEARCH }), json!({ "type": FOUND, "tools": [space] })];
        let body = json!({ "tools": [search], "input": [{ "role": "user" }, call, found] });
        let names: Vec<_> = offers(&body).iter().map(Offer::full_name).collect();
        assert_eq!(
            (names.join(" ").as_str(), turns_so_far(&body)),
            ("tool_search mcp__probe__echo_upper", 0)
        );
    }
}
