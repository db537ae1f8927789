//! Bodies of responses. A Gitea's are made from recorded ones, so that every field of a real server is there; a GitHub's
//! are as its documentation has them.

use serde_json::{Value, json};

use super::super::{
    FakeCheck, FakeComment, FakeHook, FakeIssue, FakePull, FakeRepository, FakeReview, OWNER, REPO,
    Room, STRANGER, World,
};
use super::Dialect;

const PULL: &str = include_str!("samples/pull.json");
const COMMENT: &str = include_str!("samples/comment.json");
const HOOK: &str = include_str!("samples/hook.json");
const ISSUE: &str = include_str!("samples/issue.json");
const REVIEW: &str = include_str!("samples/review.json");
const REMARK: &str = include_str!("samples/remark.json");
/// The time of everything but comments.
const THEN: &str = "2026-11-15T08:06:07Z";

impl Dialect {
    /// Start of a body.
    fn template(self, recorded: &str) -> Value {
        match self {
            Self::Gitea => serde_json::from_str(recorded).expect("a recorded answer"),
            Self::GitHub => json!({ "node_id": "X_x" }),
        }
    }
}

pub(super) fn pull(dialect: Dialect, world: &World, pull: &FakePull) -> Value {
    let mut shape = dialect.template(PULL);
    let page = page_of(dialect, world, Room::Pull, pull.number);
    let (owner, repo_id) = if pull.from_fork { (STRANGER, 2) } else { (OWNER, 1) };
    for (name, value) in [
        ("id", json!(9000 + pull.number)),
        ("number", json!(pull.number)),
        ("url", json!(page)),
        ("html_url", json!(page)),
        ("title", json!(draft_title(dialect, pull))),
        ("body", text(dialect, &pull.body)),
        ("state", state(pull.open)),
        ("merged", json!(pull.merged)),
        ("merged_at", json!(pull.merged.then_some(THEN))),
        // A Gitea says the same of a draft and of a conflict.
        ("mergeable", json!(!(pull.has_conflicts || dialect == Dialect::Gitea && pull.draft))),
        ("draft", json!(pull.draft)),
        ("labels", pull.labels.iter().map(|name| json!({ "id": 1, "name": name })).collect()),
        ("assignees", users(dialect, &pull.assignees)),
        ("comments", json!(world.comments_on(Room::Pull, pull.number).len())),
        ("user", user(dialect, &pull.author)),
    ] {
        shape[name] = value;
    }
    for (end, branch, owner, repo_id) in
        [("base", &pull.base, OWNER, 1), ("head", &pull.head, owner, repo_id)]
    {
        shape[end]["ref"] = json!(branch);
        shape[end]["sha"] = json!(world.sha_of(branch));
        match dialect {
            Dialect::Gitea => {
                shape[end]["label"] = json!(branch);
                shape[end]["repo_id"] = json!(repo_id);
                shape[end]["repo"]["id"] = json!(repo_id);
            }
            Dialect::GitHub => {
                shape[end]["label"] = json!(format!("{owner}:{branch}"));
                shape[end]["repo"] =
                    json!({ "id": repo_id, "full_name": format!("{owner}/{REPO}") });
            }
        }
    }
    match dialect {
        Dialect::Gitea => {
            let parted =
                if pull.is_behind { "0".repeat(40) } else { world.sha_of(&pull.base).to_owned() };
            shape["merge_base"] = json!(parted);
        }
        Dialect::GitHub => {
            shape["node_id"] = json!(format!("PR_{}", pull.number));
            let word = if pull.is_behind { "behind" } else { "clean" };
            shape["mergeable_state"] = json!(word);
        }
    }
    shape
}

/// The title: a Gitea marks drafts there.
fn draft_title(dialect: Dialect, pull: &FakePull) -> String {
    match dialect {
        Dialect::Gitea if pull.draft => format!("WIP: {}", pull.title),
        Dialect::Gitea | Dialect::GitHub => pull.title.clone(),
    }
}

/// The combined status of a commit.
pub(super) fn combined(dialect: Dialect, checks: &[FakeCheck]) -> Value {
    let field = match dialect {
        Dialect::Gitea => "status",
        Dialect::GitHub => "state",
    };
    let status = |check: &FakeCheck| {
        json!({
            "id": check.id, field: check.state, "context": check.name, "description": "",
            "target_url": null,
        })
    };
    json!({ "state": "pending", "statuses": checks.iter().map(status).collect::<Vec<_>>() })
}

