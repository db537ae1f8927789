//! Refresh and conflicts.

use crate::support::{Person, read};

#[test]
fn touched_files_are_sorted_and_end_with_a_line_break() {
    let person = Person::with_two();
    let worktree = person.worktree("one");
    worktree.write("é b.txt", "x").write("a.txt", "x").commit("COMMIT-ONE-001: x");
    worktree.git(&["mv", "README.md", "moved.md"]);
    worktree.commit("COMMIT-ONE-002: move");
    person.ok(&["refresh"]);
    let touched = read(&person.workstream_dir("one").join("touched_files.txt"));
    assert_eq!(touched, "README.md\na.txt\nmoved.md\né b.txt\n");
    assert_eq!(read(&person.workstream_dir("two").join("touched_files.txt")), "");
    assert!(read(&person.project_dir().join("ACTIVE_WORKSTREAMS.md")).contains("| 4 |"));
}

#[test]
fn files_of_main_are_not_touched_by_merging_main() {
    let person = Person::with_two();
    person.worktree("one").write("mine", "x").commit("COMMIT-ONE-001: x");
    person.repo.write("theirs", "x").commit("on main");
    person.worktree("one").merge("main");
    person.ok(&["refresh", "one"]);
    assert_eq!(read(&person.workstream_dir("one").join("touched_files.txt")), "mine\n");
}

#[test]
fn actual_predicted_and_expected_overlap_with_a_forecast() {
    let person = Person::with_two();
    assert!(person.ok(&["conflicts", "one"]).contains("Both expect: src/ and src/api"));
    for (id, text) in [("one", "1\n"), ("two", "2\n")] {
        person
            .worktree(id)
            .write("src/api/x", text)
            .write("src2/y", "same")
            .commit(&format!("COMMIT-X-001: {id}"));
    }
    let stale = person.wf(&["conflicts", "one"]);
    assert!(stale.stderr.contains("older than their branches"), "{}", stale.stderr);
    person.ok(&["refresh"]);
    let said = person.ok(&["conflicts", "one"]);
    assert!(said.contains("Actual overlap (2 files)") && said.contains("src/: 1 files"), "{said}");
    assert!(said.contains("Forecast: conflicts in src/api/x"), "{said}");
    let value = person.json(&["conflicts", "two"]);
    assert_eq!(value["conflicts"][0]["overlap"]["workstream"], "one");
    assert_eq!(value["conflicts"][0]["forecast"]["merge"], "conflicts");
    person.refused(&["conflicts", "one", "--exit-code"], 1, &[]);
    assert!(person.wf(&["list"]).stderr.contains("2 workstreams touch files"));
}

#[test]
fn the_base_branch_is_tried_too() {
    let person = Person::with_two();
    person.worktree("one").write("README.md", "mine\n").commit("COMMIT-ONE-001: x");
    person.repo.write("README.md", "theirs\n").commit("on main");
    person.ok(&["refresh"]);
    assert!(person.ok(&["conflicts", "one"]).contains("Against main: conflicts in README.md"));
    assert!(person.ok(&["conflicts", "two"]).contains("Against main: merges cleanly"));
}

#[test]
fn a_missing_worktree_is_an_error_only_when_named() {
    let person = Person::with_two();
    std::fs::remove_dir_all(person.worktree("one").dir()).expect("gone");
    person.refused(&["refresh", "one"], 2, &["is gone"]);
    person.refused(&["refresh"], 0, &["warning: the worktree of one is gone"]);
    let mut command = person.command(&["refresh"]);
    let silent = person.hermetic.run(command.env("AOS_LOG_LEVEL", "error"));
    assert_eq!((silent.status, silent.stderr.as_str()), (Some(0), ""));
}

#[test]
fn one_bad_meta_file_does_not_hide_the_others() {
    let person = Person::with_two();
    person.set_meta("one", "STATUS", "odd");
    person.refused(&["list"], 2, &["two", "STATUS is not one of"]);
    person.refused(&["refresh"], 2, &["one/meta.env"]);
}

#[test]
fn a_refresh_of_all_stamps_each_workstream_also_when_nothing_changed() {
    let person = Person::with_two();
    person.ok(&["refresh"]);
    for id in ["one", "two"] {
        person.set_meta(id, "LAST_REFRESHED", "2025-01-15T10:00:00Z");
    }
    assert!(person.ok(&["refresh"]).contains("Refreshed 2 workstreams, 0 changed"));
    for id in ["one", "two"] {
        assert_ne!(person.meta(id, "LAST_REFRESHED"), "2025-01-15T10:00:00Z", "{id}");
    }
}
