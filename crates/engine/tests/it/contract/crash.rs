//! What holds when a part of us dies: no deadline is lifted, no box goes on unwatched, no result is lost or made twice.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use engine::box_dir::{BoxDir, ShimConfig};
use engine::launch::{BoxStatus, LaunchError, attach, box_status};
use engine::lease_file::LeaseFile;
use host::process::{ProcessHandle, Signal, send_signal};
use model::verdict::Ended;
use sandbox::spec::BoxSpec;
use testkit::Hermetic;
use testkit::tree::{Picture, picture};

use crate::support::{
    DAEMONS, Rig, Running, assert_beating, assert_silent, eventually, on_backend, on_every_backend,
    token, words_with,
};

on_every_backend! {
    a_box_is_never_run_twice,
    a_box_that_runs_cannot_be_launched_again,
    a_box_whose_shim_died_is_a_failure_of_ours,
    the_death_of_the_launcher_lifts_no_deadline,
    a_box_ends_with_a_lease_that_nobody_renews,
    a_terminal_that_closes_does_not_end_the_box,
    an_agent_that_kills_all_it_can_is_still_the_agent,
}

async fn a_box_is_never_run_twice(rig: &Rig) {
    let ran = rig.sh("echo ran >>count; echo out; exit 3").run().await;
    let before = picture_of(&ran.box_dir);
    let again = rig.launcher.launch(&ran.spec, None);
    assert!(matches!(again, Err(LaunchError::NotNew { .. })), "{again:?}");
    assert_eq!(attach(&ran.box_dir).await.expect("a record"), ran.record);
    assert_eq!(picture_of(&ran.box_dir), before);
    assert_eq!(fs::read_to_string(rig.workspace().join("count")).expect("a file"), "ran\n");
}

/// All that is kept of a box; whoever asks for its lock leaves their name there.
fn picture_of(box_dir: &BoxDir) -> Picture {
    let mut picture = picture(box_dir.path());
    picture.remove(Path::new(sandbox::LOCK_FILE)).expect("a lock");
    picture
}

async fn a_box_that_runs_cannot_be_launched_again(rig: &Rig) {
    let running = rig.sh("echo ran >>count; until [ -e go ]; do sleep 0.02; done").launch();
    let again = rig.launcher.launch(&running.spec, None);
    assert!(matches!(again, Err(LaunchError::Lock(_))), "{again:?}");
    running.made("count").await;
    let again = rig.launcher.launch(&running.spec, None);
    assert!(matches!(again, Err(LaunchError::Lock(_))), "{again:?}");
    fs::write(rig.workspace().join("go"), "").expect("a file");
    let ran = running.end().await;
    assert_eq!(ran.record.ended, Ended::Exited { code: 0 }, "{ran:#?}");
    assert_eq!(fs::read_to_string(rig.workspace().join("count")).expect("a file"), "ran\n");
}

async fn a_box_whose_shim_died_is_a_failure_of_ours(rig: &Rig) {
    let (running, _) = launch_daemons(rig).await;
    kill_shim(&running).await;
    let again = rig.launcher.launch(&running.spec, None);
    assert!(matches!(again, Err(LaunchError::NotNew { .. })), "{again:?}");
    let ran = running.end().await;
    let Ended::Infra { reason } = &ran.record.ended else { panic!("{ran:#?}") };
    assert!(reason.contains("the shim ended without a record"), "{reason}");
    sweep_if_needed(rig).await;
}

/// The launcher is a process of its own here, and is killed as soon as the box is under way.
async fn the_death_of_the_launcher_lifts_no_deadline(rig: &Rig) {
    let sh = rig.sh("echo out; trap '' TERM; while :; do sleep 0.05; done");
    let sh = sh.deadline_secs(3).grace_ms(300);
    let box_dir = BoxDir::new(&sh.spec.box_dir);
    let mut launcher = launch_elsewhere(rig, &sh.spec);
    let is_watched = || box_dir.load_shim().expect("a look").is_some();
    eventually("a shim", is_watched).await;
    launcher.kill().expect("a signal");
    launcher.wait().expect("an end");
    let record = attach(&box_dir).await.expect("a record");
    assert_eq!(record.ended, Ended::OutOfTime, "{record:#?}");
    assert!(record.wall_ms >= 3000, "{record:#?}");
    assert_eq!(box_dir.load_exit().expect("a record"), Some(record));
    assert_eq!(fs::read(box_dir.stdout(sh.spec.output)).expect("a log"), b"out\n");
}

