//! Caps under calls in parallel: each reserves its most before it starts and settles when it has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use egress::model_route::{Caps, Price, Prices};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::model::{DUMMY, key_file, policy, post, spec};
use crate::server::{Piece, STREAM_HEAD, Seen, Server, chunk, until, whole};
use crate::world::{Got, World};

const TOKENS: Caps = Caps { max_usd: None, max_tokens: Some(4000), max_requests: None };

/// An answer that used `input` and `output` tokens.
fn used(input: u64, output: u64) -> Vec<Piece> {
    let body =
        format!(r#"{{"model":"m","usage":{{"input_tokens":{input},"output_tokens":{output}}}}}"#);
    whole("200 OK", "application/json", &[], &body)
}

async fn capped(server: &Server, caps: Caps) -> World {
    let (dir, key) = key_file("sk-of-the-host-1");
    let mut spec = spec(server, key);
    spec.caps = caps;
    let price = Price { input: 1.0, output: 10.0, cache_read: 0.1, cache_write: 1.25 };
    spec.prices = Prices([("m".to_owned(), price)].into());
    let world = World::start_with(policy(server), Some(spec)).await;
    // The key is read with the first call.
    world.keep(dir);
    world
}

/// Makes calls at the same time and returns all answers.
async fn burst(world: &Arc<World>, calls: usize, body: &str) -> Vec<Got> {
    let mut running = JoinSet::new();
    for _ in 0..calls {
        let (world, body) = (Arc::clone(world), body.to_owned());
        running.spawn(async move { post(&world, "/v1/messages", DUMMY, &body).await });
    }
    running.join_all().await
}

fn passed(answers: &[Got]) -> u64 {
    answers.iter().filter(|got| got.status == 200).count() as u64
}

fn with_limit(limit: u64) -> String {
    format!(r#"{{"model":"m","max_tokens":{limit},"messages":[]}}"#)
}

#[tokio::test]
async fn parallel_calls_use_at_most_the_cap_and_one_answer() {
    // A server that counts more than the body has, one that does not, and calls with and without a limit.
    for (input, output, body) in [
        (1500, 500, with_limit(500)),
        (20, 500, with_limit(500)),
        (10, 300, with_limit(32_000)),
        (1500, 500, "{}".to_owned()),
    ] {
        let server = Server::start(move |_| used(input, output)).await;
        let world = Arc::new(capped(&server, TOKENS).await);
        let answers = burst(&world, 256, &body).await;
        let usage = world.state.usage();
        assert_eq!(usage.tokens(), passed(&answers) * (input + output), "{body}");
        assert!(usage.tokens() <= 4000 + output, "{} {body}", usage.tokens());
        assert!(usage.tokens() + input + output > 4000, "{} {body}", usage.tokens());
        let refused = answers.iter().find(|got| got.status != 200).unwrap();
        assert!(refused.status == 403 && refused.body.contains("model_cap"), "{refused:?}");
        assert!(usage.cap_hit.unwrap().contains("tokens"));
    }
}

#[tokio::test]
async fn parallel_calls_keep_a_cap_in_dollars_and_one_on_calls() {
    let server = Server::start(|_| used(100, 500)).await;
    // One call costs 0.0051 dollars.
    let world = Arc::new(capped(&server, Caps { max_usd: Some(0.02), ..Caps::default() }).await);
    let answers = burst(&world, 64, &with_limit(500)).await;
    let usage = world.state.usage();
    assert!(usage.usd <= 0.02 + 0.005 && passed(&answers) >= 3, "{usage:?}");
    let world = Arc::new(capped(&server, Caps { max_requests: Some(7), ..Caps::default() }).await);
    let answers = burst(&world, 64, &with_limit(500)).await;
    assert_eq!((passed(&answers), world.state.usage().requests), (7, 7));
}

#[tokio::test]
async fn calls_that_fit_beside_each_other_run_at_the_same_time() {
    let (go_on, arrived) = (Arc::new(Notify::new()), Arc::new(AtomicU64::new(0)));
    let (wait, count) = (Arc::clone(&go_on), Arc::clone(&arrived));
    let server = Server::start(move |_| {
        let is_first = count.fetch_add(1, SeqCst) == 0;
        let waits = (!is_first).then(|| Piece::Wait(Arc::clone(&wait)));
        waits.into_iter().chain(used(10, 10)).collect()
    })
    .await;
    let world = Arc::new(capped(&server, TOKENS).await);
    // The first one shows what the server counts.
    assert_eq!(post(&world, "/v1/messages", DUMMY, &with_limit(500)).await.status, 200);
    let calls = tokio::spawn({
        let world = Arc::clone(&world);
        async move { burst(&world, 5, &with_limit(500)).await }
    });
    until(|| arrived.load(SeqCst) == 6).await;
    // A server that has counted its call may not wait yet.
    until(|| {
        go_on.notify_waiters();
        calls.is_finished()
    })
    .await;
    assert_eq!(passed(&calls.await.unwrap()), 5);
}

/// Sends a call and leaves the connection open.
async fn begin(world: &World, body: &str) -> UnixStream {
    let mut stream = world.dial().await;
    let length = body.len();
    let ask = format!(
        "POST /-/model/v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {DUMMY}\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(ask.as_bytes()).await.unwrap();
    stream
}

/// The first call meets `pieces`, the others a server that answers.
async fn after_a_first_call(
    pieces: impl Fn() -> Vec<Piece> + Send + Sync + 'static,
) -> (Server, World) {
    let count = AtomicU64::new(0);
    let server = Server::start(move |_: &Seen| match count.fetch_add(1, SeqCst) {
        0 => pieces(),
        _ => used(10, 10),
    })
    .await;
    let world = capped(&server, TOKENS).await;
    (server, world)
}

#[tokio::test]
async fn a_client_that_leaves_is_charged_its_answer_and_blocks_nobody() {
    let (server, world) = after_a_first_call(|| vec![Piece::Wait(Arc::new(Notify::new()))]).await;
    let stream = begin(&world, &with_limit(1000)).await;
    until(|| server.seen().len() == 1).await;
    // This one waits for the first, and leaves before its turn comes.
    let second = begin(&world, &with_limit(1000)).await;
    until(|| world.state.open_connections() == 2).await;
    drop(second);
    until(|| world.state.open_connections() == 1).await;
    drop(stream);
    assert_eq!(post(&world, "/v1/messages", DUMMY, &with_limit(10)).await.status, 200);
    let usage = world.state.usage();
    assert_eq!((usage.output, usage.estimated), (1010, 1), "{usage:?}");
    assert_eq!(server.seen().len(), 2, "the second was never sent");
}

/// The start of a stream that reports one token of output.
fn stream_start() -> Vec<Piece> {
    let start = r#"data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":10,"output_tokens":1}}}"#;
    vec![Piece::Text(STREAM_HEAD.to_owned()), chunk(&format!("{start}\n\n"))]
}

#[tokio::test]
async fn a_client_that_leaves_within_the_answer_is_charged_all_of_it() {
    // With the limit that the body states, without one, and after the last word.
    let delta = r#"data: {"type":"message_delta","usage":{"output_tokens":42}}"#;
    let last = || chunk(&format!("{delta}\n\n"));
    let cases = [
        (with_limit(1000), None, 1000),
        ("{}".to_owned(), None, 8192),
        (with_limit(1000), Some(last()), 42),
    ];
    for (body, last, expected) in cases {
        let pieces = move || {
            let wait = Piece::Wait(Arc::new(Notify::new()));
            stream_start().into_iter().chain(last.clone()).chain([wait]).collect()
        };
        let (_server, world) = after_a_first_call(pieces).await;
        let mut stream = begin(&world, &body).await;
        let (mut seen, sign) =
            (Vec::new(), if expected == 42 { "message_delta" } else { "message_start" });
        while !String::from_utf8_lossy(&seen).contains(sign) {
            assert!(stream.read_buf(&mut seen).await.unwrap() > 0, "it ended too early");
        }
        drop(stream);
        until(|| world.state.open_connections() == 0).await;
        assert_eq!(world.state.usage().output, expected, "{body}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_without_a_stated_limit_is_charged_an_estimate() {
    let (server, world) = after_a_first_call(|| vec![Piece::Wait(Arc::new(Notify::new()))]).await;
    let stream = begin(&world, "{}").await;
    until(|| server.seen().len() == 1).await;
    drop(stream);
    until(|| world.state.open_connections() == 0).await;
    assert_eq!(world.state.usage().output, 8192);
    let got = post(&world, "/v1/messages", DUMMY, &with_limit(10)).await;
    assert!(got.status == 403 && got.body.contains("model_cap"), "{got:?}");
}

#[tokio::test]
async fn a_stream_that_breaks_off_settles() {
    let (_server, world) =
        after_a_first_call(|| stream_start().into_iter().chain([Piece::Drop]).collect()).await;
    post(&world, "/v1/messages", DUMMY, &with_limit(1000)).await;
    assert_eq!(post(&world, "/v1/messages", DUMMY, &with_limit(1000)).await.status, 200);
    let usage = world.state.usage();
    assert_eq!(usage.input, 20);
    assert!(usage.output < 1000, "the server did not go on: {usage:?}");
}

#[tokio::test]
async fn a_server_that_fails_or_refuses_costs_no_answer_and_holds_nothing() {
    let refusals: [fn() -> Vec<Piece>; 3] = [
        || whole("429 Too Many Requests", "application/json", &[], "{}"),
        || whole("500 Internal Server Error", "application/json", &[], "{}"),
        || vec![Piece::Drop],
    ];
    for refusal in refusals {
        let (_server, world) = after_a_first_call(refusal).await;
        assert_ne!(post(&world, "/v1/messages", DUMMY, &with_limit(3000)).await.status, 200);
        let got = post(&world, "/v1/messages", DUMMY, &with_limit(3000)).await;
        assert_eq!(got.status, 200, "{got:?}");
        assert_eq!(world.state.usage().output, 10);
    }
}

#[tokio::test]
async fn a_prompt_that_does_not_fit_is_not_sent_and_the_client_learns_what_is_left() {
    let server = Server::start(|_| used(10, 10)).await;
    let world = capped(&server, TOKENS).await;
    let long = format!(r#"{{"max_tokens":10,"messages":["{}"]}}"#, "word ".repeat(8000));
    let got = post(&world, "/v1/messages", DUMMY, &long).await;
    assert!(got.status == 403 && got.body.contains("4000 tokens are left"), "{got:?}");
    assert!(server.seen().is_empty());
    assert_eq!(post(&world, "/v1/messages", DUMMY, &with_limit(10)).await.status, 200);
}

#[tokio::test]
async fn a_body_without_a_length_is_streamed_and_runs_alone() {
    let server = Server::start(|_| used(10, 10)).await;
    let world = capped(&server, TOKENS).await;
    let text = format!(
        "POST /-/model/v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {DUMMY}\r\nconnection: close\r\n\
         transfer-encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"
    );
    assert_eq!(world.raw(text.as_bytes()).await.status, 200);
    assert_eq!(world.state.usage().tokens(), 20);
}
