//! The golden scenarios of the specification, section 10, under their numbers: the real binary, real git and make, agents
//! by script in real boxes.

use crate::play::{APPROVE, GOOD, PROFILE, REJECT, person, person_with_one};
use crate::support::{ONE_DONE, read, result, write};

#[test]
fn scenario_10_1_a_single_micro_commit_passes() {
    let Some(person) = person_with_one() else { return };
    person.run_once(0);
    let run = person.last_run();
    assert!(run.to_string_lossy().ends_with("_app_tf_COMMIT-TF-001"), "{run:?}");
    assert_eq!(result(&run)["status"], "passed");
    for file in ["run_summary.md", "commands.log", "env_snapshot.txt", "implement.log"] {
        assert!(run.join(file).is_file(), "{file}");
    }
    assert!(read(&run.join("diff.patch")).contains("+harness"));
    assert!(read(&run.join("claude_review.json")).contains("\"decision\": \"approve\""));
    let manifest = read(&run.join("test_manifest.json"));
    assert!(manifest.contains("\"passed\""), "{manifest}");
    assert!(run.join("tests/unit/junit.xml").is_file());
    // What is kept is the record: no copies of the repository, no programs.
    for gone in ["workspace", "test-workspace", "repo.git", "boxes/implement/guest/bottle-guest"] {
        assert!(!run.join(gone).exists(), "{gone}");
    }
    assert!(person.subjects()[0].starts_with("COMMIT-TF-001:"));
    assert!(read(&person.workstream_dir("tf").join("plan.md")).contains("Done: [x]"));
    let name = run.file_name().expect("a name").to_string_lossy().into_owned();
    assert_eq!(person.meta("tf", "LAST_RUN_ID"), name);
    assert_eq!(person.meta("tf", "LAST_COMMIT_SHA"), person.worktree("tf").head());
    assert_eq!(read(&person.workstream_dir("tf").join("touched_files.txt")), "mk/test.mk\n");
    assert!(read(&person.project_dir().join("ACTIVE_WORKSTREAMS.md")).contains("feat/tf"));
}

#[test]
fn scenario_10_2_tests_fail() {
    let Some(person) = person_with_one() else { return };
    let broken = GOOD.replace("echo harness", "touch broken; echo harness");
    person.cast(&broken, APPROVE);
    person.run_once(5);
    let result = result(&person.last_run());
    assert_eq!((&result["status"], &result["failed_stage"]), (&"failed".into(), &"test".into()));
    assert!(read(&person.workstream_dir("tf").join("plan.md")).contains("Done: [ ]"));
    assert_eq!(person.meta("tf", "STATUS"), "blocked:test");
}

#[test]
fn scenario_10_3_the_review_requests_changes() {
    let Some(person) = person_with_one() else { return };
    person.cast(GOOD, REJECT);
    person.run_once(6);
    let run = person.last_run();
    let result = result(&run);
    assert_eq!((&result["status"], &result["failed_stage"]), (&"failed".into(), &"review".into()));
    assert!(read(&run.join("claude_review.json")).contains("no target"));
    assert_eq!(person.meta("tf", "STATUS"), "blocked:review");
}

#[test]
fn scenario_10_4_a_clarification_is_needed() {
    let Some(person) = person_with_one() else { return };
    person.question("tf", "CLQ-001", "blocking");
    person.run_once(8);
    let run = person.last_run();
    let result = result(&run);
    assert_eq!(
        (&result["status"], &result["blocked_reason"]),
        (&"blocked".into(), &"CLQ-001".into())
    );
    assert!(!run.join("implement.log").exists() && !run.join("boxes").exists());
    assert_eq!(person.meta("tf", "STATUS"), "blocked:clarification");
}

#[test]
fn scenario_10_5_everything_is_done_and_acceptance_waits() {
    let Some(person) = person(ONE_DONE) else { return };
    person.run_once(8);
    assert_eq!(person.meta("tf", "STATUS"), "uat:pending");
    assert!(person.workstream_dir("tf").join("uat/pending/UAT-001.json").is_file());
}

/// Two micro-commits; the agent reads in its instructions which one it is to do.
const TWO: &str = "# Plan\n\n### COMMIT-TF-001: Add one\n\nDone: [ ]\n\n### COMMIT-TF-002: Add two\n\nDone: [ ]\n";
const OBEDIENT: &str = r#"
[[step]]
run = '''
id=$(grep -o 'COMMIT-TF-00[0-9]' /harness-state/run/harness/instructions.txt | head -n 1)
mkdir -p mk && echo "$id" >> mk/test.mk && git add -A && git commit -qm "$id: Add it"
'''
[[step]]
print = '''{"status": "success"}
'''
"#;

#[test]
fn scenario_10_6_loop_until_blocked() {
    let Some(person) = person(TWO) else { return };
    person.cast(OBEDIENT, APPROVE);
    let output = person.wf(&["run", "tf", "--loop"]);
    assert_eq!(output.status, Some(8), "{}", output.snapshot());
    let names: Vec<String> = person.runs().iter().map(|run| run.to_string_lossy().into()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names[0].ends_with("COMMIT-TF-001") && names[1].ends_with("COMMIT-TF-002"));
    assert_eq!(result(&person.runs()[2])["failed_stage"], "uat");
    assert_eq!(person.subjects()[..2], ["COMMIT-TF-002: Add it", "COMMIT-TF-001: Add it"]);
    assert_eq!(person.meta("tf", "STATUS"), "uat:pending");
}

#[test]
fn scenario_10_6_a_loop_stops_at_the_first_failure() {
    let Some(person) = person(TWO) else { return };
    person.cast(OBEDIENT, REJECT);
    let output = person.wf(&["run", "tf", "--loop"]);
    assert_eq!(output.status, Some(6), "{}", output.snapshot());
    assert_eq!(person.runs().len(), 1);
}

#[test]
fn a_loop_that_needs_somebody_tells_them() {
    let Some(person) = person(TWO) else { return };
    let (told, script) = (person.hermetic.work().join("told"), person.hermetic.work().join("tell"));
    write(&script, &format!("echo \"$2\" >> {}\n", told.display()));
    person.profile(&format!("{PROFILE}NOTIFY_CMD=\"sh {} word\"\n", script.display()));
    person.cast(OBEDIENT, REJECT);
    let output = person.wf(&["run", "tf", "--loop"]);
    assert_eq!(output.status, Some(6), "{}", output.snapshot());
    assert!(read(&told).starts_with("tf: "), "{}", read(&told));
}
