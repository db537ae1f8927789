//! Transient failures of agents are tried again; after the last round a person is asked.

use crate::play::{APPROVE, GOOD, PROFILE, person_with_one};
use crate::support::{read, result};

/// An agent that fails for a passing reason (status 75) as often as told, then works.
fn troubled(times: u32) -> String {
    let trouble = format!(
        "[[step]]\nrun = 'n=$(cat ~/tries 2>/dev/null || echo 0); echo $((n + 1)) > ~/tries; [ $n -ge {times} ] || exit 75'\n"
    );
    format!("{trouble}{GOOD}")
}

#[test]
fn a_transient_failure_is_tried_again_within_the_run() {
    let Some(person) = person_with_one() else { return };
    person.profile(&format!("{PROFILE}AGENT_RETRY_PAUSE=1\n"));
    person.cast(&troubled(2), APPROVE);
    let output = person.run_once(0);
    assert!(output.stderr.contains("trying again in 1 s"), "{}", output.snapshot());
    assert!(output.stderr.contains("trying again in 2 s"), "{}", output.snapshot());
    assert_eq!(person.runs().len(), 1);
    let notes = result(&person.last_run())["notes"].to_string();
    assert!(notes.contains("implement: the script ended with status 75; trying again"), "{notes}");
    for name in ["implement", "implement-2", "implement-3"] {
        assert!(person.last_run().join("boxes").join(name).is_dir(), "{name}");
    }
}

#[test]
fn a_failure_that_does_not_pass_ends_after_the_retries() {
    let Some(person) = person_with_one() else { return };
    person.profile(&format!("{PROFILE}AGENT_RETRIES=1\nAGENT_RETRY_PAUSE=1\n"));
    person.cast(&troubled(9), APPROVE);
    let output = person.run_once(4);
    assert!(output.stdout.contains("the script ended with status 75"), "{}", output.stdout);
    assert_eq!(read(&person.ops().join("agents/app.tf/scripted/state/home/tries")), "2\n");
    // An ordinary failure is not tried again.
    person.cast("[[step]]\nexit = 3\n", APPROVE);
    let output = person.run_once(4);
    assert!(!output.stderr.contains("trying again"), "{}", output.snapshot());
}

/// An agent that breaks the tests until its instructions hold a person's answer.
const NEEDS_ANSWER: &str = r#"
[[step]]
run = '''
mkdir -p mk && echo x >> mk/test.mk
if grep -q 'leave broken out' /harness-state/run/harness/instructions.txt; then rm -f broken; else touch broken; fi
'''
[[step]]
print = '''{"status": "success"}
'''
"#;

#[test]
fn after_the_last_round_a_person_is_asked_and_the_answer_goes_to_the_implementer() {
    let Some(person) = person_with_one() else { return };
    person.cast(NEEDS_ANSWER, APPROVE);
    let output = person.wf(&["run", "tf", "--rounds", "2"]);
    assert_eq!(output.status, Some(5), "{}", output.snapshot());
    assert!(output.stdout.contains("CLQ-001 asks how to go on"), "{}", output.snapshot());
    assert_eq!(person.meta("tf", "STATUS"), "blocked:clarification");
    assert_eq!(person.meta("tf", "BLOCKED_BY"), "CLQ-001");
    let asked = person.ok(&["clarify", "show", "CLQ-001"]);
    assert!(
        asked.contains("COMMIT-TF-001 failed 2 times") && asked.contains("tests failed: unit"),
        "{asked}"
    );
    person.refused(&["run", "tf"], 8, &["CLQ-001"]);
    person.ok(&["clarify", "answer", "CLQ-001", "leave broken out"]);
    person.run_once(0);
    // One round asks nothing: the specification's own way.
    let Some(person) = person_with_one() else { return };
    person.cast(NEEDS_ANSWER, APPROVE);
    person.run_once(5);
    assert_eq!(person.meta("tf", "STATUS"), "blocked:test");
}
