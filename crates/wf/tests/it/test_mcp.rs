//! `wf mcp`: the protocol by hand, and real clients.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};
use testkit::part::{Part, require, require_folder};
use testkit::wait::wait_for;

use crate::play::{APPROVE, GOOD, person_with_one};
use crate::support::{ONE, Person, write};

/// A client that speaks JSON-RPC, a line for each message.
struct RawClient {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl RawClient {
    /// Starts a server and shakes hands.
    fn start(person: &Person) -> Self {
        let mut command = person.command(&["mcp"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("wf starts");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
        let mut client = Self { child, input, output: BufReader::new(output), next: 0 };
        let hello = client.ask(
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}),
        );
        assert_eq!(hello["result"]["serverInfo"]["name"], "wf", "{hello}");
        assert!(hello["result"]["capabilities"]["tools"].is_object(), "{hello}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("an open pipe");
        writeln!(input, "{message}").expect("written");
        input.flush().expect("sent");
    }

    /// Status and standard error of a server that ended too early.
    fn last_words(&mut self) -> String {
        drop(self.input.take());
        let status = self.child.wait().expect("an exit");
        let mut text = String::new();
        let error = self.child.stderr.take().expect("a pipe");
        BufReader::new(error).read_to_string(&mut text).expect("text");
        format!("{status}: {text}")
    }

    /// Sends a request and returns the response with its id.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            let length = self.output.read_line(&mut line).expect("a line");
            assert_ne!(length, 0, "the server ended: {}", self.last_words());
            let message: Value =
                serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            if message["id"] == id {
                return message;
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))["result"].clone()
    }

    /// The structured result of a call that must succeed.
    #[track_caller]
    fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{result:#}");
        // Clients without structured results read the same as text.
        let text = result["content"][0]["text"].as_str().expect("text");
        assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), result["structuredContent"]);
        result["structuredContent"].clone()
    }

    /// Closes standard input; the server ends by itself with success.
    fn end(mut self) {
        drop(self.input.take());
        assert_eq!(self.child.wait().expect("it ends").code(), Some(0));
    }
}

