//! Model servers that differ from the vendors' own: clouds, addresses with a version, and logins.

use egress::model_route::{AuthStyle, Dialect, Upstream};
use egress::{KeySource, ModelRouteSpec};

use crate::model::{DUMMY, key_file, policy, post};
use crate::server::{Piece, Seen, Server, whole};
use crate::world::{World, header};

fn spec(server: &Server, path: &str, auth: AuthStyle, key: KeySource) -> ModelRouteSpec {
    let upstream = Upstream::parse(&format!("http://{}{path}", server.address)).unwrap();
    let drops_version = upstream.has_version();
    ModelRouteSpec { drops_version, ..ModelRouteSpec::new(upstream, auth, key, DUMMY) }
}

fn ok(_: &Seen) -> Vec<Piece> {
    let body = r#"{"model":"m","usage":{"input_tokens":3,"output_tokens":4}}"#;
    whole("200 OK", "application/json", &[], body)
}

fn line(seen: &Seen) -> &str {
    seen.head.lines().next().unwrap()
}

#[tokio::test]
async fn an_address_with_a_version_gets_no_second_one() {
    let server = Server::start(ok).await;
    let spec = spec(&server, "/openai/v1", AuthStyle::ApiKey, KeySource::None);
    let world = World::start_with(policy(&server), Some(spec)).await;
    for path in ["/v1/chat/completions", "/chat/completions", "/v1/responses"] {
        assert_eq!(post(&world, path, DUMMY, "{}").await.status, 200, "{path}");
    }
    let lines: Vec<_> = server.seen().iter().map(|seen| line(seen).to_owned()).collect();
    assert_eq!(
        lines,
        [
            "POST /openai/v1/chat/completions HTTP/1.1",
            "POST /openai/v1/chat/completions HTTP/1.1",
            "POST /openai/v1/responses HTTP/1.1",
        ]
    );
}

#[tokio::test]
async fn a_call_to_vertex_has_its_model_in_the_path_and_the_token_of_the_host() {
    let server = Server::start(ok).await;
    let (_dir, key) = key_file("ya29.token-of-the-host");
    let base = "/v1/projects/p/locations/eu/publishers/anthropic";
    let spec = ModelRouteSpec {
        dialect: Dialect::Vertex,
        model: Some("claude-x@20260101".to_owned()),
        ..spec(&server, base, AuthStyle::Bearer, KeySource::File(key))
    };
    let world = World::start_with(policy(&server), Some(spec)).await;
    let body = r#"{"model":"claude-x","max_tokens":5,"stream":true}"#;
    assert_eq!(post(&world, "/v1/messages", DUMMY, body).await.status, 200);
    let seen = &server.seen()[0];
    assert_eq!(
        line(seen),
        format!("POST {base}/models/claude-x@20260101:streamRawPredict HTTP/1.1")
    );
    assert_eq!(
        seen.body,
        r#"{"anthropic_version":"vertex-2023-10-16","max_tokens":5,"stream":true}"#
    );
    assert_eq!(header(&seen.head, "authorization"), Some("Bearer ya29.token-of-the-host"));
    // Calls beside those that generate have no form there.
    assert_eq!(post(&world, "/v1/messages/count_tokens", DUMMY, body).await.status, 403);
    let (report, _) = world.finish().await;
    assert_eq!((report.usage.input, report.usage.output), (3, 4));
}

#[tokio::test]
async fn a_stream_of_bedrock_reaches_the_box_as_events_and_is_counted() {
    let frame = |payload: &str| {
        let length = char::from(u8::try_from(16 + payload.len()).unwrap());
        format!("\0\0\0{length}\0\0\0\0\0\0\0\0{payload}\0\0\0\0")
    };
    // {"type":"message_delta","usage":{"output_tokens":7}} and {"type":"ping"}
    let frames = [
        frame(r#"{"bytes":"eyJ0eXBlIjoicGluZyJ9"}"#),
        frame(
            r#"{"bytes":"eyJ0eXBlIjoibWVzc2FnZV9kZWx0YSIsInVzYWdlIjp7Im91dHB1dF90b2tlbnMiOjd9fQ=="}"#,
        ),
    ]
    .concat();
    let answer =
        move |_: &Seen| whole("200 OK", "application/vnd.amazon.eventstream", &[], &frames);
    let server = Server::start(answer).await;
    let spec = ModelRouteSpec {
        dialect: Dialect::Bedrock,
        model: Some("eu.anthropic.claude-x-v1:0".to_owned()),
        ..spec(&server, "", AuthStyle::Bearer, KeySource::None)
    };
    let world = World::start_with(policy(&server), Some(spec)).await;
    let body = r#"{"model":"claude-x","stream":true}"#;
    let got = post(&world, "/v1/messages", DUMMY, body).await;
    assert_eq!((got.status, header(&got.head, "content-type")), (200, Some("text/event-stream")));
    assert!(got.body.contains("event: ping\ndata: {\"type\":\"ping\"}\n\n"), "{got:?}");
    assert!(got.body.contains("event: message_delta\n"), "{got:?}");
    let seen = &server.seen()[0];
    let path = "/model/eu.anthropic.claude-x-v1%3A0/invoke-with-response-stream";
    assert_eq!(line(seen), format!("POST {path} HTTP/1.1"));
    assert_eq!(seen.body, r#"{"anthropic_version":"bedrock-2023-05-31"}"#);
    let (report, _) = world.finish().await;
    assert_eq!(report.usage.output, 7);
}

#[tokio::test]
async fn a_login_is_shown_to_the_server_and_masked_in_its_answers() {
    let token = "sk-ant-oat01-token-of-the-login";
    let echo = move |seen: &Seen| {
        let shown = header(&seen.head, "authorization").unwrap().to_owned();
        whole("200 OK", "application/json", &[], &format!(r#"{{"model":"m","echo":"{shown}"}}"#))
    };
    let server = Server::start(echo).await;
    let (_dir, path) = key_file(&format!(r#"{{"claudeAiOauth":{{"accessToken":"{token}"}}}}"#));
    let pointer = "/claudeAiOauth/accessToken".to_owned();
    let key = KeySource::Login { path, pointer, account: None };
    let spec = spec(&server, "", AuthStyle::ClaudeLogin, key);
    let world = World::start_with(policy(&server), Some(spec)).await;
    let got = post(&world, "/v1/messages", DUMMY, "{}").await;
    assert_eq!(got.status, 200, "{got:?}");
    let seen = &server.seen()[0];
    assert_eq!(header(&seen.head, "authorization"), Some(format!("Bearer {token}").as_str()));
    assert_eq!(header(&seen.head, "anthropic-beta"), Some("oauth-2025-04-20"));
    assert_eq!(header(&seen.head, "x-api-key"), None);
    assert!(!got.body.contains(token), "{got:?}");
}
