//! Too much of everything: connections, headers that never end, uploads, refused requests.

use egress::record::EgressVerdict;

use crate::outing::{LOCALHOST, Outing};
use crate::server::Server;
use crate::support::{Rig, on_every_backend};

on_every_backend! {
    three_hundred_connections_at_once,
    three_hundred_connections_that_say_nothing,
    dead_connections_that_are_kept_shut_the_box_in,
    three_hundred_connections_past_the_relay,
    a_header_that_never_ends,
    an_upload_above_the_cap,
    an_upload_above_the_cap_in_a_tunnel,
    a_download_above_the_cap,
    a_flood_of_refused_requests,
    more_requests_than_a_run_may_make,
}

/// All of them are answered in the end, and so is the next one.
async fn three_hundred_connections_at_once(rig: &Rig) {
    let server = Server::saying("hello");
    let script = r#"
        my @sockets = map { dial() } 1 .. 300;
        put($_, request("GET", "http://localhost:$ARGV[0]/", "", "connection: close")) for @sockets;
        my %count;
        for (@sockets) { my ($status) = answer($_); $count{$status}++; close $_ }
        print join(" ", map { "$_=$count{$_}" } sort keys %count), "\n";
        show(get("http://localhost:$ARGV[0]/"));
    "#;
    let port = server.port().to_string();
    let back = Outing::perl_with(rig, script, &[&port]).reach(server.port()).run_ok().await;
    assert_eq!(back.stdout, "200=300\n200 hello\n", "{back:#?}");
    assert_eq!(back.summary().totals.allowed, 301);
}

/// They take every place that there is until their time for a first word is over. Whoever closes what was hung up on
/// gets on.
async fn three_hundred_connections_that_say_nothing(rig: &Rig) {
    let server = Server::saying("hello");
    let script = r#"
        my @sockets = map { dial() } 1 .. 300;
        for (@sockets) { print "0 it was given $kept{$_}\n" if more($_); close $_ }
        show(get("http://localhost:$ARGV[0]/"));
    "#;
    let port = server.port().to_string();
    let outing = Outing::perl_with(rig, script, &[&port]).reach(server.port());
    let back = outing.limits(|limits| limits.header_secs = 2).run_ok().await;
    assert_eq!(back.answer(), (200, "hello"), "{back:#?}");
    assert_eq!(back.denied("(no host)", "bad_target"), 300);
    assert_eq!(back.summary().totals.unlogged, 0);
}

/// The guest's relay keeps the place of a connection that the host has ended until the box has ended it too. A program
/// that never does shuts the whole box in: harmless for the host, and not as it should be.
async fn dead_connections_that_are_kept_shut_the_box_in(rig: &Rig) {
    let server = Server::saying("hello");
    let script = r#"
        my @sockets = map { dial() } 1 .. 256;
        more($_) for @sockets;
        my $socket = dial();
        put($socket, request("GET", "http://localhost:$ARGV[0]/", ""));
        my $bits = ""; vec($bits, fileno($socket), 1) = 1;
        print "0 no answer\n" unless select($bits, undef, undef, 3);
        close $_ for @sockets;
        show(answer($socket));
    "#;
    let port = server.port().to_string();
    let outing = Outing::perl_with(rig, script, &[&port]).reach(server.port());
    let back = outing.limits(|limits| limits.header_secs = 1).run_ok().await;
    assert_eq!(back.answers(), [(0, "no answer"), (200, "hello")], "{back:#?}");
}

/// The socket itself is in the box, and whoever uses it meets the proxy's own limit.
async fn three_hundred_connections_past_the_relay(rig: &Rig) {
    let server = Server::saying("hello");
    let script = r#"
        my @sockets = map {
            socket(my $socket, AF_UNIX, SOCK_STREAM, 0) or die "no socket: $!\n";
            connect($socket, pack_sockaddr_un("/harness-state/run/egress.sock")) or die "no proxy: $!\n";
            $kept{$socket} = "";
            $socket;
        } 1 .. 300;
        my @taken = @sockets[0 .. 255];
        show(answer($_)) for @sockets[256 .. 299];
        put($_, request("GET", "http://localhost:$ARGV[0]/", "", "connection: close")) for @taken;
        show(answer($_)) for @taken;
        close $_ for @sockets;
        show(get("http://localhost:$ARGV[0]/"));
    "#;
    let port = server.port().to_string();
    let back = Outing::perl_with(rig, script, &[&port]).reach(server.port()).run_ok().await;
    let answers = back.answers();
    let told = "blocked: this run has too many connections open; close some of them";
    assert!(answers[..44].iter().all(|answer| *answer == (503, told)), "{answers:?}");
    assert!(answers[44..].iter().all(|answer| *answer == (200, "hello")), "{answers:?}");
    assert_eq!((answers.len(), back.summary().totals.allowed), (301, 257));
    assert_eq!((back.summary().totals.unlogged, back.summary().complete), (44, false));
}

async fn a_header_that_never_ends(rig: &Rig) {
    let server = Server::saying("hello");
    let script = r#"
        my $socket = dial();
        put($socket, "GET http://localhost:$ARGV[0]/ HTTP/1.1\r\n");
        my $begun = time;
        while (time - $begun < 20) {
            put($socket, "x: y\r\n") or last;
            my $bits = ""; vec($bits, fileno($socket), 1) = 1;
            select($bits, undef, undef, 0.1) or next;
            last unless more($socket);
        }
        my $patience = time - $begun;
        print $patience < 10 ? "200 cut off\n" : "0 still there after $patience s\n";
        show(get("http://localhost:$ARGV[0]/"));
    "#;
    let port = server.port().to_string();
    let outing = Outing::perl_with(rig, script, &[&port]).reach(server.port());
    let back = outing.limits(|limits| limits.header_secs = 2).run_ok().await;
    assert_eq!(back.answers(), [(200, "cut off"), (200, "hello")], "{back:#?}");
    assert_eq!(back.denied("(no host)", "bad_target"), 1);
}

