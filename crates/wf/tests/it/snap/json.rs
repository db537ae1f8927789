//! JSON documents of the commands that show something.

use crate::support::{ONE, Person};

#[test]
fn list() {
    let person = Person::with_plan(ONE);
    insta::assert_snapshot!(person.transcript(&[&["list", "--json"]]), @r#"
    $ wf list --json
    [
      {
        "fault": null,
        "meta": {
          "approved_sha": null,
          "base_branch": "main",
          "base_sha": "[SHA]",
          "blocked_by": [],
          "branch": "feat/tf",
          "created_at": "[TIME]",
          "expected_paths": [
            "mk/",
            "tests/"
          ],
          "id": "tf",
          "last_commit_sha": null,
          "last_refreshed": "[TIME]",
          "last_result": null,
          "last_run_id": null,
          "merge_pull": null,
          "merge_pull_sha": null,
          "status": "planning",
          "title": "Test framework",
          "touched_base": "[SHA]",
          "touched_head": "[SHA]",
          "worktree": "[ROOT]/work/app.ops/worktrees/tf"
        },
        "needs": "write the plan, then: wf run",
        "shared_files": 0,
        "touched_files": 0
      }
    ]
    [0]
    "#);
}

#[test]
fn status() {
    let person = Person::with_plan(ONE);
    person.question("tf", "CLQ-001", "low");
    insta::assert_snapshot!(person.transcript(&[&["status", "tf", "--json"]]), @r#"
    $ wf status tf --json
    {
      "clarifications": [
        "CLQ-001"
      ],
      "fault": null,
      "interrupted": null,
      "last_run": null,
      "meta": {
        "approved_sha": null,
        "base_branch": "main",
        "base_sha": "[SHA]",
        "blocked_by": [],
        "branch": "feat/tf",
        "created_at": "[TIME]",
        "expected_paths": [
          "mk/",
          "tests/"
        ],
        "id": "tf",
        "last_commit_sha": null,
        "last_refreshed": "[TIME]",
        "last_result": null,
        "last_run_id": null,
        "merge_pull": null,
        "merge_pull_sha": null,
        "status": "planning",
        "title": "Test framework",
        "touched_base": "[SHA]",
        "touched_head": "[SHA]",
        "worktree": "[ROOT]/work/app.ops/worktrees/tf"
      },
      "needs": "write the plan, then: wf run",
      "plan": {
        "commits": [
          {
            "done": false,
            "id": "COMMIT-TF-001",
            "line": 3,
            "superseded": null,
            "title": "Add test harness"
          }
        ],
        "done": 0,
        "warnings": []
      },
      "running": false,
      "touched_files": 0,
      "uat": {
        "failed": [],
        "passed": [],
        "pending": [],
        "superseded": []
      }
    }
    [0]
    "#);
}

#[test]
fn log() {
    let person = Person::with_plan(ONE);
    person.question("tf", "CLQ-001", "blocking");
    person.wf(&["run", "tf"]);
    insta::assert_snapshot!(person.transcript(&[&["log", "tf", "--json"]]), @r#"
    $ wf log tf --json
    [
      {
        "result": {
          "base_sha": "[SHA]",
          "blocked_reason": "CLQ-001",
          "exit_code": 8,
          "failed_stage": "clarification",
          "microcommit": "COMMIT-TF-001",
          "notes": "blocked by CLQ-001",
          "project": "app",
          "stages": {
            "clarification": {
              "duration_seconds": [N],
              "notes": "CLQ-001",
              "status": "blocked"
            },
            "load": {
              "duration_seconds": [N],
              "status": "passed"
            },
            "lock": {
              "duration_seconds": [N],
              "status": "passed"
            },
            "refresh": {
              "duration_seconds": [N],
              "status": "passed"
            },
            "select": {
              "duration_seconds": [N],
              "status": "passed"
            }
          },
          "status": "blocked",
          "timestamps": {
            "duration_seconds": [N],
            "ended": "[TIME]",
            "started": "[TIME]"
          },
          "touched_files_count": 0,
          "version": 1,
          "workstream": "tf"
        },
        "run": "[STAMP]_app_tf_COMMIT-TF-001"
      }
    ]
    [0]
    "#);
}

#[test]
fn show() {
    let person = Person::with_plan(ONE);
    person.question("tf", "CLQ-001", "blocking");
    person.wf(&["run", "tf"]);
    let text = person.shot(&["show", "--workstream", "tf", "--json"], &[]);
    // The result itself is in the snapshot of `log`.
    let at = text.find("  \"result\"").expect("a result");
    insta::assert_snapshot!(format!("{}...\n{}", &text[..text.find('{').expect("JSON") + 2], &text[at..at + 10]), @r#"
    $ wf show --workstream tf --json
    {
    ...
      "result"
    "#);
    let value = person.json(&["show", "--workstream", "tf"]);
    insta::assert_snapshot!(value["files"].to_string(), @r#"["commands.log","env_snapshot.txt","result.json","run.jsonl","run.lock","run_summary.md"]"#);
}

#[test]
fn refresh_skip_close_and_docs() {
    let person = Person::with_plan(ONE);
    insta::assert_snapshot!(person.transcript(&[
        &["refresh", "--json"],
        &["docs", "status", "tf", "--json"],
        &["docs", "cleanup", "tf", "--json"],
        &["skip", "tf", "--json"],
        &["prune", "--json"],
        &["close", "tf", "--force", "--json"],
    ]), @r#"
    $ wf refresh --json
    [
      {
        "changed": false,
        "missing": false,
        "workstream": "tf"
      }
    ]
    [0]
    $ wf docs status tf --json
    {
      "coverage": {
        "assets": 0,
        "orphaned": [],
        "pages": 0
      },
      "folder": "[ROOT]/work/app.ops/worktrees/tf/docs"
    }
    [0]
    $ wf docs cleanup tf --json
    {
      "orphaned": [],
      "removed": false
    }
    [0]
    $ wf skip tf --json
    {
      "skipped": "COMMIT-TF-001",
      "workstream": "tf"
    }
    [0]
    $ wf prune --json
    []
    [0]
    $ wf close tf --force --json
    {
      "archive": "[ROOT]/work/app.ops/workflow/projects/app/workstreams/_closed/tf-[STAMP]",
      "branch": "feat/tf",
      "workstream": "tf"
    }
    [0]
    "#);
}

#[test]
fn conflicts_and_update() {
    let person = Person::with_plan(ONE);
    person.repo.write("theirs", "y\n").commit("on main");
    insta::assert_snapshot!(person.transcript(&[&["conflicts", "tf", "--json"], &["update", "tf", "--json"], &["update", "tf", "--json"]]), @r#"
    $ wf conflicts tf --json
    {
      "base": {
        "merge": "clean"
      },
      "conflicts": [],
      "workstream": "tf"
    }
    [0]
    $ wf update tf --json
    {
      "base_branch": "main",
      "updated": {
        "commit": "[SHA]",
        "how": "forward"
      },
      "workstream": "tf"
    }
    [0]
    $ wf update tf --json
    {
      "base_branch": "main",
      "updated": {
        "how": "same"
      },
      "workstream": "tf"
    }
    [0]
    "#);
}

#[test]
fn the_project_without_its_profile() {
    let person = Person::new();
    let mut value = person.json(&["project", "show"]);
    value["profile"] = "see the tests of the profile".into();
    let text = serde_json::to_string_pretty(&value).expect("JSON");
    insta::assert_snapshot!(person.redacted(&text), @r#"
    {
      "directory": "[ROOT]/work/app.ops/workflow/projects/app",
      "ops": "[ROOT]/work/app.ops",
      "profile": "see the tests of the profile",
      "project": {
        "branch_prefix": "feat",
        "default_branch": "main",
        "name": "app",
        "ops": "[ROOT]/work/app.ops",
        "repo": "[ROOT]/work/app"
      }
    }
    "#);
}
