//! Freeze and rehydrate: a box is ended, its folders are kept, and another box goes on from them.

use std::fs;

use engine::launch::freeze;
use model::verdict::Ended;

use crate::support::{Rig, on_every_backend};

on_every_backend! {
    a_frozen_box_says_so_and_keeps_its_files,
    a_rehydrated_box_goes_on_where_it_was,
    a_box_is_rehydrated_on_the_other_backend,
}

/// Leaves something everywhere, then works until it is frozen.
const WORK: &str = "mkdir -p deep/er && echo one >deep/er/file && ln -s deep/er link && chmod 750 deep && \
    echo session >/harness-state/home/.session && echo gone >/tmp/scratch && : >working; \
    while :; do sleep 0.05; done";

/// Looks at what is left, and adds to it.
const GO_ON: &str = "cat link/file /harness-state/home/.session; stat -c '%a %u' deep; ls /tmp; \
    echo two >>deep/er/file && echo more >>/harness-state/home/.session";

async fn a_frozen_box_says_so_and_keeps_its_files(rig: &Rig) {
    freeze_at_work(rig).await;
    assert_eq!(fs::read_to_string(rig.workspace().join("deep/er/file")).expect("a file"), "one\n");
    let session = rig.harness_state().join("home/.session");
    assert_eq!(fs::read_to_string(session).expect("a file"), "session\n");
}

async fn a_rehydrated_box_goes_on_where_it_was(rig: &Rig) {
    freeze_at_work(rig).await;
    go_on(rig).await;
}

async fn a_box_is_rehydrated_on_the_other_backend(rig: &Rig) {
    let Some(other) = rig.on_the_other_backend() else { return };
    freeze_at_work(rig).await;
    go_on(&other).await;
    let ran = rig.sh("cat link/file /harness-state/home/.session").run_ok().await;
    assert_eq!(ran.stdout, "one\ntwo\nsession\nmore\n");
}

async fn freeze_at_work(rig: &Rig) {
    let running = rig.sh(WORK).launch();
    running.made("working").await;
    assert!(freeze(&running.box_dir).expect("a signal"));
    let ran = running.end().await;
    assert_eq!(ran.record.ended, Ended::Frozen, "{ran:#?}");
}

async fn go_on(rig: &Rig) {
    let ran = rig.sh(GO_ON).run_ok().await;
    assert_eq!(ran.stdout, format!("one\nsession\n750 {}\n", rig.uid_inside()));
    assert_eq!(
        fs::read_to_string(rig.workspace().join("deep/er/file")).expect("a file"),
        "one\ntwo\n"
    );
}
