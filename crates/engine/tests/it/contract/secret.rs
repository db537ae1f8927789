//! Secrets of the host: in no box, on no command line, in no log and in no record.

use std::fs;

use testkit::tree::holding;

use crate::support::{Rig, environs_with, on_every_backend, token, words_with};

on_every_backend! {
    a_secret_is_struck_out_of_both_logs,
    a_secret_that_comes_in_pieces_is_struck_out,
    a_secret_is_on_no_command_line_and_in_no_file,
    nothing_in_the_box_knows_a_secret,
}

/// A secret that no other test has.
fn secret() -> String {
    format!("s3cr3t-{}", token())
}

/// A box knows a secret only where a test tells it, in two pieces that are none.
fn telling(secret: &str, script: &str) -> String {
    let (head, tail) = secret.split_at(9);
    format!("head={head}; tail={tail}\n{script}")
}

async fn a_secret_is_struck_out_of_both_logs(rig: &Rig) {
    let secret = secret();
    let script = telling(&secret, "echo \"key $head$tail end\"; echo \"$head$tail\" >&2");
    let ran = rig.sh(&script).secret(&secret).run_ok().await;
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("key *** end\n", "***\n"));
}

async fn a_secret_that_comes_in_pieces_is_struck_out(rig: &Rig) {
    let secret = secret();
    let script = telling(&secret, "printf 'key %s' \"$head\"; sleep 0.3; echo \"$tail end\"");
    let ran = rig.sh(&script).secret(&secret).run_ok().await;
    assert_eq!(ran.stdout, "key *** end\n");
}

async fn a_secret_is_on_no_command_line_and_in_no_file(rig: &Rig) {
    let secret = secret();
    let script =
        telling(&secret, "echo \"$head$tail\"; : >started; until [ -e go ]; do sleep 0.02; done");
    let running = rig.sh(&script).secret(&secret).launch();
    running.made("started").await;
    let shim = running.watched().await;
    assert_eq!(words_with(&secret), [""; 0]);
    // The shim has to know what to strike out. It runs as the launcher's user, where no box can see it.
    assert!(environs_with(&secret).iter().all(|pid| *pid == shim.pid), "more than the shim");
    fs::write(rig.workspace().join("go"), "").expect("a file");
    running.end().await;
    assert!(holding(rig.dir(), &secret).is_empty(), "{:?}", holding(rig.dir(), &secret));
}

async fn nothing_in_the_box_knows_a_secret(rig: &Rig) {
    let secret = secret();
    let script = "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /harness-state/run/config.json; \
        find /harness-state /workspace /tmp /dev/shm -type f -size -100k -exec cat {} +";
    let ran = rig.sh(script).secret(&secret).run().await;
    // What is struck out was there.
    assert!(!ran.stdout.contains("***") && ran.stdout.contains("bottle-guest"), "{ran:#?}");
}
