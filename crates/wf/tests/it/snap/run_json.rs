//! `wf run --json` and the files of a run for machines.

use crate::play::{APPROVE, GOOD, REJECT, person_with_one};
use crate::support::{ONE, ONE_DONE, Person, read};

#[test]
fn a_run_that_is_blocked() {
    let person = Person::with_plan(ONE);
    person.question("tf", "CLQ-001", "blocking");
    insta::assert_snapshot!(person.transcript(&[&["run", "tf", "--json"]]), @r#"
    $ wf run tf --json
    {
      "blocked_by": [
        "CLQ-001"
      ],
      "exit_code": 8,
      "failed_stage": "clarification",
      "message": "blocked by CLQ-001",
      "microcommit": "COMMIT-TF-001",
      "next": "answer: wf clarify show CLQ-001 -w tf",
      "path": "[ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001",
      "run": "[STAMP]_app_tf_COMMIT-TF-001",
      "status": "blocked",
      "tested": null,
      "untested": false
    }
    [8]
    "#);
}

#[test]
fn a_run_that_waits_for_acceptance() {
    let person = Person::with_plan(ONE_DONE);
    insta::assert_snapshot!(person.transcript(&[&["run", "tf", "--json"]]), @r#"
    $ wf run tf --json
    {
      "blocked_by": [
        "UAT-001"
      ],
      "exit_code": 8,
      "failed_stage": "uat",
      "message": "blocked by UAT-001",
      "microcommit": null,
      "next": "try it: wf uat show UAT-001 -w tf",
      "path": "[ROOT]/work/app.ops/runs/[STAMP]_app_tf_none",
      "run": "[STAMP]_app_tf_none",
      "status": "blocked",
      "tested": null,
      "untested": false
    }
    [8]
    "#);
}

#[test]
fn a_run_that_cannot_start_an_agent() {
    let person = Person::with_plan(ONE);
    insta::assert_snapshot!(person.transcript(&[&["run", "tf", "--json"]]), @r#"
    $ wf run tf --json
    {
      "blocked_by": [],
      "exit_code": 2,
      "failed_stage": "implement",
      "message": "the model's key is not there: set OPENAI_API_KEY, or name a file that holds it (AGENT_*_KEY_VAR, _KEY_FILE or _KEY_CMD in the profile)",
      "microcommit": "COMMIT-TF-001",
      "next": "look: wf show -w tf; go on: wf run tf",
      "path": "[ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001",
      "run": "[STAMP]_app_tf_COMMIT-TF-001",
      "status": "failed",
      "tested": null,
      "untested": false
    }
    ! > implement
    [2]
    "#);
}

#[test]
fn a_run_that_passes() {
    let Some(person) = person_with_one() else { return };
    insta::assert_snapshot!(person.transcript(&[&["run", "tf", "--json"]]), @r#"
    $ wf run tf --json
    {
      "blocked_by": [],
      "exit_code": 0,
      "failed_stage": null,
      "message": "",
      "microcommit": "COMMIT-TF-001",
      "next": "try it: wf uat list",
      "path": "[ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001",
      "run": "[STAMP]_app_tf_COMMIT-TF-001",
      "status": "passed",
      "tested": "yes",
      "untested": false
    }
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    ! > review
    !   print: {"version": 1, "decision": "approve", "blockers": []}
    [0]
    "#);
}

#[test]
fn a_run_whose_review_requests_changes() {
    let Some(person) = person_with_one() else { return };
    person.cast(GOOD, REJECT);
    insta::assert_snapshot!(person.transcript(&[&["run", "tf", "--json"]]), @r#"
    $ wf run tf --json
    {
      "blocked_by": [],
      "exit_code": 6,
      "failed_stage": "review",
      "message": "the reviewer requested changes: mk/test.mk:1: no target (add one)",
      "microcommit": "COMMIT-TF-001",
      "next": "look: wf show -w tf; go on: wf run tf",
      "path": "[ROOT]/work/app.ops/runs/[STAMP]_app_tf_COMMIT-TF-001",
      "run": "[STAMP]_app_tf_COMMIT-TF-001",
      "status": "failed",
      "tested": "yes",
      "untested": false
    }
    ! > implement
    !   run: mkdir -p mk && echo harness >> mk/test.mk && git add -A && git commit -qm 'COMMIT-TF-001: Add test harness'
    !   print: {"status": "success", "notes": "done"}
    ! > test
    ! > review
    !   print: {"version": 1, "decision": "request_changes", "blockers": [{"file": "mk/test.mk", "line": 1, "issue": "no target", "severity": "major", "fix_hint": "add one"}]}
    [6]
    "#);
}

#[test]
fn the_result_of_a_passed_run() {
    let Some(person) = person_with_one() else { return };
    person.run_once(0);
    let result = person.file(&person.last_run().join("result.json"));
    let at = result.find("  \"stages\"").expect("the stages");
    insta::assert_snapshot!(&result[..at], @r#"
    {
      "version": 1,
      "project": "app",
      "workstream": "tf",
      "microcommit": "COMMIT-TF-001",
      "status": "passed",
      "exit_code": 0,
      "base_sha": "[SHA]",
      "commit_sha": "[SHA]",
      "touched_files_count": 1,
      "timestamps": {
        "started": "[TIME]",
        "ended": "[TIME]",
        "duration_seconds": [N]
      },
    "#);
}

#[test]
fn the_stages_of_a_passed_run() {
    let Some(person) = person_with_one() else { return };
    person.run_once(0);
    let summary = person.file(&person.last_run().join("run_summary.md"));
    insta::assert_snapshot!(summary, @"
    # Run [STAMP]_app_tf_COMMIT-TF-001

    - Project: app
    - Workstream: tf
    - Micro-commit: COMMIT-TF-001
    - Status: passed
    - Base: [SHA]
    - Commit: [SHA]
    - Started: [TIME]
    - Ended: [TIME] ([N] s)

    ## Stages

    | Stage | Status | Seconds | Notes |
    |---|---|---|---|
    | lock | passed | [N] |  |
    | load | passed | [N] |  |
    | select | passed | [N] |  |
    | clarification | passed | [N] |  |
    | implement | passed | [N] |  |
    | test | passed | [N] |  |
    | review | passed | [N] |  |
    | qa_gate | passed | [N] |  |
    | docs | passed | [N] |  |
    | update_state | passed | [N] |  |
    | refresh | passed | [N] |  |

    ## Notes

    done
    ");
}

#[test]
fn the_review_the_diff_and_the_manifest_of_a_passed_run() {
    let Some(person) = person_with_one() else { return };
    person.run_once(0);
    let run = person.last_run();
    let files = ["claude_review.json", "diff.patch", "test_manifest.json"]
        .map(|name| format!("== {name}\n{}", person.file(&run.join(name))));
    insta::assert_snapshot!(files.concat(), @r#"
    == claude_review.json
    {
      "blockers": [],
      "decision": "approve",
      "version": 1
    }
    == diff.patch
    diff --git a/mk/test.mk b/mk/test.mk
    new file mode 100644
    index 0000000..[SHA]
    --- /dev/null
    +++ b/mk/test.mk
    @@ -0,0 +1 @@
    +harness
    == test_manifest.json
    {
      "version": 1,
      "generated": "[TIME]",
      "suites": [
        {
          "name": "unit",
          "status": "passed",
          "exit_code": 0,
          "duration_seconds": [N],
          "artifacts": {
            "summary_json": "tests/unit/summary.json",
            "junit_xml": "tests/unit/junit.xml",
            "log": "tests/unit/output.log"
          },
          "stats": {
            "total": 1,
            "passed": 1,
            "failed": 0,
            "skipped": 0
          },
          "tests_seen": 1
        },
        {
          "name": "integration",
          "status": "skipped",
          "reason": "Target 'test-integration' not in Makefile",
          "artifacts": {}
        },
        {
          "name": "smoke",
          "status": "skipped",
          "reason": "Target 'test-smoke' not in Makefile",
          "artifacts": {}
        },
        {
          "name": "e2e",
          "status": "skipped",
          "reason": "Target 'test-e2e' not in Makefile",
          "artifacts": {}
        }
      ]
    }
    "#);
}

#[test]
fn the_events_of_a_passed_run() {
    let Some(person) = person_with_one() else { return };
    person.run_once(0);
    let events = read(&person.last_run().join("run.jsonl"));
    let event = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
        format!(
            "{} {}\n",
            value["stage"].as_str().unwrap_or("-"),
            value["status"].as_str().unwrap_or("-")
        )
    };
    insta::assert_snapshot!(events.lines().map(event).collect::<String>(), @"
    lock start
    lock complete
    load start
    load complete
    select start
    select complete
    clarification start
    clarification complete
    implement start
    implement complete
    test start
    test complete
    review start
    review complete
    qa_gate start
    qa_gate complete
    docs start
    docs complete
    update_state start
    update_state complete
    ");
}

#[test]
fn the_commands_of_a_passed_run() {
    let Some(person) = person_with_one() else { return };
    person.run_once(0);
    let log = person.file(&person.last_run().join("commands.log"));
    let commands: Vec<&str> = log.lines().filter_map(|line| line.split("[CMD:").nth(1)).collect();
    let word = |line: &&str| {
        let known = ["bottle-guest play", "make -f Makefile", "merge --ff-only", "fetch", "diff"];
        known.iter().find(|command| line.contains(**command)).map(|command| (*command).to_owned())
    };
    let mut seen: Vec<String> = commands.iter().filter_map(word).collect();
    seen.dedup();
    insta::assert_snapshot!(seen.join("\n"), @"
    fetch
    bottle-guest play
    fetch
    merge --ff-only
    fetch
    make -f Makefile
    fetch
    bottle-guest play
    fetch
    ");
}

#[test]
fn the_log_of_several_runs() {
    let Some(person) = person_with_one() else { return };
    person.cast("[[step]]\nexit = 1\n", APPROVE);
    person.run_once(4);
    person.cast(GOOD, REJECT);
    person.run_once(6);
    person.cast(GOOD, APPROVE);
    person.run_once(0);
    let log = person.ok(&["log", "tf"]);
    // The duration follows the stage, or the status where no stage failed.
    let is_word = |word: &&str| !word.starts_with(|c: char| c.is_ascii_digit());
    let row = |line: &str| {
        let words = line.split_whitespace().skip(1).take(2).filter(is_word);
        words.collect::<Vec<_>>().join(" ")
    };
    let mut rows: Vec<String> = log.lines().skip(1).map(row).collect();
    rows.sort();
    insta::assert_snapshot!(rows.join("\n"), @"
    failed implement
    failed review
    passed
    ");
}
