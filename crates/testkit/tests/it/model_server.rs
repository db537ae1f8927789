//! The scripted model server, asked by a client that is no more than a socket.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::model_server::{LAST_TEXT, ModelScript, ModelServer, RequestLog, Turn, Usage, Wire};
use testkit::wait::wait_until;

const MERGE: &str = "git merge upstream/main --no-edit";

/// How long a server that must stay silent is listened to.
const SILENCE: Duration = Duration::from_millis(700);

struct Response {
    status: u16,
    head: String,
    body: String,
}

impl Response {
    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{} {}", self.status, self.body))
    }

    /// The data of the events.
    fn events(&self) -> Vec<Value> {
        let lines = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        lines.map(|line| serde_json::from_str(line).unwrap_or_else(|_| json!(line))).collect()
    }

    fn event_names(&self) -> Vec<&str> {
        self.body.lines().filter_map(|line| line.strip_prefix("event: ")).collect()
    }
}

/// A connection that stays.
struct Client {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Client {
    fn new(server: &ModelServer) -> Self {
        let stream = TcpStream::connect(server.addr()).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(300))).expect("a timeout");
        Self { stream, received: Vec::new() }
    }

    fn send(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) {
        let head = format!("{method} {path} HTTP/1.1\r\nHost: model\r\n{headers}\r\n");
        self.stream.write_all(&[head.as_bytes(), body].concat()).expect("the request goes out");
    }

    fn post(&mut self, path: &str, body: &Value) -> Response {
        self.begin_post(path, body);
        self.receive().expect("a response")
    }

    /// Asks without waiting for the answer.
    fn begin_post(&mut self, path: &str, body: &Value) {
        let body = body.to_string();
        let headers = format!("Content-Length: {}\r\nX-Api-Key: key-of-the-run\r\n", body.len());
        self.send("POST", path, &headers, body.as_bytes());
    }

    fn receive(&mut self) -> std::io::Result<Response> {
        let head = self.take_until("\r\n\r\n")?.to_lowercase();
        let field = |name: &str| {
            head.lines()
                .find_map(|line| line.strip_prefix(name))
                .map(|value| value.trim().to_owned())
        };
        let body = if field("transfer-encoding:").as_deref() == Some("chunked") {
            self.take_chunks()?
        } else {
            self.take(
                field("content-length:").map_or(0, |length| length.parse().expect("a number")),
            )?
        };
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        Ok(Response { status, head, body: String::from_utf8(body).expect("text") })
    }

    fn take_chunks(&mut self) -> std::io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let size = usize::from_str_radix(&self.take_until("\r\n")?, 16).expect("a size");
            body.extend(self.take(size)?);
            assert_eq!(self.take_until("\r\n")?, "");
            if size == 0 {
                return Ok(body);
            }
        }
    }

    fn take_until(&mut self, end: &str) -> std::io::Result<String> {
        loop {
            let at = self.received.windows(end.len()).position(|bytes| bytes == end.as_bytes());
            if let Some(at) = at {
                let text = String::from_utf8(self.take(at)?).expect("text");
                self.take(end.len())?;
                return Ok(text);
            }
            self.read_more()?;
        }
    }

    fn take(&mut self, size: usize) -> std::io::Result<Vec<u8>> {
        while self.received.len() < size {
            self.read_more()?;
        }
        Ok(self.received.drain(..size).collect())
    }

    fn read_more(&mut self) -> std::io::Result<()> {
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            count => {
                self.received.extend_from_slice(&bytes[..count]);
                Ok(())
            }
        }
    }
}

fn play(turns: impl IntoIterator<Item = Turn>) -> ModelServer {
    ModelServer::start([("play", ModelScript::new(turns))])
}

fn path(wire: Wire) -> &'static str {
    match wire {
        Wire::Messages => "/s/play/v1/messages?beta=true",
        Wire::Chat => "/s/play/v1/chat/completions",
        Wire::Responses => "/s/play/v1/responses",
        Wire::Other => "/s/play/v1/models",
    }
}

