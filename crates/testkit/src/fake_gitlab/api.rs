//! What each path of the API does.

use serde_json::{Value, json};

use super::shape;
use crate::fake_forge::{
    Answer, FakeIssue, FakePull, ForgeRequest, LOGIN, OWNER, REPO, Room, STRANGER, World, decode,
};

const PAGE_SIZE: usize = 20;
const PAGE_MAX: usize = 100;

pub(super) fn answer(world: &mut World, path: &str, request: &ForgeRequest) -> Answer {
    let segments: Vec<String> = path.split('/').skip(1).map(decode).collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let ["api", "v4", route @ ..] = segments.as_slice() else {
        // Whatever page one asks for, one is asked to sign in first.
        return Answer::empty(302).with_header("location", format!("{}/users/sign_in", world.root));
    };
    let answer = route_to(world, route, request);
    answer.with_header("x-gitlab-meta", r#"{"correlation_id":"01","version":"1"}"#)
}

fn route_to(world: &mut World, route: &[&str], request: &ForgeRequest) -> Answer {
    let method = request.method.as_str();
    if request.header("authorization") != Some(&format!("Bearer {}", world.token)) {
        return Answer::complain(401, "401 Unauthorized");
    }
    match (method, route) {
        ("GET", ["version"]) => Answer::json(200, &json!({ "version": "18.5.0" })),
        ("GET", ["user"]) if world.account_hidden => {
            let body =
                json!({ "error": "insufficient_scope", "error_description": "needs read_user" });
            Answer::json(403, &body)
        }
        ("GET", ["user"]) => Answer::json(200, &shape::user(&world.login)),
        ("GET", ["users"]) => {
            let wanted = request.field("username").unwrap_or_default();
            let found = accounts(world).into_iter().find(|login| *login == wanted);
            Answer::json(200, &found.iter().map(|login| shape::user(login)).collect())
        }
        ("GET", ["groups", group]) => match world.orgs.get(*group) {
            Some(members) if members.contains(&world.login) => {
                Answer::json(200, &json!({ "id": 9, "full_path": group }))
            }
            Some(_) | None => Answer::complain(404, "404 Group Not Found"),
        },
        ("GET", ["groups", group, "members", "all", id]) => {
            let members = world.orgs.get(*group).into_iter().flatten();
            match members.into_iter().find(|login| shape::user_id(login).to_string() == *id) {
                Some(login) => Answer::json(200, &shape::user(login)),
                None => Answer::complain(404, "404 Not found"),
            }
        }
        (_, ["projects", project, rest @ ..]) if *project == format!("{OWNER}/{REPO}") => {
            in_project(world, request, rest)
        }
        ("GET" | "POST" | "PUT", ["projects", ..]) => {
            Answer::complain(404, "404 Project Not Found")
        }
        _ => Answer::json(404, &json!({ "error": "404 Not Found" })),
    }
}

fn accounts(world: &World) -> Vec<String> {
    let members = world.orgs.values().flatten().cloned();
    members.chain([LOGIN, OWNER, STRANGER].map(str::to_owned)).collect()
}

fn in_project(world: &mut World, request: &ForgeRequest, route: &[&str]) -> Answer {
    match (request.method.as_str(), route) {
        ("GET", []) => Answer::json(200, &shape::project(world)),
        ("GET", ["labels"]) => {
            let ids: Vec<u64> = (1..=world.labels.len() as u64).collect();
            page(world, request, &ids, |id| shape::label(world, *id))
        }
        (_, ["hooks", rest @ ..]) => in_hooks(world, request, rest),
        ("GET", ["issues"]) => list_issues(world, request),
        ("GET", ["merge_requests"]) => list_merge_requests(world, request),
        ("POST", ["merge_requests"]) => create(world, request),
        (_, [room @ ("issues" | "merge_requests"), number, rest @ ..]) => {
            let room = if *room == "issues" { Room::Issue } else { Room::Pull };
            let number: u64 = number.parse().unwrap_or_default();
            let there = match room {
                Room::Issue => world.find_issue(number).is_some(),
                Room::Pull => world.find_pull(number).is_some(),
            };
            if there { in_entry(world, request, (room, number), rest) } else { not_found() }
        }
        _ => not_found(),
    }
}

/// Takes two for one address, and shows no token.
fn in_hooks(world: &mut World, request: &ForgeRequest, route: &[&str]) -> Answer {
    let asked = request.json();
    let names = ["issues_events", "note_events", "merge_requests_events", "push_events"];
    let told = names.into_iter().filter(|name| asked[*name] == true).map(str::to_owned).collect();
    match (request.method.as_str(), route) {
        ("GET", []) => page(world, request, &world.hooks.clone(), shape::hook),
        ("POST", []) => {
            let hook = world.add_hook(&request.text("url"), &request.text("token"), told);
            Answer::json(201, &shape::hook(&hook))
        }
        ("PUT", [id]) => match world.hooks.iter_mut().find(|hook| hook.id.to_string() == *id) {
            Some(hook) => {
                (hook.url, hook.secret) = (request.text("url"), request.text("token"));
                hook.events = told;
                Answer::json(200, &shape::hook(hook))
            }
            None => not_found(),
        },
        ("DELETE", [id]) => match world.remove_hook(id) {
            true => Answer::empty(204),
            false => not_found(),
        },
        _ => not_found(),
    }
}

fn in_entry(
    world: &mut World,
    request: &ForgeRequest,
    entry: (Room, u64),
    route: &[&str],
) -> Answer {
    let (room, number) = entry;
    match (request.method.as_str(), route) {
        ("GET", []) => show(world, entry, 200),
        ("PUT", []) => edit(world, request, entry),
        ("GET", ["notes"]) => {
            let own = world.comments_on(room, number);
            let mut notes: Vec<Value> = vec![shape::system_note()];
            notes.extend(own.iter().map(shape::note));
            let reviews = world.reviews.iter().zip(1..);
            let reviews = reviews.filter(|(review, _)| room == Room::Pull && review.pull == number);
            notes.extend(reviews.flat_map(|(review, id)| shape::review_notes(id, review)));
            page(world, request, &notes, Value::clone)
        }
        ("POST", ["notes"]) => {
            let body = request.text("body");
            if body.trim().is_empty() {
                return Answer::json(400, &json!({ "message": { "note": ["can't be blank"] } }));
            }
            let login = world.login.clone();
            let comment = world.comment(room, number, &login, &body);
            Answer::json(201, &shape::note(&comment))
        }
        _ => not_found(),
    }
}

fn edit(world: &mut World, request: &ForgeRequest, (room, number): (Room, u64)) -> Answer {
    let asked = request.json();
    let names = |field: &str| -> Vec<String> {
        let text = asked[field].as_str().unwrap_or_default();
        text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    let ids = |world: &mut World, names: &[String]| -> Vec<u64> {
        names.iter().map(|name| world.label_id(name)).collect()
    };
    let (added, removed) = (ids(world, &names("add_labels")), ids(world, &names("remove_labels")));
    let logins = accounts(world);
    let by_id = |id: &Value| {
        let id = id.as_u64()?;
        logins.iter().find(|login| shape::user_id(login) == id).cloned()
    };
    let assignees =
        asked["assignee_ids"].as_array().map(|ids| ids.iter().filter_map(by_id).collect());
    world.change_entry(room, number, |entry| {
        if let Some(title) = asked["title"].as_str() {
            title.clone_into(entry.title);
        }
        if let Some(text) = asked["description"].as_str() {
            text.clone_into(entry.body);
        }
        match asked["state_event"].as_str() {
            Some("close") => *entry.open = false,
            Some("reopen") => *entry.open = true,
            Some(_) | None => {}
        }
        entry.labels.extend(added);
        entry.labels.retain(|id| !removed.contains(id));
        entry.labels.sort_unstable();
        entry.labels.dedup();
        *entry.assignees = assignees.unwrap_or_else(|| entry.assignees.clone());
    });
    show(world, (room, number), 200)
}

fn show(world: &World, (room, number): (Room, u64), code: u16) -> Answer {
    let issue = world.find_issue(number).filter(|_| room == Room::Issue);
    let pull = world.find_pull(number).filter(|_| room == Room::Pull);
    match (issue, pull) {
        (Some(issue), _) => Answer::json(code, &shape::issue(world, issue)),
        (None, Some(pull)) => Answer::json(code, &shape::merge_request(world, pull)),
        (None, None) => not_found(),
    }
}

fn list_issues(world: &World, request: &ForgeRequest) -> Answer {
    let wanted = request.field("labels").unwrap_or_default();
    let wanted: Vec<&str> = wanted.split(',').filter(|name| !name.is_empty()).collect();
    let assignee = request.field("assignee_username");
    let fits = |issue: &&FakeIssue| {
        let has = |name: &&str| issue.labels.iter().any(|id| world.label_name(*id) == *name);
        let assigned = assignee.as_ref().is_none_or(|login| issue.assignees.contains(login));
        issue.open && wanted.iter().all(has) && assigned
    };
    let issues: Vec<&FakeIssue> = world.issues.iter().filter(fits).collect();
    page(world, request, &issues, |issue| shape::issue(world, issue))
}

fn list_merge_requests(world: &World, request: &ForgeRequest) -> Answer {
    let (state, source) = (request.field("state"), request.field("source_branch"));
    let wanted = |pull: &&FakePull| {
        let state = state.as_deref() != Some("opened") || pull.open;
        state && source.as_ref().is_none_or(|source| *source == pull.head)
    };
    let mut pulls: Vec<&FakePull> = world.pulls.iter().filter(wanted).collect();
    if request.field("sort").as_deref() != Some("asc") {
        pulls.reverse();
    }
    page(world, request, &pulls, |pull| shape::merge_request(world, pull))
}

fn create(world: &mut World, request: &ForgeRequest) -> Answer {
    let (title, body) = (request.text("title"), request.text("description"));
    let (head, base) = (request.text("source_branch"), request.text("target_branch"));
    if title.is_empty() {
        return Answer::json(400, &json!({ "error": "title is missing" }));
    }
    if head == base {
        let why = "Source branch can't be the same as the target branch";
        return Answer::json(422, &json!({ "message": [why] }));
    }
    if let Some(there) = world.open_pull_between(&head, &base) {
        let why = format!(
            "Another open merge request already exists for this source branch: !{}",
            there.number
        );
        return Answer::json(409, &json!({ "message": [why] }));
    }
    let labels = request.text("labels");
    let labels: Vec<u64> = labels
        .split(',')
        .filter(|name| !name.is_empty())
        .map(|name| world.label_id(name))
        .collect();
    let number = world.open_pull(&title, &body, &head, &base);
    world.change_pull(number, |pull| pull.labels = labels);
    show(world, (Room::Pull, number), 201)
}

/// A page of a list, with the headers that say what else there is.
fn page<T>(
    world: &World,
    request: &ForgeRequest,
    entries: &[T],
    shape: impl Fn(&T) -> Value,
) -> Answer {
    let size = request.number("per_page").unwrap_or(PAGE_SIZE).min(PAGE_MAX).min(world.page_max);
    let page = request.number("page").unwrap_or(1);
    let shown: Vec<Value> = entries.iter().skip((page - 1) * size).take(size).map(shape).collect();
    let answer = Answer::json(200, &json!(shown)).with_header("x-total", entries.len().to_string());
    if page * size < entries.len() {
        let url = format!("{}{}?page={}&per_page={size}", world.root, request.path, page + 1);
        return answer.with_header("link", format!("<{url}>; rel=\"next\""));
    }
    answer
}

fn not_found() -> Answer {
    Answer::complain(404, "404 Not found")
}
