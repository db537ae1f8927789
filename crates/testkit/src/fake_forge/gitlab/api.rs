//! Paths of the API.

use serde_json::{Value, json};

use super::super::{
    FakeIssue, FakePull, FakeResponse, ForgeRequest, LOGIN, OWNER, PageStyle, REPO, Room, STRANGER,
    World, decode,
};
use super::shape;

const PAGES: PageStyle = PageStyle { size_field: "per_page", size: 20, total: Some("x-total") };

pub(super) fn answer(world: &mut World, path: &str, request: &ForgeRequest) -> FakeResponse {
    let segments: Vec<String> = path.split('/').skip(1).map(decode).collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let ["api", "v4", route @ ..] = segments.as_slice() else {
        // Whatever page one asks for, one is asked to sign in first.
        return FakeResponse::empty(302)
            .with_header("location", format!("{}/users/sign_in", world.root));
    };
    let answer = route_to(world, route, request);
    answer.with_header("x-gitlab-meta", r#"{"correlation_id":"01","version":"1"}"#)
}

fn route_to(world: &mut World, route: &[&str], request: &ForgeRequest) -> FakeResponse {
    let method = request.method.as_str();
    if request.header("authorization") != Some(&format!("Bearer {}", world.token)) {
        return FakeResponse::error(401, "401 Unauthorized");
    }
    match (method, route) {
        ("GET", ["version"]) => FakeResponse::json(200, &json!({ "version": "18.5.0" })),
        ("GET", ["user"]) if world.account_hidden => {
            let body =
                json!({ "error": "insufficient_scope", "error_description": "needs read_user" });
            FakeResponse::json(403, &body)
        }
        ("GET", ["user"]) => FakeResponse::json(200, &shape::user(&world.login)),
        ("GET", ["users"]) => {
            let wanted = request.field("username").unwrap_or_default();
            let found = accounts(world).into_iter().find(|login| *login == wanted);
            FakeResponse::json(200, &found.iter().map(|login| shape::user(login)).collect())
        }
        ("GET", ["groups", group]) => match world.orgs.get(*group) {
            Some(members) if members.contains(&world.login) => {
                FakeResponse::json(200, &json!({ "id": 9, "full_path": group }))
            }
            Some(_) | None => FakeResponse::error(404, "404 Group Not Found"),
        },
        ("GET", ["groups", group, "members", "all", id]) => {
            let members = world.orgs.get(*group).into_iter().flatten();
            match members.into_iter().find(|login| shape::user_id(login).to_string() == *id) {
                Some(login) => FakeResponse::json(200, &shape::user(login)),
                None => FakeResponse::error(404, "404 Not found"),
            }
        }
        (_, ["projects", project, rest @ ..]) if *project == format!("{OWNER}/{REPO}") => {
            in_project(world, request, rest)
        }
        ("GET" | "POST" | "PUT", ["projects", ..]) => {
            FakeResponse::error(404, "404 Project Not Found")
        }
        _ => FakeResponse::json(404, &json!({ "error": "404 Not Found" })),
    }
}

fn accounts(world: &World) -> Vec<String> {
    let members = world.orgs.values().flatten().cloned();
    members.chain([LOGIN, OWNER, STRANGER].map(str::to_owned)).collect()
}

fn in_project(world: &mut World, request: &ForgeRequest, route: &[&str]) -> FakeResponse {
    match (request.method.as_str(), route) {
        ("GET", []) => FakeResponse::json(200, &shape::project(world)),
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
            if there { in_thread(world, request, (room, number), rest) } else { not_found() }
        }
        ("GET", ["pipelines", id, "jobs"]) => {
            let sha = world.find_check(id).map(|check| check.sha.clone()).unwrap_or_default();
            let failed = world.checks_of(&sha).into_iter().filter(|it| it.state == "failure");
            let job = |it: super::super::FakeCheck| json!({ "id": it.id, "name": it.name });
            FakeResponse::json(200, &failed.map(job).collect())
        }
        ("GET", ["jobs", id, "trace"]) => match world.find_check(id) {
            Some(check) => FakeResponse { body: check.log.clone(), ..FakeResponse::empty(200) },
            None => not_found(),
        },
        _ => not_found(),
    }
}

