//! The bodies of answers, made from recorded ones so that every field of a real server is there.

use std::time::UNIX_EPOCH;

use serde_json::{Value, json};

use super::world::{FakeComment, FakePull, World};
use super::{OWNER, REPO};

const PULL: &str = include_str!("samples/pull.json");
const COMMENT: &str = include_str!("samples/comment.json");
/// Where a branch is that nobody has placed.
const SOME_SHA: &str = "22ae629398a82910ba5dd962b4238a7a5dc63d62";
const OWN_ID: u64 = 1;
const FORK_ID: u64 = 2;

pub(super) fn pull(world: &World, pull: &FakePull) -> Value {
    let mut shape = recorded(PULL);
    let page = format!("{}/{OWNER}/{REPO}/pulls/{}", world.root, pull.number);
    shape["id"] = json!(pull.number);
    shape["number"] = json!(pull.number);
    shape["url"] = json!(page);
    shape["html_url"] = json!(page);
    shape["title"] = json!(pull.title);
    shape["body"] = json!(pull.body);
    shape["state"] = json!(if pull.open { "open" } else { "closed" });
    shape["merged"] = json!(pull.merged);
    shape["labels"] = pull.labels.iter().map(|id| label(world, *id)).collect();
    shape["base"]["ref"] = json!(pull.base);
    shape["base"]["label"] = json!(pull.base);
    shape["head"]["ref"] = json!(pull.head);
    shape["head"]["label"] = json!(pull.head);
    shape["head"]["sha"] = json!(world.branches.get(&pull.head).map_or(SOME_SHA, String::as_str));
    shape["head"]["repo_id"] = json!(if pull.from_fork { FORK_ID } else { OWN_ID });
    if !pull.from_fork {
        shape["head"]["repo"] = shape["base"]["repo"].clone();
        shape["user"] = user(world);
    }
    shape
}

pub(super) fn comment(world: &World, comment: &FakeComment) -> Value {
    let mut shape = recorded(COMMENT);
    let page = format!("{}/{OWNER}/{REPO}/pulls/{}", world.root, comment.on);
    shape["id"] = json!(comment.id);
    shape["html_url"] = json!(format!("{page}#issuecomment-{}", comment.id));
    shape["pull_request_url"] = json!(page);
    shape["issue_url"] = json!("");
    shape["user"] = user(world);
    shape["body"] = json!(comment.body);
    shape["created_at"] = json!(now());
    shape["updated_at"] = json!(now());
    shape
}

pub(super) fn label(world: &World, id: u64) -> Value {
    let name = usize::try_from(id).ok().and_then(|id| world.labels.get(id.wrapping_sub(1)));
    let url = format!("{}/api/v1/repos/{OWNER}/{REPO}/labels/{id}", world.root);
    json!({
        "id": id, "name": name, "exclusive": false, "is_archived": false, "color": "00aabb",
        "description": "", "url": url,
    })
}

pub(super) fn user(world: &World) -> Value {
    let mut shape = recorded(COMMENT)["user"].take();
    shape["login"] = json!(world.login);
    shape["username"] = json!(world.login);
    shape
}

pub(super) fn repository() -> Value {
    recorded(PULL)["base"]["repo"].take()
}

pub(super) fn complaint(message: &str) -> Value {
    json!({ "message": message, "url": "https://gitea.example.test/api/swagger" })
}

fn recorded(text: &str) -> Value {
    serde_json::from_str(text).expect("a recorded answer")
}

/// The time as the server writes it.
#[expect(clippy::disallowed_methods, reason = "a server has a clock of its own")]
fn now() -> String {
    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH);
    let secs = since.unwrap_or_default().as_secs();
    let (days, rest) = (secs / 86_400, secs % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The date of a day since 1970, by counting years of 400 that begin in March.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let leaps = day_of_era / 1460 + day_of_era / 146_096 - day_of_era / 36_524;
    let year_of_era = (day_of_era - leaps) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(11_017), (2000, 3, 1));
        assert_eq!(civil(20_772), (2026, 11, 15));
    }
}
