//! What each path of the API does.

use serde_json::{Value, json};

use super::shape;
use crate::fake_forge::{
    Answer, FakeIssue, FakePull, ForgeRequest, OWNER, REPO, Room, World, decode,
};

const PAGE_SIZE: usize = 30;
const PAGE_MAX: usize = 100;

pub(super) fn answer(world: &mut World, path: &str, request: &ForgeRequest) -> Answer {
    let segments: Vec<String> = path.split('/').skip(1).map(decode).collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let ["api", "v3", route @ ..] = segments.as_slice() else { return not_found() };
    let answer = route_to(world, route, request);
    answer
        .with_header("x-github-request-id", "0A1B:2C3D")
        .with_header("x-github-enterprise-version", "3.17.0")
}

fn route_to(world: &mut World, route: &[&str], request: &ForgeRequest) -> Answer {
    let method = request.method.as_str();
    if (method, route) == ("GET", &["meta"]) {
        return Answer::json(200, &json!({ "verifiable_password_authentication": true }));
    }
    if request.header("authorization") != Some(&format!("Bearer {}", world.token)) {
        return Answer::complain(401, "Bad credentials");
    }
    match (method, route) {
        ("GET", ["user"]) if world.account_hidden => {
            Answer::complain(403, "Resource not accessible by integration")
        }
        ("GET", ["user"]) => Answer::json(200, &shape::user(&world.login)),
        ("GET", ["orgs", org, "members", user]) => membership(world, org, user),
        (_, ["repos", OWNER, REPO, rest @ ..]) => in_repository(world, request, rest),
        _ => not_found(),
    }
}

fn membership(world: &World, org: &str, user: &str) -> Answer {
    let Some(members) = world.orgs.get(org) else { return not_found() };
    if !members.contains(&world.login) {
        let to = format!("{}/api/v3/orgs/{org}/public_members/{user}", world.root);
        return Answer::empty(302).with_header("location", to);
    }
    if members.contains(user) { Answer::empty(204) } else { not_found() }
}

fn in_repository(world: &mut World, request: &ForgeRequest, route: &[&str]) -> Answer {
    match (request.method.as_str(), route) {
        ("GET", []) => Answer::json(200, &shape::repository(world)),
        ("GET", ["labels"]) => {
            let ids: Vec<u64> = (1..=world.labels.len() as u64).collect();
            page(world, request, &ids, |id| shape::label(world, *id))
        }
        (_, ["hooks", rest @ ..]) => in_hooks(world, request, rest),
        ("GET", ["pulls"]) => list_pulls(world, request),
        ("POST", ["pulls"]) => create_pull(world, request),
        (_, ["pulls", number, rest @ ..]) => {
            match number.parse().ok().filter(|number| world.find_pull(*number).is_some()) {
                Some(number) => in_pull(world, request, number, rest),
                None => not_found(),
            }
        }
        ("GET", ["issues"]) => list_issues(world, request),
        (_, ["issues", number, rest @ ..]) => {
            let number: Option<u64> = number.parse().ok();
            match number.and_then(|number| Some((world.room_of(number)?, number))) {
                Some(entry) => in_entry(world, request, entry, rest),
                None => not_found(),
            }
        }
        _ => not_found(),
    }
}

