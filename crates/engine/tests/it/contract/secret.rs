//! Secrets of the host: in no box, on no command line, in no log and in no record.

use std::fs;

use testkit::tree::holding;

use crate::support::{Rig, environs_with, on_every_backend, token, words_with};

on_every_backend! {
    a_secret_is_struck_out_of_both_logs,
    a_secret_that_comes_in_pieces_is_struck_out,
    a_secret_is_on_no_command_line_and_in_no_file,
    nothing_in_the_box_knows_a_secret,
    a_secret_in_the_agents_own_files_is_masked,
    a_secret_that_the_agent_hides_is_masked_and_no_link_is_followed,
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
    assert_eq!(environs_with(&secret), [0; 0]);
    // The shim has to know what to strike out. What it was handed is erased.
    let handed = fs::read(format!("/proc/{}/fd/1", shim.pid)).expect("our own process");
    assert!(handed.is_empty());
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

/// The harness keeps a log of its own, inside the box, where no redactor sees it.
async fn a_secret_in_the_agents_own_files_is_masked(rig: &Rig) {
    let secret = secret();
    let script = telling(
        &secret,
        "cd /harness-state; echo \"key $head$tail end\" >logs/agent.log; mkdir home/.agent
        printf 'a\\0%s\\0b' \"$head$tail\" >home/.agent/history.db
        printf %s \"$head$tail\" | base64 -w0 >home/.agent/encoded",
    );
    rig.sh(&script).secret(&secret).run_ok().await;
    let read = |name: &str| fs::read_to_string(rig.harness_state().join(name)).expect("a file");
    let stars = "*".repeat(secret.len());
    assert_eq!(read("logs/agent.log"), format!("key {stars} end\n"));
    assert_eq!(read("home/.agent/history.db"), format!("a\0{stars}\0b"));
    assert!(read("home/.agent/encoded").bytes().all(|byte| byte == b'*'));
    assert!(holding(rig.dir(), &secret).is_empty(), "{:?}", holding(rig.dir(), &secret));
}

async fn a_secret_that_the_agent_hides_is_masked_and_no_link_is_followed(rig: &Rig) {
    let secret = secret();
    let outside = tempfile::tempdir().expect("a folder");
    let file = outside.path().join("of-the-host");
    fs::write(&file, &secret).expect("a file");
    let script = telling(
        &secret,
        &format!(
            "cd /harness-state/logs; ln -s {0} agent.log; ln -s {1} folder; mkdir -p a/b; mkfifo fifo
            echo \"$head$tail\" >a/b/c; chmod 000 a/b/c; chmod 000 a/b; chmod 500 a",
            file.display(),
            outside.path().display()
        ),
    );
    rig.sh(&script).secret(&secret).run_ok().await;
    assert!(holding(rig.dir(), &secret).is_empty(), "{:?}", holding(rig.dir(), &secret));
    assert_eq!(fs::read_to_string(&file).expect("a file"), secret);
}
