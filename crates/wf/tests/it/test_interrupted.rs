//! Commands on whole workstreams that were killed, and files that were edited wrongly: the next command finishes, takes
//! back or refuses, and the other workstreams are not affected.

use crate::support::{ONE, ONE_DONE, Person, read, write};

#[track_caller]
fn killed_at(person: &Person, args: &[&str], point: &str) {
    let mut command = person.command(args);
    let output = person.hermetic.run(command.env("BOTTLEWORKS_FAILPOINT", point));
    assert_eq!(output.signal, Some(9), "not killed at {point}: {}", output.snapshot());
}

/// Nothing is left of what a killed command did.
#[track_caller]
pub(crate) fn nothing_is_left(person: &Person, context: &str) {
    let state = std::fs::read_dir(person.ops().join("state")).into_iter().flatten().flatten();
    for name in state.map(|entry| entry.file_name().to_string_lossy().into_owned()) {
        assert!(
            !name.ends_with("change.json") && !name.ends_with("forward.json"),
            "{context}: {name}"
        );
    }
    let folders = person.project_dir().join("workstreams");
    for entry in std::fs::read_dir(folders).expect("a folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(!name.starts_with("_new-") && name != "_deleted", "{context}: {name}");
    }
    let records = std::fs::read_dir(person.repo.git_dir().join("worktrees"));
    let records = records.into_iter().flatten().count();
    let listed = person.repo.git(&["worktree", "list"]).lines().count() - 1;
    assert_eq!(records, listed, "{context}: a record of a worktree is left");
    assert!(!person.repo.git_dir().join("index.lock").exists(), "{context}");
}

#[test]
fn a_killed_new_is_taken_back_or_finished_by_the_next() {
    for point in ["new-intended", "new-worktree", "new-files", "new-moved"] {
        let person = Person::new();
        person.ok(&["new", "other", "Other"]);
        killed_at(&person, &["new", "tf", "Test framework", "mk/"], point);
        person.ok(&["list"]);
        person.ok(&["refresh"]);
        assert!(person.wf(&["doctor"]).stdout.contains("wf new tf was interrupted"), "{point}");
        person.ok(&["new", "tf", "Test framework", "mk/"]);
        assert_eq!(person.meta("tf", "STATUS"), "planning", "{point}");
        assert_eq!(person.worktree("tf").git(&["status", "--porcelain"]), "", "{point}");
        nothing_is_left(&person, point);
    }
}

#[test]
fn a_killed_new_can_be_deleted() {
    let person = Person::new();
    killed_at(&person, &["new", "tf", "Test framework"], "new-worktree");
    person.ok(&["delete", "tf", "--confirm"]);
    assert_eq!(person.repo.git(&["branch", "--list", "feat/tf"]), "");
    nothing_is_left(&person, "deleted");
    person.refused(&["delete", "tf", "--confirm"], 2, &["there is no workstream 'tf'"]);
}

#[test]
fn a_killed_delete_is_finished_by_the_next_or_by_new() {
    for again in [&["delete", "tf", "--confirm"][..], &["new", "tf", "Again"]] {
        let person = Person::with_plan(ONE);
        person.ok(&["new", "other", "Other"]);
        killed_at(&person, &["delete", "tf", "--confirm"], "delete-moved");
        person.ok(&["list"]);
        person.ok(&["refresh"]);
        person.ok(again);
        nothing_is_left(&person, "deleted");
        assert_eq!(person.workstream_dir("tf").exists(), again[0] == "new");
    }
}

#[test]
fn a_killed_close_is_finished_by_the_next() {
    let person = Person::with_plan(ONE);
    killed_at(&person, &["close", "tf", "--force"], "close-moved");
    person.ok(&["list"]);
    assert!(person.ok(&["close", "tf", "--force"]).contains("Branch kept: feat/tf"));
    assert!(!person.worktree("tf").dir().exists());
    nothing_is_left(&person, "closed");
}

#[test]
fn a_worktree_that_git_removed_by_half_stops_neither_delete_nor_close() {
    for args in [&["delete", "tf", "--confirm"][..], &["close", "tf", "--force"]] {
        let person = Person::with_plan(ONE);
        std::fs::remove_file(person.worktree("tf").dir().join(".git")).expect("a file");
        person.ok(args);
        assert!(!person.worktree("tf").dir().exists());
        nothing_is_left(&person, args[0]);
    }
}

