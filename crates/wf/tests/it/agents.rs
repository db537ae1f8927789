//! The real programs in real boxes behind the model route, with a scripted model: Codex implements, Claude Code reviews.
//! Golden scenarios 10.1, 10.3 and 10.4.

use std::path::{Path, PathBuf};

use testkit::container::ContainerEngine;
use testkit::hermetic::Output;
use testkit::model_server::{ModelScript, ModelServer, Turn};
use testkit::part::{Part, require, require_folder};
use testkit::tree::holding;

use crate::play;
use crate::support::{ONE, Person, read, result, write};

/// The folder below which `forklift agents install` has put the programs, as XDG_DATA_HOME.
const AGENTS_VARIABLE: &str = "BOTTLEWORKS_TEST_AGENTS";

/// The key that must never be found inside.
const REAL_KEY: &str = "canary-real-key-of-the-host";

const SUCCESS: &str = "Done.\n```json\n{\"status\": \"success\", \"notes\": \"made\"}\n```";
const APPROVE: &str = "```json\n{\"version\": 1, \"decision\": \"approve\", \"blockers\": []}\n```";
const REJECT: &str = "{\"version\": 1, \"decision\": \"request_changes\", \"blockers\": [{\"file\": \"mk/test.mk\", \"line\": 1, \"issue\": \"no target\"}]}";

/// A person with both agents and a model server that plays both parts.
struct Scene {
    person: Person,
    server: ModelServer,
    data: PathBuf,
}

impl Scene {
    fn new(implement: Vec<Turn>, review: Vec<Turn>) -> Option<Self> {
        let data = require_folder("agents", AGENTS_VARIABLE, "run scripts/test-real")?;
        let person = play::person(ONE)?;
        let parts =
            [("implement", ModelScript::new(implement)), ("review", ModelScript::new(review))];
        let server = ModelServer::start(parts);
        let scene = Self { person, server, data };
        scene.person.profile(&scene.profile());
        Some(scene)
    }

    fn profile(&self) -> String {
        format!(
            "MERGE_MODE=local\nBOX_BACKEND=bwrap\nAGENT_IMPLEMENT=codex\nAGENT_IMPLEMENT_MODEL=gpt-5.5\nAGENT_IMPLEMENT_MODEL_URL={}\nAGENT_REVIEW=claude\nAGENT_REVIEW_MODEL=claude-sonnet-4-5\nAGENT_REVIEW_MODEL_URL={}\nAGENT_PERMIT_PRIVATE={}\n",
            self.server.base_url("implement"),
            self.server.base_url("review"),
            self.server.addr()
        )
    }

    #[track_caller]
    fn run(&self, status: i32) -> Output {
        let mut command = self.person.command(&["run", "tf", "--once"]);
        command
            .env("XDG_DATA_HOME", &self.data)
            .env("OPENAI_API_KEY", REAL_KEY)
            .env("ANTHROPIC_API_KEY", REAL_KEY);
        let output = self.person.hermetic.run(&mut command);
        assert_eq!(output.status, Some(status), "{}", output.snapshot());
        output
    }
}

fn commit(line: &str) -> Turn {
    Turn::shell(format!(
        "mkdir -p mk && {line} && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'"
    ))
}

#[test]
fn scenario_10_1_with_the_real_programs() {
    let look = Turn::shell("cat /harness-state/run/diff.patch; touch /workspace/x");
    let make = vec![commit("echo harness > mk/test.mk"), Turn::text(SUCCESS)];
    let Some(scene) = Scene::new(make, vec![look, Turn::text(APPROVE)]) else { return };
    scene.run(0);
    let person = &scene.person;
    let run = person.last_run();
    let result = result(&run);
    assert_eq!(result["status"], "passed");
    assert!(result["notes"].as_str().expect("notes").contains("calls of the model"), "{result}");
    assert!(read(&run.join("claude_review.json")).contains("approve"));
    assert!(person.subjects()[0].starts_with("COMMIT-TF-001:"));
    assert_eq!(person.meta("tf", "STATUS"), "uat:pending");
    // The reviewer read the diff, and could not write.
    let requests = scene.server.requests();
    let said: Vec<String> = requests.iter().filter_map(|it| it.last_tool_result.clone()).collect();
    let shown = said.iter().find(|text| text.contains("+harness"));
    assert!(shown.is_some_and(|text| text.contains("Read-only")), "{said:?}");
    key_is_nowhere(&run);
    key_is_nowhere(&person.ops().join("agents"));
}

