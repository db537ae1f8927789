//! Runs: every one has a directory and a result, whatever happened.

use serde_json::Value;

use crate::support::{ONE, Person, read, result, write};

/// Runs `tf`, expects this status and stage, and that the always-files are there.
#[track_caller]
fn fails(person: &Person, status: i32, stage: &str, words: &str) -> Value {
    person.refused(&["run", "tf", "--once"], status, &[words]);
    let run = person.runs().last().expect("a run").clone();
    for file in ["result.json", "run_summary.md", "commands.log", "env_snapshot.txt"] {
        assert!(run.join(file).is_file(), "{file}");
    }
    let result = result(&run);
    assert_eq!(result["failed_stage"], stage, "{result}");
    assert_eq!(result["exit_code"], status);
    result
}

#[test]
fn a_worktree_that_was_removed() {
    let person = Person::with_plan(ONE);
    std::fs::remove_dir_all(person.worktree("tf").dir()).expect("gone");
    fails(&person, 4, "load", "does not exist");
}

#[test]
fn a_worktree_on_another_branch() {
    let person = Person::with_plan(ONE);
    person.worktree("tf").git(&["switch", "-q", "-c", "elsewhere"]);
    fails(&person, 4, "load", "not on feat/tf");
    person.worktree("tf").git(&["switch", "-q", "--detach"]);
    fails(&person, 4, "load", "detached");
}

#[test]
fn a_plain_folder_in_the_place_of_the_worktree() {
    let person = Person::with_plan(ONE);
    let dir = person.worktree("tf").dir().to_path_buf();
    std::fs::remove_dir_all(&dir).expect("gone");
    std::fs::create_dir(&dir).expect("made");
    fails(&person, 4, "load", "is not a worktree");
    person.set_meta("tf", "WORKTREE", person.repo.dir().to_str().expect("UTF-8"));
    fails(&person, 4, "load", "is not inside");
}

#[test]
fn an_unknown_base_a_missing_plan_and_an_empty_one() {
    let person = Person::with_plan("# nothing yet\n");
    fails(&person, 4, "select", "no micro-commits");
    std::fs::remove_file(person.workstream_dir("tf").join("plan.md")).expect("gone");
    fails(&person, 4, "load", "plan is missing");
    person.set_meta("tf", "BASE_SHA", &"a".repeat(40));
    fails(&person, 4, "load", "BASE_SHA");
}

#[test]
fn a_malformed_plan_is_named_by_its_line() {
    let person = Person::with_plan("# Plan\n\n### COMMIT-TF-1: bad\nDone: [ ]\n");
    let result = fails(&person, 2, "select", "line 3");
    assert_eq!(result["microcommit"], Value::Null);
    assert!(person.runs()[0].to_string_lossy().ends_with("_app_tf_none"));
}

#[test]
fn a_bad_profile_or_meta_is_named() {
    let person = Person::with_plan(ONE);
    person.profile("TEST_TIMEOUT=soon\n");
    fails(&person, 2, "load", "TEST_TIMEOUT");
    person.profile("");
    person.set_meta("tf", "STATUS", "dreaming");
    fails(&person, 2, "lock", "STATUS");
}

#[test]
fn an_unknown_workstream_has_a_run_without_a_name() {
    let person = Person::with_plan(ONE);
    person.refused(&["run", "tff"], 2, &["did you mean 'tf'?"]);
    assert!(person.runs()[0].to_string_lossy().ends_with("_app_tff_none"));
    person.refused(&["run", "../tf"], 2, &["workstream id"]);
    assert_eq!(person.runs().len(), 1);
}

#[test]
fn a_run_is_named_after_its_micro_commit_and_stops_where_no_agent_can_be_hired() {
    let person = Person::with_plan(ONE);
    let result = fails(&person, 2, "implement", "OPENAI_API_KEY");
    assert_eq!(result["microcommit"], "COMMIT-TF-001");
    assert!(person.runs()[0].to_string_lossy().ends_with("_app_tf_COMMIT-TF-001"));
    assert_eq!(
        (person.meta("tf", "STATUS"), person.meta("tf", "LAST_RESULT")),
        ("implement".to_owned(), "failed".to_owned())
    );
    assert!(read(&person.runs()[0].join("commands.log")).contains("[EXIT:0]"));
    assert!(read(&person.workstream_dir("tf").join("plan.md")).contains("Done: [ ]"));
    let shown =
        person.ok(&["show"].iter().chain(&["--workstream", "tf"]).copied().collect::<Vec<_>>());
    assert!(shown.contains("Failed stage: implement"), "{shown}");
    assert!(person.ok(&["log", "tf"]).contains("failed"));
    person.refused(&["diff", "--workstream", "tf"], 2, &["has no diff"]);
}

#[test]
fn uncommitted_files_are_noted() {
    let person = Person::with_plan(ONE);
    person.worktree("tf").write("stray.txt", "x");
    let result = fails(&person, 2, "implement", "OPENAI_API_KEY");
    assert!(result["notes"].as_str().expect("notes").contains("stray.txt"), "{result}");
}

#[test]
fn secrets_do_not_reach_the_records() {
    use std::os::unix::fs::PermissionsExt;
    let person = Person::with_plan(ONE);
    let secrets = person.ops().join("secrets/env.sh");
    write(&secrets, "export TOKEN=hunter2-very-secret\n");
    std::fs::set_permissions(&secrets, std::fs::Permissions::from_mode(0o600)).expect("private");
    person.worktree("tf").write("hunter2-very-secret", "x");
    fails(&person, 2, "implement", "OPENAI_API_KEY");
    for file in ["result.json", "run_summary.md", "commands.log"] {
        assert!(!read(&person.runs()[0].join(file)).contains("hunter2"), "{file}");
    }
}

#[test]
fn a_run_that_died_is_finished_by_the_next() {
    for point in [
        "wf-load",
        "wf-select",
        "wf-clarification",
        "wf-implement",
        "wf-refresh",
        "wf-result-written",
    ] {
        let person = Person::with_plan(ONE);
        let mut command = person.command(&["run", "tf"]);
        command.env("BOTTLEWORKS_FAILPOINT", point);
        assert_eq!(person.hermetic.run(&mut command).status, None, "{point}: killed");
        person.refused(&["run", "tf"], 2, &["OPENAI_API_KEY"]);
        let runs = person.runs();
        assert_eq!(runs.len(), 2, "{point}: {runs:?}");
        for run in &runs {
            assert!(!run.to_string_lossy().ends_with("_pending"), "{point}");
            assert_eq!(result(run)["status"], "failed", "{point}");
        }
        assert_eq!(person.meta("tf", "STATUS"), "implement", "{point}");
    }
}
