//! The bodies of answers, as GitLab's REST API documents them.

use serde_json::{Value, json};

use super::super::{
    FakeComment, FakeHook, FakeIssue, FakePull, FakeRepository, FakeReview, OWNER, REPO, Room,
    World,
};

/// Every account has an id that follows from its name.
pub(super) fn user_id(login: &str) -> u64 {
    login.bytes().fold(7, |id: u64, byte| (id * 31 + u64::from(byte)) % 100_003)
}

pub(super) fn merge_request(world: &World, pull: &FakePull) -> Value {
    let state = match (pull.open, pull.merged) {
        (_, true) => "merged",
        (true, false) => "opened",
        (false, false) => "closed",
    };
    json!({
        "id": 9000 + pull.number, "iid": pull.number, "project_id": 1,
        "web_url": format!("{}/{OWNER}/{REPO}/-/merge_requests/{}", world.root, pull.number),
        "title": if pull.draft { format!("Draft: {}", pull.title) } else { pull.title.clone() },
        "description": nullable(&pull.body), "state": state,
        "merged_at": pull.merged.then_some("2026-11-15T08:06:07.123Z"), "draft": pull.draft,
        "author": user(&pull.author), "assignees": users(&pull.assignees),
        "reviewers": users(&pull.reviewers), "labels": pull.labels,
        "head_pipeline": pipeline(world, world.sha_of(&pull.head)),
        "diverged_commits_count": u64::from(pull.is_behind),
        "source_branch": pull.head, "target_branch": pull.base, "sha": world.sha_of(&pull.head),
        "source_project_id": if pull.from_fork { 2 } else { 1 }, "target_project_id": 1,
        "merge_status": "can_be_merged",
        "detailed_merge_status": if pull.has_conflicts { "conflict" } else { "mergeable" },
        "has_conflicts": pull.has_conflicts,
    })
}

/// The pipeline of a commit: its jobs are the checks. Null if there is none.
fn pipeline(world: &World, sha: &str) -> Value {
    let checks = world.checks_of(sha);
    let any = |state: &str| checks.iter().any(|check| check.state == state);
    let status = match (checks.is_empty(), any("failure"), any("pending")) {
        (true, _, _) => return Value::Null,
        (false, true, _) => "failed",
        (false, false, true) => "running",
        (false, false, false) => "success",
    };
    json!({ "id": checks[0].id, "sha": sha, "status": status, "web_url": format!("{}/-/pipelines/1", world.root) })
}

/// A discussion: a note alone, or a remark with its answers.
pub(super) fn discussion(id: &str, notes: &[Value]) -> Value {
    json!({ "id": id, "individual_note": notes.len() == 1 && notes[0]["type"].is_null(), "notes": notes })
}

/// Answers to the remark of a review.
pub(super) fn answers(world: &World, id: u64, review: &FakeReview) -> Vec<Value> {
    let own = world.answers.iter().zip(3000_u64..).filter(|(answer, _)| answer.review == id);
    own.map(|(answer, number)| {
        json!({
            "id": number, "type": "DiffNote", "body": answer.body, "system": false,
            "author": user(&answer.author), "created_at": answer.created_at,
            "position": { "new_path": review.path, "new_line": 2, "position_type": "text" },
        })
    })
    .collect()
}

pub(super) fn issue(world: &World, issue: &FakeIssue) -> Value {
    json!({
        "id": 8000 + issue.number, "iid": issue.number, "project_id": 1,
        "web_url": format!("{}/{OWNER}/{REPO}/-/issues/{}", world.root, issue.number),
        "title": issue.title, "description": nullable(&issue.body),
        "state": if issue.open { "opened" } else { "closed" },
        "author": user(&issue.author), "assignees": users(&issue.assignees),
        "labels": issue.labels, "confidential": false,
    })
}

pub(super) fn note(comment: &FakeComment) -> Value {
    json!({
        "id": comment.id, "type": null, "body": comment.body, "author": user(&comment.author),
        "created_at": comment.created_at, "system": false, "noteable_iid": comment.on,
        "noteable_type": match comment.room { Room::Issue => "Issue", Room::Pull => "MergeRequest" },
    })
}

/// Events of an issue: the account that set its labels.
pub(super) fn label_events(issue: &FakeIssue) -> Vec<Value> {
    let event = |(name, id): (&String, u64)| {
        json!({
            "id": id, "user": user(&issue.set_by), "action": "add",
            "label": { "id": id, "name": name }, "resource_type": "Issue",
        })
    };
    issue.labels.iter().zip(1..).map(event).collect()
}

/// A note of the system.
pub(super) fn system_note() -> Value {
    json!({
        "id": 500, "type": null, "body": "assigned to @bot1", "author": user(OWNER),
        "created_at": "2026-11-15T08:06:07.123Z", "system": true,
    })
}

pub(super) fn review_notes(id: u64, review: &FakeReview, is_resolved: bool) -> [Value; 2] {
    let whole = json!({
        "id": 1000 + id, "type": "DiscussionNote", "body": review.body, "system": false,
        "author": user(&review.author), "created_at": "2026-11-15T08:06:07.123Z",
    });
    let remark = json!({
        "id": 2000 + id, "type": "DiffNote", "body": review.remark, "system": false,
        "author": user(&review.author), "created_at": "2026-11-15T08:06:07.123Z",
        "position": { "new_path": review.path, "new_line": 2, "position_type": "text" },
        "resolvable": true, "resolved": is_resolved,
    });
    [whole, remark]
}

pub(super) fn user(login: &str) -> Value {
    json!({ "id": user_id(login), "username": login, "name": login, "state": "active" })
}

pub(super) fn project(world: &World) -> Value {
    json!({
        "id": 1, "path_with_namespace": format!("{OWNER}/{REPO}"), "default_branch": "main",
        "web_url": format!("{}/{OWNER}/{REPO}", world.root),
        "permissions": { "project_access": { "access_level": 30 }, "group_access": null },
    })
}

/// A project in a list.
pub(super) fn listed(repository: &FakeRepository) -> Value {
    let id = repository.full_name.bytes().map(u64::from).sum::<u64>();
    json!({
        "id": id, "path_with_namespace": repository.full_name, "archived": repository.archived,
        "issues_access_level": "enabled",
    })
}

fn users(logins: &[String]) -> Value {
    logins.iter().map(|login| user(login)).collect()
}

fn nullable(text: &str) -> Value {
    if text.is_empty() { Value::Null } else { json!(text) }
}

/// The token is not shown.
pub(super) fn hook(hook: &FakeHook) -> Value {
    let reported = |name: &str| hook.events.iter().any(|event| event == name);
    json!({
        "id": hook.id, "url": hook.url, "alert_status": "executable", "enable_ssl_verification": true,
        "issues_events": reported("issues_events"), "note_events": reported("note_events"),
        "merge_requests_events": reported("merge_requests_events"), "push_events": reported("push_events"),
        "pipeline_events": reported("pipeline_events"),
    })
}