#[test]
fn a_worktree_that_git_added_by_half_does_not_stop_new() {
    let person = Person::new();
    killed_at(&person, &["new", "tf", "Test framework"], "new-intended");
    // As a git that was killed at once leaves it: a record that is locked and names no folder, and the branch's lock.
    let git = person.repo.git_dir();
    write(&git.join("worktrees/tf/locked"), "initializing\n");
    write(&git.join("refs/heads/feat/tf.lock"), "");
    person.ok(&["new", "tf", "Test framework"]);
    nothing_is_left(&person, "new");
}

#[test]
fn a_folder_without_meta_env_affects_nobody_else_and_can_be_removed() {
    let person = Person::with_plan(ONE);
    person.ok(&["new", "other", "Other"]);
    std::fs::remove_file(person.workstream_dir("tf").join("meta.env")).expect("a file");
    for args in [&["list"][..], &["refresh"], &["refresh", "other"]] {
        let output = person.wf(args);
        assert_eq!(output.status, Some(0), "{args:?} {}", output.snapshot());
        assert!(output.stderr.contains("wf delete tf --confirm"), "{}", output.stderr);
    }
    person.refused(&["status", "tf"], 2, &["wf delete tf --confirm"]);
    person.worktree("tf").write("mine", "x");
    person.refused(&["delete", "tf", "--confirm"], 2, &["uncommitted changes, such as mine"]);
    std::fs::remove_file(person.worktree("tf").dir().join("mine")).expect("a file");
    assert!(person.ok(&["delete", "tf"]).contains("Use --confirm"));
    person.ok(&["delete", "tf", "--confirm"]);
    person.ok(&["new", "tf", "Again"]);
    nothing_is_left(&person, "again");
}

#[test]
fn a_broken_sibling_does_not_make_a_named_refresh_fail() {
    let person = Person::with_plan(ONE);
    person.ok(&["new", "other", "Other"]);
    std::fs::remove_file(person.workstream_dir("other").join("meta.env")).expect("a file");
    std::fs::create_dir(person.workstream_dir("other").join("meta.env")).expect("a folder");
    person.ok(&["refresh", "tf"]);
    person.refused(&["status", "other"], 2, &["this is a folder"]);
}

#[test]
fn refresh_warns_about_uncommitted_changes_of_each() {
    let person = Person::with_two();
    for id in ["one", "two"] {
        person.worktree(id).write("mine", "x");
    }
    let output = person.wf(&["refresh"]);
    for id in ["one", "two"] {
        assert!(output.stderr.contains(&format!("{id} has uncommitted")), "{}", output.stderr);
    }
}

#[test]
fn a_wrong_meta_env_deletes_nothing() {
    let person = Person::with_two();
    person.worktree("two").write("mine", "x");
    let main = person.repo.sha("main");
    person.set_meta("one", "BRANCH", "feat/two");
    person.refused(&["delete", "one", "--confirm"], 2, &["feat/two", "is checked out in"]);
    person.set_meta("one", "BRANCH", "feat/one");
    let other = person.worktree("two").dir().to_path_buf();
    person.set_meta("one", "WORKTREE", other.to_str().expect("UTF-8"));
    for args in [&["delete", "one", "--confirm"][..], &["close", "one", "--force"]] {
        person.refused(args, 2, &["is not the worktree of one"]);
    }
    person.set_meta("one", "WORKTREE", person.worktree("one").dir().to_str().expect("UTF-8"));
    person.set_meta("one", "BRANCH", "main");
    for args in [&["delete", "one", "--confirm"][..], &["close", "one", "--force"]] {
        person.refused(args, 2, &["BRANCH main in meta.env is the branch"]);
    }
    assert_eq!(person.repo.sha("main"), main);
    assert_eq!(read(&other.join("mine")), "x");
}

