//! The small commands, and output that people and scripts can read.

use crate::play::person_with_one;
use crate::support::{ONE, Person, read, write};

#[test]
fn skipping_marks_one_byte_and_notes_who_and_why() {
    let person = Person::with_plan(ONE);
    person.ok(&["skip", "tf", "-m", "not needed"]);
    assert_eq!(read(&person.workstream_dir("tf").join("plan.md")), ONE.replace("[ ]", "[x]"));
    let notes = read(&person.workstream_dir("tf").join("notes.md"));
    assert!(notes.contains("ada skipped COMMIT-TF-001: not needed"), "{notes}");
    person.refused(&["skip", "tf"], 2, &["nothing to skip"]);
    person.refused(
        &["skip", "tf", "--commit", "COMMIT-TF-002"],
        2,
        &["did you mean 'COMMIT-TF-001'"],
    );
}

#[test]
fn the_current_workstream_is_meant_when_none_is_named() {
    let person = Person::with_plan(ONE);
    person.refused(&["status"], 2, &["which workstream?", "wf use"]);
    person.ok(&["use", "tf"]);
    assert!(person.ok(&["status"]).contains("[ ] COMMIT-TF-001: Add test harness"));
    assert!(person.ok(&["list"]).contains("tf*"));
    person.refused(&["use", "tfx"], 2, &["did you mean 'tf'"]);
}

#[test]
fn status_is_json_when_asked_for() {
    let person = Person::with_plan(ONE);
    person.question("tf", "CLQ-001", "low");
    let status = person.json(&["status", "tf"]);
    assert_eq!(status["meta"]["status"], "planning");
    assert_eq!(status["plan"]["commits"][0]["id"], "COMMIT-TF-001");
    assert_eq!(status["clarifications"][0], "CLQ-001");
    assert_eq!(person.json(&["list"])[0]["meta"]["id"], "tf");
    let output = person.wf(&["status", "nope", "--json"]);
    let error: serde_json::Value =
        serde_json::from_str(&output.stdout).expect("JSON even for errors");
    assert_eq!(error["error"]["status"], 2);
}

#[test]
fn unused_pictures_are_named_and_removed_only_when_asked() {
    let person = Person::with_plan(ONE);
    let worktree = person.worktree("tf");
    worktree
        .write("docs/a.md", "![x](assets/used.png)")
        .write("docs/assets/used.png", "x")
        .write("docs/assets/old.png", "x");
    assert!(person.ok(&["docs", "status", "tf"]).contains("assets/old.png"));
    person.ok(&["docs", "cleanup", "tf"]);
    assert!(worktree.dir().join("docs/assets/old.png").exists());
    person.ok(&["docs", "cleanup", "tf", "--apply"]);
    assert!(!worktree.dir().join("docs/assets/old.png").exists());
    assert!(worktree.dir().join("docs/assets/used.png").exists());
}

#[test]
fn the_doctor_says_what_is_wrong() {
    let Some(person) = person_with_one() else { return };
    let said = person.ok(&["doctor"]);
    assert!(said.contains("git") && said.contains("planning"), "{said}");
    std::fs::remove_dir_all(person.worktree("tf").dir()).expect("gone");
    person.refused(&["doctor"], 2, &["BAD"]);
}

#[test]
fn a_pipe_gets_no_colours_and_help_has_the_statuses() {
    let person = Person::with_plan(ONE);
    let output = person.wf(&["status", "nope"]);
    assert!(!output.stderr.contains('\u{1b}'), "{}", output.stderr);
    let help = person.ok(&["--help"]);
    assert!(help.contains("8  blocked until a person answers"), "{help}");
    assert!(person.ok(&["man"]).contains(".TH"));
    person.refused(&["statusx"], 2, &["status"]);
    person.refused(&["run", "tf", "--once", "--loop"], 2, &["--loop"]);
}

#[test]
fn a_shell_completes_the_ids_of_the_moment() {
    let person = Person::with_plan(ONE);
    assert!(person.ok(&["completions", "bash"]).contains("COMPLETE"));
    person.refused(&["completions", "tcsh"], 2, &["bash"]);
    let mut command = person.command(&["--", "wf", "status", ""]);
    command.env("COMPLETE", "fish");
    let output = person.hermetic.run(&mut command);
    assert!(output.stdout.contains("tf"), "{}", output.snapshot());
}

#[test]
fn unknown_keys_are_warned_about_and_kept() {
    let person = Person::with_plan(ONE);
    let path = person.workstream_dir("tf").join("meta.env");
    write(&path, &format!("# mine\n{}COLOUR=blue\n", read(&path)));
    assert!(person.wf(&["status", "tf"]).stderr.contains("unknown key COLOUR"));
    person.wf(&["run", "tf"]);
    let text = read(&path);
    assert!(text.starts_with("# mine\n") && text.contains("COLOUR=blue"), "{text}");
}

#[test]
fn a_project_without_open_workstreams_is_removed_and_its_files_are_kept() {
    let person = Person::with_plan(ONE);
    person.refused(&["project", "remove", "app"], 2, &["app has open workstreams: tf"]);
    person.ok(&["close", "tf", "--force"]);
    let said = person.ok(&["project", "remove", "app"]);
    assert!(said.contains("Unregistered app; its files are in "), "{said}");
    person.refused(&["list"], 2, &[]);
    let removed = std::fs::read_dir(person.ops().join("removed")).expect("a folder").flatten();
    let removed: Vec<_> = removed.map(|entry| entry.path()).collect();
    assert_eq!(removed.len(), 1, "{removed:?}");
    assert!(removed[0].join("workstreams/_closed").is_dir());
    // The name is free again.
    let repo = person.repo.dir().to_str().expect("UTF-8").to_owned();
    person.ok(&["project", "add", "app", "--repo-path", &repo]);
}
