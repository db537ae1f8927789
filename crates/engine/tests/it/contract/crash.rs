//! What holds when a part of us dies: no deadline is lifted, no box goes on unwatched, no result is lost or made twice.

use std::fs;
use std::path::Path;
use std::time::Duration;

use engine::launch::{LaunchError, Launcher, Sighting, attach, look};
use engine::place::{Order, Place};
use host::process::{ProcessHandle, Signal, send_signal};
use model::verdict::Ended;
use testkit::Hermetic;

use crate::support::{
    DAEMONS, Picture, Rig, Running, beats, eventually, on_backend, on_every_backend, picture,
    token, words_with,
};

on_every_backend! {
    a_box_is_never_run_twice,
    a_box_that_runs_cannot_be_launched_again,
    a_box_whose_shim_died_is_a_failure_of_ours,
    the_death_of_the_launcher_lifts_no_deadline,
    a_terminal_that_closes_does_not_end_the_box,
}

async fn a_box_is_never_run_twice(rig: &Rig) {
    let ran = rig.sh("echo ran >>count; echo out; exit 3").run().await;
    let before = picture_of(&ran.place);
    let again = rig.launcher.launch(&ran.spec);
    assert!(matches!(again, Err(LaunchError::NotNew { .. })), "{again:?}");
    assert_eq!(attach(&ran.place).await.expect("a record"), ran.record);
    assert_eq!(picture_of(&ran.place), before);
    assert_eq!(fs::read_to_string(rig.workspace().join("count")).expect("a file"), "ran\n");
}

/// All that is kept of a box; whoever asks for its lock leaves their name there.
fn picture_of(place: &Place) -> Picture {
    let mut picture = picture(place.path());
    picture.remove(Path::new(sandbox::LOCK_FILE)).expect("a lock");
    picture
}

async fn a_box_that_runs_cannot_be_launched_again(rig: &Rig) {
    let running = rig.sh("echo ran >>count; until [ -e go ]; do sleep 0.02; done").launch();
    let again = rig.launcher.launch(&running.spec);
    assert!(matches!(again, Err(LaunchError::Lock(_))), "{again:?}");
    running.made("count").await;
    let again = rig.launcher.launch(&running.spec);
    assert!(matches!(again, Err(LaunchError::Lock(_))), "{again:?}");
    fs::write(rig.workspace().join("go"), "").expect("a file");
    let ran = running.end().await;
    assert_eq!(ran.record.ended, Ended::Exited { code: 0 }, "{ran:#?}");
    assert_eq!(fs::read_to_string(rig.workspace().join("count")).expect("a file"), "ran\n");
}

async fn a_box_whose_shim_died_is_a_failure_of_ours(rig: &Rig) {
    let (running, _) = launch_daemons(rig).await;
    kill_shim(&running).await;
    assert_eq!(look(&running.place).expect("a look"), Sighting::Orphaned);
    let again = rig.launcher.launch(&running.spec);
    assert!(matches!(again, Err(LaunchError::NotNew { .. })), "{again:?}");
    let ran = running.end().await;
    let Ended::Infra { reason } = &ran.record.ended else { panic!("{ran:#?}") };
    assert!(reason.contains("the shim ended without a record"), "{reason}");
    sweep_if_needed(rig).await;
}

/// The launcher is a process of its own here, and is killed as soon as the box is under way.
async fn the_death_of_the_launcher_lifts_no_deadline(rig: &Rig) {
    let sh = rig.sh("echo out; : >started; trap '' TERM; while :; do sleep 0.05; done");
    let sh = sh.deadline_secs(3).grace_ms(300);
    let order = Order { spec: sh.spec.clone(), backend: rig.kind(), egress: None };
    let file = rig.dir().join("order-of-the-launcher.json");
    fs::write(&file, serde_json::to_vec(&order).expect("JSON")).expect("a file");
    let hermetic = Hermetic::new();
    let mut command = hermetic.command(host::env::current_exe().expect("this program"));
    command.args(["--ignored", "--exact", "contract::crash::launch_and_wait"]);
    command.env(ORDER_VARIABLE, &file);
    command.envs(
        ["PATH", "DOCKER_HOST", "XDG_RUNTIME_DIR"]
            .iter()
            .filter_map(|name| Some((*name, host::env::var(name)?))),
    );
    let mut launcher = command.spawn().expect("a launcher");
    let place = Place::new(&sh.spec.place);
    let runs = || look(&place).expect("a look") == Sighting::Running;
    eventually("a box under way", Duration::from_secs(30), runs).await;
    launcher.kill().expect("a signal");
    launcher.wait().expect("an end");
    let record = attach(&place).await.expect("a record");
    assert_eq!(record.ended, Ended::OutOfTime, "{record:#?}");
    assert!((3000..5300).contains(&record.wall_ms), "{record:#?}");
    assert_eq!(place.load_exit().expect("a record"), Some(record));
    assert_eq!(fs::read(place.stdout(sh.spec.output)).expect("a log"), b"out\n");
}