/// Takes two for one address, and shows no token.
fn in_hooks(world: &mut World, request: &ForgeRequest, route: &[&str]) -> FakeResponse {
    let asked = request.json();
    let names =
        ["issues_events", "note_events", "merge_requests_events", "push_events", "pipeline_events"];
    let reported =
        names.into_iter().filter(|name| asked[*name] == true).map(str::to_owned).collect();
    match (request.method.as_str(), route) {
        ("GET", []) => PAGES.page(world, request, &world.hooks.clone(), shape::hook),
        ("POST", []) => {
            let hook = world.add_hook(&request.text("url"), &request.text("token"), reported);
            FakeResponse::json(201, &shape::hook(&hook))
        }
        ("PUT", [id]) => match world.hooks.iter_mut().find(|hook| hook.id.to_string() == *id) {
            Some(hook) => {
                (hook.url, hook.secret) = (request.text("url"), request.text("token"));
                hook.events = reported;
                FakeResponse::json(200, &shape::hook(hook))
            }
            None => not_found(),
        },
        ("DELETE", [id]) => match world.remove_hook(id) {
            true => FakeResponse::empty(204),
            false => not_found(),
        },
        _ => not_found(),
    }
}

fn in_thread(
    world: &mut World,
    request: &ForgeRequest,
    thread: (Room, u64),
    route: &[&str],
) -> FakeResponse {
    let (room, number) = thread;
    match (request.method.as_str(), route) {
        ("GET", []) => show(world, thread, 200),
        ("PUT", []) => edit(world, request, thread),
        ("GET", ["notes"]) => {
            let own = world.comments_on(room, number);
            let mut notes: Vec<Value> = vec![shape::system_note()];
            notes.extend(own.iter().map(shape::note));
            let reviews = world.reviews.iter().zip(1..);
            let reviews = reviews.filter(|(review, _)| room == Room::Pull && review.pull == number);
            notes.extend(reviews.flat_map(|(review, id)| shape::review_notes(id, review, false)));
            PAGES.page(world, request, &notes, Value::clone)
        }
        (_, ["discussions", rest @ ..]) if room == Room::Pull => {
            in_discussions(world, request, number, rest)
        }
        ("GET", ["notes", id, "award_emoji"]) => {
            let id = id.parse().unwrap_or_default();
            let users = world.thumbs.get(&id).cloned().unwrap_or_default();
            let yes = |login: &String| json!({ "name": "thumbsup", "user": shape::user(login) });
            FakeResponse::json(200, &users.iter().map(yes).collect())
        }
        ("GET", ["links"]) if room == Room::Issue => {
            let before = world.blockers.get(&number).into_iter().flatten();
            let linked = before.filter_map(|number| world.find_issue(*number)).map(|issue| {
                let mut shape = shape::issue(world, issue);
                shape["link_type"] = json!("is_blocked_by");
                let full = format!("{OWNER}/{REPO}#{}", issue.number);
                shape["references"] = json!({ "full": full });
                shape
            });
            FakeResponse::json(200, &linked.collect())
        }
        ("GET", ["resource_label_events"]) if room == Room::Issue => {
            let own = world.find_issue(number).map(shape::label_events).unwrap_or_default();
            PAGES.page(world, request, &own, Value::clone)
        }
        ("PUT", ["notes", id]) => match world.change_comment(id, &request.text("body")) {
            Some(comment) => FakeResponse::json(200, &shape::note(&comment)),
            None => not_found(),
        },
        ("POST", ["notes"]) => {
            let body = request.text("body");
            if body.trim().is_empty() {
                return FakeResponse::json(
                    400,
                    &json!({ "message": { "note": ["can't be blank"] } }),
                );
            }
            let login = world.login.clone();
            let comment = world.comment(room, number, &login, &body);
            FakeResponse::json(201, &shape::note(&comment))
        }
        _ => not_found(),
    }
}

/// Discussions of a merge request: the notes, each alone, and the reviews with their remarks and answers.
fn in_discussions(
    world: &mut World,
    request: &ForgeRequest,
    number: u64,
    route: &[&str],
) -> FakeResponse {
    let review = |id: &str| id.strip_prefix("review").and_then(|id| id.parse::<u64>().ok());
    match (request.method.as_str(), route) {
        ("GET", []) => {
            let system = shape::system_note();
            let mut all = vec![shape::discussion("system", &[system])];
            for comment in world.comments_on(Room::Pull, number) {
                let id = format!("note{}", comment.id);
                all.push(shape::discussion(&id, &[shape::note(&comment)]));
            }
            let reviews = world.reviews.iter().zip(1_u64..);
            for (review, id) in reviews.filter(|(review, _)| review.pull == number) {
                let is_resolved = world.resolved.contains(&id);
                let [whole, remark] = shape::review_notes(id, review, is_resolved);
                all.push(shape::discussion(&format!("whole{id}"), &[whole]));
                let mut notes = vec![remark];
                notes.extend(shape::answers(world, id, review));
                all.push(shape::discussion(&format!("review{id}"), &notes));
            }
            PAGES.page(world, request, &all, Value::clone)
        }
        ("POST", [id, "notes"]) => match review(id) {
            Some(id) => {
                world.answer(id, &request.text("body"));
                FakeResponse::json(201, &json!({ "id": 3000, "body": request.text("body") }))
            }
            None => not_found(),
        },
        ("PUT", [id]) if request.json()["resolved"] == true => match review(id) {
            Some(id) => {
                world.resolved.insert(id);
                FakeResponse::json(200, &json!({ "id": format!("review{id}") }))
            }
            None => not_found(),
        },
        _ => not_found(),
    }
}

