//! `wf run --all`: what is ready runs beside one another, what depends on others waits or follows them.

use testkit::part::{Part, require};

use crate::play::{APPROVE, MAKEFILE, PROFILE};
use crate::support::{Person, read, write};

/// An agent that does the micro-commit that its instructions name, in a file of that name.
const OBEDIENT: &str = r#"
[[step]]
run = '''
id=$(grep -o 'COMMIT-[A-Z]*-00[0-9]' /harness-state/run/harness/instructions.txt | head -n 1)
mkdir -p mk && echo "$id" > "mk/$id"
'''
[[step]]
print = '''{"status": "success"}
'''
"#;

fn person() -> Option<Person> {
    require(Part::Bwrap)?;
    let person = Person::unregistered();
    person.repo.write("Makefile", MAKEFILE).commit("tests");
    let repo = person.repo.dir().to_str().expect("UTF-8").to_owned();
    person.ok(&["project", "add", "app", "--repo-path", &repo]);
    person.profile(PROFILE);
    person.cast(OBEDIENT, APPROVE);
    Some(person)
}

fn plan(person: &Person, id: &str) {
    let prefix = id.to_uppercase();
    person.plan(id, &format!("### COMMIT-{prefix}-001: Do {id}\n\nDone: [ ]\n"));
}

/// The table, without the progress, which depends on the machine.
fn run_all(person: &Person, args: &[&str]) -> String {
    let output = person.wf(&[&["run", "--all"], args].concat());
    let status = output.status.unwrap_or_default();
    let cut = |line: &str| line.split("; see ").next().unwrap_or_default().trim_end().to_owned();
    let lines = output.stdout.lines().map(|line| format!("{}\n", cut(line)));
    format!("[{status}]\n{}", lines.collect::<String>())
}

