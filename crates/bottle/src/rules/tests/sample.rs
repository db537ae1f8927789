//! Records of a sample run: one that went well, with a forge, an agent's report and a published branch.

use serde_json::{Value, json};

use crate::flow::run_record::BottleRunRecord;

/// A commit of one letter.
pub(super) fn sha(letter: &str) -> String {
    letter.repeat(40)
}

pub(super) fn metadata(change: impl FnOnce(&mut Value)) -> BottleRunRecord {
    let mut value = whole();
    change(&mut value);
    serde_json::from_value(value).expect("metadata")
}

/// Takes keys away.
pub(super) fn without(value: &mut Value, keys: &[&str]) {
    let map = value.as_object_mut().expect("an object");
    keys.iter().for_each(|key| drop(map.remove(*key)));
}

fn whole() -> Value {
    json!({
        "version": 2, "run": "widget_20260101_100000_1", "slug": "worker-issue-3", "phase": "closed",
        "started_at": "2026-01-01T10:00:00Z", "finished_at": "2026-01-01T10:30:00Z",
        "agent": "worker",
        "manifest": { "provider": "claude", "model": "anthropic/claude-sonnet" },
        "bottles": ["rust"], "bottle": {}, "backend": "bwrap", "backend_reason": "it is here",
        "resumes_session": false, "prompt_sha256": "0".repeat(64),
        "forge": {
            "kind": "gitea", "web": "https://git.example", "owner": "acme", "repo": "widget",
            "issue": 3, "pull": null, "org": "bot-bottle", "watchdog_secs": 1800,
        },
        "pins": {
            "branch": "bot-bottle/worker-issue-3", "base_branch": "main",
            "start": sha("a"), "base": sha("b"), "base_is_new": false, "branch_is_new": false,
        },
        "seal": {
            "orchestrator": "bot-bottle 1.0", "profile_sha256": "1".repeat(64),
            "seccomp_sha256": "2".repeat(64), "egress_policy_sha256": null,
            "guest_sha256": "3".repeat(64), "image": null,
            "program": { "package": "@acme/agent", "version": "2.1.0", "lock_sha256": "4".repeat(64) },
        },
        "sidecar": { "kind": "stopped" },
        "done": {
            "run": "widget_20260101_100000_1", "status": "success", "summary": "Colons are kept.",
            "at": "2026-01-01T10:29:00Z",
        },
        "box": {
            "ended": { "kind": "exited", "code": 0 }, "backend": "bwrap",
            "started_at": "2026-01-01T10:00:03Z", "finished_at": "2026-01-01T10:29:30Z",
            "wall_ms": 1_767_000, "output_bytes": 200, "dropped_bytes": 0,
            "peak_memory_bytes": 412_000_000_u64,
        },
        "agent_result": {
            "claim": { "kind": "finished" }, "answer": "Done.", "session": "s1", "tool_calls": 58,
            "input_tokens": 12_000, "output_tokens": 8_400, "cost_usd": 1.3,
        },
        "evidence": {
            "tip": sha("c"), "upstream_reachable": true, "base_reachable": true,
            "new_commits": [{ "sha": sha("c"), "subject": "keep colons", "parents": 1 }],
            "files_changed": 2, "files_made": [], "links_leaving": [], "gitlinks_made": [],
            "markers_left": [], "oversize": [], "foreign_identities": [],
        },
        "scans": [{ "engine": "built-in", "version": "1", "status": "clean" }],
        "verdict": { "kind": "publish" },
        "publication": {
            "branch": "bot-bottle/worker-issue-3", "commit": sha("c"), "pushed": true,
            "pull": { "number": 4, "url": "https://git.example/acme/widget/pulls/4" },
        },
        "exit_status": 0, "operations_head": "5".repeat(64),
    })
}
