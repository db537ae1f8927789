//! Documents of issues, runs and events; headers and metrics.

use super::{document, headers};
use crate::serve::web::tests::stage::Stage;

#[tokio::test]
async fn the_document_of_the_issue_that_needs_a_person() {
    let answer = Stage::guarded().furnished().api("GET", "/api/v1/issues/acme/widget/1", "").await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 200
    {
      "agent": "worker",
      "backend": "bwrap",
      "cost_usd": 1.27,
      "created_at": "[TIME]",
      "destroy_at": null,
      "issue": {
        "number": 1,
        "owner": "acme",
        "repo": "widget",
        "title": "Login fails when the password holds a colon",
        "url": "https://git.example/acme/widget/issues/1"
      },
      "not_before": null,
      "orchestrated": true,
      "progress": null,
      "pull": {
        "number": 101,
        "url": "https://git.example/acme/widget/pulls/101"
      },
      "question": null,
      "reason": "the agent asks which of the two auth flows is meant",
      "runs": [
        "widget_[STAMP]"
      ],
      "slug": "stuck",
      "status": "needs-attention",
      "timeline": [
        {
          "at": "[TIME]",
          "more": "assigned to bot1",
          "status": "queued",
          "what": "queued"
        },
        {
          "at": "[TIME]",
          "more": "a slot is free",
          "status": "running",
          "what": "claimed"
        },
        {
          "at": "[TIME]",
          "more": "its bottle is there",
          "status": "running",
          "what": "running"
        },
        {
          "at": "[TIME]",
          "more": "the agent asks which of the two auth flows is meant",
          "status": "needs-attention",
          "what": "needs-attention"
        }
      ],
      "updated_at": "[TIME]",
      "verdict": "publish"
    }
    "#);
}

#[tokio::test]
async fn the_document_of_the_issue_in_the_queue() {
    let answer = Stage::guarded().furnished().api("GET", "/api/v1/issues/acme/widget/7", "").await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 200
    {
      "agent": "worker",
      "backend": null,
      "cost_usd": null,
      "created_at": "[TIME]",
      "destroy_at": null,
      "issue": {
        "number": 7,
        "owner": "acme",
        "repo": "widget",
        "title": "Upgrade the build to the new toolchain",
        "url": "https://git.example/acme/widget/issues/7"
      },
      "not_before": null,
      "orchestrated": true,
      "progress": null,
      "pull": null,
      "question": null,
      "reason": "assigned to bot1",
      "runs": [],
      "slug": null,
      "status": "queued",
      "timeline": [
        {
          "at": "[TIME]",
          "more": "assigned to bot1",
          "status": "queued",
          "what": "queued"
        }
      ],
      "updated_at": "[TIME]",
      "verdict": null
    }
    "#);
}

#[tokio::test]
async fn the_document_of_the_first_events() {
    let answer = Stage::guarded().furnished().api("GET", "/api/v1/events?limit=3", "").await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 200
    {
      "events": [
        {
          "at": "[TIME]",
          "issue": 1,
          "owner": "acme",
          "reason": "assigned to bot1",
          "repo": "widget",
          "seq": 1,
          "state": "queued",
          "status": "queued"
        },
        {
          "at": "[TIME]",
          "issue": 1,
          "owner": "acme",
          "reason": "a slot is free",
          "repo": "widget",
          "seq": 2,
          "state": "claimed",
          "status": "running"
        },
        {
          "at": "[TIME]",
          "issue": 1,
          "owner": "acme",
          "reason": "its bottle is there",
          "repo": "widget",
          "seq": 3,
          "state": "running",
          "status": "running"
        }
      ],
      "next": 3
    }
    "#);
}

#[tokio::test]
async fn the_document_of_the_deliveries_of_a_quiet_day() {
    let answer = Stage::guarded().furnished().api("GET", "/api/v1/deliveries", "").await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 200
    {
      "deliveries": [],
      "next": 0
    }
    "#);
}

