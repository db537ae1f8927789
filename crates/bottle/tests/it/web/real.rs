//! Real runs, as the page and the API show them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::client::{Events, ask, send};
use super::{HOSTILE, serving};
use testkit::wait::wait_for;

use crate::serving::Serving;
use crate::support::{COMMIT, DONE, Person, SLUG};

/// The newest run, once there is one.
pub(super) fn run_of(serving: &Serving) -> String {
    wait_for("a run", || {
        let runs = ask(serving.address, "GET", "/api/v1/runs", "").json();
        runs["runs"][0]["run"].as_str().map(str::to_owned)
    })
}

#[test]
fn a_real_run_is_shown_with_its_changes_and_actions_are_done() {
    let Some(serving) = serving(&format!("{COMMIT}{DONE}")) else { return };
    let at = serving.address;
    serving.label();
    serving.wait("frozen");
    let run = run_of(&serving);
    let page = ask(at, "GET", &format!("/runs/{SLUG}/{run}"), "").text;
    for words in ["+work", "do the work", "all done", "Operations", "launch"] {
        assert!(page.contains(words), "{words} is not in {page}");
    }
    let home = ask(at, "GET", "/", "").text;
    assert!(home.contains("&lt;script&gt;window.hurt=1") && !home.contains("<script>window"));
    assert!(!home.contains(['\u{1b}', '\u{202e}']), "they are shown as escapes");
    let bottle = ask(at, "GET", &format!("/api/v1/bottles/{SLUG}"), "").json();
    assert_eq!(bottle["issue"]["title"], HOSTILE, "a program gets it as it is");
    assert_eq!(bottle["status"], "frozen");
    let provenance = ask(at, "GET", &format!("/api/v1/runs/{SLUG}/{run}/provenance"), "").json();
    assert_eq!(provenance["run"], run.as_str());
    assert_eq!(provenance["operations_chain"]["status"], "whole");

    serving.scene.person.script(&format!("{COMMIT}{DONE}"));
    let prompt = "{\"prompt\":\"Once more.\"}";
    let answer = ask(at, "POST", &format!("/api/v1/bottles/{SLUG}/resume"), prompt);
    assert_eq!(answer.status, 202, "{answer:?}");
    wait_for("a second run", || {
        let list = ask(at, "GET", "/api/v1/runs", "").json();
        (list["runs"].as_array().map(Vec::len) == Some(2)).then_some(())
    });
    wait_for("its end", || serving.work().filter(|(state, _)| state == "frozen"));
    let answer = ask(at, "POST", &format!("/api/v1/bottles/{SLUG}/destroy"), "");
    assert_eq!(answer.status, 202, "{answer:?}");
    serving.wait("destroyed");
    let again = ask(at, "POST", &format!("/api/v1/bottles/{SLUG}/destroy"), "");
    assert_eq!(again.status, 409);
    let log = std::fs::read_to_string(serving.scene.person.hermetic.work().join("serve.log"))
        .expect("a log");
    let actions = log.lines().filter(|line| {
        let line: serde_json::Value = serde_json::from_str(line).expect("every line is JSON");
        line["message"] == "user action"
    });
    assert_eq!(actions.count(), 2, "{log}");
    assert!(!log.contains(super::TOKEN), "the log has no secrets");
}

#[test]
fn a_log_is_followed_as_it_grows_and_where_it_was_left() {
    let script = "[[step]]\nrun = \"echo the first words; sleep 2\"\n\
                  [[step]]\nrun = \"sleep 3; printf 'then \\\\033[31mred\\\\n'\"\n\
                  [[step]]\nrun = \"echo the last words\"\n";
    let Some(serving) = serving(&format!("{script}{DONE}")) else { return };
    serving.label();
    let path = format!("/runs/{SLUG}/{}/live", run_of(&serving));
    let mut events = Events::open(serving.address, &path, None);
    let mut seen = String::new();
    let mut last = String::new();
    while !seen.contains("the first words") {
        let event = events.next().expect("more");
        seen += &event.data;
        last = event.id;
    }
    assert!(!seen.contains("the last words"), "it is told while it happens");
    drop(events);
    let mut events = Events::open(serving.address, &path, Some(&last));
    let mut rest = String::new();
    loop {
        let event = events.next().expect("more");
        if event.name == "end" {
            break;
        }
        rest += &event.data;
    }
    assert!(rest.contains("the last words"), "{rest}");
    assert!(!rest.contains('\u{1b}'), "{rest}");
    let log = ask(
        serving.address,
        "GET",
        &path.replace("/runs/", "/api/v1/runs/").replace("/live", "/log"),
        "",
    )
    .json();
    let whole = log["text"].as_str().expect("text");
    let told = |data: &str| data.matches("the last words").count();
    assert_eq!(told(&rest), told(whole), "nothing is told twice and nothing is left out");
}