/// Names the order of [`launch_and_wait`].
const ORDER_VARIABLE: &str = "BOTTLEWORKS_TEST_ORDER";

#[tokio::test]
#[ignore = "a program for the_death_of_the_launcher_lifts_no_deadline"]
async fn launch_and_wait() {
    let file = host::env::var(ORDER_VARIABLE).expect("an order");
    let order: Order = serde_json::from_slice(&fs::read(file).expect("a file")).expect("JSON");
    let launcher = launcher_of(&order);
    launcher.launch(&order.spec).expect("a launch");
    tokio::time::sleep(Duration::from_secs(60)).await;
}

fn launcher_of(order: &Order) -> Launcher {
    Launcher {
        program: env!("CARGO_BIN_EXE_bottle-shim").into(),
        words: Vec::new(),
        backend: order.backend,
        secrets: Vec::new(),
    }
}

/// Whoever leads the session of a terminal is told when it closes, and so is its whole group.
async fn a_terminal_that_closes_does_not_end_the_box(rig: &Rig) {
    let running = rig.sh(": >started; until [ -e go ]; do sleep 0.02; done; echo end").launch();
    running.made("started").await;
    let shim = running.watched().await;
    assert_eq!(session_of(shim.pid), shim.pid);
    assert_ne!(session_of(shim.pid), session_of(own_pid()));
    fs::write(rig.workspace().join("go"), "").expect("a file");
    assert_eq!(running.end().await.stdout, "end\n");
}

mod without_a_daemon {
    use super::*;

    on_backend!(bwrap, Bwrap, a_box_dies_with_its_shim);

    async fn a_box_dies_with_its_shim(rig: &Rig) {
        let (running, token) = launch_daemons(rig).await;
        kill_shim(&running).await;
        let is_gone = || words_with(&token).is_empty();
        eventually("a box that is gone", Duration::from_secs(2), is_gone).await;
        assert!(!beats(&rig.workspace()).await);
    }
}

mod with_a_daemon {
    use sandbox::docker::{Engine, sweep};

    use super::*;

    on_backend! {
        docker,
        Docker,
        an_orphan_is_swept,
        a_box_that_is_watched_is_not_swept,
    }

    async fn an_orphan_is_swept(rig: &Rig) {
        let (running, token) = launch_daemons(rig).await;
        kill_shim(&running).await;
        assert!(beats(&rig.workspace()).await, "the engine does not end it by itself");
        let engine = Engine::find().await.expect("an engine");
        // Another test may sweep at the same moment, so what counts is that it is gone.
        sweep(&engine).await.expect("a sweep");
        let is_gone = || words_with(&token).is_empty();
        eventually("an orphan that is gone", Duration::from_secs(10), is_gone).await;
        assert!(!beats(&rig.workspace()).await);
        assert!(
            sweep(&engine)
                .await
                .expect("a sweep")
                .iter()
                .all(|swept| swept.run != rig.run().as_str())
        );
    }

    async fn a_box_that_is_watched_is_not_swept(rig: &Rig) {
        let (running, _) = launch_daemons(rig).await;
        let engine = Engine::find().await.expect("an engine");
        let swept = sweep(&engine).await.expect("a sweep");
        assert!(swept.iter().all(|swept| swept.run != rig.run().as_str()), "{swept:?}");
        assert!(beats(&rig.workspace()).await);
        engine::launch::stop(&running.place).expect("a signal");
        let ran = running.end().await;
        assert_eq!(ran.record.ended, Ended::Stopped, "{ran:#?}");
    }
}

/// A box with five daemons in it, under way, and the word on their command lines.
async fn launch_daemons(rig: &Rig) -> (Running<'_>, String) {
    let token = token();
    let script = format!("{}: >started; sleep 60", DAEMONS.replace("TOKEN", &token));
    let running = rig.sh(&script).grace_ms(300).launch();
    running.made("started").await;
    assert!(beats(&rig.workspace()).await);
    (running, token)
}

/// Kills the shim as nothing else would be killed, and waits until it is gone.
async fn kill_shim(running: &Running<'_>) {
    let shim = running.watched().await;
    assert!(send_signal(&shim, Signal::KILL).expect("a signal"));
    let is_gone = || !shim.is_alive().expect("a look");
    eventually("a shim that is gone", Duration::from_secs(5), is_gone).await;
}

/// What a killed shim leaves on an engine is removed, so that the test leaves nothing.
async fn sweep_if_needed(rig: &Rig) {
    if rig.kind() == sandbox::backend::BackendKind::Docker {
        let engine = sandbox::docker::Engine::find().await.expect("an engine");
        sandbox::docker::sweep(&engine).await.expect("a sweep");
    }
}

fn own_pid() -> i32 {
    ProcessHandle::current().expect("this process").pid
}

/// The fourth field after the name in parentheses.
fn session_of(pid: i32) -> i32 {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    let stat = stat.expect("a process");
    let (_, fields) = stat.rsplit_once(") ").expect("a name");
    fields.split(' ').nth(3).and_then(|field| field.parse().ok()).expect("a session")
}
