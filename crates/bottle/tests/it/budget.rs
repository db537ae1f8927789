//! Budgets of `serve`: kept by every run, told where people look, and counted once, whoever is killed in between.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;
use testkit::fake_forge::Room;
use testkit::model_server::ModelServer;
use testkit::part::{Part, require};
use testkit::wait::wait_for;

use crate::paid::{CALL, install_paid_agent, kit};
use crate::serving::{Serving, config_path};
use crate::support::{COMMIT, DONE, Scene};

const SELDOM: &str = "sweep_secs = 3600\n";

/// A scene whose agent talks to a model.
struct Paid {
    scene: Scene,
    model: ModelServer,
}

impl Paid {
    /// With more lines in the agent's manifest, below `[spend]`.
    fn new(spend: &str) -> Option<Self> {
        let scene = Scene::new()?;
        let model = install_paid_agent(&scene.person, spend);
        Some(Self { scene, model })
    }

    fn serve(self, budget: &str) -> (Serving, ModelServer) {
        let Self { scene, model } = self;
        (Serving::start(scene, &format!("{SELDOM}[budget]\n{budget}\n")), model)
    }

    fn close_gate(&self) {
        std::fs::write(kit(&self.scene.person).join("gate"), "").expect("the gate");
    }
}

fn open_gate(serving: &Serving) {
    std::fs::remove_file(kit(&serving.scene.person).join("gate")).expect("the gate");
}

pub(crate) fn get(serving: &Serving, path: &str) -> String {
    let mut stream = TcpStream::connect(serving.address).expect("a connection");
    let host = serving.address;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    text.split_once("\r\n\r\n").expect("a body").1.to_owned()
}

/// Asks for another run, as a member does.
fn ask_for_more(serving: &Serving) {
    let Serving { scene, .. } = serving;
    scene.forge.add_comment(Room::Issue, scene.issue, "alice", "More, please.");
    assert_eq!(serving.tell("issue_comment_created", Room::Issue, scene.issue), Some(202));
}

/// Replaces words in the configuration of a running server.
fn change_settings(serving: &Serving, from: &str, to: &str) {
    let path = config_path(&serving.scene);
    let text = std::fs::read_to_string(&path).expect("the configuration");
    assert!(text.contains(from), "{text}");
    std::fs::write(&path, text.replace(from, to)).expect("written");
    serving.signal("-HUP", &serving.pid().to_string());
}

fn wait_settled(serving: &Serving) {
    let open = "SELECT count(*) FROM spending WHERE settled_at IS NULL";
    wait_for("the spending to be settled", || (serving.count(open) == 0).then_some(()));
}

#[test]
fn a_budget_without_room_is_told_and_kept_until_it_is_raised() {
    let Some(paid) = Paid::new("") else { return };
    let (serving, _model) = paid.serve("run = { tokens = 1000 }\nissue = { tokens = 1100 }");
    serving.label();
    serving.wait("frozen");
    wait_settled(&serving);
    assert_eq!(serving.count("SELECT sum(tokens) FROM spending"), CALL);
    ask_for_more(&serving);
    let reason = serving.wait("waiting");
    let words = "the budget of issue 1, 1,100 tokens, has no room for another run";
    assert!(reason.starts_with(words), "{reason}");
    assert!(reason.contains("120 tokens are spent"), "{reason}");
    assert!(get(&serving, "/").contains(words), "the page says so");
    wait_for("the status comment", || {
        let comments = serving.scene.forge.comments();
        comments.iter().any(|it| it.body.contains("has no room for another run")).then_some(())
    });
    let report: Value = serde_json::from_str(&get(&serving, "/api/v1/spending")).expect("JSON");
    assert_eq!(report["issues"][0]["tokens"], CALL, "{report}");
    assert!(get(&serving, "/metrics").contains("bot_bottle_spent_today{unit=\"tokens\"} 120"));
    // The database knows of it an instant before the counter does.
    wait_for("the tokens to be counted", || {
        get(&serving, "/metrics").contains("\nbot_bottle_tokens_total 120\n").then_some(())
    });
    let metrics = get(&serving, "/metrics");
    assert!(metrics.contains("\nbot_bottle_uncounted_runs_total 0\n"), "{metrics}");
    assert!(!metrics.contains("bot_bottle_forge_calls_total{result=\"ok\"} 0\n"), "{metrics}");
    assert_eq!(serving.runs(), 1);
    change_settings(&serving, "tokens = 1100", "tokens = 5000");
    wait_for("the second run", || (serving.runs() == 2).then_some(()));
    serving.wait("frozen");
    wait_settled(&serving);
    assert_eq!(serving.count("SELECT sum(tokens) FROM spending"), 2 * CALL);
}