#[test]
fn an_agent_is_frozen_by_an_action() {
    let Some(serving) = serving("[[step]]\nrun = \"echo begun; sleep 600\"\n") else { return };
    serving.label();
    let run = run_of(&serving);
    wait_for("its first words", || {
        let log = ask(serving.address, "GET", &format!("/api/v1/runs/{SLUG}/{run}/log"), "").json();
        log["text"].as_str().filter(|text| text.contains("begun")).map(drop)
    });
    let answer = ask(serving.address, "POST", &format!("/api/v1/bottles/{SLUG}/freeze"), "");
    assert_eq!(answer.status, 202, "{answer:?}");
    wait_for("its end", || {
        serving.work().filter(|(state, _)| state != "running" && state != "claimed")
    });
    let deliveries = ask(serving.address, "GET", "/api/v1/deliveries", "").json();
    let wish =
        deliveries["deliveries"].as_array().and_then(|list| list.last()).expect("it").clone();
    assert_eq!((wish["source"].as_str(), wish["event"].as_str()), (Some("page"), Some("freeze")));
}

#[test]
fn strangers_are_told_nothing_by_the_real_server() {
    let Some(serving) = serving(COMMIT) else { return };
    let at = serving.address;
    assert_eq!(send(at, "GET", "/healthz", "", "").text, "ok\n");
    assert_eq!(send(at, "GET", "/readyz", "", "").status, 200);
    let home = send(at, "GET", "/", "", "");
    assert_eq!((home.status, home.header("location")), (303, Some("/login?next=/")));
    assert_eq!(send(at, "GET", "/api/v1/issues", "", "").status, 401);
    assert_eq!(send(at, "POST", "/api/v1/bottles/x/destroy", "", "").status, 401);
    assert_eq!(send(at, "GET", "/../../etc/passwd", "", "").status, 303);
    let raw = send(at, "GET", "/login", "", "");
    assert!(
        raw.header("content-security-policy").is_some_and(|it| it.contains("default-src 'none'"))
    );
}

#[test]
fn a_stranger_who_asks_under_another_name_is_not_answered() {
    let Some(serving) = serving(COMMIT) else { return };
    let mut stream = TcpStream::connect(serving.address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(300))).expect("a limit");
    let request = b"GET /login HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    stream.write_all(request).expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    assert!(text.starts_with("HTTP/1.1 421 "), "{text}");
}

#[test]
fn a_form_that_trickles_in_is_cut_off() {
    let Some(serving) = serving(COMMIT) else { return };
    let mut stream = TcpStream::connect(serving.address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(300))).expect("a limit");
    let head = format!(
        "POST /login HTTP/1.1\r\nHost: {}\r\nContent-Length: 100\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\nadmin_",
        serving.address
    );
    stream.write_all(head.as_bytes()).expect("sent");
    let mut first = [0; 12];
    stream.read_exact(&mut first).expect("an answer");
    assert_eq!(&first, b"HTTP/1.1 408");
}

#[test]
fn nothing_is_served_to_everybody_without_a_login() {
    let Some(person) = Person::new() else { return };
    let path = person.home().join("open.toml");
    std::fs::write(&path, "listen = \"0.0.0.0:0\"\n").expect("written");
    let output = person.run(&["serve", "--config", path.to_str().expect("a path")]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("would be open to everyone"), "{}", output.stderr);
}

#[test]
fn what_the_document_of_the_api_rules_out_is_refused() {
    let Some(serving) = serving(DONE) else { return };
    let at = serving.address;
    for (day, status) in
        [("2026-11-18", 200), ("2026-02-30", 404), ("0000-00-00", 404), ("today", 400), ("", 400)]
    {
        let answer = ask(at, "GET", &format!("/api/v1/spending?day={day}"), "");
        assert_eq!(answer.status, status, "{day}: {answer:?}");
    }
    let wanted = serde_json::json!({"repo": "alice/hooks", "agent": "worker", "prompt": "Do it."});
    let long = "x".repeat(65);
    let wrong = [
        ("agent", serde_json::json!(long)),
        ("assignee", serde_json::json!("")),
        ("assignee", serde_json::json!(long)),
        ("bottles", serde_json::json!([long])),
        ("bottles", serde_json::json!([""])),
        ("key", serde_json::json!("a--b")),
        ("repo", serde_json::json!(format!("alice/{}", "x".repeat(200)))),
        ("title", serde_json::json!("x".repeat(401))),
    ];
    for (field, value) in wrong {
        let mut body = wanted.clone();
        body[field] = value;
        let answer = ask(at, "POST", "/api/v1/dispatches", &body.to_string());
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
    }
    let answer = ask(at, "POST", "/api/v1/dispatches", &wanted.to_string());
    assert_eq!(answer.status, 202, "{answer:?}");
}
