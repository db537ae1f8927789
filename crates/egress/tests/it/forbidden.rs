//! Traffic that is refused in every profile: here it is mostly `open`, the most generous one.

use egress::policy::{EgressPolicy, EgressProfile};
use egress::record::{EgressVerdict, TrafficKind};

use crate::server::{Echo, Server, whole};
use crate::world::{Got, World, client_hello, open_policy, rules};

/// Asks for a tunnel and a plain request, and expects both to be refused for `reason`.
async fn check(world: World, host: &str, port: u16, reason: &str) {
    let got = world.connect(&format!("{host}:{port}")).await.unwrap_err();
    expect_refusal(&got, host);
    if port != 443 {
        expect_refusal(&world.get(&format!("http://{host}:{port}/x?y=z")).await, host);
    }
    let (report, entries) = world.finish().await;
    assert!(!entries.is_empty());
    for entry in &entries {
        assert_eq!(entry.verdict, EgressVerdict::Denied, "{entry:?}");
        assert_eq!(entry.reason.as_deref(), Some(reason), "{entry:?}");
        assert_eq!((entry.bytes_up, entry.bytes_down), (0, 0));
    }
    assert_eq!(report.summary.totals.denied, entries.len() as u64);
}

fn expect_refusal(got: &Got, host: &str) {
    assert_eq!(got.status, 403, "{got:?}");
    assert!(got.body.starts_with(&format!("blocked: {host}:")), "{got:?}");
}

#[tokio::test]
async fn the_metadata_of_clouds_by_its_address() {
    check(World::start(open_policy(&[])).await, "169.254.169.254", 80, "ip_literal").await;
}

#[tokio::test]
async fn the_metadata_of_clouds_by_a_name() {
    let world = World::start(open_policy(&[])).await;
    world.names.set("metadata.example", &["169.254.169.254:80"]);
    check(world, "metadata.example", 80, "not_public").await;
}

#[tokio::test]
async fn every_private_range_by_a_name() {
    let private = [
        "10.1.2.3:443",
        "172.16.0.1:443",
        "172.31.255.254:443",
        "192.168.1.1:443",
        "100.64.0.1:443",
        "100.100.100.200:443",
        "127.0.0.1:443",
        "0.0.0.0:443",
        "192.0.0.192:443",
        "198.18.0.1:443",
        "224.0.0.1:443",
        "255.255.255.255:443",
        "[::1]:443",
        "[::]:443",
        "[fd00:ec2::254]:443",
        "[fe80::1]:443",
        "[::ffff:10.0.0.1]:443",
        "[::ffff:169.254.169.254]:443",
        "[64:ff9b::a9fe:a9fe]:443",
        "[64:ff9b:1::1]:443",
        "[2002:7f00:1::]:443",
        "[2001:0:808:808::f5ff:fffe]:443",
    ];
    let world = World::start(open_policy(&[])).await;
    for (number, address) in private.iter().enumerate() {
        let host = format!("host{number}.example");
        world.names.set(&host, &[address]);
        let got = world.connect(&format!("{host}:443")).await.unwrap_err();
        expect_refusal(&got, &host);
        assert!(!got.body.contains(address.trim_end_matches(":443")), "{got:?}");
    }
    let (_, entries) = world.finish().await;
    assert_eq!(entries.len(), private.len());
    for (entry, address) in entries.iter().zip(private) {
        assert_eq!(entry.reason.as_deref(), Some("not_public"));
        assert_eq!(entry.address, Some(address.parse().unwrap()));
    }
}

#[tokio::test]
async fn an_address_in_any_spelling() {
    for host in ["127.0.0.1", "2130706433", "0x7f.1", "127.1", "8.8.8.8"] {
        check(World::start(open_policy(&[])).await, host, 80, "ip_literal").await;
    }
    let world = World::start(open_policy(&[])).await;
    for target in ["[::1]:443", "[64:ff9b::7f00:1]:443", "[::ffff:127.0.0.1]:443"] {
        assert_eq!(world.connect(target).await.unwrap_err().status, 403);
    }
    let (_, entries) = world.finish().await;
    assert!(entries.iter().all(|entry| entry.reason.as_deref() == Some("ip_literal")));
}

#[tokio::test]
async fn an_odd_port() {
    let world = World::start(open_policy(&[])).await;
    world.names.set("public.example", &["93.184.216.34:22"]);
    check(world, "public.example", 22, "port").await;
}

#[tokio::test]
async fn an_unlisted_host_is_told_how_it_can_be_allowed() {
    let world = World::start(EgressPolicy::new(EgressProfile::Packages)).await;
    let got = world.connect("example.org:443").await.unwrap_err();
    assert_eq!(
        got.body,
        "blocked: example.org:443 is not on the allow-list of profile packages; \
         the person running this can allow it with --allow example.org\n"
    );
    check(world, "example.org", 80, "not_allowed").await;
}

#[tokio::test]
async fn a_denied_host_and_anything_in_profile_none() {
    let policy = EgressPolicy { deny: rules(&["*.example.org"]), ..open_policy(&[]) };
    check(World::start(policy).await, "a.example.org", 80, "deny_rule").await;
    let policy = EgressPolicy::new(EgressProfile::None);
    check(World::start(policy).await, "registry.npmjs.org", 80, "profile_none").await;
}