#[test]
fn a_killed_verdict_is_completed_by_the_same_command() {
    for (args, folder, status) in [
        (&["uat", "pass", "UAT-001"][..], "passed", "merge-ready"),
        (&["uat", "fail", "UAT-001", "--issues", "no"], "failed", "uat:failed"),
    ] {
        let person = Person::with_plan(ONE_DONE);
        person.wf(&["run", "tf"]);
        let uat = person.workstream_dir("tf").join("uat");
        let page = read(&uat.join("pending/UAT-001.md"));
        // The page was moved and nothing else, as older versions left it.
        write(&uat.join(folder).join("UAT-001.md"), &page);
        std::fs::remove_file(uat.join("pending/UAT-001.md")).expect("a file");
        person.ok(&["uat", "show", "UAT-001"]);
        person.ok(args);
        assert_eq!(person.meta("tf", "STATUS"), status);
        // The verdict was written, and the rest was not.
        person.set_meta("tf", "STATUS", "uat:pending");
        write(&uat.join("pending/UAT-001.json"), &read(&uat.join(folder).join("UAT-001.json")));
        person.ok(args);
        assert_eq!(person.meta("tf", "STATUS"), status);
        assert_eq!(std::fs::read_dir(uat.join("pending")).expect("a folder").count(), 0);
        person.ok(args);
        person.refused(&["uat", "fail", "UAT-001", "--issues", "x"], 2, &["has a verdict already"]);
    }
}

#[test]
fn a_killed_answer_is_completed_by_the_same_command() {
    let person = Person::with_plan(ONE);
    person.question("tf", "CLQ-001", "blocking");
    let args = ["clarify", "answer", "CLQ-001", "jwt"];
    person.ok(&args);
    person.set_meta("tf", "STATUS", "blocked:clarification");
    person.question("tf", "CLQ-001", "blocking");
    person.ok(&args);
    assert_ne!(person.meta("tf", "STATUS"), "blocked:clarification");
    person.ok(&args);
    let other = ["clarify", "answer", "CLQ-001", "another"];
    person.refused(&other, 2, &["was answered already"]);
}

#[test]
fn a_checkout_that_a_killed_git_left_half_changed_is_put_back() {
    let person = Person::accepted();
    person.worktree("tf").write("README.md", "changed\n").commit("COMMIT-TF-001: y");
    let (from, to) = (person.repo.sha("main"), person.worktree("tf").head());
    let checkout = person.repo.dir().to_path_buf();
    let state = format!(
        "{{\"checkout\": \"{}\", \"from\": \"{from}\", \"to\": \"{to}\"}}\n",
        checkout.display()
    );
    let path = person.ops().join("state/app.tf.forward.json");
    // One file is new and whole, one is written by half, and the index is locked.
    write(&path, &state);
    write(&checkout.join("feature"), "x\n");
    write(&checkout.join("README.md"), "chan");
    write(&person.repo.git_dir().join("index.lock"), "");
    person.ok(&["merge", "tf"]);
    assert_eq!(person.repo.git(&["status", "--porcelain"]), "");
    assert_eq!(person.repo.sha("main"), to);
    nothing_is_left(&person, "merged");
    person.ok(&["merge", "tf"]);
}

#[test]
fn a_persons_change_is_not_taken_for_a_killed_gits() {
    let person = Person::accepted();
    let (from, to) = (person.repo.sha("main"), person.worktree("tf").head());
    let checkout = person.repo.dir().to_path_buf();
    let state = format!(
        "{{\"checkout\": \"{}\", \"from\": \"{from}\", \"to\": \"{to}\"}}\n",
        checkout.display()
    );
    write(&person.ops().join("state/app.tf.forward.json"), &state);
    write(&checkout.join("feature"), "mine\n");
    person.refused(&["merge", "tf"], 8, &["uncommitted changes, such as feature"]);
    assert_eq!(read(&checkout.join("feature")), "mine\n");
}

#[test]
fn locks_that_a_killed_git_left_stop_neither_delete_nor_open() {
    let person = Person::with_plan(ONE);
    person.repo.git(&["pack-refs", "--all"]);
    killed_at(&person, &["delete", "tf", "--confirm"], "delete-moved");
    // As a git that was killed while it wrote the list without the branch.
    for name in ["packed-refs.lock", "packed-refs.new"] {
        write(&person.repo.git_dir().join(name), "");
    }
    person.ok(&["delete", "tf", "--confirm"]);
    assert_eq!(person.repo.git(&["branch", "--list", "feat/tf"]), "");
    nothing_is_left(&person, "deleted");

    let person = Person::accepted();
    person.ok(&["close", "tf"]);
    let lock = person.repo.git_dir().join("refs/heads/feat/tf.lock");
    write(&lock, "");
    // The lock may be a living git's the first time.
    person.refused(&["open", "tf"], 1, &["cannot lock ref"]);
    assert!(lock.exists());
    person.ok(&["open", "tf"]);
    nothing_is_left(&person, "opened");
}
