//! Bringing a workstream up to date with its base branch, and the forecast of that.

use crate::support::Person;

/// A workstream with a worktree, from a main branch that has these files.
fn started(files: &[&str]) -> Person {
    let person = Person::new();
    for name in files {
        person.repo.write(name, "1\n");
    }
    if !files.is_empty() {
        person.repo.commit("files of both");
    }
    person.ok(&["new", "one", "One", "src/"]);
    person
}

#[test]
fn a_base_that_moved_is_merged_with_its_files() {
    let person = started(&[]);
    person.worktree("one").write("mine", "x\n").commit("COMMIT-ONE-001: x");
    person.repo.write("theirs", "y\n").commit("on main");
    assert!(person.ok(&["update", "one"]).contains("Merged main into one"));
    let worktree = person.worktree("one");
    assert_eq!((worktree.read("mine"), worktree.read("theirs")), ("x\n".into(), "y\n".into()));
    assert_eq!(worktree.git(&["status", "--porcelain"]), "");
    worktree.git(&["merge-base", "--is-ancestor", "main", "HEAD"]);
    assert!(person.ok(&["update", "one"]).contains("contains main already"));
    assert!(!person.wf(&["conflicts", "one"]).stderr.contains("older than"));
}

#[test]
fn a_branch_without_commits_of_its_own_is_moved_forward() {
    let person = started(&[]);
    person.repo.write("theirs", "y\n").commit("on main");
    assert!(person.ok(&["update", "one"]).contains("is at main now"));
    assert_eq!(person.worktree("one").head(), person.repo.sha("main"));
}

/// The workstream deletes all of these, and main goes on changing them.
fn deleted(names: &[&str]) -> Person {
    let person = started(names);
    let worktree = person.worktree("one");
    for name in names {
        worktree.git(&["rm", "-q", name]);
        person.repo.write(name, "2\n");
    }
    worktree.commit_index("COMMIT-ONE-001: without them");
    person.repo.commit("on main");
    person
}

/// Nothing is known about a workstream's merges, so at the usual threshold what others did with their deletions decides nothing.
#[test]
fn what_is_trusted_is_resolved_with_receipts() {
    let person = deleted(&["a", "b"]);
    let said = person.ok(&["conflicts", "one"]);
    assert!(said.contains("a, b") && !said.contains("resolve automatically"), "{said}");
    let said = person.ok(&["update", "one", "--trust", "0.6"]);
    assert!(said.contains("resolved a: deleted (by policy/1"), "{said}");
    let worktree = person.worktree("one");
    let message = worktree.git(&["log", "-1", "--format=%B"]);
    assert!(message.contains("- b: deleted (by policy/1"), "{message}");
    assert!(!worktree.dir().join("a").exists());
    assert_eq!(worktree.git(&["status", "--porcelain"]), "");
}

#[test]
fn many_deletions_at_once_are_left_to_people() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let person = deleted(&names);
    person.refused(&["update", "one", "--trust", "0.6"], 8, &["conflicts with main in a, b"]);
}

#[test]
fn what_is_not_trusted_is_named_and_nothing_moves() {
    let person = deleted(&["a", "b"]);
    let head = person.worktree("one").head();
    person.refused(&["update", "one"], 8, &["conflicts with main in a, b", "git -C"]);
    person.worktree("one").write("README.md", "mine\n").commit("COMMIT-ONE-002: x");
    let head_after = person.worktree("one").head();
    person.repo.write("README.md", "theirs\n").commit("on main again");
    let left = ["in README.md, and nothing was changed"];
    person.refused(&["update", "one", "--trust", "0.6"], 8, &left);
    assert_ne!(head, head_after);
    assert_eq!(person.worktree("one").head(), head_after);
    assert_eq!(person.worktree("one").git(&["status", "--porcelain"]), "");
    let value = person.json(&["conflicts", "one"]);
    assert_eq!(value["base"]["merge"], "conflicts");
    assert_eq!(value["base"]["resolved"].as_array().map(Vec::len), Some(0), "{value}");
}

#[test]
fn uncommitted_work_is_never_touched() {
    let person = started(&[]);
    person.repo.write("theirs", "y\n").commit("on main");
    person.worktree("one").write("stray", "x");
    person.refused(&["update", "one"], 8, &["stray"]);
    assert!(!person.worktree("one").dir().join("theirs").exists());
}
