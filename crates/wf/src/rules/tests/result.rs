//! result.json, run_summary.md and the manifests, whole.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::id::{ProjectName, WorkstreamId};
use serde_json::json;

use crate::rules::docs::DocsManifest;
use crate::rules::manifest::{Artifacts, Stats, SuiteResult, SuiteStatus, TestManifest};
use crate::rules::pipeline::{Cycle, Ending, RunStage, StageOutcome, Transition};
use crate::rules::result::{RunResult, StageRecord, StageStatus, render_summary};
use crate::rules::schema::{Schema, render_json};

use super::{commit_id, sha};

const NOTE: &str = "uncommitted before the run: a.txt";

/// A run of so many seconds that knows nothing but its ending.
fn bare(seconds: i64, notes: &[&str], ending: &Ending) -> RunResult {
    let notes: Vec<String> = notes.iter().map(|&note| note.to_owned()).collect();
    let times = [Timestamp::UNIX_EPOCH, Timestamp::from_second(seconds).unwrap()];
    let project = ProjectName::parse("app").unwrap();
    RunResult::new(&project, &WorkstreamId::parse("login").unwrap(), times, &notes, ending)
}

fn result(notes: &[&str], ending: &Ending) -> RunResult {
    let record = |status, notes: &str| StageRecord {
        status,
        duration_seconds: 1.25,
        notes: notes.to_owned(),
    };
    RunResult {
        microcommit: Some(commit_id()),
        base_sha: Some(sha('c').to_string()),
        commit_sha: Some(sha('a').to_string()),
        touched_files_count: Some(2),
        stages: BTreeMap::from([
            ("load".to_owned(), record(StageStatus::Passed, "")),
            ("implement".to_owned(), record(StageStatus::Passed, "")),
            ("test".to_owned(), record(StageStatus::Failed, "tests failed: unit\nsee | there")),
        ]),
        ..bare(95, notes, ending)
    }
}

/// The ending of a cycle in its first stage.
fn ending(outcome: StageOutcome) -> Ending {
    match Cycle::start().next(outcome) {
        Transition::Finish(ending) => ending,
        Transition::Enter(_) => panic!("not an ending"),
    }
}

fn failed() -> Ending {
    ending(StageOutcome::failed(RunStage::Test, "tests failed: unit"))
}

