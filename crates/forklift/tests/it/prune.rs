//! Removing old runs, and never the wrong ones.

use std::path::Path;

use serde_json::Value;
use testkit::hermetic::Output;
use testkit::screen::Screen;
use testkit::wait::wait_until;

use crate::support::{GATE, MERGE, Person};

const STUCK: &str = "[[step]]\nstuck = \"which one?\"\n";

fn prune(person: &Person, flags: &[&str]) -> Output {
    let yes = if flags.contains(&"--dry-run") { &[][..] } else { &["--yes"] };
    let args = [&["prune", "--older-than", "0d", "--keep", "0"], yes, flags].concat();
    let output = person.hermetic.run(&mut person.forklift(&args));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    output
}

fn name_of(run: &Path) -> String {
    run.file_name().expect("a name").to_string_lossy().into_owned()
}

#[test]
fn a_published_run_goes_and_the_bytes_are_told() {
    let Some(person) = Person::new() else { return };
    person.run(MERGE, &[]);
    let run = person.only_run();
    let told = prune(&person, &["--dry-run"]);
    assert!(told.stdout.contains("would go") && run.exists(), "{}", told.snapshot());
    let output = prune(&person, &["--json"]);
    let value: Value =
        serde_json::from_str(output.stdout.lines().last().expect("a line")).expect("JSON");
    assert_eq!(value["event"], "prune");
    assert_eq!(value["removed"][0]["run"], name_of(&run));
    assert!(value["bytes"].as_u64() > Some(4096), "{value}");
    assert!(!run.exists() && person.runs().is_empty());
    let left = std::fs::read_dir(run.parent().expect("a parent")).expect("there").count();
    assert_eq!(left, 0, "something was left of it");
}

#[test]
fn young_runs_and_the_newest_of_a_fork_stay() {
    let Some(person) = Person::new() else { return };
    person.run(MERGE, &[]);
    person.run(MERGE, &["--again"]);
    let bare = person.hermetic.run(&mut person.forklift(&["prune"]));
    assert!(bare.stdout.contains("young"), "{}", bare.stdout);
    assert_eq!(person.runs().len(), 2);
    let newest = person.runs()[1].clone();
    let args = ["prune", "--older-than", "0d", "--keep", "1", "-y"];
    let output = person.hermetic.run(&mut person.forklift(&args));
    assert!(output.stdout.contains("among the newest"), "{}", output.stdout);
    assert_eq!(person.only_run(), newest);
}

#[test]
fn p21_a_stuck_run_stays_until_it_is_meant() {
    let Some(person) = Person::new() else { return };
    person.run(STUCK, &[]);
    let output = prune(&person, &[]);
    assert!(output.stdout.contains("unpublished work"), "{}", output.stdout);
    assert!(person.only_run().join("workspace/STUCK.md").exists());
    prune(&person, &["--unpublished"]);
    assert!(person.runs().is_empty());
}

#[test]
fn a_stuck_run_that_was_gone_on_from_and_published_goes() {
    let Some(person) = Person::new() else { return };
    person.run(STUCK, &[]);
    let script = person.hermetic.root().join("second.toml");
    std::fs::write(&script, MERGE).expect("written");
    let name = name_of(&person.only_run());
    let args = ["resume", &name, "--script", script.to_str().expect("UTF-8")];
    let resumed = person.hermetic.run(&mut person.forklift(&args));
    assert_eq!(resumed.status, Some(0), "{}", resumed.snapshot());
    prune(&person, &[]);
    assert!(person.runs().is_empty());
}

#[test]
fn a_verified_commit_that_could_not_be_pushed_stays() {
    let Some(person) = Person::new() else { return };
    person.reject_pushes();
    assert_eq!(person.run(MERGE, &[]).status, Some(7));
    let output = prune(&person, &[]);
    assert!(output.stdout.contains("verified commit"), "{}", output.stdout);
    assert_eq!(person.runs().len(), 1);
}

#[test]
fn a_run_that_is_not_finished_stays_whatever_is_said() {
    let Some(person) = Person::new() else { return };
    let mut command = person.command(MERGE, &[]);
    assert_eq!(
        person.hermetic.run(command.env("BOTTLEWORKS_FAILPOINT", "prepared")).signal,
        Some(9)
    );
    let output = prune(&person, &["--unpublished"]);
    assert!(output.stdout.contains("forklift attach"), "{}", output.stdout);
    assert_eq!(person.runs().len(), 1);
}

