//! The model route: keys, paths, streams and counting.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use egress::model_route::{AuthStyle, Caps, Price, Prices, Upstream};
use egress::policy::{EgressPolicy, EgressProfile};
use egress::record::TrafficKind;
use egress::{KeySource, ModelRouteSpec};
use rustls::pki_types::PrivatePkcs8KeyDer;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

use crate::server::{Piece, STREAM_HEAD, Seen, Server, chunk, until, whole};
use crate::world::{Got, PATIENCE, World, header};

pub(crate) const DUMMY: &str = "dummy-of-this-run";
const REAL: &str = "sk-the-real-one";

/// A key file, kept as long as the test.
pub(crate) fn key_file(key: &str) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    write_key(&path, key);
    (dir, path)
}

fn write_key(path: &PathBuf, key: &str) {
    fs::write(path, key).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

pub(crate) fn spec(server: &Server, key: PathBuf) -> ModelRouteSpec {
    let upstream = Upstream::parse(&format!("http://{}/base", server.address)).unwrap();
    ModelRouteSpec::new(upstream, AuthStyle::XApiKey, KeySource::File(key), DUMMY)
}

pub(crate) fn policy(server: &Server) -> EgressPolicy {
    let permit_private = vec![server.address];
    EgressPolicy { permit_private, ..EgressPolicy::new(EgressProfile::ModelOnly) }
}

pub(crate) async fn post(world: &World, path: &str, key: &str, body: &str) -> Got {
    let length = body.len();
    let text = format!(
        "POST /-/model{path} HTTP/1.1\r\nhost: 127.0.0.1:3128\r\nx-api-key: {key}\r\n\
         connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    world.raw(text.as_bytes()).await
}

fn ok(_: &Seen) -> Vec<Piece> {
    whole(
        "200 OK",
        "application/json",
        &[],
        r#"{"model":"m","usage":{"input_tokens":1,"output_tokens":1}}"#,
    )
}

#[tokio::test]
async fn the_key_is_exchanged_and_the_box_never_sees_the_real_one() {
    let server = Server::start(ok).await;
    let (_dir, key) = key_file(REAL);
    let world = World::start_with(policy(&server), Some(spec(&server, key))).await;
    let got = world
        .raw(
            format!(
                "POST /-/model/v1/messages?beta=true HTTP/1.1\r\nhost: 127.0.0.1:3128\r\n\
                 authorization: Bearer {DUMMY}\r\nx-api-key: sk-forged\r\ncookie: a=b\r\n\
                 anthropic-version: 2023-06-01\r\naccept-encoding: gzip\r\n\
                 connection: close\r\ncontent-length: 2\r\n\r\n{{}}"
            )
            .as_bytes(),
        )
        .await;
    assert_eq!(got.status, 200, "{got:?}");
    let seen = &server.seen()[0];
    assert!(seen.head.starts_with("POST /base/v1/messages?beta=true HTTP/1.1"), "{}", seen.head);
    assert_eq!(header(&seen.head, "x-api-key"), Some(REAL));
    assert_eq!(header(&seen.head, "host"), Some(server.address.to_string().as_str()));
    assert_eq!(header(&seen.head, "anthropic-version"), Some("2023-06-01"));
    assert_eq!(header(&seen.head, "accept-encoding"), Some("identity"));
    assert_eq!((header(&seen.head, "authorization"), header(&seen.head, "cookie")), (None, None));
    assert_eq!(seen.body, "{}");
    let log_path = world.log_path.clone();
    let log = || fs::read_to_string(&log_path).unwrap();
    until(|| !log().is_empty()).await;
    assert!(!log().contains(REAL) && !log().contains(DUMMY));
    assert!(!format!("{got:?}").contains(REAL));
    let (_, entries) = world.finish().await;
    assert_eq!((entries[0].kind, entries[0].status), (TrafficKind::Model, Some(200)));
}

#[tokio::test]
async fn a_call_without_the_key_of_the_run_is_refused() {
    let server = Server::start(ok).await;
    let (_dir, key) = key_file(REAL);
    let world = World::start_with(policy(&server), Some(spec(&server, key))).await;
    for key in ["", "sk-forged", REAL] {
        let got = post(&world, "/v1/messages", key, "{}").await;
        assert_eq!(got.status, 403);
        assert!(got.body.contains(r#""type":"model_key""#), "{got:?}");
    }
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn only_the_calls_of_the_wire_apis_are_passed_on() {
    let server = Server::start(ok).await;
    let (_dir, key) = key_file(REAL);
    let world = World::start_with(policy(&server), Some(spec(&server, key))).await;
    for path in ["/v1/files", "/v1/organizations/keys", "/v1/messages/batches", "/../v1/messages"] {
        assert_eq!(post(&world, path, DUMMY, "{}").await.status, 403, "{path}");
    }
    let get = format!(
        "GET /-/model/v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {DUMMY}\r\nconnection: close\r\n\r\n"
    );
    assert_eq!(world.raw(get.as_bytes()).await.status, 403);
    assert!(server.seen().is_empty());
    let head = "HEAD /-/model HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    assert_eq!(world.raw(head.as_bytes()).await.status, 200);
    let get = get.replace("messages", "models");
    assert_eq!(world.raw(get.as_bytes()).await.status, 200);
    let (report, entries) = world.finish().await;
    assert!(entries[..5].iter().all(|entry| entry.reason.as_deref() == Some("model_path")));
    assert_eq!(report.usage.requests, 2);
    assert_eq!(report.usage.output, 0);
}

#[tokio::test]
async fn a_call_stays_the_call_that_was_judged() {
    let server = Server::start(ok).await;
    let (_dir, key) = key_file(REAL);
    let world = World::start_with(policy(&server), Some(spec(&server, key))).await;
    let tricks = "x-original-url: /v1/files\r\nX_Rewrite_URL: /v1/files\r\nx-http-method-override: DELETE\r\n\
        forwarded: host=intra.example\r\nx-forwarded-host: intra.example\r\nx-forwarded-proto: http\r\n";
    let ask = |path: &str| {
        format!(
            "GET /-/model{path} HTTP/1.1\r\nhost: x\r\nx-api-key: {DUMMY}\r\n{tricks}\
             connection: close\r\n\r\n"
        )
    };
    assert_eq!(world.raw(ask("/v1/models/m-1").as_bytes()).await.status, 200);
    let head = server.seen()[0].head.to_ascii_lowercase();
    for word in ["url", "override", "forwarded", "intra.example", "/v1/files"] {
        assert!(!head.contains(word), "{head}");
    }
    for name in ["..", ".", "%2e%2e", ".%2e", "%2e%2e%2f", "..%2ffiles", "../files", "..;"] {
        let got = world.raw(ask(&format!("/v1/models/{name}")).as_bytes()).await;
        assert!(got.status == 403 && got.body.contains("model_path"), "{name}: {got:?}");
    }
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn no_other_host_and_no_private_server_by_accident() {
    let server = Server::start(ok).await;
    let (_dir, key) = key_file(REAL);
    let world = World::start_with(policy(&server), Some(spec(&server, key.clone()))).await;
    // The address of the model's server is for the route and not for the box.
    let got = world.get(&format!("http://{}/base/v1/models", server.address)).await;
    assert_eq!(got.status, 403);
    assert!(world.connect(&server.address.to_string()).await.is_err());
    world.finish().await;
    let policy = EgressPolicy::new(EgressProfile::ModelOnly);
    let world = World::start_with(policy, Some(spec(&server, key.clone()))).await;
    let got = post(&world, "/v1/messages", DUMMY, "{}").await;
    assert!(got.status == 403 && got.body.contains("not_public"), "{got:?}");
    let (report, _) = world.finish().await;
    assert_eq!(report.usage.input, 0);
    let world =
        World::start_with(EgressPolicy::new(EgressProfile::None), Some(spec(&server, key))).await;
    assert_eq!(post(&world, "/v1/messages", DUMMY, "{}").await.status, 403);
    let world = World::start(EgressPolicy::new(EgressProfile::ModelOnly)).await;
    assert!(post(&world, "/v1/messages", DUMMY, "{}").await.body.contains("no_model"));
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_chunk_passes_before_the_next_one_is_sent() {
    let go_on = Arc::new(Notify::new());
    let wait = Arc::clone(&go_on);
    let server = Server::start(move |_| {
        let start = r#"data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":10,"output_tokens":1}}}"#;
        let end = r#"data: {"type":"message_delta","usage":{"output_tokens":5}}"#;
        vec![
            Piece::Text(STREAM_HEAD.to_owned()),
            chunk(&format!("event: message_start\n{start}\n\n")),
            Piece::Wait(Arc::clone(&wait)),
            chunk(&format!("event: message_delta\n{end}\n\n")),
            Piece::Text("0\r\n\r\n".to_owned()),
        ]
    })
    .await;
    let (_dir, key) = key_file(REAL);
    let world = World::start_with(policy(&server), Some(spec(&server, key))).await;
    let mut stream = world.dial().await;
    let ask = format!(
        "POST /-/model/v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {DUMMY}\r\n\
         connection: close\r\ncontent-length: 2\r\n\r\n{{}}"
    );
    stream.write_all(ask.as_bytes()).await.unwrap();
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.contains("message_start\"") {
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut buffer));
        let read = read.await.unwrap().unwrap();
        text += &String::from_utf8_lossy(&buffer[..read]);
    }
    assert!(!text.contains("message_delta"));
    go_on.notify_one();
    stream.read_to_string(&mut text).await.unwrap();
    assert!(text.contains("message_delta"));
    let (report, _) = world.finish().await;
    assert_eq!((report.usage.input, report.usage.output, report.usage.estimated), (10, 5, 0));
}

/// A response of the server, the counted usage and its cost.
async fn check_usage(path: &str, kind: &'static str, body: &'static str, expected: [u64; 4]) {
    let server = Server::start(move |_| whole("200 OK", kind, &[], body)).await;
    let (_dir, key) = key_file(REAL);
    let mut spec = spec(&server, key);
    let price = Price { input: 1.0, output: 10.0, cache_read: 0.1, cache_write: 2.0 };
    spec.prices = Prices([("m".to_owned(), price)].into());
    let world = World::start_with(policy(&server), Some(spec)).await;
    let got = post(&world, path, DUMMY, "{}").await;
    assert_eq!(got.body, body, "nothing may be changed");
    let (report, entries) = world.finish().await;
    let usage = report.usage;
    let counts = [usage.input, usage.output, usage.cache_read, usage.cache_write];
    assert_eq!((counts, usage.estimated, usage.requests), (expected, 0, 1), "{path}");
    let [input, output, read, write] = expected.map(|count| count as f64);
    let usd = (input + output * 10.0 + read * 0.1 + write * 2.0) / 1e6;
    assert!((usage.usd - usd).abs() < 1e-12, "{} {usd}", usage.usd);
    assert_eq!(entries[0].spend.unwrap().tokens.output, expected[1]);
}

#[tokio::test]
async fn the_three_wire_apis_are_counted_as_streams_and_as_documents() {
    let (json, events) = ("application/json", "text/event-stream; charset=utf-8");
    let body = r#"{"model":"m","usage":{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":3,"cache_creation_input_tokens":4}}"#;
    check_usage("/v1/messages", json, body, [1, 2, 3, 4]).await;
    let body = "data: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":5,\"cache_read_input_tokens\":6,\"output_tokens\":1}}}\n\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":7}}\n\n";
    check_usage("/v1/messages", events, body, [5, 7, 6, 0]).await;
    let body = r#"{"model":"m","usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}"#;
    check_usage("/v1/chat/completions", json, body, [6, 2, 4, 0]).await;
    let body = "data: {\"model\":\"m\",\"choices\":[]}\n\ndata: {\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":8,\"completion_tokens\":9}}\n\ndata: [DONE]\n\n";
    check_usage("/v1/chat/completions", events, body, [8, 9, 0, 0]).await;
    let body = r#"{"model":"m","usage":{"input_tokens":10,"output_tokens":3,"input_tokens_details":{"cached_tokens":9}}}"#;
    check_usage("/v1/responses", json, body, [1, 3, 9, 0]).await;
    let body = "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"model\":\"m\",\"usage\":{\"input_tokens\":11,\"output_tokens\":12}}}\n\n";
    check_usage("/v1/responses", events, body, [11, 12, 0, 0]).await;
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_paid_for_by_estimate() {
    let server = Server::start(|_| {
        let start = r#"data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":10,"output_tokens":1}}}"#;
        vec![Piece::Text(STREAM_HEAD.to_owned()), chunk(&format!("{start}\n\n")), Piece::Drop]
    })
    .await;
    let (_dir, key) = key_file(REAL);
    let world = World::start_with(policy(&server), Some(spec(&server, key))).await;
    post(&world, "/v1/messages", DUMMY, "{}").await;
    let (report, entries) = world.finish().await;
    assert_eq!((report.usage.input, report.usage.estimated), (10, 1));
    assert_eq!(entries[0].reason.as_deref(), Some("broken_off"));
}

#[tokio::test]
async fn a_cap_stops_the_next_call_and_is_remembered() {
    let server = Server::start(ok).await;
    let price = Price { input: 1.0, output: 1.0, cache_read: 0.0, cache_write: 0.0 };
    let caps = [
        (Caps { max_requests: Some(2), ..Caps::default() }, "2 of 2 calls are made"),
        (Caps { max_tokens: Some(4), ..Caps::default() }, "4 of 4 tokens are used"),
        (Caps { max_usd: Some(0.000_004), ..Caps::default() }, "dollars are spent"),
    ];
    for (caps, words) in caps {
        let (_dir, key) = key_file(REAL);
        let mut spec = spec(&server, key);
        spec.caps = caps;
        spec.prices = Prices([("m".to_owned(), price)].into());
        let world = World::start_with(policy(&server), Some(spec)).await;
        for _ in 0..2 {
            assert_eq!(post(&world, "/v1/messages", DUMMY, "{}").await.status, 200);
        }
        let got = post(&world, "/v1/messages", DUMMY, "{}").await;
        assert!(got.status == 403 && got.body.contains(words), "{got:?}");
        let (report, entries) = world.finish().await;
        assert!(report.usage.cap_hit.unwrap().contains(words));
        assert_eq!((report.usage.requests, entries[2].reason.as_deref()), (2, Some("model_cap")));
    }
}

#[tokio::test]
async fn what_was_spent_stays_spent_when_the_supervisor_is_started_again() {
    let server = Server::start(ok).await;
    let (_dir, key) = key_file(REAL);
    let mut spec = spec(&server, key);
    spec.caps.max_tokens = Some(2);
    let world = World::start_with(policy(&server), Some(spec.clone())).await;
    assert_eq!(post(&world, "/v1/messages", DUMMY, "{}").await.status, 200);
    let world = world.restart(policy(&server), Some(spec)).await;
    assert_eq!(post(&world, "/v1/messages", DUMMY, "{}").await.status, 403);
    let (report, entries) = world.finish().await;
    assert_eq!((report.usage.requests, report.usage.tokens(), entries.len()), (1, 2, 2));
    assert!(report.summary.complete);
}

#[tokio::test]
async fn a_client_that_goes_away_before_the_answer_has_still_spent() {
    let server = Server::start(|_| vec![Piece::Wait(Arc::new(Notify::new()))]).await;
    let (_dir, key) = key_file(REAL);
    let world = World::start_with(policy(&server), Some(spec(&server, key))).await;
    let mut stream = world.dial().await;
    let body = "a".repeat(4000);
    let ask = format!(
        "POST /-/model/v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {DUMMY}\r\n\
         content-length: 4000\r\n\r\n{body}"
    );
    stream.write_all(ask.as_bytes()).await.unwrap();
    until(|| server.seen().len() == 1).await;
    drop(stream);
    until(|| world.state.usage().estimated == 1).await;
    assert!(world.state.usage().input >= 1000);
}

#[tokio::test]
async fn a_call_that_is_too_large_is_refused() {
    let server = Server::start(ok).await;
    let (_dir, key) = key_file(REAL);
    let mut spec = spec(&server, key);
    spec.max_body_bytes = 1000;
    let world = World::start_with(policy(&server), Some(spec)).await;
    let got = post(&world, "/v1/messages", DUMMY, &"a".repeat(1001)).await;
    assert!(got.status == 403 && got.body.contains("model_body"), "{got:?}");
    let piece = "a".repeat(0x400);
    let text = format!(
        "POST /-/model/v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {DUMMY}\r\nconnection: close\r\n\
         transfer-encoding: chunked\r\n\r\n400\r\n{piece}\r\n0\r\n\r\n"
    );
    let got = world.raw(text.as_bytes()).await;
    assert!(got.status == 403 && got.body.contains("model_body"), "{got:?}");
    assert!(server.seen().is_empty());
    assert_eq!(world.finish().await.0.usage.input, 0);
}

#[tokio::test]
async fn a_key_that_expired_is_fetched_once_and_the_call_made_again() {
    let server = Server::start(|seen| match header(&seen.head, "x-api-key") {
        Some("fresh") => ok(seen),
        _ => whole("401 Unauthorized", "application/json", &[], "{}"),
    })
    .await;
    let (_dir, path) = key_file("stale");
    let world = World::start_with(policy(&server), Some(spec(&server, path.clone()))).await;
    assert_eq!(post(&world, "/v1/messages", DUMMY, "{\"a\":1}").await.status, 401);
    assert_eq!(server.seen().len(), 1, "the same key is not tried twice");
    write_key(&path, "fresh");
    let got = post(&world, "/v1/messages", DUMMY, "{\"a\":2}").await;
    assert_eq!(got.status, 200);
    let seen = server.seen();
    assert_eq!(seen[2].body, "{\"a\":2}");
    assert_eq!(header(&seen[2].head, "x-api-key"), Some("fresh"));
    assert_eq!(post(&world, "/v1/messages", DUMMY, "{}").await.status, 200);
    assert_eq!(server.seen().len(), 4);
    let (report, _) = world.finish().await;
    assert_eq!(report.usage.by_status, [(200, 2), (401, 2)].into());
}

#[tokio::test]
async fn a_key_that_is_not_there_is_a_failure_that_names_no_secret() {
    let server = Server::start(ok).await;
    let spec = spec(&server, PathBuf::from("/nonexistent/key"));
    let world = World::start_with(policy(&server), Some(spec)).await;
    let got = post(&world, "/v1/messages", DUMMY, "{}").await;
    assert_eq!(got.status, 502);
    assert!(got.body.contains("its key could not be read on the host"), "{got:?}");
    assert!(!got.body.contains("/nonexistent"));
}

#[tokio::test]
async fn the_server_proves_itself_by_tls() {
    let made = rcgen::generate_simple_self_signed(vec!["model.example".to_owned()]).unwrap();
    let (dir, key) = key_file(REAL);
    let ca_file = dir.path().join("ca.pem");
    fs::write(&ca_file, made.cert.pem()).unwrap();
    let private = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], private.into())
        .unwrap();
    let server = Server::start_tls(Some(TlsAcceptor::from(Arc::new(config))), ok).await;
    for (host, expected) in [("model.example", 200), ("impostor.example", 502)] {
        let upstream = Upstream::parse(&format!("https://{host}")).unwrap();
        let source = KeySource::File(key.clone());
        let mut spec = ModelRouteSpec::new(upstream, AuthStyle::Bearer, source, DUMMY);
        spec.ca_file = Some(ca_file.clone());
        let world = World::start_with(policy(&server), Some(spec)).await;
        world.names.set(host, &[&server.address.to_string()]);
        let got = post(&world, "/v1/responses", DUMMY, "{}").await;
        assert_eq!(got.status, expected, "{got:?}");
    }
    assert_eq!(server.seen().len(), 1);
    let expected = format!("Bearer {REAL}");
    assert_eq!(header(&server.seen()[0].head, "authorization"), Some(expected.as_str()));
}
