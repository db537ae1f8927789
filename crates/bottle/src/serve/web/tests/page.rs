//! What people see and press.

use axum::http::StatusCode;
use orchestrator_db::About;

use super::stage::{OWNER, REPO, Stage};
use crate::exit::Failure;
use crate::flow::bottle::BottleState;
use crate::flow::fleet::LOCAL_HOST;

/// The places of these words on a page, which must all be there and in this order.
#[track_caller]
fn in_order(text: &str, words: &[&str]) {
    let mut rest = text;
    for word in words {
        let (_, after) =
            rest.split_once(word).unwrap_or_else(|| panic!("{word} is not where it should be"));
        rest = after;
    }
}

#[tokio::test]
async fn what_needs_a_person_comes_first() {
    let page = Stage::open().furnished().get("/").await;
    assert_eq!(page.status, StatusCode::OK);
    in_order(
        &page.text,
        &[
            "3 bottles need you",
            "Login fails when the password holds a colon",
            "the agent asks which of the two auth flows is meant",
            "Export the report as CSV",
            "continues ",
            "Speed up the search",
            "$0.42",
            "Upgrade the build",
            "Dark mode for the settings page",
            "<details>",
            "Fix a typo in the footer",
        ],
    );
    for link in
        ["https://git.example/acme/widget/issues/1", "https://git.example/acme/widget/pulls/101"]
    {
        assert!(page.text.contains(&format!("href=\"{link}\"")), "{link}");
    }
    assert!(page.text.contains("$1.27"), "a cost");
}

#[tokio::test]
async fn a_long_past_does_not_make_a_long_page() {
    let stage = Stage::open();
    for number in 0..103 {
        stage.bottle(&format!("old-{number}"), BottleState::Destroyed, None);
    }
    let page = stage.get("/").await;
    assert_eq!(page.text.matches("<article").count(), 100);
    in_order(&page.text, &["<details>", "103", "And 3 more"]);
}

#[tokio::test]
async fn the_page_of_the_service_shows_what_was_asked_for_and_who_asked() {
    let stage = Stage::guarded().furnished();
    let hostile = "<img src=x onerror=alert(1)>\u{202e}";
    let asked = serde_json::json!({
        "repo": "acme/widget", "agent": "worker", "prompt": "Sort.", "title": hostile,
    });
    stage.api("POST", "/api/v1/dispatches", &asked.to_string()).await;
    stage.api("POST", "/api/v1/bottles/busy/freeze", "").await;
    let cookie = stage.log_in().await;
    let page = stage.get_with("/service", &cookie).await;
    assert_eq!(page.status, StatusCode::OK);
    in_order(
        &page.text,
        &[
            "free disk space",
            "acme/widget",
            "named in the configuration",
            "Dispatched without an issue",
            "&lt;img src=x onerror=alert(1)&gt;",
            "a program with the admin token through the API",
            "pending",
            "Who asked for what",
            "a program with the admin token: freeze",
        ],
    );
    assert!(!page.text.contains("<img") && !page.text.contains('\u{202e}'), "{}", page.text);
    let home = stage.get_with("/", &cookie).await;
    assert!(home.text.contains("<title>(3) Bottles · bot-bottle</title>"), "{}", home.text);
}

#[tokio::test]
async fn a_page_without_bottles_says_how_to_get_one() {
    let page = Stage::open().get("/").await;
    in_order(&page.text, &["No bottles yet", "bot-bottle:&lt;agent&gt;"]);
}

#[tokio::test]
async fn a_page_for_reading_says_how_to_change_that() {
    let page = Stage::open().furnished().get("/").await;
    in_order(&page.text, &["read only", "set admin_token_file or user_header"]);
    let bottle = Stage::open().furnished().get("/bottles/stuck").await;
    assert!(!bottle.text.contains("<form"), "there is nothing to press");
}

#[tokio::test]
async fn a_bottle_shows_its_runs_and_what_happened() {
    let stage = Stage::open().furnished();
    let page = stage.get("/bottles/reviewed").await;
    in_order(
        &page.text,
        &["Dark mode", "frozen", "The work holds".to_lowercase().as_str(), "2 commits"],
    );
    in_order(&page.text, &["Events", "waits for review", "running", "claimed", "queued"]);
}