#[tokio::test]
async fn the_document_of_a_run() {
    let stage = Stage::guarded().furnished();
    let path = format!("/api/v1/runs/reviewed/{}", stage.run_of("reviewed"));
    insta::assert_snapshot!(document(&stage.api("GET", &path, "").await), @r#"
    status: 200
    {
      "agent": "worker",
      "backend": "bwrap",
      "commits": 2,
      "cost_source": "measured",
      "cost_usd": 1.27,
      "doing": "closed",
      "exit_status": 0,
      "finished_at": "[TIME]",
      "input_tokens": 682000,
      "model": "anthropic/claude-sonnet",
      "new_commits": [
        {
          "sha": "[SHA]",
          "subject": "keep colons in passwords"
        },
        {
          "sha": "[SHA]",
        }
      ],
      "output_tokens": 8400,
      "parent": null,
      "phase": "closed",
      "provider": "claude",
      "pull_number": 101,
      "pull_url": null,
      "question": null,
      "run": "widget_[STAMP]",
      "slug": "reviewed",
      "started_at": "[TIME]",
      "timeline": [
        {
          "at": "[TIME]",
          "more": "from aaaaaaaaaaaa",
          "status": null,
          "what": "run started"
        },
        {
          "at": "[TIME]",
          "more": "bubblewrap is here",
          "status": null,
          "what": "box started"
        },
        {
          "at": "[TIME]",
          "more": "done",
          "status": null,
          "what": "box ended"
        },
        {
          "at": "[TIME]",
          "more": "the work holds",
          "status": null,
          "what": "run closed"
        }
      ],
      "tokens": 690400,
      "tool_calls": 58,
      "verdict": {
        "kind": "publish",
        "message": "the work holds"
      },
      "wall_ms": 1971000,
      "watchdog_fired": false
    }
    "#);
}

#[tokio::test]
async fn the_document_of_a_run_that_is_not_over() {
    let stage = Stage::guarded().furnished();
    let path = format!("/api/v1/runs/busy/{}", stage.run_of("busy"));
    insta::assert_snapshot!(document(&stage.api("GET", &path, "").await), @r#"
    status: 200
    {
      "agent": "worker",
      "answer": null,
      "backend": "bwrap",
      "commits": 0,
      "cost_source": "measured",
      "cost_usd": 0.42,
      "doing": "the agent is running",
      "exit_status": null,
      "finished_at": null,
      "input_tokens": null,
      "model": "anthropic/claude-sonnet",
      "new_commits": [],
      "output_tokens": null,
      "parent": null,
      "phase": "launched",
      "provider": "claude",
      "pull_number": 101,
      "pull_url": null,
      "question": null,
      "run": "widget_[STAMP]",
      "slug": "busy",
      "started_at": "[TIME]",
      "timeline": [
        {
          "at": "[TIME]",
          "more": "from aaaaaaaaaaaa",
          "status": null,
          "what": "run started"
        }
      ],
      "tokens": 4,
      "tool_calls": null,
      "verdict": null,
      "wall_ms": null,
      "watchdog_fired": false
    }
    "#);
}

#[tokio::test]
async fn the_operations_of_a_run() {
    let stage = Stage::guarded().furnished();
    let path = format!("/api/v1/runs/reviewed/{}/operations", stage.run_of("reviewed"));
    insta::assert_snapshot!(document(&stage.api("GET", &path, "").await), @r#"
    status: 200
    {
      "operations": [
        {
          "detail": null,
          "op": "branch.push",
          "outcome": "intended",
          "prev": "[SHA]",
          "seq": 1,
          "target": "bot-bottle/work",
          "ts": "[TIME]"
        },
        {
          "detail": null,
          "op": "branch.push",
          "outcome": "done",
          "prev": "[SHA]",
          "seq": 2,
          "target": "bot-bottle/work",
          "ts": "[TIME]"
        },
        {
          "detail": null,
          "op": "comment.create",
          "outcome": "refused",
          "prev": "[SHA]",
          "seq": 3,
          "ts": "[TIME]"
        }
      ]
    }
    "#);
}

#[tokio::test]
async fn an_accepted_action() {
    let stage = Stage::guarded().furnished();
    let answer = stage.api("POST", "/api/v1/bottles/busy/freeze", "").await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 202
    {
      "event": "freeze",
      "id": "[SHA]"
    }
    "#);
}

#[tokio::test]
async fn the_headers_of_a_page() {
    insta::assert_snapshot!(headers(&Stage::open().get("/").await), @"
    status: 200
    cache-control: no-store
    content-length: 1468
    content-security-policy: default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'
    content-type: text/html; charset=utf-8
    cross-origin-opener-policy: same-origin
    cross-origin-resource-policy: same-origin
    referrer-policy: no-referrer
    x-content-type-options: nosniff
    ");
}

#[tokio::test]
async fn the_headers_of_a_problem() {
    insta::assert_snapshot!(headers(&Stage::guarded().get("/api/v1/runs").await), @"
    status: 401
    cache-control: no-store
    content-length: 138
    content-security-policy: default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'
    content-type: application/problem+json
    cross-origin-opener-policy: same-origin
    cross-origin-resource-policy: same-origin
    referrer-policy: no-referrer
    www-authenticate: Bearer
    x-content-type-options: nosniff
    ");
}

#[tokio::test]
async fn numbers_for_a_collector() {
    let text = Stage::open().furnished().get("/metrics").await.text;
    let measured = [
        "bot_bottle_memory_bytes ",
        "bot_bottle_disk_free_bytes ",
        "bot_bottle_queue_age_seconds ",
        "bot_bottle_info{",
    ];
    let line = |line: &str| match measured.iter().find(|name| line.starts_with(**name)) {
        Some(name) => format!("{name}…"),
        None => line.to_owned(),
    };
    let (text, _) = text.split_once("# HELP bot_bottle_webhooks_total").expect("counters");
    insta::assert_snapshot!(text.lines().map(line).collect::<Vec<_>>().join("\n"), @r#"
    # HELP bot_bottle_info Version of the program.
    # TYPE bot_bottle_info gauge
    bot_bottle_info{…
    # HELP bot_bottle_cases Issues and bottles, by status.
    # TYPE bot_bottle_cases gauge
    bot_bottle_cases{state="needs-attention"} 3
    bot_bottle_cases{state="waiting"} 1
    bot_bottle_cases{state="running"} 1
    bot_bottle_cases{state="queued"} 1
    bot_bottle_cases{state="frozen"} 2
    bot_bottle_cases{state="destroyed"} 1
    # HELP bot_bottle_deliveries_unhandled Stored webhooks and user actions that are not handled yet.
    # TYPE bot_bottle_deliveries_unhandled gauge
    bot_bottle_deliveries_unhandled 0
    # HELP bot_bottle_runs Recorded runs, by verdict.
    # TYPE bot_bottle_runs gauge
    bot_bottle_runs{verdict="none"} 1
    bot_bottle_runs{verdict="publish"} 6
    # HELP bot_bottle_cost_usd Known cost of the recorded runs.
    # TYPE bot_bottle_cost_usd gauge
    bot_bottle_cost_usd 8.04
    # HELP bot_bottle_streams Open event streams.
    # TYPE bot_bottle_streams gauge
    bot_bottle_streams 0
    # HELP bot_bottle_memory_bytes Memory of this process.
    # TYPE bot_bottle_memory_bytes gauge
    bot_bottle_memory_bytes …
    # HELP bot_bottle_disk_free_bytes Free disk space where bottles are stored.
    # TYPE bot_bottle_disk_free_bytes gauge
    bot_bottle_disk_free_bytes …
    # HELP bot_bottle_queue_age_seconds Time that the oldest queued issue has waited.
    # TYPE bot_bottle_queue_age_seconds gauge
    bot_bottle_queue_age_seconds …
    # HELP bot_bottle_repository_up 1 if the forge answers for the repository.
    # TYPE bot_bottle_repository_up gauge
    bot_bottle_repository_up{repo="acme/widget"} 1
    # HELP bot_bottle_spent_today Counted spending of today, in UTC.
    # TYPE bot_bottle_spent_today gauge
    bot_bottle_spent_today{unit="tokens"} 0
    bot_bottle_spent_today{unit="micro_usd"} 0
    # HELP bot_bottle_budget_limit Budgets of a day.
    # TYPE bot_bottle_budget_limit gauge
    # HELP bot_bottle_budget_used Spent and reserved parts of the budgets, today.
    # TYPE bot_bottle_budget_used gauge
    # HELP bot_bottle_leases_held Issues that a process works on, over all hosts.
    # TYPE bot_bottle_leases_held gauge
    bot_bottle_leases_held 1
    # HELP bot_bottle_leases_expired Leases that have expired and are not taken over yet.
    # TYPE bot_bottle_leases_expired gauge
    bot_bottle_leases_expired 0
    # HELP bot_bottle_lease_expired_seconds_max Time since the oldest of them has expired.
    # TYPE bot_bottle_lease_expired_seconds_max gauge
    bot_bottle_lease_expired_seconds_max 0
    # HELP bot_bottle_leases_without_host Issues whose holder does not report itself any more.
    # TYPE bot_bottle_leases_without_host gauge
    bot_bottle_leases_without_host 0
    "#);
}

#[tokio::test]
async fn counts_for_a_collector() {
    let text = Stage::open().furnished().get("/metrics").await.text;
    insta::assert_snapshot!(metrics_between(&text, "webhooks_total", "forge_calls_total"), @r#"
    # HELP bot_bottle_webhooks_total Webhooks, by result.
    # TYPE bot_bottle_webhooks_total counter
    bot_bottle_webhooks_total{result="accepted"} 0
    bot_bottle_webhooks_total{result="duplicate"} 0
    bot_bottle_webhooks_total{result="wrong-signature"} 0
    bot_bottle_webhooks_total{result="not-stored"} 0
    bot_bottle_webhooks_total{result="refused"} 0
    # HELP bot_bottle_observations_total Observations of issues, by result.
    # TYPE bot_bottle_observations_total counter
    bot_bottle_observations_total{result="ok"} 0
    bot_bottle_observations_total{result="failed"} 0
    # HELP bot_bottle_forge_errors_total Failed observations and sweeps, by kind of failure.
    # TYPE bot_bottle_forge_errors_total counter
    bot_bottle_forge_errors_total{kind="unauthorized"} 0
    bot_bottle_forge_errors_total{kind="forbidden"} 0
    bot_bottle_forge_errors_total{kind="not-found"} 0
    bot_bottle_forge_errors_total{kind="moved"} 0
    bot_bottle_forge_errors_total{kind="rate-limited"} 0
    bot_bottle_forge_errors_total{kind="server"} 0
    bot_bottle_forge_errors_total{kind="unreachable"} 0
    bot_bottle_forge_errors_total{kind="other"} 0
    bot_bottle_forge_errors_total{kind="not-forge"} 0
    # HELP bot_bottle_claims_total Claims on issues by this process, by result.
    # TYPE bot_bottle_claims_total counter
    bot_bottle_claims_total{result="claimed"} 0
    bot_bottle_claims_total{result="gone"} 0
    bot_bottle_claims_total{result="over-budget"} 0
    # HELP bot_bottle_leases_total Takeovers by this process, and renewals that failed.
    # TYPE bot_bottle_leases_total counter
    bot_bottle_leases_total{event="taken-over"} 0
    bot_bottle_leases_total{event="renewal-failed"} 0
    # HELP bot_bottle_leases_lost_total Issues that this process lost while it worked on them, by how.
    # TYPE bot_bottle_leases_lost_total counter
    bot_bottle_leases_lost_total{how="expired"} 0
    bot_bottle_leases_lost_total{how="refused-by-database"} 0
    bot_bottle_leases_lost_total{how="refused-by-forge"} 0
    "#);
}

#[tokio::test]
async fn counts_of_the_process_for_a_collector() {
    let text = Stage::open().furnished().get("/metrics").await.text;
    insta::assert_snapshot!(metrics_between(&text, "forge_calls_total", "none"), @r#"
    # HELP bot_bottle_forge_calls_total Requests to forges, each attempt, by result; those of sidecars are not among them.
    # TYPE bot_bottle_forge_calls_total counter
    bot_bottle_forge_calls_total{result="ok"} 0
    bot_bottle_forge_calls_total{result="rate-limited"} 0
    bot_bottle_forge_calls_total{result="rejected"} 0
    bot_bottle_forge_calls_total{result="server-error"} 0
    bot_bottle_forge_calls_total{result="not-sent"} 0
    bot_bottle_forge_calls_total{result="unanswered"} 0
    # HELP bot_bottle_tokens_total Tokens of the runs that ended since the start.
    # TYPE bot_bottle_tokens_total counter
    bot_bottle_tokens_total 0
    # HELP bot_bottle_cost_usd_total Known cost of the runs that ended since the start.
    # TYPE bot_bottle_cost_usd_total counter
    bot_bottle_cost_usd_total 0
    # HELP bot_bottle_uncounted_runs_total Runs that ended since the start and whose tokens nobody counted.
    # TYPE bot_bottle_uncounted_runs_total counter
    bot_bottle_uncounted_runs_total 0
    # HELP bot_bottle_run_seconds Durations of runs since the start.
    # TYPE bot_bottle_run_seconds histogram
    bot_bottle_run_seconds_bucket{le="1"} 0
    bot_bottle_run_seconds_bucket{le="10"} 0
    bot_bottle_run_seconds_bucket{le="30"} 0
    bot_bottle_run_seconds_bucket{le="60"} 0
    bot_bottle_run_seconds_bucket{le="300"} 0
    bot_bottle_run_seconds_bucket{le="900"} 0
    bot_bottle_run_seconds_bucket{le="3600"} 0
    bot_bottle_run_seconds_bucket{le="14400"} 0
    bot_bottle_run_seconds_bucket{le="+Inf"} 0
    bot_bottle_run_seconds_sum 0
    bot_bottle_run_seconds_count 0
    # HELP bot_bottle_claim_wait_seconds Waits of issues for their claim.
    # TYPE bot_bottle_claim_wait_seconds histogram
    bot_bottle_claim_wait_seconds_bucket{le="1"} 0
    bot_bottle_claim_wait_seconds_bucket{le="10"} 0
    bot_bottle_claim_wait_seconds_bucket{le="30"} 0
    bot_bottle_claim_wait_seconds_bucket{le="60"} 0
    bot_bottle_claim_wait_seconds_bucket{le="300"} 0
    bot_bottle_claim_wait_seconds_bucket{le="900"} 0
    bot_bottle_claim_wait_seconds_bucket{le="3600"} 0
    bot_bottle_claim_wait_seconds_bucket{le="14400"} 0
    bot_bottle_claim_wait_seconds_bucket{le="+Inf"} 0
    bot_bottle_claim_wait_seconds_sum 0
    bot_bottle_claim_wait_seconds_count 0
    "#);
}

/// The text from one metric up to another one, or to the end.
fn metrics_between(text: &str, first: &str, other: &str) -> String {
    let start = format!("# HELP bot_bottle_{first}");
    let (_, rest) = text.split_once(&start).expect("the metric");
    let rest = rest.split(&format!("# HELP bot_bottle_{other}")).next().unwrap_or_default();
    format!("{start}{rest}")
}
