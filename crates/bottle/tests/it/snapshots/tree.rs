//! Files that runs leave on disk: the folder of a bottle and its run directory, with modes.

use super::tree;
use crate::support::{COMMIT, DONE, Person, SLUG, Scene};

#[test]
fn the_folder_of_a_bottle_after_one_run() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.start(COMMIT, &["--label", "plain"]).status, Some(0));
    insta::assert_snapshot!(tree(&person, &person.bottle("plain")));
}

#[test]
fn the_folder_of_a_destroyed_bottle() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.start(COMMIT, &["--label", "plain"]).status, Some(0));
    assert_eq!(person.run(&["destroy", "plain", "--force"]).status, Some(0));
    insta::assert_snapshot!(tree(&person, &person.bottle("plain")), @"
    lock (private)
    record.json (private)
    runs (private)
    runs/plain_[STAMP] (private)
    runs/plain_[STAMP]/boxes
    runs/plain_[STAMP]/boxes/agent
    runs/plain_[STAMP]/boxes/agent/etc
    runs/plain_[STAMP]/boxes/agent/etc/group
    runs/plain_[STAMP]/boxes/agent/etc/hosts
    runs/plain_[STAMP]/boxes/agent/etc/nsswitch.conf
    runs/plain_[STAMP]/boxes/agent/etc/passwd
    runs/plain_[STAMP]/boxes/agent/etc/resolv.conf
    runs/plain_[STAMP]/boxes/agent/exit.json (private)
    runs/plain_[STAMP]/boxes/agent/guest
    runs/plain_[STAMP]/boxes/agent/guest/bottle-guest
    runs/plain_[STAMP]/boxes/agent/guest/config.json
    runs/plain_[STAMP]/boxes/agent/guest/harness
    runs/plain_[STAMP]/boxes/agent/guest/harness/agent.argv
    runs/plain_[STAMP]/boxes/agent/guest/harness/instructions.txt
    runs/plain_[STAMP]/boxes/agent/guest/script.json
    runs/plain_[STAMP]/boxes/agent/harness
    runs/plain_[STAMP]/boxes/agent/harness/run.sh
    runs/plain_[STAMP]/boxes/agent/lock (private)
    runs/plain_[STAMP]/boxes/agent/max_inotify_instances
    runs/plain_[STAMP]/boxes/agent/max_inotify_watches
    runs/plain_[STAMP]/boxes/agent/order.json (private)
    runs/plain_[STAMP]/boxes/agent/provider (private)
    runs/plain_[STAMP]/boxes/agent/seccomp-0.bpf
    runs/plain_[STAMP]/boxes/agent/seccomp-1.bpf
    runs/plain_[STAMP]/boxes/agent/shim.json (private)
    runs/plain_[STAMP]/boxes/agent/shim.log
    runs/plain_[STAMP]/boxes/agent/stderr.log
    runs/plain_[STAMP]/boxes/agent/stdout.log
    runs/plain_[STAMP]/boxes/agent/stdout.times
    runs/plain_[STAMP]/boxes/export-1
    runs/plain_[STAMP]/boxes/export-1/etc
    runs/plain_[STAMP]/boxes/export-1/etc/group
    runs/plain_[STAMP]/boxes/export-1/etc/hosts
    runs/plain_[STAMP]/boxes/export-1/etc/nsswitch.conf
    runs/plain_[STAMP]/boxes/export-1/etc/passwd
    runs/plain_[STAMP]/boxes/export-1/etc/resolv.conf
    runs/plain_[STAMP]/boxes/export-1/exit.json (private)
    runs/plain_[STAMP]/boxes/export-1/guest
    runs/plain_[STAMP]/boxes/export-1/guest/bottle-guest
    runs/plain_[STAMP]/boxes/export-1/guest/config.json
    runs/plain_[STAMP]/boxes/export-1/lock (private)
    runs/plain_[STAMP]/boxes/export-1/max_inotify_instances
    runs/plain_[STAMP]/boxes/export-1/max_inotify_watches
    runs/plain_[STAMP]/boxes/export-1/order.json (private)
    runs/plain_[STAMP]/boxes/export-1/seccomp-0.bpf
    runs/plain_[STAMP]/boxes/export-1/seccomp-1.bpf
    runs/plain_[STAMP]/boxes/export-1/shim.json (private)
    runs/plain_[STAMP]/boxes/export-1/shim.log
    runs/plain_[STAMP]/boxes/export-1/stderr.log
    runs/plain_[STAMP]/boxes/export-1/stdout.bin
    runs/plain_[STAMP]/commands.log (read-only)
    runs/plain_[STAMP]/env_snapshot.txt (read-only)
    runs/plain_[STAMP]/metadata.json (read-only)
    runs/plain_[STAMP]/operations.jsonl (read-only)
    runs/plain_[STAMP]/plan.json (private)
    runs/plain_[STAMP]/provenance.json (read-only)
    runs/plain_[STAMP]/repo.git (private)
    ");
}

