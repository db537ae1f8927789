//! Paths of the API.

use serde_json::{Value, json};

use super::super::{
    FakeIssue, FakePull, FakeResponse, FakeReview, ForgeRequest, OWNER, PageStyle, REPO, Room,
    STRANGER, World, decode,
};
use super::{Dialect, shape};

const VERSION: &str = "1.27.2";

impl Dialect {
    fn version(self) -> &'static str {
        match self {
            Self::Gitea => "v1",
            Self::GitHub => "v3",
        }
    }

    fn token_word(self) -> &'static str {
        match self {
            Self::Gitea => "token",
            Self::GitHub => "Bearer",
        }
    }

    fn pages(self) -> PageStyle {
        match self {
            Self::Gitea => {
                PageStyle { size_field: "limit", size: 30, total: Some("x-total-count") }
            }
            Self::GitHub => PageStyle { size_field: "per_page", size: 30, total: None },
        }
    }

    /// Path of an issue's history.
    fn events(self) -> &'static str {
        match self {
            Self::Gitea => "timeline",
            Self::GitHub => "events",
        }
    }

    /// Status of an edit.
    fn edited(self) -> u16 {
        match self {
            Self::Gitea => 201,
            Self::GitHub => 200,
        }
    }

    fn refuse(self, code: u16, message: &str) -> FakeResponse {
        match self {
            Self::Gitea => FakeResponse::error(code, message),
            Self::GitHub => {
                let errors =
                    json!([{ "resource": "PullRequest", "code": "custom", "message": message }]);
                FakeResponse::json(
                    422,
                    &json!({ "message": "Validation Failed", "errors": errors }),
                )
            }
        }
    }

    fn no_route(self) -> FakeResponse {
        match self {
            Self::Gitea => {
                FakeResponse { body: "404 page not found\n".to_owned(), ..FakeResponse::empty(404) }
                    .with_header("content-type", "text/plain; charset=utf-8")
            }
            Self::GitHub => not_found(),
        }
    }
}

pub(super) fn answer(
    dialect: Dialect,
    world: &mut World,
    path: &str,
    request: &ForgeRequest,
) -> FakeResponse {
    let segments: Vec<String> = path.split('/').skip(1).map(decode).collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let route = match segments.as_slice() {
        ["api", version, route @ ..] if *version == dialect.version() => route,
        ["api", "graphql"] if dialect == Dialect::GitHub => &["graphql"],
        _ => return dialect.no_route(),
    };
    let response = route_to(dialect, world, route, request);
    match dialect {
        Dialect::Gitea => response,
        Dialect::GitHub => response
            .with_header("x-github-request-id", "0A1B:2C3D")
            .with_header("x-github-enterprise-version", "3.17.0"),
    }
}

fn route_to(
    dialect: Dialect,
    world: &mut World,
    route: &[&str],
    request: &ForgeRequest,
) -> FakeResponse {
    let method = request.method.as_str();
    match (method, route, dialect) {
        ("GET", ["version"], Dialect::Gitea) => {
            return FakeResponse::json(200, &json!({ "version": VERSION }));
        }
        ("GET", ["meta"], Dialect::GitHub) => return FakeResponse::json(200, &json!({})),
        _ => {}
    }
    let expected = format!("{} {}", dialect.token_word(), world.token);
    if request.header("authorization") != Some(&expected) {
        return FakeResponse::error(401, "invalid username, password or token");
    }
    match (method, route) {
        ("POST", ["graphql"]) if dialect == Dialect::GitHub => graphql(world, request),
        ("GET", ["user"]) if world.account_hidden => {
            FakeResponse::error(403, "token does not have required scope(s), required=[read:user]")
        }
        ("GET", ["user"]) => FakeResponse::json(200, &shape::user(dialect, &world.login)),
        ("GET", ["orgs", org, "members", user]) => membership(dialect, world, org, user),
        (_, ["repos", owner, repo, rest @ ..])
            if owner.eq_ignore_ascii_case(OWNER) && repo.eq_ignore_ascii_case(REPO) =>
        {
            in_repository(dialect, world, request, rest)
        }
        (_, ["repos", ..]) => not_found(),
        _ => dialect.no_route(),
    }
}

/// An account that is not in the organisation is sent to the list of those who show themselves.
fn membership(dialect: Dialect, world: &World, org: &str, user: &str) -> FakeResponse {
    let Some(members) = world.orgs.get(org) else { return not_found() };
    if !members.contains(&world.login) {
        let status = match dialect {
            Dialect::Gitea => 303,
            Dialect::GitHub => 302,
        };
        let to = format!("/api/{}/orgs/{org}/public_members/{user}", dialect.version());
        return FakeResponse::empty(status).with_header("location", to);
    }
    FakeResponse::empty(if members.contains(user) { 204 } else { 404 })
}

