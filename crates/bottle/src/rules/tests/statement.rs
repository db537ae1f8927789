//! The two statements about a run, in parts: what they say of runs that went well and of runs that lack something.

use attest::bottle_run::{EventLog, HostPlace};
use attest::statement::Resource;
use serde_json::{Map, Value, json};

use super::super::attestation::{Witness, render_statements};
use super::sample::{metadata, without};

/// Both statements of a run with a change.
fn statements(change: impl FnOnce(&mut Value), bundle: bool) -> (Value, Value) {
    let meta = metadata(change);
    let operations = [
        json!({
            "seq": 1, "ts": "2026-01-01T10:10:00Z", "op": "forge.post_comment", "target": "#3",
            "outcome": "done", "detail": { "sentence": "commented on #3" },
        }),
        json!({
            "seq": 2, "ts": "2026-01-01T10:11:00Z", "op": "forge.post_comment", "target": "#9",
            "outcome": "refused", "detail": { "sentence": "refused comment to #9: out of scope" },
        }),
        json!({ "seq": 3, "ts": "2026-01-01T10:30:00Z", "op": "branch.push", "target": "b", "outcome": "done" }),
    ];
    let file = "operations.jsonl".to_owned();
    let witness = Witness {
        meta: &meta,
        operations: &operations,
        events: EventLog { file, head: "5".repeat(64), count: 3 },
        place: HostPlace { host: "host-1".to_owned(), seq: 2, prev: "6".repeat(64) },
        byproducts: vec![Resource::new("operations.jsonl", "sha256", &"7".repeat(64))],
        bundle: bundle.then(|| Resource::new("commits.bundle", "sha256", &"8".repeat(64))),
    };
    let (provenance, run) = render_statements(&witness);
    (json!(provenance), json!(run))
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("it renders")
}

/// These keys of the predicate about how the run went.
fn run_part(keys: &[&str], change: impl FnOnce(&mut Value)) -> String {
    let (_, run) = statements(change, true);
    let part: Map<String, Value> =
        keys.iter().map(|key| ((*key).to_owned(), run["predicate"][*key].clone())).collect();
    pretty(&Value::Object(part))
}

