//! An agent that was talked into doing harm: all of it is refused, all of it is written down, and the sidecar goes on.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::json;
use sidecar::{CallLimits, CallOutcome};
use testkit::fake_forge::GiteaFlavour;

use crate::world::World;

#[tokio::test]
async fn writes_to_others_are_refused_and_written_down() {
    let world = World::new().await;
    world.server.add_issue("other", "", &[], &[]);
    world.server.add_pull("theirs", "topic", "main");
    for number in [2, 3, 12] {
        for method in ["post_comment", "update_description"] {
            let params = json!({ "number": number, "body": "mine now" });
            assert_eq!(world.call(method, params).await.unwrap_err()["code"], -32001);
        }
    }
    // Another repository cannot even be named.
    let params = json!({ "number": 1, "body": "x", "owner": "bob", "repo": "other" });
    assert_eq!(world.call("post_comment", params).await.unwrap_err()["code"], -32602);
    assert_eq!(world.server.comments().len(), 0);
    let entries = world.entries();
    assert_eq!(entries.len(), 7);
    assert!(entries.iter().all(|entry| entry.outcome == CallOutcome::Refused));
    // The record says what the attempt was aimed at.
    let last = &entries[6];
    assert_eq!(last.target, "#1");
    let named = last.sentence.contains("repo=\"other\"") && last.sentence.contains("owner=\"bob\"");
    assert!(named && last.sentence.contains("unknown field"), "{}", last.sentence);
}

#[tokio::test]
async fn odd_requests_are_written_down() {
    let world = World::new().await;
    for path in ["/mcp", "/elsewhere"] {
        let (status, _) = world.post(path, "no call at all").await;
        assert!((400..500).contains(&status), "{path}: {status}");
    }
    let sentences = world.sentences();
    assert!(sentences[0].starts_with("refused POST /mcp: status 4"), "{sentences:?}");
    assert!(sentences[1].starts_with("refused POST /elsewhere: status 404"), "{sentences:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_megabytes_are_turned_away() {
    let world = World::new().await;
    for length in ["content-length: 52428800", "transfer-encoding: chunked"] {
        let socket = world.socket();
        let head = format!(
            "POST / HTTP/1.1\r\nhost: forge\r\ncontent-type: application/json\r\n{length}\r\n\r\n"
        );
        let sent = tokio::task::spawn_blocking(move || {
            let mut stream = UnixStream::connect(socket).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            stream.write_all(head.as_bytes()).unwrap();
            let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
            // Whoever is turned away may find the door shut in the middle of a word.
            let sent = (0..800).take_while(|_| stream.write_all(chunk.as_bytes()).is_ok()).count();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).ok();
            (sent, answer)
        });
        let (sent, answer) = sent.await.unwrap();
        assert!(sent < 800 || answer.contains(" 413 "), "{sent} chunks were taken: {answer}");
    }
    assert_eq!(world.sentences(), ["refused request: more than 262144 bytes"; 2]);
    assert!(world.call("read_issue", json!({ "number": 1 })).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_calls_are_all_in_the_record_and_few_reach_the_forge() {
    let limits = CallLimits { reads_max: 50, writes_max: 20, ..CallLimits::default() };
    let world = World::<GiteaFlavour>::with(limits).await;
    let before = world.server.requests().len();
    let batch = |method: &str, params: serde_json::Value| {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        serde_json::Value::Array(vec![call; 10]).to_string()
    };
    let comment = batch("post_comment", json!({ "number": 1, "body": "spam" }));
    let stranger = batch("post_comment", json!({ "number": 12, "body": "spam" }));
    let read = batch("read_issue", json!({ "number": 1 }));
    for _ in 0..334 {
        let (a, b, c) = tokio::join!(
            world.post("/", comment.clone()),
            world.post("/", stranger.clone()),
            world.post("/", read.clone()),
        );
        assert_eq!((a.0, b.0, c.0), (200, 200, 200));
    }
    assert_eq!(world.sentences().len(), 10_020);
    assert!(world.server.comments().len() <= 20, "{}", world.server.comments().len());
    assert!(world.server.requests().len() - before <= 100);
    let done = json!({ "status": "success", "summary": "" });
    assert!(world.call("signal_done", done).await.is_ok());
}

#[tokio::test]
async fn connections_that_say_nothing_are_ended_and_others_are_served() {
    let limits = CallLimits {
        connections_max: 4,
        request_timeout: Duration::from_millis(200),
        ..CallLimits::default()
    };
    let world = World::<GiteaFlavour>::with(limits).await;
    let silent: Vec<UnixStream> =
        (0..4).map(|_| UnixStream::connect(world.socket()).unwrap()).collect();
    for mut stream in &silent {
        stream.write_all(b"POST / HTTP/1.1\r\n").unwrap();
    }
    assert!(world.call("read_issue", json!({ "number": 1 })).await.is_ok());
}

#[tokio::test]
async fn odd_bytes_do_no_harm() {
    let world = World::new().await;
    for bytes in [&b"\xff\xfe\x00"[..], b"GET", b"\0\0\0\0\r\n\r\n", b"POST / HTTP/9\r\n\r\n"] {
        let mut stream = UnixStream::connect(world.socket()).unwrap();
        stream.write_all(bytes).unwrap();
    }
    let mut body =
        br#"{"jsonrpc":"2.0","id":1,"method":"post_comment","params":{"number":1,"body":"a"#
            .to_vec();
    body.extend([0xff, 0xc3]);
    body.extend(br#""}}"#);
    assert_eq!(world.post("/", body).await.0, 200);
    assert!(world.server.comments()[0].body.starts_with("a\u{fffd}"));
}
