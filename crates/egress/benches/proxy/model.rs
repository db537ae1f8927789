//! Time that the model route adds until the first byte of a response: under 2 ms.

use std::borrow::BorrowMut;
use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use egress::model_route::{AuthStyle, MODEL_PREFIX, Upstream};
use egress::{KeySource, ModelRouteSpec};
use testkit::measure::{in_turns, quantile, row};

use crate::outside::{self, Role};
use crate::proxy::Proxy;
use crate::way::{Connection, Door, Way, time_after_pause};

const ROUNDS: usize = 1000;
const PROMISED: Duration = Duration::from_millis(2);
const KEY: &str = "key-of-this-run";
/// Size of a long conversation.
const CALL_BYTES: usize = 64 << 10;

pub(crate) fn measure() {
    let outside = outside::start(Role::Answer(short_stream()));
    let dir = tempfile::tempdir().expect("a folder");
    let proxy = Proxy::start(outside, Some(route_to(outside, dir.path())));
    let ours = Way::to(Door::Unix(proxy.socket.clone()));
    let ways = [Way::to(Door::Tcp(outside)), ours.clone(), ours.relayed()];
    let calls = [render_call(""), render_call(MODEL_PREFIX), render_call(MODEL_PREFIX)];

    let [direct, ours, relayed] = &ways;
    let times = in_turns(
        ROUNDS,
        [
            &mut || time_call(|| direct.dial(), &calls[0]),
            &mut || time_call(|| ours.dial(), &calls[1]),
            &mut || time_call(|| relayed.dial(), &calls[2]),
        ],
    );
    print("a new connection", times);

    let [mut direct, mut ours, mut relayed] = ways.map(|way| way.dial());
    let times = in_turns(
        ROUNDS,
        [
            &mut || time_call(|| &mut direct, &calls[0]),
            &mut || time_call(|| &mut ours, &calls[1]),
            &mut || time_call(|| &mut relayed, &calls[2]),
        ],
    );
    print("a kept connection", times);
}

/// Prints what each of our ways adds to the direct one, in the middle and at the end of the line.
fn print(name: &str, times: [Vec<Duration>; 3]) {
    let [direct, ours, relayed] =
        times.map(|times| [0.5, 0.99].map(|share| quantile(times.clone(), share)));
    for (ours, kind) in [(ours, ""), (relayed, ", behind a relay")] {
        let added = [ours[0].saturating_sub(direct[0]), ours[1].saturating_sub(direct[1])];
        let word = if added[0] < PROMISED { "ok" } else { "OVER" };
        let [[mid, late], [direct_mid, direct_late], [added_mid, added_late]] =
            [ours, direct, added].map(|pair| pair.map(|time| time.as_secs_f64() * 1000.0));
        row(&format!(
            "model, first byte, {name}{kind}: median {mid:.3} ms, direct {direct_mid:.3}, added {added_mid:.3}; \
             p99 {late:.3} ms, direct {direct_late:.3}, added {added_late:.3}   promised under {} ms: {word}",
            PROMISED.as_millis(),
        ));
    }
}

/// Makes a call over the connection that `dial` gives, and says how long the first byte of the body took.
fn time_call<C: BorrowMut<Connection>>(dial: impl FnOnce() -> C, call: &[u8]) -> Duration {
    let mut seen = Vec::new();
    let (took, mut connection) = time_after_pause(|| {
        let mut connection = dial();
        connection.borrow_mut().send(call);
        connection.borrow_mut().read_until(&mut seen, has_body);
        connection
    });
    // The next call can only follow when this one is over.
    connection.borrow_mut().read_until(&mut seen, |seen| seen.ends_with(b"\r\n0\r\n\r\n"));
    assert!(seen.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&seen));
    took
}

fn has_body(seen: &[u8]) -> bool {
    let end = seen.windows(4).position(|four| four == b"\r\n\r\n");
    end.is_some_and(|end| seen.len() > end + 4)
}

fn render_call(prefix: &str) -> Vec<u8> {
    let text = "a".repeat(CALL_BYTES);
    let body = format!(
        r#"{{"model":"m","stream":true,"messages":[{{"role":"user","content":"{text}"}}]}}"#
    );
    let head = format!(
        "POST {prefix}/v1/messages HTTP/1.1\r\nhost: model.example\r\nx-api-key: {KEY}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    (head + &body).into_bytes()
}

fn route_to(outside: SocketAddr, dir: &Path) -> ModelRouteSpec {
    let key_file = dir.join("key");
    fs::write(&key_file, "the-key-that-stays-outside").expect("written");
    fs::set_permissions(&key_file, Permissions::from_mode(0o600)).expect("closed");
    let upstream = Upstream::parse(&format!("http://{outside}")).expect("an address");
    ModelRouteSpec::new(upstream, AuthStyle::XApiKey, KeySource::File(key_file), KEY)
}

/// An answer as events, each sent on its own.
fn short_stream() -> Vec<String> {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let events = [
        r#"{"type":"message_start","message":{"model":"m","usage":{"input_tokens":9}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"yes"}}"#,
        r#"{"type":"message_delta","usage":{"output_tokens":3}}"#,
    ];
    let chunk = |event| {
        let text = format!("data: {event}\n\n");
        format!("{:x}\r\n{text}\r\n", text.len())
    };
    let last = "0\r\n\r\n".to_owned();
    std::iter::once(head.to_owned()).chain(events.map(chunk)).chain([last]).collect()
}