#[tokio::test]
async fn a_run_shows_all_that_is_known_of_it() {
    let stage = Stage::open().furnished();
    let page = stage.get(&format!("/runs/reviewed/{}", stage.run_of("reviewed"))).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    in_order(
        &page.text,
        &[
            "the work holds",
            "682\u{202f}000 read",
            "/provenance",
            "running cargo test",
            "warning: slow disk",
            "colons are kept now",
            "keep colons in passwords",
            "api.anthropic.com",
            "branch.push",
            "box ended",
        ],
    );
    assert!(!page.text.contains("data-steps="), "a log that has ended is not followed");
}

#[tokio::test]
async fn a_log_that_grows_is_followed() {
    let stage = Stage::open().furnished();
    let page = stage.get(&format!("/runs/busy/{}", stage.run_of("busy"))).await;
    in_order(&page.text, &["the agent is running", "data-steps=\"/runs/busy/", "/live?after="]);
}

fn form_token(page: &str) -> &str {
    let (_, rest) = page.split_once("name=\"token\" value=\"").expect("a form");
    rest.split('"').next().expect("a token")
}

#[tokio::test]
async fn a_button_stores_an_action() {
    let stage = Stage::guarded().furnished();
    let cookie = stage.log_in().await;
    for (slug, action, body, issue) in [
        ("busy", "freeze", "", 3),
        ("stuck", "resume", "use+the+first+one%0Aand+test+it", 1),
        ("reviewed", "destroy", "", 4),
    ] {
        let page = stage.get_with(&format!("/bottles/{slug}"), &cookie).await;
        let form = format!("token={}&prompt={body}", form_token(&page.text));
        let answer = stage.post(&format!("/bottles/{slug}/{action}"), &cookie, &form).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
        let back = answer.header("location").to_owned();
        assert_eq!(back, format!("/bottles/{slug}?requested={action}"));
        let told = stage.get_with(&back, &cookie).await;
        in_order(&told.text, &["role=\"status\"", " requested. "]);
        let kept = stage.service.store.unhandled_deliveries(10).expect("the inbox");
        let kept = kept.last().expect("an action");
        assert_eq!((kept.source.as_str(), kept.event.as_str()), ("page", action));
        assert_eq!((kept.owner.as_str(), kept.repo.as_str()), (OWNER, REPO));
        assert_eq!(kept.about, About::Issue(issue));
        let bytes = stage.service.store.delivery_body(kept.seq).expect("its bytes");
        let expected: &[u8] =
            if action == "resume" { b"use the first one\nand test it" } else { b"" };
        assert_eq!(bytes, expected);
    }
}

#[tokio::test]
async fn an_impossible_action_is_refused_with_its_reason() {
    let stage = Stage::guarded().furnished();
    let cookie = stage.log_in().await;
    let page = stage.get_with("/bottles/stuck", &cookie).await;
    let token = form_token(&page.text).to_owned();
    for (path, words) in [
        ("/bottles/gone/destroy", "cannot be destroyed again"),
        ("/bottles/stuck/freeze", "cannot be frozen"),
        ("/bottles/stuck/resume", "the prompt is empty"),
        ("/bottles/by-hand/freeze", "started by hand"),
    ] {
        let answer = stage.post(path, &cookie, &format!("token={token}")).await;
        assert_eq!(answer.status, StatusCode::CONFLICT, "{path}");
        assert!(answer.text.contains(words), "{path}: {}", answer.text);
    }
    let unknown = stage.post("/bottles/stuck/explode", &cookie, &format!("token={token}")).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    assert_eq!(stage.service.store.count_unhandled().expect("a count"), 0);
}

#[tokio::test]
async fn numbers_are_there_for_whoever_is_not_looking() {
    let text = Stage::open().furnished().get("/metrics").await.text;
    for line in [
        "bot_bottle_cases{state=\"needs-attention\"} 3",
        "bot_bottle_cases{state=\"running\"} 1",
        "bot_bottle_deliveries_unhandled 0",
        "bot_bottle_runs{verdict=\"publish\"} 6",
        "bot_bottle_runs{verdict=\"none\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in:\n{text}");
    }
    let memory = text.lines().find_map(|line| line.strip_prefix("bot_bottle_memory_bytes "));
    assert!(
        memory.is_some_and(|bytes| bytes.parse::<u64>().is_ok_and(|bytes| bytes > 0)),
        "{text}"
    );
}

