//! A workspace that is ready: set-up by the lock files, a build before the tests, ignored files that are copied or linked.

use std::fs;

use crate::play::{APPROVE, GOOD, MAKEFILE, PROFILE, person_with_one};
use crate::support::{ONE, Person, read, result, write};

/// A set-up that leaves what it found in the lock file.
const SETUP: &str =
    "SETUP_CMD=\"sh setup.sh\"\nSETUP_KEEP=deps\nSETUP_LOCK_FILES=deps.lock\nSETUP_EGRESS=none\n";

/// A person whose tests need the folder that the set-up makes.
fn person_with_setup(more: &str) -> Option<Person> {
    let person = person_with_one()?;
    let tree = person.worktree("tf");
    tree.write("setup.sh", "set -e\nmkdir -p deps\ncp deps.lock deps/made\necho installed\n")
        .write("deps.lock", "one\n")
        .write("Makefile", MAKEFILE.replace("@echo tested", "@cmp deps.lock deps/made"))
        .commit("set-up");
    // The first commit of the workstream counts as accepted.
    let head = tree.head();
    let path = person.workstream_dir("tf").join("meta.env");
    write(&path, &format!("{}LAST_COMMIT_SHA={head}\n", read(&path)));
    person.profile(&format!("{PROFILE}{SETUP}{more}"));
    Some(person)
}

/// The boxes of the last run in which a set-up ran.
fn setup_boxes(person: &Person) -> Vec<String> {
    let entries = fs::read_dir(person.last_run().join("boxes")).expect("boxes").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("setup-")).collect();
    names.sort();
    names
}

fn kept(person: &Person) -> usize {
    fs::read_dir(person.ops().join("setups")).map_or(0, |entries| entries.flatten().count())
}

fn two_plans() -> String {
    format!("{ONE}\n### COMMIT-TF-002: More\n\nDone: [ ]\n")
}

#[test]
fn a_set_up_runs_once_for_each_content_of_the_lock_files() {
    let Some(person) = person_with_setup("") else { return };
    person.plan("tf", &two_plans());
    person.cast(&GOOD.replace("mkdir -p mk", "cmp deps.lock deps/made && mkdir -p mk"), APPROVE);
    person.run_once(0);
    assert_eq!(setup_boxes(&person), ["setup-setup-workspace"]);
    assert_eq!(kept(&person), 1);
    // What the set-up made is in no commit, although the repository does not ignore it.
    assert_eq!(person.worktree("tf").git(&["ls-tree", "-r", "--name-only", "HEAD", "deps"]), "");
    let again = GOOD.replace("COMMIT-TF-001", "COMMIT-TF-002").replace("harness", "more");
    person.cast(&again, APPROVE);
    person.run_once(0);
    assert_eq!(setup_boxes(&person), [""; 0]);
    assert_eq!(kept(&person), 1);
}

#[test]
fn a_set_up_that_a_micro_commit_changes_is_not_kept_before_it_is_accepted() {
    let Some(person) = person_with_setup("") else { return };
    person.plan("tf", &two_plans());
    person.cast(&GOOD.replace("mkdir -p mk", "echo two > deps.lock && mkdir -p mk"), APPROVE);
    person.run_once(0);
    assert_eq!(setup_boxes(&person), ["setup-setup-workspace", "setup-test-workspace"]);
    assert_eq!(kept(&person), 1);
    let notes = result(&person.last_run())["notes"].to_string();
    assert!(notes.contains("what it depends on is changed and not accepted yet"), "{notes}");
    let again = GOOD.replace("COMMIT-TF-001", "COMMIT-TF-002").replace("harness", "more");
    person.cast(&again, APPROVE);
    person.run_once(0);
    assert_eq!(setup_boxes(&person), ["setup-setup-workspace"]);
    assert_eq!(kept(&person), 2);
}

#[test]
fn a_set_up_that_fails_ends_the_stage_with_its_words() {
    let Some(person) = person_with_setup("") else { return };
    person.profile(&format!("{PROFILE}{}", SETUP.replace("sh setup.sh", "sh -c nonsense")));
    let output = person.run_once(4);
    assert!(
        output.stdout.contains("the set-up ended with status 127: sh -c nonsense"),
        "{}",
        output.stdout
    );
    assert!(output.stdout.contains("not found"), "{}", output.stdout);
    assert_eq!(kept(&person), 0);
}

#[test]
fn a_failed_build_fails_the_tests_and_no_suite_runs() {
    let Some(person) = person_with_one() else { return };
    person.profile(&format!("{PROFILE}BUILD_CMD=\"sh -c false\"\n"));
    let output = person.run_once(5);
    assert!(output.stdout.contains("tests failed: build"), "{}", output.stdout);
    let manifest = read(&person.last_run().join("test_manifest.json"));
    assert!(
        manifest.contains("the build failed") && !manifest.contains("no test suite"),
        "{manifest}"
    );
    person.profile(&format!("{PROFILE}BUILD_CMD=\"touch built\"\n"));
    person.run_once(0);
    assert!(!read(&person.last_run().join("test_manifest.json")).contains("build"));
}

