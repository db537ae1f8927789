//! A bottle from its start to its end, in each state: what every command says.

use super::{transcript, without_times};
use crate::support::{COMMIT, Person};

/// A person with one frozen bottle, `plain`.
fn with_frozen() -> Option<Person> {
    let person = Person::new()?;
    let output = person.start(COMMIT, &["--label", "plain"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    Some(person)
}

#[test]
fn a_frozen_bottle_in_the_list() {
    let Some(person) = with_frozen() else { return };
    insta::assert_snapshot!(transcript(&person, &[&["list"], &["list", "--json"]]), @r#"
    $ bot-bottle list
    status: 0
    --- stdout
     SLUG   STATE   AGENT   RUNS  PULL  REPOSITORY
     plain  frozen  worker  1     -     [ROOT]/work/fork
    --- stderr

    $ bot-bottle list --json
    status: 0
    --- stdout
    [
      {
        "agent": "worker",
        "backend": "bwrap",
        "base": "[SHA]",
        "base_branch": "main",
        "base_source": "branch",
        "bottles": [],
        "branch": "bot-bottle/plain",
        "created_at": "[TIME]",
        "forge": null,
        "known_base": "[SHA]",
        "published": null,
        "pull": null,
        "pull_title": null,
        "repo": "[ROOT]/work/fork",
        "runs": [
          "plain_[STAMP]"
        ],
        "seen_comments": [],
        "session": null,
        "slug": "plain",
        "state": "frozen",
        "version": 1,
        "workspace": "set-up"
      }
    ]
    --- stderr
    "#);
}

#[test]
fn a_frozen_bottle_has_nothing_to_end() {
    let Some(person) = with_frozen() else { return };
    let lines: [&[&str]; 3] =
        [&["freeze", "plain"], &["stop", "plain"], &["freeze", "plain", "--json"]];
    insta::assert_snapshot!(transcript(&person, &lines), @r#"
    $ bot-bottle freeze plain
    status: 0
    --- stdout
    frozen      plain
    --- stderr

    $ bot-bottle stop plain
    status: 0
    --- stdout
    frozen      plain
    --- stderr

    $ bot-bottle freeze plain --json
    status: 0
    --- stdout
    {"event":"frozen","slug":"plain"}
    --- stderr
    "#);
}

#[test]
fn the_log_of_a_frozen_bottle() {
    let Some(person) = with_frozen() else { return };
    insta::assert_snapshot!(transcript(&person, &[&["logs", "plain"], &["logs", "plain", "--json"]]), @r#"
    $ bot-bottle logs plain
    status: 0
    --- stdout
      ran `echo work >> work.txt && git add -A && git commit -qm 'do the work'`
    --- stderr

    $ bot-bottle logs plain --json
    status: 0
    --- stdout
    {"type":"step","index":0,"kind":"run","detail":"echo work >> work.txt && git add -A && git commit -qm 'do the work'"}
    {"type":"step-done","index":0,"status":0,"ms":…
    {"type":"result","status":0}
    --- stderr
    "#);
}

#[test]
fn commands_in_a_frozen_bottle() {
    let Some(person) = with_frozen() else { return };
    let lines: [&[&str]; 4] = [
        &["exec", "plain", "cat", "work.txt"],
        &["exec", "plain", "sh", "-c", "echo to-err >&2; exit 5"],
        &["exec", "plain", "git", "log", "--format=%s by %an"],
        &["exec", "plain", "no-such-program"],
    ];
    insta::assert_snapshot!(transcript(&person, &lines), @"
    $ bot-bottle exec plain cat work.txt
    status: 0
    --- stdout
    work
    --- stderr

    $ bot-bottle exec plain sh -c echo to-err >&2; exit 5
    status: 5
    --- stdout
    to-err
    --- stderr

    $ bot-bottle exec plain git log --format=%s by %an
    status: 0
    --- stdout
    do the work by Bottleworks agent
    fork: say what it is for by Test Person
    first by Test Person
    --- stderr

    $ bot-bottle exec plain no-such-program
    status: 127
    --- stdout
    bottle-guest: could not start no-such-program: No such file or directory (os error 2)
    --- stderr
    ");
}

#[test]
fn a_bottle_is_resumed() {
    let Some(person) = with_frozen() else { return };
    insta::assert_snapshot!(without_times(&person.resume("plain", COMMIT).snapshot()), @"
    status: 0
    --- stdout
    bottle      plain
    run         [ROOT]/home/.bot-bottle/cellar/plain/runs/plain_[STAMP]
    verdict     the work holds
    commits     [SHA] is kept; look at it with: bot-bottle diff plain; take it with: bot-bottle apply plain, or bot-bottle checkout plain
    --- stderr
    > starting scripted in a sealed bwrap box, 1800 s
    > importing the agent's commits from the box
    > verifying against the pinned commits
    ");
}

#[test]
fn a_bottle_is_resumed_by_an_unknown_backend() {
    let Some(person) = with_frozen() else { return };
    let args = ["resume", "plain", "--headless", "--prompt", "x", "--backend", "lxc"];
    insta::assert_snapshot!(person.run(&args).snapshot(), @"
    status: 125
    --- stdout
    --- stderr
    error: unknown backend 'lxc'; use docker or bwrap (podman is reached as docker)
    ");
}

#[test]
fn a_bottle_whose_agent_has_lost_its_manifest() {
    let Some(person) = with_frozen() else { return };
    std::fs::remove_file(person.home().join("agents/worker.toml")).expect("removed");
    let lines: [&[&str]; 2] =
        [&["resume", "plain", "--headless", "--prompt", "x"], &["exec", "plain", "true"]];
    insta::assert_snapshot!(transcript(&person, &lines), @"
    $ bot-bottle resume plain --headless --prompt x
    status: 125
    --- stdout
    --- stderr
    error: there is no agent 'worker' ([ROOT]/home/.bot-bottle/agents/worker.toml); make one with: bot-bottle agent new worker

    $ bot-bottle exec plain true
    status: 2
    --- stdout
    --- stderr
    error: there is no agent 'worker' ([ROOT]/home/.bot-bottle/agents/worker.toml); make one with: bot-bottle agent new worker
    ");
}

#[test]
fn a_bottle_is_destroyed_twice() {
    let Some(person) = with_frozen() else { return };
    let lines: [&[&str]; 3] =
        [&["destroy", "plain"], &["destroy", "plain", "--force"], &["destroy", "plain"]];
    insta::assert_snapshot!(transcript(&person, &lines), @"
    $ bot-bottle destroy plain
    status: 0
    --- stdout
    destroyed   plain
    --- stderr

    $ bot-bottle destroy plain --force
    status: 0
    --- stdout
    destroyed   plain
    --- stderr

    $ bot-bottle destroy plain
    status: 0
    --- stdout
    destroyed   plain
    --- stderr
    ");
}

#[test]
fn a_destroyed_bottle() {
    let Some(person) = with_frozen() else { return };
    assert_eq!(person.run(&["destroy", "plain", "--force"]).status, Some(0));
    let lines: [&[&str]; 6] = [
        &["list"],
        &["freeze", "plain"],
        &["stop", "plain"],
        &["resume", "plain", "--headless", "--prompt", "x"],
        &["exec", "plain", "true"],
        &["logs", "plain"],
    ];
    insta::assert_snapshot!(transcript(&person, &lines), @r#"
    $ bot-bottle list
    status: 0
    --- stdout
     SLUG   STATE      AGENT   RUNS  PULL  REPOSITORY
     plain  destroyed  worker  1     -     [ROOT]/work/fork
    --- stderr

    $ bot-bottle freeze plain
    status: 3
    --- stdout
    --- stderr
    error: the bottle 'plain' is destroyed

    $ bot-bottle stop plain
    status: 3
    --- stdout
    --- stderr
    error: the bottle 'plain' is destroyed

    $ bot-bottle resume plain --headless --prompt x
    status: 125
    --- stdout
    --- stderr
    error: the bottle 'plain' is destroyed

    $ bot-bottle exec plain true
    status: 3
    --- stdout
    --- stderr
    error: the bottle 'plain' has no workspace

    $ bot-bottle logs plain
    status: 0
    --- stdout
      ran `echo work >> work.txt && git add -A && git commit -qm 'do the work'`
    --- stderr
    "#);
}

#[test]
fn a_second_bottle_of_the_same_name() {
    let Some(person) = with_frozen() else { return };
    let output = person.start("[[step]]\nprint = \"hello\\n\"\n", &["--label", "plain"]);
    insta::assert_snapshot!(format!("{}\n{}", output.snapshot(), transcript(&person, &[&["list"]])), @"
    status: 0
    --- stdout
    bottle      plain-2
    run         [ROOT]/home/.bot-bottle/cellar/plain-2/runs/plain-2_[STAMP]
    verdict     no new commits
    --- stderr
    > copying the repository into a workspace of its own
    > starting scripted in a sealed bwrap box, 1800 s
    > importing the agent's commits from the box
    > verifying against the pinned commits

    $ bot-bottle list
    status: 0
    --- stdout
     SLUG     STATE   AGENT   RUNS  PULL  REPOSITORY
     plain    frozen  worker  1     -     [ROOT]/work/fork
     plain-2  frozen  worker  1     -     [ROOT]/work/fork
    --- stderr
    ");
}

#[test]
fn a_record_that_is_not_json() {
    let Some(person) = with_frozen() else { return };
    std::fs::write(person.bottle("plain").join("record.json"), "{").expect("written");
    insta::assert_snapshot!(transcript(&person, &[&["logs", "plain"]]), @r"
    $ bot-bottle logs plain
    status: 1
    --- stdout
    --- stderr
    error: the record of 'plain': EOF while parsing an object at line 1 column 1
    hint: restore [ROOT]/home/.bot-bottle/cellar/plain/record.json; the records of its runs are in [ROOT]/home/.bot-bottle/cellar/plain/runs
    ");
}

#[test]
fn a_record_of_a_run_that_is_not_json() {
    let Some(person) = with_frozen() else { return };
    std::fs::write(person.last_run("plain").join("metadata.json"), "{").expect("written");
    let lines: [&[&str]; 2] = [&["provenance", "show", "plain"], &["destroy", "--force", "plain"]];
    insta::assert_snapshot!(transcript(&person, &lines), @r"
    $ bot-bottle provenance show plain
    status: 1
    --- stdout
    --- stderr
    error: [ROOT]/home/.bot-bottle/cellar/plain/runs/plain_[STAMP]/metadata.json is not the JSON that was expected: EOF while parsing an object at line 1 column 1
    hint: restore the file from a copy

    $ bot-bottle destroy --force plain
    status: 0
    --- stdout
    destroyed   plain
    --- stderr
    ");
}