#[tokio::test]
async fn health_is_told_to_anybody() {
    let stage = Stage::guarded();
    assert_eq!(stage.get("/healthz").await.text, "ok\n");
    let ready = stage.get("/readyz").await;
    assert_eq!((ready.status, ready.json()["database"].as_str()), (StatusCode::OK, Some("ok")));
}

#[tokio::test]
async fn an_open_page_survives_a_restart() {
    let mut stage = Stage::guarded().furnished();
    let cookie = stage.log_in().await;
    let page = stage.get_with("/bottles/stuck", &cookie).await;
    let (_, rest) = page.text.split_once("name=\"token\" value=\"").expect("a form");
    let token = rest.split('"').next().expect("a token").to_owned();
    stage.restart();
    assert_eq!(stage.get_with("/", &cookie).await.status, StatusCode::OK);
    let form = format!("token={token}&prompt=go");
    let answer = stage.post("/bottles/stuck/resume", &cookie, &form).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    assert_eq!(answer.header("location"), "/bottles/stuck?requested=resume");
}

#[tokio::test]
async fn a_bottle_that_asks_shows_the_question_and_a_box_for_the_answer() {
    let stage = Stage::guarded();
    stage.asking(3, "asks", "SQLite or PostgreSQL?\nThe tests use both.");
    let cookie = stage.log_in().await;
    for path in ["/", "/bottles/asks"] {
        let page = stage.get_with(path, &cookie).await.text;
        assert!(page.contains("<p>SQLite or PostgreSQL?</p><p>The tests use both.</p>"), "{page}");
        assert!(page.contains("action=\"/bottles/asks/resume\""), "{path}");
    }
    let case = stage.api("GET", "/api/v1/bottles/asks", "").await.json();
    assert_eq!(case["question"], "SQLite or PostgreSQL?\nThe tests use both.", "{case:#}");
}

#[tokio::test]
async fn a_case_that_is_done_with_keeps_its_title_its_reason_and_its_timeline() {
    let stage = Stage::guarded().furnished();
    stage.forget(5, "gone");
    let path = "/api/v1/issues/acme/widget/5";
    let issue = stage.api("GET", path, "").await;
    assert_eq!(issue.status, StatusCode::OK, "{}", issue.text);
    let issue = issue.json();
    assert_eq!(issue["issue"]["title"], "Fix a typo in the footer", "{issue:#}");
    assert_eq!(issue["reason"], "its pull request was merged");
    assert_eq!(issue["orchestrated"], true);
    assert!(issue["timeline"].as_array().is_some_and(|list| list.len() > 2), "{issue:#}");
}

#[tokio::test]
async fn the_page_of_a_bottle_that_is_not_here_says_what_became_of_it() {
    let stage = Stage::open().furnished();
    stage.move_bottle(4, "reviewed", "there");
    stage.move_bottle(5, "gone", LOCAL_HOST);
    stage.move_bottle(2, "waiting", LOCAL_HOST);
    for (slug, words) in [
        ("reviewed", "the bottle 'reviewed' is on host there"),
        ("gone", "was destroyed: its pull request was merged"),
        ("waiting", "bot-bottle destroy --force waiting"),
    ] {
        let page = stage.get(&format!("/bottles/{slug}")).await;
        assert_eq!(page.status, StatusCode::NOT_FOUND, "{slug}");
        in_order(&page.text, &["<a href=\"/\">Bottles</a>", words, "acme/widget#", "Events"]);
        let answer = stage.get(&format!("/api/v1/bottles/{slug}")).await.json();
        assert!(answer["detail"].as_str().is_some_and(|it| it.contains(words)), "{answer}");
    }
    let unknown = stage.get("/bottles/nobody").await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    in_order(&unknown.text, &["there is no bottle", "All bottles"]);
}

#[tokio::test]
async fn a_repository_that_cannot_be_read_is_named() {
    let stage = Stage::open().furnished();
    let refused = Failure::transient("git.example refused the token");
    stage.service.vitals.note_repository("acme/widget", Err(&refused));
    let page = stage.get("/").await.text;
    assert!(page.contains("<strong>acme/widget</strong>: git.example refused the token"), "{page}");
    assert!(stage.get("/readyz").await.text.contains("1 of 1 cannot be read"));
    let metrics = stage.get("/metrics").await.text;
    assert!(metrics.contains("bot_bottle_repository_up{repo=\"acme/widget\"} 0"), "{metrics}");
}

