//! Anthropic's Messages.

use serde_json::{Value, json};

use super::{Reply, Say, entries, halves, named_event, plain_text};
use crate::model_server::tool::Offer;

pub(super) fn offers(body: &Value) -> Vec<Offer> {
    entries(&body["tools"])
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .map(Offer::function)
        .collect()
}

pub(super) fn last_tool_result(body: &Value) -> Option<String> {
    let mut blocks =
        entries(&body["messages"]).iter().flat_map(|message| entries(&message["content"]));
    blocks.rfind(|block| block["type"] == "tool_result").map(|block| plain_text(&block["content"]))
}

pub(super) fn render_events(reply: &Reply) -> Vec<String> {
    let (opening, deltas) = match &reply.say {
        Say::Text(text) => (
            json!({ "type": "text", "text": "" }),
            halves(text).map(|half| json!({ "type": "text_delta", "text": half })),
        ),
        Say::Call(call) => {
            let id = reply.id("toolu");
            (
                json!({ "type": "tool_use", "id": id, "name": call.offer.name, "input": {} }),
                halves(&call.input.to_string())
                    .map(|half| json!({ "type": "input_json_delta", "partial_json": half })),
            )
        }
    };
    let mut start = render_whole(reply);
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"]["output_tokens"] = json!(1);
    let [first, second] =
        deltas.map(|delta| json!({ "type": "content_block_delta", "index": 0, "delta": delta }));
    let stop = json!({ "stop_reason": stop_reason(reply), "stop_sequence": null });
    let events = [
        json!({ "type": "message_start", "message": start }),
        json!({ "type": "content_block_start", "index": 0, "content_block": opening }),
        first,
        second,
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": stop, "usage": usage(reply) }),
        json!({ "type": "message_stop" }),
    ];
    events.iter().map(named_event).collect()
}

pub(super) fn render_whole(reply: &Reply) -> Value {
    let block = match &reply.say {
        Say::Text(text) => json!({ "type": "text", "text": text }),
        Say::Call(call) => json!({
            "type": "tool_use", "id": reply.id("toolu"), "name": call.offer.name, "input": call.input,
        }),
    };
    json!({
        "id": reply.id("msg"), "type": "message", "role": "assistant", "model": reply.model,
        "content": [block], "stop_reason": stop_reason(reply), "stop_sequence": null,
        "usage": usage(reply),
    })
}

fn stop_reason(reply: &Reply) -> &'static str {
    match reply.say {
        Say::Text(_) => "end_turn",
        Say::Call(_) => "tool_use",
    }
}

fn usage(reply: &Reply) -> Value {
    json!({
        "input_tokens": reply.usage.input,
        "cache_read_input_tokens": reply.usage.cached,
        "cache_creation_input_tokens": reply.usage.cache_written,
        "output_tokens": reply.usage.output,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_tool_result_may_be_text_or_parts() {
        let result = |content: Value| {
            let block = json!({ "type": "tool_result", "content": content });
            json!({ "role": "user", "content": [block] })
        };
        let parts = json!([{ "type": "text", "text": "second" }]);
        let ask = json!({ "role": "user", "content": "go" });
        let body = json!({ "messages": [ask, result(json!("first")), result(parts)] });
        assert_eq!(last_tool_result(&body).as_deref(), Some("second"));
        assert_eq!(last_tool_result(&json!({ "messages": [] })), None);
    }
}
