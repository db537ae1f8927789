//! Provenance documents, in parts: of runs that went well, and of runs that lack something.

use serde_json::{Map, Value, json};

use super::super::provenance::{OperationChain, render_provenance};
use super::sample::{metadata, without};

/// These keys of the document of a run with a change.
fn check(keys: &[&str], chain: &OperationChain, change: impl FnOnce(&mut Value)) -> String {
    let document = render_provenance(&metadata(change), &[], chain);
    let part: Map<String, Value> =
        keys.iter().map(|key| ((*key).to_owned(), document[*key].clone())).collect();
    serde_json::to_string_pretty(&part).expect("it renders")
}

/// The same for a run that was closed in order.
fn closed(keys: &[&str], change: impl FnOnce(&mut Value)) -> String {
    check(keys, &OperationChain::Whole, change)
}

#[test]
fn who_ran() {
    let keys = ["version", "run", "slug", "agent", "provider", "bottles", "backend", "parent"];
    insta::assert_snapshot!(closed(&keys, |_| ()), @r#"
    {
      "agent": "worker",
      "backend": "bwrap",
      "bottles": [
        "rust"
      ],
      "parent": null,
      "provider": "claude",
      "run": "widget_20260101_100000_1",
      "slug": "worker-issue-3",
      "version": 1
    }
    "#);
}

#[test]
fn for_which_issue() {
    insta::assert_snapshot!(closed(&["forge", "prompt_sha256", "resumes_session"], |_| ()), @r#"
    {
      "forge": {
        "issue": 3,
        "kind": "gitea",
        "owner": "acme",
        "pull": null,
        "repo": "widget",
        "url": "https://git.example"
      },
      "prompt_sha256": "0000000000000000000000000000000000000000000000000000000000000000",
      "resumes_session": false
    }
    "#);
}

#[test]
fn without_a_forge() {
    let change = |meta: &mut Value| without(meta, &["forge", "sidecar", "done", "publication"]);
    let keys = ["forge", "sidecar", "done", "publication", "complete"];
    insta::assert_snapshot!(closed(&keys, change), @r#"
    {
      "complete": true,
      "done": null,
      "forge": null,
      "publication": null,
      "sidecar": null
    }
    "#);
}

#[test]
fn how_it_ended() {
    insta::assert_snapshot!(closed(&["timing", "exit", "verdict", "done"], |_| ()), @r#"
    {
      "done": {
        "at": "2026-01-01T10:29:00Z",
        "run": "widget_20260101_100000_1",
        "status": "success",
        "summary": "Colons are kept."
      },
      "exit": {
        "class": "done",
        "code": 0,
        "ended": {
          "code": 0,
          "kind": "exited"
        }
      },
      "timing": {
        "finished_at": "2026-01-01T10:30:00Z",
        "started_at": "2026-01-01T10:00:00Z",
        "wall_ms": 1767000
      },
      "verdict": {
        "kind": "publish"
      }
    }
    "#);
}

#[test]
fn how_it_was_kept_in() {
    insta::assert_snapshot!(closed(&["isolation"], |_| ()), @r#"
    {
      "isolation": {
        "egress_profile": null,
        "limits": {
          "cpu_percent": null,
          "disk_mb": null,
          "memory_mb": null,
          "processes": null,
          "silence_secs": 300,
          "timeout_secs": 1800
        },
        "peak_memory_bytes": 412000000,
        "preflight": null
      }
    }
    "#);
}

#[test]
fn before_the_agent_was_started() {
    let change = |meta: &mut Value| {
        without(meta, &["box", "agent_result", "evidence", "done", "publication", "exit_status"]);
        meta["verdict"] = json!({ "kind": "setup-failed", "how": "status 4" });
    };
    let keys = ["timing", "exit", "isolation", "verdict", "agent_says", "commits"];
    insta::assert_snapshot!(closed(&keys, change), @r#"
    {
      "agent_says": null,
      "commits": {
        "base": "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
        "new": null,
        "start": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "tip": null
      },
      "exit": {
        "class": null,
        "code": null,
        "ended": null
      },
      "isolation": null,
      "timing": {
        "finished_at": "2026-01-01T10:30:00Z",
        "started_at": "2026-01-01T10:00:00Z",
        "wall_ms": null
      },
      "verdict": {
        "how": "status 4",
        "kind": "setup-failed"
      }
    }
    "#);
}

#[test]
fn what_came_out() {
    insta::assert_snapshot!(closed(&["commits", "publication", "agent_says"], |_| ()), @r#"
    {
      "agent_says": {
        "claim": {
          "kind": "finished"
        },
        "cost_usd": 1.3,
        "input_tokens": 12000,
        "output_tokens": 8400,
        "session": "s1",
        "tool_calls": 58
      },
      "commits": {
        "base": "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
        "new": [
          {
            "parents": 1,
            "sha": "cccccccccccccccccccccccccccccccccccccccc",
            "subject": "keep colons"
          }
        ],
        "start": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "tip": "cccccccccccccccccccccccccccccccccccccccc"
      },
      "publication": {
        "branch": "bot-bottle/worker-issue-3",
        "commit": "cccccccccccccccccccccccccccccccccccccccc",
        "note": null,
        "problem": null,
        "pull": {
          "number": 4,
          "url": "https://git.example/acme/widget/pulls/4"
        },
        "pull_text": null,
        "pushed": true
      }
    }
    "#);
}

#[test]
fn a_scan_that_was_not_run_is_said_so() {
    insta::assert_snapshot!(closed(&["gitleaks", "scans"], |_| ()), @r#"
    {
      "gitleaks": {
        "engine": "gitleaks",
        "reason": "there was nothing to scan",
        "status": "not_run",
        "version": null
      },
      "scans": [
        {
          "engine": "built-in",
          "program_sha256": null,
          "status": "clean",
          "version": "1"
        }
      ]
    }
    "#);
}

#[test]
fn a_scan_with_findings() {
    let change = |meta: &mut Value| {
        meta["scans"] = json!([{
            "engine": "gitleaks", "version": "8.1", "status": "findings", "count": 1,
            "listed": ["aws-key"],
        }]);
        meta["verdict"] =
            json!({ "kind": "refused", "reasons": ["gitleaks found 1 secret: aws-key"] });
    };
    insta::assert_snapshot!(closed(&["gitleaks", "verdict"], change), @r#"
    {
      "gitleaks": {
        "count": 1,
        "engine": "gitleaks",
        "listed": [
          "aws-key"
        ],
        "program_sha256": null,
        "status": "findings",
        "version": "8.1"
      },
      "verdict": {
        "kind": "refused",
        "reasons": [
          "gitleaks found 1 secret: aws-key"
        ]
      }
    }
    "#);
}

#[test]
fn an_agent_that_did_not_report() {
    let change = |meta: &mut Value| {
        without(meta, &["done"]);
        meta["watchdog"] = json!("ended-without-signal");
    };
    let keys = ["done", "watchdog_fired", "watchdog_reason", "complete"];
    insta::assert_snapshot!(closed(&keys, change), @r#"
    {
      "complete": false,
      "done": null,
      "watchdog_fired": true,
      "watchdog_reason": "ended-without-signal"
    }
    "#);
}

#[test]
fn a_sidecar_that_died() {
    let change = |meta: &mut Value| {
        meta["watchdog"] = json!("sidecar-died");
        meta["sidecar"] = json!({ "kind": "died", "seen_at": "2026-01-01T10:10:00Z" });
    };
    insta::assert_snapshot!(closed(&["sidecar", "watchdog_reason", "complete"], change), @r#"
    {
      "complete": false,
      "sidecar": {
        "kind": "died",
        "seen_at": "2026-01-01T10:10:00Z"
      },
      "watchdog_reason": "sidecar-died"
    }
    "#);
}

#[test]
fn chains_in_each_state() {
    let broken = OperationChain::Broken("line 2 does not follow line 1".to_owned());
    let of = |chain| check(&["operations_chain", "complete"], chain, |_| ());
    let all = [of(&OperationChain::Whole), of(&OperationChain::Open), of(&broken)];
    insta::assert_snapshot!(all.join("\n"), @r#"
    {
      "complete": true,
      "operations_chain": {
        "head": "5555555555555555555555555555555555555555555555555555555555555555",
        "status": "whole"
      }
    }
    {
      "complete": false,
      "operations_chain": {
        "status": "open"
      }
    }
    {
      "complete": false,
      "operations_chain": {
        "reason": "line 2 does not follow line 1",
        "status": "broken"
      }
    }
    "#);
}

#[test]
fn a_run_that_is_not_over() {
    let change = |meta: &mut Value| {
        without(meta, &["finished_at", "box", "agent_result", "evidence", "done", "verdict"]);
        meta["phase"] = json!("launched");
    };
    let keys = ["timing", "verdict", "operations_chain", "complete"];
    insta::assert_snapshot!(check(&keys, &OperationChain::Open, change), @r#"
    {
      "complete": false,
      "operations_chain": {
        "status": "open"
      },
      "timing": {
        "finished_at": null,
        "started_at": "2026-01-01T10:00:00Z",
        "wall_ms": null
      },
      "verdict": null
    }
    "#);
}
