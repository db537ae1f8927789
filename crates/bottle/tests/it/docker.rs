//! The same bottle in a container: the forge's socket, the freezer and the terminal work there as they do anywhere.

use std::process::Command;

use testkit::fake_forge::Room;
use testkit::fake_gitea::TOKEN;
use testkit::part::{Part, require, require_setting};
use testkit::screen::Screen;

use crate::support::{COMMIT, DONE, FIRST_STEP_DONE, Person, SLUG, Scene, wait_for};

/// Where the engine answers, and the image that it holds.
struct Engine {
    host: String,
}

impl Engine {
    /// `None` when a part is missing, which is then reported by name.
    fn find(person: &Person) -> Option<Self> {
        let socket = require(Part::Docker)?;
        let image =
            require_setting("image", "BOTTLEWORKS_TEST_IMAGE", "run scripts/test-engine start")?;
        person.manifest("bottles", "boxed", &format!("image = \"{image}\"\n"));
        Some(Self { host: format!("unix://{}", socket.display()) })
    }

    fn reach<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("DOCKER_HOST", &self.host)
    }
}

const START: [&str; 10] = [
    "orchestrate",
    "start",
    "--agent",
    "worker",
    "--prompt",
    "Do it.",
    "--backend",
    "docker",
    "--bottle",
    "boxed",
];

#[test]
fn a_bottle_in_a_container_is_started_frozen_resumed_and_destroyed() {
    let Some(scene) = Scene::new() else { return };
    let Some(engine) = Engine::find(&scene.person) else { return };
    let hermetic = &scene.person.hermetic;
    let reads = "[[step]]\nrun = \"forge read-issue 1 | grep 'What is wanted' && forge comment 1 'On it.'\"\n";
    scene.person.script(&format!("{reads}{COMMIT}[[step]]\nsleep = 300\n"));
    let mut running = engine.reach(&mut scene.command(&START)).spawn().expect("it starts");
    wait_for("the comment", || scene.forge.comments().pop());
    wait_for("the first step", || scene.log().contains(FIRST_STEP_DONE).then_some(()));
    wait_for("the commit", || scene.log().contains("\"index\":1").then_some(()));
    let frozen = hermetic.run(engine.reach(&mut scene.command(&["freeze", SLUG])));
    assert_eq!(frozen.status, Some(0), "{}", frozen.snapshot());
    assert_eq!(running.wait().expect("it ends").code(), Some(143), "{}", scene.log());
    let document = scene.provenance();
    assert_eq!(
        (&document["exit"]["class"], &document["backend"]),
        (&"frozen".into(), &"docker".into()),
        "{document:#}"
    );

    scene.forge.add_comment(Room::Issue, 1, "alice", "and quickly");
    scene.person.script(&format!(
        "[[step]]\nrun = \"test -f work.txt && grep -q quickly /harness-state/instructions.txt && ! env | grep -q FORGE_\"\n{COMMIT}{DONE}"
    ));
    let args = ["orchestrate", "resume", "--slug", SLUG, "--prompt", "Go on."];
    let resumed = hermetic.run(engine.reach(&mut scene.command(&args)));
    assert_eq!(resumed.status, Some(0), "{}\n{}", resumed.snapshot(), scene.log());
    let document = scene.provenance();
    assert_eq!((&document["backend"], &document["complete"]), (&"docker".into(), &true.into()));
    assert_eq!(document["commits"]["new"].as_array().map(Vec::len), Some(2), "{document:#}");
    assert_eq!(scene.forge.pulls().len(), 1);
    let records =
        std::fs::read_to_string(scene.person.last_run(SLUG).join("boxes/agent/order.json"));
    assert!(!records.expect("an order").contains(TOKEN) && !scene.log().contains(TOKEN));

    let destroyed = hermetic.run(engine.reach(&mut scene.command(&["destroy", SLUG])));
    assert_eq!(destroyed.status, Some(0), "{}", destroyed.snapshot());
    assert!(!scene.person.bottle(SLUG).join("workspace").exists());
}

#[test]
fn a_container_has_a_terminal_as_well() {
    let Some(person) = Person::new() else { return };
    let Some(engine) = Engine::find(&person) else { return };
    let shell =
        "provider = \"command\"\ncommand = [\"bash\", \"--norc\", \"--noprofile\", \"-i\"]\n";
    person.manifest("agents", "shell", shell);
    let line = format!(
        "DOCKER_HOST={} {} start shell --backend docker --bottle boxed; echo \"it was $?\"; read -r line",
        engine.host,
        env!("CARGO_BIN_EXE_bot-bottle"),
    );
    let dir = person.fork.checkout.dir();
    let Some(screen) = Screen::start(&person.hermetic, dir, &["sh", "-c", &line]) else { return };
    screen.shows("bash-");
    screen.press(&["-l", "echo $((40+2)) $(stty size) $TERM; exit 5"]);
    screen.press(&["Enter"]);
    screen.shows("it was 5");
    assert!(person.log("shell").contains("42 24 80 screen"), "{}", person.log("shell"));
}