#[test]
fn stacked_ones_follow_one_another_and_a_later_one_waits_for_the_merge() {
    let Some(person) = person() else { return };
    person.ok(&["new", "low", "Lower", "low/"]);
    person.ok(&["new", "up", "Upper", "up/", "--base", "low"]);
    person.ok(&["new", "later", "Later", "later/", "--after", "low"]);
    ["low", "up", "later"].into_iter().for_each(|id| plan(&person, id));
    insta::assert_snapshot!(run_all(&person, &["--jobs", "2"]), @r"
    [8]
     WORKSTREAM  EXIT  DONE  STATUS       LAST WORDS
     later       -     0     planning     it runs after low, which is not merged
     low         8     1     uat:pending  no micro-commit: blocked at uat: blocked by UAT-001
     up          8     1     uat:pending  no micro-commit: blocked at uat: blocked by UAT-002
    ");
    // The upper one was brought up to date with the lower one before its agent began.
    person.worktree("up").git(&["merge-base", "--is-ancestor", "feat/low", "feat/up"]);
    person.ok(&["uat", "pass", "UAT-001"]);
    let said = person.ok(&["merge", "low"]);
    assert!(said.contains("up is based on main now and contains it"), "{said}");
    insta::assert_snapshot!(run_all(&person, &["--jobs", "2"]), @r"
    [8]
     WORKSTREAM  EXIT  DONE  STATUS       LAST WORDS
     later       8     1     uat:pending  no micro-commit: blocked at uat: blocked by UAT-003
     up          -     0     uat:pending  accept it: wf uat list
    ");
    person.worktree("later").git(&["merge-base", "--is-ancestor", "main", "feat/later"]);
    let json = person.wf(&["run", "--all", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!((json.status, &value["exit_code"]), (Some(8), &8.into()));
    assert_eq!(value["workstreams"][0]["workstream"], "later");
}

#[test]
fn the_most_serious_status_is_that_of_all() {
    let Some(person) = person() else { return };
    for id in ["bad", "good", "empty"] {
        person.ok(&["new", id, id, &format!("{id}/")]);
    }
    ["bad", "good"].into_iter().for_each(|id| plan(&person, id));
    let broken =
        OBEDIENT.replace("mkdir -p mk", "case $id in *BAD*) touch broken;; esac; mkdir -p mk");
    person.cast(&broken, APPROVE);
    insta::assert_snapshot!(run_all(&person, &["--jobs", "3"]), @r"
    [5]
     WORKSTREAM  EXIT  DONE  STATUS        LAST WORDS
     bad         5     0     blocked:test  COMMIT-BAD-001: failed at test: tests failed: unit
     empty       -     0     planning      its plan has no micro-commits
     good        8     1     uat:pending   no micro-commit: blocked at uat: blocked by UAT-001
    ");
}

#[test]
fn those_that_meet_do_not_run_at_the_same_time() {
    let Some(person) = person() else { return };
    for (id, paths) in [("one", "src/api/"), ("two", "src/"), ("three", "docs/")] {
        person.ok(&["new", id, id, paths]);
        plan(&person, id);
    }
    let output = person.wf(&["run", "--all", "--jobs", "3"]);
    let starts = |id: &str| output.stderr.find(&format!("{id}: starts")).expect("a start");
    let ends = |id: &str| output.stderr.find(&format!("{id}: no micro-commit")).expect("an end");
    assert!(starts("two") > ends("one").min(ends("three")), "{}", output.snapshot());
    assert!(starts("two") > ends("one"), "{}", output.snapshot());
    assert_eq!(output.status, Some(8), "{}", output.snapshot());
}

#[test]
fn an_order_is_kept_with_the_workstream_and_a_wrong_one_is_refused() {
    let person = Person::new();
    person.ok(&["new", "low", "Lower"]);
    let said = person.ok(&["new", "later", "Later", "--after", "low"]);
    assert!(said.contains("  After: low\n"), "{said}");
    assert_eq!(person.meta("later", "AFTER"), "low");
    assert!(person.ok(&["status", "later"]).contains("after"));
    person.refused(
        &["new", "no", "No", "--after", "nothing"],
        2,
        &["there is no workstream 'nothing'"],
    );
    person.refused(&["run", "--jobs", "2"], 2, &["--all"]);
    person.refused(&["run", "later", "--all"], 2, &["--all"]);
    // One that is named alone waits as well, unless it is told not to.
    plan(&person, "later");
    person.refused(
        &["run", "later"],
        8,
        &["later waits: it runs after low, which is not merged", "wf run later --ignore-order"],
    );
    person.refused(&["run", "later", "--detach"], 8, &["later waits"]);
    person.refused(&["run", "--all", "--ignore-order"], 2, &["--all"]);
    // One that was deleted can never be merged.
    person.ok(&["delete", "low", "--confirm"]);
    let output = person.wf(&["run", "--all"]);
    assert!(output.stdout.contains("correct AFTER in meta.env"), "{}", output.snapshot());
    assert_eq!(output.status, Some(8));
}

#[test]
fn a_sparse_worktree_has_the_expected_paths_and_stays_so() {
    let person = Person::new();
    for path in ["src/login/a", "src/other/b", "docs/c", "mk/d"] {
        write(&person.repo.dir().join(path), "x\n");
    }
    person.repo.commit("files");
    person.profile("MERGE_MODE=local\nSPARSE_PATHS=mk/\n");
    person.refused(&["new", "none", "None", "--sparse", "--prefix", "x"], 0, &["Sparse: mk"]);
    let said = person.ok(&["new", "tf", "Login", "src/login/", "--sparse"]);
    assert!(said.contains("  Sparse: mk src/login\n"), "{said}");
    let tree = person.worktree("tf");
    let has = |path: &str| tree.dir().join(path).exists();
    assert!(has("src/login/a") && has("mk/d") && has("Makefile"));
    assert!(!has("src/other") && !has("docs"));
    assert_eq!(tree.git(&["status", "--porcelain"]), "");
    tree.write("src/login/new", "n\n").commit("COMMIT-TF-001: new");
    assert_eq!(tree.git(&["show", "--name-status", "--format=", "HEAD"]), "A\tsrc/login/new");
    person.ok(&["close", "tf", "--force"]);
    person.ok(&["open", "tf"]);
    assert!(has("src/login/new") && !has("docs"));
    // The checkout of the person is whole, and so is a worktree without the flag.
    assert!(person.repo.dir().join("docs/c").exists());
    person.ok(&["new", "whole", "Whole", "src/login/"]);
    assert!(person.worktree("whole").dir().join("docs/c").exists());
    person.profile("MERGE_MODE=local\nSPARSE=true\n");
    person.ok(&["new", "by-profile", "Sparse", "docs/"]);
    assert!(!person.worktree("by-profile").dir().join("src").exists());
    assert!(read(&person.repo.dir().join(".git/config")).contains("worktreeConfig"));
}

#[test]
fn tests_on_the_host_are_not_run_in_a_sparse_worktree() {
    let person = Person::new();
    person.profile("MERGE_MODE=local\n");
    person.ok(&["new", "tf", "Login", "src/login/", "--sparse"]);
    person.worktree("tf").write("src/login/new", "n\n").commit("COMMIT-TF-001: new");
    person.profile("TEST_IN=host\nMERGE_MODE=local\n");
    person.refused(&["new", "more", "More", "src/", "--sparse"], 2, &["set TEST_IN=box"]);
    person.plan("tf", "### COMMIT-TF-001: Login\n\nDone: [x]\n");
    person.set_meta("tf", "STATUS", "merge-ready");
    let output = person.wf(&["merge", "tf"]);
    assert!(output.stderr.contains("this one is sparse; set TEST_IN=box"), "{}", output.snapshot());
    assert_ne!(output.status, Some(0));
}