/// The request of an agent of the kind that speaks this API, after so many turns.
fn request(wire: Wire, turns: usize) -> Value {
    let mut talk = vec![json!({ "role": "user", "content": "merge upstream" })];
    for turn in 0..turns {
        talk.extend(match wire {
            Wire::Messages => [
                json!({ "role": "assistant", "content": [{ "type": "tool_use" }] }),
                json!({ "role": "user", "content": [{ "type": "tool_result", "content": format!("result {turn}") }] }),
            ],
            Wire::Chat => [
                json!({ "role": "assistant", "tool_calls": [] }),
                json!({ "role": "tool", "content": format!("result {turn}") }),
            ],
            Wire::Responses | Wire::Other => [
                json!({ "type": "function_call" }),
                json!({ "type": "function_call_output", "output": format!("result {turn}") }),
            ],
        });
    }
    match wire {
        Wire::Messages => json!({
            "model": "claude-x", "stream": true, "messages": talk,
            "tools": [{ "name": "Bash" }, { "name": "mcp__probe__echo_upper" }],
            "output_config": { "effort": "high" },
        }),
        Wire::Chat => json!({
            "model": "scripted", "stream": true, "messages": talk,
            "tools": [
                { "type": "function", "function": { "name": "bash" } },
                { "type": "function", "function": { "name": "probe_echo_upper" } },
            ],
            "reasoning_effort": "high",
        }),
        Wire::Responses | Wire::Other => json!({
            "model": "gpt-x", "stream": true, "input": talk,
            "tools": [
                { "type": "function", "name": "exec_command" },
                { "type": "namespace", "name": "mcp__probe", "tools": [{ "type": "function", "name": "echo_upper" }] },
            ],
            "reasoning": { "effort": "high" },
        }),
    }
}

fn whole(mut request: Value) -> Value {
    request["stream"] = json!(false);
    request
}

fn ask(server: &ModelServer, wire: Wire, turns: usize) -> Response {
    Client::new(server).post(path(wire), &request(wire, turns))
}

/// Joins what the deltas at this place say.
fn joined(events: &[Value], place: &str) -> String {
    events.iter().filter_map(|event| event.pointer(place)).filter_map(Value::as_str).collect()
}

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

#[test]
fn the_turn_follows_from_the_conversation_alone() {
    let server = play([Turn::text("zero"), Turn::text("one"), Turn::text("two")]);
    let mut client = Client::new(&server);
    for wire in [Wire::Messages, Wire::Chat, Wire::Responses] {
        // Out of order and repeated, as with retries and with agents that resume.
        for (turns, said) in
            [(1, "one"), (1, "one"), (0, "zero"), (2, "two"), (3, LAST_TEXT), (9, LAST_TEXT)]
        {
            let body = client.post(path(wire), &whole(request(wire, turns))).body;
            assert!(body.contains(&format!("\"{said}\"")), "{wire:?} {turns}: {body}");
        }
    }
}

#[test]
fn side_calls_get_their_text_and_no_turn() {
    let script =
        ModelScript { side_call_text: "a title".into(), ..ModelScript::new([Turn::status(500)]) };
    let server = ModelServer::start([("play", script)]);
    let mut request = request(Wire::Chat, 0);
    request.as_object_mut().unwrap().remove("tools");
    let events = Client::new(&server).post(path(Wire::Chat), &request).events();
    assert_eq!(joined(&events, "/choices/0/delta/content"), "a title");
    assert!(server.requests()[0].is_side_call());
}

#[test]
fn failing_first_counts_requests_for_this_turn_only() {
    let server = play([Turn::fail_first(2, 500, Turn::text("fine")), Turn::text("next")]);
    let statuses = |turns: &[usize]| -> Vec<u16> {
        turns.iter().map(|&turns| ask(&server, Wire::Chat, turns).status).collect()
    };
    assert_eq!(statuses(&[0, 1, 0, 0, 0]), [500, 200, 500, 200, 200]);
}

