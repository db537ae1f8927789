//! TEST: what counts as a failure, what as no test at all, and what is kept.

use crate::play::{APPROVE, GOOD, MAKEFILE, PROFILE, person_with_one};
use crate::support::{Person, read, result, write};

/// A person whose product has this makefile.
fn with_makefile(makefile: &str) -> Option<Person> {
    let person = person_with_one()?;
    let worktree = person.worktree("tf");
    worktree.write("Makefile", makefile);
    worktree.commit("COMMIT-TF-000: another makefile");
    Some(person)
}

fn manifest(person: &Person) -> serde_json::Value {
    serde_json::from_str(&read(&person.last_run().join("test_manifest.json"))).expect("JSON")
}

#[test]
fn a_broken_makefile_is_a_failure_and_a_missing_target_is_not() {
    let Some(person) = with_makefile("test-unit:\nbroken line\n") else { return };
    person.run_once(5);
    assert_eq!(manifest(&person)["suites"][0]["status"], "failed");
    let Some(person) = with_makefile("other:\n\ttrue\n") else { return };
    person.run_once(0);
    assert!(result(&person.last_run())["notes"].as_str().expect("notes").contains("no test suite"));
    let Some(person) = with_makefile("other:\n\ttrue\n") else { return };
    person.profile(&format!("{PROFILE}QA_STRICT=true\n"));
    person.run_once(7);
}

#[test]
fn tests_out_of_time_fail_with_124_and_leave_a_log() {
    let slow = "test-unit:\n\t@echo began\n\t@sleep 600\n";
    for test_in in ["box", "host"] {
        let Some(person) = with_makefile(slow) else { return };
        person.profile(&format!("{PROFILE}TEST_TIMEOUT=8\nTEST_IN={test_in}\n"));
        person.run_once(5);
        assert_eq!(manifest(&person)["suites"][0]["exit_code"], 124, "{test_in}");
        assert!(read(&person.last_run().join("tests/unit/output.log")).contains("began"));
    }
}

#[test]
fn only_fresh_evidence_counts() {
    let failing = MAKEFILE.replace("\"failed\": 0", "\"failed\": 1");
    let Some(person) = with_makefile(&failing) else { return };
    person.run_once(7);
    // What is in the repository was there before the tests.
    let Some(person) = with_makefile("test-unit:\n\t@echo nothing\n") else { return };
    let worktree = person.worktree("tf");
    worktree.write("test-results/app/unit/summary.json", "{\"failed\": 1}");
    worktree.commit("COMMIT-TF-000: stale");
    person.run_once(0);
    assert!(!person.last_run().join("tests/unit/summary.json").exists());
}

#[test]
fn links_among_the_results_are_not_followed() {
    let hostile = "test-unit:\n\t@mkdir -p test-results/app/unit/screenshots\n\t@ln -s /etc/passwd test-results/app/unit/junit.xml\n\t@ln -s /etc test-results/app/unit/coverage\n";
    let Some(person) = with_makefile(hostile) else { return };
    person.run_once(0);
    let kept = person.last_run().join("tests/unit");
    assert!(kept.join("junit.xml").symlink_metadata().is_err());
    assert!(kept.join("coverage").symlink_metadata().is_err());
    let whole = "test-unit:\n\t@mkdir -p test-results && ln -s /etc test-results/app\n";
    let Some(person) = with_makefile(whole) else { return };
    person.run_once(0);
}

#[test]
fn a_hostile_makefile_reaches_nothing_outside_its_box() {
    let hostile = "test-unit:\n\t@touch \"$(HOME)/../../x\" /workspace/../y 2>/dev/null; ls ../ > seen.txt; env > env.txt; ! curl -s http://127.0.0.1:1 2>/dev/null; test ! -e /work -o ! -e app.ops\n\t@mkdir -p test-results/app/unit && cp seen.txt env.txt test-results/app/unit/\n";
    let Some(person) = with_makefile(hostile) else { return };
    let mut command = person.command(&["run", "tf"]);
    command.env("CANARY_TOKEN", "do-not-show-me");
    let output = person.hermetic.run(&mut command);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let kept = person.last_run().join("tests/unit");
    assert!(!read(&kept.join("env.txt")).contains("do-not-show-me"));
    assert!(!read(&kept.join("seen.txt")).contains("app.ops"));
}

