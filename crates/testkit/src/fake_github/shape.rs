//! The bodies of answers, as GitHub's REST API documents them.

use serde_json::{Value, json};

use crate::fake_forge::{
    FakeComment, FakeHook, FakeIssue, FakePull, FakeReview, OWNER, REPO, STRANGER, World,
};

pub(super) fn pull(world: &World, pull: &FakePull) -> Value {
    let from = if pull.from_fork { (STRANGER, 2) } else { (OWNER, 1) };
    json!({
        "id": 9000 + pull.number, "node_id": "PR_x", "number": pull.number,
        "url": format!("{}/api/v3/repos/{OWNER}/{REPO}/pulls/{}", world.root, pull.number),
        "html_url": format!("{}/{OWNER}/{REPO}/pull/{}", world.root, pull.number),
        "state": state(pull.open), "locked": false, "draft": false,
        "title": pull.title, "body": nullable(&pull.body), "user": user(&pull.author),
        "labels": labels(world, &pull.labels), "assignees": users(&pull.assignees),
        "merged_at": pull.merged.then_some("2026-11-15T08:06:07Z"),
        "merged": pull.merged, "mergeable": true, "mergeable_state": "clean",
        "head": end(from, &pull.head, world.sha_of(&pull.head)),
        "base": end((OWNER, 1), &pull.base, world.sha_of(&pull.base)),
    })
}

pub(super) fn issue(world: &World, issue: &FakeIssue) -> Value {
    json!({
        "id": 8000 + issue.number, "node_id": "I_x", "number": issue.number,
        "html_url": format!("{}/{OWNER}/{REPO}/issues/{}", world.root, issue.number),
        "state": state(issue.open), "state_reason": null, "locked": false,
        "title": issue.title, "body": nullable(&issue.body), "user": user(&issue.author),
        "labels": labels(world, &issue.labels), "assignees": users(&issue.assignees),
        "author_association": "OWNER", "comments": 0,
    })
}

/// A pull request as the paths of issues show it.
pub(super) fn issue_of_pull(world: &World, shown: &FakePull) -> Value {
    let mut shape = pull(world, shown);
    shape["pull_request"] = json!({ "url": shape["url"], "merged_at": shape["merged_at"] });
    shape
}

pub(super) fn comment(world: &World, comment: &FakeComment) -> Value {
    let page = format!("{}/{OWNER}/{REPO}/issues/{}", world.root, comment.on);
    json!({
        "id": comment.id, "node_id": "IC_x", "html_url": format!("{page}#issuecomment-{}", comment.id),
        "user": user(&comment.author), "body": comment.body, "author_association": "MEMBER",
        "created_at": comment.created_at, "updated_at": comment.created_at,
    })
}

pub(super) fn review(world: &World, id: u64, review: &FakeReview) -> Value {
    let page = format!("{}/{OWNER}/{REPO}/pull/{}", world.root, review.pull);
    json!({
        "id": id, "node_id": "PRR_x", "user": user(&review.author), "body": review.body,
        "state": "CHANGES_REQUESTED", "html_url": format!("{page}#pullrequestreview-{id}"),
        "submitted_at": "2026-11-15T08:06:07Z", "commit_id": world.sha_of(""),
    })
}

pub(super) fn remark(world: &World, id: u64, review: &FakeReview) -> Value {
    let page = format!("{}/{OWNER}/{REPO}/pull/{}", world.root, review.pull);
    json!({
        "id": id, "node_id": "PRRC_x", "user": user(&review.author), "body": review.remark,
        "path": review.path, "line": 2, "diff_hunk": "@@ -1 +1,2 @@", "pull_request_review_id": id,
        "html_url": format!("{page}#discussion_r{id}"), "created_at": "2026-11-15T08:06:07Z",
    })
}

pub(super) fn label(world: &World, id: u64) -> Value {
    json!({ "id": id, "node_id": "LA_x", "name": world.label_name(id), "color": "00aabb", "default": false })
}

pub(super) fn labels(world: &World, ids: &[u64]) -> Value {
    ids.iter().map(|id| label(world, *id)).collect()
}

pub(super) fn user(login: &str) -> Value {
    json!({ "login": login, "id": 5, "node_id": "U_x", "type": "User", "site_admin": false })
}

pub(super) fn repository(world: &World) -> Value {
    json!({
        "id": 1, "name": REPO, "full_name": format!("{OWNER}/{REPO}"), "owner": user(OWNER),
        "private": true, "html_url": format!("{}/{OWNER}/{REPO}", world.root),
        "permissions": { "admin": false, "maintain": false, "push": true, "triage": true, "pull": true },
    })
}

fn end((owner, id): (&str, u64), branch: &str, sha: &str) -> Value {
    json!({
        "label": format!("{owner}:{branch}"), "ref": branch, "sha": sha, "user": user(owner),
        "repo": { "id": id, "name": REPO, "full_name": format!("{owner}/{REPO}") },
    })
}

fn users(logins: &[String]) -> Value {
    logins.iter().map(|login| user(login)).collect()
}

fn nullable(text: &str) -> Value {
    if text.is_empty() { Value::Null } else { json!(text) }
}

fn state(open: bool) -> &'static str {
    if open { "open" } else { "closed" }
}

/// The secret is shown as stars.
pub(super) fn hook(hook: &FakeHook) -> Value {
    json!({
        "type": "Repository", "id": hook.id, "name": "web", "active": true, "events": hook.events,
        "config": {
            "content_type": "json", "insecure_ssl": "0", "secret": "********", "url": hook.url,
        },
    })
}