fn edit(world: &mut World, request: &ForgeRequest, (room, number): (Room, u64)) -> FakeResponse {
    let asked = request.json();
    let field = |name: &str| asked[name].as_str().map(str::to_owned);
    let open = field("state_event").map(|event| event == "reopen");
    let title = field("title");
    let draft = title.as_ref().map(|title| title.starts_with("Draft: "));
    let title = title.map(|it| it.strip_prefix("Draft: ").unwrap_or(&it).to_owned());
    world.edit_thread(room, number, title, field("description"), open);
    if room == Room::Pull {
        let logins = |name: &str| {
            let ids = asked[name].as_array().cloned()?;
            let known = accounts(world).into_iter();
            let mut found: Vec<String> =
                known.filter(|login| ids.contains(&json!(shape::user_id(login)))).collect();
            found.dedup();
            Some(found)
        };
        let (reviewers, assignees) = (logins("reviewer_ids"), logins("assignee_ids"));
        let labels = field("add_labels");
        world.change_pull(number, |pull| {
            pull.draft = draft.unwrap_or(pull.draft);
            pull.reviewers.extend(reviewers.unwrap_or_default());
            pull.assignees.extend(assignees.unwrap_or_default());
            pull.labels.extend(labels.iter().flat_map(|it| it.split(',')).map(str::to_owned));
        });
    }
    show(world, (room, number), 200)
}

fn show(world: &World, (room, number): (Room, u64), code: u16) -> FakeResponse {
    let issue = world.find_issue(number).filter(|_| room == Room::Issue);
    let pull = world.find_pull(number).filter(|_| room == Room::Pull);
    match (issue, pull) {
        (Some(issue), _) => FakeResponse::json(code, &shape::issue(world, issue)),
        (None, Some(pull)) => FakeResponse::json(code, &shape::merge_request(world, pull)),
        (None, None) => not_found(),
    }
}

fn list_issues(world: &World, request: &ForgeRequest) -> FakeResponse {
    let wanted = request.field("labels").unwrap_or_default();
    let wanted: Vec<&str> = wanted.split(',').filter(|name| !name.is_empty()).collect();
    let fits = |issue: &&FakeIssue| issue.open && issue.has_labels(&wanted);
    let issues: Vec<&FakeIssue> = world.issues.iter().filter(fits).collect();
    PAGES.page(world, request, &issues, |issue| shape::issue(world, issue))
}

fn list_merge_requests(world: &World, request: &ForgeRequest) -> FakeResponse {
    let (state, source) = (request.field("state"), request.field("source_branch"));
    let wanted = |pull: &&FakePull| {
        let state = state.as_deref() != Some("opened") || pull.open;
        state && source.as_ref().is_none_or(|source| *source == pull.head)
    };
    let mut pulls: Vec<&FakePull> = world.pulls.iter().filter(wanted).collect();
    if request.field("sort").as_deref() != Some("asc") {
        pulls.reverse();
    }
    PAGES.page(world, request, &pulls, |pull| shape::merge_request(world, pull))
}

fn create(world: &mut World, request: &ForgeRequest) -> FakeResponse {
    let (title, body) = (request.text("title"), request.text("description"));
    let (head, base) = (request.text("source_branch"), request.text("target_branch"));
    if title.is_empty() {
        return FakeResponse::json(400, &json!({ "error": "title is missing" }));
    }
    if head == base {
        let why = "Source branch can't be the same as the target branch";
        return FakeResponse::json(422, &json!({ "message": [why] }));
    }
    if let Some(there) = world.open_pull_between(&head, &base) {
        let why = format!(
            "Another open merge request already exists for this source branch: !{}",
            there.number
        );
        return FakeResponse::json(409, &json!({ "message": [why] }));
    }
    let number = world.open_pull(title.trim_start_matches("Draft: "), &body, &head, &base);
    world.change_pull(number, |pull| pull.draft = title.starts_with("Draft: "));
    show(world, (Room::Pull, number), 201)
}

fn not_found() -> FakeResponse {
    FakeResponse::error(404, "404 Not found")
}
