//! REVIEW: decisions, invalid answers, and what the reviewer is shown.

use crate::play::{APPROVE, GOOD, REJECT, person_with_one};
use crate::support::{read, result};

#[test]
fn an_invalid_review_leaves_its_words_and_no_file_and_the_work_is_not_done_again() {
    let Some(person) = person_with_one() else { return };
    person.cast(GOOD, "[[step]]\nprint = \"LGTM\\n\"\n");
    person.run_once(6);
    let run = person.last_run();
    assert!(!run.join("claude_review.json").exists());
    assert!(read(&run.join("review.log")).contains("LGTM"));
    assert_eq!(person.meta("tf", "STATUS"), "implement");
    // There was no verdict on the commit, so it is looked at again and not made again.
    person.cast("[[step]]\nexit = 9\n", APPROVE);
    person.run_once(0);
    assert_eq!(person.subjects().iter().filter(|line| line.contains("TF-001")).count(), 1);
    assert!(result(&person.last_run())["notes"].as_str().expect("notes").contains("resumed "));
}

#[test]
fn an_approval_with_blockers_goes_on_with_a_warning() {
    let Some(person) = person_with_one() else { return };
    person.cast(GOOD, &REJECT.replace("request_changes", "approve"));
    person.run_once(0);
    assert!(result(&person.last_run())["notes"].as_str().expect("notes").contains("1 blocker"));
}

#[test]
fn a_request_without_reasons_is_still_a_request() {
    let Some(person) = person_with_one() else { return };
    let bare = "[[step]]\nprint = '''{\"version\": 1, \"decision\": \"request_changes\"}\n'''\n";
    person.cast(GOOD, bare);
    person.run_once(6);
    assert_eq!(person.meta("tf", "STATUS"), "blocked:review");
}

#[test]
fn the_next_try_hears_the_blockers_and_the_review_shows_all_of_the_micro_commit() {
    let Some(person) = person_with_one() else { return };
    person.cast(GOOD, REJECT);
    person.run_once(6);
    // An agent that does nothing does not pass on the strength of the old commit.
    person.cast("[[step]]\nprint = '''{\"status\": \"success\"}\n'''\n", APPROVE);
    person.run_once(4);
    assert!(result(&person.last_run())["notes"].as_str().expect("notes").contains("no commit"));
    person.cast(GOOD, REJECT);
    person.run_once(6);
    let more = r#"
[[step]]
run = "cp /harness-state/run/harness/instructions.txt mk/told.txt"
[[step]]
print = '''{"status": "success"}
'''
"#;
    person.cast(more, APPROVE);
    person.run_once(0);
    assert!(
        person.worktree("tf").read("mk/told.txt").contains("mk/test.mk:1: no target (add one)")
    );
    let diff = read(&person.last_run().join("diff.patch"));
    assert!(diff.contains("mk/told.txt") && diff.contains("mk/test.mk"), "{diff}");
}

#[test]
fn the_reviewer_sees_the_diff_as_a_file_and_can_change_nothing() {
    let Some(person) = person_with_one() else { return };
    let curious = r#"
[[step]]
run = "grep -q '^+harness' /harness-state/run/diff.patch && grep -q harness mk/test.mk"
[[step]]
run = "touch /workspace/x"
expect = 1
[[step]]
run = "git -C /workspace commit --allow-empty -m x"
expect = 128
[[step]]
print = '''{"version": 1, "decision": "approve"}
'''
"#;
    person.cast(GOOD, curious);
    person.run_once(0);
}

#[test]
fn weakened_tests_are_named_to_the_reviewer_and_in_the_summary() {
    let Some(person) = person_with_one() else { return };
    let worktree = person.worktree("tf");
    worktree.write("tests/a.py", "def test_a():\n    assert 1\n");
    worktree.commit("COMMIT-TF-000: a test");
    let deletes = r#"
[[step]]
run = "git rm -q tests/a.py && git commit -qm 'COMMIT-TF-001: gone'"
[[step]]
print = '''{"status": "success"}
'''
"#;
    let told = r#"
[[step]]
run = "grep -q 'tests/a.py was deleted' /harness-state/run/harness/instructions.txt"
[[step]]
print = '''{"version": 1, "decision": "approve"}
'''
"#;
    // What was committed before counts as the base.
    person.set_meta("tf", "BASE_SHA", &worktree.head());
    person.cast(deletes, told);
    person.run_once(0);
    let summary = read(&person.last_run().join("run_summary.md"));
    assert!(summary.contains("protected tests: tests/a.py was deleted"), "{summary}");
}
