//! Traffic that is allowed, as the server sees it.

use egress::policy::{EgressPolicy, EgressProfile};
use egress::record::{EgressVerdict, TrafficKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::server::{Echo, Server, whole};
use crate::world::{World, client_hello, header, open_policy, rules};

#[tokio::test]
async fn a_tunnel_to_a_registry() {
    let echo = Echo::start().await;
    let policy = EgressPolicy {
        permit_private: vec![echo.address],
        ..EgressPolicy::new(EgressProfile::Packages)
    };
    let world = World::start(policy).await;
    world.names.set("registry.npmjs.org", &[&echo.address.to_string()]);
    let hello = client_hello("registry.npmjs.org", true);
    let sent = [&hello[..], &vec![7; 300_000]].concat();
    assert_eq!(world.through("Registry.npmjs.org.:443", &sent).await.unwrap(), sent);
    let (report, entries) = world.finish().await;
    let entry = &entries[0];
    assert_eq!(
        (entry.kind, entry.verdict, entry.port),
        (TrafficKind::Connect, EgressVerdict::Allowed, 443)
    );
    assert_eq!(entry.address, Some(echo.address));
    assert_eq!((entry.bytes_up, entry.bytes_down), (sent.len() as u64, sent.len() as u64));
    assert!(report.summary.complete);
}

#[tokio::test]
async fn a_greeting_that_comes_byte_by_byte() {
    let echo = Echo::start().await;
    let world = World::start(open_policy(&[echo.address])).await;
    world.names.set("slow.example", &[&echo.address.to_string()]);
    let hello = client_hello("slow.example", true);
    let mut stream = world.connect("slow.example:443").await.unwrap();
    for byte in &hello {
        stream.write_all(&[*byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut back = vec![0; hello.len()];
    stream.read_exact(&mut back).await.unwrap();
    assert_eq!(back, hello);
}

#[tokio::test]
async fn a_plain_request_loses_what_concerns_the_proxy_alone() {
    let server = Server::start(|_| {
        whole("200 OK", "text/plain", &["keep-alive: timeout=5", "x-kept: yes"], "hello")
    })
    .await;
    let policy = EgressPolicy {
        allow: rules(&["docs.example"]),
        ..EgressPolicy::new(EgressProfile::ModelOnly)
    };
    let policy = EgressPolicy { permit_private: vec![server.address], ..policy };
    let world = World::start(policy).await;
    world.names.set("docs.example", &[&server.address.to_string()]);
    let got = world
        .raw(
            b"POST http://docs.example/a/b?c=d HTTP/1.1\r\nhost: lying.example\r\n\
              proxy-authorization: Basic eA==\r\nproxy-connection: keep-alive\r\n\
              connection: close, x-mine\r\nx-mine: 1\r\nx-theirs: 2\r\ncontent-length: 4\r\n\r\nbody",
        )
        .await;
    assert_eq!((got.status, got.body.as_str()), (200, "hello"));
    assert_eq!(header(&got.head, "x-kept"), Some("yes"));
    assert_eq!(header(&got.head, "keep-alive"), None);
    let seen = &server.seen()[0];
    assert!(seen.head.starts_with("POST /a/b?c=d HTTP/1.1\r\n"), "{}", seen.head);
    assert_eq!(header(&seen.head, "host"), Some("docs.example"));
    assert_eq!(header(&seen.head, "x-theirs"), Some("2"));
    for name in ["proxy-authorization", "proxy-connection", "x-mine", "connection"] {
        assert_eq!(header(&seen.head, name), None, "{name}");
    }
    assert_eq!(seen.body, "body");
    let log = std::fs::read_to_string(&world.log_path).unwrap_or_default();
    assert!(!log.contains("/a/b") && !log.contains("c=d"));
    let (_, entries) = world.finish().await;
    assert_eq!((entries[0].kind, entries[0].status), (TrafficKind::Http, Some(200)));
    assert_eq!(entries[0].bytes_down, 5);
    assert!(entries[0].bytes_up > 4);
}

#[tokio::test]
async fn a_request_without_a_known_length() {
    let server = Server::start(|_| whole("200 OK", "text/plain", &[], "ok")).await;
    let world = World::start(open_policy(&[server.address])).await;
    world.names.set("docs.example", &[&server.address.to_string()]);
    let got = world
        .raw(
            b"POST http://docs.example/ HTTP/1.1\r\nhost: docs.example\r\nconnection: close\r\n\
              transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        )
        .await;
    assert_eq!(got.status, 200);
    assert_eq!(server.seen()[0].body, "3\r\nabc\r\n0\r\n\r\n");
}

#[tokio::test]
async fn many_requests_over_one_connection() {
    let server = Server::start(|_| whole("200 OK", "text/plain", &[], "ok")).await;
    let world = World::start(open_policy(&[server.address])).await;
    world.names.set("docs.example", &[&server.address.to_string()]);
    let ask = "GET http://docs.example/ HTTP/1.1\r\nhost: docs.example\r\n\r\n";
    let last = ask.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n");
    let got = world.raw(format!("{ask}{ask}{last}").as_bytes()).await;
    assert_eq!((got.head + &got.body).matches("HTTP/1.1 200").count(), 3);
    assert_eq!(world.finish().await.1.len(), 3);
}

#[tokio::test]
async fn plain_requests_inside_a_tunnel_to_port_80() {
    let server = Server::start(|_| whole("200 OK", "text/plain", &[], "hello")).await;
    let world = World::start(open_policy(&[server.address])).await;
    world.names.set("docs.example", &[&server.address.to_string()]);
    let request = b"GET /x HTTP/1.1\r\nhost: docs.example\r\nconnection: close\r\n\r\n";
    let answer = world.ask_through("docs.example:80", request).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("hello"), "{answer}");
}

#[tokio::test]
async fn a_mirror_at_a_permitted_address_and_port() {
    let server = Server::start(|_| whole("200 OK", "text/plain", &[], "package")).await;
    let port = server.address.port();
    let policy = EgressPolicy {
        permit_private: vec![server.address],
        extra_package_hosts: rules(&["mirror.lan"]),
        ..EgressPolicy::new(EgressProfile::Packages)
    };
    let world = World::start(policy).await;
    world.names.set("mirror.lan", &[&server.address.to_string()]);
    let got = world.get(&format!("http://mirror.lan:{port}/left-pad")).await;
    assert_eq!((got.status, got.body.as_str()), (200, "package"));
    let host = format!("mirror.lan:{port}");
    assert_eq!(header(&server.seen()[0].head, "host"), Some(host.as_str()));
}

#[tokio::test]
async fn a_host_that_is_not_there_is_a_failure_and_no_refusal() {
    let world = World::start(open_policy(&["127.0.0.1:1".parse().unwrap()])).await;
    world.names.set("down.example", &["127.0.0.1:1"]);
    assert_eq!(world.connect("down.example:443").await.unwrap_err().status, 502);
    assert_eq!(world.get("http://unknown.example/").await.status, 502);
    let (report, entries) = world.finish().await;
    assert_eq!(entries[0].reason.as_deref(), Some("unreachable"));
    assert_eq!(entries[1].reason.as_deref(), Some("unresolved"));
    assert_eq!(report.summary.totals.failed, 2);
}

#[tokio::test]
async fn the_status_page_tells_what_is_allowed() {
    let policy = EgressPolicy {
        allow: rules(&["docs.example"]),
        ..EgressPolicy::new(EgressProfile::Packages)
    };
    let world = World::start(policy).await;
    world.connect("example.org:443").await.unwrap_err();
    let got = world.get("http://127.0.0.1:3128/-/status").await;
    assert!(got.body.contains("profile packages"), "{got:?}");
    assert!(got.body.contains("allowed: docs.example"), "{got:?}");
    assert!(got.body.contains("blocked: example.org, once; allow with --allow example.org"));
}
