//! The goals of the forge document, one by one.

use serde_json::json;
use testkit::fake_forge::Room;

use crate::support::{COMMIT, DONE, Person, SLUG, Scene};

#[test]
fn goal_1_headless_start_and_resume_ask_nothing_and_return_the_agents_status() {
    let Some(person) = Person::new() else { return };
    let output = person.start("[[step]]\nexit = 7\n", &["--label", "seven"]);
    assert_eq!(output.status, Some(7), "{}", output.snapshot());
    let output = person.resume("seven", "[[step]]\nexit = 0\n");
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let output = person.resume("seven", "[[step]]\nexit = 3\n");
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
}

#[test]
fn goal_2_only_an_issue_assigned_to_a_member_and_labelled_with_the_agent_is_worked_on() {
    let Some(mut scene) = Scene::new() else { return };
    scene.issue = scene.forge.add_issue("No label", "", &[], &["bot1"]);
    let output = scene.start(DONE);
    assert_eq!(output.status, Some(125), "{}", output.snapshot());
    assert!(output.stderr.contains("bot-bottle:worker"), "{}", output.stderr);
    scene.issue = scene.forge.add_issue("No member", "", &["bot-bottle:worker"], &["carol"]);
    let output = scene.start(DONE);
    assert_eq!(output.status, Some(125), "{}", output.snapshot());
    assert!(output.stderr.contains("member of the organisation"), "{}", output.stderr);
    assert!(!scene.person.home().join("cellar").exists());
    scene.issue = 1;
    assert!(scene.start_ok(DONE).stderr.contains("organisation 'bot-bottle'"));
}

#[test]
fn goal_3_the_agent_talks_to_a_sidecar_and_sees_neither_token_nor_endpoints() {
    let Some(scene) = Scene::new() else { return };
    let script =
        "[[step]]\nrun = \"forge read-issue 1 | grep 'What is wanted' && forge comment 1 hello\"\n\
                  [[step]]\nrun = \"env | grep -i forge_ && exit 9 || true\"\n"
            .to_owned();
    scene.start_ok(&(script + DONE));
    assert_eq!(scene.forge.comments().len(), 1);
    assert_eq!(scene.forge.comments()[0].body, "hello");
}

#[test]
fn goal_4_reads_go_anywhere_and_writes_go_to_the_assigned_issue_and_its_pull_request() {
    let Some(scene) = Scene::new() else { return };
    let other = scene.forge.add_issue("Other", "Elsewhere.", &[], &[]);
    let script = format!(
        "[[step]]\nrun = \"forge read-issue {other} | grep Elsewhere\"\n\
         [[step]]\nrun = \"forge comment {other} no\"\nexpect = 3\n\
         [[step]]\nrun = \"forge describe {other} no\"\nexpect = 3\n\
         [[step]]\nrun = \"forge comment 1 yes\"\n"
    );
    scene.start_ok(&(script + DONE));
    assert_eq!(scene.forge.comments().len(), 1);
    let said = scene.sentences();
    assert!(said.contains(&format!("refused comment to #{other}: out of scope")), "{said:?}");
}

#[test]
fn goal_5_signal_done_is_the_word_and_without_it_the_watchdog_flag_is_up() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let first = scene.provenance();
    assert_eq!(first["done"]["status"], "success");
    assert_eq!(first["watchdog_fired"], false);
    let output = scene.resume(COMMIT);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let second = scene.provenance();
    assert_eq!(second["watchdog_fired"], true);
    assert_eq!(second["watchdog_reason"], "ended-without-signal");
    assert_eq!(second["complete"], false);
}

#[test]
fn goal_6_provenance_is_complete_and_nothing_of_it_is_posted_to_the_forge() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let document = scene.provenance();
    assert_eq!(document["agent"], "worker");
    assert_eq!(document["slug"], SLUG);
    assert_eq!(document["exit"]["code"], 0);
    assert_eq!(document["exit"]["class"], "done");
    assert_eq!(document["gitleaks"]["status"], "not_run");
    assert_eq!(document["operations_chain"]["status"], "whole");
    assert_eq!(document["complete"], true, "{document:#}");
    assert_eq!(document["commits"]["new"].as_array().map(Vec::len), Some(1));
    for name in
        ["timing", "egress_summary", "model_usage", "operations", "bottles", "watchdog_fired"]
    {
        assert!(document.get(name).is_some(), "{name}");
    }
    assert!(scene.sentences().contains(&"signalled done: success".to_owned()));
    assert_eq!(scene.forge.comments().len(), 0);
    let body = &scene.forge.pulls()[0].body;
    assert!(!body.contains(SLUG) && !body.contains("gitleaks"), "{body}");
    let run = document["run"].as_str().expect("a run").to_owned();
    assert_eq!(scene.person.provenance(&run)["run"], document["run"]);
}

#[test]
fn goal_7_forge_state_is_in_a_database_and_survives() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    assert!(scene.person.home().join("bot-bottle.db").exists());
    let again = scene.start(DONE);
    assert_eq!(again.status, Some(125), "{}", again.snapshot());
    assert!(again.stderr.contains("orchestrate resume --slug"), "{}", again.stderr);
    let rows = scene.person.json(&["orchestrate", "status"]);
    assert_eq!(rows[0]["status"], "frozen");
    assert_eq!(scene.person.run(&["destroy", SLUG]).status, Some(0));
    assert_eq!(scene.person.json(&["orchestrate", "status"]), json!([]));
}

#[test]
fn goal_8_status_lists_active_bottles_with_the_pages_of_issue_and_pull_request() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let rows = scene.person.json(&["orchestrate", "status"]);
    let url = scene.forge.url();
    let pull = scene.forge.pulls()[0].number;
    assert_eq!(rows[0]["issue_url"], format!("{url}/alice/hooks/issues/1"));
    assert_eq!(rows[0]["pull_url"], format!("{url}/alice/hooks/pulls/{pull}"));
    let table = scene.person.run(&["orchestrate", "status"]).stdout;
    assert!(table.contains(SLUG) && table.contains("/issues/1"), "{table}");
}

#[test]
fn goal_9_all_parts_together_from_issue_to_pull_request_and_back() {
    let Some(scene) = Scene::new() else { return };
    let output = scene.start_ok(&format!("{COMMIT}{DONE}"));
    let pulls = scene.forge.pulls();
    assert_eq!(pulls.len(), 1);
    assert!(pulls[0].body.contains("Closes #1"), "{}", pulls[0].body);
    assert!(output.stdout.contains(&format!("#{}", pulls[0].number)), "{}", output.stdout);
    scene.forge.add_comment(Room::Pull, pulls[0].number, "carol", "please add a line");
    let number = pulls[0].number;
    let more = format!("[[step]]\nrun = \"forge comment {number} added\"\n{COMMIT}{DONE}");
    let output = scene.resume(&more);
    assert_eq!(output.status, Some(0), "{}\n{}", output.snapshot(), scene.log());
    assert_eq!(scene.forge.pulls().len(), 1);
    assert_eq!(scene.forge.comments().last().map(|it| it.body.clone()), Some("added".to_owned()));
    let tip = scene.published().expect("published");
    assert_eq!(scene.provenance()["commits"]["tip"], tip);
}
