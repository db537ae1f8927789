//! Records of syncs: their order, whose they are, what counts as missed, and what the user is notified about.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use testkit::hermetic::Output;
use testkit::part::{Part, require};
use testkit::repo::Fork;
use testkit::wait::wait_until;

use crate::support::{GATE, MERGE, Person};
use crate::train::train;

const STUCK: &str = "[[step]]\nstuck = \"Which line?\\n\"\n";

fn rows(person: &Person, flags: &[&str]) -> Vec<Value> {
    let output =
        person.hermetic.run(&mut person.forklift(&[&["status", "--json"], flags].concat()));
    serde_json::from_str(&output.stdout).expect("JSON")
}

fn row_of(person: &Person, branch: &str, flags: &[&str]) -> Value {
    let rows = rows(person, flags);
    rows.iter().find(|row| row["branch"] == branch).unwrap_or_else(|| panic!("{rows:?}")).clone()
}

fn sync(person: &Person, flags: &[&str]) -> Output {
    person.hermetic.run(&mut person.alone(flags))
}

fn lose_upstream(person: &Person) {
    person.fork.checkout.git(&["remote", "set-url", "upstream", "/nowhere/gone"]);
}

/// The same command line under a clock that is ahead by more than a year.
fn with_clock_ahead(person: &Person, command: &Command) -> Output {
    let mut faked = person.hermetic.command("faketime");
    faked.args(["-f", "+400d"]).arg(command.get_program()).args(command.get_args());
    faked.current_dir(person.fork.checkout.dir()).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    person.hermetic.run(&mut faked)
}