#[test]
fn tests_on_the_host_are_set_up_once_too() {
    let Some(person) = person_with_setup("TEST_IN=host\n") else { return };
    let tree = person.worktree("tf");
    tree.write("setup.sh", "mkdir -p deps\ncp deps.lock deps/made\necho x >> .git-count\n")
        .write(".gitignore", "deps\n.git-count\n")
        .commit("COMMIT-TF-001: count");
    person.plan("tf", &two_plans().replacen("[ ]", "[x]", 1));
    person.cast(&GOOD.replace("COMMIT-TF-001", "COMMIT-TF-002"), APPROVE);
    person.run_once(0);
    let count = || read(&tree.dir().join(".git-count")).lines().count();
    assert_eq!(count(), 1);
    person.plan(
        "tf",
        &format!("{}\n### COMMIT-TF-003: Third\n\nDone: [ ]\n", two_plans().replace("[ ]", "[x]")),
    );
    person.cast(&GOOD.replace("COMMIT-TF-001", "COMMIT-TF-003"), APPROVE);
    person.run_once(0);
    assert_eq!(count(), 1);
}

/// A product with ignored files, of which some are wanted in worktrees.
fn with_ignored_files() -> Option<Person> {
    let person = person_with_one()?;
    person.repo.write(".gitignore", ".env\n*.local\nbig\n").commit("ignore");
    person.repo.write(".worktreeinclude", "*.local\n.env\nREADME.md\n");
    let token = format!("ghp_{}", "a1B2".repeat(9));
    for (path, text) in [
        (".env", "A=1\n"),
        ("conf/a.local", "a\n"),
        ("conf/b.local", token.as_str()),
        ("big/data", "d\n"),
    ] {
        write(&person.repo.dir().join(path), text);
    }
    Some(person)
}

#[test]
fn ignored_files_that_are_named_are_in_worktrees_and_those_without_secrets_in_boxes() {
    let Some(person) = with_ignored_files() else { return };
    person.profile(&format!("{PROFILE}WORKTREE_LINK=\"big missing\"\n"));
    let output = person.wf(&["new", "two", "Two", "mk/"]);
    assert!(output.stderr.contains("missing was not linked: "), "{}", output.snapshot());
    let tree = person.worktree("two");
    for path in [".env", "conf/a.local", "conf/b.local", "big/data"] {
        assert!(tree.dir().join(path).exists(), "{path}");
    }
    assert!(tree.dir().join("big").is_symlink());
    assert_eq!(tree.git(&["status", "--porcelain"]), "");
    person.plan("two", &ONE.replace("-TF-", "-TWO-"));
    let look = "test -e conf/a.local && test ! -e conf/b.local && test ! -e .env && cat big/data && ! touch big/x && mkdir -p mk";
    let script = GOOD.replace("mkdir -p mk", look).replace("-TF-", "-TWO-");
    person.cast(&script, APPROVE);
    let output = person.wf(&["run", "two"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let notes = result(&person.last_run())["notes"].to_string();
    for words in [
        ".env is not copied into the box: it is in FORBIDDEN_PATHS",
        "conf/b.local is not copied into the box: it holds what looks like a secret",
    ] {
        assert!(notes.contains(words), "{notes}");
    }
    let changed = tree.git(&["diff", "--name-only", "HEAD~1"]);
    assert_eq!(changed, "mk/test.mk");
}

#[test]
fn an_agent_does_not_choose_the_files_that_it_gets() {
    let Some(person) = with_ignored_files() else { return };
    // A worktree may name anything; only the checkout of the person counts.
    fs::remove_file(person.repo.dir().join(".worktreeinclude")).expect("removed");
    person.worktree("tf").write(".gitignore", "*.local\n").write(".worktreeinclude", "*.local\n");
    person.worktree("tf").commit("COMMIT-TF-001: x");
    write(&person.worktree("tf").dir().join("conf/a.local"), "a\n");
    person.cast(&GOOD.replace("mkdir -p mk", "test ! -e conf/a.local && mkdir -p mk"), APPROVE);
    person.run_once(0);
    // A micro-commit that adds the file waits for a person.
    let Some(person) = person_with_one() else { return };
    person
        .cast(&GOOD.replace("mkdir -p mk", "echo '*' > .worktreeinclude && mkdir -p mk"), APPROVE);
    let output = person.run_once(4);
    assert!(output.stdout.contains(".worktreeinclude"), "{}", output.stdout);
}

#[test]
fn what_a_hook_leaves_in_its_home_reaches_neither_tests_nor_reviewer() {
    let Some(person) = person_with_one() else { return };
    let hook = person.repo.dir().join(".git/hooks/pre-commit");
    write(&hook, "#!/bin/sh\nexec sh ./check.sh\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&hook, mode).expect("executable");
    let makefile = MAKEFILE.replace("@echo tested", "@test ! -e $$HOME/planted");
    let tree = person.worktree("tf");
    tree.write("check.sh", "true\n").write("Makefile", makefile).commit("COMMIT-TF-001: strict");
    let plant = "[[step]]\nrun = 'echo \"touch $HOME/planted\" > check.sh; sed -i \"s,touch .*/planted,touch \\$HOME/planted,\" check.sh; mkdir -p mk; echo x > mk/x'\n[[step]]\nprint = '''{\"status\": \"success\"}\n'''\n";
    let look = format!("[[step]]\nrun = 'test ! -e \"$HOME/planted\"'\n{APPROVE}");
    person.cast(plant, &look);
    person.run_once(0);
    let made = person.worktree("tf").git(&["show", "--name-only", "--format=", "HEAD"]);
    assert!(made.contains("check.sh"), "{made}");
}
