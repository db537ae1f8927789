//! `provenance show` and `provenance verify`: for people and as documents, for runs that hold and runs that do not.

use super::transcript;
use crate::support::{COMMIT, DONE, Person, SLUG, Scene};

/// A person with one frozen bottle, `plain`.
fn with_run() -> Option<Person> {
    let person = Person::new()?;
    let output = person.start(COMMIT, &["--label", "plain"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    Some(person)
}

/// Takes out what is measured: milliseconds, bytes, versions.
fn without_measures(text: &str) -> String {
    let measured = ["_ms\":", "_bytes\":", "\"version\": \"", "bytes_up\":", "bytes_down\":"];
    let line = |line: &str| match measured.iter().find_map(|name| line.find(name).zip(Some(name))) {
        Some((at, name)) => format!("{}{name} …", &line[..at]),
        None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n") + "\n"
}

/// Takes out the line that depends on whether gitleaks is installed.
fn without_gitleaks(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("gitleaks")).collect();
    lines.join("\n") + "\n"
}

/// These keys of the document of the newest run.
fn part(person: &Person, slug: &str, keys: &[&str]) -> String {
    let document = person.provenance(slug);
    let chosen: serde_json::Map<_, _> =
        keys.iter().map(|key| ((*key).to_owned(), document[*key].clone())).collect();
    let text = serde_json::to_string_pretty(&chosen).expect("it renders");
    without_measures(&person.hermetic.redact(&text))
}

#[test]
fn a_run_for_people() {
    let Some(person) = with_run() else { return };
    let shown = transcript(&person, &[&["provenance", "show", "plain"]]);
    insta::assert_snapshot!(without_gitleaks(&shown), @"
    $ bot-bottle provenance show plain
    status: 0
    --- stdout
    run         plain_[STAMP]
    bottle      plain
    agent       worker
    started     [TIME]
    finished    [TIME]
    exit        done
    status      0
    watchdog    false
    verdict     publish
    tip         [SHA]
    pull        -
    chain       whole
    signature   signed
    complete    true
    1           launch agent: intended
    2           box agent: done
    --- stderr
    ");
}

#[test]
fn the_keys_of_the_document() {
    let Some(person) = with_run() else { return };
    let document = person.provenance("plain");
    let keys: Vec<&String> = document.as_object().expect("an object").keys().collect();
    insta::assert_snapshot!(format!("{keys:#?}"), @r#"
    [
        "agent",
        "agent_says",
        "backend",
        "bottles",
        "commits",
        "complete",
        "done",
        "egress_summary",
        "exit",
        "forge",
        "gitleaks",
        "isolation",
        "model_usage",
        "operations",
        "operations_chain",
        "parent",
        "prompt_sha256",
        "provider",
        "publication",
        "resumes_session",
        "run",
        "scans",
        "sidecar",
        "signature",
        "slug",
        "timing",
        "verdict",
        "version",
        "watchdog_fired",
        "watchdog_reason",
    ]
    "#);
}

#[test]
fn who_ran_and_how_it_ended() {
    let Some(person) = with_run() else { return };
    let keys = ["slug", "agent", "provider", "bottles", "backend", "parent", "forge", "exit"];
    insta::assert_snapshot!(part(&person, "plain", &keys), @r#"
    {
      "agent": "worker",
      "backend": "bwrap",
      "bottles": [],
      "exit": {
        "class": "done",
        "code": 0,
        "ended": {
          "code": 0,
          "kind": "exited"
        }
      },
      "forge": null,
      "parent": null,
      "provider": "scripted",
      "slug": "plain"
    }
    "#);
}

#[test]
fn what_came_out() {
    let Some(person) = with_run() else { return };
    let keys = ["verdict", "done", "commits", "publication", "watchdog_fired", "complete"];
    insta::assert_snapshot!(part(&person, "plain", &keys), @r#"
    {
      "commits": {
        "base": "[SHA]",
        "new": [
          {
            "parents": 1,
            "sha": "[SHA]",
            "subject": "do the work"
          }
        ],
        "start": "[SHA]",
        "tip": "[SHA]"
      },
      "complete": true,
      "done": null,
      "publication": null,
      "verdict": {
        "kind": "publish"
      },
      "watchdog_fired": false
    }
    "#);
}

#[test]
fn a_forge_run_for_people() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let shown = transcript(&scene.person, &[&["provenance", "show", SLUG]]);
    insta::assert_snapshot!(without_gitleaks(&shown.replace(&scene.forge.url(), "[FORGE]")), @"
    $ bot-bottle provenance show worker-issue-1
    status: 0
    --- stdout
    run         worker-issue-1_[STAMP]
    bottle      worker-issue-1
    agent       worker
    started     [TIME]
    finished    [TIME]
    exit        done
    status      0
    watchdog    false
    verdict     publish
    tip         [SHA]
    pull        [FORGE]/alice/hooks/pulls/2
    chain       whole
    signature   signed
    complete    true
    1           launch agent: intended
    2           signalled done: success
    3           box agent: done
    4           sidecar forge: done
    5           push bot-bottle/worker-issue-1 [SHA]: intended
    6           push bot-bottle/worker-issue-1 [SHA]: done
    7           pull alice/hooks bot-bottle/worker-issue-1: intended
    8           pull alice/hooks bot-bottle/worker-issue-1 #2: done
    --- stderr
    ");
}

#[test]
fn what_a_forge_run_published() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let keys = ["forge", "verdict", "done", "publication", "sidecar", "complete"];
    let shown = part(&scene.person, SLUG, &keys);
    insta::assert_snapshot!(shown.replace(&scene.forge.url(), "[FORGE]"), @r#"
    {
      "complete": true,
      "done": {
        "at": "[TIME]",
        "run": "worker-issue-1_[STAMP]",
        "status": "success",
        "summary": "all done"
      },
      "forge": {
        "issue": 1,
        "kind": "gitea",
        "owner": "alice",
        "pull": null,
        "repo": "hooks",
        "url": "[FORGE]"
      },
      "publication": {
        "branch": "bot-bottle/worker-issue-1",
        "commit": "[SHA]",
        "note": null,
        "problem": null,
        "pull": {
          "number": 2,
          "title": "Do it",
          "url": "[FORGE]/alice/hooks/pulls/2"
        },
        "pull_text": null,
        "pushed": true
      },
      "sidecar": {
        "kind": "stopped"
      },
      "verdict": {
        "kind": "publish"
      }
    }
    "#);
}

#[test]
fn statements_that_hold() {
    let Some(person) = with_run() else { return };
    let lines: [&[&str]; 2] =
        [&["provenance", "verify", "plain"], &["provenance", "verify", "plain", "--json"]];
    insta::assert_snapshot!(transcript(&person, &lines), @r#"
    $ bot-bottle provenance verify plain
    status: 0
    --- stdout
    run         plain_[STAMP]
    signature   ok: both statements, by key [SHA] (this home's)
    events      ok: 2 lines, an unbroken chain that ends as signed
    files       ok: 10 files, each as it was signed
    host chain  ok: run 1 of 1 on this host, none of them missing
    verified    yes
    --- stderr

    $ bot-bottle provenance verify plain --json
    status: 0
    --- stdout
    {
      "checks": [
        {
          "name": "signature",
          "outcome": "passed",
          "words": "both statements, by key [SHA] (this home's)"
        },
        {
          "name": "events",
          "outcome": "passed",
          "words": "2 lines, an unbroken chain that ends as signed"
        },
        {
          "name": "files",
          "outcome": "passed",
          "words": "10 files, each as it was signed"
        },
        {
          "name": "host chain",
          "outcome": "passed",
          "words": "run 1 of 1 on this host, none of them missing"
        }
      ],
      "keyid": "[SHA]",
      "run": "plain_[STAMP]",
      "verified": true
    }
    --- stderr
    "#);
}

/// Output of `provenance verify` after `change` was made to the run directory.
fn after(change: impl FnOnce(&std::path::Path)) -> Option<String> {
    let person = with_run()?;
    change(&person.last_run("plain"));
    Some(transcript(&person, &[&["provenance", "verify", "plain"]]))
}

/// Writes over a record, whatever its mode says.
fn overwrite(path: &std::path::Path, text: &str) {
    std::fs::remove_file(path).expect("removed");
    std::fs::write(path, text).expect("written");
}

#[test]
fn statements_that_are_gone() {
    let shown = after(|run| std::fs::remove_file(run.join("provenance.json")).expect("removed"));
    let Some(shown) = shown else { return };
    insta::assert_snapshot!(shown, @"
    $ bot-bottle provenance verify plain
    status: 3
    --- stdout
    --- stderr
    error: plain_[STAMP] has no provenance.json: an older bot-bottle closed it, nothing that could sign has run since, or the file was removed
    ");
}

#[test]
fn statements_that_are_not_json() {
    let Some(shown) = after(|run| overwrite(&run.join("provenance.json"), "{")) else { return };
    insta::assert_snapshot!(shown, @"
    $ bot-bottle provenance verify plain
    status: 1
    --- stdout
    --- stderr
    error: [ROOT]/home/.bot-bottle/cellar/plain/runs/plain_[STAMP]/provenance.json holds no statements of a run: EOF while parsing an object at line 1 column 1
    ");
}

#[test]
fn an_operation_log_that_was_emptied() {
    let Some(shown) = after(|run| overwrite(&run.join("operations.jsonl"), "")) else { return };
    insta::assert_snapshot!(shown, @"
    $ bot-bottle provenance verify plain
    status: 1
    --- stdout
    run         plain_[STAMP]
    signature   ok: both statements, by key [SHA] (this home's)
    events      FAILED: 2 lines were signed and 0 are there: its end was cut off
    files       FAILED: changed since they were signed: operations.jsonl
    host chain  ok: run 1 of 1 on this host, none of them missing
    verified    no
    --- stderr
    ");
}

#[test]
fn a_log_that_was_changed() {
    let Some(shown) = after(|run| overwrite(&run.join("boxes/agent/stdout.log"), "x")) else {
        return;
    };
    insta::assert_snapshot!(shown, @"
    $ bot-bottle provenance verify plain
    status: 1
    --- stdout
    run         plain_[STAMP]
    signature   ok: both statements, by key [SHA] (this home's)
    events      ok: 2 lines, an unbroken chain that ends as signed
    files       FAILED: changed since they were signed: boxes/agent/stdout.log
    host chain  ok: run 1 of 1 on this host, none of them missing
    verified    no
    --- stderr
    ");
}

#[test]
fn a_run_directory_that_is_gone() {
    let Some(shown) = after(|run| std::fs::remove_dir_all(run).expect("removed")) else { return };
    insta::assert_snapshot!(shown, @"
    $ bot-bottle provenance verify plain
    status: 3
    --- stdout
    --- stderr
    error: [ROOT]/home/.bot-bottle/cellar/plain/runs/plain_[STAMP] is not a run directory: nothing is there; list the runs to see those that are
    ");
}
