//! The bodies of answers, made from recorded ones so that every field of a real server is there.

use serde_json::{Value, json};

use crate::fake_forge::{
    FakeComment, FakeHook, FakeIssue, FakePull, FakeReview, OWNER, REPO, Room, World,
};

const PULL: &str = include_str!("samples/pull.json");
const COMMENT: &str = include_str!("samples/comment.json");
const HOOK: &str = include_str!("samples/hook.json");
const ISSUE: &str = include_str!("samples/issue.json");
const REVIEW: &str = include_str!("samples/review.json");
const REMARK: &str = include_str!("samples/remark.json");
const OWN_ID: u64 = 1;
const FORK_ID: u64 = 2;

pub(super) fn pull(world: &World, pull: &FakePull) -> Value {
    let mut shape = recorded(PULL);
    let page = page_of(world, Room::Pull, pull.number);
    shape["id"] = json!(pull.number);
    shape["number"] = json!(pull.number);
    shape["url"] = json!(page);
    shape["html_url"] = json!(page);
    shape["title"] = json!(pull.title);
    shape["body"] = json!(pull.body);
    shape["state"] = state(pull.open);
    shape["merged"] = json!(pull.merged);
    shape["labels"] = labels(world, &pull.labels);
    shape["assignees"] = users(&pull.assignees);
    shape["user"] = user(&pull.author);
    shape["base"]["ref"] = json!(pull.base);
    shape["base"]["label"] = json!(pull.base);
    shape["head"]["ref"] = json!(pull.head);
    shape["head"]["label"] = json!(pull.head);
    shape["head"]["sha"] = json!(world.sha_of(&pull.head));
    shape["head"]["repo_id"] = json!(if pull.from_fork { FORK_ID } else { OWN_ID });
    if !pull.from_fork {
        shape["head"]["repo"] = shape["base"]["repo"].clone();
    }
    shape
}

pub(super) fn issue(world: &World, issue: &FakeIssue) -> Value {
    let mut shape = recorded(ISSUE);
    shape["id"] = json!(issue.number);
    shape["number"] = json!(issue.number);
    shape["html_url"] = json!(page_of(world, Room::Issue, issue.number));
    shape["title"] = json!(issue.title);
    shape["body"] = json!(issue.body);
    shape["state"] = state(issue.open);
    shape["labels"] = labels(world, &issue.labels);
    shape["assignees"] = users(&issue.assignees);
    shape["user"] = user(&issue.author);
    shape["pull_request"] = Value::Null;
    shape
}

/// A pull request as the paths of issues show it.
pub(super) fn issue_of_pull(world: &World, pull: &FakePull) -> Value {
    let mut shape = recorded(ISSUE);
    shape["number"] = json!(pull.number);
    shape["title"] = json!(pull.title);
    shape["body"] = json!(pull.body);
    shape["state"] = state(pull.open);
    shape["labels"] = labels(world, &pull.labels);
    shape["assignees"] = users(&pull.assignees);
    shape["user"] = user(&pull.author);
    shape["pull_request"] = json!({ "merged": pull.merged, "merged_at": null });
    shape
}

pub(super) fn comment(world: &World, comment: &FakeComment) -> Value {
    let mut shape = recorded(COMMENT);
    let page = page_of(world, comment.room, comment.on);
    let (pull_url, issue_url) = match comment.room {
        Room::Pull => (page.as_str(), ""),
        Room::Issue => ("", page.as_str()),
    };
    shape["id"] = json!(comment.id);
    shape["html_url"] = json!(format!("{page}#issuecomment-{}", comment.id));
    shape["pull_request_url"] = json!(pull_url);
    shape["issue_url"] = json!(issue_url);
    shape["user"] = user(&comment.author);
    shape["body"] = json!(comment.body);
    shape["created_at"] = json!(comment.created_at);
    shape["updated_at"] = json!(comment.created_at);
    shape
}

pub(super) fn review(world: &World, id: u64, review: &FakeReview) -> Value {
    let mut shape = recorded(REVIEW);
    let page = page_of(world, Room::Pull, review.pull);
    shape["id"] = json!(id);
    shape["user"] = user(&review.author);
    shape["body"] = json!(review.body);
    shape["html_url"] = json!(format!("{page}#issuecomment-{}", 1000 + id));
    shape
}

pub(super) fn remark(world: &World, id: u64, review: &FakeReview) -> Value {
    let mut shape = recorded(REMARK);
    let page = page_of(world, Room::Pull, review.pull);
    shape["id"] = json!(2000 + id);
    shape["user"] = user(&review.author);
    shape["body"] = json!(review.remark);
    shape["path"] = json!(review.path);
    shape["html_url"] = json!(format!("{page}#issuecomment-{}", 2000 + id));
    shape
}

pub(super) fn label(world: &World, id: u64) -> Value {
    let url = format!("{}/api/v1/repos/{OWNER}/{REPO}/labels/{id}", world.root);
    json!({
        "id": id, "name": world.label_name(id), "exclusive": false, "is_archived": false,
        "color": "00aabb", "description": "", "url": url,
    })
}

pub(super) fn labels(world: &World, ids: &[u64]) -> Value {
    ids.iter().map(|id| label(world, *id)).collect()
}

pub(super) fn user(login: &str) -> Value {
    let mut shape = recorded(COMMENT)["user"].take();
    shape["login"] = json!(login);
    shape["username"] = json!(login);
    shape
}

pub(super) fn repository() -> Value {
    recorded(PULL)["base"]["repo"].take()
}

/// As a server answers when one is made, with its families of events spread out.
pub(super) fn hook(hook: &FakeHook) -> Value {
    let mut shape = recorded(HOOK);
    shape["id"] = json!(hook.id);
    shape["config"]["url"] = json!(hook.url);
    shape["active"] = json!(true);
    shape
}

/// Null when nobody is, as real servers say it.
fn users(logins: &[String]) -> Value {
    if logins.is_empty() {
        return Value::Null;
    }
    logins.iter().map(|login| user(login)).collect()
}

fn state(open: bool) -> Value {
    json!(if open { "open" } else { "closed" })
}

fn page_of(world: &World, room: Room, number: u64) -> String {
    let room = match room {
        Room::Issue => "issues",
        Room::Pull => "pulls",
    };
    format!("{}/{OWNER}/{REPO}/{room}/{number}", world.root)
}

fn recorded(text: &str) -> Value {
    serde_json::from_str(text).expect("a recorded answer")
}