#[tokio::test]
async fn a_name_with_several_answers_of_which_one_is_private() {
    let echo = Echo::start().await;
    let world = World::start(open_policy(&[echo.address])).await;
    world.names.set("two.example", &[&echo.address.to_string(), "10.0.0.1:443"]);
    check(world, "two.example", 443, "not_public").await;
    assert_eq!(echo.accepted(), 0);
}

#[tokio::test]
async fn a_name_that_changes_its_mind() {
    let echo = Echo::start().await;
    let mut policy = open_policy(&[echo.address]);
    policy.limits.dns_cache_secs = 0;
    let world = World::start(policy).await;
    world.names.set("rebinding.example", &[&echo.address.to_string()]);
    world.names.set("rebinding.example", &["127.0.0.1:443"]);
    let hello = client_hello("rebinding.example", true);
    assert_eq!(world.through("rebinding.example:443", &hello).await.unwrap(), hello);
    let got = world.through("rebinding.example:443", &hello).await.unwrap_err();
    expect_refusal(&got, "rebinding.example");
    let (_, entries) = world.finish().await;
    // The first went where it had been judged to go: the resolver was not asked a second time.
    assert_eq!(entries[0].address, Some(echo.address));
    assert_eq!(entries[1].reason.as_deref(), Some("not_public"));
}

#[tokio::test]
async fn a_redirect_to_the_metadata_ends_at_the_second_hop() {
    let server = Server::start(|_| {
        let to = "location: http://169.254.169.254/latest/meta-data/";
        whole("302 Found", "text/plain", &[to], "")
    })
    .await;
    let world = World::start(open_policy(&[server.address])).await;
    world.names.set("redirecting.example", &[&server.address.to_string()]);
    let first = world.get("http://redirecting.example/").await;
    assert_eq!(first.status, 302);
    let next = crate::world::header(&first.head, "location").unwrap().to_owned();
    assert_eq!(world.get(&next).await.status, 403);
    let (_, entries) = world.finish().await;
    assert_eq!(entries[1].reason.as_deref(), Some("ip_literal"));
}

async fn check_hello(bytes: &[u8], reason: &str) -> Vec<u8> {
    let echo = Echo::start().await;
    let world = World::start(open_policy(&[echo.address])).await;
    world.names.set("asked.example", &[&echo.address.to_string()]);
    let answer = world.through("asked.example:443", bytes).await.unwrap();
    let (_, entries) = world.finish().await;
    assert_eq!(entries[0].verdict, EgressVerdict::Denied);
    assert_eq!(entries[0].reason.as_deref(), Some(reason));
    assert_eq!(echo.received(), 0, "nothing may reach the other side");
    answer
}

#[tokio::test]
async fn a_greeting_for_another_host() {
    let alert = check_hello(&client_hello("fronted.example", true), "sni_mismatch").await;
    assert_eq!(alert, [21, 3, 3, 0, 2, 2, 49]);
}

#[tokio::test]
async fn a_greeting_without_a_name() {
    check_hello(&client_hello("asked.example", false), "no_sni").await;
}

#[tokio::test]
async fn something_other_than_tls_on_443() {
    let answer = check_hello(b"GET / HTTP/1.1\r\nhost: asked.example\r\n\r\n", "not_tls").await;
    assert!(String::from_utf8(answer).unwrap().contains("blocked: asked.example:443"));
    check_hello(b"SSH-2.0-OpenSSH_9\r\n", "not_tls").await;
}

#[tokio::test]
async fn a_request_for_another_host_inside_a_tunnel_to_port_80() {
    let server = Server::start(|_| whole("200 OK", "text/plain", &[], "hello")).await;
    let world = World::start(open_policy(&[server.address])).await;
    world.names.set("asked.example", &[&server.address.to_string()]);
    let request = b"GET / HTTP/1.1\r\nhost: other.example\r\nconnection: close\r\n\r\n";
    let answer = world.ask_through("asked.example:80", request).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert!(server.seen().is_empty());
    let (_, entries) = world.finish().await;
    let inside = entries.iter().find(|entry| entry.kind == TrafficKind::Http).unwrap();
    assert_eq!(inside.reason.as_deref(), Some("host_mismatch"));
}

#[tokio::test]
async fn a_scheme_and_pages_that_are_not_there() {
    let world = World::start(open_policy(&[])).await;
    for target in ["https://example.org/", "ftp://example.org/", "/", "/-/nothing", "/-/modelx"] {
        let text = format!("GET {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let got = world.raw(text.as_bytes()).await;
        assert_eq!(got.status, 403, "{target} {got:?}");
        assert!(got.body.starts_with("blocked: "), "{got:?}");
    }
    world.finish().await;
}

#[tokio::test]
async fn a_port_that_does_not_exist() {
    let server = Server::start(|_| whole("200 OK", "text/plain", &[], "reached")).await;
    let world = World::start(open_policy(&[server.address])).await;
    world.names.set("docs.example", &[&server.address.to_string()]);
    for port in ["99999", "65536", "0", "", "+80", "80x"] {
        let got = world.get(&format!("http://docs.example:{port}/")).await;
        assert!(matches!(got.status, 400 | 403), "{port}: {got:?}");
        let target = format!("docs.example:{port}");
        assert!(world.connect(&target).await.is_err_and(|got| matches!(got.status, 400 | 403)));
    }
    let inside = b"GET /x HTTP/1.1\r\nhost: docs.example:99999\r\nconnection: close\r\n\r\n";
    let answer = world.ask_through("docs.example:80", inside).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert!(server.seen().is_empty());
}
