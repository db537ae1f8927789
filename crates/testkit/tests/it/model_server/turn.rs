//! The turns of a script, what goes wrong in them on purpose, and what the server remembers.

use super::*;

/// Time for which a server that must stay silent is observed.
const SILENCE: Duration = Duration::from_millis(700);

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