#[test]
fn two_runs_at_once_do_not_pass_a_budget_together() {
    let Some(paid) = Paid::new("") else { return };
    paid.close_gate();
    let second = paid.scene.forge.add_issue("Too", "More.", &["bot-bottle:worker"], &["bot1"]);
    let first = paid.scene.issue;
    let (serving, _model) = paid.serve("run = { tokens = 1000 }\nhost = { tokens = 1500 }");
    let event = "issue_opened_labeled_assigned-label_updated";
    for issue in [first, second] {
        assert_eq!(serving.tell(event, Room::Issue, issue), Some(202));
    }
    let states = || [first, second].map(|issue| serving.work_on(issue).unwrap_or_default());
    let held = wait_for("one to work and one to wait", || {
        let [one, other] = states();
        let is_held = |it: &(String, String)| it.0 == "waiting";
        let works = |it: &(String, String)| it.0 == "running";
        match (works(&one) && is_held(&other), works(&other) && is_held(&one)) {
            (true, _) => Some(other.1),
            (_, true) => Some(one.1),
            (false, false) => None,
        }
    });
    assert!(held.contains("is reserved by runs at work"), "{held}");
    open_gate(&serving);
    serving.wait_for_all(&[first, second]);
    wait_settled(&serving);
    assert_eq!(serving.count("SELECT sum(tokens) FROM spending"), 2 * CALL);
}

/// A run that began without a limit counts as the most of a run, or as what it has spent if that is more.
#[test]
fn a_budget_that_comes_while_a_run_without_a_limit_is_at_work_counts_it() {
    let Some(paid) = Paid::new("") else { return };
    paid.close_gate();
    let Paid { scene, model } = paid;
    let second = scene.forge.add_issue("Too", "More.", &[], &["bot1"]);
    let first = scene.issue;
    let serving = Serving::start(scene, &format!("{SELDOM}# budgets\n"));
    serving.label();
    serving.wait("running");
    wait_for("the call of the agent", || (!model.requests().is_empty()).then_some(()));
    let budget = "[budget]\nrun = { tokens = 50 }\nhost = { tokens = 150 }\n";
    change_settings(&serving, "# budgets\n", budget);
    let reserved = || {
        let report: Value = serde_json::from_str(&get(&serving, "/api/v1/spending")).expect("JSON");
        report["budgets"][0]["reserved"].as_u64()
    };
    wait_for("the run in the report", || (reserved() == Some(120)).then_some(()));
    serving
        .scene
        .forge
        .change_issue(second, |issue| issue.labels.push("bot-bottle:worker".to_owned()));
    let event = "issue_opened_labeled_assigned-label_updated";
    assert_eq!(serving.tell(event, Room::Issue, second), Some(202));
    let is_held = || serving.work_on(second).filter(|(state, _)| state == "waiting");
    let (_, reason) = wait_for("the second issue to wait", is_held);
    assert!(reason.contains("150 tokens, is reserved by runs at work"), "{reason}");
    assert!(reason.contains("120 tokens reserved"), "{reason}");
    open_gate(&serving);
    wait_for("the end of the first", || {
        serving.work_on(first).filter(|(state, _)| state == "frozen")
    });
}

#[test]
fn what_nobody_counted_counts_as_the_whole_reservation() {
    let Some(scene) = Scene::new() else { return };
    scene.person.agent("worker", "[egress]\nprofile = \"open\"\n");
    scene.person.script(&format!("{COMMIT}{DONE}"));
    let budget =
        format!("{SELDOM}[budget]\nrun = {{ tokens = 1000 }}\nissue = {{ tokens = 1500 }}\n");
    let serving = Serving::start(scene, &budget);
    serving.label();
    serving.wait("frozen");
    wait_settled(&serving);
    ask_for_more(&serving);
    let reason = serving.wait("waiting");
    assert!(reason.contains("1,000 tokens are spent"), "{reason}");
    let report: Value = serde_json::from_str(&get(&serving, "/api/v1/spending")).expect("JSON");
    let issue = &report["issues"][0];
    assert_eq!((&issue["uncounted"], &issue["reserved_tokens"]), (&1.into(), &1000.into()));
}