/// One for each address, and a second is refused.
fn in_hooks(world: &mut World, request: &ForgeRequest, route: &[&str]) -> Answer {
    let asked = request.json();
    let config = |name: &str| asked["config"][name].as_str().unwrap_or_default().to_owned();
    let events = request.texts("events").unwrap_or_default();
    match (request.method.as_str(), route) {
        ("GET", []) => page(world, request, &world.hooks.clone(), shape::hook),
        ("POST", []) if world.hooks.iter().any(|hook| hook.url == config("url")) => {
            Answer::complain(422, "Validation Failed: Hook already exists on this repository")
        }
        ("POST", []) => {
            let hook = world.add_hook(&config("url"), &config("secret"), events);
            Answer::json(201, &shape::hook(&hook))
        }
        ("PATCH", [id]) => match world.hooks.iter_mut().find(|hook| hook.id.to_string() == *id) {
            Some(hook) => {
                (hook.url, hook.secret, hook.events) = (config("url"), config("secret"), events);
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

fn in_pull(world: &mut World, request: &ForgeRequest, number: u64, route: &[&str]) -> Answer {
    match (request.method.as_str(), route) {
        ("GET", []) => show_pull(world, number, 200),
        ("PATCH", []) => edit_pull(world, number, request),
        ("GET", ["reviews"]) => {
            let reviews = world.reviews.iter().zip(1..);
            let own: Vec<_> = reviews.filter(|(review, _)| review.pull == number).collect();
            page(world, request, &own, |(review, id)| shape::review(world, *id, review))
        }
        ("GET", ["comments"]) => {
            let reviews = world.reviews.iter().zip(1..);
            let own: Vec<_> = reviews.filter(|(review, _)| review.pull == number).collect();
            page(world, request, &own, |(review, id)| shape::remark(world, *id, review))
        }
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
        ("GET", []) => Answer::json(200, &entry_shape(world, entry)),
        ("PATCH", []) => {
            let asked = request.json();
            let body = asked["body"].as_str().map(str::to_owned);
            let assignees = request.texts("assignees");
            world.change_entry(room, number, |entry| {
                *entry.body = body.unwrap_or_else(|| entry.body.clone());
                *entry.assignees = assignees.unwrap_or_else(|| entry.assignees.clone());
            });
            Answer::json(200, &entry_shape(world, entry))
        }
        ("GET", ["comments"]) => {
            let own = world.comments_on(room, number);
            page(world, request, &own, |comment| shape::comment(world, comment))
        }
        ("POST", ["comments"]) => {
            let body = request.text("body");
            if body.trim().is_empty() {
                return Answer::complain(422, "Validation Failed");
            }
            let login = world.login.clone();
            let comment = world.comment(room, number, &login, &body);
            Answer::json(201, &shape::comment(world, &comment))
        }
        ("POST", ["labels"]) => {
            // Names that are new become labels.
            let names = request.texts("labels").unwrap_or_default();
            let ids: Vec<u64> = names.iter().map(|name| world.label_id(name)).collect();
            world.change_entry(room, number, |entry| {
                entry.labels.extend(ids);
                entry.labels.sort_unstable();
                entry.labels.dedup();
            });
            Answer::json(200, &json!([]))
        }
        ("DELETE", ["labels", name]) => {
            let id = world.label_id(name);
            let mut there = false;
            world.change_entry(room, number, |entry| {
                there = entry.labels.contains(&id);
                entry.labels.retain(|own| *own != id);
            });
            if there {
                Answer::json(200, &json!([]))
            } else {
                Answer::complain(404, "Label does not exist")
            }
        }
        _ => not_found(),
    }
}

fn entry_shape(world: &World, (room, number): (Room, u64)) -> Value {
    let issue = world.find_issue(number).filter(|_| room == Room::Issue);
    let pull = world.find_pull(number).filter(|_| room == Room::Pull);
    match (issue, pull) {
        (Some(issue), _) => shape::issue(world, issue),
        (None, Some(pull)) => shape::issue_of_pull(world, pull),
        (None, None) => Value::Null,
    }
}

fn list_issues(world: &World, request: &ForgeRequest) -> Answer {
    let wanted = request.field("labels").unwrap_or_default();
    let wanted: Vec<&str> = wanted.split(',').filter(|name| !name.is_empty()).collect();
    let assignee = request.field("assignee");
    let fits = |labels: &[u64], assignees: &[String]| {
        let has = |name: &&str| labels.iter().any(|id| world.label_name(*id) == *name);
        wanted.iter().all(has) && assignee.as_ref().is_none_or(|login| assignees.contains(login))
    };
    let is_wanted = |issue: &&FakeIssue| issue.open && fits(&issue.labels, &issue.assignees);
    let mut shown: Vec<Value> =
        world.issues.iter().filter(is_wanted).map(|issue| shape::issue(world, issue)).collect();
    let pulls = world.pulls.iter().filter(|pull| pull.open && fits(&pull.labels, &pull.assignees));
    shown.extend(pulls.map(|pull| shape::issue_of_pull(world, pull)));
    page(world, request, &shown, Value::clone)
}

fn list_pulls(world: &World, request: &ForgeRequest) -> Answer {
    let (state, head, base) =
        (request.field("state"), request.field("head"), request.field("base"));
    let wanted = |pull: &&FakePull| {
        let owner = if pull.from_fork { crate::fake_forge::STRANGER } else { OWNER };
        let state = match state.as_deref() {
            Some("all") => true,
            Some("closed") => !pull.open,
            Some(_) | None => pull.open,
        };
        let head = head.as_ref().is_none_or(|head| *head == format!("{owner}:{}", pull.head));
        state && head && base.as_ref().is_none_or(|base| *base == pull.base)
    };
    let mut pulls: Vec<&FakePull> = world.pulls.iter().filter(wanted).collect();
    if request.field("direction").as_deref() != Some("asc") {
        pulls.reverse();
    }
    page(world, request, &pulls, |pull| shape::pull(world, pull))
}

fn create_pull(world: &mut World, request: &ForgeRequest) -> Answer {
    let (title, body) = (request.text("title"), request.text("body"));
    let (head, base) = (request.text("head"), request.text("base"));
    let refuse = |code: &str, message: &str| {
        let errors = json!([{ "resource": "PullRequest", "code": code, "message": message }]);
        Answer::json(422, &json!({ "message": "Validation Failed", "errors": errors }))
    };
    if title.is_empty() {
        return refuse("missing_field", "title is missing");
    }
    if head == base {
        return refuse("custom", &format!("No commits between {base} and {head}"));
    }
    if world.open_pull_between(&head, &base).is_some() {
        let message = format!("A pull request already exists for {OWNER}:{head}.");
        return refuse("custom", &message);
    }
    let number = world.open_pull(&title, &body, &head, &base);
    show_pull(world, number, 201)
}

fn edit_pull(world: &mut World, number: u64, request: &ForgeRequest) -> Answer {
    let asked = request.json();
    let field = |name: &str| asked[name].as_str().map(str::to_owned);
    let (title, body, state) = (field("title"), field("body"), field("state"));
    world.change_pull(number, |pull| {
        pull.title = title.unwrap_or_else(|| pull.title.clone());
        pull.body = body.unwrap_or_else(|| pull.body.clone());
        pull.open = state.map_or(pull.open, |state| state == "open");
    });
    show_pull(world, number, 200)
}

fn show_pull(world: &World, number: u64, code: u16) -> Answer {
    match world.find_pull(number) {
        Some(pull) => Answer::json(code, &shape::pull(world, pull)),
        None => not_found(),
    }
}

/// A page of a list; that there is more is said in the `Link` header alone.
fn page<T>(
    world: &World,
    request: &ForgeRequest,
    entries: &[T],
    shape: impl Fn(&T) -> Value,
) -> Answer {
    let size = request.number("per_page").unwrap_or(PAGE_SIZE).min(PAGE_MAX).min(world.page_max);
    let page = request.number("page").unwrap_or(1);
    let shown: Vec<Value> = entries.iter().skip((page - 1) * size).take(size).map(shape).collect();
    let answer = Answer::json(200, &json!(shown));
    let link = |page: usize, rel: &str| {
        format!("<{}{}?page={page}&per_page={size}>; rel=\"{rel}\"", world.root, request.path)
    };
    if page * size < entries.len() {
        return answer.with_header("link", link(page + 1, "next"));
    }
    if page > 1 { answer.with_header("link", link(page - 1, "prev")) } else { answer }
}

fn not_found() -> Answer {
    Answer::complain(404, "Not Found")
}
