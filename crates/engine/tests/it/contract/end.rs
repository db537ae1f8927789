//! How boxes end when it is not their own idea: with everything in them, in time, and with the right name.

use std::fs;

use engine::launch::{end, stop};
use model::verdict::Ended;

use crate::support::{
    DAEMONS, Rig, assert_silent, beats_of, eventually, on_every_backend, token, words_with,
};

/// A grace that nobody can use up in a test.
const LONG_MS: u64 = 600_000;

on_every_backend! {
    the_deadline_ends_the_whole_tree,
    the_deadline_outranks_a_last_minute_success,
    silence_ends_a_box_too,
    a_box_that_goes_on_talking_goes_on,
    a_polite_agent_gets_to_finish,
    the_polite_signal_reaches_every_process,
    daemons_do_not_outlive_their_command,
    a_box_that_is_stopped_says_so,
    a_box_can_be_stopped_while_it_is_being_built,
    what_has_ended_cannot_be_stopped,
    ending_waits_for_a_shim_that_is_on_its_way,
}

async fn the_deadline_ends_the_whole_tree(rig: &Rig) {
    let token = token();
    let script =
        format!("trap '' TERM\n{}sleep 900 & wait; sleep 900", DAEMONS.replace("TOKEN", &token));
    let ran = rig.sh(&script).deadline_secs(8).grace_ms(500).run().await;
    assert_eq!(ran.record.ended, Ended::OutOfTime, "{ran:#?}");
    assert!(ran.record.wall_ms >= 8000, "{ran:#?}");
    assert!(beats_of(&rig.workspace()).iter().all(|beat| *beat > 0), "{ran:#?}");
    assert_eq!(words_with(&token), [""; 0]);
    assert_silent(&rig.workspace()).await;
}

async fn the_deadline_outranks_a_last_minute_success(rig: &Rig) {
    let script = "trap 'exit 0' TERM; : >started; while :; do sleep 0.05; done";
    let ran = rig.sh(script).deadline_secs(2).run().await;
    assert_eq!(ran.record.ended, Ended::OutOfTime, "{ran:#?}");
}

async fn silence_ends_a_box_too(rig: &Rig) {
    let ran = rig.sh("echo one word; sleep 60").with(|spec| spec.silence_secs = Some(2));
    let ran = ran.run().await;
    assert_eq!((&ran.record.ended, ran.record.fell_silent), (&Ended::OutOfTime, true), "{ran:#?}");
    assert_eq!(ran.stdout, "one word\n");
}

async fn a_box_that_goes_on_talking_goes_on(rig: &Rig) {
    let script = "for n in 1 2 3 4 5 6; do sleep 0.5; echo $n; done";
    let ran = rig.sh(script).with(|spec| spec.silence_secs = Some(2)).run_ok().await;
    assert!(!ran.record.fell_silent);
}

async fn a_polite_agent_gets_to_finish(rig: &Rig) {
    let script =
        "trap 'sleep 0.5; echo tidy; : >tidied; exit 0' TERM; while :; do sleep 0.05; done";
    let ran = rig.sh(script).deadline_secs(8).grace_ms(LONG_MS).run().await;
    assert_eq!(ran.record.ended, Ended::OutOfTime, "{ran:#?}");
    assert_eq!(ran.stdout, "tidy\n");
    assert!(rig.workspace().join("tidied").exists());
    // It used what it needed of the grace, and no more.
    assert!((8500..LONG_MS).contains(&ran.record.wall_ms), "{ran:#?}");
}

async fn the_polite_signal_reaches_every_process(rig: &Rig) {
    let child = "trap ': >/workspace/child-heard; exit' TERM; : >/workspace/child; while :; do sleep 0.05; done";
    let script =
        "trap ': >heard; exit' TERM; (setsid sh -c \"$CHILD\" &); while :; do sleep 0.05; done";
    let running = rig.sh(script).env("CHILD", child).grace_ms(LONG_MS).launch();
    running.made("child").await;
    assert!(stop(&running.box_dir).expect("a signal"));
    running.end().await;
    assert!(rig.workspace().join("heard").exists() && rig.workspace().join("child-heard").exists());
}

async fn daemons_do_not_outlive_their_command(rig: &Rig) {
    let token = token();
    let script = format!("{}exit 4", DAEMONS.replace("TOKEN", &token));
    let ran = rig.sh(&script).run().await;
    assert_eq!(ran.record.ended, Ended::Exited { code: 4 }, "{ran:#?}");
    assert_eq!(words_with(&token), [""; 0]);
    assert_silent(&rig.workspace()).await;
}

async fn a_box_that_is_stopped_says_so(rig: &Rig) {
    let token = token();
    let script = format!("{}: >started; sleep 60", DAEMONS.replace("TOKEN", &token));
    let running = rig.sh(&script).grace_ms(300).launch();
    running.made("started").await;
    assert!(stop(&running.box_dir).expect("a signal"));
    let ran = running.end().await;
    assert_eq!(ran.record.ended, Ended::Stopped, "{ran:#?}");
    assert_eq!(words_with(&token), [""; 0]);
}

async fn a_box_can_be_stopped_while_it_is_being_built(rig: &Rig) {
    let running = rig.argv(&["sleep", "60"]).launch();
    running.watched().await;
    assert!(stop(&running.box_dir).expect("a signal"));
    let ran = running.end().await;
    assert_eq!(ran.record.ended, Ended::Stopped, "{ran:#?}");
}

async fn what_has_ended_cannot_be_stopped(rig: &Rig) {
    let ran = rig.argv(&["true"]).run_ok().await;
    let is_deaf = || !stop(&ran.box_dir).expect("a look");
    eventually("a shim that is gone", is_deaf).await;
    let record = fs::read(ran.box_dir.path().join("exit.json")).expect("the record");
    assert!(String::from_utf8_lossy(&record).contains("exited"));
}

async fn ending_waits_for_a_shim_that_is_on_its_way(rig: &Rig) {
    let running = rig.sh("sleep 600").launch();
    // Nobody knows the shim yet, and it is not lost for that.
    let record = end(&running.box_dir).await.expect("an end");
    assert_eq!(record.ended, Ended::Stopped, "{record:#?}");
    let again = end(&running.box_dir).await.expect("the same end");
    assert_eq!(again.ended, Ended::Stopped);
}