#[test]
fn an_agent_without_a_price_is_refused_by_name_where_dollars_are_limited() {
    let Some(paid) = Paid::new("") else { return };
    let (serving, model) = paid.serve("run = { usd = 5.0 }");
    serving.label();
    let reason = serving.wait("needs-attention");
    assert!(reason.contains("the agent 'worker' has no price"), "{reason}");
    assert!(reason.contains("input_price"), "{reason}");
    assert!(model.requests().is_empty(), "nothing was started");
    assert_eq!(serving.count("SELECT count(*) FROM spending"), 0, "nothing stays reserved");
}

#[test]
fn dollars_are_counted_by_the_prices_of_the_manifest() {
    let Some(paid) = Paid::new("input_price = 1000.0\noutput_price = 5000.0\n") else { return };
    let (serving, _model) = paid.serve("run = { usd = 5.0 }\nrepository = { usd = 5.1 }");
    serving.label();
    serving.wait("frozen");
    wait_settled(&serving);
    // 100 tokens in and 20 out.
    assert_eq!(serving.count("SELECT sum(micro_usd) FROM spending"), 200_000);
    ask_for_more(&serving);
    let reason = serving.wait("waiting");
    assert!(reason.contains("0.20 dollars are spent"), "{reason}");
    assert!(reason.contains("at 00:00 UTC"), "{reason}");
}

/// Killed at this moment, it spends once what one run spends.
#[track_caller]
fn counts_once_although_killed_at(moment: &str) {
    let Some(paid) = Paid::new("") else { return };
    let settings =
        format!("{SELDOM}[budget]\nrun = {{ tokens = 1000 }}\nhost = {{ tokens = 1000 }}\n");
    let Paid { scene, model } = paid;
    let mut serving = Serving::start_to_die_at(scene, moment, &settings);
    serving.label();
    serving.wait_for_death();
    serving.restart();
    // A reservation that was lost or doubled would leave no room for the run.
    serving.wait("frozen");
    wait_settled(&serving);
    assert_eq!(serving.count("SELECT count(*) FROM spending"), 1, "after {moment}");
    assert_eq!(serving.count("SELECT sum(tokens) FROM spending"), CALL, "after {moment}");
    assert_eq!((model.requests().len(), serving.pulls()), (1, 1), "after {moment}");
}

#[test]
fn killed_after_the_claim_it_counts_once() {
    counts_once_although_killed_at("claimed");
}

#[test]
fn killed_after_the_reservation_it_counts_once() {
    counts_once_although_killed_at("reserved");
}

#[test]
fn killed_after_the_run_was_created_it_counts_once() {
    counts_once_although_killed_at("created");
}

#[test]
fn killed_after_the_box_was_launched_it_counts_once() {
    counts_once_although_killed_at("launched");
}

#[test]
fn killed_after_the_box_ended_it_counts_once() {
    counts_once_although_killed_at("ended");
}

#[test]
fn killed_between_the_end_of_the_run_and_its_settlement_it_counts_once() {
    counts_once_although_killed_at("closed");
}

#[test]
fn a_run_over_midnight_counts_on_the_day_on_which_it_was_reserved() {
    let (Some(paid), Some(_)) = (Paid::new(""), require(Part::Faketime)) else { return };
    paid.close_gate();
    let (mut serving, _model) = paid.serve("run = { tokens = 1000 }\nhost = { tokens = 1100 }");
    serving.label();
    serving.wait("running");
    serving.restart_with_clock("+1d");
    open_gate(&serving);
    serving.wait("frozen");
    wait_settled(&serving);
    assert_eq!(
        serving.count("SELECT count(*) FROM spending WHERE day = substr(reserved_at, 1, 10)"),
        1
    );
    // The budget of the next day is whole.
    ask_for_more(&serving);
    wait_for("the second run", || (serving.runs() == 2).then_some(()));
    serving.wait("frozen");
    wait_settled(&serving);
    assert_eq!(serving.count("SELECT count(DISTINCT day) FROM spending"), 2);
}
