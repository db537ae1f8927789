//! The same bottle in a container: the forge's socket, the freezer and the terminal work there as they do anywhere.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use testkit::container::ContainerEngine;
use testkit::fake_forge::Room;
use testkit::fake_forge::TOKEN;
use testkit::screen::Screen;
use testkit::wait::wait_for;

use crate::serving::Serving;
use crate::support::{COMMIT, DONE, FIRST_STEP_DONE, Person, SLUG, Scene};

/// Finds the engine and writes the bottle `boxed`, which has its image; `None` when a part is missing.
fn find_engine(person: &Person) -> Option<ContainerEngine> {
    let engine = ContainerEngine::find()?;
    person.manifest("bottles", "boxed", &format!("image = \"{}\"\n", engine.image));
    Some(engine)
}

fn reach<'a>(engine: &ContainerEngine, command: &'a mut Command) -> &'a mut Command {
    command.env("DOCKER_HOST", &engine.host)
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
    let Some(engine) = find_engine(&scene.person) else { return };
    let hermetic = &scene.person.hermetic;
    let reads = "[[step]]\nrun = \"forge read-issue 1 | grep 'What is wanted' && forge comment 1 'On it.'\"\n";
    scene.person.script(&format!("{reads}{COMMIT}[[step]]\nsleep = 300\n"));
    let mut running = reach(&engine, &mut scene.command(&START)).spawn().expect("it starts");
    wait_for("the comment", || scene.forge.comments().pop());
    wait_for("the first step", || scene.log().contains(FIRST_STEP_DONE).then_some(()));
    let committed = "\"type\":\"step-done\",\"index\":1";
    wait_for("the commit", || scene.log().contains(committed).then_some(()));
    let frozen = hermetic.run(reach(&engine, &mut scene.command(&["freeze", SLUG])));
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
    let resumed = hermetic.run(reach(&engine, &mut scene.command(&args)));
    assert_eq!(resumed.status, Some(0), "{}\n{}", resumed.snapshot(), scene.log());
    let document = scene.provenance();
    assert_eq!((&document["backend"], &document["complete"]), (&"docker".into(), &true.into()));
    assert_eq!(document["commits"]["new"].as_array().map(Vec::len), Some(2), "{document:#}");
    assert_eq!(scene.forge.pulls().len(), 1);
    let records =
        std::fs::read_to_string(scene.person.last_run(SLUG).join("boxes/agent/order.json"));
    assert!(!records.expect("an order").contains(TOKEN) && !scene.log().contains(TOKEN));

    let destroyed = hermetic.run(reach(&engine, &mut scene.command(&["destroy", SLUG])));
    assert_eq!(destroyed.status, Some(0), "{}", destroyed.snapshot());
    assert!(!scene.person.bottle(SLUG).join("workspace").exists());
}