/// Check runs of a commit, on a GitHub.
pub(super) fn check_runs(checks: &[FakeCheck]) -> Value {
    let run = |check: &FakeCheck| {
        let done = check.state != "pending";
        json!({
            "id": check.id, "name": check.name, "html_url": "https://forge.example.test/checks",
            "status": if done { "completed" } else { "in_progress" },
            "conclusion": done.then_some(&check.state), "output": { "title": null, "summary": null },
        })
    };
    json!({ "total_count": checks.len(), "check_runs": checks.iter().map(run).collect::<Vec<_>>() })
}

/// Jobs of Gitea Actions.
pub(super) fn jobs(checks: &[FakeCheck]) -> Value {
    let job = |check: &FakeCheck| json!({ "id": check.id, "name": check.name, "head_sha": check.sha, "conclusion": check.state });
    json!({ "total_count": checks.len(), "jobs": checks.iter().map(job).collect::<Vec<_>>() })
}

/// Answers to the remark of a review, as remarks.
pub(super) fn answers(dialect: Dialect, world: &World, id: u64, review: &FakeReview) -> Vec<Value> {
    let own = world.answers.iter().zip(3000_u64..).filter(|(answer, _)| answer.review == id);
    own.map(|(answer, number)| {
        let mut shape = remark(dialect, world, id, review);
        shape["id"] = json!(number);
        shape["user"] = user(dialect, &answer.author);
        shape["body"] = json!(answer.body);
        shape["created_at"] = json!(answer.created_at);
        shape["in_reply_to_id"] = json!(2000 + id);
        shape
    })
    .collect()
}

pub(super) fn issue(dialect: Dialect, world: &World, issue: &FakeIssue) -> Value {
    let mut shape = dialect.template(ISSUE);
    let label = |(name, id): (&String, u64)| json!({ "id": id, "name": name, "color": "00aabb" });
    for (name, value) in [
        ("id", json!(8000 + issue.number)),
        ("number", json!(issue.number)),
        ("html_url", json!(page_of(dialect, world, Room::Issue, issue.number))),
        ("title", json!(issue.title)),
        ("body", text(dialect, &issue.body)),
        ("state", state(issue.open)),
        ("labels", issue.labels.iter().zip(1..).map(label).collect()),
        ("assignees", users(dialect, &issue.assignees)),
        ("user", user(dialect, &issue.author)),
        ("pull_request", Value::Null),
        ("comments", json!(world.comments_on(Room::Issue, issue.number).len())),
    ] {
        shape[name] = value;
    }
    shape
}

/// A pull request as the paths of issues show it.
pub(super) fn issue_of_pull(dialect: Dialect, world: &World, shown: &FakePull) -> Value {
    let mut shape = pull(dialect, world, shown);
    shape["pull_request"] = json!({ "merged": shown.merged, "merged_at": shape["merged_at"] });
    shape
}

pub(super) fn comment(dialect: Dialect, world: &World, comment: &FakeComment) -> Value {
    let mut shape = dialect.template(COMMENT);
    let page = page_of(dialect, world, comment.room, comment.on);
    shape["id"] = json!(comment.id);
    shape["html_url"] = json!(format!("{page}#issuecomment-{}", comment.id));
    shape["user"] = user(dialect, &comment.author);
    shape["body"] = json!(comment.body);
    shape["created_at"] = json!(comment.created_at);
    shape
}

/// Events of an issue: the account that set its labels and assignees.
pub(super) fn events(dialect: Dialect, issue: &FakeIssue) -> Vec<Value> {
    let who = user(dialect, &issue.set_by);
    let labels = issue.labels.iter().zip(1_u64..).map(|(name, id)| match dialect {
        Dialect::Gitea => {
            json!({ "id": id, "type": "label", "body": "1", "user": who, "label": { "name": name } })
        }
        Dialect::GitHub => {
            json!({ "id": id, "event": "labeled", "actor": who, "label": { "name": name } })
        }
    });
    let assignees = issue.assignees.iter().zip(100_u64..).map(|(name, id)| match dialect {
        Dialect::Gitea => json!({
            "id": id, "type": "assignees", "body": "", "user": who,
            "assignee": user(dialect, name), "removed_assignee": false,
        }),
        Dialect::GitHub => json!({
            "id": id, "event": "assigned", "actor": who, "assigner": who,
            "assignee": user(dialect, name),
        }),
    });
    labels.chain(assignees).collect()
}

