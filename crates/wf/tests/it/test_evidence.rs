//! Nothing counts as tested, accepted or clean that is not: suites that did not run, commits that vanished, secrets, and
//! recipes that were emptied.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::Value;

use crate::play::{APPROVE, GOOD, MAKEFILE, OBEDIENT, PROFILE, REJECT, person, person_with_one};
use crate::support::{Person, read, result, write};

const TWO: &str = "# Plan\n\n### COMMIT-TF-001: Add one\n\nDone: [ ]\n\n### COMMIT-TF-002: Add two\n\nDone: [ ]\n";

fn notes(person: &Person) -> String {
    result(&person.last_run())["notes"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_run_works_where_the_ops_directory_is_on_another_file_system() {
    let Some(person) = person_with_one() else { return };
    let shm = std::path::Path::new("/dev/shm");
    let device = |path: &std::path::Path| path.metadata().map(|facts| facts.dev()).ok();
    if device(shm).is_none() || device(shm) == device(person.repo.dir()) {
        return testkit::part::missing("another file system", "/dev/shm is none");
    }
    let ops = tempfile::Builder::new().prefix("wf-ops").tempdir_in(shm).expect("a folder");
    person.ok(&["delete", "tf", "--confirm"]);
    let packs = person.repo.git_dir().join("objects/pack");
    let before = std::fs::read_dir(&packs).expect("a folder").count();
    let run = |args: &[&str]| {
        let mut command = person.command(args);
        let output = person.hermetic.run(command.env("AOS_OPS_DIR", ops.path()));
        assert_eq!(output.status, Some(0), "{args:?} {}", output.snapshot());
    };
    run(&["new", "tf", "Test framework", "mk/"]);
    person.plan("tf", crate::support::ONE);
    run(&["run", "tf"]);
    run(&["uat", "pass", "UAT-001"]);
    run(&["merge", "tf"]);
    assert_eq!(std::fs::read_dir(&packs).expect("a folder").count(), before);
}

#[test]
fn a_branch_that_lost_an_accepted_commit_goes_no_further() {
    let Some(person) = person(TWO) else { return };
    person.cast(OBEDIENT, APPROVE);
    person.run_once(0);
    let accepted = person.worktree("tf").head();
    person.worktree("tf").git(&["reset", "-q", "--hard", "HEAD~1"]);
    let output = person.run_once(4);
    assert!(output.stdout.contains(&accepted), "{}", output.snapshot());
    person.ok(&["reset", "tf"]);
    assert_eq!(person.meta("tf", "LAST_COMMIT_SHA"), "");
    let plan = read(&person.workstream_dir("tf").join("plan.md"));
    assert!(!plan.contains("Done: [x]"), "{plan}");
    person.run_once(0);
    let accepted = person.worktree("tf").head();
    assert_ne!(accepted, person.meta("tf", "BASE_SHA"));
    person.run_once(0);
    person.ok(&["uat", "pass", "UAT-001"]);
    person.worktree("tf").git(&["reset", "-q", "--hard", "HEAD~1"]);
    person.refused(&["merge", "tf"], 4, &["was accepted", "bring it back"]);
    let last = person.meta("tf", "LAST_COMMIT_SHA");
    person.worktree("tf").git(&["merge", "-q", &last]);
    person.ok(&["merge", "tf"]);
}

#[test]
fn a_secret_in_a_commit_is_refused() {
    let Some(person) = person_with_one() else { return };
    let secrets = person.ops().join("secrets/env.sh");
    write(&secrets, "MY_TOKEN=topsecretvalue123\n");
    std::fs::set_permissions(&secrets, std::fs::Permissions::from_mode(0o600)).expect("private");
    let before = person.worktree("tf").head();
    let shaped = format!("ghp_{}", "aB3dE6gH9jK2mN5pQ8sT");
    for secret in ["key=topsecretvalue123", shaped.as_str()] {
        person.cast(&GOOD.replace("echo harness", &format!("echo {secret}")), APPROVE);
        let output = person.run_once(4);
        assert!(output.stdout.contains("mk/test.mk would hold"), "{}", output.snapshot());
        assert!(!output.stdout.contains("topsecret"), "{}", output.snapshot());
        assert_eq!(person.worktree("tf").head(), before);
    }
    // A commit that takes it out again does not help: history keeps it.
    let detour = GOOD.replace(
        "echo harness >> mk/test.mk",
        "echo topsecretvalue123 > mk/a && git add -A && git commit -qm 'COMMIT-TF-001: a' && rm mk/a && echo x > mk/b",
    );
    person.cast(&detour, APPROVE);
    person.run_once(4);
    // What only looks like one may be allowed by its path.
    person.profile(&format!("{PROFILE}SECRETS_ALLOWED_PATHS=mk/\n"));
    person.cast(&GOOD.replace("echo harness", &format!("echo {shaped}")), APPROVE);
    person.run_once(0);
}

#[test]
fn an_emptied_test_recipe_is_noticed_and_the_reviewer_is_asked() {
    let Some(person) = person_with_one() else { return };
    person.profile(&format!("{PROFILE}ALLOWED_PATHS=\"Makefile mk/\"\n"));
    let weaken =
        GOOD.replace("echo harness >> mk/test.mk", "sed -i 's/test ! -e broken/true/' Makefile");
    person.cast(&weaken, APPROVE);
    person.run_once(0);
    let said = notes(&person);
    assert!(said.contains("Makefile: test-unit no longer has: test ! -e broken"), "{said}");
}

#[test]
fn an_objection_counts_although_an_approval_is_quoted() {
    let Some(person) = person_with_one() else { return };
    let quoting = REJECT.trim_end().trim_end_matches("'''").to_owned()
        + "The change has: {\"version\": 1, \"decision\": \"approve\"}\n'''\n";
    person.cast(GOOD, &quoting);
    person.run_once(6);
}

#[test]
fn results_that_tests_leave_in_the_worktree_stop_neither_merge_nor_close() {
    let Some(person) = person_with_one() else { return };
    person.profile(&format!("{PROFILE}TEST_IN=host\n"));
    person.run_once(0);
    assert!(person.worktree("tf").dir().join("test-results/app/unit/junit.xml").exists());
    person.ok(&["uat", "pass", "UAT-001"]);
    person.ok(&["merge", "tf"]);
    person.ok(&["close", "tf"]);
}

#[test]
fn what_no_suite_tested_says_so_and_is_merged_only_if_told() {
    let Some(person) = person_with_one() else { return };
    person.profile(&format!("{PROFILE}MAKE_TARGET_UNIT=none\n"));
    assert!(person.wf(&["doctor"]).stdout.contains("no suite can run"));
    let output = person.run_once(0);
    assert!(output.stdout.contains("COMMIT-TF-001: passed, untested"), "{}", output.snapshot());
    let result: Value = result(&person.last_run());
    assert_eq!(result["stages"]["test"]["status"], "skipped");
    assert!(notes(&person).contains("untested"), "{}", notes(&person));
    person.ok(&["uat", "pass", "UAT-001"]);
    person.refused(&["merge", "tf"], 5, &["no gate test ran", "wf merge tf --untested"]);
    person.ok(&["merge", "tf", "--untested"]);
}

#[test]
fn a_suite_that_shows_no_test_is_said_to_have_shown_none() {
    let Some(person) = person_with_one() else { return };
    person.profile(&format!("{PROFILE}TEST_CMD_UNIT=\"echo all is well\"\n"));
    let output = person.run_once(0);
    assert!(
        output.stdout.contains("COMMIT-TF-001: passed, no test was seen\n"),
        "{}",
        output.snapshot()
    );
    assert!(
        notes(&person).contains("no test was seen in the output of unit"),
        "{}",
        notes(&person)
    );
}

#[test]
fn tests_are_seen_in_the_output_of_a_runner() {
    let Some(person) = person_with_one() else { return };
    person.profile(&format!("{PROFILE}TEST_CMD_UNIT=\"echo 3 passed in 0.1s\"\n"));
    let output = person.run_once(0);
    assert!(output.stdout.contains("COMMIT-TF-001: passed\n"), "{}", output.snapshot());
    assert!(!notes(&person).contains("no test was seen"), "{}", notes(&person));
}

#[test]
fn a_full_disk_is_not_the_agents_fault() {
    let Some(person) = person_with_one() else { return };
    person.profile(&format!("{PROFILE}BOX_DISK_FLOOR_MB=100000000\n"));
    let output = person.run_once(1);
    assert!(output.stdout.contains("BOX_DISK_FLOOR_MB"), "{}", output.snapshot());
    assert!(!output.stdout.contains("used all its disk space"), "{}", output.snapshot());
    assert_eq!(result(&person.last_run())["exit_code"], 1);
    person.profile(PROFILE);
    person.run_once(0);
}

#[test]
fn a_project_is_tested_by_what_it_has() {
    let make = "all:\n\ttrue\ntest:\n\t@echo tested\n";
    for (file, text, expected) in [
        ("Makefile", make, "MAKE_TARGET_UNIT=test\nMAKE_TARGET_INTEGRATION=\"\"\n"),
        ("Cargo.toml", "[package]\n", "TEST_CMD_UNIT=\"cargo test\"\n"),
        ("package.json", "{\"scripts\": {\"test\": \"jest\"}}", "TEST_CMD_UNIT=\"npm test\"\n"),
        ("go.mod", "module x\n", "TEST_CMD_UNIT=\"go test ./...\"\n"),
    ] {
        let person = Person::unregistered();
        std::fs::remove_file(person.repo.dir().join("Makefile")).expect("a file");
        person.repo.write(file, text);
        person.ok(&["init", "--yes", "--provider", "claude", "--key-command", "echo k"]);
        let profile = read(&person.project_dir().join("project_profile.env"));
        assert!(profile.contains(expected), "{file}: {profile}");
    }
    assert!(MAKEFILE.contains("test-unit"));
}

#[test]
fn a_shallow_clone_is_refused_at_once() {
    let person = Person::unregistered();
    person.repo.write("more", "x").commit("second");
    let clone = person.hermetic.work().join("shallow");
    let url = format!("file://{}", person.repo.dir().display());
    person.repo.git(&["clone", "-q", "--depth", "1", &url, clone.to_str().expect("UTF-8")]);
    person.ok(&["project", "add", "shallow", "--repo-path", clone.to_str().expect("UTF-8")]);
    person.refused(&["--project", "shallow", "new", "tf", "T"], 2, &["git fetch --unshallow"]);
    let doctor = person.wf(&["--project", "shallow", "doctor"]);
    assert!(doctor.stdout.contains("is a shallow clone"), "{}", doctor.snapshot());
}

#[test]
fn a_wrong_lock_timeout_is_found_by_every_command() {
    let person = Person::new();
    let mut command = person.command(&["list"]);
    let output = person.hermetic.run(command.env("AOS_LOCK_TIMEOUT", "abc"));
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
}

/// An agent that breaks the tests at first and mends them when it is told what failed.
const SECOND_TRY: &str = r#"
[[step]]
run = '''
if grep -q 'The last try failed' /harness-state/run/harness/instructions.txt
then git rm -q broken; mkdir -p mk; echo mended > mk/a
else touch broken
fi
'''
[[step]]
print = '''{"status": "success"}
'''
"#;

#[test]
fn failing_tests_go_back_to_the_implementer_as_often_as_told() {
    let Some(person) = person_with_one() else { return };
    person.cast(SECOND_TRY, APPROVE);
    let output = person.wf(&["run", "tf", "--rounds", "2"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.runs().len(), 2);
    assert!(output.stderr.contains("Try 2 of 2"), "{}", output.snapshot());
    // The reviewer's demands are given back the same way, and the last try decides.
    let Some(person) = person_with_one() else { return };
    person.profile(&format!("{PROFILE}ROUNDS=3\n"));
    person.cast(OBEDIENT, REJECT);
    person.run_once(6);
    assert_eq!(person.runs().len(), 3);
}

#[test]
fn the_implementer_gets_a_persons_words() {
    let Some(person) = person_with_one() else { return };
    let heed = GOOD.replace(
        "mkdir",
        "grep -q 'keep the old name' /harness-state/run/harness/instructions.txt && mkdir",
    );
    person.cast(&heed, APPROVE);
    assert_ne!(person.wf(&["run", "tf"]).status, Some(0));
    let output = person.wf(&["run", "tf", "--guidance", "keep the old name"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
}
