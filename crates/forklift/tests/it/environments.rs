//! Machines on which a run does not work, or works in another way: the reason and the remedy are said.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use testkit::hermetic::Hermetic;
use testkit::part::{Part, require};
use testkit::repo::Fork;

use crate::first_run::install;
use crate::support::{MERGE, Person};

/// Message of bubblewrap where it may not work, and a part of the remedy.
const REFUSED: [(&str, &str); 8] = [
    ("bwrap: setting up uid map: Permission denied", "user namespaces"),
    (
        "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces.",
        "user namespaces",
    ),
    ("bwrap: No permissions to create a new namespace, likely because", "user namespaces"),
    ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "systempaths=unconfined"),
    (
        "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)",
        "user.max_user_namespaces",
    ),
    ("bwrap: The --size option is not permitted in setuid mode", "chmod u-s"),
    ("bwrap: Unknown option --disable-userns", "0.8.0 or newer"),
    ("bwrap: execvp /harness-state/run/bottle-guest: Permission denied", "noexec"),
];

/// A person whose bubblewrap fails with this sentence.
fn refused(sentence: &str) -> Person {
    let hermetic = Hermetic::new().with_refused_bwrap(sentence);
    let fork = Fork::new(&hermetic).clean_merge();
    Person { hermetic, fork }
}

#[test]
fn the_verdict_has_the_words_of_a_bubblewrap_that_is_refused_and_the_remedy() {
    let (sentence, remedy) = REFUSED[0];
    let person = refused(sentence);
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(1), "{}", output.snapshot());
    let verdict = output.stdout.lines().find(|line| line.starts_with("verdict"));
    let verdict = verdict.unwrap_or_else(|| panic!("{}", output.snapshot()));
    assert!(verdict.contains(&format!("the box never got ready: {sentence}; ")), "{verdict}");
    assert!(verdict.contains(remedy), "{verdict}");
    assert!(person.published().is_empty());
}

#[test]
fn doctor_has_the_remedy_for_every_reason_that_was_seen() {
    for (sentence, remedy) in REFUSED {
        let person = refused(sentence);
        let output = person.hermetic.run(&mut person.forklift(&["doctor", "--json"]));
        assert_eq!(output.status, Some(2), "{}", output.snapshot());
        let line = output.stdout.lines().next().expect("an event");
        let event: Value = serde_json::from_str(line).expect("JSON");
        let checks = event["checks"].as_array().expect("checks");
        let tried = checks.iter().find(|check| check["name"] == "box").expect("a trial");
        let words = tried["words"].as_str().expect("words");
        assert_eq!(tried["state"], "bad", "{words}");
        assert!(words.contains(sentence) && words.contains(remedy), "{words}");
    }
}

