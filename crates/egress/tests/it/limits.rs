//! Limits of a run, and the refusals beyond them.

use std::time::Duration;

use egress::record::EgressVerdict;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::server::{Echo, Server, until, whole};
use crate::world::{PATIENCE, World, client_hello, open_policy};

#[tokio::test]
async fn huge_headers() {
    let world = World::start(open_policy(&[])).await;
    let text = format!("GET http://a.example/ HTTP/1.1\r\nx: {}\r\n\r\n", "a".repeat(200_000));
    let got = world.raw(text.as_bytes()).await;
    assert_eq!(got.status, 431, "{got:?}");
    let (_, entries) = world.finish().await;
    assert_eq!(entries[0].reason.as_deref(), Some("bad_target"));
}

#[tokio::test]
async fn a_head_that_never_ends() {
    let mut policy = open_policy(&[]);
    policy.limits.header_secs = 1;
    let world = World::start(policy).await;
    let mut stream = world.dial().await;
    stream.write_all(b"GET http://a.example/ HTTP/1.1\r\n").await.unwrap();
    let drip = async {
        loop {
            if stream.write_all(b"x: y\r\n").await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, drip).await.unwrap();
    let (_, entries) = world.finish().await;
    assert_eq!(entries[0].reason.as_deref(), Some("bad_target"));
}

#[tokio::test]
async fn a_tunnel_without_a_first_word() {
    let echo = Echo::start().await;
    let mut policy = open_policy(&[echo.address]);
    policy.limits.header_secs = 1;
    let world = World::start(policy).await;
    world.names.set("a.example", &[&echo.address.to_string()]);
    let mut stream = world.connect("a.example:443").await.unwrap();
    stream.write_all(&client_hello("a.example", true)[..20]).await.unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap_or_default();
    let (_, entries) = world.finish().await;
    assert_eq!(entries[0].reason.as_deref(), Some("timed_out"));
}

#[tokio::test]
async fn a_tunnel_in_which_nothing_moves() {
    let echo = Echo::start().await;
    let mut policy = open_policy(&[echo.address]);
    policy.limits.idle_secs = 1;
    let world = World::start(policy).await;
    world.names.set("a.example", &[&echo.address.to_string()]);
    let mut stream = world.connect("a.example:443").await.unwrap();
    let hello = client_hello("a.example", true);
    stream.write_all(&hello).await.unwrap();
    let mut all = Vec::new();
    let read = stream.read_to_end(&mut all);
    tokio::time::timeout(PATIENCE, read).await.unwrap().unwrap_or_default();
    assert_eq!(all, hello);
}

#[tokio::test]
async fn three_hundred_connections() {
    let world = World::start(open_policy(&[])).await;
    let mut streams = Vec::new();
    for _ in 0..300 {
        streams.push(world.dial().await);
        // Lets the other side take it from its queue.
        tokio::task::yield_now().await;
    }
    until(|| world.state.open_connections() == 256).await;
    let mut turned_away = 0;
    for stream in &mut streams[256..] {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(answer.ends_with("too many connections open; close some of them"), "{answer}");
        turned_away += 1;
    }
    drop(streams);
    until(|| world.state.open_connections() == 0).await;
    assert_eq!(world.get("http://10.0.0.1/").await.status, 403);
    let (report, _) = world.finish().await;
    assert_eq!(report.summary.totals.unlogged, turned_away);
    assert!(!report.summary.complete);
}

#[tokio::test]
async fn an_upload_ends_at_the_cap() {
    let echo = Echo::start().await;
    let mut policy = open_policy(&[echo.address]);
    policy.limits.bytes_up = 100_000;
    let world = World::start(policy).await;
    world.names.set("a.example", &[&echo.address.to_string()]);
    let sent = [client_hello("a.example", true), vec![7; 3_000_000]].concat();
    let back = world.through("a.example:443", &sent).await.unwrap();
    assert!(back.len() <= 100_000 && echo.received() <= 100_000);
    let got = world.connect("a.example:443").await.unwrap_err();
    assert!(got.body.contains("this run may send 100000 bytes in all"), "{got:?}");
    let (_, entries) = world.finish().await;
    for entry in &entries {
        assert_eq!(
            (entry.verdict, entry.reason.as_deref()),
            (EgressVerdict::Denied, Some("upload_cap"))
        );
    }
}

#[tokio::test]
async fn the_body_of_a_plain_request_counts_as_upload() {
    let server = Server::start(|_| whole("200 OK", "text/plain", &[], "ok")).await;
    let mut policy = open_policy(&[server.address]);
    policy.limits.bytes_up = 50_000;
    let world = World::start(policy).await;
    world.names.set("a.example", &[&server.address.to_string()]);
    let text = "POST http://a.example/ HTTP/1.1\r\nhost: a.example\r\nconnection: close\r\n\
                content-length: 200000\r\n\r\n";
    let got = world.raw(format!("{text}{}", "a".repeat(200_000)).as_bytes()).await;
    assert_eq!(got.status, 403, "{got:?}");
    assert!(server.seen().is_empty());
    let (report, entries) = world.finish().await;
    assert_eq!(entries[0].reason.as_deref(), Some("upload_cap"));
    assert!(report.summary.totals.bytes_up <= 50_000);
}

#[tokio::test]
async fn a_download_ends_at_the_cap() {
    let server =
        Server::start(|_| whole("200 OK", "text/plain", &[], &"a".repeat(2_000_000))).await;
    let mut policy = open_policy(&[server.address]);
    policy.limits.bytes_down = 300_000;
    let world = World::start(policy).await;
    world.names.set("a.example", &[&server.address.to_string()]);
    let got = world.get("http://a.example/").await;
    assert!(got.body.len() <= 300_000);
    let (_, entries) = world.finish().await;
    assert_eq!(entries[0].reason.as_deref(), Some("download_cap"));
}

#[tokio::test]
async fn a_run_that_asks_for_ever_is_not_logged_for_ever() {
    let mut policy = open_policy(&[]);
    policy.limits.requests = 3;
    let world = World::start(policy).await;
    for _ in 0..5 {
        assert_eq!(world.get("http://10.0.0.1/").await.status, 403);
    }
    let got = world.get("http://10.0.0.1/").await;
    assert!(got.body.contains("this run may make 3 requests in all"), "{got:?}");
    let (report, entries) = world.finish().await;
    assert_eq!((entries.len(), report.summary.totals.unlogged), (3, 3));
}
