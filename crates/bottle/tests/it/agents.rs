//! Real agent programs in a real box call the forge, driven by a scripted model: Claude Code and Codex by their tools,
//! pi by its shell.

use std::path::PathBuf;

use serde_json::json;
use testkit::fake_forge::Room;
use testkit::hermetic::Output;
use testkit::model_server::{ModelScript, ModelServer, Turn};
use testkit::part::{Part, require, require_folder};
use testkit::screen::Screen;
use testkit::wait::wait_for;

use crate::serving::Serving;
use crate::support::{Person, Scene};

/// The folder below which agents are installed, as XDG_DATA_HOME.
const AGENTS_VARIABLE: &str = "BOTTLEWORKS_TEST_AGENTS";

const REAL_KEY: &str = "canary-real-key-of-the-host";

/// An agent under test.
struct Agent {
    provider: &'static str,
    model: &'static str,
    key: &'static str,
}

const CLAUDE: Agent =
    Agent { provider: "claude", model: "claude-sonnet-4-5", key: "ANTHROPIC_API_KEY" };
const CODEX: Agent = Agent { provider: "codex", model: "gpt-5.5", key: "OPENAI_API_KEY" };
const PI: Agent = Agent { provider: "pi", model: "scripted", key: "MODEL_API_KEY" };

/// Runs the agent on the scene's issue with these turns of its model.
fn run(scene: &Scene, agent: &Agent, turns: Vec<Turn>) -> Option<(Output, ModelServer)> {
    let data = installed()?;
    let server = resolve_agent(&scene.person, agent, turns);
    let mut command = scene.start_command("");
    command.env("XDG_DATA_HOME", data).env(agent.key, REAL_KEY);
    Some((scene.person.hermetic.run(&mut command), server))
}

fn installed() -> Option<PathBuf> {
    require_folder("agents", AGENTS_VARIABLE, "run scripts/test-real")
}

/// Writes the manifest of `worker`, whose model plays these turns.
fn resolve_agent(person: &Person, agent: &Agent, turns: Vec<Turn>) -> ModelServer {
    let server = ModelServer::start([("run", ModelScript::new(turns))]);
    let manifest = format!(
        "provider = \"{}\"\nmodel = \"{}\"\nprompt = \"Be careful.\"\n[server]\nurl = \"{}\"\nkey_env = \"{}\"\n\
         [egress]\nprofile = \"model-only\"\npermit_private = [\"{}\"]\n",
        agent.provider,
        agent.model,
        server.base_url("run"),
        agent.key,
        server.addr(),
    );
    person.manifest("agents", "worker", &manifest);
    server
}

fn calls_the_tools(agent: &Agent) {
    let Some(scene) = Scene::new() else { return };
    let turns = vec![
        Turn::tool("read_issue", json!({ "number": 1 })),
        Turn::tool("post_comment", json!({ "number": 1, "body": "On it." })),
        Turn::tool("post_comment", json!({ "number": 99, "body": "No." })),
        Turn::shell("echo x > made.txt && git add -A && git commit -qm 'make it'"),
        Turn::tool("signal_done", json!({ "status": "success", "summary": "made" })),
        Turn::text("done"),
    ];
    let Some((output, server)) = run(&scene, agent, turns) else { return };
    assert_eq!(output.status, Some(0), "{}\n{}", output.snapshot(), scene.log());
    holds(&scene);
    let results: Vec<String> =
        server.requests().into_iter().filter_map(|request| request.last_tool_result).collect();
    assert!(results.iter().any(|text| text.contains("What is wanted")), "{results:?}");
    assert!(results.iter().any(|text| text.contains("out of scope")), "{results:?}");
}

/// What holds after every good run.
fn holds(scene: &Scene) {
    let said = scene.sentences();
    for words in ["read issue #1", "posted comment to #1", "signalled done: success"] {
        assert!(said.contains(&words.to_owned()), "{words}: {said:?}");
    }
    assert_eq!(scene.forge.comments().len(), 1);
    assert_eq!(scene.forge.pulls().len(), 1);
    let document = scene.provenance();
    assert_eq!(document["complete"], true, "{document:#}");
    assert!(document["model_usage"]["requests"].as_u64() >= Some(3), "{document:#}");
}

#[test]
fn claude_calls_the_forges_tools() {
    calls_the_tools(&CLAUDE);
}

#[test]
fn codex_calls_the_forges_tools() {
    calls_the_tools(&CODEX);
}

#[test]
fn claude_goes_on_with_its_own_conversation_after_the_freezer() {
    let Some(scene) = Scene::new() else { return };
    let turns = vec![
        Turn::shell("git commit -q --allow-empty -m one"),
        Turn::tool("signal_done", json!({ "status": "success", "summary": "one" })),
        Turn::text("first"),
        Turn::tool("read_comments", json!({ "number": 1 })),
        Turn::tool("signal_done", json!({ "status": "success", "summary": "two" })),
        Turn::text("second"),
    ];
    let Some((output, server)) = run(&scene, &CLAUDE, turns) else { return };
    assert_eq!(output.status, Some(0), "{}\n{}", output.snapshot(), scene.log());
    let session = scene.provenance()["agent_says"]["session"].clone();
    let args = ["orchestrate", "resume", "--slug", crate::support::SLUG, "--prompt", "Go on."];
    let mut command = scene.command(&args);
    let data = installed().expect("there");
    let output =
        scene.person.hermetic.run(command.env("XDG_DATA_HOME", data).env(CLAUDE.key, REAL_KEY));
    assert_eq!(output.status, Some(0), "{}\n{}", output.snapshot(), scene.log());
    let document = scene.provenance();
    assert_eq!(document["resumes_session"], true);
    assert_eq!(document["agent_says"]["session"], session);
    assert!(
        scene.sentences().contains(&"read comments on #1".to_owned()),
        "{:?}",
        server.requests()
    );
}

