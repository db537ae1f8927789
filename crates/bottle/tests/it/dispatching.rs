//! Work without an issue: dispatched at the command line, through the API, and by schedules.

use serde_json::{Value, json};
use testkit::wait::wait_for;

use crate::serving::Serving;
use crate::support::{COMMIT, DONE, Scene};

const ARGS: [&str; 6] = [
    "dispatch",
    "alice/hooks",
    "--agent",
    "worker",
    "--prompt",
    "# Sort the lists\n\nAll of them.",
];

/// A scene whose forge has no issue for the agent.
fn scene() -> Option<Scene> {
    let scene = Scene::new()?;
    scene.forge.close_issue(scene.issue);
    scene.person.script(&format!("{COMMIT}{DONE}"));
    Some(scene)
}

fn dispatched(serving: &Serving) -> Vec<(String, Option<i64>, String)> {
    let database = serving.database();
    let sql = "SELECT state, issue_number, problem FROM dispatch ORDER BY created_at";
    let mut statement = database.prepare(sql).expect("a statement");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    rows.expect("rows").map(|row| row.expect("a row")).collect()
}

/// Waits until the work on the one dispatched issue has come to a pull request.
fn wait_for_pull(serving: &Serving) -> u64 {
    let issue = wait_for("an issue", || {
        dispatched(serving).into_iter().find_map(|(state, issue, _)| {
            issue.filter(|_| state == "opened").and_then(|issue| u64::try_from(issue).ok())
        })
    });
    serving.wait_for_all(&[issue]);
    issue
}

#[test]
fn a_dispatch_becomes_an_issue_and_a_pull_request() {
    let Some(scene) = scene() else { return };
    let serving = Serving::start(scene, "sweep_secs = 3600\n");
    let output = serving.scene.person.run(&ARGS);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let issue = wait_for_pull(&serving);
    assert!(output.stdout.contains(&format!("alice/hooks#{issue}")), "{}", output.snapshot());
    let made = serving.scene.forge.issues().pop().expect("an issue");
    assert_eq!((made.number, made.title.as_str()), (issue, "Sort the lists"));
    assert_eq!(made.labels, ["bot-bottle:worker"]);
    assert_eq!((made.assignees, made.author.as_str()), (vec!["bot1".to_owned()], "bot1"));
    assert!(made.body.starts_with("<!-- bot-bottle:dispatch "), "{}", made.body);
    assert!(made.body.contains("All of them."), "{}", made.body);
    let pull = &serving.scene.forge.pulls()[0];
    assert!(pull.body.contains(&format!("Closes #{issue}")), "{}", pull.body);
}

#[test]
fn a_dispatch_waits_for_the_next_serve_where_none_runs() {
    let Some(scene) = scene() else { return };
    let output = scene.person.run(&[&ARGS[..], &["--key", "release-12"]].concat());
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stderr.contains("no bot-bottle serve runs"), "{}", output.snapshot());
    let again = scene.person.run(&[&ARGS[..], &["--key", "release-12", "--json"]].concat());
    let shown: Value = serde_json::from_str(&again.stdout).expect("a document");
    assert_eq!((&shown["state"], &shown["served"]), (&json!("pending"), &json!(false)));
    let serving = Serving::start(scene, "sweep_secs = 3600\n");
    wait_for_pull(&serving);
    assert_eq!(dispatched(&serving).len(), 1, "a key asks once");
    assert_eq!(serving.pulls(), 1);
}

