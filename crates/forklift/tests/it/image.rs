//! The kitchen-sink image on a real engine: built on a base of this machine's own, looked into, and worked in by a real
//! agent.

use std::process::Command;
use std::sync::OnceLock;

use testkit::container::ContainerEngine;
use testkit::fake_forge::FakeGitea;
use testkit::hermetic::Hermetic;
use testkit::model_server::Turn;
use testkit::part::{Part, require};

use crate::agents::{OPENCODE, Scene, good_turns, resolves_the_conflict_of};
use crate::support::{MERGE, Person};

const TAG: &str = "bottleworks/kitchen-sink:test";

/// The image, built once; `None` where there is no engine or nothing to build on.
fn image() -> Option<&'static str> {
    static BUILT: OnceLock<Option<&'static str>> = OnceLock::new();
    *BUILT.get_or_init(|| {
        require(Part::Docker)?;
        let base = testkit::part::require_setting(
            "image",
            "BOTTLEWORKS_TEST_IMAGE",
            "run scripts/test-engine",
        )?;
        let hermetic = Hermetic::new();
        let args = ["image", "build", "--base", &base, "--runtimes", "none", "--tag", TAG];
        hermetic.run_ok(forklift(&hermetic).args(args));
        Some(TAG)
    })
}

fn forklift(hermetic: &Hermetic) -> Command {
    with_engine(hermetic.command(env!("CARGO_BIN_EXE_forklift")))
}

fn with_engine(mut command: Command) -> Command {
    if let Some(engine) = host::env::var_os("DOCKER_HOST") {
        command.env("DOCKER_HOST", engine);
    }
    command
}

fn in_image(mut scene: Scene, image: &str) -> Scene {
    scene.backend = ["--backend", "docker", "--image", image].map(str::to_owned).to_vec();
    scene
}

#[test]
fn the_image_has_every_tool_and_names_its_recipe() {
    let Some(image) = image() else { return };
    let hermetic = Hermetic::new();
    let output = hermetic.run(forklift(&hermetic).args(["image", "check", image]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    for words in ["git version", "this version's", "cmake version", "node        not there"] {
        assert!(output.stdout.contains(words), "{words}: {}", output.stdout);
    }
}

#[test]
fn an_image_that_lacks_something_is_told_about() {
    let Some(_) = image() else { return };
    let base = host::env::var("BOTTLEWORKS_TEST_IMAGE").expect("the image was built on it");
    let hermetic = Hermetic::new();
    let output = hermetic.run(forklift(&hermetic).args(["image", "check", &base]));
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("lacks fd"), "{}", output.stderr);
    assert!(output.stdout.contains("another version's"), "{}", output.stdout);
    let output = hermetic.run(forklift(&hermetic).args(["image", "check", "no/such:image"]));
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("forklift image build"), "{}", output.stderr);
}

/// The container's command is the harness, whatever the environment says, and nothing but our own variables is inside.
#[test]
fn no_override_of_the_command_exists() {
    let Some(image) = image() else { return };
    let Some(person) = Person::new() else { return };
    let script = format!(
        "[[step]]\nrun = \"env > /harness-state/seen; id -u >> /harness-state/seen\"\n{MERGE}"
    );
    let mut command =
        with_engine(person.command_on(&["--backend", "docker", "--image", image], &script, &[]));
    command.env("FORKLIFT_DOCKER_COMMAND", "/bin/true").env("SECRET_OF_THE_HOST", "x");
    let output = person.hermetic.run(&mut command);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let run = person.only_run();
    let order = std::fs::read_to_string(run.join("boxes/agent/order.json")).expect("the order");
    assert!(order.contains("/opt/forklift/harness/run.sh"), "{order}");
    let seen = std::fs::read_to_string(run.join("harness-state/seen")).expect("seen");
    assert!(!seen.contains("SECRET") && !seen.contains("DOCKER_COMMAND"), "{seen}");
    let log = std::fs::read_to_string(run.join("harness-state/logs/agent.log")).expect("a log");
    assert!(!log.is_empty());
}

#[test]
fn opencode_in_the_image_resolves_a_conflict_and_opens_a_pull_request() {
    let Some(image) = image() else { return };
    let Some(scene) = Scene::new(&OPENCODE, good_turns()) else { return };
    let mut scene = in_image(scene, image);
    let forge = FakeGitea::start();
    scene.token = Some(testkit::fake_forge::TOKEN);
    resolves_the_conflict_of(&scene, &OPENCODE, &["--forge-url", &forge.remote_url()]);
    let pulls = forge.pulls();
    assert_eq!(pulls.len(), 1, "{pulls:?}");
    assert!(pulls[0].body.contains("shared.txt"), "{}", pulls[0].body);
}

#[test]
fn opencode_in_the_image_that_hangs_is_killed_at_its_deadline() {
    let Some(image) = image() else { return };
    let Some(scene) = Scene::new(&OPENCODE, vec![Turn::Hang { comments: true }]) else { return };
    let scene = in_image(scene, image);
    let output = scene.run(&OPENCODE, &["--timeout", "12"]);
    assert_eq!(output.status, Some(5), "{}", output.snapshot());
    assert!(scene.person.published().is_empty());
}

#[test]
fn opencode_in_the_image_that_is_stuck_is_heard() {
    let Some(image) = image() else { return };
    let turns =
        vec![Turn::shell("echo 'keep ours or theirs?' > STUCK.md"), Turn::text("I need help.")];
    let Some(scene) = Scene::new(&OPENCODE, turns) else { return };
    let scene = in_image(scene, image);
    let output = scene.run(&OPENCODE, &[]);
    assert_eq!(output.status, Some(4), "{}", output.snapshot());
    assert!(output.stdout.contains("keep ours or theirs?"), "{}", output.stdout);
}

/// A shim that is killed leaves its container running; the next run removes it before it starts an agent of its own.
#[test]
fn an_orphaned_container_is_gone_before_the_next_agent_starts() {
    let Some(engine) = ContainerEngine::find() else { return };
    let Some(person) = Person::new() else { return };
    let backend = ["--backend", "docker", "--image", &engine.image];
    let mut first = person.command_on(&backend, "[[step]]\nsleep = 600\n", &[]);
    let shim = || person.runs().first().map(|run| run.join("boxes/agent/shim.json"));
    let next = || person.command_on(&backend, MERGE, &[]);
    let output = engine.removes_the_orphan(&person.hermetic, &mut first, shim, next);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1);
}
