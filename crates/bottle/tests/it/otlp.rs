//! Spans of runs reach an OpenTelemetry collector, in a program that was built for it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::time::Duration;

use crate::serving::Serving;
use crate::support::{COMMIT, DONE, Scene};

/// Takes one delivery after the other; each is its path and its bytes.
fn collect(listener: TcpListener, sender: mpsc::Sender<(String, Vec<u8>)>) {
    for stream in listener.incoming().map_while(Result::ok) {
        let mut reader = BufReader::new(stream);
        let (mut first, mut length) = (String::new(), 0);
        reader.read_line(&mut first).expect("a request");
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a head");
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("a body");
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        reader.get_mut().write_all(answer.as_bytes()).expect("answered");
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        if sender.send((path, body)).is_err() {
            return;
        }
    }
}

#[test]
fn the_span_of_a_run_reaches_the_collector() {
    let Some(scene) = Scene::new() else { return };
    scene.person.script(&format!("{COMMIT}{DONE}"));
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || collect(listener, sender));
    let lines = format!("sweep_secs = 3600\notlp_url = \"{url}\"\n");
    let serving = Serving::start(scene, &lines);
    serving.label();
    serving.wait("frozen");
    let (path, body) = receiver.recv_timeout(Duration::from_secs(300)).expect("spans");
    let text = String::from_utf8_lossy(&body);
    assert_eq!(path, "/v1/traces");
    for word in ["bot-bottle", "work", "issue"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}
