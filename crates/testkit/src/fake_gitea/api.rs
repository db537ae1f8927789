//! What each path of the API does.

use serde_json::{Value, json};

use super::shape;
use crate::fake_forge::{
    Answer, FakeIssue, FakePull, ForgeRequest, OWNER, REPO, Room, World, decode,
};

const PAGE_SIZE: usize = 30;
const VERSION: &str = "1.27.2";

pub(super) fn answer(world: &mut World, path: &str, request: &ForgeRequest) -> Answer {
    let segments: Vec<String> = path.split('/').skip(1).map(decode).collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let ["api", "v1", route @ ..] = segments.as_slice() else { return no_route() };
    let method = request.method.as_str();
    if (method, route) == ("GET", &["version"]) {
        return Answer::json(200, &json!({ "version": VERSION }));
    }
    match request.header("authorization") {
        None => return Answer::complain(401, "token is required"),
        Some(value) if value != format!("token {}", world.token) => {
            return Answer::complain(401, "invalid username, password or token");
        }
        Some(_) => {}
    }
    match (method, route) {
        ("GET", ["user"]) if world.account_hidden => Answer::complain(
            403,
            "token does not have at least one of required scope(s), required=[read:user], token scope=write:repository",
        ),
        ("GET", ["user"]) => Answer::json(200, &shape::user(&world.login)),
        ("GET", ["settings", "api"]) => {
            Answer::json(200, &json!({ "max_response_items": world.page_max }))
        }
        ("GET", ["orgs", org, "members", user]) => membership(world, org, user),
        (_, ["repos", owner, repo, rest @ ..]) => {
            let is_ours = owner.eq_ignore_ascii_case(OWNER) && repo.eq_ignore_ascii_case(REPO);
            if is_ours { in_repository(world, request, rest) } else { not_found() }
        }
        _ => no_route(),
    }
}

/// Whoever is not in the organisation is sent to the list of those who show themselves.
fn membership(world: &World, org: &str, user: &str) -> Answer {
    let Some(members) = world.orgs.get(org) else { return not_found() };
    if !members.contains(&world.login) {
        let to = format!("/api/v1/orgs/{org}/public_members/{user}");
        return Answer::empty(303).with_header("location", to);
    }
    if members.contains(user) { Answer::empty(204) } else { Answer::empty(404) }
}

fn in_repository(world: &mut World, request: &ForgeRequest, route: &[&str]) -> Answer {
    match (request.method.as_str(), route) {
        ("GET", []) => Answer::json(200, &shape::repository()),
        ("GET", ["labels"]) => {
            let ids: Vec<u64> = (1..=world.labels.len() as u64).collect();
            page(world, request, &ids, |id| shape::label(world, *id))
        }
        (_, ["hooks", rest @ ..]) => in_hooks(world, request, rest),
        (_, ["pulls", rest @ ..]) => in_pulls(world, request, rest),
        ("GET", ["issues"]) => list_issues(world, request),
        (_, ["issues", number, rest @ ..]) => match find_entry(world, number) {
            Some((room, number)) => in_entry(world, request, (room, number), rest),
            // Real servers say it like this.
            None if request.method == "POST" && rest == ["comments"] => Answer::complain(500, ""),
            None => not_found(),
        },
        _ => no_route(),
    }
}

/// Takes two for one address, and shows no secret.
fn in_hooks(world: &mut World, request: &ForgeRequest, route: &[&str]) -> Answer {
    match (request.method.as_str(), route) {
        ("GET", []) => page(world, request, &world.hooks.clone(), shape::hook),
        ("POST", []) => {
            let asked = request.json();
            let config = |name: &str| asked["config"][name].as_str().unwrap_or_default().to_owned();
            if config("url").is_empty() || config("content_type") != "json" {
                return Answer::complain(422, "Missing config option: url or content_type");
            }
            let events = request.texts("events").unwrap_or_default();
            let hook = world.add_hook(&config("url"), &config("secret"), events);
            Answer::json(201, &shape::hook(&hook))
        }
        ("DELETE", [id]) => match world.remove_hook(id) {
            true => Answer::empty(204),
            false => not_found(),
        },
        _ => no_route(),
    }
}

