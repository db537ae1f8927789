//! What a box asks the proxy for and must not get. Each is refused with a sentence, and stands in log and record.

use std::io::Write;

use egress::policy::EgressProfile;
use egress::record::TrafficKind;

use crate::outing::{Back, LOCALHOST, Outing};
use crate::server::{Server, whole};
use crate::support::{Rig, on_every_backend};

on_every_backend! {
    the_metadata_by_a_tunnel,
    the_metadata_by_a_request,
    the_metadata_by_its_name,
    private_addresses,
    addresses_of_carriers,
    private_addresses_of_ipv6,
    addresses_inside_mapped_ones,
    addresses_inside_translated_ones,
    addresses_in_disguise,
    the_permitted_address_by_its_number,
    a_host_that_nobody_allowed,
    a_registry_in_the_profile_without_registries,
    an_odd_port,
    the_port_of_ssh,
    another_port_of_the_permitted_host,
    an_allowed_name_that_leads_to_this_host,
    a_redirect_to_the_metadata,
    a_tunnel_as_a_way_to_another_host,
    a_scheme_that_is_not_http,
    something_that_is_no_request,
    anything_in_profile_none,
}

/// Asks for each of the arguments: a tunnel, or a page.
const ASK: &str = r#"
for (@ARGV) {
    my ($how, $target) = split / /;
    if ($how eq "GET") { show(get($target)) }
    elsif (tunnel($target)) { print "200 a tunnel to $target\n" }
}
"#;

/// A box that asks, and may reach one server on this host.
fn asking<'a>(rig: &'a Rig, server: &Server, asked: &[&str]) -> Outing<'a> {
    Outing::perl_with(rig, ASK, asked).reach(server.port())
}

/// Asks for things that are refused for what they are, whoever answers there. Nobody is asked anything.
async fn refused(rig: &Rig, asked: &[(&str, &str, u16)], reason: &str) -> Back {
    let server = Server::saying("hello");
    let words: Vec<&str> = asked.iter().map(|(words, ..)| *words).collect();
    let back = asking(rig, &server, &words).run_ok().await;
    let targets: Vec<_> = asked.iter().map(|(_, host, port)| (*host, *port)).collect();
    back.all_refused(&targets, reason);
    assert_eq!(server.connections(), 0);
    back
}

async fn the_metadata_by_a_tunnel(rig: &Rig) {
    let asked = [
        ("CONNECT 169.254.169.254:80", "169.254.169.254", 80),
        ("CONNECT 169.254.169.254:443", "169.254.169.254", 443),
    ];
    let back = refused(rig, &asked, "ip_literal").await;
    assert!(back.stdout.contains("ask for a host by its name"), "{}", back.stdout);
}

async fn the_metadata_by_a_request(rig: &Rig) {
    let page = "GET http://169.254.169.254/latest/meta-data/iam/security-credentials/";
    let asked = [
        (page, "169.254.169.254", 80),
        ("GET http://[fd00:ec2::254]/latest/meta-data/", "[fd00:ec2::254]", 80),
        ("GET http://168.63.129.16/metadata", "168.63.129.16", 80),
    ];
    refused(rig, &asked, "ip_literal").await;
}

/// The name is refused before anybody looks it up.
async fn the_metadata_by_its_name(rig: &Rig) {
    let asked = [("GET http://metadata.google.internal/", "metadata.google.internal", 80)];
    refused(rig, &asked, "not_allowed").await;
}

async fn private_addresses(rig: &Rig) {
    let asked = [
        ("CONNECT 10.0.0.1:443", "10.0.0.1", 443),
        ("CONNECT 10.255.255.254:80", "10.255.255.254", 80),
        ("CONNECT 172.16.0.1:443", "172.16.0.1", 443),
        ("CONNECT 172.31.255.254:80", "172.31.255.254", 80),
        ("CONNECT 192.168.1.1:443", "192.168.1.1", 443),
        ("CONNECT 127.0.0.1:443", "127.0.0.1", 443),
        ("CONNECT 127.0.0.53:80", "127.0.0.53", 80),
        ("CONNECT 0.0.0.0:80", "0.0.0.0", 80),
        ("CONNECT 192.0.0.192:80", "192.0.0.192", 80),
        ("CONNECT 198.18.0.1:80", "198.18.0.1", 80),
        ("CONNECT 224.0.0.1:80", "224.0.0.1", 80),
        ("CONNECT 255.255.255.255:80", "255.255.255.255", 80),
        ("GET http://10.0.0.1/", "10.0.0.1", 80),
        ("GET http://127.0.0.1/", "127.0.0.1", 80),
    ];
    refused(rig, &asked, "ip_literal").await;
}

async fn addresses_of_carriers(rig: &Rig) {
    let asked = [
        ("CONNECT 100.64.0.1:443", "100.64.0.1", 443),
        ("CONNECT 100.127.255.254:80", "100.127.255.254", 80),
        ("GET http://100.100.100.200/latest/meta-data/", "100.100.100.200", 80),
    ];
    refused(rig, &asked, "ip_literal").await;
}

