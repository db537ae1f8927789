//! The way to the model as a box sees it: a dummy key inside, the real one outside, few paths, caps, and answers that
//! are passed on as they come.

use std::io::Write;

use egress::model_route::{AuthStyle, Caps, KeySource, ModelRouteSpec, Upstream};
use egress::policy::EgressProfile;
use egress::record::{EgressVerdict, TrafficKind};
use testkit::model_server::{ModelScript, ModelServer, Turn};

use crate::outing::{Back, Outing};
use crate::server::{Server, chunk, stream_head, wait_until};
use crate::support::{Rig, eventually, on_every_backend};

on_every_backend! {
    the_dummy_key_opens_the_way,
    a_forged_key_is_replaced,
    a_key_goes_where_the_server_looks_for_it,
    a_wrong_key_is_refused,
    another_path_is_refused,
    another_host_is_refused,
    the_server_has_no_other_door,
    the_way_through_the_proxy_to_itself,
    profile_none_has_no_model,
    a_call_that_is_too_large_is_refused,
    tokens_end_at_their_cap,
    parallel_calls_end_at_the_cap_of_tokens,
    calls_end_at_their_cap,
    a_server_that_asks_to_wait_is_heard,
    a_server_that_no_longer_asks_to_wait_is_heard_too,
    an_answer_is_passed_on_as_it_comes,
    a_server_that_dies_in_mid_answer_is_survived,
}

/// The variable by which the shim gets the key.
pub(crate) const KEY_VARIABLE: &str = "NET_TEST_MODEL_KEY";

/// What the box has for a key.
pub(crate) const DUMMY: &str = "dummy-of-this-box";

/// The key that no box may see.
const REAL: &str = "real-key-of-the-host";

/// A question in the language of chats, with a tool so that it counts as one of the conversation.
const QUESTION: &str = r#"{"model":"scripted","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"bash","parameters":{}}}]}"#;

/// Asks the model with a key; the question is the first argument.
pub(crate) const ASK: &str = r#"
    sub model { my ($key, $path, @headers) = @_;
        post("/-/model$path", $ARGV[0], "authorization: Bearer $key", "content-type: application/json", @headers) }
    my $chat = "/v1/chat/completions";
"#;

pub(crate) fn route(base_url: &str) -> ModelRouteSpec {
    let upstream = Upstream::parse(base_url).expect("an address");
    let key = KeySource::Env(KEY_VARIABLE.to_owned());
    ModelRouteSpec::new(upstream, AuthStyle::Bearer, key, DUMMY)
}

/// A box that may ask a model with the helper of [`ASK`], and nobody else.
pub(crate) fn asking<'a>(
    rig: &'a Rig,
    spec: ModelRouteSpec,
    script: &str,
    key: &str,
) -> Outing<'a> {
    let outing = Outing::perl_with(rig, &format!("{ASK}{script}"), &[QUESTION]);
    outing.model(spec, Some((KEY_VARIABLE, key)))
}

fn says(text: &str) -> ModelServer {
    plays([Turn::text(text)])
}

fn plays(turns: impl IntoIterator<Item = Turn>) -> ModelServer {
    ModelServer::start([("run", ModelScript::new(turns))])
}

async fn run(rig: &Rig, server: &ModelServer, script: &str) -> Back {
    asking(rig, route(&server.base_url("run")), script, REAL).run_ok().await
}

/// Expects a refusal in the form that every client of a model understands.
fn check_refused(answer: (u16, &str), reason: &str) {
    let (status, text) = answer;
    assert_eq!(status, 403, "{text}");
    let body: serde_json::Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(
        (&body["type"], &body["error"]["type"]),
        (&"error".into(), &reason.into()),
        "{text}"
    );
    let message = body["error"]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("blocked: "), "{message}");
}