#[test]
fn claude_from_webhook_to_merge_with_nobody_watching() {
    let (Some(scene), Some(data)) = (Scene::new(), installed()) else { return };
    let turns = vec![
        Turn::tool("read_issue", json!({ "number": 1 })),
        Turn::shell("echo x > made.txt && git add -A && git commit -qm 'make it'"),
        Turn::tool("signal_done", json!({ "status": "success", "summary": "made" })),
        Turn::text("first"),
        Turn::shell("echo y >> made.txt && git commit -qam 'make it better'"),
        Turn::tool("signal_done", json!({ "status": "success", "summary": "better" })),
        Turn::text("second"),
    ];
    let _server = resolve_agent(&scene.person, &CLAUDE, turns);
    let data = data.to_str().expect("a path").to_owned();
    let env = [("XDG_DATA_HOME", data.as_str()), (CLAUDE.key, REAL_KEY)];
    let serving = Serving::start_with(scene, "sweep_secs = 3600\n", &env);
    assert_eq!(serving.label(), Some(202));
    serving.wait("frozen");
    let session = serving.scene.provenance()["agent_says"]["session"].clone();
    let (pull, first) = (serving.scene.forge.pulls()[0].number, serving.scene.published());
    serving.scene.forge.add_comment(Room::Pull, pull, "alice", "Better, please.");
    serving.tell("pull_request_comment_created", Room::Pull, pull);
    wait_for("a second commit", || {
        serving.scene.published().filter(|now| Some(now) != first.as_ref())
    });
    serving.wait("frozen");
    let document = serving.scene.provenance();
    assert_eq!(document["resumes_session"], true, "{document:#}");
    assert_eq!(document["agent_says"]["session"], session, "it has its memory");
    serving.scene.forge.merge_pull(pull);
    serving.tell("pull_request_merged-closed", Room::Pull, pull);
    serving.wait("destroyed");
    assert_eq!(serving.pulls(), 1);
}

#[test]
fn claude_shows_its_own_interface_and_its_conversation_can_be_gone_on_with() {
    let (Some(person), Some(data)) = (Person::new(), installed()) else { return };
    let turns = vec![
        Turn::shell("echo x > made.txt && git add -A && git commit -qm 'make it'"),
        Turn::text("That is made."),
        // An interface that waits for words may ask the model on its own, for a title or a hint.
        Turn::text("And that is all."),
        Turn::text("And that is all."),
        Turn::text("And that is all."),
    ];
    let server = resolve_agent(&person, &CLAUDE, turns);
    let line = format!(
        "XDG_DATA_HOME={} {}={REAL_KEY} {} start worker --backend bwrap --prompt 'Make it.'; echo \"it was $?\"; read -r line",
        data.display(),
        CLAUDE.key,
        env!("CARGO_BIN_EXE_bot-bottle"),
    );
    let dir = person.fork.checkout.dir();
    let Some(screen) = Screen::start(&person.hermetic, dir, &["sh", "-c", &line]) else { return };
    let shown = screen.shows("That is made.");
    assert!(shown.contains("Make it.") && shown.contains("bypass permissions"), "{shown}");
    screen.press(&["-l", "/exit"]);
    screen.press(&["Enter"]);
    screen.shows("it was 0");
    let first = person.provenance("worker");
    assert_eq!(first["commits"]["new"].as_array().map(Vec::len), Some(1), "{first:#}");
    let args = ["resume", "worker", "--headless", "--prompt", "Is there more?"];
    let mut command = person.command(&args);
    let output = person.hermetic.run(command.env("XDG_DATA_HOME", data).env(CLAUDE.key, REAL_KEY));
    assert_eq!(output.status, Some(0), "{}\n{}", output.snapshot(), person.log("worker"));
    let second = person.provenance("worker");
    assert_eq!(second["resumes_session"], true, "{second:#}");
    assert!(person.log("worker").contains("And that is all."), "{}", person.log("worker"));
    assert!(server.requests().iter().all(|request| request.auth.as_deref() == Some(REAL_KEY)));
}

#[test]
fn pi_uses_the_forge_command() {
    if require(Part::Node).is_none() {
        return;
    }
    let Some(scene) = Scene::new() else { return };
    let turns = vec![
        Turn::shell("forge read-issue 1"),
        Turn::shell("forge comment 1 'On it.'"),
        Turn::shell("echo x > made.txt && git add -A && git commit -qm 'make it'"),
        Turn::shell("forge done success made"),
        Turn::text("done"),
    ];
    let Some((output, _server)) = run(&scene, &PI, turns) else { return };
    assert_eq!(output.status, Some(0), "{}\n{}", output.snapshot(), scene.log());
    holds(&scene);
}
