//! OpenAI's Chat Completions.

use serde_json::{Value, json};

use super::{Reply, Say, entries, halves, plain_text};
use crate::model_server::tool::Offer;

pub(super) fn offers(body: &Value) -> Vec<Offer> {
    let names = entries(&body["tools"]).iter().filter_map(|tool| tool["function"]["name"].as_str());
    names.map(Offer::function).collect()
}

pub(super) fn last_tool_result(body: &Value) -> Option<String> {
    let mut messages = entries(&body["messages"]).iter();
    messages
        .rfind(|message| message["role"] == "tool")
        .map(|message| plain_text(&message["content"]))
}

pub(super) fn render_events(reply: &Reply) -> Vec<String> {
    let mut deltas = vec![json!({ "role": "assistant", "content": "" })];
    match &reply.say {
        Say::Text(text) => deltas.extend(halves(text).map(|half| json!({ "content": half }))),
        Say::Call(call) => {
            let opening = json!({ "name": call.offer.name, "arguments": "" });
            let id = reply.id("call");
            let opening = json!({ "index": 0, "id": id, "type": "function", "function": opening });
            deltas.push(json!({ "tool_calls": [opening] }));
            deltas.extend(halves(&call.input.to_string()).map(
                |half| json!({ "tool_calls": [{ "index": 0, "function": { "arguments": half } }] }),
            ));
        }
    }
    let choice = |delta: &Value, finish: Option<&str>| {
        chunk(reply, &json!([{ "index": 0, "delta": delta, "finish_reason": finish }]))
    };
    let mut chunks: Vec<Value> = deltas.iter().map(|delta| choice(delta, None)).collect();
    chunks.push(choice(&json!({}), Some(finish_reason(reply))));
    let mut last = chunk(reply, &json!([]));
    last["usage"] = usage(reply);
    chunks.push(last);
    let events = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
    events.chain(["data: [DONE]\n\n".to_owned()]).collect()
}

pub(super) fn render_whole(reply: &Reply) -> Value {
    let message = match &reply.say {
        Say::Text(text) => json!({ "role": "assistant", "content": text }),
        Say::Call(call) => {
            let function = json!({ "name": call.offer.name, "arguments": call.input.to_string() });
            let call = json!({ "id": reply.id("call"), "type": "function", "function": function });
            json!({ "role": "assistant", "content": null, "tool_calls": [call] })
        }
    };
    let choice = json!({ "index": 0, "message": message, "finish_reason": finish_reason(reply) });
    json!({
        "id": reply.id("chatcmpl"), "object": "chat.completion", "created": 0, "model": reply.model,
        "choices": [choice], "usage": usage(reply),
    })
}

fn chunk(reply: &Reply, choices: &Value) -> Value {
    json!({
        "id": reply.id("chatcmpl"), "object": "chat.completion.chunk", "created": 0,
        "model": reply.model, "choices": choices,
    })
}

fn finish_reason(reply: &Reply) -> &'static str {
    match reply.say {
        Say::Text(_) => "stop",
        Say::Call(_) => "tool_calls",
    }
}

fn usage(reply: &Reply) -> Value {
    let (input, output) = (reply.usage.whole_input(), reply.usage.output);
    json!({
        "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
        "prompt_tokens_details": { "cached_tokens": reply.usage.cached },
    })
}