#[test]
fn a_container_has_a_terminal_as_well() {
    let Some(person) = Person::new() else { return };
    let Some(engine) = find_engine(&person) else { return };
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

/// A way to the engine that can be cut, and be silent, as an engine is that is started again or hangs.
struct Line {
    socket: PathBuf,
    calls: Arc<Mutex<Vec<UnixStream>>>,
    silent: Arc<AtomicBool>,
}

impl Line {
    fn open(folder: &Path, engine: &Path) -> Self {
        let socket = folder.join("engine.sock");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let line = Self { socket, calls: Arc::default(), silent: Arc::default() };
        let (calls, silent, engine) =
            (Arc::clone(&line.calls), Arc::clone(&line.silent), engine.to_path_buf());
        std::thread::spawn(move || {
            for caller in listener.incoming().map_while(Result::ok) {
                let Ok(engine) = UnixStream::connect(&engine) else { continue };
                let twin = |stream: &UnixStream| stream.try_clone().expect("a second handle");
                calls.lock().expect("the list").extend([twin(&caller), twin(&engine)]);
                for (from, to) in [(twin(&caller), twin(&engine)), (engine, caller)] {
                    let silent = Arc::clone(&silent);
                    std::thread::spawn(move || carry(from, to, &silent));
                }
            }
        });
        line
    }

    /// Ends all calls, as an engine does that is started again.
    fn cut(&self) {
        for call in self.calls.lock().expect("the list").drain(..) {
            drop(call.shutdown(Shutdown::Both));
        }
    }
}

fn carry(mut from: UnixStream, mut to: UnixStream, silent: &AtomicBool) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(count) = from.read(&mut bytes) {
        while silent.load(Ordering::Relaxed) {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        if count == 0 || to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    drop(to.shutdown(Shutdown::Both));
    drop(from.shutdown(Shutdown::Both));
}

/// The containers of a run that are left.
fn left_over(scene: &Scene, engine: &ContainerEngine, run: &str) -> String {
    let mut command = scene.person.hermetic.command("docker");
    let label = format!("label=bottle.run={run}");
    let listed = scene.person.hermetic.run(command.args([
        "-H",
        &engine.host,
        "ps",
        "-aq",
        "--filter",
        &label,
    ]));
    assert_eq!(listed.status, Some(0), "{}", listed.snapshot());
    listed.stdout
}

#[test]
fn row_16_an_engine_that_is_started_again_is_the_machines_failure_and_leaves_nothing() {
    let Some(scene) = Scene::new() else { return };
    let Some(engine) = find_engine(&scene.person) else { return };
    let line =
        Line::open(&scene.person.hermetic.work(), Path::new(&engine.host["unix://".len()..]));
    scene.person.agent("worker", "bottle = \"boxed\"\n");
    scene.person.script("[[step]]\nrun = \"true\"\n[[step]]\nsleep = 600\n");
    let host = format!("unix://{}", line.socket.display());
    let serving =
        Serving::start_in_engine(scene, "sweep_secs = 3600\nbackend = \"docker\"\n", &host);
    serving.label();
    wait_for("the agent", || {
        let runs = serving.scene.person.bottle(SLUG).join("runs");
        (runs.exists() && serving.scene.log().contains(FIRST_STEP_DONE)).then_some(())
    });
    let first = serving.scene.person.last_run(SLUG);
    serving.scene.person.script(&format!("{COMMIT}{DONE}"));
    line.cut();
    serving.wait("waiting");
    let name = first.file_name().expect("a name").to_string_lossy().into_owned();
    let document = serving.scene.person.provenance(&name);
    assert_eq!(document["exit"]["class"], "infra", "{document:#}");
    serving.wait("frozen");
    assert_eq!(serving.pulls(), 1);
    assert_eq!(left_over(&serving.scene, &engine, &name), "");
}

#[test]
fn row_16_an_engine_that_hangs_holds_up_nobody_else() {
    let Some(scene) = Scene::new() else { return };
    let Some(engine) = find_engine(&scene.person) else { return };
    let line =
        Line::open(&scene.person.hermetic.work(), Path::new(&engine.host["unix://".len()..]));
    line.silent.store(true, Ordering::Relaxed);
    scene.person.agent("worker", "bottle = \"boxed\"\n");
    scene.person.agent("other", "");
    let script = scene.person.home().join("agents/other-script.txt");
    std::fs::write(script, format!("{COMMIT}{DONE}")).expect("written");
    let other = scene.forge.add_issue("In bubblewrap", "", &["bot-bottle:other"], &["bot1"]);
    let host = format!("unix://{}", line.socket.display());
    let serving = Serving::start_in_engine(scene, "sweep_secs = 2\n", &host);
    serving.wait_for_all(&[other]);
    assert_eq!(serving.pulls(), 1, "the other one is done");
    line.silent.store(false, Ordering::Relaxed);
}

/// A shim that is killed leaves its container running. The issue is retried, but only when that container is gone: two
/// agents in one workspace would overwrite each other.
#[test]
fn an_issue_is_not_retried_beside_a_container_that_still_runs() {
    let Some(scene) = Scene::new() else { return };
    let Some(engine) = find_engine(&scene.person) else { return };
    scene.person.agent("worker", "bottle = \"boxed\"\n");
    scene.person.script("[[step]]\nrun = \"true\"\n[[step]]\nsleep = 600\n");
    let more = "sweep_secs = 3600\nbackend = \"docker\"\n";
    let serving = Serving::start_in_engine(scene, more, &engine.host);
    serving.label();
    wait_for("the agent", || {
        let runs = serving.scene.person.bottle(SLUG).join("runs");
        (runs.exists() && serving.scene.log().contains(FIRST_STEP_DONE)).then_some(())
    });
    let first = serving.scene.person.last_run(SLUG);
    let name = first.file_name().expect("a name").to_string_lossy().into_owned();
    assert_ne!(left_over(&serving.scene, &engine, &name), "", "the first container runs");
    let shim = std::fs::read_to_string(first.join("boxes/agent/shim.json")).expect("a shim");
    let shim: serde_json::Value = serde_json::from_str(&shim).expect("JSON");
    serving.scene.person.script(&format!("{COMMIT}{DONE}"));
    serving.signal("-KILL", &shim["process"]["pid"].to_string());
    wait_for("a second run", || (serving.scene.person.last_run(SLUG) != first).then_some(()));
    assert_eq!(left_over(&serving.scene, &engine, &name), "", "no second agent beside the first");
    serving.wait("frozen");
    assert_eq!(serving.pulls(), 1);
}