/// A clean merge needs no box, so a machine without one is no obstacle.
#[test]
fn a_run_without_an_agent_needs_no_bubblewrap_that_works() {
    let person = refused(REFUSED[0].0);
    let output = person.hermetic.run(&mut person.alone(&[]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
}

/// A folder with git and a shell and nothing else: neither bwrap nor a container engine.
fn without_bwrap(hermetic: &Hermetic) -> PathBuf {
    let folder = hermetic.root().join("few-programs");
    std::fs::create_dir_all(&folder).expect("a folder");
    for name in ["git", "sh"] {
        let program = host::tool::which(name).expect("it is on the path");
        std::os::unix::fs::symlink(program, folder.join(name)).expect("a link");
    }
    folder
}

#[test]
fn a_merge_without_an_agent_needs_no_bubblewrap_at_all() {
    let hermetic = Hermetic::new();
    let fork = Fork::new(&hermetic).clean_merge();
    let person = Person { hermetic, fork };
    let path = without_bwrap(&person.hermetic);
    let run = |args: &[&str]| {
        let mut command = person.forklift(args);
        person.hermetic.run(command.env("PATH", &path).env_remove("DOCKER_HOST"))
    };
    let wrong = run(&["--dry-run", "--remote-upstream", "elsewhere"]);
    assert_eq!(wrong.status, Some(2), "{}", wrong.snapshot());
    assert!(wrong.stderr.contains("no remote 'elsewhere'"), "{}", wrong.snapshot());
    let clean = run(&["--dry-run"]);
    assert_eq!(clean.status, Some(0), "{}", clean.snapshot());
}

#[test]
fn a_conflict_without_bubblewrap_names_the_package_and_leaves_no_run() {
    let hermetic = Hermetic::new();
    let fork = Fork::new(&hermetic).conflicting_merge();
    let person = Person { hermetic, fork };
    let mut command = person.forklift(&["--dry-run"]);
    let output = person.hermetic.run(command.env("PATH", without_bwrap(&person.hermetic)));
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("apt-get install bubblewrap"), "{}", output.snapshot());
    assert_eq!(person.runs(), [] as [PathBuf; 0]);
}

#[test]
fn an_old_git_is_named_in_a_run_as_in_doctor() {
    let hermetic = Hermetic::new();
    let fork = Fork::new(&hermetic).clean_merge();
    let hermetic = hermetic.with_program("git", "echo git version 2.30.2\n");
    let person = Person { hermetic, fork };
    let output = person.run(MERGE, &[]);
    assert_ne!(output.status, Some(0), "{}", output.snapshot());
    let sentence = "error: git 2.30 is too old: 2.38 or newer is needed";
    assert!(output.stderr.contains(sentence), "{}", output.snapshot());
    let mut command = person.command(MERGE, &[]);
    let output = person.hermetic.run(command.env("PATH", person.hermetic.work()));
    assert!(output.stderr.contains("git was not found on PATH"), "{}", output.snapshot());
}

#[test]
fn a_path_that_is_not_utf_8_is_called_that() {
    let Some(person) = Person::new() else { return };
    let odd = person.hermetic.work().join(OsStr::from_bytes(b"d\xfcr"));
    std::fs::rename(person.fork.checkout.dir(), &odd).expect("moved");
    let mut command = person.command(MERGE, &[]);
    let output = person.hermetic.run(command.current_dir(&odd));
    assert_eq!(output.status, Some(1), "{}", output.snapshot());
    assert!(output.stderr.contains("is not UTF-8"), "{}", output.snapshot());
    assert_eq!(output.stderr.trim_end().lines().count(), 1, "{}", output.snapshot());
}

/// A checkout on a read-only file system, which a box makes for the test.
#[test]
fn a_checkout_that_cannot_be_written_to_is_fetched_into_a_stand_in() {
    let Some(bwrap) = require(Part::Bwrap) else { return };
    let Some(person) = Person::with(|hermetic| Fork::new(hermetic).clean_merge()) else { return };
    let checkout = person.fork.checkout.dir();
    let mut inner = person.alone(&[]);
    inner.args(["--no-pull-request"]);
    let run = |inner: &Command| {
        let mut command = person.hermetic.command(&bwrap);
        command.args(["--dev-bind", "/", "/", "--ro-bind"]).args([checkout, checkout]).arg("--");
        command.arg(inner.get_program()).args(inner.get_args()).current_dir(checkout);
        person.hermetic.run(&mut command)
    };
    let output = run(&inner);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stderr.contains("cannot be written to; fetching into"), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1, "{}", output.snapshot());
    let again = run(&inner);
    assert_eq!(again.status, Some(0), "{}", again.snapshot());
    assert!(again.stdout.contains("nothing new"), "{}", again.snapshot());
    let show = run(&person.forklift(&["show"]));
    assert_eq!(show.status, Some(0), "{}", show.snapshot());
}

/// Hooks in a folder; each leaves a mark beside it.
fn hooks(folder: &Path, status: u8) {
    std::fs::create_dir_all(folder).expect("a folder");
    for name in ["pre-receive", "update", "post-receive", "reference-transaction", "pre-push"] {
        let path = folder.join(name);
        let script = format!("#!/bin/sh\ntouch \"{}.ran\"\nexit {status}\n", path.display());
        std::fs::write(&path, script).expect("a hook");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("executable");
    }
}

#[test]
fn the_users_own_hooks_do_not_run_on_publishing_and_those_of_origin_do() {
    let Some(person) = Person::new() else { return };
    let mine = person.hermetic.home().join("hooks of mine");
    hooks(&mine, 1);
    let config = format!("[core]\n\thooksPath = {}\n", mine.display());
    std::fs::write(person.hermetic.home().join(".gitconfig"), config).expect("a setting");
    let own = person.fork.origin.git_dir().join("hooks");
    hooks(&own, 0);
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1, "{}", output.snapshot());
    let ran = |folder: &Path| {
        let entries = std::fs::read_dir(folder).expect("a folder").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut ran: Vec<String> = names.filter(|name| name.ends_with(".ran")).collect();
        ran.sort();
        ran
    };
    assert_eq!(ran(&mine), [""; 0], "the user's hooks");
    let expected =
        ["post-receive.ran", "pre-receive.ran", "reference-transaction.ran", "update.ran"];
    assert_eq!(ran(&own), expected, "origin's own");
}