async fn the_dummy_key_opens_the_way(rig: &Rig) {
    let server = says("good morning");
    let script = r#"
        show(model("dummy-of-this-box", $chat));
        my $socket = dial();
        put($socket, request("GET", "/-/model/v1/models", "", "x-api-key: dummy-of-this-box"));
        show(answer($socket));
        put($socket, request("HEAD", "/-/model", ""));
        show((head($socket))[0], "");
    "#;
    let back = run(rig, &server, script).await;
    let answers = back.answers();
    assert!(answers[0].0 == 200 && answers[0].1.contains("good morning"), "{answers:?}");
    assert_eq!((answers[1].0, answers[2].0), (200, 200), "{answers:?}");
    let asked = server.requests();
    assert_eq!(asked[0].path, "/s/run/v1/chat/completions");
    let bearer = format!("Bearer {REAL}");
    assert!(asked.iter().all(|request| request.auth.as_deref() == Some(&bearer)), "{asked:?}");
    let usage = back.usage();
    assert_eq!((usage.requests, usage.input, usage.output), (3, 100, 20));
    assert!(back.log.iter().all(|entry| entry.kind == TrafficKind::Model), "{back:#?}");
}

async fn a_forged_key_is_replaced(rig: &Rig) {
    let server = says("hello");
    let script = r#"
        show(model("dummy-of-this-box", $chat, "x-api-key: forged-1", "api-key: forged-2", "cookie: forged=3",
            "openai-organization: forged-4", "proxy-authorization: Basic forged-5", "x-goog-api-key: forged-6"));
        show(post("/-/model$chat", $ARGV[0], "authorization: Bearer forged-7", "x-api-key: dummy-of-this-box"));
    "#;
    let back = run(rig, &server, script).await;
    assert_eq!(back.answers().iter().map(|(status, _)| *status).collect::<Vec<_>>(), [200, 200]);
    for request in server.requests() {
        assert_eq!(request.auth.as_deref(), Some(format!("Bearer {REAL}").as_str()));
        let foreign = |value: &str| value.contains("forged") || value.contains(DUMMY);
        assert!(!request.headers.iter().any(|(_, value)| foreign(value)), "{:?}", request.headers);
    }
}

async fn a_key_goes_where_the_server_looks_for_it(rig: &Rig) {
    let server = says("hello");
    let spec = ModelRouteSpec { auth: AuthStyle::XApiKey, ..route(&server.base_url("run")) };
    let script = r#"show(model("dummy-of-this-box", $chat))"#;
    asking(rig, spec, script, REAL).run_ok().await;
    let asked = server.requests();
    let header = |name: &str| asked[0].headers.iter().find(|(own, _)| own == name);
    assert_eq!(header("x-api-key").map(|(_, value)| value.as_str()), Some(REAL));
    assert_eq!(header("authorization"), None);
}

async fn a_wrong_key_is_refused(rig: &Rig) {
    let server = says("hello");
    let script = r#"
        show(model($_, $chat)) for "", "wrong", "dummy-of-this-bo", "dummy-of-this-box2";
        show(post("/-/model$chat", $ARGV[0]));
        show(post("/-/model$chat", $ARGV[0], "cookie: key=dummy-of-this-box"));
    "#;
    let back = run(rig, &server, script).await;
    assert_eq!(back.answers().len(), 6);
    back.answers().into_iter().for_each(|answer| check_refused(answer, "model_key"));
    assert_eq!(back.denied("127.0.0.1", "model_key"), 6);
    assert!(server.requests().is_empty());
    assert_eq!(back.usage().requests, 0);
}

async fn another_path_is_refused(rig: &Rig) {
    let server = says("hello");
    let script = r#"
        show(model("dummy-of-this-box", $_)) for "/v1/files", "/v1/embeddings", "/v1/fine_tuning/jobs", "/admin",
            "/v1/chat/completions/../../admin", "/v1/chat%2fcompletions", "/v1//chat/completions", "/v2/responses", "";
        my $socket = dial();
        put($socket, request("DELETE", "/-/model/v1/models/x", "", "x-api-key: dummy-of-this-box"));
        show(answer($socket));
        show(get("/-/model/v1/models/../../admin", "x-api-key: dummy-of-this-box"));
    "#;
    let back = run(rig, &server, script).await;
    assert_eq!(back.answers().len(), 11);
    back.answers().into_iter().for_each(|answer| check_refused(answer, "model_path"));
    assert_eq!(back.denied("127.0.0.1", "model_path"), 11);
    assert!(server.requests().is_empty(), "{:?}", server.requests());
}