#[test]
fn turns_that_decide_can_be_nested() {
    let cut = Turn::Drop { rst: false, after_bytes: 0 };
    let server = play([cut.first(1, Turn::quota(3).first(1, Turn::text("fine")).delayed(10))]);
    let mut client = Client::new(&server);
    client.begin_post(path(Wire::Chat), &request(Wire::Chat, 0));
    assert_eq!(client.receive().err().unwrap().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(ask(&server, Wire::Chat, 0).status, 429);
    assert_eq!(ask(&server, Wire::Chat, 0).status, 200);
}

#[test]
fn a_quota_says_when_to_come_back() {
    let server = play([Turn::quota(7)]);
    let response = ask(&server, Wire::Messages, 0);
    assert_eq!(response.status, 429);
    assert!(response.head.contains("retry-after: 7"), "{}", response.head);
    assert_eq!(response.json()["error"]["type"], "rate_limit_error");
}

#[test]
fn a_status_brings_its_own_body_and_headers_or_the_usual_ones() {
    let own = Turn::Status {
        code: 503,
        body: "come back later".into(),
        headers: vec![("x-should-retry".into(), "false".into())],
    };
    let server = play([own, Turn::status(401)]);
    // The stand-in for a broken stream is a request without one; it fails in the same way.
    let request_without_stream = whole(request(Wire::Messages, 0));
    let response = Client::new(&server).post(path(Wire::Messages), &request_without_stream);
    assert_eq!((response.status, response.body.as_str()), (503, "come back later"));
    assert!(response.head.contains("x-should-retry: false"), "{}", response.head);
    let response = ask(&server, Wire::Messages, 1);
    assert_eq!((response.status, &response.json()["type"]), (401, &json!("error")));
}

/// Asks without waiting for the answer.
fn begin(server: &ModelServer, request: &Value) -> Client {
    let mut client = Client::new(server);
    client.begin_post(path(Wire::Chat), request);
    client
}

/// Checks that nothing more comes.
#[track_caller]
fn assert_silent(mut client: Client) {
    client.stream.set_read_timeout(Some(SILENCE)).expect("a timeout");
    let ended = client.read_more().map_err(|error| error.kind());
    assert_eq!(ended, Err(ErrorKind::WouldBlock), "{:?}", String::from_utf8(client.received));
}

#[test]
fn a_hanging_turn_keeps_the_client_waiting() {
    let server = play([Turn::Hang { comments: false }, Turn::Hang { comments: true }]);
    let mut silent = begin(&server, &request(Wire::Chat, 0));
    assert!(silent.take_until("\r\n\r\n").expect("a head").starts_with("HTTP/1.1 200"));
    assert_silent(silent);
    let mut commented = begin(&server, &request(Wire::Chat, 1));
    let text = |client: &Client| String::from_utf8(client.received.clone()).expect("text");
    while text(&commented).matches("\n: ").count() < 2 {
        commented.read_more().expect("a comment");
    }
    assert!(!text(&commented).contains("data:"), "{}", text(&commented));
    let nothing = begin(&server, &whole(request(Wire::Chat, 1)));
    wait_until("the third request", || server.requests().len() == 3);
    assert_silent(nothing);
}

#[test]
fn the_server_stops_while_a_client_waits() {
    let server = play([Turn::Hang { comments: false }]);
    let mut client = Client::new(&server);
    client.begin_post(path(Wire::Chat), &request(Wire::Chat, 0));
    client.take_until("\r\n\r\n").unwrap();
    drop(server);
    assert!(client.read_more().is_err());
}

#[test]
fn a_dropped_stream_ends_amid_its_events() {
    let turn = |rst| Turn::Drop { rst, after_bytes: 300 };
    let server = play([turn(false), turn(true)]);
    for wire in [Wire::Messages, Wire::Chat, Wire::Responses] {
        for (turns, end) in [(0, ErrorKind::UnexpectedEof), (1, ErrorKind::ConnectionReset)] {
            let mut client = Client::new(&server);
            client.begin_post(path(wire), &request(wire, turns));
            let mut ended = client.read_more();
            while ended.is_ok() {
                ended = client.read_more();
            }
            assert_eq!(ended.unwrap_err().kind(), end, "{wire:?}");
            let text = String::from_utf8(client.received).unwrap();
            // A reset may overtake what was sent before it.
            if end == ErrorKind::UnexpectedEof {
                assert!(text.len() == 300 && text.contains("data: "), "{wire:?}: {text}");
            }
        }
    }
}

#[test]
fn a_delayed_turn_comes_late() {
    let server = play([Turn::text("late").delayed(300)]);
    let begin = Instant::now();
    assert_eq!(ask(&server, Wire::Chat, 0).status, 200);
    assert!(begin.elapsed() >= Duration::from_millis(300), "{:?}", begin.elapsed());
}

#[test]
fn a_connection_stays_for_requests_of_every_kind() {
    let server = play([Turn::text("zero")]);
    let mut client = Client::new(&server);
    client.send("HEAD", "/s/play", "", b"");
    assert_eq!(client.receive().unwrap().status, 200);
    client.send("GET", "/s/play/v1/models?client_version=1", "", b"");
    assert_eq!(client.receive().unwrap().json()["data"][0]["id"], "scripted");
    let count = client.post("/s/play/v1/messages/count_tokens", &json!({ "messages": [] }));
    assert_eq!(count.json()["input_tokens"], 100);
    assert_eq!(client.post(path(Wire::Chat), &request(Wire::Chat, 0)).status, 200);
    let body = request(Wire::Chat, 0).to_string();
    let (first, second) = body.split_at(20);
    let [a, b] = [first, second].map(|part| format!("{:x}\r\n{part}\r\n", part.len()));
    let chunked = format!("{a}{b}0\r\n\r\n");
    client.send("POST", path(Wire::Chat), "Transfer-Encoding: chunked\r\n", chunked.as_bytes());
    assert_eq!(client.receive().unwrap().status, 200);
    assert_eq!(server.requests().last().unwrap().raw_body, body);
    client.send("GET", "/s/play/v1/models", "Connection: close\r\n", b"");
    assert_eq!(client.receive().unwrap().status, 200);
    assert_eq!(client.read_more().unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn what_is_not_served_is_not_found() {
    let server = play([]);
    let mut client = Client::new(&server);
    assert_eq!(client.post("/s/play/v1/embeddings", &json!({})).status, 404);
    let missing = client.post("/s/other/v1/chat/completions", &request(Wire::Chat, 0));
    assert_eq!(missing.status, 404);
    assert!(missing.body.contains("other"), "{}", missing.body);
    client.send("POST", path(Wire::Chat), "Content-Length: 3\r\n", b"{ 1");
    assert_eq!(client.receive().unwrap().status, 400);
}

#[test]
fn the_log_tells_what_arrived() {
    let server = play([]);
    for (wire, model) in
        [(Wire::Messages, "claude-x"), (Wire::Chat, "scripted"), (Wire::Responses, "gpt-x")]
    {
        ask(&server, wire, 2);
        let log = server.requests().pop().unwrap();
        let (path, _) = path(wire).split_once('?').unwrap_or((path(wire), ""));
        let expected = RequestLog {
            method: "POST".into(),
            path: path.into(),
            script: "play".into(),
            wire,
            model: Some(model.into()),
            turn: Some(2),
            auth: Some("key-of-the-run".into()),
            auth_header: Some("x-api-key".into()),
            effort: Some("high".into()),
            last_tool_result: Some("result 1".into()),
            stream: true,
            raw_body: request(wire, 2).to_string(),
            ..log.clone()
        };
        assert_eq!(log, expected);
    }
    let tools: Vec<_> = server.requests().into_iter().map(|log| log.tools.join(" ")).collect();
    let expected = [
        "Bash mcp__probe__echo_upper",
        "bash probe_echo_upper",
        "exec_command mcp__probe__echo_upper",
    ];
    assert_eq!(tools, expected);
}

#[test]
fn the_key_is_logged_as_it_came() {
    let server = play([]);
    let mut client = Client::new(&server);
    client.send("GET", "/s/play/v1/models", "Authorization: Bearer sk-1\r\n", b"");
    client.receive().unwrap();
    let log = server.requests().pop().unwrap();
    assert_eq!(log.auth.as_deref(), Some("Bearer sk-1"));
    assert_eq!(log.auth_header.as_deref(), Some("authorization"));
    assert_eq!((log.wire, log.turn), (Wire::Other, None));
}

#[test]
fn usage_is_told_in_the_terms_of_each_api() {
    let usage = Usage { input: 10, cached: 200, cache_written: 3000, output: 4 };
    let script = ModelScript::new([]).with_usage(usage);
    let server = ModelServer::start([("play", script)]);
    let usage = |wire| {
        let answer = Client::new(&server).post(path(wire), &whole(request(wire, 0)));
        answer.json()["usage"].clone()
    };
    let messages = usage(Wire::Messages);
    assert_eq!(
        (&messages["input_tokens"], &messages["cache_read_input_tokens"]),
        (&json!(10), &json!(200))
    );
    let chat = usage(Wire::Chat);
    assert_eq!((&chat["prompt_tokens"], &chat["completion_tokens"]), (&json!(3210), &json!(4)));
    let responses = usage(Wire::Responses);
    assert_eq!(responses["input_tokens"], 3210);
    assert_eq!(responses["input_tokens_details"]["cached_tokens"], 200);
}

#[test]
fn scripts_have_base_urls_of_their_own() {
    let script = |text: &str| ModelScript::new([Turn::text(text)]);
    let server = ModelServer::start([("a", script("from a")), ("b", script("from b"))]);
    assert_eq!(server.base_url("a"), format!("http://{}/s/a", server.addr()));
    let mut client = Client::new(&server);
    let mut say = |name: &str| {
        client.post(&format!("/s/{name}/v1/chat/completions"), &whole(request(Wire::Chat, 0))).body
    };
    assert!(say("a").contains("from a"));
    assert!(say("b").contains("from b"));
}