#[test]
fn both_are_about_the_commit_and_its_bundle() {
    let (provenance, run) = statements(|_| (), true);
    assert_eq!(provenance["subject"], run["subject"]);
    insta::assert_snapshot!(pretty(&run["subject"]), @r#"
    [
      {
        "annotations": {
          "published": true
        },
        "digest": {
          "gitCommit": "cccccccccccccccccccccccccccccccccccccccc"
        },
        "name": "commit",
        "uri": "git+https://git.example/acme/widget.git@refs/heads/bot-bottle/worker-issue-3"
      },
      {
        "digest": {
          "sha256": "8888888888888888888888888888888888888888888888888888888888888888"
        },
        "name": "commits.bundle"
      }
    ]
    "#);
}

#[test]
fn a_run_without_commits_is_known_by_its_log() {
    let (_, run) = statements(|meta| without(meta, &["evidence"]), false);
    insta::assert_snapshot!(pretty(&run["subject"]), @r#"
    [
      {
        "digest": {
          "sha256": "7777777777777777777777777777777777777777777777777777777777777777"
        },
        "name": "operations.jsonl"
      }
    ]
    "#);
}

#[test]
fn a_commit_that_is_not_published_is_said_so() {
    let (_, run) = statements(|meta| without(meta, &["publication"]), false);
    insta::assert_snapshot!(pretty(&run["subject"]), @r#"
    [
      {
        "annotations": {
          "published": false
        },
        "digest": {
          "gitCommit": "cccccccccccccccccccccccccccccccccccccccc"
        },
        "name": "commit",
        "uri": "git+https://git.example/acme/widget.git@refs/heads/bot-bottle/worker-issue-3"
      }
    ]
    "#);
}

#[test]
fn what_was_asked_for() {
    let (provenance, _) = statements(|_| (), true);
    let definition = &provenance["predicate"]["buildDefinition"];
    insta::assert_snapshot!(pretty(&definition["externalParameters"]), @r#"
    {
      "agent": "worker",
      "bottles": [
        "rust"
      ],
      "delivery": null,
      "forge": "https://git.example",
      "issue": 3,
      "owner": "acme",
      "policy": "packages",
      "prompt_sha256": "0000000000000000000000000000000000000000000000000000000000000000",
      "pull": 4,
      "repo": "widget"
    }
    "#);
}

#[test]
fn what_the_host_chose() {
    let (provenance, _) = statements(|_| (), true);
    let definition = &provenance["predicate"]["buildDefinition"];
    insta::assert_snapshot!(pretty(&definition["internalParameters"]), @r#"
    {
      "backend": "bwrap",
      "egress_policy_sha256": null,
      "limits": {
        "cpu_percent": null,
        "disk_mb": null,
        "memory_mb": null,
        "processes": null,
        "silence_secs": 300,
        "timeout_secs": 1800
      },
      "model": "anthropic/claude-sonnet",
      "orchestrator": "bot-bottle 1.0",
      "profile_sha256": "1111111111111111111111111111111111111111111111111111111111111111",
      "provider": "claude",
      "seccomp_sha256": "2222222222222222222222222222222222222222222222222222222222222222"
    }
    "#);
}

#[test]
fn what_went_in() {
    let (provenance, _) = statements(|_| (), true);
    let definition = &provenance["predicate"]["buildDefinition"];
    insta::assert_snapshot!(pretty(&definition["resolvedDependencies"]), @r#"
    [
      {
        "digest": {
          "gitCommit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        },
        "name": "start"
      },
      {
        "digest": {
          "gitCommit": "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
        },
        "name": "base"
      },
      {
        "digest": {
          "sha256": "3333333333333333333333333333333333333333333333333333333333333333"
        },
        "name": "guest"
      },
      {
        "annotations": {
          "version": "2.1.0"
        },
        "digest": {
          "sha256": "4444444444444444444444444444444444444444444444444444444444444444"
        },
        "name": "agent",
        "uri": "pkg:npm/%40acme/agent@2.1.0"
      }
    ]
    "#);
}

#[test]
fn what_went_in_with_an_image_and_without_a_lock_file() {
    let change = |meta: &mut Value| {
        meta["seal"]["image"] =
            json!({ "name": "kitchen-sink", "id": format!("sha256:{}", "9".repeat(64)) });
        meta["seal"]["program"]["lock_sha256"] = Value::Null;
    };
    let (provenance, _) = statements(change, true);
    let list = &provenance["predicate"]["buildDefinition"]["resolvedDependencies"];
    insta::assert_snapshot!(pretty(&json!([list[3], list[4]])), @r#"
    [
      {
        "annotations": {
          "name": "kitchen-sink"
        },
        "digest": {
          "sha256": "9999999999999999999999999999999999999999999999999999999999999999"
        },
        "name": "image"
      },
      {
        "annotations": {
          "version": "2.1.0"
        },
        "name": "agent",
        "uri": "pkg:npm/%40acme/agent@2.1.0"
      }
    ]
    "#);
}

#[test]
fn who_built_and_when() {
    let (provenance, _) = statements(|_| (), true);
    insta::assert_snapshot!(pretty(&provenance["predicate"]["runDetails"]), @r#"
    {
      "builder": {
        "id": "https://bottleworks.dev/bot-bottle/host/host-1",
        "version": {
          "bot-bottle": "bot-bottle 1.0"
        }
      },
      "byproducts": [
        {
          "digest": {
            "sha256": "7777777777777777777777777777777777777777777777777777777777777777"
          },
          "name": "operations.jsonl"
        }
      ],
      "metadata": {
        "finishedOn": "2026-01-01T10:30:00Z",
        "invocationId": "widget_20260101_100000_1",
        "startedOn": "2026-01-01T10:00:00Z"
      }
    }
    "#);
}

#[test]
fn how_it_ended() {
    let keys = ["run", "bottle", "exit", "verdict", "watchdog_fired", "signal_done", "complete"];
    insta::assert_snapshot!(run_part(&keys, |_| ()), @r#"
    {
      "bottle": "worker-issue-3",
      "complete": true,
      "exit": {
        "class": "done",
        "code": 0,
        "signal": null
      },
      "run": "widget_20260101_100000_1",
      "signal_done": {
        "at": "2026-01-01T10:29:00Z",
        "status": "success",
        "summary_sha256": "dde5a5424854822126d949984d5fbc43954f4598986bc67944a8a8dd5aef1d9c"
      },
      "verdict": "publish",
      "watchdog_fired": false
    }
    "#);
}

#[test]
fn what_the_agent_did_on_the_forge() {
    insta::assert_snapshot!(run_part(&["forge_ops"], |_| ()), @r##"
    {
      "forge_ops": [
        {
          "allowed": true,
          "op": "post_comment",
          "reason": "commented on #3",
          "seq": 1,
          "target": "#3",
          "ts": "2026-01-01T10:10:00Z"
        },
        {
          "allowed": false,
          "op": "post_comment",
          "reason": "refused comment to #9: out of scope",
          "seq": 2,
          "target": "#9",
          "ts": "2026-01-01T10:11:00Z"
        }
      ]
    }
    "##);
}

#[test]
fn how_it_was_kept_in() {
    insta::assert_snapshot!(run_part(&["isolation", "gitleaks", "scans"], |_| ()), @r#"
    {
      "gitleaks": {
        "count": null,
        "engine": "gitleaks",
        "program_sha256": null,
        "rules_sha256": null,
        "status": "not_run",
        "version": null
      },
      "isolation": {
        "backend": "bwrap",
        "landlock_abi": null,
        "memory": "watchdog",
        "preflight": null,
        "rlimits": null
      },
      "scans": [
        {
          "count": 0,
          "engine": "built-in",
          "program_sha256": null,
          "rules_sha256": null,
          "status": "clean",
          "version": "1"
        }
      ]
    }
    "#);
}

#[test]
fn whose_commits_they_are() {
    let change = |meta: &mut Value| {
        meta["evidence"]["foreign_identities"] = json!(["Eve <eve@example.com>"]);
    };
    insta::assert_snapshot!(run_part(&["commit_identity"], change), @r#"
    {
      "commit_identity": {
        "expected": "Bottleworks agent <agent@bottle.invalid>",
        "foreign": [
          "Eve <eve@example.com>"
        ],
        "held": false
      }
    }
    "#);
}

#[test]
fn where_it_stands_in_the_chain() {
    insta::assert_snapshot!(run_part(&["events", "host_chain", "lineage", "resumes_session"], |_| ()), @r#"
    {
      "events": {
        "count": 3,
        "file": "operations.jsonl",
        "head": "5555555555555555555555555555555555555555555555555555555555555555"
      },
      "host_chain": {
        "host": "host-1",
        "prev": "6666666666666666666666666666666666666666666666666666666666666666",
        "seq": 2
      },
      "lineage": [],
      "resumes_session": false
    }
    "#);
}

#[test]
fn everything_that_a_record_may_lack() {
    let change = |meta: &mut Value| {
        without(meta, &["finished_at", "done"]);
        meta["watchdog"] = json!("sidecar-died");
        meta["sidecar"] = json!({ "kind": "died", "seen_at": "2026-01-01T10:10:00Z" });
        meta["box"]["ended"] = json!({ "kind": "infra", "reason": "the shim died" });
        meta["box"]["dropped_bytes"] = json!(7);
    };
    insta::assert_snapshot!(run_part(&["exit", "watchdog_reason", "complete", "reasons"], change), @r#"
    {
      "complete": false,
      "exit": {
        "class": "infra",
        "code": null,
        "signal": null
      },
      "reasons": [
        "the run was not closed in order",
        "the agent did not report for itself",
        "the forge sidecar died",
        "the machine failed",
        "the agent's log was cut"
      ],
      "watchdog_reason": "sidecar-died"
    }
    "#);
}

#[test]
fn a_run_whose_agent_was_not_started() {
    let change = |meta: &mut Value| {
        without(meta, &["box", "seal", "evidence", "done"]);
        meta["verdict"] = json!({ "kind": "setup-failed", "how": "status 4" });
    };
    insta::assert_snapshot!(run_part(&["exit", "verdict", "isolation", "signal_done", "complete"], change), @r#"
    {
      "complete": true,
      "exit": {
        "class": "none",
        "code": null,
        "signal": null
      },
      "isolation": {
        "backend": "bwrap",
        "landlock_abi": null,
        "memory": "watchdog",
        "preflight": null,
        "rlimits": null
      },
      "signal_done": null,
      "verdict": "setup-failed"
    }
    "#);
}