/// Its holder renews the lease until the box is under way, and then hangs.
async fn a_box_ends_with_a_lease_that_nobody_renews(rig: &Rig) {
    let (lease, length) = (LeaseFile::of_run(rig.dir()), Duration::from_secs(2));
    let renew = || lease.write(host::clock::boottime() + length).expect("a renewal");
    renew();
    let script = format!("{}: >started; sleep 900", DAEMONS.replace("TOKEN", &token()));
    let running = rig.sh(&script).grace_ms(20_000).lease(&lease).launch();
    let started = rig.workspace().join("started");
    let mut renewed_at = host::clock::boottime();
    while !started.exists() {
        tokio::time::sleep(length / 10).await;
        renewed_at = host::clock::boottime();
        renew();
    }
    let ran = running.end().await;
    let Ended::Infra { reason } = &ran.record.ended else { panic!("{ran:#?}") };
    assert!(reason.contains("the lease on its work was not renewed in time"), "{reason}");
    assert!(host::clock::boottime() >= renewed_at + length, "it ended before its lease");
    assert_silent(&rig.workspace()).await;
}

/// Names the order of a launcher that is a process of its own.
const ORDER: &str = "BOTTLEWORKS_TEST_ORDER";

/// Launches a box from this same program, started once more.
fn launch_elsewhere(rig: &Rig, spec: &BoxSpec) -> Child {
    let file = rig.dir().join("order-of-the-launcher.json");
    let order = ShimConfig { spec: spec.clone(), backend: rig.kind(), egress: None, lease: None };
    fs::write(&file, serde_json::to_vec(&order).expect("JSON")).expect("a file");
    let mut command = Hermetic::new().command(host::env::current_exe().expect("this program"));
    command.current_dir("/").stdout(Stdio::null()).stderr(Stdio::null());
    command.args(["--exact", "contract::crash::as_a_launcher_it_waits_to_be_killed"]);
    command.env(ORDER, &file);
    for name in ["PATH", "DOCKER_HOST", "XDG_RUNTIME_DIR"] {
        command.envs(host::env::var(name).map(|value| (name, value)));
    }
    command.spawn().expect("a launcher")
}

