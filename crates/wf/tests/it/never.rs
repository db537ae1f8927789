//! What wf must never do, each tried: through a whole life of a workstream, with agents that try to make it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use testkit::repo::Repo;
use testkit::tree::holding;

use crate::play::{APPROVE, GOOD, person_with_one};
use crate::support::{Person, read, write};

/// From a run to the merge and the end of the workstream.
fn live(person: &Person) {
    person.run_once(0);
    person.ok(&["uat", "pass", "UAT-001"]);
    person.ok(&["merge", "tf"]);
    person.ok(&["close", "tf"]);
}

/// A program that writes down its arguments before it does the real thing.
fn spy(person: &Person, name: &str, real: Option<&str>) -> PathBuf {
    let log = person.hermetic.root().join(format!("{name}.log"));
    let then = real.map_or("exit 1".to_owned(), |real| format!("exec {real} \"$@\""));
    let path = person.hermetic.root().join("spies").join(name);
    write(&path, &format!("#!/bin/sh\necho \"$*\" >> {}\n{then}\n", log.display()));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
    log
}

/// Runs with the spies first on the path.
#[track_caller]
fn spied(person: &Person, args: &[&str], status: i32) {
    let mut command = person.command(args);
    let spies = person.hermetic.root().join("spies");
    command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", spies.display()));
    let output = person.hermetic.run(&mut command);
    assert_eq!(output.status, Some(status), "{args:?} {}", output.snapshot());
}

#[test]
fn commits_outside_of_the_worktree_or_of_its_own_files() {
    let Some(person) = person_with_one() else { return };
    let main = person.repo.sha("main");
    person.run_once(0);
    assert_eq!(person.repo.sha("main"), main);
    assert_eq!(person.repo.git(&["status", "--porcelain"]).trim(), "");
    let files = person.repo.git(&["ls-tree", "-r", "--name-only", "feat/tf"]);
    for own in ["plan.md", "meta.env", "ACTIVE_WORKSTREAMS.md", "result.json", "test-results"] {
        assert!(!files.contains(own), "{own} in {files}");
    }
}

#[test]
fn removes_what_is_not_its_own() {
    let Some(person) = person_with_one() else { return };
    for victim in [person.hermetic.home(), person.repo.dir().to_path_buf(), PathBuf::from("/")] {
        person.set_meta("tf", "WORKTREE", victim.to_str().expect("UTF-8"));
        person.refused(&["delete", "tf", "--confirm"], 2, &["is not inside"]);
        person.refused(&["close", "tf", "--force"], 2, &["is not inside"]);
        assert!(victim.is_dir());
    }
}

#[test]
fn prints_secrets() {
    let Some(person) = person_with_one() else { return };
    let secrets = person.ops().join("secrets/env.sh");
    write(&secrets, "export TOKEN=hunter2-very-secret\n");
    std::fs::set_permissions(&secrets, std::fs::Permissions::from_mode(0o600)).expect("private");
    let leaky = GOOD.replace("echo harness", "echo hunter2-very-secret; echo harness");
    person.cast(
        &leaky,
        &APPROVE.replace("\"blockers\"", "\"notes\": \"hunter2-very-secret\", \"blockers\""),
    );
    let output = person.run_once(0);
    assert!(
        !format!("{}{}", output.stdout, output.stderr).contains("hunter2"),
        "{}",
        output.snapshot()
    );
    nowhere(&person.last_run(), "hunter2");
}

/// No file below the folder holds the words, but for what the agent was told to play.
fn nowhere(folder: &Path, words: &str) {
    let mut found = holding(folder, words);
    found.retain(|path| !path.ends_with("script.json"));
    assert!(found.is_empty(), "{words} is in {found:?}");
}

#[test]
fn becomes_root() {
    let Some(person) = person_with_one() else { return };
    let logs = ["sudo", "su", "doas", "pkexec"].map(|name| spy(&person, name, None));
    spied(&person, &["run", "tf"], 0);
    assert!(logs.iter().all(|log| !log.exists()));
}

#[test]
fn edits_the_products_configuration() {
    let Some(person) = person_with_one() else { return };
    let before = read(&person.repo.git_dir().join("config"));
    live(&person);
    assert_eq!(read(&person.repo.git_dir().join("config")), before);
}

#[test]
fn pushes_unasked_or_by_force() {
    let Some(person) = person_with_one() else { return };
    let origin = Repo::init_bare(person.hermetic.work().join("origin.git"));
    let url = origin.dir().to_str().expect("UTF-8").to_owned();
    person.repo.git(&["remote", "add", "origin", &url]);
    person.repo.git(&["push", "-q", "origin", "main"]);
    let refs = origin.git(&["for-each-ref"]);
    let log = spy(&person, "git", Some("/usr/bin/git"));
    spied(&person, &["run", "tf"], 0);
    spied(&person, &["uat", "pass", "UAT-001"], 0);
    assert_eq!(origin.git(&["for-each-ref"]), refs);
    spied(&person, &["merge", "tf", "--push"], 0);
    spied(&person, &["delete", "tf", "--confirm"], 0);
    assert_eq!(origin.sha("main"), person.repo.sha("main"));
    let pushes: Vec<String> =
        read(&log).lines().filter(|line| line.contains(" push ")).map(str::to_owned).collect();
    assert!(!pushes.is_empty(), "the spy saw nothing");
    for push in &pushes {
        let words: Vec<&str> = push.split(' ').collect();
        let forces = |word: &&str| {
            word.starts_with("--force")
                || *word == "-f"
                || word.starts_with('+')
                || *word == "--mirror"
        };
        assert!(!words.iter().any(forces), "{push}");
    }
}

#[test]
fn lets_an_agent_see_what_is_outside_of_its_box() {
    let Some(person) = person_with_one() else { return };
    let canary = person.hermetic.home().join("canary");
    write(&canary, "do not read me");
    let look = format!(
        "[[step]]\nrun = \"! cat {} && ! ls {} && ! ls {} && ! git remote get-url origin\"\n{GOOD}",
        canary.display(),
        person.ops().display(),
        person.repo.dir().display()
    );
    person.cast(&look, APPROVE);
    person.run_once(0);
}