#[test]
fn the_folder_of_a_bottle_whose_start_failed() {
    let Some(person) = Person::new() else { return };
    person.manifest("bottles", "odd", "setup = \"exit 4\"\n");
    let output = person.start(COMMIT, &["--label", "plain", "--bottle", "odd"]);
    assert_eq!(output.status, Some(125), "{}", output.snapshot());
    insta::assert_snapshot!(tree(&person, &person.bottle("plain")), @"
    harness-state
    harness-state/home
    harness-state/logs
    harness-state/run
    lock (private)
    record.json (private)
    runs (private)
    runs/plain_[STAMP] (private)
    runs/plain_[STAMP]/boxes
    runs/plain_[STAMP]/boxes/setup
    runs/plain_[STAMP]/boxes/setup/etc
    runs/plain_[STAMP]/boxes/setup/etc/group
    runs/plain_[STAMP]/boxes/setup/etc/hosts
    runs/plain_[STAMP]/boxes/setup/etc/nsswitch.conf
    runs/plain_[STAMP]/boxes/setup/etc/passwd
    runs/plain_[STAMP]/boxes/setup/etc/resolv.conf
    runs/plain_[STAMP]/boxes/setup/exit.json (private)
    runs/plain_[STAMP]/boxes/setup/guest
    runs/plain_[STAMP]/boxes/setup/guest/bottle-guest
    runs/plain_[STAMP]/boxes/setup/guest/config.json
    runs/plain_[STAMP]/boxes/setup/lock (private)
    runs/plain_[STAMP]/boxes/setup/max_inotify_instances
    runs/plain_[STAMP]/boxes/setup/max_inotify_watches
    runs/plain_[STAMP]/boxes/setup/order.json (private)
    runs/plain_[STAMP]/boxes/setup/seccomp-0.bpf
    runs/plain_[STAMP]/boxes/setup/seccomp-1.bpf
    runs/plain_[STAMP]/boxes/setup/shim.json (private)
    runs/plain_[STAMP]/boxes/setup/shim.log
    runs/plain_[STAMP]/boxes/setup/stderr.log
    runs/plain_[STAMP]/boxes/setup/stdout.log
    runs/plain_[STAMP]/boxes/setup/stdout.times
    runs/plain_[STAMP]/commands.log (read-only)
    runs/plain_[STAMP]/env_snapshot.txt (read-only)
    runs/plain_[STAMP]/metadata.json (read-only)
    runs/plain_[STAMP]/operations.jsonl (read-only)
    runs/plain_[STAMP]/plan.json (private)
    runs/plain_[STAMP]/provenance.json (read-only)
    workspace
    workspace/.git
    workspace/FORK.md
    workspace/README.md
    workspace/shared.txt
    workspace/upstream.txt
    ");
}

#[test]
fn the_run_directory_of_a_forge_run() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    insta::assert_snapshot!(tree(&scene.person, &scene.person.last_run(SLUG)), @"
    boxes
    boxes/agent
    boxes/agent/etc
    boxes/agent/etc/group
    boxes/agent/etc/hosts
    boxes/agent/etc/nsswitch.conf
    boxes/agent/etc/passwd
    boxes/agent/etc/resolv.conf
    boxes/agent/exit.json (private)
    boxes/agent/guest
    boxes/agent/guest/bottle-guest
    boxes/agent/guest/config.json
    boxes/agent/guest/forge.sock
    boxes/agent/guest/harness
    boxes/agent/guest/harness/agent.argv
    boxes/agent/guest/harness/instructions.txt
    boxes/agent/guest/script.json
    boxes/agent/harness
    boxes/agent/harness/run.sh
    boxes/agent/lock (private)
    boxes/agent/max_inotify_instances
    boxes/agent/max_inotify_watches
    boxes/agent/order.json (private)
    boxes/agent/provider (private)
    boxes/agent/seccomp-0.bpf
    boxes/agent/seccomp-1.bpf
    boxes/agent/shim.json (private)
    boxes/agent/shim.log
    boxes/agent/stderr.log
    boxes/agent/stdout.log
    boxes/agent/stdout.times
    boxes/export-1
    boxes/export-1/etc
    boxes/export-1/etc/group
    boxes/export-1/etc/hosts
    boxes/export-1/etc/nsswitch.conf
    boxes/export-1/etc/passwd
    boxes/export-1/etc/resolv.conf
    boxes/export-1/exit.json (private)
    boxes/export-1/guest
    boxes/export-1/guest/bottle-guest
    boxes/export-1/guest/config.json
    boxes/export-1/lock (private)
    boxes/export-1/max_inotify_instances
    boxes/export-1/max_inotify_watches
    boxes/export-1/order.json (private)
    boxes/export-1/seccomp-0.bpf
    boxes/export-1/seccomp-1.bpf
    boxes/export-1/shim.json (private)
    boxes/export-1/shim.log
    boxes/export-1/stderr.log
    boxes/export-1/stdout.bin
    commands.log (read-only)
    env_snapshot.txt (read-only)
    metadata.json (read-only)
    operations.jsonl (read-only)
    plan.json (private)
    provenance.json (read-only)
    queue (private)
    queue/[TIME]-worker-issue-1_[STAMP]-done.json (private)
    repo.git (private)
    sidecar (private)
    sidecar/command
    sidecar/command/forge
    sidecar/lock (private)
    sidecar/ready.json (private)
    sidecar/sidecar.log
    sidecar/stopped (private)
    ");
}

#[test]
fn the_home_after_one_run() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.start(COMMIT, &["--label", "plain"]).status, Some(0));
    let shown = tree(&person, &person.home());
    let top: Vec<&str> = shown.lines().filter(|line| !line.starts_with("cellar/plain/")).collect();
    insta::assert_snapshot!(top.join("\n"), @"
    agents
    agents/worker-script.txt
    agents/worker.toml
    attest (private)
    attest/pending (private)
    attest/public (private)
    attest/public/[SHA].pem
    attest/runs.jsonl (private)
    attest/signing-key.pem (private)
    cache
    cache/mirrors
    cache/mirrors/[SHA].git (private)
    cache/mirrors/[SHA].lock (private)
    cellar
    cellar/plain (private)
    ");
}
