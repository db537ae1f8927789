//! A running `bot-bottle serve`, and Markdown for its metrics and its API.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::Value;
use testkit::repo::Repo;

use crate::docs::place::Place;

pub(super) struct Served {
    address: SocketAddr,
    child: Child,
    /// Keeps the pipe open that it writes to.
    _events: BufReader<ChildStdout>,
    _place: Place,
}

impl Served {
    /// Starts it in a home with a run, beside a folder with one repository as the forge, on a port that the kernel chooses.
    pub(super) fn start() -> Self {
        let place = Place::new("bottle");
        let forge = place.home().join("forge");
        Repo::init_bare(forge.join("me/app.git"));
        let text = format!(
            "listen = \"127.0.0.1:0\"\n[[forge]]\nkind = \"folder\"\nurl = \"file://{}\"\nrepos = [\"me/app\"]\n",
            forge.display()
        );
        let config = place.home().join("serve.toml");
        std::fs::write(&config, text).expect("written");
        let mut command = place.command(env!("CARGO_BIN_EXE_bottleworks"));
        command.args(["bot-bottle", "serve", "--json", "--config"]).arg(&config);
        let log = std::fs::File::create(place.home().join("log")).expect("a log");
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().expect("it starts");
        let mut events = BufReader::new(child.stdout.take().expect("a pipe"));
        let address = await_address(&mut events);
        Self { address, child, _events: events, _place: place }
    }

    pub(super) fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        let request = format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.contains(" 200 "), "{head}");
        body.to_owned()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Reads events until the one that says where it listens. They end if it does not start.
fn await_address(events: &mut BufReader<ChildStdout>) -> SocketAddr {
    let mut seen = String::new();
    loop {
        let mut line = String::new();
        let length = events.read_line(&mut line).expect("an event");
        assert!(length > 0, "it does not listen: {seen}");
        let event: Value = serde_json::from_str(&line).unwrap_or_default();
        if event["event"] == "listening" {
            let address = event["address"].as_str().expect("an address");
            return address.parse().expect("an address");
        }
        seen += &line;
    }
}

pub(super) fn render_metrics(answer: &str) -> String {
    let mut text =
        "What `/metrics` of `bot-bottle serve` answers, in the text format of Prometheus.\n\n\
                    | metric | type | label | meaning |\n|---|---|---|---|\n"
            .to_owned();
    for line in answer.lines() {
        let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|it| it.split_once(' '))
        else {
            continue;
        };
        let kind = answer.lines().find_map(|it| it.strip_prefix(&format!("# TYPE {name} ")));
        let label = answer.lines().find_map(|it| it.strip_prefix(&format!("{name}{{")));
        let label = label.and_then(|it| it.split_once('=')).map(|(label, _)| format!("`{label}`"));
        let label = label.unwrap_or_default();
        writeln!(text, "| `{name}` | {} | {label} | {help} |", kind.unwrap_or_default()).ok();
    }
    text
}

pub(super) fn render_api(answer: &str) -> String {
    let document: Value = serde_json::from_str(answer).expect("JSON");
    let mut text = "From the OpenAPI document that is served at `/api/v1/openapi.json`, which has the fields of every answer.\n\n\
                    | request | parameters | what it does |\n|---|---|---|\n"
        .to_owned();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let names: Vec<String> = parameters
                .filter_map(|it| it["name"].as_str())
                .map(|name| format!("`{name}`"))
                .collect();
            let what = operation["summary"].as_str().or(operation["description"].as_str());
            let what = what.unwrap_or_default().replace('|', "\\|").replace('\n', " ");
            let method = method.to_uppercase();
            writeln!(text, "| `{method} {path}` | {} | {what} |", names.join(", ")).ok();
        }
    }
    text
}
