//! The only way out of a box: loopback ports that lead to sockets of the host.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::thread;

use model::verdict::Ended;
use sandbox::spec::{BoxRelay, BoxSpec};

use crate::support::{Rig, on_every_backend};

on_every_backend! {
    a_socket_of_the_host_is_reached_by_its_port,
    a_port_without_a_socket_hangs_up,
    the_socket_cannot_be_replaced_from_inside,
    a_port_that_was_not_given_is_closed,
    a_box_in_which_something_answers_is_not_started,
}

const SOCKET: &str = "egress.sock";
const PORT: &str = "127.0.0.1:3128";

/// Says a word to a port and prints what comes back.
const ASK: &str = r#"
use strict; use Socket;
my ($port, $word) = @ARGV;
socket(my $socket, AF_INET, SOCK_STREAM, 0) or die;
connect($socket, pack_sockaddr_in($port, inet_aton("127.0.0.1"))) or do { print "refused\n"; exit };
$SIG{PIPE} = "IGNORE";
syswrite($socket, $word); shutdown($socket, 1);
my $answer = ""; while (sysread($socket, my $part, 100)) { $answer .= $part }
print "answer: $answer\n";
"#;

async fn a_socket_of_the_host_is_reached_by_its_port(rig: &Rig) {
    let sh = rig.sh("perl -e \"$ASK\" 3128 ping; perl -e \"$ASK\" 3128 pong").env("ASK", ASK);
    let sh = sh.with(add_relay);
    serve(&sh.spec);
    let ran = sh.run_ok().await;
    assert_eq!(ran.stdout, "answer: gnip\nanswer: gnop\n");
}

async fn a_port_without_a_socket_hangs_up(rig: &Rig) {
    let ran = rig.argv(&["perl", "-e", ASK, "3128", "ping"]).with(add_relay).run_ok().await;
    assert_eq!(ran.stdout, "answer: \n");
}

async fn the_socket_cannot_be_replaced_from_inside(rig: &Rig) {
    let script = "cd /harness-state/run || exit 1; \
        rm -f egress.sock 2>/dev/null && echo removed; mv egress.sock other 2>/dev/null && echo moved; \
        ln -sf /tmp/mine egress.sock 2>/dev/null && echo linked; chmod 600 egress.sock 2>/dev/null && echo changed; \
        cd ..; mv run gone 2>/dev/null && echo moved; rm -rf run 2>/dev/null && echo removed; \
        perl -e \"$ASK\" 3128 ping";
    let sh = rig.sh(script).env("ASK", ASK).with(add_relay);
    serve(&sh.spec);
    let socket = sh.spec.guest_dir().join(SOCKET);
    let before = fs::symlink_metadata(&socket).expect("the socket");
    let ran = sh.run_ok().await;
    assert_eq!(ran.stdout, "answer: gnip\n");
    let after = fs::symlink_metadata(&socket).expect("the socket");
    assert_eq!((before.ino(), before.mode()), (after.ino(), after.mode()));
}

async fn a_port_that_was_not_given_is_closed(rig: &Rig) {
    let ran = rig.argv(&["perl", "-e", ASK, "3128", "ping"]).run_ok().await;
    assert_eq!(ran.stdout, "refused\n");
}

/// A refusal is an answer too: somebody is there. What must not be reached must be silent.
async fn a_box_in_which_something_answers_is_not_started(rig: &Rig) {
    let sh = rig.sh("echo ran; : >ran").with(add_relay);
    let sh = sh.with(|spec| spec.probe_addresses = vec![PORT.parse().expect("an address")]);
    serve(&sh.spec);
    let ran = sh.run().await;
    let Ended::Infra { reason } = &ran.record.ended else { panic!("{ran:#?}") };
    assert!(reason.contains("address: 127.0.0.1:3128"), "{reason}");
    assert!(!ran.record.report.as_ref().expect("a report").ready, "{ran:#?}");
    assert_eq!(ran.stdout, "");
    assert!(!rig.workspace().join("ran").exists());
}

fn add_relay(spec: &mut BoxSpec) {
    let listen = PORT.parse().expect("an address");
    spec.relays.push(BoxRelay { listen, socket: SOCKET.to_owned() });
}

/// Serves the socket of a box that is still to be started: what is said comes back backwards.
fn serve(spec: &BoxSpec) {
    fs::create_dir_all(spec.guest_dir()).expect("the guest folder");
    let path = spec.guest_dir().join(SOCKET);
    let listener = UnixListener::bind(&path).expect("a socket");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("open to all");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut said = Vec::new();
            stream.read_to_end(&mut said).expect("a word");
            said.reverse();
            stream.write_all(&said).expect("an answer");
            // The box may have gone, which is no concern of ours.
            drop(stream.shutdown(Shutdown::Both));
        }
    });
}