#[test]
fn what_cannot_be_dispatched_says_why() {
    let Some(scene) = scene() else { return };
    let refused = |args: &[&str], words: &str| {
        let output = scene.person.run(args);
        assert_eq!(output.status, Some(2), "{}", output.snapshot());
        assert!(output.stderr.contains(words), "{}", output.snapshot());
    };
    refused(&["dispatch", "hooks", "--agent", "worker", "--prompt", "x"], "not owner/name");
    refused(
        &["dispatch", "alice/hooks", "--agent", "nobody", "--prompt", "x"],
        "no agent 'nobody'",
    );
    refused(&["dispatch", "alice/hooks", "--agent", "worker", "--prompt", " "], "prompt is empty");
    refused(&[&ARGS[..], &["--key", "a --> b"]].concat(), "cannot name a dispatch");
    let serving = Serving::start(scene, "sweep_secs = 3600\n");
    let person = &serving.scene.person;
    let output =
        person.run(&["dispatch", "alice/other", "--agent", "worker", "--prompt", "Do it."]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(output.stderr.contains("alice/other is not served"), "{}", output.snapshot());
    let output = person.run(&[&ARGS[..], &["--assignee", "carol"]].concat());
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(output.stderr.contains("'carol' is not a member"), "{}", output.snapshot());
    assert_eq!(serving.scene.forge.issues().len(), 1, "nothing was opened");
}

#[test]
fn a_serve_that_is_killed_while_it_opens_an_issue_opens_it_once() {
    for moment in ["dispatching", "dispatched"] {
        let Some(scene) = scene() else { return };
        let queued = scene.person.run(&ARGS);
        assert_eq!(queued.status, Some(0), "{}", queued.snapshot());
        let mut serving = Serving::start_to_die_at(scene, moment, "sweep_secs = 3600\n");
        serving.wait_for_death();
        let opened = usize::from(moment == "dispatched");
        assert_eq!(serving.scene.forge.issues().len(), 1 + opened, "{moment}");
        serving.restart();
        wait_for_pull(&serving);
        assert_eq!(serving.scene.forge.issues().len(), 2, "{moment}");
        assert_eq!(serving.pulls(), 1, "{moment}");
    }
}

fn scheduled(more: &str) -> String {
    format!(
        "sweep_secs = 3600\n[[schedule]]\nname = \"tidy\"\nrepo = \"alice/hooks\"\nagent = \"worker\"\n\
         prompt = \"Tidy up.\"\n{more}\n"
    )
}

/// Puts the mark of the schedule back, as if that time had been the last one.
fn last_due(serving: &Serving, hours_ago: i64) {
    wait_for("the mark", || (serving.count("SELECT count(*) FROM schedule") == 1).then_some(()));
    let at = host::clock::now() - jiff::SignedDuration::from_hours(hours_ago);
    let sql = "UPDATE schedule SET last_due = ?1";
    serving.database().execute(sql, [at.to_string()]).expect("written");
}

#[test]
fn a_schedule_asks_once_for_all_the_times_that_were_missed() {
    let Some(scene) = scene() else { return };
    let mut serving = Serving::start(scene, &scheduled("every = \"1h\""));
    last_due(&serving, 0);
    assert!(dispatched(&serving).is_empty(), "a new schedule counts from now on");
    serving.kill();
    last_due(&serving, 7);
    serving.restart();
    let issue = wait_for_pull(&serving);
    let made = serving.scene.forge.issues().pop().expect("an issue");
    assert_eq!((made.number, made.title.as_str()), (issue, "Tidy up."));
    assert!(made.body.ends_with("Dispatched by the schedule 'tidy'."), "{}", made.body);
}

#[test]
fn a_serve_that_is_killed_when_a_schedule_is_due_asks_once() {
    let Some(scene) = scene() else { return };
    let mut serving = Serving::start(scene, &scheduled("cron = \"0 0 1 1 *\""));
    last_due(&serving, 0);
    serving.kill();
    last_due(&serving, 800 * 24);
    serving.restart_to_die_at("scheduled");
    serving.wait_for_death();
    assert_eq!(dispatched(&serving).len(), 1);
    serving.restart();
    wait_for_pull(&serving);
    assert_eq!(serving.scene.forge.issues().len(), 2);
    assert_eq!((dispatched(&serving).len(), serving.pulls()), (1, 1));
    // A clock that is put back asks for nothing twice.
    serving.kill();
    last_due(&serving, 800 * 24);
    serving.restart();
    wait_for("the mark to move", || {
        let sql = "SELECT count(*) FROM schedule WHERE last_due LIKE '%-01-01T00:00:00Z'";
        (serving.count(sql) == 1).then_some(())
    });
    assert_eq!(dispatched(&serving).len(), 1);
}