#[tokio::test]
async fn the_first_page_is_filtered_and_grouped_by_its_address() {
    let stage = Stage::open().furnished();
    let page = stage.get("/?repo=acme%2Fwidget&verdict=none").await;
    assert!(page.text.contains("Upgrade the build"), "it has no run");
    assert!(!page.text.contains("Dark mode") && !page.text.contains("by-hand"), "{}", page.text);
    assert!(page.text.contains(" are shown."), "{}", page.text);
    let page = stage.get("/?group=verdict").await;
    assert!(page.text.contains("<h2>publish "), "{}", page.text);
    let page = stage.get("/?repo=none").await;
    assert!(page.text.contains("by-hand") && !page.text.contains("Dark mode"), "{}", page.text);
    assert_eq!(stage.get("/?group=colour").await.status, 400);
    assert_eq!(stage.get("/?rpeo=x").await.status, 400);
    let hostile = stage.get("/?agent=%3Cscript%3Ealert(9)%3C/script%3E").await;
    assert!(!hostile.text.contains("<script>alert(9)"), "{}", hostile.text);
}

#[tokio::test]
async fn the_spending_of_a_day_is_a_page() {
    let stage = Stage::new("[budget]\nrun = { tokens = 9 }\nhost = { tokens = 12345 }\n");
    let page = stage.get("/spending").await;
    assert!(page.text.contains("this host") && page.text.contains("12\u{202f}345 tokens"));
    assert!(page.text.contains("No run was started on this day"), "{}", page.text);
    assert_eq!(stage.get("/spending?day=2026-11-18").await.status, 200);
    assert_eq!(stage.get("/spending?day=tomorrow").await.status, 400);
}

/// Events as Claude Code prints them: words, a command that fails, and a line that is no event.
const EVENTS: &str = concat!(
    r#"{"type":"assistant","message":{"content":[{"type":"text","text":"I look at the <b>code</b>."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cargo test"}}]}}"#,
    "\n",
    r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"Exit code 101\nerror: no such crate","is_error":true,"tool_use_id":"t1"}]}}"#,
    "\nplain words\n",
    r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t2","name":"Bash","input":{"command":"sleep 600"}}]}}"#,
    "\n",
);

#[tokio::test]
async fn a_log_is_shown_as_steps_that_fold_with_links_to_what_failed() {
    let stage = Stage::open().furnished();
    stage.write_log("busy", EVENTS);
    let path = format!("/runs/busy/{}", stage.run_of("busy"));
    let page = stage.get(&path).await;
    in_order(
        &page.text,
        &[
            "<a href=\"#step-",
            "Error 1",
            "<li class=\"said\">I look at the &lt;b&gt;code&lt;/b&gt;.",
            "<li class=\"call failed\" id=\"step-",
            "<details open><summary>ran `cargo test` → <strong>status 101: error: no such crate",
            "plain words",
            "At work on: <span data-now>running `sleep 600`",
        ],
    );
    assert!(page.text.contains("&amp;log=steps\">"), "the steps are followed: {}", page.text);
    let text = stage.get(&format!("{path}?log=text")).await;
    in_order(&text.text, &["<pre class=\"log\"", "ran `cargo test` → status 101"]);
    let raw = stage.get(&format!("{path}?log=raw")).await;
    assert!(raw.text.contains("tool_use_id"), "{}", raw.text);
}

#[tokio::test]
async fn a_log_is_searched_and_says_where() {
    let stage = Stage::open().furnished();
    stage.write_log("reviewed", EVENTS);
    let path = format!("/runs/reviewed/{}", stage.run_of("reviewed"));
    let found = stage.get(&format!("{path}?find=SUCH+crate")).await.text;
    in_order(&found, &["value=\"SUCH crate\"", "Whole log", "1 step has", "cargo test"]);
    assert!(!found.contains("plain words"), "{found}");
    let none = stage.get(&format!("{path}?find=%3Cscript%3Ealert(7)")).await.text;
    assert!(none.contains("0 steps have") && !none.contains("<script>alert(7)"), "{none}");
    let raw = stage.get(&format!("{path}?log=raw&find=plain")).await.text;
    in_order(
        &raw,
        &[
            "name=\"log\" value=\"raw\"",
            "1 line has",
            "<pre class=\"log\" tabindex=\"0\">plain words</pre>",
        ],
    );
}