/// The route leads to one server, whatever address or header a box sends.
async fn another_host_is_refused(rig: &Rig) {
    let server = says("hello");
    let script = r#"
        show(get("http://other.example/-/model/v1/models", "x-api-key: dummy-of-this-box"));
        show(get("http://169.254.169.254/-/model/v1/models", "x-api-key: dummy-of-this-box"));
        show(model("dummy-of-this-box", "/http://other.example$chat"));
        show(model("dummy-of-this-box", "//other.example$chat"));
        show(model("dummy-of-this-box", "\@other.example$chat"));
        show(get("/-/model/v1/models", "x-api-key: dummy-of-this-box", "x-forwarded-host: other.example"));
    "#;
    let back = run(rig, &server, script).await;
    let statuses: Vec<u16> = back.answers().iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [403, 403, 403, 403, 403, 200], "{back:#?}");
    assert_eq!(back.denied("other.example", "not_allowed"), 1);
    assert_eq!(back.denied("169.254.169.254", "ip_literal"), 1);
    let asked = server.requests();
    assert_eq!(asked.len(), 1);
    let host =
        asked[0].headers.iter().find(|(name, _)| name == "host").map(|(_, value)| value.clone());
    assert_eq!(host, Some(server.addr().to_string()));
}

/// That the shim may reach the model does not mean that a box may.
async fn the_server_has_no_other_door(rig: &Rig) {
    let server = says("hello");
    let script = r#"
        tunnel("$_:$ARGV[1]") and print "200 a tunnel\n" for "localhost", "127.0.0.1";
        show(get("http://$_:$ARGV[1]/s/run/v1/models")) for "localhost", "127.0.0.1";
    "#;
    let port = server.addr().port().to_string();
    let outing = Outing::perl_with(rig, &format!("{ASK}{script}"), &[QUESTION, &port]);
    let outing = outing.model(route(&server.base_url("run")), Some((KEY_VARIABLE, REAL)));
    let back = outing.run_ok().await;
    assert!(back.answers().iter().all(|(status, _)| *status == 403), "{back:#?}");
    assert_eq!(back.reasons(), ["not_allowed", "ip_literal", "not_allowed", "ip_literal"]);
    assert!(server.requests().is_empty());
}

/// Some clients ask the proxy for the proxy.
async fn the_way_through_the_proxy_to_itself(rig: &Rig) {
    let server = says("hello");
    let script = r#"
        show(post("http://$_:3128/-/model$chat", $ARGV[0], "authorization: Bearer dummy-of-this-box"))
            for "127.0.0.1", "localhost";
    "#;
    let back = run(rig, &server, script).await;
    assert!(back.answers().iter().all(|(status, text)| *status == 200 && text.contains("hello")));
    assert_eq!(server.requests().len(), 2);
}

async fn profile_none_has_no_model(rig: &Rig) {
    let server = says("hello");
    let script = r#"show(model("dummy-of-this-box", $chat))"#;
    let outing = asking(rig, route(&server.base_url("run")), script, REAL);
    let back = outing.profile(EgressProfile::None).run_ok().await;
    check_refused(back.answer(), "profile_none");
    assert!(server.requests().is_empty());
}

async fn a_call_that_is_too_large_is_refused(rig: &Rig) {
    let server = says("hello");
    let spec = ModelRouteSpec { max_body_bytes: 10_000, ..route(&server.base_url("run")) };
    let script = r#"
        my $question = $ARGV[0];
        $ARGV[0] = "x" x 20_000;
        show(model("dummy-of-this-box", $chat));
        my $socket = dial();
        put($socket, join("\r\n", "POST /-/model$chat HTTP/1.1", "host: box", "authorization: Bearer dummy-of-this-box",
            "transfer-encoding: chunked", "", ""));
        put($socket, sprintf("%x\r\n%s\r\n", 5000, "x" x 5000)) for 1 .. 4;
        put($socket, "0\r\n\r\n");
        show(answer($socket));
        $ARGV[0] = $question;
        show(model("dummy-of-this-box", $chat));
    "#;
    let back = asking(rig, spec, script, REAL).run_ok().await;
    let answers = back.answers();
    answers[..2].iter().for_each(|answer| check_refused(*answer, "model_body"));
    assert_eq!(answers[2].0, 200, "{answers:?}");
    assert_eq!(back.denied("127.0.0.1", "model_body"), 2);
    assert_eq!(server.requests().len(), 1);
}