#[test]
fn a_demo_without_a_temporary_folder_names_the_variable() {
    let hermetic = Hermetic::new();
    let mut command = hermetic.command(env!("CARGO_BIN_EXE_forklift"));
    let output = hermetic.run(command.arg("demo").env("TMPDIR", "/nonexistent"));
    assert_eq!(output.status, Some(1), "{}", output.snapshot());
    assert!(output.stderr.contains("set TMPDIR"), "{}", output.snapshot());
}

#[test]
fn doctor_fails_where_the_next_run_would() {
    let Some(person) = Person::new() else { return };
    let doctor = || person.hermetic.run(&mut person.forklift(&["doctor"]));
    let row = |output: &testkit::Output, name: &str| {
        let found = output.stdout.lines().filter(|line| line.starts_with(name));
        found.collect::<Vec<_>>().join("\n")
    };
    let output = doctor();
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(row(&output, "agent ").contains("odd  a run that needs one would fail"));
    assert!(row(&output, "checkout ").contains(" ok "), "{}", output.snapshot());
    person.hermetic.run(&mut person.forklift(&["config", "set", "agent", "claude"]));
    let output = doctor();
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(row(&output, "agent ").contains("BAD"), "{}", output.snapshot());
    person.hermetic.run(&mut person.forklift(&["config", "unset", "agent"]));
    person.fork.checkout.git(&["remote", "remove", "upstream"]);
    let output = doctor();
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(row(&output, "checkout ").contains("no remote 'upstream'"), "{}", output.snapshot());
}

#[test]
fn doctor_names_the_remote_the_rules_or_the_token_that_the_next_run_would_fail_for() {
    let gone = |person: &Person, remote: &str| {
        person.fork.checkout.git(&["remote", "set-url", remote, "/nowhere/gone"]);
    };
    type Plant<'a> = &'a dyn Fn(&Person);
    let plants: [(&str, &str, Plant<'_>); 6] = [
        ("upstream", "cannot fetch upstream", &|person| gone(person, "upstream")),
        ("origin", "cannot fetch origin", &|person| gone(person, "origin")),
        ("origin", "", &|person| {
            drop(person.fork.checkout.git(&["config", "remote.origin.url", ""]));
        }),
        ("origin", "has no branch 'main'", &|person| {
            person.fork.origin.git(&["branch", "-m", "main", "trunk"]);
            person.fork.origin.git(&["symbolic-ref", "HEAD", "refs/heads/main"]);
        }),
        ("rules", "no-such-rule", &|person| {
            person.fork.checkout.write("FORK.md", "---\nno-such-rule: 1\n---\n");
            person.fork.fork_commit("wrong rules");
        }),
        ("token", "forge-token", &|person| {
            let config = person.hermetic.home().join(".config/forklift");
            std::fs::create_dir_all(&config).expect("a folder");
            std::fs::write(config.join("forge-token"), "a token").expect("written");
            let mode = std::fs::Permissions::from_mode(0o644);
            std::fs::set_permissions(config.join("forge-token"), mode).expect("set");
        }),
    ];
    for (name, words, plant) in plants {
        let Some(person) = Person::new() else { return };
        plant(&person);
        let output = person.hermetic.run(&mut person.forklift(&["doctor"]));
        assert_eq!(output.status, Some(2), "{name}: {}", output.snapshot());
        let is_named = |line: &str| line.starts_with(name) && line.contains("BAD");
        let row = output.stdout.lines().find(|line| is_named(line));
        assert!(row.is_some_and(|row| row.contains(words)), "{name}: {}", output.snapshot());
        let run = person.hermetic.run(&mut person.alone(&[]));
        assert_ne!(run.status, Some(0), "{name}: {}", run.snapshot());
    }
    let Some(person) = Person::with(Fork::shallow) else { return };
    let output = person.hermetic.run(&mut person.forklift(&["doctor"]));
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("shallow"), "{}", output.snapshot());
}

#[test]
fn a_broken_agent_that_no_run_uses_is_no_failure() {
    let Some(person) = Person::new() else { return };
    install(&person, agent::Provider::Claude);
    let doctor = |variables: &[(&str, &str)]| {
        let mut command = person.forklift(&["doctor"]);
        let output = person.hermetic.run(command.envs(variables.iter().copied()));
        assert!(output.stdout.contains("does not start in a box"), "{}", output.snapshot());
        output.status
    };
    assert_eq!(doctor(&[]), Some(0));
    assert_eq!(doctor(&[("ANTHROPIC_API_KEY", "k-123456789")]), Some(2));
}