fn in_repository(
    dialect: Dialect,
    world: &mut World,
    request: &ForgeRequest,
    route: &[&str],
) -> FakeResponse {
    match (request.method.as_str(), route) {
        ("GET", []) => FakeResponse::json(200, &shape::repository(dialect, world)),
        (_, ["hooks", rest @ ..]) => in_hooks(dialect, world, request, rest),
        ("GET", ["pulls"]) => list_pulls(dialect, world, request),
        ("POST", ["pulls"]) => create_pull(dialect, world, request),
        ("POST", ["pulls", "comments", id, "resolve"]) if dialect == Dialect::Gitea => {
            resolve(world, id.parse::<u64>().unwrap_or_default().saturating_sub(2000))
        }
        ("GET", ["commits", sha, "status"]) => {
            let checks = match dialect {
                Dialect::Gitea => world.checks_of(sha),
                Dialect::GitHub => Vec::new(),
            };
            FakeResponse::json(200, &shape::combined(dialect, &checks))
        }
        ("GET", ["commits", sha, "check-runs"]) if dialect == Dialect::GitHub => {
            FakeResponse::json(200, &shape::check_runs(&world.checks_of(sha)))
        }
        ("GET", ["actions", "jobs"]) if dialect == Dialect::Gitea => {
            FakeResponse::json(200, &shape::jobs(&world.checks))
        }
        ("GET", ["actions", "jobs", id, "logs"]) => match world.find_check(id) {
            Some(check) => FakeResponse { body: check.log.clone(), ..FakeResponse::empty(200) },
            None => not_found(),
        },
        ("GET", ["issues", "comments", id, "reactions"]) => {
            let id = id.parse().unwrap_or_default();
            let users = world.thumbs.get(&id).cloned().unwrap_or_default();
            let yes =
                |login: &String| json!({ "content": "+1", "user": shape::user(dialect, login) });
            FakeResponse::json(200, &users.iter().map(yes).collect())
        }
        (_, ["pulls", number, rest @ ..]) => {
            match number.parse().ok().filter(|number| world.find_pull(*number).is_some()) {
                Some(number) => in_pull(dialect, world, request, number, rest),
                None => not_found(),
            }
        }
        ("GET", ["issues"]) => list_issues(dialect, world, request),
        ("PATCH", ["issues", "comments", id]) => edit_comment(dialect, world, request, id),
        (_, ["issues", number, rest @ ..]) => {
            let number: Option<u64> = number.parse().ok();
            match number.and_then(|number| Some((world.room_of(number)?, number))) {
                Some(thread) => in_thread(dialect, world, request, thread, rest),
                // Real servers say it like this: all of them to a comment, 1.25 to a reader of comments as well.
                None if rest == ["comments"] && dialect == Dialect::Gitea => {
                    FakeResponse::error(500, "")
                }
                None => not_found(),
            }
        }
        _ => dialect.no_route(),
    }
}

/// Issues that come before an issue, with their repository.
fn blockers(dialect: Dialect, world: &World, number: u64) -> Value {
    let before = world.blockers.get(&number).into_iter().flatten();
    let shown = before.filter_map(|number| world.find_issue(*number)).map(|issue| {
        let mut shape = shape::issue(dialect, world, issue);
        shape["repository"] = json!({ "id": 1, "full_name": format!("{OWNER}/{REPO}") });
        shape
    });
    shown.collect()
}