async fn an_upload_above_the_cap(rig: &Rig) {
    let server = Server::saying("thanks");
    let page = format!("http://localhost:{}/", server.port());
    let script = "show(post($ARGV[0], 'y' x 2_000_000)); show(get($ARGV[0]))";
    let outing = Outing::perl_with(rig, script, &[&page]).reach(server.port());
    let back = outing.limits(|limits| limits.bytes_up = 100_000).run_ok().await;
    for (status, text) in back.answers() {
        assert_eq!(status, 403, "{text}");
        assert!(text.contains("this run may send 100000 bytes in all"), "{text}");
        assert!(text.contains("the person running this can raise the limit"), "{text}");
    }
    assert_eq!(back.denied(LOCALHOST, "upload_cap"), 2);
    assert!(back.summary().totals.bytes_up <= 100_000, "{:?}", back.summary());
    assert!(server.seen().is_empty(), "half a request is none");
}

async fn an_upload_above_the_cap_in_a_tunnel(rig: &Rig) {
    let echo = Server::echo(crate::server::free_port());
    let script = r#"
        my $socket = tunnel("localhost:$ARGV[0]") or exit 1;
        my $child = fork;
        if (!$child) { put($socket, pack("H*", $ARGV[1]) . "x" x 3_000_000); shutdown($socket, 1); exit 0 }
        my $heard = length rest($socket);
        waitpid($child, 0);
        print $heard <= 100_000 ? "200 cut off\n" : "0 $heard bytes went through\n";
        tunnel("localhost:$ARGV[0]") and print "200 another tunnel\n";
    "#;
    let hello = crate::hello::greeting(&[LOCALHOST]);
    let hello: String = hello.iter().map(|byte| format!("{byte:02x}")).collect();
    let port = echo.port().to_string();
    let outing = Outing::perl_with(rig, script, &[&port, &hello]).reach(echo.port());
    let back = outing.limits(|limits| limits.bytes_up = 100_000).run_ok().await;
    let answers = back.answers();
    assert_eq!((answers[0], answers[1].0), ((200, "cut off"), 403), "{back:#?}");
    assert_eq!(back.denied(LOCALHOST, "upload_cap"), 2);
    assert!(echo.received().len() <= 100_000, "{}", echo.received().len());
}

async fn a_download_above_the_cap(rig: &Rig) {
    let long: &'static str = "z".repeat(2_000_000).leak();
    let server = Server::saying(long);
    let script = r#"
        my ($status, $body) = get($ARGV[0]);
        print length $body <= 300_000 ? "$status cut off\n" : "0 too much\n";
        show(get($ARGV[0]));
    "#;
    let page = format!("http://localhost:{}/", server.port());
    let outing = Outing::perl_with(rig, script, &[&page]).reach(server.port());
    let back = outing.limits(|limits| limits.bytes_down = 300_000).run_ok().await;
    let answers = back.answers();
    assert_eq!((answers[0], answers[1].0), ((200, "cut off"), 403), "{back:#?}");
    assert_eq!(back.denied(LOCALHOST, "download_cap"), 2);
}

/// Two thousand, for fifty hosts, over twenty connections.
async fn a_flood_of_refused_requests(rig: &Rig) {
    let script = r#"
        my %count;
        for my $connection (1 .. 20) {
            my $socket = dial();
            for my $number (1 .. 100) {
                my $host = "h" . ($number % 50) . ".example";
                put($socket, $number % 2 ? request("GET", "http://$host/", "")
                    : "CONNECT $host:443 HTTP/1.1\r\nhost: $host\r\n\r\n");
                my ($status, $text) = answer($socket);
                $socket = dial() if $status == 0;
                $count{$status . ($text =~ /--allow $host\n/ ? " told" : "")}++;
            }
        }
        print join(" ", map { "$_=$count{$_}" } sort keys %count), "\n";
    "#;
    let back = Outing::perl(rig, script).run_ok().await;
    assert_eq!(back.stdout, "403 told=2000\n", "{}", back.stdout);
    assert_eq!(back.log.len(), 2000);
    let summary = back.summary();
    assert_eq!((summary.totals.denied, summary.totals.unlogged), (2000, 0));
    assert_eq!((summary.denials.len(), summary.per_host.len()), (50, 50));
    assert!(summary.denials.iter().all(|denial| denial.count == 40), "{summary:?}");
    assert!(summary.complete);
}

async fn more_requests_than_a_run_may_make(rig: &Rig) {
    let script = r#"show(get("http://unlisted.example/")) for 1 .. 20"#;
    let outing = Outing::perl(rig, script).limits(|limits| limits.requests = 5);
    let back = outing.run_ok().await;
    assert_eq!(back.log.len(), 5);
    assert!(back.log.iter().all(|entry| entry.verdict == EgressVerdict::Denied));
    let last = back.answers()[19];
    assert_eq!(last.0, 403);
    assert!(last.1.contains("this run may make 5 requests in all"), "{last:?}");
    assert_eq!((back.summary().totals.unlogged, back.summary().complete), (15, false));
}