/// Does its part only when the test above starts it.
#[tokio::test]
async fn as_a_launcher_it_waits_to_be_killed() {
    let Some(file) = host::env::var(ORDER) else { return };
    let order: ShimConfig = serde_json::from_slice(&fs::read(file).expect("a file")).expect("JSON");
    Rig::launcher_of(order.backend).launch(&order.spec, None).expect("a launch");
    std::future::pending::<()>().await;
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

async fn an_agent_that_kills_all_it_can_is_still_the_agent(rig: &Rig) {
    let ran = rig.sh("kill -KILL 1; kill -KILL -1; kill -KILL $$").run().await;
    assert_eq!(ran.record.ended, Ended::Exited { code: 137 }, "{ran:#?}");
}

mod without_a_daemon {
    use super::*;

    on_backend! {
        bwrap,
        Bwrap,
        a_box_dies_with_its_shim,
        a_box_killed_from_outside_is_a_failure_of_ours,
    }

    /// The first process below the shim is bubblewrap, the second the guest.
    async fn a_box_killed_from_outside_is_a_failure_of_ours(rig: &Rig) {
        for victim in [1, 2] {
            let name = format!("started-{victim}");
            let running = rig.sh(&format!(": >{name}; sleep 900")).launch();
            running.made(&name).await;
            let shim = running.watched().await;
            let family = host::proc::descendants(shim.pid);
            let victim = ProcessHandle::of(family[victim]).expect("a process");
            assert!(send_signal(&victim, Signal::KILL).expect("a signal"));
            let ran = running.end().await;
            let Ended::Infra { reason } = &ran.record.ended else { panic!("{ran:#?}") };
            assert!(reason.contains("killed from outside"), "{reason}");
        }
    }

    async fn a_box_dies_with_its_shim(rig: &Rig) {
        let (running, token) = launch_daemons(rig).await;
        kill_shim(&running).await;
        let is_gone = || words_with(&token).is_empty();
        eventually("a box that is gone", is_gone).await;
        assert_silent(&rig.workspace()).await;
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
        a_box_whose_shim_hangs_is_swept_after_its_deadline,
        a_container_is_named_after_its_run_and_box,
        a_container_killed_from_outside_is_a_failure_of_ours,
    }

    /// The engine's own word for a killed container is that of an agent whose command was killed.
    async fn a_container_killed_from_outside_is_a_failure_of_ours(rig: &Rig) {
        let running = rig.sh(": >started; sleep 900").launch();
        running.made("started").await;
        let engine = Engine::find().await.expect("an engine");
        let name = format!("bottleworks-{}-{}", rig.run(), running.spec.name);
        let inspected = engine.client().inspect_container(&name, None).await.expect("inspected");
        let pid = inspected.state.and_then(|state| state.pid).expect("a pid");
        let guest = ProcessHandle::of(i32::try_from(pid).expect("a pid")).expect("a process");
        assert!(send_signal(&guest, Signal::KILL).expect("a signal"));
        let ran = running.end().await;
        let Ended::Infra { reason } = &ran.record.ended else { panic!("{ran:#?}") };
        assert!(reason.contains("killed from outside"), "{reason}");
    }

    /// A run of the same name in another folder has the name already, and both boxes work.
    async fn a_container_is_named_after_its_run_and_box(rig: &Rig) {
        const WAIT: &str = ": >started; until [ -e go ]; do sleep 0.02; done";
        let other = Rig::on(rig.kind()).expect("the same backend");
        let first = rig.sh(WAIT).launch();
        first.made("started").await;
        let second = other.sh(WAIT).with(|spec| spec.run = rig.run().clone()).launch();
        second.made("started").await;
        let engine = Engine::find().await.expect("an engine");
        let listed = engine.client().list_containers(None).await.expect("a list");
        let names: Vec<String> =
            listed.into_iter().flat_map(|container| container.names.unwrap_or_default()).collect();
        let name = format!("/bottleworks-{}-{}", rig.run(), first.spec.name);
        assert!(names.contains(&name), "{names:?}");
        let numbered = |other: &String| other.starts_with(&format!("{name}-"));
        assert_eq!(names.iter().filter(|name| numbered(name)).count(), 1, "{names:?}");
        for (rig, running) in [(rig, first), (&other, second)] {
            fs::write(rig.workspace().join("go"), "").expect("a file");
            assert_eq!(running.end().await.record.ended, Ended::Exited { code: 0 });
        }
    }

    async fn an_orphan_is_swept(rig: &Rig) {
        let (running, token) = launch_daemons(rig).await;
        kill_shim(&running).await;
        assert_beating(&rig.workspace()).await; // the engine does not end it by itself
        let engine = Engine::find().await.expect("an engine");
        // Another test may sweep at the same moment, so what counts is that it is gone.
        sweep(&engine).await.expect("a sweep");
        let is_gone = || words_with(&token).is_empty();
        eventually("an orphan that is gone", is_gone).await;
        assert_silent(&rig.workspace()).await;
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
        assert_beating(&rig.workspace()).await;
        engine::launch::stop(&running.box_dir).expect("a signal");
        let ran = running.end().await;
        assert_eq!(ran.record.ended, Ended::Stopped, "{ran:#?}");
    }
    /// A shim that was stopped keeps its lock and keeps no deadline. The sweeper gives it a few seconds more.
    async fn a_box_whose_shim_hangs_is_swept_after_its_deadline(rig: &Rig) {
        let token = token();
        let script = format!("{}: >started; sleep 900", DAEMONS.replace("TOKEN", &token));
        let running = rig.sh(&script).deadline_secs(15).grace_ms(0).launch();
        running.made("started").await;
        let shim = running.watched().await;
        assert!(send_signal(&shim, Signal::STOP).expect("a signal"));
        let engine = Engine::find().await.expect("an engine");
        sweep(&engine).await.expect("a sweep");
        assert_beating(&rig.workspace()).await; // it has time left
        while !words_with(&token).is_empty() {
            sweep(&engine).await.expect("a sweep");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        assert!(send_signal(&shim, Signal::CONT).expect("a signal"));
        let ran = running.end().await;
        assert!(matches!(ran.record.ended, Ended::Infra { .. } | Ended::OutOfTime), "{ran:#?}");
    }
}

/// A box with five daemons in it, under way, and the word on their command lines.
async fn launch_daemons(rig: &Rig) -> (Running<'_>, String) {
    let token = token();
    let script = format!("{}: >started; sleep 900", DAEMONS.replace("TOKEN", &token));
    let running = rig.sh(&script).grace_ms(300).launch();
    running.made("started").await;
    assert_beating(&rig.workspace()).await;
    (running, token)
}

/// Kills the shim, and waits until the last of its threads has let go of the lock.
async fn kill_shim(running: &Running<'_>) {
    let shim = running.watched().await;
    assert!(send_signal(&shim, Signal::KILL).expect("a signal"));
    let is_orphan = || box_status(&running.box_dir).expect("a look") == BoxStatus::Orphaned;
    eventually("an orphan", is_orphan).await;
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