fn in_pulls(world: &mut World, request: &ForgeRequest, route: &[&str]) -> Answer {
    match (request.method.as_str(), route) {
        ("GET", []) => list_pulls(world, request),
        ("POST", []) => create_pull(world, request),
        (method, [number, rest @ ..]) => {
            let Some(pull) = find_pull(world, number) else { return not_found() };
            let number = pull.number;
            match (method, rest) {
                ("GET", []) => Answer::json(200, &shape::pull(world, pull)),
                ("PATCH", []) => edit_pull(world, number, request),
                ("GET", ["reviews"]) => {
                    let reviews = world.reviews.iter().zip(1..);
                    let own: Vec<_> = reviews.filter(|(review, _)| review.pull == number).collect();
                    page(world, request, &own, |(review, id)| shape::review(world, *id, review))
                }
                ("GET", ["reviews", id, "comments"]) => {
                    let at = id.parse::<usize>().ok().and_then(|id| id.checked_sub(1));
                    match at.and_then(|at| world.reviews.get(at).zip(u64::try_from(at + 1).ok())) {
                        Some((review, id)) => {
                            Answer::json(200, &json!([shape::remark(world, id, review)]))
                        }
                        None => not_found(),
                    }
                }
                _ => no_route(),
            }
        }
        _ => no_route(),
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
            Answer::json(201, &entry_shape(world, entry))
        }
        ("GET", ["comments"]) => {
            // All of them, whatever page is asked for.
            let own = world.comments_on(room, number);
            let shown: Vec<Value> =
                own.iter().map(|comment| shape::comment(world, comment)).collect();
            Answer::json(200, &json!(shown)).with_header("x-total-count", own.len().to_string())
        }
        ("POST", ["comments"]) => {
            let body = request.text("body");
            if body.is_empty() {
                return Answer::complain(422, "[Body]: Required");
            }
            let login = world.login.clone();
            let comment = world.comment(room, number, &login, &body);
            Answer::json(201, &shape::comment(world, &comment))
        }
        ("POST", ["labels"]) => {
            let Some(ids) = label_ids(request) else {
                return Answer::complain(422, "json: cannot unmarshal labels");
            };
            world.change_entry(room, number, |entry| {
                entry.labels.extend(ids);
                entry.labels.sort_unstable();
                entry.labels.dedup();
            });
            Answer::json(200, &json!([]))
        }
        ("DELETE", ["labels", id]) => match id.parse::<u64>() {
            Ok(id) => {
                world.change_entry(room, number, |entry| entry.labels.retain(|own| *own != id));
                Answer::empty(204)
            }
            Err(_) => Answer::complain(422, "no such label"),
        },
        _ => no_route(),
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

/// A label that does not exist filters nothing, and pull requests are among the issues unless they are left out.
fn list_issues(world: &World, request: &ForgeRequest) -> Answer {
    let wanted = request.field("labels").unwrap_or_default();
    let known = |name: &&str| world.labels.iter().any(|own| own == name);
    let wanted: Vec<&str> =
        wanted.split(',').filter(|name| !name.is_empty()).filter(known).collect();
    let assignee = request.field("assigned_by");
    let fits = |issue: &&FakeIssue| {
        let has = |name: &&str| issue.labels.iter().any(|id| world.label_name(*id) == *name);
        let assigned = assignee.as_ref().is_none_or(|login| issue.assignees.contains(login));
        issue.open && wanted.iter().all(has) && assigned
    };
    let mut shown: Vec<Value> =
        world.issues.iter().filter(fits).map(|issue| shape::issue(world, issue)).collect();
    if request.field("type").as_deref() != Some("issues") {
        let pulls = world.pulls.iter().filter(|pull| pull.open);
        shown.extend(pulls.map(|pull| shape::issue_of_pull(world, pull)));
    }
    page(world, request, &shown, Value::clone)
}

fn list_pulls(world: &World, request: &ForgeRequest) -> Answer {
    // A filter by head branch is ignored, as everywhere.
    let state = request.field("state");
    let wanted = |pull: &&FakePull| match state.as_deref() {
        Some("all") => true,
        Some("closed") => !pull.open,
        Some(_) | None => pull.open,
    };
    let mut pulls: Vec<&FakePull> = world.pulls.iter().filter(wanted).collect();
    if request.field("sort").as_deref() != Some("oldest") {
        pulls.reverse();
    }
    page(world, request, &pulls, |pull| shape::pull(world, pull))
}

fn create_pull(world: &mut World, request: &ForgeRequest) -> Answer {
    let (title, body) = (request.text("title"), request.text("body"));
    let (head, base) = (request.text("head"), request.text("base"));
    if title.is_empty() {
        return Answer::complain(422, "[Title]: Required");
    }
    if head == base {
        return Answer::complain(
            422,
            "Invalid PullRequest: There are no changes between the head and the base",
        );
    }
    if world.open_pull_between(&head, &base).is_some() {
        return Answer::complain(409, "pull request already exists for these targets");
    }
    let labels =
        if request.json()["labels"].is_array() { label_ids(request) } else { Some(vec![]) };
    let Some(labels) = labels else {
        return Answer::complain(422, "json: cannot unmarshal labels");
    };
    let number = world.open_pull(&title, &body, &head, &base);
    world.change_pull(number, |pull| pull.labels = labels);
    show_pull(world, number, 201)
}

fn edit_pull(world: &mut World, number: u64, request: &ForgeRequest) -> Answer {
    let asked = request.json();
    let field = |name: &str| asked[name].as_str().map(str::to_owned);
    let (title, body, state) = (field("title"), field("body"), field("state"));
    let merged = world.find_pull(number).is_some_and(|pull| pull.merged);
    if merged && state.as_deref() == Some("open") {
        return Answer::complain(
            412,
            "cannot change state of this pull request, it was already merged",
        );
    }
    world.change_pull(number, |pull| {
        pull.title = title.unwrap_or_else(|| pull.title.clone());
        pull.body = body.unwrap_or_else(|| pull.body.clone());
        pull.open = state.map_or(pull.open, |state| state == "open");
    });
    show_pull(world, number, 201)
}

fn show_pull(world: &World, number: u64, code: u16) -> Answer {
    match world.find_pull(number) {
        Some(pull) => Answer::json(code, &shape::pull(world, pull)),
        None => Answer::complain(500, ""),
    }
}

/// A page of a list, with the headers that say what else there is.
fn page<T>(
    world: &World,
    request: &ForgeRequest,
    entries: &[T],
    shape: impl Fn(&T) -> Value,
) -> Answer {
    let size = request.number("limit").unwrap_or(PAGE_SIZE).min(world.page_max);
    let page = request.number("page").unwrap_or(1);
    let shown: Vec<Value> = entries.iter().skip((page - 1) * size).take(size).map(shape).collect();
    let answer =
        Answer::json(200, &json!(shown)).with_header("x-total-count", entries.len().to_string());
    if page * size < entries.len() {
        let url = format!("{}{}?page={}&limit={size}", world.root, request.path, page + 1);
        return answer.with_header("link", format!("<{url}>; rel=\"next\""));
    }
    answer
}

fn label_ids(request: &ForgeRequest) -> Option<Vec<u64>> {
    request.json()["labels"].as_array()?.iter().map(Value::as_u64).collect()
}

fn find_pull<'a>(world: &'a World, number: &str) -> Option<&'a FakePull> {
    world.find_pull(number.parse().ok()?)
}

fn find_entry(world: &World, number: &str) -> Option<(Room, u64)> {
    let number = number.parse().ok()?;
    Some((world.room_of(number)?, number))
}

fn not_found() -> Answer {
    Answer::complain(404, "not found")
}

fn no_route() -> Answer {
    let plain = Answer { code: 404, headers: Vec::new(), body: "404 page not found\n".to_owned() };
    plain.with_header("content-type", "text/plain; charset=utf-8")
}
