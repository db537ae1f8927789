//! The player on scripts, in a folder of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use guest::script::Script;
use serde_json::Value;
use tempfile::TempDir;
use testkit::wait::wait_until;

#[test]
fn a_script_is_played_and_told() {
    let stage = Stage::new();
    let played = stage.play(
        r##"
        [[step]]
        write = { path = "notes/a.txt", text = "one\n" }
        [[step]]
        write = { path = "notes/a.txt", text = "two\n", append = true }
        [[step]]
        write = { path = "run.sh", text = "#!/bin/sh\necho ran\n", mode = 0o755 }
        [[step]]
        run = "./run.sh"
        [[step]]
        run = ["cat", "a.txt"]
        cwd = "notes"
        [[step]]
        sleep = 0.05
        [[step]]
        print = "hello\n"
        "##,
    );
    assert_eq!(played.status, Some(0));
    assert_eq!(stage.read("notes/a.txt"), "one\ntwo\n");
    assert_eq!(
        fs::metadata(stage.workspace().join("run.sh")).unwrap().permissions().mode() & 0o777,
        0o755
    );
    assert_eq!(played.plain, ["ran", "one", "two", "hello"]);
    let kinds: Vec<&str> =
        played.events("step").map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["write", "write", "write", "run", "run", "sleep", "print"]);
    let done: Vec<&Value> = played.events("step-done").collect();
    assert_eq!(done.len(), 7);
    assert!(done[5]["ms"].as_u64().unwrap() >= 50);
    assert_eq!(played.events.last().unwrap(), &serde_json::json!({"type": "result", "status": 0}));
}

#[test]
fn a_failing_command_ends_the_script_with_its_status() {
    let stage = Stage::new();
    let played =
        stage.play("[[step]]\nrun = 'exit 7'\n[[step]]\nwrite = { path = 'x', text = '' }");
    assert_eq!(played.status, Some(7));
    assert!(!stage.workspace().join("x").exists());
    assert_eq!(played.events.last().unwrap()["status"], 7);
}

#[test]
fn an_expected_failure_lets_the_script_go_on() {
    let stage = Stage::new();
    let script = "[[step]]\nrun = 'exit 7'\nexpect = 7\n[[step]]\nrun = 'kill -9 $$'\nexpect = 'any'\n\
        [[step]]\nrun = ['/no/such/program']\nexpect = 127\n[[step]]\nexit = 3";
    let played = stage.play(script);
    assert_eq!(played.status, Some(3));
    let statuses: Vec<i64> =
        played.events("step-done").map(|event| event["status"].as_i64().unwrap()).collect();
    assert_eq!(statuses, [7, 137, 127, 3]);
}

#[test]
fn a_stuck_agent_leaves_a_note() {
    let stage = Stage::new();
    let played = stage.play("[[step]]\nstuck = 'which auth flow?'");
    assert_eq!(played.status, Some(0));
    assert_eq!(stage.read("STUCK.md"), "which auth flow?");
}

#[test]
fn a_question_is_told_and_kept() {
    let stage = Stage::new();
    let played = stage.play("[[step]]\nask = { question = 'red?', options = ['yes', 'no'] }");
    let event = played.events("clarification").next().unwrap().clone();
    assert_eq!(
        event,
        serde_json::json!({"type": "clarification", "question": "red?", "options": ["yes", "no"]})
    );
    let kept = fs::read_to_string(stage.harness_state().join("clarification.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&kept).unwrap(), event);
}

#[test]
fn a_daemon_outlives_its_script_and_is_deaf_to_sigterm() {
    let stage = Stage::new();
    // It ends by itself, so that the test leaves nothing behind; the signal is for its own group.
    let line = "exec >/dev/null 2>&1; for i in $(seq 9000); do [ -e go ] && break; sleep 0.02; done; \
        kill -TERM 0; echo alive >alive";
    let played = stage.play(&format!("[[step]]\ndaemon = '{line}'"));
    assert_eq!(played.status, Some(0));
    let alive = stage.workspace().join("alive");
    assert!(!alive.exists(), "the script waited for its daemon");
    fs::write(stage.workspace().join("go"), "").unwrap();
    wait_until("a word of the daemon", || alive.exists());
}

#[test]
fn a_script_that_does_not_parse_is_our_own_failure() {
    let stage = Stage::new();
    let played = stage.play_json(r#"{"step":[{"dance":1}]}"#);
    assert_eq!(played.status, Some(guest::EXIT_GUEST_FAILED));
}

struct Stage(TempDir);

struct Played {
    status: Option<i32>,
    events: Vec<Value>,
    plain: Vec<String>,
}

impl Stage {
    fn new() -> Self {
        let stage = Self(tempfile::tempdir().unwrap());
        fs::create_dir(stage.workspace()).unwrap();
        fs::create_dir(stage.harness_state()).unwrap();
        stage
    }

    fn workspace(&self) -> std::path::PathBuf {
        self.0.path().join("workspace")
    }

    fn harness_state(&self) -> std::path::PathBuf {
        self.0.path().join("state")
    }

    fn read(&self, path: impl AsRef<Path>) -> String {
        fs::read_to_string(self.workspace().join(path)).unwrap()
    }

    fn play(&self, script: &str) -> Played {
        let script: Script = toml::from_str(script).unwrap();
        self.play_json(&serde_json::to_string(&script).unwrap())
    }

    fn play_json(&self, script: &str) -> Played {
        let path = self.0.path().join("script.json");
        fs::write(&path, script).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_bottle-guest"))
            .arg("play")
            .args([path, self.harness_state()])
            .current_dir(self.workspace())
            .output()
            .unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let (events, plain): (Vec<&str>, Vec<&str>) =
            stdout.lines().partition(|line| line.starts_with('{'));
        Played {
            status: output.status.code(),
            events: events.into_iter().map(|line| serde_json::from_str(line).unwrap()).collect(),
            plain: plain.into_iter().map(str::to_owned).collect(),
        }
    }
}

impl Played {
    fn events(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.events.iter().filter(move |event| event["type"] == kind)
    }
}