async fn private_addresses_of_ipv6(rig: &Rig) {
    let asked = [
        ("CONNECT [::1]:443", "[::1]", 443),
        ("CONNECT [::]:80", "[::]", 80),
        ("CONNECT [fd00:ec2::254]:80", "[fd00:ec2::254]", 80),
        ("CONNECT [fe80::1]:80", "[fe80::1]", 80),
        ("GET http://[fc00::1]/", "[fc00::1]", 80),
    ];
    refused(rig, &asked, "ip_literal").await;
}

async fn addresses_inside_mapped_ones(rig: &Rig) {
    let asked = [
        ("CONNECT [::ffff:169.254.169.254]:80", "[::ffff:169.254.169.254]", 80),
        ("CONNECT [::ffff:a00:1]:443", "[::ffff:a00:1]", 443),
        ("GET http://[::ffff:127.0.0.1]/", "[::ffff:127.0.0.1]", 80),
    ];
    refused(rig, &asked, "ip_literal").await;
}

async fn addresses_inside_translated_ones(rig: &Rig) {
    let asked = [
        ("CONNECT [64:ff9b::a9fe:a9fe]:80", "[64:ff9b::a9fe:a9fe]", 80),
        ("CONNECT [64:ff9b:1::1]:443", "[64:ff9b:1::1]", 443),
        ("CONNECT [2002:7f00:1::]:80", "[2002:7f00:1::]", 80),
        ("GET http://[64:ff9b::7f00:1]/", "[64:ff9b::7f00:1]", 80),
    ];
    refused(rig, &asked, "ip_literal").await;
}

/// Spellings that resolvers of old take for addresses.
async fn addresses_in_disguise(rig: &Rig) {
    let asked = [
        ("CONNECT 2130706433:80", "2130706433", 80),
        ("CONNECT 0x7f000001:80", "0x7f000001", 80),
        ("CONNECT 0177.0.0.1:80", "0177.0.0.1", 80),
        ("CONNECT 127.1:443", "127.1", 443),
        ("GET http://127.0.0.1./", "127.0.0.1.", 80),
        ("GET http://0xa9fea9fe/latest/", "0xa9fea9fe", 80),
    ];
    refused(rig, &asked, "ip_literal").await;
}

/// What is permitted is an address that a name may have, not a number to ask for.
async fn the_permitted_address_by_its_number(rig: &Rig) {
    let server = Server::saying("hello");
    let port = server.port();
    let (tunnel, page) =
        (format!("CONNECT 127.0.0.1:{port}"), format!("GET http://127.0.0.1:{port}/"));
    let back = asking(rig, &server, &[&tunnel, &page]).run_ok().await;
    back.all_refused(&[("127.0.0.1", port); 2], "ip_literal");
    assert_eq!(server.connections(), 0);
}

async fn a_host_that_nobody_allowed(rig: &Rig) {
    let asked = [
        ("CONNECT unlisted.example:443", "unlisted.example", 443),
        ("GET http://unlisted.example/", "unlisted.example", 80),
        ("CONNECT localhost.unlisted.example:443", "localhost.unlisted.example", 443),
        ("CONNECT x.localhost:443", "x.localhost", 443),
    ];
    let back = refused(rig, &asked, "not_allowed").await;
    for ((_, text), (_, host, port)) in back.answers().into_iter().zip(asked) {
        let expected = format!(
            "blocked: {host}:{port} is not on the allow-list of profile model-only; \
             the person running this can allow it with --allow {host}\\n"
        );
        assert_eq!(text, expected);
    }
    let told = egress::render_summary(back.summary());
    let line = "blocked: unlisted.example, 2 times; allow with --allow unlisted.example";
    assert!(told.iter().any(|told| told == line), "{told:?}");
}

async fn a_registry_in_the_profile_without_registries(rig: &Rig) {
    let asked = [
        ("CONNECT registry.npmjs.org:443", "registry.npmjs.org", 443),
        ("CONNECT pypi.org:443", "pypi.org", 443),
    ];
    let back = refused(rig, &asked, "not_allowed").await;
    assert!(back.stdout.contains("--allow registry.npmjs.org"), "{}", back.stdout);
}

async fn an_odd_port(rig: &Rig) {
    let asked = [
        ("CONNECT localhost:8443", LOCALHOST, 8443),
        ("CONNECT localhost:25", LOCALHOST, 25),
        ("GET http://localhost:8080/", LOCALHOST, 8080),
    ];
    refused(rig, &asked, "port").await;
}

async fn the_port_of_ssh(rig: &Rig) {
    refused(rig, &[("CONNECT localhost:22", LOCALHOST, 22)], "port").await;
}

/// A service on the host's loopback, beside the one that is permitted.
async fn another_port_of_the_permitted_host(rig: &Rig) {
    let (server, other) = (Server::saying("hello"), Server::saying("a service of the host"));
    let port = other.port();
    let (tunnel, page) =
        (format!("CONNECT localhost:{port}"), format!("GET http://localhost:{port}/"));
    let back = asking(rig, &server, &[&tunnel, &page]).run_ok().await;
    back.all_refused(&[(LOCALHOST, port); 2], "port");
    assert_eq!((server.connections(), other.connections()), (0, 0));
}

