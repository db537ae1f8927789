//! The API keeps what its own document promises.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::super::api::document;
use super::stage::{Stage, key};

/// The one route of all actions.
const ACTION: &str = "/api/v1/bottles/{slug}/{action}";

/// The document as JSON.
fn described() -> Value {
    serde_json::to_value(document()).expect("a document")
}

/// Checks an answer against the schema that the document has for it.
#[track_caller]
fn check(document: &Value, path: &str, method: &str, status: StatusCode, body: &Value) {
    let found = &document["paths"][path][method]["responses"][status.as_str()]["content"];
    let kinds =
        found.as_object().unwrap_or_else(|| panic!("{method} {path} {status} is not described"));
    let schema = kinds.values().next().expect("a kind")["schema"].clone();
    let whole = json!({ "allOf": [schema], "components": document["components"] });
    let validator = jsonschema::validator_for(&whole).expect("a schema");
    let faults: Vec<String> =
        validator.iter_errors(body).map(|it| format!("{} at {}", it, it.instance_path)).collect();
    assert!(faults.is_empty(), "{method} {path}: {faults:?} in {body:#}");
}

#[tokio::test]
async fn every_answer_is_what_the_document_says() {
    let stage = Stage::guarded().furnished();
    let document = described();
    let run = stage.run_of("reviewed");
    stage.sign("reviewed");
    let mut seen = BTreeSet::new();
    for (path, asked) in [
        ("/api/v1/runs", "/api/v1/runs".to_owned()),
        ("/api/v1/runs", "/api/v1/runs?limit=2".to_owned()),
        ("/api/v1/runs/{slug}/{run}", format!("/api/v1/runs/reviewed/{run}")),
        ("/api/v1/runs/{slug}/{run}", format!("/api/v1/runs/busy/{}", stage.run_of("busy"))),
        (
            "/api/v1/runs/{slug}/{run}/log",
            format!("/api/v1/runs/reviewed/{run}/log?limit=20&after=4"),
        ),
        ("/api/v1/runs/{slug}/{run}/provenance", format!("/api/v1/runs/reviewed/{run}/provenance")),
        ("/api/v1/runs/{slug}/{run}/operations", format!("/api/v1/runs/reviewed/{run}/operations")),
        ("/api/v1/runs/{slug}/{run}/statements", format!("/api/v1/runs/reviewed/{run}/statements")),
        (
            "/api/v1/runs/{slug}/{run}/verification",
            format!("/api/v1/runs/reviewed/{run}/verification"),
        ),
        ("/api/v1/bottles", "/api/v1/bottles".to_owned()),
        ("/api/v1/bottles/{slug}", "/api/v1/bottles/evil".to_owned()),
        ("/api/v1/bottles/{slug}", "/api/v1/bottles/by-hand".to_owned()),
        ("/api/v1/issues", "/api/v1/issues".to_owned()),
        ("/api/v1/issues/{owner}/{repo}/{number}", "/api/v1/issues/acme/widget/7".to_owned()),
        ("/api/v1/events", "/api/v1/events?after=3".to_owned()),
        ("/api/v1/spending", "/api/v1/spending?day=2026-11-18".to_owned()),
    ] {
        let answer = stage.api("GET", &asked, "").await;
        assert_eq!(answer.status, StatusCode::OK, "{asked}: {}", answer.text);
        assert_eq!(answer.header("content-type"), "application/json", "{asked}");
        check(&document, path, "get", answer.status, &answer.json());
        seen.insert((path, "get"));
    }
    for (action, slug, body) in [
        ("freeze", "busy", ""),
        ("resume", "stuck", "{\"prompt\":\"go\"}"),
        ("destroy", "stuck", ""),
    ] {
        let answer = stage.api("POST", &format!("/api/v1/bottles/{slug}/{action}"), body).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{action}: {}", answer.text);
        assert_eq!(answer.json()["event"], action);
        check(&document, ACTION, "post", answer.status, &answer.json());
        seen.insert((ACTION, "post"));
    }
    let answer = stage.api("GET", "/api/v1/deliveries", "").await;
    assert_eq!(answer.json()["deliveries"].as_array().map(Vec::len), Some(3));
    check(&document, "/api/v1/deliveries", "get", answer.status, &answer.json());
    seen.insert(("/api/v1/deliveries", "get"));
    let paths = document["paths"].as_object().expect("paths");
    let all = paths.iter().flat_map(|(path, item)| {
        item.as_object()
            .expect("methods")
            .keys()
            .map(move |method| (path.as_str(), method.as_str()))
    });
    assert_eq!(all.collect::<BTreeSet<_>>(), seen, "every route was asked");
}

#[test]
fn every_operation_has_an_id_of_its_own() {
    let document = described();
    let paths = document["paths"].as_object().expect("paths");
    let operations = paths.values().flat_map(|item| item.as_object().expect("methods").values());
    let ids: Vec<&str> = operations.filter_map(|it| it["operationId"].as_str()).collect();
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(unique.len(), ids.len(), "{ids:?}");
    assert!(unique.contains("list_runs") && unique.contains("show_issue"), "{ids:?}");
}

