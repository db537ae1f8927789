//! The `forge` command, in front of a socket that answers what it is told to, and in front of the real sidecar.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use forge::{Forge, ForgeOptions, Remote, Scope, ScopedForge};
use model::redact::Redactor;
use model::secret::Secret;
use sidecar::{CallLimits, CallLog, CallLogError, CallRecord, Dispatcher, DoneQueue};
use testkit::repo::Repo;

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

fn call(program: &Path, args: &[&str], stdin: &str) -> (Option<i32>, String, String) {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A call that needs no text ends without reading it, and may end first.
    let written = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    assert!(written.as_ref().err().is_none_or(|error| error.kind() == ErrorKind::BrokenPipe));
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
    let (status, stdout, stderr) = call(&program, &args, "On it.\n");
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
    let (status, stdout, stderr) = call(program, &args, "");
    assert_eq!((status, stdout.as_str()), (Some(3), ""));
    assert!(stderr.contains("out of scope"), "{stderr}");
    served.join().unwrap();
}

#[test]
fn without_a_sidecar_it_says_so() {
    let program = Path::new(env!("CARGO_BIN_EXE_bottle-guest"));
    let (status, _, stderr) = call(program, &["forge", "--socket", "/nowhere", "read-pr", "1"], "");
    assert_eq!(status, Some(1));
    assert!(stderr.contains("the forge cannot be reached"), "{stderr}");
    let (status, _, stderr) = call(program, &["forge", "dance"], "");
    assert_eq!(status, Some(2));
    assert!(stderr.contains("usage: forge"), "{stderr}");
}

/// The record, kept in memory.
#[derive(Default)]
struct Memory(Mutex<Vec<String>>);

impl CallLog for Memory {
    fn record(&self, entry: &CallRecord) -> Result<(), CallLogError> {
        self.0.lock().unwrap().push(entry.sentence.clone());
        Ok(())
    }
}

/// A sidecar in front of a local forge with two issues, the first of them assigned.
async fn start_dispatcher(dir: &Path) -> (Dispatcher, Arc<Memory>) {
    let bare = Repo::init_bare(dir.join("hooks.git"));
    let forge = {
        let remote = Remote::Local(bare.dir().display().to_string());
        Forge::open(&remote, &Secret::new(""), &ForgeOptions::default()).await.unwrap()
    };
    let Forge::Folder(local) = &forge else { panic!("it is a folder") };
    for title in ["Do it", "Not yours"] {
        local.add_issue(title, "What is wanted.", &[], &[]).await.unwrap();
    }
    std::fs::create_dir(dir.join("queue")).unwrap();
    let (redactor, memory) = (Arc::new(Redactor::new([])), Arc::new(Memory::default()));
    let scope = Scope { issue: 1, pulls: BTreeSet::new() };
    let scoped = ScopedForge::new(forge, scope, Arc::clone(&redactor));
    let call_log: Arc<dyn CallLog> = Arc::<Memory>::clone(&memory);
    let queue = DoneQueue::open(&dir.join("queue"), "app_1").unwrap();
    (Dispatcher::new(Arc::new(scoped), call_log, queue, redactor, CallLimits::default()), memory)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_reads_comments_and_says_that_it_is_done() {
    let dir = tempfile::tempdir().unwrap();
    let (dispatcher, memory) = start_dispatcher(dir.path()).await;
    let socket = dir.path().join("forge.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    tokio::spawn(sidecar::serve(listener, Arc::new(dispatcher), std::future::pending()));
    let run = async |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let socket = socket.to_str().unwrap().to_owned();
        let calling = tokio::task::spawn_blocking(move || {
            let program = Path::new(env!("CARGO_BIN_EXE_bottle-guest"));
            let mut args = vec!["forge", "--socket", &socket];
            args.extend(words.iter().map(String::as_str));
            call(program, &args, "from a pipe")
        });
        calling.await.unwrap()
    };
    let (status, issue, _) = run(&["read-issue", "1"]).await;
    assert_eq!(status, Some(0));
    assert!(issue.contains("\"title\": \"Do it\""), "{issue}");
    assert_eq!(run(&["comment", "1"]).await.0, Some(0));
    let (_, comments, _) = run(&["comments", "1"]).await;
    assert!(comments.contains("from a pipe"), "{comments}");
    let (status, _, stderr) = run(&["comment", "2", "mine"]).await;
    assert_eq!(status, Some(3));
    assert!(stderr.contains("refused comment to #2: out of scope"), "{stderr}");
    assert_eq!(run(&["done", "success", "It", "works."]).await.0, Some(0));
    let events = sidecar::load_events(&dir.path().join("queue")).unwrap();
    assert_eq!(events[0].1.summary, "It works.");
    assert_eq!(memory.0.lock().unwrap().last().unwrap(), "signalled done: success");
}