pub(super) fn review(dialect: Dialect, world: &World, id: u64, review: &FakeReview) -> Value {
    let mut shape = dialect.template(REVIEW);
    let page = page_of(dialect, world, Room::Pull, review.pull);
    shape["id"] = json!(id);
    shape["html_url"] = json!(format!("{page}#issuecomment-{}", 1000 + id));
    shape["user"] = user(dialect, &review.author);
    shape["body"] = json!(review.body);
    shape["state"] = match dialect {
        Dialect::Gitea => json!(review.state),
        Dialect::GitHub if review.state == "REQUEST_CHANGES" => json!("CHANGES_REQUESTED"),
        Dialect::GitHub if review.state == "COMMENT" => json!("COMMENTED"),
        Dialect::GitHub => json!(review.state),
    };
    shape["submitted_at"] = json!(THEN);
    shape
}

pub(super) fn remark(dialect: Dialect, world: &World, id: u64, review: &FakeReview) -> Value {
    let mut shape = dialect.template(REMARK);
    let page = page_of(dialect, world, Room::Pull, review.pull);
    shape["id"] = json!(2000 + id);
    shape["html_url"] = json!(format!("{page}#issuecomment-{}", 2000 + id));
    shape["user"] = user(dialect, &review.author);
    shape["body"] = json!(review.remark);
    shape["path"] = json!(review.path);
    shape["pull_request_review_id"] = json!(id);
    shape["diff_hunk"] = json!("@@ -0,0 +1,3 @@\n+1\n+2");
    shape["created_at"] = json!(THEN);
    match dialect {
        Dialect::GitHub => shape["line"] = json!(2),
        Dialect::Gitea => {
            let resolver = world.resolved.contains(&id).then(|| user(dialect, &world.login));
            shape["resolver"] = json!(resolver);
        }
    }
    shape
}

pub(super) fn user(dialect: Dialect, login: &str) -> Value {
    let mut shape = match dialect {
        Dialect::Gitea => dialect.template(COMMENT)["user"].take(),
        Dialect::GitHub => json!({ "id": 5, "type": "User", "site_admin": false }),
    };
    shape["login"] = json!(login);
    shape
}

pub(super) fn repository(dialect: Dialect, world: &World) -> Value {
    match dialect {
        Dialect::Gitea => dialect.template(PULL)["base"]["repo"].take(),
        Dialect::GitHub => json!({
            "id": 1, "full_name": format!("{OWNER}/{REPO}"), "private": true,
            "html_url": format!("{}/{OWNER}/{REPO}", world.root),
            "permissions": { "admin": false, "push": true, "pull": true },
        }),
    }
}

/// A repository in a list.
pub(super) fn listed(repository: &FakeRepository) -> Value {
    let id = repository.full_name.bytes().map(u64::from).sum::<u64>();
    json!({
        "id": id, "full_name": repository.full_name, "archived": repository.archived,
        "has_issues": true, "permissions": { "push": repository.may_push, "pull": true },
    })
}

/// A Gitea spreads the families of events out; a GitHub shows the secret as stars.
pub(super) fn hook(dialect: Dialect, hook: &FakeHook) -> Value {
    let mut shape = dialect.template(HOOK);
    shape["id"] = json!(hook.id);
    shape["active"] = json!(true);
    shape["config"]["url"] = json!(hook.url);
    if dialect == Dialect::GitHub {
        shape["config"]["secret"] = json!("********");
        shape["events"] = json!(hook.events);
    }
    shape
}

/// Null on a Gitea when there is none.
fn users(dialect: Dialect, logins: &[String]) -> Value {
    match dialect {
        Dialect::Gitea if logins.is_empty() => Value::Null,
        Dialect::Gitea | Dialect::GitHub => {
            logins.iter().map(|login| user(dialect, login)).collect()
        }
    }
}

/// Null on a GitHub when it is empty.
fn text(dialect: Dialect, text: &str) -> Value {
    match dialect {
        Dialect::GitHub if text.is_empty() => Value::Null,
        Dialect::Gitea | Dialect::GitHub => json!(text),
    }
}

fn state(open: bool) -> Value {
    json!(if open { "open" } else { "closed" })
}

fn page_of(dialect: Dialect, world: &World, room: Room, number: u64) -> String {
    let list = match (room, dialect) {
        (Room::Issue, _) => "issues",
        (Room::Pull, Dialect::Gitea) => "pulls",
        (Room::Pull, Dialect::GitHub) => "pull",
    };
    format!("{}/{OWNER}/{REPO}/{list}/{number}", world.root)
}
