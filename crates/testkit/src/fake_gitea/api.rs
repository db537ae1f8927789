//! What each path of the API does.

use serde_json::{Value, json};

use super::http::{Answer, GiteaRequest};
use super::world::{FakePull, World};
use super::{OWNER, REPO, shape};

const PAGE_SIZE: usize = 30;
const VERSION: &str = "1.27.2";

pub(super) fn answer(world: &mut World, under: &str, request: &GiteaRequest) -> Answer {
    let Some(path) = request.path.strip_prefix(under) else { return no_route() };
    let segments: Vec<String> = path.split('/').skip(1).map(decode).collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let ["api", "v1", route @ ..] = segments.as_slice() else { return no_route() };
    let method = request.method.as_str();
    if (method, route) == ("GET", &["version"]) {
        return json_answer(200, &json!({ "version": VERSION }));
    }
    match request.header("authorization") {
        None => return complain(401, "token is required"),
        Some(value) if value != format!("token {}", world.token) => {
            return complain(401, "invalid username, password or token");
        }
        Some(_) => {}
    }
    match (method, route) {
        ("GET", ["user"]) if world.account_hidden => complain(
            403,
            "token does not have at least one of required scope(s), required=[read:user], token scope=write:repository",
        ),
        ("GET", ["user"]) => json_answer(200, &shape::user(world)),
        ("GET", ["settings", "api"]) => {
            json_answer(200, &json!({ "max_response_items": world.page_max }))
        }
        (_, ["repos", owner, repo, rest @ ..]) => {
            let is_ours = owner.eq_ignore_ascii_case(OWNER) && repo.eq_ignore_ascii_case(REPO);
            if is_ours { in_repository(world, request, rest) } else { complain(404, "not found") }
        }
        _ => no_route(),
    }
}

fn in_repository(world: &mut World, request: &GiteaRequest, route: &[&str]) -> Answer {
    match (request.method.as_str(), route) {
        ("GET", []) => json_answer(200, &shape::repository()),
        ("GET", ["labels"]) => {
            let ids: Vec<u64> = (1..=world.labels.len() as u64).collect();
            page(world, request, &ids, |id| shape::label(world, *id))
        }
        ("GET", ["pulls"]) => list_pulls(world, request),
        ("POST", ["pulls"]) => create_pull(world, &parse(&request.body)),
        ("GET", ["pulls", number]) => match find(world, number) {
            Some(pull) => json_answer(200, &shape::pull(world, pull)),
            None => complain(404, "not found"),
        },
        ("PATCH", ["pulls", number]) => match find(world, number).map(|pull| pull.number) {
            Some(number) => edit_pull(world, number, &parse(&request.body)),
            None => complain(404, "not found"),
        },
        ("GET", ["issues", number, "comments"]) => match find(world, number) {
            Some(pull) => {
                let own = world.comments.iter().filter(|comment| comment.on == pull.number);
                let own: Vec<Value> = own.map(|comment| shape::comment(world, comment)).collect();
                // All of them, whatever page is asked for.
                let mut answer = json_answer(200, &json!(own));
                answer.headers.push(("x-total-count".to_owned(), own.len().to_string()));
                answer
            }
            None => complain(404, "not found"),
        },
        ("POST", ["issues", number, "comments"]) => {
            let body = text(&parse(&request.body), "body");
            match find(world, number).map(|pull| pull.number) {
                _ if body.is_empty() => complain(422, "[Body]: Required"),
                // Real servers say it like this.
                None => complain(500, ""),
                Some(number) => {
                    let comment = world.comment(number, &body);
                    json_answer(201, &shape::comment(world, &comment))
                }
            }
        }
        _ => no_route(),
    }
}

fn list_pulls(world: &World, request: &GiteaRequest) -> Answer {
    // A filter by head branch is ignored, as everywhere.
    let wanted = |pull: &&FakePull| match request.field("state") {
        Some("all") => true,
        Some("closed") => !pull.open,
        Some(_) | None => pull.open,
    };
    let mut pulls: Vec<&FakePull> = world.pulls.iter().filter(wanted).collect();
    if request.field("sort") != Some("oldest") {
        pulls.reverse();
    }
    page(world, request, &pulls, |pull| shape::pull(world, pull))
}