/// Each call of the script takes 120 tokens.
async fn capped(rig: &Rig, caps: Caps) -> (Back, usize) {
    let server = says("hello");
    let spec = ModelRouteSpec { caps, ..route(&server.base_url("run")) };
    let script = r#"show(model("dummy-of-this-box", $chat)) for 1 .. 4"#;
    let back = asking(rig, spec, script, REAL).run_ok().await;
    let answers = back.answers();
    assert!(answers[..2].iter().all(|(status, _)| *status == 200), "{answers:?}");
    answers[2..].iter().for_each(|answer| check_refused(*answer, "model_cap"));
    assert_eq!(back.denied("127.0.0.1", "model_cap"), 2);
    (back, server.requests().len())
}

async fn tokens_end_at_their_cap(rig: &Rig) {
    let (back, asked) = capped(rig, Caps { max_tokens: Some(230), ..Caps::default() }).await;
    assert_eq!(asked, 2);
    assert_eq!(back.usage().cap_hit.as_deref(), Some("240 of 230 tokens are used"));
    assert_eq!((back.usage().requests, back.usage().tokens()), (2, 240));
    assert!(back.answers()[2].1.contains("240 of 230 tokens are used"), "{back:#?}");
}

/// Sixty calls at once, of 120 tokens each, of which 20 are the answer.
async fn parallel_calls_end_at_the_cap_of_tokens(rig: &Rig) {
    let server = says("hello");
    let caps = Caps { max_tokens: Some(500), ..Caps::default() };
    let spec = ModelRouteSpec { caps, ..route(&server.base_url("run")) };
    let script = r#"
        my @headers = ("authorization: Bearer dummy-of-this-box", "content-type: application/json");
        my @open = map { my $socket = dial();
            put($socket, request("POST", "/-/model$chat", $ARGV[0], @headers)); $socket } 1 .. 60;
        show((answer($_))[0], "") for @open;
    "#;
    let back = asking(rig, spec, script, REAL).run_ok().await;
    assert!(back.usage().tokens() <= 520 && back.usage().tokens() > 360, "{:?}", back.usage());
    let passed = back.answers().iter().filter(|(status, _)| *status == 200).count();
    assert_eq!((server.requests().len(), back.answers().len()), (passed, 60));
}

async fn calls_end_at_their_cap(rig: &Rig) {
    let (back, asked) = capped(rig, Caps { max_requests: Some(2), ..Caps::default() }).await;
    assert_eq!(asked, 2);
    assert_eq!(back.usage().cap_hit.as_deref(), Some("2 of 2 calls are made"));
}

async fn a_server_that_asks_to_wait_is_heard(rig: &Rig) {
    let server = plays([Turn::quota(900)]);
    let script = r#"
        my ($status, $body, $head) = model("dummy-of-this-box", $chat);
        my ($wait) = $head =~ /^retry-after: *(\d+)/mi;
        print "$status wait $wait\n";
    "#;
    let back = run(rig, &server, script).await;
    assert_eq!(back.answer(), (429, "wait 900"));
    let until = back.usage().waiting_until.expect("a time");
    let secs = until.as_second() - back.record.finished_at.as_second();
    assert!((840..=900).contains(&secs), "{secs}");
    assert_eq!(back.usage().by_status.get(&429), Some(&1));
    let entry = &back.log[0];
    assert_eq!(
        (entry.verdict, entry.status, entry.spend),
        (EgressVerdict::Allowed, Some(429), None)
    );
}