#[test]
fn nothing_of_a_fork_that_is_being_worked_on_goes() {
    let Some(person) = Person::new() else { return };
    person.run(MERGE, &[]);
    let mut second = person.start(&format!("{GATE}{MERGE}"), &["--again"]);
    wait_until("the second run", || {
        assert!(second.try_wait().expect("it can be asked").is_none(), "it ended too early");
        person.runs().len() == 2
    });
    let output = prune(&person, &["--unpublished"]);
    assert!(output.stdout.contains("at work"), "{}", output.stdout);
    assert_eq!(person.runs().len(), 2);
    person.open_gate(&person.runs()[1]);
    assert!(second.wait().expect("it ends").success());
}

#[test]
fn the_runs_of_a_fork_that_is_gone_can_be_removed() {
    let Some(person) = Person::new() else { return };
    person.run(MERGE, &[]);
    std::fs::rename(person.fork.checkout.dir(), person.hermetic.root().join("moved"))
        .expect("moved");
    let args = ["prune", "--older-than", "0d", "--keep", "0", "--yes"];
    let mut command = person.forklift(&args);
    let output = person.hermetic.run(command.current_dir(person.hermetic.root()));
    assert!(output.stdout.contains("removed"), "{}", output.snapshot());
}

#[test]
fn what_a_prune_that_was_killed_left_is_finished() {
    let Some(person) = Person::new() else { return };
    person.run(MERGE, &[]);
    let run = person.only_run();
    let half = run.with_file_name(format!("{}.removing", name_of(&run)));
    std::fs::rename(&run, &half).expect("renamed");
    assert!(person.runs().is_empty(), "it is no run any more");
    prune(&person, &[]);
    assert!(!half.exists());
}

#[test]
fn an_age_that_is_none_is_refused() {
    let Some(person) = Person::new() else { return };
    let output = person.hermetic.run(&mut person.forklift(&["prune", "--older-than", "soon"]));
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("such as 30d"), "{}", output.stderr);
}

#[test]
fn without_a_terminal_and_without_consent_nothing_goes_and_the_command_is_named() {
    let Some(person) = Person::new() else { return };
    person.run(MERGE, &[]);
    let run = person.only_run();
    let args = ["prune", "--older-than", "0d", "--keep", "0", "--unpublished"];
    let output = person.hermetic.run(&mut person.forklift(&args));
    let shown = output.snapshot().replace(&name_of(&run), "[RUN]");
    let shown: String = shown
        .split_inclusive('\n')
        .map(|line| match line.split_once(" (").filter(|_| line.starts_with("would go")) {
            Some((before, _)) => format!("{before} ([SIZE])\n"),
            None if line.starts_with("would free") => "would free  [SIZE] in 1 run\n".to_owned(),
            None => line.to_owned(),
        })
        .collect();
    insta::assert_snapshot!(shown, @"
    status: 2
    --- stdout
    would go    fork_[STAMP] ([SIZE])
    would free  [SIZE] in 1 run
    --- stderr
    error: nothing was deleted, because nobody can be asked here; to delete: forklift prune --older-than 0d --keep 0 --unpublished --yes
    ");
    assert!(run.exists());
    let json = person.hermetic.run(person.forklift(&args).arg("--json"));
    assert_eq!(json.status, Some(2), "{}", json.snapshot());
    let value: Value = serde_json::from_str(&json.stdout).expect("one event");
    assert_eq!(
        (&value["dry_run"], &value["removed"][0]["run"]),
        (&true.into(), &name_of(&run).into())
    );
    assert!(run.exists());
}

#[test]
fn at_a_terminal_a_question_is_asked_before_anything_goes() {
    let Some(person) = Person::new() else { return };
    person.run(MERGE, &[]);
    let run = person.only_run();
    let program = env!("CARGO_BIN_EXE_forklift");
    let script = format!("{program} prune --older-than 0d --keep 0; echo [$?]; exec cat");
    for (answer, said, stays) in [("n", "nothing was deleted", true), ("y", "freed", false)] {
        let words = ["sh", "-c", &script];
        let Some(screen) = Screen::start(&person.hermetic, person.fork.checkout.dir(), &words)
        else {
            return;
        };
        screen.shows("? [y/N]");
        assert!(run.exists());
        // The question holds no lock: another command of the same fork need not wait for the answer.
        let other = person.hermetic.run(&mut person.forklift(&["--dry-run", "--wait", "0"]));
        assert!(!other.stderr.contains("at work on"), "{}", other.snapshot());
        screen.press(&[answer, "Enter"]);
        screen.shows("[0]");
        assert!(screen.text().contains(said), "{}", screen.text());
        assert_eq!(run.exists(), stays);
        screen.close();
    }
}