fn create_pull(world: &mut World, asked: &Value) -> Answer {
    let (title, body) = (text(asked, "title"), text(asked, "body"));
    let (head, base) = (text(asked, "head"), text(asked, "base"));
    if title.is_empty() {
        return complain(422, "[Title]: Required");
    }
    if head == base {
        return complain(
            422,
            "Invalid PullRequest: There are no changes between the head and the base",
        );
    }
    let is_there = |pull: &FakePull| pull.open && pull.head == head && pull.base == base;
    if world.pulls.iter().any(is_there) {
        return complain(409, "pull request already exists for these targets");
    }
    let labels = match asked.get("labels").and_then(Value::as_array) {
        Some(labels) => labels.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>(),
        None => Some(Vec::new()),
    };
    let Some(labels) = labels else { return complain(422, "json: cannot unmarshal labels") };
    let number = world.open_pull(&title, &body, &head, &base);
    world.change_pull(number, |pull| pull.labels = labels);
    match world.find_pull(number) {
        Some(pull) => json_answer(201, &shape::pull(world, pull)),
        None => complain(500, ""),
    }
}

fn edit_pull(world: &mut World, number: u64, asked: &Value) -> Answer {
    let field = |name: &str| asked.get(name).and_then(Value::as_str).map(str::to_owned);
    let (title, body, state) = (field("title"), field("body"), field("state"));
    let merged = world.find_pull(number).is_some_and(|pull| pull.merged);
    if merged && state.as_deref() == Some("open") {
        return complain(412, "cannot change state of this pull request, it was already merged");
    }
    world.change_pull(number, |pull| {
        pull.title = title.unwrap_or_else(|| pull.title.clone());
        pull.body = body.unwrap_or_else(|| pull.body.clone());
        pull.open = state.map_or(pull.open, |state| state == "open");
    });
    match world.find_pull(number) {
        Some(pull) => json_answer(201, &shape::pull(world, pull)),
        None => complain(500, ""),
    }
}

/// A page of a list, with the headers that say what else there is.
fn page<T>(
    world: &World,
    request: &GiteaRequest,
    entries: &[T],
    shape: impl Fn(&T) -> Value,
) -> Answer {
    let number = |name: &str| request.field(name).and_then(|text| text.parse::<usize>().ok());
    let size = number("limit").filter(|size| *size > 0).unwrap_or(PAGE_SIZE).min(world.page_max);
    let page = number("page").unwrap_or(1).max(1);
    let shown: Vec<Value> = entries.iter().skip((page - 1) * size).take(size).map(shape).collect();
    let mut answer = json_answer(200, &json!(shown));
    answer.headers.push(("x-total-count".to_owned(), entries.len().to_string()));
    if page * size < entries.len() {
        let url = format!("{}{}?page={}&limit={size}", world.root, request.path, page + 1);
        answer.headers.push(("link".to_owned(), format!("<{url}>; rel=\"next\"")));
    }
    answer
}

fn find<'a>(world: &'a World, number: &str) -> Option<&'a FakePull> {
    world.find_pull(number.parse().ok()?)
}

fn text(asked: &Value, name: &str) -> String {
    asked.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn parse(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_default()
}

fn json_answer(code: u16, body: &Value) -> Answer {
    Answer { code, headers: Vec::new(), body: body.to_string() }
}

fn complain(code: u16, message: &str) -> Answer {
    json_answer(code, &shape::complaint(message))
}

fn no_route() -> Answer {
    let headers = vec![("content-type".to_owned(), "text/plain; charset=utf-8".to_owned())];
    Answer { code: 404, headers, body: "404 page not found\n".to_owned() }
}

fn decode(segment: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = segment.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = tail.get(..2).filter(|_| first == b'%');
        let byte = escaped
            .and_then(|two| std::str::from_utf8(two).ok())
            .and_then(|two| u8::from_str_radix(two, 16).ok());
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
