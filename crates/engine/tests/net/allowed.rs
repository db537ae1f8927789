//! What a box may reach, and does.

use egress::record::{EgressVerdict, TrafficKind};

use crate::hello::greeting;
use crate::outing::{LOCALHOST, Outing};
use crate::server::{Server, free_port};
use crate::support::{Rig, on_every_backend};

on_every_backend! {
    a_page_of_the_permitted_host,
    a_second_page_over_the_same_connection,
    a_tunnel_to_the_permitted_host,
    pages_inside_a_tunnel,
    an_upload_arrives_whole,
    what_is_allowed_can_be_asked_for,
    a_run_in_a_folder_with_a_very_long_name,
}

async fn a_page_of_the_permitted_host(rig: &Rig) {
    let server = Server::saying("hello");
    let page = format!("http://localhost:{}/page?query=1", server.port());
    let outing = Outing::perl_with(rig, "show(get($ARGV[0]))", &[&page]);
    let back = outing.reach(server.port()).run_ok().await;
    assert_eq!(back.answer(), (200, "hello"));
    let seen = server.seen();
    assert!(seen[0].head.starts_with("GET /page?query=1 HTTP/1.1\n"), "{seen:?}");
    let entry = &back.log[0];
    assert_eq!(
        (entry.kind, entry.verdict, entry.status),
        (TrafficKind::Http, EgressVerdict::Allowed, Some(200))
    );
    assert_eq!((entry.host.as_str(), entry.bytes_down), (LOCALHOST, 5));
    assert!(entry.address.is_some_and(|address| address.port() == server.port()), "{entry:?}");
    assert!(back.summary().denials.is_empty() && back.summary().complete);
}

async fn a_second_page_over_the_same_connection(rig: &Rig) {
    let server = Server::saying("hello");
    let script = r#"
        my $socket = dial();
        for my $page ("first", "second", "third") {
            put($socket, request("GET", "http://localhost:$ARGV[0]/$page", ""));
            show(answer($socket));
        }
    "#;
    let port = server.port().to_string();
    let back = Outing::perl_with(rig, script, &[&port]).reach(server.port()).run_ok().await;
    assert_eq!(back.answers(), [(200, "hello"); 3]);
    let firsts: Vec<String> = server
        .seen()
        .iter()
        .map(|seen| seen.head.lines().next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(firsts, ["GET /first HTTP/1.1", "GET /second HTTP/1.1", "GET /third HTTP/1.1"]);
    // The connection to the server was kept as well.
    assert_eq!(server.connections(), 1);
    assert_eq!(back.summary().totals.allowed, 3);
}

/// Bytes that look like TLS go through as they are; here nobody answers with a certificate, but with the same bytes.
async fn a_tunnel_to_the_permitted_host(rig: &Rig) {
    let echo = Server::echo(free_port());
    let script = r#"
        my $socket = tunnel("localhost:$ARGV[0]") or exit 1;
        my $said = pack("H*", $ARGV[1]) . "x" x 300_000;
        my $child = fork;
        if (!$child) { put($socket, $said); shutdown($socket, 1); exit 0 }
        my $heard = rest($socket);
        waitpid($child, 0);
        print $heard eq $said ? "200 the same\n" : "0 something else\n";
    "#;
    let hello: String = greeting(&[LOCALHOST]).iter().map(|byte| format!("{byte:02x}")).collect();
    let port = echo.port().to_string();
    let back = Outing::perl_with(rig, script, &[&port, &hello]).reach(echo.port()).run_ok().await;
    assert_eq!(back.answer(), (200, "the same"));
    let entry = &back.log[0];
    assert_eq!((entry.kind, entry.verdict), (TrafficKind::Connect, EgressVerdict::Allowed));
    assert_eq!((entry.bytes_up, entry.bytes_up), (echo.received().len() as u64, entry.bytes_down));
}

/// A tunnel that is used for plain requests is served like plain requests: each has its own line.
async fn pages_inside_a_tunnel(rig: &Rig) {
    let server = Server::saying("hello");
    let script = r#"
        my $socket = tunnel("localhost:$ARGV[0]") or exit 1;
        for my $page (1, 2) {
            put($socket, "GET /$page HTTP/1.1\r\nhost: localhost:$ARGV[0]\r\n\r\n");
            show(answer($socket));
        }
    "#;
    let port = server.port().to_string();
    let back = Outing::perl_with(rig, script, &[&port]).reach(server.port()).run_ok().await;
    assert_eq!(back.answers(), [(200, "hello"); 2]);
    assert_eq!(server.seen().len(), 2);
    let kinds: Vec<TrafficKind> = back.log.iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [TrafficKind::Connect, TrafficKind::Http, TrafficKind::Http]);
    assert_eq!(back.summary().totals.denied, 0);
}

async fn an_upload_arrives_whole(rig: &Rig) {
    let server = Server::saying("thanks");
    let page = format!("http://localhost:{}/upload", server.port());
    let outing = Outing::perl_with(rig, "show(post($ARGV[0], 'y' x 3_000_000))", &[&page]);
    let back = outing.reach(server.port()).run_ok().await;
    assert_eq!(back.answer(), (200, "thanks"));
    let seen = server.seen();
    assert!(seen[0].body.len() == 3_000_000 && seen[0].body.iter().all(|byte| *byte == b'y'));
    assert!(back.summary().totals.bytes_up >= 3_000_000, "{:?}", back.summary());
}

async fn what_is_allowed_can_be_asked_for(rig: &Rig) {
    let server = Server::saying("hello");
    let script = r#"
        show(get("http://unlisted.example/"));
        my $socket = dial();
        put($socket, request("GET", "/-/status", ""));
        show(answer($socket));
    "#;
    let back = Outing::perl(rig, script).reach(server.port()).run_ok().await;
    let (status, page) = back.answers()[1];
    assert_eq!(status, 200);
    assert!(page.starts_with("profile model-only: the model can be reached"), "{page}");
    assert!(page.contains("allowed: localhost\\n"), "{page}");
    assert!(page.contains("blocked: unlisted.example, once; allow with --allow"), "{page}");
}

/// A socket's address is short by nature, and the folder of a run need not be.
async fn a_run_in_a_folder_with_a_very_long_name(rig: &Rig) {
    let server = Server::saying("hello");
    let page = format!("http://localhost:{}/", server.port());
    let box_dir = rig.dir().join("boxes").join("long-".repeat(40));
    let outing = Outing::perl_with(rig, "show(get($ARGV[0]))", &[&page]).reach(server.port());
    let outing = outing.log(box_dir.join("egress.jsonl")).with(|spec| spec.box_dir = box_dir);
    assert_eq!(outing.run_ok().await.answer(), (200, "hello"));
}