#[test]
fn a_clock_that_was_ahead_stops_no_later_publication_and_is_not_believed() {
    let (Some(person), Some(_)) = (Person::new(), require(Part::Faketime)) else { return };
    let output = with_clock_ahead(&person, &person.alone(&[]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let row = row_of(&person, "main", &["--max-days", "3"]);
    assert_eq!(row["last_good"]["at"], Value::Null, "{row}");
    assert!(row["overdue"].as_str().expect("text").contains("the clock was ahead"), "{row}");
    for text in ["1\n2\n3\n", "1\n2\n3\n4\n"] {
        person.fork.upstream_commit("upstream.txt", text, "more");
        let output = sync(&person, &[]);
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        assert!(output.stderr.contains("renewing"), "{}", output.stderr);
    }
    let row = row_of(&person, "main", &["--max-days", "3"]);
    assert_eq!((&row["overdue"], &row["missed"]), (&Value::Null, &json!(0)), "{row}");
    assert_ne!(row["last_good"]["at"], Value::Null, "{row}");
}

#[test]
fn a_sync_of_a_clock_that_was_ahead_does_not_hide_those_that_fail_since() {
    let (Some(person), Some(_)) = (Person::new(), require(Part::Faketime)) else { return };
    assert_eq!(with_clock_ahead(&person, &person.alone(&[])).status, Some(0));
    lose_upstream(&person);
    for _ in 0..2 {
        assert_eq!(sync(&person, &[]).status, Some(1));
    }
    let row = row_of(&person, "main", &[]);
    assert_eq!(row["missed"], 2, "{row}");
    assert!(row["blocked"].as_str().expect("text").contains("cannot fetch"), "{row}");
}

#[test]
fn a_sync_of_one_branch_says_nothing_about_another() {
    let Some(person) = Person::new() else { return };
    for repo in [&person.fork.origin, &person.fork.upstream] {
        repo.git(&["branch", "dev", "main"]);
    }
    let output = sync(&person, &["--main-branch", "dev", "--no-push"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(sync(&person, &[]).status, Some(0));
    person.fork.origin.git(&["update-ref", "refs/heads/main", &person.published()[0]]);
    let output = train(&person, MERGE, &[]);
    assert!(output.stdout.contains("nothing to do"), "{}", output.snapshot());
    let dev = row_of(&person, "dev", &["--max-days", "3"]);
    assert_eq!(dev["last_good"], Value::Null, "{dev}");
    lose_upstream(&person);
    for _ in 0..2 {
        assert_eq!(sync(&person, &[]).status, Some(1));
    }
    assert_eq!(row_of(&person, "dev", &[])["missed"], 0);
    assert_eq!(row_of(&person, "main", &[])["missed"], 2);
}

#[test]
fn a_sync_that_was_killed_in_a_container_is_seen_from_every_other_one() {
    let Some(person) = Person::new() else { return };
    // Numbers of processes begin again in each, and the boot is the same.
    let contained = |command: &Command| {
        let mut bwrap = person.hermetic.command("bwrap");
        bwrap.args(["--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "--"]);
        bwrap.arg(command.get_program()).args(command.get_args());
        bwrap.current_dir(person.fork.checkout.dir());
        bwrap
    };
    for _ in 0..2 {
        let mut command = contained(&person.alone(&[]));
        let output = person.hermetic.run(command.env("BOTTLEWORKS_FAILPOINT", "sync-begun"));
        assert_ne!(output.status, Some(0), "{}", output.snapshot());
    }
    let output = person.hermetic.run(&mut contained(&person.forklift(&["status"])));
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(output.stdout.contains("2 syncs in a row"), "{}", output.stdout);
}

/// A command that appends what it is notified about to a file, and the file.
fn notes(person: &Person) -> (String, PathBuf) {
    let file = person.hermetic.root().join("notes");
    fs::write(&file, "").expect("written");
    (format!("cat >> {}", file.display()), file)
}

fn count(file: &PathBuf) -> usize {
    fs::read_to_string(file).expect("the notes").lines().count()
}

#[test]
fn a_result_that_waits_for_a_person_is_missed_once_and_notified_about_once() {
    let Some(person) = Person::with(|hermetic| Fork::new(hermetic).conflicting_merge()) else {
        return;
    };
    let (command, file) = notes(&person);
    for _ in 0..3 {
        let output = person.run(STUCK, &["--notify-cmd", &command]);
        assert_eq!(output.status, Some(4), "{}", output.snapshot());
    }
    assert_eq!(count(&file), 1);
    let row = row_of(&person, "main", &[]);
    assert_eq!((&row["missed"], &row["overdue"]), (&json!(1), &Value::Null), "{row}");
    assert_ne!(row["blocked"], Value::Null, "{row}");
}

#[test]
fn a_failure_is_notified_about_until_that_succeeds() {
    let Some(person) = Person::new() else { return };
    let (command, file) = notes(&person);
    lose_upstream(&person);
    assert_eq!(sync(&person, &[]).status, Some(1));
    assert_eq!(sync(&person, &["--notify-cmd", "exit 75"]).status, Some(1));
    for _ in 0..2 {
        assert_eq!(sync(&person, &["--notify-cmd", &command]).status, Some(1));
        assert_eq!(count(&file), 1);
    }
}

fn end(child: &mut Child) -> Option<i32> {
    wait_until("its end", || child.try_wait().expect("it can be asked").is_some());
    child.wait().expect("it can be asked").code()
}

#[test]
fn a_timer_that_comes_while_a_sync_is_at_work_misses_nothing() {
    let Some(person) = Person::new() else { return };
    let (command, file) = notes(&person);
    let mut child = person.start(&format!("{GATE}{MERGE}"), &[]);
    person.wait_for_box(&mut child);
    for _ in 0..2 {
        let output = sync(&person, &["--wait", "0", "--notify-cmd", &command]);
        assert_eq!(output.status, Some(1), "{}", output.snapshot());
        assert!(output.stderr.contains("is at work"), "{}", output.stderr);
    }
    assert_eq!((rows(&person, &[]).len(), count(&file)), (1, 0));
    assert_eq!(row_of(&person, "main", &[])["missed"], 0);
    person.open_gate(&person.only_run());
    assert_eq!(end(&mut child), Some(0));
    let row = row_of(&person, "main", &["--max-days", "1"]);
    assert_eq!((&row["missed"], &row["overdue"]), (&json!(0), &Value::Null), "{row}");
}

#[test]
fn a_fork_that_a_stopped_list_did_not_reach_has_missed_a_sync() {
    let Some(person) = Person::new() else { return };
    let second = person.hermetic.root().join("second");
    let checkout = person.fork.checkout.dir();
    let mut copy = person.hermetic.command("cp");
    assert!(person.hermetic.run(copy.arg("-r").arg(checkout).arg(&second)).success());
    let [first, second] = [checkout, &second].map(|it| it.to_str().expect("UTF-8").to_owned());
    let gate = format!("{GATE}{MERGE}");
    let mut command = person.command(&gate, &["--all", &first, &second]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("forklift starts");
    person.wait_for_box(&mut child);
    let mut kill = person.hermetic.command("kill");
    assert!(person.hermetic.run(kill.arg(child.id().to_string())).success());
    assert_eq!(end(&mut child), Some(143));
    let rows = rows(&person, &[]);
    let row = rows.iter().find(|row| row["fork"] == second.as_str());
    let row = row.unwrap_or_else(|| panic!("{rows:?}"));
    assert!(row["blocked"].as_str().expect("text").contains("not begun"), "{row}");
    assert_eq!(row["missed"], 1);
}

#[test]
fn what_was_good_is_known_after_its_run_was_removed() {
    let Some(person) = Person::new() else { return };
    assert_eq!(sync(&person, &[]).status, Some(0));
    let good = row_of(&person, "main", &[])["last_good"]["at"].clone();
    let prune = ["prune", "--older-than", "0d", "--keep", "0", "--yes"];
    let output = person.hermetic.run(&mut person.forklift(&prune));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(person.runs().is_empty(), "{}", output.snapshot());
    person.fork.upstream_commit("upstream.txt", "1\n2\n3\n", "third");
    lose_upstream(&person);
    assert_eq!(sync(&person, &[]).status, Some(1));
    let row = row_of(&person, "main", &[]);
    assert_ne!((&good, &row["last_good"]["at"]), (&Value::Null, &Value::Null), "{row}");
}

#[test]
fn a_forgotten_fork_comes_back_with_every_command_that_syncs_it() {
    for words in [["publish"], ["retry"]] {
        let Some(person) = Person::new() else { return };
        assert_eq!(sync(&person, &["--no-push"]).status, Some(0));
        let folder = person.fork.checkout.dir().to_str().expect("UTF-8").to_owned();
        let forget = ["status", "--forget", &folder];
        assert_eq!(person.hermetic.run(&mut person.forklift(&forget)).status, Some(0));
        assert!(rows(&person, &[]).is_empty());
        let output = person.hermetic.run(&mut person.forklift(&words));
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        assert_eq!(rows(&person, &[]).len(), 1, "{words:?}");
    }
}

#[test]
fn a_retry_that_fails_before_it_has_a_run_is_seen() {
    let Some(person) = Person::new() else { return };
    assert_eq!(sync(&person, &["--no-push"]).status, Some(0));
    lose_upstream(&person);
    for _ in 0..2 {
        assert_eq!(person.hermetic.run(&mut person.forklift(&["retry"])).status, Some(1));
    }
    assert_eq!(row_of(&person, "main", &[])["missed"], 2);
}

#[test]
fn a_withdrawn_branch_takes_the_runs_with_it_that_pushed_to_it_before() {
    let Some(person) = Person::new() else { return };
    assert_eq!(sync(&person, &[]).status, Some(0));
    person.fork.upstream_commit("upstream.txt", "1\n2\n3\n", "third");
    assert_eq!(sync(&person, &[]).status, Some(0));
    let output = person.hermetic.run(&mut person.forklift(&["withdraw", "--yes"]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(person.published().is_empty());
    let row = row_of(&person, "main", &[]);
    assert_eq!((&row["last_good"], &row["published"]), (&Value::Null, &Value::Null), "{row}");
}

#[test]
fn a_branch_that_people_deleted_is_not_shown_as_published() {
    let Some(person) = Person::new() else { return };
    assert_eq!(sync(&person, &[]).status, Some(0));
    let published = row_of(&person, "main", &[]);
    let branch = person.published().pop().expect("a branch");
    assert_eq!(published["published"], branch.trim_start_matches("refs/heads/"));
    person.fork.origin.git(&["update-ref", "-d", &branch]);
    let fetch = person.hermetic.run(&mut person.forklift(&["changelog"]));
    assert_eq!(fetch.status, Some(0), "{}", fetch.snapshot());
    let row = row_of(&person, "main", &[]);
    assert_eq!(row["published"], Value::Null, "{row}");
    let folder = person.fork.checkout.dir().display().to_string();
    assert_eq!(row["next"], format!("forklift -C {folder}"), "{row}");
}