#[test]
fn screenshots_of_passed_end_to_end_tests_are_noted_beside_the_plan() {
    let shots = "test-e2e:\n\t@mkdir -p test-results/app/e2e/screenshots && echo png > test-results/app/e2e/screenshots/a.png\n";
    let Some(person) = with_makefile(shots) else { return };
    person.run_once(0);
    assert!(person.last_run().join("tests/e2e/screenshots/a.png").is_file());
    assert!(read(&person.workstream_dir("tf").join("docs_manifest.json")).contains("a.png"));
    assert!(!person.worktree("tf").dir().join("docs").exists());
}

#[test]
fn the_next_try_hears_of_the_failing_tests_and_adds_a_commit() {
    let Some(person) = person_with_one() else { return };
    person.cast(&GOOD.replace("echo harness", "touch broken; echo harness"), APPROVE);
    person.run_once(5);
    let fix = r#"
[[step]]
run = "cp /harness-state/run/harness/instructions.txt mk/told.txt && git rm -qf broken && git add -A && git commit -qm 'COMMIT-TF-001: mend the tests'"
[[step]]
print = '''{"status": "success"}
'''
"#;
    person.cast(fix, APPROVE);
    person.run_once(0);
    assert_eq!(
        person.subjects()[..2],
        ["COMMIT-TF-001: mend the tests", "COMMIT-TF-001: Add test harness"]
    );
    let told = person.worktree("tf").read("mk/told.txt");
    assert!(told.contains("The end of the failing unit tests"), "{told}");
}

#[test]
fn a_command_of_its_own_is_run_without_a_shell() {
    let Some(person) = person_with_one() else { return };
    person.profile(&format!("{PROFILE}TEST_CMD_UNIT=\"/bin/echo a > b\"\n"));
    person.run_once(0);
    assert!(read(&person.last_run().join("tests/unit/output.log")).contains("a > b"));
}

#[test]
fn secrets_of_tests_stay_out_of_boxes() {
    let Some(person) = person_with_one() else { return };
    write(&person.project_dir().join("implement.toml"), GOOD);
    person.profile(&format!("{PROFILE}SECRETS_TEST=TOKEN\n"));
    person.run_once(2);
    assert!(result(&person.last_run())["notes"].as_str().expect("notes").contains("SECRETS_TEST"));
}

#[test]
fn tests_on_the_host_get_the_secrets_that_they_list() {
    use std::os::unix::fs::PermissionsExt;
    let Some(person) = with_makefile(
        "test-unit:\n\t@test \"$$TOKEN\" = hunter2-very-secret -a -z \"$$OTHER\"\n\t@echo $$TOKEN\n",
    ) else {
        return;
    };
    let secrets = person.ops().join("secrets/env.sh");
    write(&secrets, "export TOKEN=hunter2-very-secret\nexport OTHER=another-secret-value\n");
    std::fs::set_permissions(&secrets, std::fs::Permissions::from_mode(0o600)).expect("private");
    person.profile(&format!("{PROFILE}TEST_IN=host\nSECRETS_TEST=TOKEN\n"));
    person.run_once(0);
    for file in ["commands.log", "tests/unit/output.log"] {
        assert!(!read(&person.last_run().join(file)).contains("hunter2"), "{file}");
    }
    person.profile(&format!("{PROFILE}TEST_IN=host\nSECRETS_TEST=MISSING\n"));
    person.plan("tf", &crate::support::ONE.replace("TF-001", "TF-002"));
    person.cast(&GOOD.replace("TF-001", "TF-002"), APPROVE);
    person.run_once(2);
}