/// A Gitea takes two for one address, a GitHub does not. Neither shows the secret.
fn in_hooks(
    dialect: Dialect,
    world: &mut World,
    request: &ForgeRequest,
    route: &[&str],
) -> FakeResponse {
    let asked = request.json();
    let config = |name: &str| asked["config"][name].as_str().unwrap_or_default().to_owned();
    let events = request.texts("events").unwrap_or_default();
    let is_double = world.hooks.iter().any(|hook| hook.url == config("url"));
    match (request.method.as_str(), route) {
        ("GET", []) => {
            let shown = |hook: &_| shape::hook(dialect, hook);
            dialect.pages().page(world, request, &world.hooks.clone(), shown)
        }
        ("POST", []) if config("url").is_empty() || config("content_type") != "json" => {
            FakeResponse::error(422, "Missing config option: url or content_type")
        }
        ("POST", []) if is_double && dialect == Dialect::GitHub => {
            FakeResponse::error(422, "Validation Failed: Hook already exists on this repository")
        }
        ("POST", []) => {
            let hook = world.add_hook(&config("url"), &config("secret"), events);
            FakeResponse::json(201, &shape::hook(dialect, &hook))
        }
        ("PATCH", [id]) if dialect == Dialect::GitHub => {
            match world.hooks.iter_mut().find(|hook| hook.id.to_string() == *id) {
                Some(hook) => {
                    (hook.url, hook.secret, hook.events) =
                        (config("url"), config("secret"), events);
                    FakeResponse::json(200, &shape::hook(dialect, hook))
                }
                None => not_found(),
            }
        }
        ("DELETE", [id]) => FakeResponse::empty(if world.remove_hook(id) { 204 } else { 404 }),
        _ => dialect.no_route(),
    }
}

fn in_pull(
    dialect: Dialect,
    world: &mut World,
    request: &ForgeRequest,
    number: u64,
    route: &[&str],
) -> FakeResponse {
    if request.method == "PATCH" && route.is_empty() {
        return edit_pull(dialect, world, number, request);
    }
    match (request.method.as_str(), route) {
        ("POST", ["requested_reviewers"]) => {
            let wanted = request.texts("reviewers").unwrap_or_default();
            world.change_pull(number, |pull| pull.reviewers.extend(wanted));
            return show_pull(dialect, world, number, 201);
        }
        ("POST", ["comments", id, "replies"]) if dialect == Dialect::GitHub => {
            let review = id.parse::<u64>().unwrap_or_default().saturating_sub(2000);
            world.answer(review, &request.text("body"));
            return FakeResponse::json(201, &json!({ "id": 3000, "body": request.text("body") }));
        }
        // A remark on the line of another one belongs to its thread.
        ("POST", ["reviews"]) if dialect == Dialect::Gitea => {
            let asked = request.json();
            for answer in asked["comments"].as_array().into_iter().flatten() {
                let mut reviews = world.reviews.iter().zip(1_u64..);
                let same = reviews.find(|(review, _)| answer["path"] == json!(review.path));
                let id = same.map_or(0, |(_, id)| id);
                world.answer(id, answer["body"].as_str().unwrap_or_default());
            }
            return FakeResponse::json(200, &json!({ "id": 99, "state": "COMMENT", "body": "" }));
        }
        _ => {}
    }
    let reviews = world.reviews.iter().zip(1_u64..);
    let own: Vec<(&FakeReview, u64)> =
        reviews.filter(|(review, _)| review.pull == number).collect();
    let remarks = |(review, id): &(&FakeReview, u64)| {
        let mut all = vec![shape::remark(dialect, world, *id, review)];
        all.extend(shape::answers(dialect, world, *id, review));
        all
    };
    match (request.method.as_str(), route) {
        ("GET", []) => show_pull(dialect, world, number, 200),
        ("GET", ["reviews"]) => dialect
            .pages()
            .page(world, request, &own, |(review, id)| shape::review(dialect, world, *id, review)),
        ("GET", ["comments"]) if dialect == Dialect::GitHub => {
            let all: Vec<Value> = own.iter().flat_map(remarks).collect();
            dialect.pages().page(world, request, &all, Value::clone)
        }
        ("GET", ["reviews", id, "comments"]) if dialect == Dialect::Gitea => {
            let of_review = own.iter().filter(|(_, own)| own.to_string() == *id);
            FakeResponse::json(200, &of_review.flat_map(remarks).collect())
        }
        _ => dialect.no_route(),
    }
}