async fn a_server_that_no_longer_asks_to_wait_is_heard_too(rig: &Rig) {
    let server = plays([Turn::quota(900).first(1, Turn::text("hello"))]);
    let script = r#"show(model("dummy-of-this-box", $chat)) for 1, 2"#;
    let back = run(rig, &server, script).await;
    let statuses: Vec<u16> = back.answers().iter().map(|(status, _)| *status).collect();
    assert_eq!((statuses, back.usage().waiting_until), (vec![429, 200], None));
}

/// The second half of the answer is not sent before the first has been seen inside. A proxy that held anything back
/// would wait for ever.
async fn an_answer_is_passed_on_as_it_comes(rig: &Rig) {
    let seen = rig.workspace().join("seen");
    let server = Server::start(move |_, stream| {
        stream.write_all(stream_head())?;
        let start = r#"{"type":"message_start","message":{"model":"m","usage":{"input_tokens":7,"output_tokens":1}}}"#;
        stream.write_all(&chunk(&format!("data: {start}\n\n")))?;
        let in_time = wait_until(|| seen.exists());
        let end = format!(
            r#"{{"type":"message_delta","usage":{{"output_tokens":9}},"in_time":{in_time}}}"#
        );
        stream.write_all(&chunk(&format!("data: {end}\n\n")))?;
        stream.write_all(&chunk(""))
    });
    let script = r#"
        my $socket = dial();
        put($socket, request("POST", "/-/model/v1/messages", $ARGV[0], "x-api-key: dummy-of-this-box"));
        my ($status) = head($socket);
        my $first = chunk($socket);
        print $first =~ /message_start/ ? "$status first\n" : "0 $first\n";
        make("seen");
        my $second = chunk($socket);
        print $second =~ /"in_time":true/ ? "$status second\n" : "0 $second\n";
        print chunk($socket) eq "" ? "$status end\n" : "0 no end\n";
    "#;
    let spec = route(&format!("http://127.0.0.1:{}", server.port()));
    let back = asking(rig, spec, script, REAL).run_ok().await;
    assert_eq!(back.answers(), [(200, "first"), (200, "second"), (200, "end")], "{back:#?}");
    let usage = back.usage();
    assert_eq!((usage.input, usage.output, usage.estimated), (7, 9, 0));
}

/// The box sees the end, is told when it asks again, and goes on; what was used up is estimated.
async fn a_server_that_dies_in_mid_answer_is_survived(rig: &Rig) {
    let server = Server::start(|_, stream| {
        stream.write_all(stream_head())?;
        let start = r#"{"type":"message_start","message":{"model":"m","usage":{"input_tokens":7,"output_tokens":1}}}"#;
        stream.write_all(&chunk(&format!("data: {start}\n\n")))?;
        // Until somebody ends the server.
        wait_until(|| matches!(stream.take_error(), Ok(Some(_))));
        Ok(())
    });
    let script = r#"
        my $socket = dial();
        put($socket, request("POST", "/-/model/v1/messages", $ARGV[0], "x-api-key: dummy-of-this-box"));
        my ($status) = head($socket);
        print "$status ", defined chunk($socket) ? "first" : "nothing", "\n";
        make("seen");
        print "$status ", defined chunk($socket) ? "more" : "broken off", "\n";
        until_there("gone");
        show(model("dummy-of-this-box", "/v1/messages"));
        show(get("http://unlisted.example/"));
    "#;
    let spec = route(&format!("http://127.0.0.1:{}", server.port()));
    let out = asking(rig, spec, script, REAL).start();
    let seen = rig.workspace().join("seen");
    eventually("the first piece", || seen.exists()).await;
    drop(server);
    std::fs::write(rig.workspace().join("gone"), "").expect("a file");
    let back = out.end().await.ok();
    let answers = back.answers();
    assert_eq!(answers[..2], [(200, "first"), (200, "broken off")], "{back:#?}");
    assert_eq!(answers[2].0, 502, "{answers:?}");
    assert!(answers[2].1.contains("could not be reached"), "{answers:?}");
    assert_eq!(answers[3].0, 403, "the proxy goes on");
    assert_eq!(back.reasons(), ["broken_off", "unreachable", "not_allowed"]);
    let usage = back.usage();
    assert_eq!((usage.requests, usage.input, usage.estimated), (2, 7, 1), "{usage:?}");
}
