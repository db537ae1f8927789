//! The sidecar is killed in the middle of a run: the agent sees errors, the run falls to the watchdog path, and the
//! record says so.

use testkit::hermetic::Output;
use testkit::wait::wait_for;

use crate::support::{COMMIT, FIRST_STEP_DONE, SLUG, Scene};

fn kill_sidecar(scene: &Scene) {
    let pid = wait_for("the agent's first step", || {
        let run = std::fs::read_dir(scene.person.bottle(SLUG).join("runs"))
            .ok()?
            .flatten()
            .next()?
            .path();
        let log = std::fs::read_to_string(run.join("boxes/agent/stdout.log")).ok()?;
        log.contains(FIRST_STEP_DONE).then_some(())?;
        let text = std::fs::read(run.join("sidecar/ready.json")).ok()?;
        serde_json::from_slice::<serde_json::Value>(&text).ok()?["pid"].as_i64()
    });
    let mut command = scene.person.hermetic.command("kill");
    let killed: Output = scene.person.hermetic.run(command.args(["-9", &pid.to_string()]));
    assert_eq!(killed.status, Some(0), "{}", killed.snapshot());
}

#[test]
fn the_agent_sees_errors_and_the_record_says_that_the_sidecar_died() {
    let Some(scene) = Scene::new() else { return };
    let script = format!(
        "[[step]]\nrun = \"forge comment 1 first\"\n\
         [[step]]\nrun = \"while forge read-issue 1 > /dev/null 2>&1; do sleep 0.1; done\"\n\
         [[step]]\nrun = \"forge done success x 2>&1 | grep 'cannot be reached'\"\n{COMMIT}"
    );
    let mut child = scene.spawn(&script);
    kill_sidecar(&scene);
    assert_eq!(child.wait().expect("ended").code(), Some(0), "{}", scene.log());
    let document = scene.provenance();
    assert_eq!(document["sidecar"]["kind"], "died", "{document:#}");
    assert_eq!(document["watchdog_fired"], true);
    assert_eq!(document["watchdog_reason"], "sidecar-died");
    assert_eq!(document["complete"], false);
    assert_eq!(document["operations_chain"]["status"], "whole");
    assert_eq!(scene.person.json(&["orchestrate", "status"])[0]["status"], "frozen");
}

#[test]
fn a_run_that_is_not_heard_of_is_frozen_by_the_watchdog() {
    let Some(scene) = Scene::new() else { return };
    let mut command = scene.start_command(&format!("{COMMIT}[[step]]\nsleep = 600\n"));
    let output = scene.person.hermetic.run(command.env("FORGE_WATCHDOG_TIMEOUT", "3"));
    assert_eq!(output.status, Some(143), "{}", output.snapshot());
    let document = scene.provenance();
    assert_eq!(document["watchdog_reason"], "timed-out");
    assert_eq!(document["exit"]["class"], "frozen");
    assert_eq!(document["verdict"]["kind"], "unfinished");
    assert_eq!(scene.published(), None);
    assert_eq!(scene.person.json(&["orchestrate", "status"])[0]["status"], "frozen");
}

#[test]
fn an_agent_that_said_done_and_does_not_leave_is_frozen_and_published() {
    let Some(scene) = Scene::new() else { return };
    let script = format!("{COMMIT}{}[[step]]\nsleep = 600\n", crate::support::DONE);
    let output = scene.start(&script);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(scene.provenance()["exit"]["class"], "frozen");
    assert_eq!(scene.forge.pulls().len(), 1);
}