fn in_thread(
    dialect: Dialect,
    world: &mut World,
    request: &ForgeRequest,
    (room, number): (Room, u64),
    route: &[&str],
) -> FakeResponse {
    match (request.method.as_str(), route) {
        ("GET", []) => FakeResponse::json(200, &thread_shape(dialect, world, number)),
        ("PATCH", []) => {
            let body = request.json()["body"].as_str().map(str::to_owned);
            world.edit_thread(room, number, None, body, None);
            if let (Some(names), Room::Pull) = (request.texts("assignees"), room) {
                world.change_pull(number, |pull| pull.assignees = names);
            }
            FakeResponse::json(dialect.edited(), &thread_shape(dialect, world, number))
        }
        ("GET", ["comments"]) => {
            let own = world.comments_on(room, number);
            let shown = |comment: &_| shape::comment(dialect, world, comment);
            match dialect {
                // All of them, whatever page is asked for.
                Dialect::Gitea => FakeResponse::json(200, &own.iter().map(shown).collect())
                    .with_header("x-total-count", own.len().to_string()),
                Dialect::GitHub => dialect.pages().page(world, request, &own, shown),
            }
        }
        ("POST", ["labels"]) if room == Room::Pull => {
            let names = request.texts("labels").unwrap_or_default();
            world.change_pull(number, |pull| pull.labels.extend(names));
            FakeResponse::json(200, &json!([]))
        }
        ("POST", ["assignees"]) if room == Room::Pull && dialect == Dialect::GitHub => {
            let names = request.texts("assignees").unwrap_or_default();
            world.change_pull(number, |pull| pull.assignees.extend(names));
            FakeResponse::json(201, &thread_shape(dialect, world, number))
        }
        ("GET", ["dependencies"]) if dialect == Dialect::Gitea && room == Room::Issue => {
            FakeResponse::json(200, &blockers(dialect, world, number))
        }
        ("GET", ["dependencies", "blocked_by"])
            if dialect == Dialect::GitHub && room == Room::Issue =>
        {
            FakeResponse::json(200, &blockers(dialect, world, number))
        }
        ("GET", [path]) if *path == dialect.events() => {
            let own = world.find_issue(number).map(|issue| shape::events(dialect, issue));
            dialect.pages().page(world, request, &own.unwrap_or_default(), Value::clone)
        }
        ("POST", ["comments"]) => {
            let body = request.text("body");
            if body.trim().is_empty() {
                return FakeResponse::error(422, "[Body]: Required");
            }
            let login = world.login.clone();
            let comment = world.comment(room, number, &login, &body);
            FakeResponse::json(201, &shape::comment(dialect, world, &comment))
        }
        _ => dialect.no_route(),
    }
}

fn edit_comment(
    dialect: Dialect,
    world: &mut World,
    request: &ForgeRequest,
    id: &str,
) -> FakeResponse {
    match world.change_comment(id, &request.text("body")) {
        Some(comment) => FakeResponse::json(200, &shape::comment(dialect, world, &comment)),
        None => not_found(),
    }
}

fn thread_shape(dialect: Dialect, world: &World, number: u64) -> Value {
    match (world.find_issue(number), world.find_pull(number)) {
        (Some(issue), _) => shape::issue(dialect, world, issue),
        (None, Some(pull)) => shape::issue_of_pull(dialect, world, pull),
        (None, None) => Value::Null,
    }
}

/// Pull requests are among the issues, unless a Gitea is asked to leave them out.
fn list_issues(dialect: Dialect, world: &World, request: &ForgeRequest) -> FakeResponse {
    let labels = match dialect {
        Dialect::Gitea => String::new(),
        Dialect::GitHub => request.field("labels").unwrap_or_default(),
    };
    let labels: Vec<&str> = labels.split(',').filter(|name| !name.is_empty()).collect();
    let fits = |issue: &&FakeIssue| issue.open && issue.has_labels(&labels);
    let issues = world.issues.iter().filter(fits);
    let mut shown: Vec<Value> = issues.map(|issue| shape::issue(dialect, world, issue)).collect();
    if request.field("type").as_deref() != Some("issues") && labels.is_empty() {
        let pulls = world.pulls.iter().filter(|pull| pull.open);
        shown.extend(pulls.map(|pull| shape::issue_of_pull(dialect, world, pull)));
    }
    dialect.pages().page(world, request, &shown, Value::clone)
}

fn list_pulls(dialect: Dialect, world: &World, request: &ForgeRequest) -> FakeResponse {
    let (state, head) = (request.field("state"), request.field("head"));
    let fits = |pull: &&FakePull| {
        let owner = if pull.from_fork { STRANGER } else { OWNER };
        let has_state = match state.as_deref() {
            Some("all") => true,
            Some("closed") => !pull.open,
            Some(_) | None => pull.open,
        };
        let has_head = match (dialect, &head) {
            (Dialect::GitHub, Some(head)) => *head == format!("{owner}:{}", pull.head),
            (Dialect::Gitea, _) | (Dialect::GitHub, None) => true,
        };
        has_state && has_head
    };
    let mut pulls: Vec<&FakePull> = world.pulls.iter().filter(fits).collect();
    let is_oldest_first = match dialect {
        Dialect::Gitea => request.field("sort").as_deref() == Some("oldest"),
        Dialect::GitHub => request.field("direction").as_deref() == Some("asc"),
    };
    if !is_oldest_first {
        pulls.reverse();
    }
    dialect.pages().page(world, request, &pulls, |pull| shape::pull(dialect, world, pull))
}

