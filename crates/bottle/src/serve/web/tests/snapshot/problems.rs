//! Problems of the API, whole.

use super::document;
use crate::serve::web::tests::stage::Stage;

#[tokio::test]
async fn problem_of_an_unknown_parameter() {
    let answer = Stage::guarded().furnished().api("GET", "/api/v1/runs?limt=1", "").await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 400
    {
      "detail": "Failed to deserialize query string: limt: unknown field `limt`, expected `limit` or `after`",
      "status": 400,
      "title": "Bad Request",
      "type": "about:blank"
    }
    "#);
}

#[tokio::test]
async fn problem_of_a_limit_of_zero() {
    let answer = Stage::guarded().furnished().api("GET", "/api/v1/runs?limit=0", "").await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 400
    {
      "detail": "limit must be from 1 to 200",
      "status": 400,
      "title": "Bad Request",
      "type": "about:blank"
    }
    "#);
}

#[tokio::test]
async fn problem_of_a_negative_cursor() {
    let answer = Stage::guarded().furnished().api("GET", "/api/v1/events?after=-1", "").await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 400
    {
      "detail": "Failed to deserialize query string: after: invalid digit found in string",
      "status": 400,
      "title": "Bad Request",
      "type": "about:blank"
    }
    "#);
}

#[tokio::test]
async fn problem_of_an_unknown_bottle() {
    let answer = Stage::guarded().furnished().api("GET", "/api/v1/bottles/ghost", "").await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 404
    {
      "detail": "there is no bottle 'ghost'; see: bot-bottle list",
      "status": 404,
      "title": "Not Found",
      "type": "about:blank"
    }
    "#);
}

#[tokio::test]
async fn problem_of_an_unknown_issue() {
    let answer = Stage::guarded().furnished().api("GET", "/api/v1/issues/a/b/1", "").await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 404
    {
      "detail": "there is no work on a/b#1",
      "status": 404,
      "title": "Not Found",
      "type": "about:blank"
    }
    "#);
}

#[tokio::test]
async fn problem_of_an_issue_number_of_zero() {
    let answer = Stage::guarded().furnished().api("GET", "/api/v1/issues/a/b/0", "").await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 400
    {
      "detail": "the number of an issue is at least 1",
      "status": 400,
      "title": "Bad Request",
      "type": "about:blank"
    }
    "#);
}

#[tokio::test]
async fn problem_of_an_unknown_action() {
    let answer =
        Stage::guarded().furnished().api("POST", "/api/v1/bottles/stuck/explode", "").await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 404
    {
      "detail": "a bottle can be frozen, resumed or destroyed",
      "status": 404,
      "title": "Not Found",
      "type": "about:blank"
    }
    "#);
}

#[tokio::test]
async fn problem_of_an_action_that_the_status_forbids() {
    let answer = Stage::guarded().furnished().api("POST", "/api/v1/bottles/gone/freeze", "").await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 409
    {
      "detail": "a bottle that is destroyed cannot be frozen",
      "status": 409,
      "title": "Conflict",
      "type": "about:blank"
    }
    "#);
}

#[tokio::test]
async fn problem_of_a_resume_without_a_prompt() {
    let answer = Stage::guarded().furnished().api("POST", "/api/v1/bottles/stuck/resume", "").await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 409
    {
      "detail": "the prompt is empty; say what the agent is to do",
      "status": 409,
      "title": "Conflict",
      "type": "about:blank"
    }
    "#);
}

#[tokio::test]
async fn problem_of_a_body_that_is_not_json() {
    let answer =
        Stage::guarded().furnished().api("POST", "/api/v1/bottles/stuck/resume", "{").await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 400
    {
      "detail": "Failed to parse the request body as JSON: EOF while parsing an object at line 1 column 1",
      "status": 400,
      "title": "Bad Request",
      "type": "about:blank"
    }
    "#);
}

#[tokio::test]
async fn problem_of_a_body_with_an_unknown_field() {
    let answer = Stage::guarded()
        .furnished()
        .api("POST", "/api/v1/bottles/stuck/resume", "{\"promt\":\"x\"}")
        .await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 400
    {
      "detail": "Failed to deserialize the JSON body into the target type: promt: unknown field `promt`, expected `prompt` at line 1 column 8",
      "status": 400,
      "title": "Bad Request",
      "type": "about:blank"
    }
    "#);
}

#[tokio::test]
async fn problem_of_an_action_on_a_bottle_that_was_started_by_hand() {
    let answer =
        Stage::guarded().furnished().api("POST", "/api/v1/bottles/by-hand/freeze", "").await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 409
    {
      "detail": "this bottle was started by hand; use: bot-bottle freeze by-hand",
      "status": 409,
      "title": "Conflict",
      "type": "about:blank"
    }
    "#);
}

#[tokio::test]
async fn problem_of_a_method_that_is_not_allowed() {
    let answer = Stage::guarded().furnished().api("DELETE", "/api/v1/runs", "").await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 405
    {
      "detail": "DELETE is not allowed here",
      "status": 405,
      "title": "Method Not Allowed",
      "type": "about:blank"
    }
    "#);
}

#[tokio::test]
async fn problem_of_an_address_that_is_not_there() {
    let answer = Stage::guarded().furnished().api("GET", "/api/v1/nowhere", "").await;
    insta::assert_snapshot!(document(&answer), @r#"
    status: 404
    {
      "detail": "there is nothing at this address",
      "status": 404,
      "title": "Not Found",
      "type": "about:blank"
    }
    "#);
}

#[tokio::test]
async fn problem_of_a_missing_token() {
    insta::assert_snapshot!(document(&Stage::guarded().get("/api/v1/runs").await), @r#"
    status: 401
    {
      "detail": "log in first, or send the admin token: Authorization: Bearer <token>",
      "status": 401,
      "title": "Unauthorized",
      "type": "about:blank"
    }
    "#);
}
