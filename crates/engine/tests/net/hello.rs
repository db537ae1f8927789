//! Port 443, where the first words must be a TLS greeting for the very host that was asked for.
//!
//! These need that port on this host's loopback, because no other one counts as 443. Where it cannot be had, they say
//! so by name.

use std::fs::File;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::time::Duration;

use testkit::part::missing;

use crate::outing::{Back, LOCALHOST, Outing};
use crate::server::Server;
use crate::support::{Rig, on_every_backend};

on_every_backend! {
    the_right_greeting_goes_through,
    a_greeting_for_another_host_is_cut_off,
    a_greeting_without_a_name_is_cut_off,
    a_greeting_with_two_names_is_cut_off,
    a_plain_request_is_cut_off,
    another_protocol_is_cut_off,
}

/// Says the bytes of its argument in a tunnel, and prints what comes back until the other side ends it. A greeting that
/// comes back whole is answer enough.
const SAY: &str = r#"
    my $said = pack("H*", $ARGV[0]);
    my $socket = tunnel("localhost:443") or exit 1;
    put($socket, $said);
    until ($kept{$socket} eq $said) { more($socket) or last }
    print unpack("H*", $kept{$socket}), "\n";
"#;

/// A fatal alert, "access denied".
const ALERT: &str = "15030300020231";

/// Takes the turn on port 443: one test at a time has it, in whichever process.
async fn take_turn() -> File {
    let path = std::env::temp_dir().join("bottleworks-test-port-443");
    let lock = move || {
        let file = File::options().create(true).append(true).open(path).expect("a lock file");
        file.lock().expect("the lock");
        file
    };
    tokio::task::spawn_blocking(lock).await.expect("the lock")
}

/// An echo on port 443 of loopback, with the right to be the only one.
async fn echo() -> Option<(File, Server)> {
    let turn = take_turn().await;
    for _ in 0..100 {
        match TcpListener::bind((LOCALHOST, 443)) {
            Ok(listener) => return Some((turn, Server::echo(listener))),
            // Another suite on this machine may be at it.
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            Err(_) => break,
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    missing("port_443", "run as root, with port 443 of loopback free");
    None
}

async fn say(rig: &Rig, bytes: &[u8]) -> Back {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Outing::perl_with(rig, SAY, &[&hex]).reach(443).run_ok().await
}

/// Says something that must reach nobody; what the box hears instead.
async fn cut_off(rig: &Rig, bytes: &[u8], reason: &str) -> Option<Vec<u8>> {
    let (_turn, echo) = echo().await?;
    let back = say(rig, bytes).await;
    assert_eq!(back.reasons(), [reason], "{back:#?}");
    assert_eq!(back.denied(LOCALHOST, reason), 1);
    assert_eq!((back.log[0].bytes_up, back.log[0].bytes_down), (0, 0));
    assert_eq!(echo.received(), b"", "nothing may reach the other side");
    let hex = back.stdout.trim();
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("a byte");
    Some((0..hex.len()).step_by(2).map(byte).collect())
}

async fn the_right_greeting_goes_through(rig: &Rig) {
    let Some((_turn, echo)) = echo().await else { return };
    let hello = greeting(&["LocalHost"]);
    let back = say(rig, &hello).await;
    assert_eq!(back.reasons(), [""], "{back:#?}");
    assert_eq!(back.summary().totals.allowed, 1);
    assert_eq!(echo.received(), hello);
    let size = hello.len() as u64;
    assert_eq!((back.log[0].bytes_up, back.log[0].bytes_down), (size, size));
}

async fn a_greeting_for_another_host_is_cut_off(rig: &Rig) {
    let Some(heard) = cut_off(rig, &greeting(&["fronted.example"]), "sni_mismatch").await else {
        return;
    };
    assert_eq!(heard.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), ALERT);
}

async fn a_greeting_without_a_name_is_cut_off(rig: &Rig) {
    cut_off(rig, &greeting(&[]), "no_sni").await;
}

async fn a_greeting_with_two_names_is_cut_off(rig: &Rig) {
    cut_off(rig, &greeting(&[LOCALHOST, "fronted.example"]), "not_tls").await;
}

async fn a_plain_request_is_cut_off(rig: &Rig) {
    let request = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let Some(heard) = cut_off(rig, request, "not_tls").await else { return };
    let heard = String::from_utf8(heard).expect("text");
    assert!(
        heard.starts_with("HTTP/1.1 403 ") && heard.contains("blocked: localhost:443 "),
        "{heard}"
    );
}

async fn another_protocol_is_cut_off(rig: &Rig) {
    cut_off(rig, b"SSH-2.0-OpenSSH_9.9\r\n", "not_tls").await;
}

/// The first words of a TLS client, with these server names, each in an extension of its own.
pub(crate) fn greeting(names: &[&str]) -> Vec<u8> {
    let sized = |bytes: &[u8]| {
        let length = u16::try_from(bytes.len()).expect("a short field").to_be_bytes();
        [&length, bytes].concat()
    };
    let extension = |name: &&str| {
        let entry = [&[0], &sized(name.as_bytes())[..]].concat();
        [&[0, 0], &sized(&sized(&entry))[..]].concat()
    };
    let extensions: Vec<u8> = names.iter().flat_map(extension).collect();
    let front = [&[3, 3][..], &[7; 32], &[0], &[0, 2, 0x13, 1], &[1, 0]].concat();
    let body = [front, sized(&extensions)].concat();
    let message = [&[1, 0], &sized(&body)[..]].concat();
    [&[22, 3, 1], &sized(&message)[..]].concat()
}