#[tokio::test]
async fn the_signed_statements_of_a_run_can_be_fetched_and_verified() {
    let stage = Stage::guarded().furnished();
    let run = stage.run_of("reviewed");
    let path = |what: &str| format!("/api/v1/runs/reviewed/{run}/{what}");
    let missing = stage.api("GET", &path("statements"), "").await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND, "{}", missing.text);
    stage.sign("reviewed");
    let bundle = stage.api("GET", &path("statements"), "").await.json();
    let envelopes = bundle["envelopes"].as_array().expect("envelopes");
    assert!(!envelopes.is_empty(), "{bundle}");
    for envelope in envelopes {
        assert!(envelope["payloadType"].is_string(), "{envelope}");
        assert!(envelope["signatures"].as_array().is_some_and(|it| !it.is_empty()), "{envelope}");
    }
    let report = stage.api("GET", &path("verification"), "").await.json();
    assert_eq!(report["verified"], true, "{report:#}");
}

/// A path of the document, a request, its body and the status. `RUN` stands for a run that exists.
const REFUSALS: &[(&str, &str, &str, u16)] = &[
    ("/api/v1/runs", "/api/v1/runs?limit=0", "", 400),
    ("/api/v1/runs", "/api/v1/runs?limt=1", "", 400),
    ("/api/v1/runs", "/api/v1/runs?limit=1&limit=2", "", 400),
    ("/api/v1/events", "/api/v1/events?after=-1", "", 400),
    ("/api/v1/events", "/api/v1/events?after=18446744073709551615", "", 400),
    ("/api/v1/bottles/{slug}", "/api/v1/bottles/none", "", 404),
    ("/api/v1/bottles/{slug}", "/api/v1/bottles/stuck?x", "", 400),
    ("/api/v1/runs/{slug}/{run}/log", "/api/v1/runs/reviewed/RUN/log?limit=1", "", 400),
    ("/api/v1/issues/{owner}/{repo}/{number}", "/api/v1/issues/a/b/0", "", 400),
    ("/api/v1/issues/{owner}/{repo}/{number}", "/api/v1/issues/a/b/1", "", 404),
    (ACTION, "/api/v1/bottles/gone/freeze", "", 409),
    (ACTION, "/api/v1/bottles/stuck/resume", "{", 400),
    (ACTION, "/api/v1/bottles/stuck/resume", "{\"promt\":\"x\"}", 400),
    (ACTION, "/api/v1/bottles/stuck/resume", "", 409),
    (ACTION, "/api/v1/bottles/stuck/explode", "", 404),
];

#[tokio::test]
async fn every_refusal_is_a_problem_that_the_document_knows() {
    let stage = Stage::guarded().furnished();
    let document = described();
    let run = stage.run_of("reviewed");
    for (path, request, body, status) in REFUSALS {
        let method = if *path == ACTION { "post" } else { "get" };
        let request = request.replace("RUN", &run);
        let answer = stage.api(&method.to_uppercase(), &request, body).await;
        assert_eq!(answer.status.as_u16(), *status, "{request}: {}", answer.text);
        assert_eq!(answer.header("content-type"), "application/problem+json", "{request}");
        check(&document, path, method, answer.status, &answer.json());
        assert_eq!(answer.json()["status"], *status);
    }
}

#[tokio::test]
async fn the_document_is_served_and_is_the_one_of_the_code() {
    let stage = Stage::guarded();
    let served = stage.api("GET", "/api/v1/openapi.json", "").await.json();
    assert_eq!(served, described());
    assert_eq!(served["openapi"], "3.1.0");
    assert_eq!(served["components"]["securitySchemes"]["token"]["scheme"], "bearer");
}

#[tokio::test]
async fn a_list_is_read_to_its_end_in_parts() {
    let stage = Stage::guarded().furnished();
    for (path, name, field, whole) in [
        ("runs", "runs", "run", 7),
        ("bottles", "bottles", "slug", 8),
        ("issues", "issues", "status", 7),
    ] {
        let mut found = Vec::new();
        let mut next = String::new();
        loop {
            let asked = format!("/api/v1/{path}?limit=3&after={}", next.replace('/', "%2F"));
            let part = stage.api("GET", &asked, "").await.json();
            let list = part[name].as_array().expect("a list").clone();
            assert!(list.len() <= 3, "{asked}");
            found.extend(list);
            match part["next"].as_str() {
                Some(more) => next = more.to_owned(),
                None => break,
            }
        }
        assert_eq!(found.len(), whole, "{path}");
        assert!(found.iter().all(|one| one[field].is_string()), "{path}");
    }
}

#[tokio::test]
async fn events_go_on_where_they_were_left() {
    let stage = Stage::guarded().furnished();
    let first = stage.api("GET", "/api/v1/events?limit=5", "").await.json();
    let next = first["next"].as_u64().expect("a number");
    let second = stage.api("GET", &format!("/api/v1/events?after={next}"), "").await.json();
    assert_eq!(second["events"][0]["seq"].as_u64(), Some(next + 1));
    let known = stage.service.store.work_events(&key(1)).expect("events");
    assert!(!known.is_empty());
}

#[tokio::test]
async fn a_log_is_read_in_pieces() {
    let stage = Stage::guarded().furnished();
    let path = format!("/api/v1/runs/stuck/{}/log", stage.run_of("stuck"));
    let whole = stage.api("GET", &path, "").await.json();
    let (mut text, mut after) = (String::new(), 0);
    loop {
        let piece = stage.api("GET", &format!("{path}?limit=16&after={after}"), "").await.json();
        text += piece["text"].as_str().expect("text");
        let next = piece["next"].as_u64().expect("a number");
        if next == after {
            break;
        }
        after = next;
    }
    assert_eq!(Value::from(text), whole["text"]);
}