#[test]
fn the_result_of_a_failed_run() {
    insta::assert_snapshot!(render_json(&result(&[NOTE], &failed())), @r#"
    {
      "version": 1,
      "project": "app",
      "workstream": "login",
      "microcommit": "COMMIT-LG-001",
      "status": "failed",
      "exit_code": 5,
      "failed_stage": "lock",
      "base_sha": "cccccccccccccccccccccccccccccccccccccccc",
      "commit_sha": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "touched_files_count": 2,
      "timestamps": {
        "started": "1970-01-01T00:00:00Z",
        "ended": "1970-01-01T00:01:35Z",
        "duration_seconds": 95.0
      },
      "stages": {
        "implement": {
          "status": "passed",
          "duration_seconds": 1.25
        },
        "load": {
          "status": "passed",
          "duration_seconds": 1.25
        },
        "test": {
          "status": "failed",
          "duration_seconds": 1.25,
          "notes": "tests failed: unit\nsee | there"
        }
      },
      "notes": "uncommitted before the run: a.txt\ntests failed: unit"
    }
    "#);
}

#[test]
fn the_summary_of_a_failed_run() {
    insta::assert_snapshot!(render_summary("r1", &result(&[NOTE], &failed())), @r"
    # Run r1

    - Project: app
    - Workstream: login
    - Micro-commit: COMMIT-LG-001
    - Status: failed
    - Failed stage: lock
    - Base: cccccccccccccccccccccccccccccccccccccccc
    - Commit: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    - Started: 1970-01-01T00:00:00Z
    - Ended: 1970-01-01T00:01:35Z (95.0 s)

    ## Stages

    | Stage | Status | Seconds | Notes |
    |---|---|---|---|
    | load | passed | 1.2 |  |
    | implement | passed | 1.2 |  |
    | test | failed | 1.2 | tests failed: unit see \| there |

    ## Notes

    uncommitted before the run: a.txt
    tests failed: unit
    ");
}

#[test]
fn the_result_of_a_run_that_ended_before_it_began() {
    let blocked = ending(StageOutcome::Blocked { by: vec!["CLQ-001".to_owned()] });
    let result = bare(0, &[], &blocked);
    insta::assert_snapshot!(format!("{}\n{}", render_json(&result), render_summary("r2", &result)), @r#"
    {
      "version": 1,
      "project": "app",
      "workstream": "login",
      "microcommit": null,
      "status": "blocked",
      "exit_code": 8,
      "failed_stage": "lock",
      "blocked_reason": "CLQ-001",
      "timestamps": {
        "started": "1970-01-01T00:00:00Z",
        "ended": "1970-01-01T00:00:00Z",
        "duration_seconds": 0.0
      },
      "stages": {},
      "notes": "blocked by CLQ-001"
    }

    # Run r2

    - Project: app
    - Workstream: login
    - Micro-commit: none
    - Status: blocked
    - Failed stage: lock
    - Blocked by: CLQ-001
    - Started: 1970-01-01T00:00:00Z
    - Ended: 1970-01-01T00:00:00Z (0.0 s)

    ## Stages

    | Stage | Status | Seconds | Notes |
    |---|---|---|---|

    ## Notes

    blocked by CLQ-001
    "#);
}

#[test]
fn the_summary_of_a_passed_run() {
    let passed = ending(StageOutcome::Nothing);
    insta::assert_snapshot!(render_summary("r3", &result(&[], &passed)), @r"
    # Run r3

    - Project: app
    - Workstream: login
    - Micro-commit: COMMIT-LG-001
    - Status: passed
    - Base: cccccccccccccccccccccccccccccccccccccccc
    - Commit: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    - Started: 1970-01-01T00:00:00Z
    - Ended: 1970-01-01T00:01:35Z (95.0 s)

    ## Stages

    | Stage | Status | Seconds | Notes |
    |---|---|---|---|
    | load | passed | 1.2 |  |
    | implement | passed | 1.2 |  |
    | test | failed | 1.2 | tests failed: unit see \| there |
    ");
}

#[test]
fn a_manifest_of_tests() {
    let ran = SuiteResult {
        name: "unit".to_owned(),
        status: SuiteStatus::Failed,
        reason: Some("out of time".to_owned()),
        exit_code: Some(124),
        duration_seconds: Some(1.5),
        artifacts: Artifacts {
            junit_xml: Some("tests/unit/junit.xml".to_owned()),
            log: Some("tests/unit/output.log".to_owned()),
            screenshots: vec!["tests/unit/screenshots/a.png".to_owned()],
            ..Artifacts::default()
        },
        stats: Some(Stats { total: 3, passed: 2, failed: 1, skipped: 0 }),
        tests_seen: Some(3),
    };
    let skipped = SuiteResult::skipped("e2e", "Target 'test-e2e' not in Makefile");
    let manifest = TestManifest::new(vec![ran, skipped], Timestamp::UNIX_EPOCH);
    insta::assert_snapshot!(render_json(&manifest), @r#"
    {
      "version": 1,
      "generated": "1970-01-01T00:00:00Z",
      "suites": [
        {
          "name": "unit",
          "status": "failed",
          "reason": "out of time",
          "exit_code": 124,
          "duration_seconds": 1.5,
          "artifacts": {
            "junit_xml": "tests/unit/junit.xml",
            "log": "tests/unit/output.log",
            "screenshots": [
              "tests/unit/screenshots/a.png"
            ]
          },
          "stats": {
            "total": 3,
            "passed": 2,
            "failed": 1,
            "skipped": 0
          },
          "tests_seen": 3
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
fn a_manifest_of_pictures() {
    let mut manifest = DocsManifest::new(Timestamp::UNIX_EPOCH);
    let shots = ["a.png".to_owned(), "b.png".to_owned()];
    manifest.add(&shots, "login", "COMMIT-LG-001", Timestamp::UNIX_EPOCH);
    manifest.add(&shots[..1], "login", "COMMIT-LG-002", Timestamp::from_second(60).unwrap());
    insta::assert_snapshot!(render_json(&manifest), @r#"
    {
      "version": 1,
      "generated": "1970-01-01T00:01:00Z",
      "assets": [
        {
          "path": "a.png",
          "created": "1970-01-01T00:01:00Z",
          "source": "e2e:COMMIT-LG-001",
          "referenced_by": [],
          "workstream": "login",
          "commit": "COMMIT-LG-001"
        },
        {
          "path": "b.png",
          "created": "1970-01-01T00:00:00Z",
          "source": "e2e:COMMIT-LG-001",
          "referenced_by": [],
          "workstream": "login",
          "commit": "COMMIT-LG-001"
        }
      ],
      "orphaned": []
    }
    "#);
}

#[test]
fn documents_that_break_their_schema_are_named_by_place() {
    let check = |schema: Schema, value| match schema.check(&value) {
        Ok(()) => format!("{}: valid\n", schema.name()),
        Err(error) => format!("{error}\n"),
    };
    let times = json!({"started": "2025-01-15T12:00:00Z", "ended": "2025-01-15T12:05:30Z"});
    let rows = [
        check(Schema::Result, json!({})),
        check(
            Schema::Result,
            json!({"version": 1, "project": "p", "workstream": "w", "microcommit": null, "status": "passed", "timestamps": times}),
        ),
        check(
            Schema::Result,
            json!({"version": 1, "project": "p", "workstream": "w", "microcommit": null, "status": "ok", "timestamps": times}),
        ),
        check(
            Schema::Result,
            json!({"version": 1, "project": "p", "workstream": "w", "microcommit": null, "status": "passed", "timestamps": {"started": "yesterday", "ended": "now"}}),
        ),
        check(
            Schema::TestManifest,
            json!({"version": 1, "suites": [{"name": "unit", "status": "ok", "artifacts": {}}]}),
        ),
        check(Schema::Clarification, json!({"version": 1, "id": "CLQ-1"})),
        check(Schema::Uat, json!({"version": 1, "id": "UAT-001", "status": "lost"})),
        check(Schema::DocsManifest, json!({"version": 1})),
    ];
    insta::assert_snapshot!(rows.concat(), @r#"
    result at /: "version" is a required property
    result: valid
    result at /status: "ok" is not one of "passed", "failed" or "blocked"
    result at /timestamps/ended: "now" is not a "date-time"
    test_manifest at /suites/0/status: "ok" is not one of "passed", "failed" or "skipped"
    clarification at /id: "CLQ-1" does not match "^CLQ-[0-9]{3,9}$"
    uat at /status: "lost" is not one of "pending", "passed" or 2 other candidates
    docs_manifest at /: "generated" is a required property
    "#);
}