#[test]
fn scenario_10_3_with_the_real_programs_and_the_conversation_goes_on() {
    let make = vec![
        commit("echo harness > mk/test.mk"),
        Turn::text(SUCCESS),
        commit("echo mended >> mk/test.mk"),
        Turn::text(SUCCESS),
    ];
    let Some(scene) = Scene::new(make, vec![Turn::text(REJECT)]) else { return };
    scene.run(6);
    let person = &scene.person;
    assert_eq!(result(&person.last_run())["failed_stage"], "review");
    assert!(read(&person.last_run().join("claude_review.json")).contains("no target"));
    assert_eq!(person.meta("tf", "STATUS"), "blocked:review");
    // Every review begins afresh and says the same; the implementer remembers, and goes on with its third turn.
    scene.run(6);
    assert_eq!(person.worktree("tf").read("mk/test.mk"), "harness\nmended\n");
    let log = read(&person.last_run().join("boxes/implement/guest/harness/instructions.txt"));
    assert!(log.contains("mk/test.mk:1: no target"), "{log}");
}

#[test]
fn scenario_10_4_with_the_real_programs() {
    let ask = r#"{"status": "clarification_needed", "question": "Which?", "options": ["a", "b"]}"#;
    let Some(scene) = Scene::new(vec![Turn::text(ask)], Vec::new()) else { return };
    scene.run(8);
    let person = &scene.person;
    assert_eq!(result(&person.last_run())["blocked_reason"], "CLQ-001");
    assert_eq!(person.meta("tf", "STATUS"), "blocked:clarification");
    let asked = scene.server.requests().len();
    scene.run(8);
    assert!(!person.last_run().join("boxes").exists(), "no implementation is attempted");
    assert_eq!(scene.server.requests().len(), asked);
}

#[test]
fn a_conversation_that_is_gone_is_begun_anew() {
    let make = vec![commit("echo harness > mk/test.mk"), Turn::text(SUCCESS)];
    let Some(scene) = Scene::new(make, vec![Turn::text(APPROVE)]) else { return };
    let session = scene.person.ops().join("agents/app.tf/codex/session.json");
    write(&session, "{\"id\": \"0198c0de-0000-7000-8000-000000000000\"}");
    let output = scene.run(0);
    assert!(output.stderr.contains("starting a new one"), "{}", output.snapshot());
    assert!(!read(&session).contains("0198c0de-0000-7000-8000-000000000000"));
}

/// Golden scenario 10.1 with another implementer.
fn implements(provider: &str) {
    let make = vec![commit("echo harness > mk/test.mk"), Turn::text(SUCCESS)];
    let Some(scene) = Scene::new(make, vec![Turn::text(APPROVE)]) else { return };
    let usual = "AGENT_IMPLEMENT=codex\nAGENT_IMPLEMENT_MODEL=gpt-5.5\n";
    let other = format!(
        "AGENT_IMPLEMENT={provider}\nAGENT_IMPLEMENT_MODEL=scripted\nAGENT_IMPLEMENT_KEY_VAR=OPENAI_API_KEY\n"
    );
    let profile = scene.profile();
    assert!(profile.contains(usual), "{profile}");
    scene.person.profile(&profile.replace(usual, &other));
    scene.run(0);
    let person = &scene.person;
    assert_eq!(result(&person.last_run())["status"], "passed");
    assert!(person.subjects()[0].starts_with("COMMIT-TF-001:"));
    key_is_nowhere(&person.last_run());
}

#[test]
fn pi_implements_as_well() {
    if require(Part::Node).is_some() {
        implements("pi");
    }
}

#[test]
fn opencode_implements_as_well() {
    implements("opencode");
}

/// A person whose boxes are containers.
fn person_with_containers(engine: &ContainerEngine) -> Option<Person> {
    let person = play::person_with_one()?;
    let boxes = format!("BOX_BACKEND=docker\nBOX_IMAGE={}\n", engine.image);
    person.profile(&play::PROFILE.replace("BOX_BACKEND=bwrap\n", &boxes));
    Some(person)
}

#[test]
fn a_cycle_in_containers() {
    let Some(engine) = ContainerEngine::find() else { return };
    let Some(person) = person_with_containers(&engine) else { return };
    let mut command = person.command(&["run", "tf", "--once"]);
    let output = person.hermetic.run(command.env("DOCKER_HOST", &engine.host));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(result(&person.last_run())["status"], "passed");
    assert_eq!(person.meta("tf", "STATUS"), "uat:pending");
}

/// A shim that is killed leaves its container running; the next run removes it before it starts an agent of its own.
#[test]
fn an_orphaned_container_is_gone_before_the_next_agent_starts() {
    let Some(engine) = ContainerEngine::find() else { return };
    let Some(person) = person_with_containers(&engine) else { return };
    person.cast("[[step]]\nsleep = 600\n", play::APPROVE);
    let mut first = person.command(&["run", "tf", "--once"]);
    let shim = || person.runs().first().map(|run| run.join("boxes/implement/shim.json"));
    let next = || {
        person.cast(play::GOOD, play::APPROVE);
        person.command(&["run", "tf", "--once"])
    };
    let output = engine.removes_the_orphan(&person.hermetic, &mut first, shim, next);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.meta("tf", "STATUS"), "uat:pending");
}

/// No file below the folder holds the key.
fn key_is_nowhere(folder: &Path) {
    let found = holding(folder, REAL_KEY);
    assert!(found.is_empty(), "the key is in {found:?}");
}