fn create_pull(dialect: Dialect, world: &mut World, request: &ForgeRequest) -> FakeResponse {
    let (title, body) = (request.text("title"), request.text("body"));
    let (head, base) = (request.text("head"), request.text("base"));
    if title.is_empty() {
        return dialect.refuse(422, "[Title]: Required");
    }
    if head == base {
        return dialect.refuse(422, "There are no changes between the head and the base");
    }
    if world.open_pull_between(&head, &base).is_some() {
        return dialect.refuse(409, "A pull request already exists for these targets");
    }
    let (title, draft) = split_draft(dialect, title, request);
    let number = world.open_pull(&title, &body, &head, &base);
    world.change_pull(number, |pull| pull.draft = draft.unwrap_or(false));
    show_pull(dialect, world, number, 201)
}

fn edit_pull(
    dialect: Dialect,
    world: &mut World,
    number: u64,
    request: &ForgeRequest,
) -> FakeResponse {
    let asked = request.json();
    let field = |name: &str| asked[name].as_str().map(str::to_owned);
    let open = field("state").map(|state| state == "open");
    let is_merged = world.find_pull(number).is_some_and(|pull| pull.merged);
    if is_merged && open == Some(true) {
        return dialect.refuse(412, "cannot change state of this pull request, it was merged");
    }
    let title = field("title").map(|title| split_draft(dialect, title, request));
    let draft = title.as_ref().and_then(|(_, draft)| *draft);
    let title = title.map(|(title, _)| title);
    world.edit_thread(Room::Pull, number, title, field("body"), open);
    world.change_pull(number, |pull| pull.draft = draft.unwrap_or(pull.draft));
    show_pull(dialect, world, number, dialect.edited())
}

/// Title and readiness: a Gitea marks drafts in the title, a GitHub has a field at creation.
fn split_draft(dialect: Dialect, title: String, request: &ForgeRequest) -> (String, Option<bool>) {
    match (dialect, title.strip_prefix("WIP: ")) {
        (Dialect::Gitea, Some(rest)) => (rest.to_owned(), Some(true)),
        (Dialect::Gitea, None) => (title, Some(false)),
        (Dialect::GitHub, _) => (title, request.json()["draft"].as_bool()),
    }
}

fn resolve(world: &mut World, review: u64) -> FakeResponse {
    let is_there = review >= 1 && review <= world.reviews.len() as u64;
    if is_there {
        world.resolved.insert(review);
    }
    if is_there { FakeResponse::empty(204) } else { not_found() }
}

/// The queries and mutations of GraphQL that change pull requests.
fn graphql(world: &mut World, request: &ForgeRequest) -> FakeResponse {
    let asked = request.json();
    let (query, id) =
        (request.text("query"), asked["variables"]["id"].as_str().unwrap_or_default());
    let number = |prefix: &str| id.strip_prefix(prefix).and_then(|text| text.parse::<u64>().ok());
    let data = if query.contains("reviewThreads") {
        let node = |id: u64| {
            let first = json!({ "nodes": [{ "databaseId": 2000 + id }] });
            json!({ "id": format!("RT_{id}"), "isResolved": false, "comments": first })
        };
        let nodes: Vec<Value> = (1..=world.reviews.len() as u64).map(node).collect();
        json!({ "repository": { "pullRequest": { "reviewThreads": { "nodes": nodes } } } })
    } else if let Some(review) = number("RT_").filter(|_| query.contains("resolveReviewThread")) {
        world.resolved.insert(review);
        json!({ "resolveReviewThread": { "thread": { "id": id } } })
    } else if let Some(pull) = number("PR_") {
        let draft = query.contains("convertPullRequestToDraft");
        world.change_pull(pull, |pull| pull.draft = draft);
        json!({ "pullRequest": { "id": id } })
    } else {
        return FakeResponse::json(200, &json!({ "errors": [{ "message": "unknown query" }] }));
    };
    FakeResponse::json(200, &json!({ "data": data }))
}

fn show_pull(dialect: Dialect, world: &World, number: u64, code: u16) -> FakeResponse {
    match world.find_pull(number) {
        Some(pull) => FakeResponse::json(code, &shape::pull(dialect, world, pull)),
        None => not_found(),
    }
}

fn not_found() -> FakeResponse {
    FakeResponse::error(404, "not found")
}
