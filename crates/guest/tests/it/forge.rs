//! The `forge` command, in front of a socket that answers what it is told to.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

/// Takes one request, answers it with `answer`, and gives the request back.
fn serve(socket: &Path, answer: &'static str) -> JoinHandle<String> {
    let listener = UnixListener::bind(socket).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = String::new();
        let mut bytes = [0; 4096];
        while !request.ends_with('}') {
            let count = stream.read(&mut bytes).unwrap();
            request.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", answer.len());
        stream.write_all((head + answer).as_bytes()).unwrap();
        request
    })
}

fn forge(program: &Path, args: &[&str], stdin: &str) -> (Option<i32>, String, String) {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_call_is_sent_and_its_result_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("forge.sock");
    // Under its other name, as it lies in the path of a box.
    let program = dir.path().join("forge");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_bottle-guest"), &program).unwrap();
    let served = serve(&socket, r#"{"jsonrpc":"2.0","id":1,"result":{"title":"Do it"}}"#);
    let args = ["--socket", socket.to_str().unwrap(), "comment", "3"];
    let (status, stdout, stderr) = forge(&program, &args, "On it.\n");
    assert_eq!((status, stdout.as_str()), (Some(0), "{\n  \"title\": \"Do it\"\n}\n"), "{stderr}");
    let request = served.join().unwrap();
    let body: serde_json::Value =
        serde_json::from_str(request.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(body["method"], "post_comment");
    assert_eq!(body["params"], serde_json::json!({ "number": 3, "body": "On it.\n" }));
}

#[test]
fn a_refusal_has_a_status_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("forge.sock");
    let served = serve(&socket, r#"{"id":1,"error":{"code":-32001,"message":"out of scope"}}"#);
    let program = Path::new(env!("CARGO_BIN_EXE_bottle-guest"));
    let args = ["forge", "--socket", socket.to_str().unwrap(), "comment", "12", "hello"];
    let (status, stdout, stderr) = forge(program, &args, "");
    assert_eq!((status, stdout.as_str()), (Some(3), ""));
    assert!(stderr.contains("out of scope"), "{stderr}");
    served.join().unwrap();
}

#[test]
fn without_a_sidecar_it_says_so() {
    let program = Path::new(env!("CARGO_BIN_EXE_bottle-guest"));
    let (status, _, stderr) =
        forge(program, &["forge", "--socket", "/nowhere", "read-pr", "1"], "");
    assert_eq!(status, Some(1));
    assert!(stderr.contains("the forge cannot be reached"), "{stderr}");
    let (status, _, stderr) = forge(program, &["forge", "dance"], "");
    assert_eq!(status, Some(2));
    assert!(stderr.contains("usage: forge"), "{stderr}");
}