#[tokio::test]
async fn a_whole_log_is_a_file_without_its_tokens() {
    let stage = Stage::open().furnished();
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let line = "reading and writing\n".repeat(100_000);
    stage.write_log("reviewed", &format!("{line}{token}\nlast"));
    let run = stage.run_of("reviewed");
    let answer = stage.get(&format!("/runs/reviewed/{run}/log.txt")).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
    let name = format!("attachment; filename=\"{run}.log.txt\"");
    assert_eq!(answer.header("content-disposition"), name);
    assert!(answer.text == format!("{line}***\nlast"), "{} bytes", answer.text.len());
    let none = stage.get("/runs/reviewed/nothing_20260101_000000/log.txt").await;
    assert_eq!(none.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_card_of_a_run_at_work_shows_how_far_it_is() {
    let stage = Stage::open().furnished();
    stage.write_log("busy", EVENTS);
    for path in ["/", "/bottles/busy"] {
        let page = stage.get(path).await.text;
        in_order(
            &page,
            &[
                "<p class=\"step\">running `sleep 600`</p>",
                "34 min",
                " so far",
                "the agent is running",
                "4 tokens",
                "$0.42",
            ],
        );
    }
    let case = stage.get("/api/v1/bottles/busy").await.json();
    assert_eq!(case["progress"]["tokens"], 4, "{case:#}");
    assert_eq!(case["progress"]["step"], "running `sleep 600`");
    let frozen = stage.get("/api/v1/bottles/reviewed").await.json();
    assert!(frozen["progress"].is_null(), "{frozen:#}");
}

#[tokio::test]
async fn the_tab_has_the_number_of_bottles_that_need_a_person() {
    let stage = Stage::open().furnished();
    let home = stage.get("/").await.text;
    in_order(
        &home,
        &[
            "<title>(3) Bottles",
            "/icon.svg?v=",
            "&amp;calls=3\"",
            "data-calls=\"3\"",
            "data-notify",
        ],
    );
    let icon = stage.get("/icon.svg?v=1&calls=3").await;
    assert!(icon.text.ends_with(">3</text></svg>"), "{}", icon.text);
    assert!(!stage.get("/icon.svg").await.text.contains("<text"));
}

#[tokio::test]
async fn the_history_shows_runs_and_cost_by_day() {
    let stage = Stage::open().furnished();
    let page = stage.get("/history").await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    in_order(
        &page.text,
        &[
            "7 runs in 30 days, 6 published",
            "as far as it is known",
            "Runs a day, at most 7",
            "<rect ",
            "Cost a day",
            "Newest runs",
            "/runs/",
        ],
    );
    let one = stage.get("/history?repo=acme%2Fwidget&days=7").await.text;
    in_order(&one, &["History of <bdi>acme/widget", "6 runs in 7 days"]);
    let none = stage.get("/history?repo=acme%2Fother").await.text;
    in_order(&none, &["0 runs in 30 days", "No run yet"]);
    for wrong in ["days=0", "days=400", "day=7"] {
        assert_eq!(stage.get(&format!("/history?{wrong}")).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn destroying_stands_apart_from_resuming() {
    let stage = Stage::guarded().furnished();
    let cookie = stage.log_in().await;
    let page = stage.get_with("/bottles/reviewed", &cookie).await.text;
    in_order(&page, &["/resume\"", "Runs ", "Details", "Remove this bottle", "/destroy\""]);
    let gone = stage.get_with("/bottles/gone", &cookie).await.text;
    assert!(!gone.contains("Remove this bottle"), "{gone}");
}

#[tokio::test]
async fn each_host_is_named_with_its_bottles() {
    let stage = Stage::open().furnished();
    stage.move_bottle(4, "reviewed", "there");
    let page = stage.get("/service").await.text;
    in_order(
        &page,
        &["Hosts", LOCAL_HOST, "this one", "there", "1 bottle is kept", "last sign of life"],
    );
}