#[test]
fn tools_have_schemas_and_none_merges_or_deletes() {
    let person = Person::with_plan(ONE);
    let mut client = RawClient::start(&person);
    let tools = client.ask("tools/list", json!({}))["result"]["tools"].clone();
    let lines: Vec<String> = tools
        .as_array()
        .expect("a list")
        .iter()
        .map(|tool| {
            let schema = &tool["inputSchema"];
            assert_eq!(schema["type"], "object", "{tool}");
            let names = schema["properties"].as_object().into_iter().flat_map(|it| it.keys());
            let names: Vec<&str> = names.map(String::as_str).collect();
            let reads = tool["annotations"]["readOnlyHint"] == true;
            format!(
                "{} ({}){}",
                tool["name"].as_str().expect("a name"),
                names.join(", "),
                if reads { " reads" } else { "" }
            )
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    list (all) reads
    show (workstream) reads
    create (base, id, paths, title)
    plan_add (acceptance, text, title, workstream)
    plan_draft (story, workstream)
    plan_accept (workstream)
    run (guidance, loop, rounds, wait, workstream)
    questions (workstream) reads
    answer (answer, question, workstream)
    diff (last_run, workstream) reads
    ");
    client.end();
}

#[test]
fn a_client_creates_plans_and_reads() {
    let person = Person::with_plan(ONE);
    let mut client = RawClient::start(&person);
    let made = client
        .ok("create", json!({"id": "login", "title": "Log in", "paths": ["src/auth", "docs"]}));
    assert_eq!(made["result"]["id"], "login", "{made:#}");
    let added = client.ok(
        "plan_add",
        json!({"workstream": "login", "title": "Add a form", "acceptance": ["it is shown"]}),
    );
    assert_eq!(added["result"]["commit"], "COMMIT-LOGIN-001", "{added:#}");
    let list = client.ok("list", json!({}));
    let ids: Vec<&str> = list["result"]
        .as_array()
        .expect("rows")
        .iter()
        .filter_map(|row| row["meta"]["id"].as_str())
        .collect();
    assert_eq!(ids, ["login", "tf"]);
    let shown = client.ok("show", json!({"workstream": "login"}));
    assert_eq!(shown["result"]["plan"]["commits"][0]["title"], "Add a form", "{shown:#}");
    person.worktree("login").write("src/auth/a", "x\n").commit("COMMIT-LOGIN-001: a");
    let diff = client.ok("diff", json!({"workstream": "login"}));
    assert!(diff["result"]["diff"].as_str().expect("text").contains("+x"), "{diff:#}");
    person.question("tf", "CLQ-001", "blocking");
    assert_eq!(client.ok("questions", json!({}))["result"][0]["workstream"], "tf");
    client.ok("answer", json!({"question": "CLQ-001", "answer": "1"}));
    assert_eq!(client.ok("questions", json!({}))["result"], json!([]));
    client.end();
}

#[test]
fn errors_name_the_remedy() {
    let person = Person::with_plan(ONE);
    write(&person.ops().join("secrets/env.sh"), "MY_TOKEN=topsecretvalue123\n");
    let mut client = RawClient::start(&person);
    let wrong = [
        ("show", json!({"workstream": "tg"})),
        ("show", json!({})),
        ("create", json!({"id": "tf", "title": "Again"})),
        ("run", json!({"workstream": "tf", "rounds": 0})),
        ("plan_accept", json!({"workstream": "tf"})),
        ("answer", json!({"question": "CLQ-009", "answer": "topsecretvalue123"})),
    ];
    let mut said = String::new();
    for (tool, arguments) in wrong {
        let result = client.call(tool, arguments.clone());
        assert_eq!(result["isError"], true, "{result:#}");
        let reply = &result["structuredContent"];
        said.push_str(&format!(
            "{tool} {arguments}\n  {}\n",
            reply["error"].as_str().expect("an error").trim().replace('\n', "\n  ")
        ));
    }
    let unknown = client.ask("tools/call", json!({"name": "merge", "arguments": {}}));
    said.push_str(&format!(
        "merge\n  {}\n",
        unknown["error"]["message"].as_str().expect("an error")
    ));
    insta::assert_snapshot!(said, @r#"
    show {"workstream":"tg"}
      there is no workstream 'tg'; see: wf list
    show {}
      the arguments of show are wrong: missing field `workstream`; its schema says what they are
    create {"id":"tf","title":"Again"}
      the workstream tf exists already; see: wf status tf
    run {"rounds":0,"workstream":"tf"}
      invalid value '0' for '--rounds <N>': 0 is not in 1..=20
    plan_accept {"workstream":"tf"}
      there is no draft; create one: wf plan --from STORY
    answer {"answer":"topsecretvalue123","question":"CLQ-009"}
      there is no question CLQ-009; see: wf clarify list
    merge
      there is no tool merge; there are: list, show, create, plan_add, plan_draft, plan_accept, run, questions, answer, diff
    "#);
    client.end();
}

#[test]
fn a_run_goes_on_in_the_background_and_can_be_waited_for() {
    let Some(person) = person_with_one() else { return };
    person.cast(GOOD, APPROVE);
    let mut client = RawClient::start(&person);
    let started = client.ok("run", json!({"workstream": "tf"}));
    assert!(started["result"]["pid"].as_i64().expect("a process") > 1, "{started:#}");
    // The server ends; the run does not.
    client.end();
    wait_for("the run", || (person.meta("tf", "STATUS") == "uat:pending").then_some(()));
    let mut client = RawClient::start(&person);
    let blocked = client.call("run", json!({"workstream": "tf", "wait": true}));
    assert_eq!(blocked["isError"], true, "{blocked:#}");
    let reply = &blocked["structuredContent"];
    assert_eq!(
        (&reply["exit_status"], &reply["result"]["blocked_by"][0]),
        (&json!(8), &json!("UAT-001"))
    );
    client.end();
}

/// Runs a script of a real client, which must succeed.
fn play_client(person: &Person, program: &Path, script: &Path) {
    let wf = person.command(&["mcp"]);
    let mut command = person.hermetic.command(program);
    command.arg(script).arg(wf.get_program()).current_dir(person.repo.dir());
    let output = command.output().expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(text(&output.stdout).lines().last(), Some("done"), "{}", text(&output.stdout));
}

/// Both clients do the same: list the tools, create, plan, show, and read a refusal.
#[test]
fn mcp_clients_python_and_typescript() {
    let remedy = "scripts/test-real installs them";
    let Some(clients) = require_folder("mcp_clients", "BOTTLEWORKS_TEST_MCP", remedy) else {
        return;
    };
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp");
    let person = Person::with_plan(ONE);
    play_client(&person, &clients.join("venv/bin/python"), &scripts.join("client.py"));
    assert_eq!(person.json(&["status", "python"])["plan"]["commits"][0]["title"], "Add it");
    // Modules are looked for beside the script.
    let script = clients.join("client.mjs");
    std::fs::copy(scripts.join("client.mjs"), &script).expect("copied");
    let node = require(Part::Node).expect("a client that needs Node is installed");
    play_client(&person, &node, &script);
    assert_eq!(person.json(&["status", "typescript"])["plan"]["commits"][0]["title"], "Add it");
}
