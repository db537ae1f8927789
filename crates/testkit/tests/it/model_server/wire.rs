//! The three wire formats: streams, answers in one piece, and tools under each agent's name for them.

use super::*;

#[test]
fn messages_streams_a_call() {
    let response = ask(&play([Turn::shell(MERGE)]), Wire::Messages, 0);
    assert!(response.head.contains("text/event-stream"), "{}", response.head);
    assert_eq!(
        response.event_names(),
        [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop"
        ]
    );
    let events = response.events();
    assert_eq!(events[1]["content_block"]["name"], "Bash");
    let input: Value = serde_json::from_str(&joined(&events, "/delta/partial_json")).unwrap();
    assert_eq!(input["command"], MERGE);
    assert!(input["description"].is_string());
    assert_eq!(events[5]["delta"]["stop_reason"], "tool_use");
    assert_eq!(events[5]["usage"]["output_tokens"], 20);
}

#[test]
fn messages_answers_in_one_piece_too() {
    let server = play([Turn::shell(MERGE), Turn::text("merged")]);
    let mut client = Client::new(&server);
    let call = client.post(path(Wire::Messages), &whole(request(Wire::Messages, 0))).json();
    assert_eq!(call["content"][0]["input"]["command"], MERGE);
    assert_eq!(call["stop_reason"], "tool_use");
    let text = client.post(path(Wire::Messages), &whole(request(Wire::Messages, 1))).json();
    assert_eq!(text["content"], json!([{ "type": "text", "text": "merged" }]));
    assert_eq!(text["stop_reason"], "end_turn");
}

#[test]
fn chat_streams_a_call_and_a_text() {
    let server = play([Turn::shell(MERGE), Turn::text("merged")]);
    let events = ask(&server, Wire::Chat, 0).events();
    assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
    let call = &events[1]["choices"][0]["delta"]["tool_calls"][0];
    assert_eq!((&call["function"]["name"], &call["id"]), (&json!("bash"), &json!("call_0")));
    let arguments = joined(&events, "/choices/0/delta/tool_calls/0/function/arguments");
    assert_eq!(serde_json::from_str::<Value>(&arguments).unwrap()["command"], MERGE);
    let [.., finish, usage, done] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(finish["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!((&usage["choices"], &usage["usage"]["total_tokens"]), (&json!([]), &json!(120)));
    assert_eq!(done, "[DONE]");

    let events = ask(&server, Wire::Chat, 1).events();
    assert_eq!(joined(&events, "/choices/0/delta/content"), "merged");
    assert_eq!(events[events.len() - 3]["choices"][0]["finish_reason"], "stop");
}

#[test]
fn chat_answers_in_one_piece_too() {
    let server = play([Turn::shell(MERGE)]);
    let answer = Client::new(&server).post(path(Wire::Chat), &whole(request(Wire::Chat, 0))).json();
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert_eq!(choice["message"]["tool_calls"][0]["function"]["name"], "bash");
}

#[test]
fn responses_streams_a_call_and_a_text() {
    let server = play([Turn::shell(MERGE), Turn::text("merged")]);
    let response = ask(&server, Wire::Responses, 0);
    assert_eq!(
        response.event_names(),
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed"
        ]
    );
    let events = response.events();
    assert_eq!(events[2]["item"]["arguments"], "");
    assert_eq!(events[6]["item"]["name"], "exec_command");
    let arguments: Value = serde_json::from_str(&joined(&events, "/delta")).unwrap();
    assert_eq!(arguments, json!({ "cmd": MERGE }));
    assert_eq!(events[7]["response"]["usage"]["input_tokens"], 100);
    assert_eq!(events[7]["response"]["output"][0], events[6]["item"]);

    let response = ask(&server, Wire::Responses, 1);
    assert_eq!(response.event_names()[5], "response.output_text.done");
    assert_eq!(joined(&response.events(), "/delta"), "merged");
}

#[test]
fn responses_answers_in_one_piece_too() {
    let server = play([Turn::text("merged")]);
    let request = whole(request(Wire::Responses, 0));
    let answer = Client::new(&server).post(path(Wire::Responses), &request).json();
    assert_eq!(answer["output"][0]["content"][0]["text"], "merged");
    assert_eq!(answer["status"], "completed");
}

#[test]
fn a_tool_of_a_server_is_found_under_each_agents_name_for_it() {
    let server = play([Turn::tool("echo_upper", json!({ "text": "a" }))]);
    let events = ask(&server, Wire::Messages, 0).events();
    assert_eq!(events[1]["content_block"]["name"], "mcp__probe__echo_upper");
    let events = ask(&server, Wire::Chat, 0).events();
    let function = &events[1]["choices"][0]["delta"]["tool_calls"][0]["function"];
    assert_eq!(function["name"], "probe_echo_upper");
    let events = ask(&server, Wire::Responses, 0).events();
    let item = &events[6]["item"];
    assert_eq!((&item["namespace"], &item["name"]), (&json!("mcp__probe"), &json!("echo_upper")));
    assert_eq!(item["arguments"], r#"{"text":"a"}"#);
}

#[test]
fn text_tools_and_the_local_shell_get_items_of_their_own() {
    let server = play([Turn::tool("apply_patch", json!("*** Begin Patch")), Turn::shell(MERGE)]);
    let tools = json!([{ "type": "custom", "name": "apply_patch" }, { "type": "local_shell" }]);
    let mut request = whole(request(Wire::Responses, 0));
    request["tools"] = tools;
    let mut client = Client::new(&server);
    let patch = client.post(path(Wire::Responses), &request).json()["output"][0].clone();
    assert_eq!(
        (&patch["type"], &patch["input"]),
        (&json!("custom_tool_call"), &json!("*** Begin Patch"))
    );
    request["input"] =
        json!([{ "type": "custom_tool_call" }, { "type": "custom_tool_call_output" }]);
    let shell = client.post(path(Wire::Responses), &request).json()["output"][0].clone();
    assert_eq!(shell["type"], "local_shell_call");
    assert_eq!(shell["action"]["command"], json!(["bash", "-lc", MERGE]));
}

#[test]
fn a_tool_that_is_kept_back_is_searched_for_once() {
    let server = play([Turn::tool("echo_upper", json!({}))]);
    let mut request = whole(request(Wire::Responses, 0));
    let [shell, probe] = [&request["tools"][0], &request["tools"][1]].map(Value::clone);
    request["tools"] = json!([shell, { "type": "tool_search", "execution": "client" }]);
    let mut after = |found: &[Value]| {
        request["input"] = Value::Array(found.to_vec());
        Client::new(&server).post(path(Wire::Responses), &request)
    };
    let search = after(&[]).json()["output"][0].clone();
    assert_eq!(search["type"], "tool_search_call");
    let found = json!({ "type": "tool_search_output", "tools": [probe] });
    let call = after(&[search.clone(), found]).json()["output"][0].clone();
    assert_eq!((&call["name"], &call["namespace"]), (&json!("echo_upper"), &json!("mcp__probe")));
    assert_ne!(call["call_id"], search["call_id"]);
    let nothing = json!({ "type": "tool_search_output", "tools": [] });
    assert_eq!(after(&[search, nothing]).status, 400);
}

#[test]
fn a_tool_that_nobody_offers_is_refused_with_the_reason() {
    let response = ask(&play([Turn::tool("delete_all", json!({}))]), Wire::Chat, 0);
    assert_eq!(response.status, 400);
    let message = response.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("delete_all") && message.contains("bash"), "{message}");
}
