//! Several forks with one command: each is done, one summary at the end, and the worst status.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use testkit::hermetic::{Hermetic, Output};
use testkit::repo::Fork;

use crate::support::{MERGE, Person};
use crate::verdicts;

/// A person with more than one fork.
struct Keeper {
    person: Person,
    others: Vec<Fork>,
}

impl Keeper {
    fn new(make: impl Fn(&Hermetic) -> Vec<Fork>) -> Option<Self> {
        let person = Person::new()?;
        let others = make(&person.hermetic);
        Some(Self { person, others })
    }

    fn folders(&self) -> Vec<PathBuf> {
        let all = std::iter::once(&self.person.fork).chain(&self.others);
        all.map(|fork| fork.checkout.dir().to_path_buf()).collect()
    }

    fn command(&self, folders: &[PathBuf], script: &str, flags: &[&str]) -> Command {
        let mut command = self.person.command(script, flags);
        command.current_dir(self.person.hermetic.root()).arg("--all").args(folders);
        command
    }

    fn run(&self, folders: &[PathBuf], flags: &[&str]) -> Output {
        self.person.hermetic.run(&mut self.command(folders, MERGE, flags))
    }
}

/// Two good forks with one between them that has no upstream.
fn one_bad() -> Option<Keeper> {
    Keeper::new(|hermetic| {
        let bad = Fork::named(hermetic, "bad");
        bad.checkout.git(&["remote", "remove", "upstream"]);
        vec![bad, Fork::named(hermetic, "last one").clean_merge()]
    })
}

fn published(fork: &Fork) -> usize {
    let args = ["for-each-ref", "--format=%(refname)", "refs/heads/forklift"];
    fork.origin.git(&args).lines().count()
}

#[test]
fn one_fork_that_fails_does_not_keep_the_others_from_being_done() {
    let Some(keeper) = one_bad() else { return };
    let output = keeper.run(&keeper.folders(), &[]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert_eq!(published(&keeper.person.fork), 1);
    assert_eq!(published(&keeper.others[1]), 1);
    let table: Vec<&str> =
        output.stdout.lines().skip_while(|line| !line.trim_start().starts_with("FORK ")).collect();
    assert_eq!(table.len(), 4, "{}", output.stdout);
    assert!(table[1].contains("forklift/fork_"), "{}", table[1]);
    assert!(table[2].contains("no remote 'upstream'"), "{}", table[2]);
    assert!(table[3].contains("last one") && table[3].contains("verified"), "{}", table[3]);
}

#[test]
fn the_summary_is_the_last_event() {
    let Some(keeper) = one_bad() else { return };
    let output = keeper.run(&keeper.folders(), &["--json"]);
    let events: Vec<Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let last = events.last().expect("events");
    assert_eq!((&last["event"], &last["status"]), (&"summary".into(), &2.into()));
    let statuses: Vec<_> =
        last["forks"].as_array().expect("rows").iter().map(|row| row["status"].as_u64()).collect();
    assert_eq!(statuses, [Some(0), Some(2), Some(0)]);
    assert_eq!(last["forks"][0]["verdict"]["kind"], "publish");
    assert!(last["forks"][1]["run"].is_null());
}

#[test]
fn the_summary_of_a_fork_says_what_its_own_run_says() {
    let Some(person) = verdicts::person() else { return };
    let drop_hunk = verdicts::evil("git checkout -q HEAD^1 -- f2.txt");
    let keeper = Keeper { person, others: Vec::new() };
    let mut command = keeper.command(&keeper.folders(), &drop_hunk, &["--json"]);
    let output = keeper.person.hermetic.run(&mut command);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let events: Vec<Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let verdict = events.iter().find(|event| event["event"] == "verdict").expect("a verdict");
    let summary = events.last().expect("events");
    assert_eq!(summary["forks"][0]["words"], verdict["words"]);
    let words = summary["forks"][0]["words"].as_str().expect("words");
    assert!(words.contains("to look at first") && !words.contains("kept"), "{words}");
}

#[test]
fn a_list_file_names_forks_relative_to_itself() {
    let Some(keeper) = Keeper::new(|hermetic| vec![Fork::named(hermetic, "second").clean_merge()])
    else {
        return;
    };
    let list = keeper.person.hermetic.work().join("forks.txt");
    let first = keeper.person.fork.checkout.dir().display();
    std::fs::write(&list, format!("# mine\n\n{first}\nsecond\n")).expect("written");
    let output = keeper.run(&[format!("@{}", list.display()).into()], &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!((published(&keeper.person.fork), published(&keeper.others[0])), (1, 1));
}

#[test]
fn a_list_that_is_missing_or_empty_is_told() {
    let Some(keeper) = Keeper::new(|_| Vec::new()) else { return };
    let output = keeper.run(&["@/no/such/list".into()], &[]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("/no/such/list"), "{}", output.stderr);
    let list = keeper.person.hermetic.root().join("empty");
    std::fs::write(&list, "# none\n").expect("written");
    let output = keeper.run(&[format!("@{}", list.display()).into()], &[]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("names no fork"), "{}", output.stderr);
}

#[test]
fn the_worst_status_is_the_one_that_is_told() {
    let Some(keeper) = Keeper::new(|hermetic| vec![Fork::named(hermetic, "quiet")]) else { return };
    let stuck = "[[step]]\nstuck = \"help\"\n";
    let output = keeper.person.hermetic.run(&mut keeper.command(&keeper.folders(), stuck, &[]));
    assert_eq!(output.status, Some(4), "{}", output.snapshot());
    assert!(output.stdout.contains("up to date"), "{}", output.stdout);
}

#[test]
fn a_signal_ends_the_present_fork_and_begins_no_other() {
    let Some(keeper) = Keeper::new(|hermetic| vec![Fork::named(hermetic, "next").clean_merge()])
    else {
        return;
    };
    let mut command = keeper.command(&keeper.folders(), "[[step]]\nsleep = 600\n", &[]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("forklift starts");
    keeper.person.wait_for_box(&mut child);
    let pid = child.id().to_string();
    let hermetic = &keeper.person.hermetic;
    hermetic.run_ok(hermetic.command("kill").args(["-TERM", &pid]));
    let output = child.wait_with_output().expect("it ends");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(143), "{stdout}");
    assert!(stdout.contains("not begun"), "{stdout}");
    assert_eq!(keeper.person.runs().len(), 1);
}

#[test]
fn one_folder_and_all_at_once_is_a_contradiction() {
    let Some(keeper) = Keeper::new(|_| Vec::new()) else { return };
    let output = keeper.run(&keeper.folders(), &["-C", "/"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(keeper.person.runs().is_empty());
}

#[test]
fn a_branch_that_waits_for_review_is_named_in_the_summary() {
    let Some(keeper) = Keeper::new(|_| Vec::new()) else { return };
    assert_eq!(keeper.run(&keeper.folders(), &[]).status, Some(0));
    let output = keeper.run(&keeper.folders(), &["--json"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let last = output.stdout.lines().last().expect("an event");
    let last: Value = serde_json::from_str(last).expect("JSON");
    let row = &last["forks"][0];
    assert_eq!(row["verdict"]["kind"], "awaiting-review", "{row:#}");
    let branch = format!("refs/heads/{}", row["branch"].as_str().expect("a branch"));
    assert_eq!(keeper.person.published(), [branch]);
}