/// The name is allowed, the port is for asking, and what it leads to is nobody's business outside. The box is not told
/// what that is; the log tells.
async fn an_allowed_name_that_leads_to_this_host(rig: &Rig) {
    let asked = [
        ("CONNECT localhost:80", LOCALHOST, 80),
        ("CONNECT localhost:443", LOCALHOST, 443),
        ("GET http://LOCALHOST./", "LOCALHOST.", 80),
    ];
    let back = refused(rig, &asked, "not_public").await;
    assert!(!back.stdout.contains("127.0.0.1") && !back.stdout.contains("::1"), "{}", back.stdout);
    let is_loopback = |address: std::net::SocketAddr| address.ip().is_loopback();
    assert!(back.log.iter().all(|entry| entry.address.is_some_and(is_loopback)), "{back:#?}");
}

async fn a_redirect_to_the_metadata(rig: &Rig) {
    let server = Server::start(|_, stream| {
        let to = "location: http://169.254.169.254/latest/meta-data/";
        stream.write_all(&whole("302 Found", &[to], "over there"))
    });
    let follow = r#"
        my ($status, $body, $head) = get($ARGV[0]);
        show($status, $body);
        my ($next) = $head =~ /^location: *(\S+)/mi;
        show(get($next));
    "#;
    let page = format!("http://localhost:{}/", server.port());
    let back = Outing::perl_with(rig, follow, &[&page]).reach(server.port()).run_ok().await;
    let answers = back.answers();
    assert_eq!(answers[0], (302, "over there"));
    assert_eq!(answers[1].0, 403);
    assert!(answers[1].1.starts_with("blocked: 169.254.169.254:80 "), "{answers:?}");
    assert_eq!(back.reasons(), ["", "ip_literal"]);
    assert_eq!(back.denied("169.254.169.254", "ip_literal"), 1);
}

/// Inside a tunnel to an allowed host somebody else is asked for, by the header and by the address.
async fn a_tunnel_as_a_way_to_another_host(rig: &Rig) {
    let server = Server::saying("hello");
    let script = r#"
        my $socket = tunnel("localhost:$ARGV[0]") or exit 1;
        put($socket, "GET / HTTP/1.1\r\nhost: other.example\r\n\r\n");
        show(answer($socket));
        put($socket, "GET http://169.254.169.254/ HTTP/1.1\r\nhost: localhost\r\n\r\n");
        show(answer($socket));
        put($socket, "CONNECT 169.254.169.254:80 HTTP/1.1\r\nhost: localhost\r\n\r\n");
        show(answer($socket));
    "#;
    let port = server.port().to_string();
    let back = Outing::perl_with(rig, script, &[&port]).reach(server.port()).run_ok().await;
    for (status, text) in back.answers() {
        assert_eq!(status, 403, "{text}");
        assert!(text.starts_with(&format!("blocked: localhost:{port} ")), "{text}");
    }
    let inside: Vec<_> = back.log.iter().filter(|entry| entry.kind == TrafficKind::Http).collect();
    assert_eq!(inside.len(), 3, "{back:#?}");
    assert_eq!(back.denied(LOCALHOST, "host_mismatch"), 3);
    assert!(server.seen().is_empty());
}

async fn a_scheme_that_is_not_http(rig: &Rig) {
    let asked = [
        ("GET https://localhost/", LOCALHOST, 443),
        ("GET ftp://unlisted.example/", "unlisted.example", 443),
    ];
    let back = refused(rig, &asked, "scheme").await;
    assert!(back.stdout.contains("open a tunnel with CONNECT instead"), "{}", back.stdout);
}

/// What cannot be read gets an answer and a line as well, and the proxy goes on.
async fn something_that_is_no_request(rig: &Rig) {
    let server = Server::saying("hello");
    let script = r#"
        for my $text ("\x05\x01\x00", "EHLO box\r\n\r\n", "GET  HTTP/9\r\n\r\n", "\x16\x03\x01\x00\x05hello") {
            my $socket = dial();
            put($socket, "$text\r\n\r\n");
            show(answer($socket));
        }
        show(get("http://localhost:$ARGV[0]/"));
    "#;
    let port = server.port().to_string();
    let back = Outing::perl_with(rig, script, &[&port]).reach(server.port()).run_ok().await;
    let answers = back.answers();
    assert!(answers[..4].iter().all(|(status, _)| *status == 400), "{answers:?}");
    assert_eq!(answers[4], (200, "hello"));
    assert_eq!(back.denied("(no host)", "bad_target"), 4);
}

async fn anything_in_profile_none(rig: &Rig) {
    let server = Server::saying("hello");
    let port = server.port();
    let asked = [format!("GET http://localhost:{port}/"), format!("CONNECT localhost:{port}")];
    let asked = asked.each_ref().map(String::as_str);
    let back = asking(rig, &server, &asked).profile(EgressProfile::None).run_ok().await;
    back.all_refused(&[(LOCALHOST, port); 2], "profile_none");
    assert_eq!(server.connections(), 0);
}
