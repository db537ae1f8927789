//! Trees of run directories: what each kind of run leaves, and what it removes.

use crate::play::{APPROVE, GOOD, REJECT, person_with_one};
use crate::support::{ONE, ONE_DONE, Person};

fn last_tree(person: &Person) -> String {
    person.tree(&person.last_run(), &["workspace", "repo.git"])
}

#[test]
fn a_run_that_passed() {
    let Some(person) = person_with_one() else { return };
    person.run_once(0);
    insta::assert_snapshot!(last_tree(&person), @"
    boxes/
    boxes/commit/
    boxes/export-1/
    boxes/implement/
    boxes/review/
    boxes/test-e2e/
    boxes/test-integration/
    boxes/test-smoke/
    boxes/test-unit/
    claude_review.json
    commands.log
    diff.patch
    env_snapshot.txt
    implement.log
    result.json
    review.log
    run.jsonl
    run.lock
    run_summary.md
    test_manifest.json
    tests/
    tests/e2e/
    tests/e2e/output.log
    tests/integration/
    tests/integration/output.log
    tests/smoke/
    tests/smoke/output.log
    tests/unit/
    tests/unit/junit.xml
    tests/unit/output.log
    tests/unit/summary.json
    ");
}

#[test]
fn the_box_of_an_agent() {
    let Some(person) = person_with_one() else { return };
    person.run_once(0);
    let tree = person.tree(&person.last_run().join("boxes/implement"), &[]);
    insta::assert_snapshot!(tree, @"
    etc/
    etc/group
    etc/hosts
    etc/nsswitch.conf
    etc/passwd
    etc/resolv.conf
    exit.json
    guest/
    guest/config.json
    guest/harness/
    guest/harness/agent.argv
    guest/harness/instructions.txt
    guest/script.json
    harness/
    harness/run.sh
    lock
    max_inotify_instances
    max_inotify_watches
    order.json
    provider
    seccomp-0.bpf
    seccomp-1.bpf
    shim.json
    shim.log
    stderr.log
    stdout.log
    stdout.times
    ");
}

#[test]
fn a_run_whose_agent_failed() {
    let Some(person) = person_with_one() else { return };
    person.cast("[[step]]\nexit = 1\n", APPROVE);
    person.run_once(4);
    insta::assert_snapshot!(last_tree(&person), @"
    boxes/
    boxes/implement/
    commands.log
    env_snapshot.txt
    implement.log
    result.json
    run.jsonl
    run.lock
    run_summary.md
    workspace/
    ");
}

#[test]
fn a_run_whose_tests_failed() {
    let Some(person) = person_with_one() else { return };
    person.cast(&GOOD.replace("echo harness", "touch broken; echo harness"), APPROVE);
    person.run_once(5);
    insta::assert_snapshot!(last_tree(&person), @"
    boxes/
    boxes/commit/
    boxes/export-1/
    boxes/implement/
    boxes/test-e2e/
    boxes/test-integration/
    boxes/test-smoke/
    boxes/test-unit/
    commands.log
    env_snapshot.txt
    implement.log
    result.json
    run.jsonl
    run.lock
    run_summary.md
    test_manifest.json
    tests/
    tests/e2e/
    tests/e2e/output.log
    tests/integration/
    tests/integration/output.log
    tests/smoke/
    tests/smoke/output.log
    tests/unit/
    tests/unit/output.log
    ");
}

#[test]
fn a_run_whose_review_requested_changes() {
    let Some(person) = person_with_one() else { return };
    person.cast(GOOD, REJECT);
    person.run_once(6);
    insta::assert_snapshot!(last_tree(&person), @"
    boxes/
    boxes/commit/
    boxes/export-1/
    boxes/implement/
    boxes/review/
    boxes/test-e2e/
    boxes/test-integration/
    boxes/test-smoke/
    boxes/test-unit/
    claude_review.json
    commands.log
    diff.patch
    env_snapshot.txt
    implement.log
    result.json
    review.log
    run.jsonl
    run.lock
    run_summary.md
    test_manifest.json
    tests/
    tests/e2e/
    tests/e2e/output.log
    tests/integration/
    tests/integration/output.log
    tests/smoke/
    tests/smoke/output.log
    tests/unit/
    tests/unit/junit.xml
    tests/unit/output.log
    tests/unit/summary.json
    ");
}

#[test]
fn a_run_that_asked_a_question() {
    let Some(person) = person_with_one() else { return };
    person.cast("[[step]]\nask = { question = \"Which?\", options = [\"a\"] }\n", APPROVE);
    person.run_once(8);
    insta::assert_snapshot!(last_tree(&person), @"
    boxes/
    boxes/implement/
    commands.log
    env_snapshot.txt
    implement.log
    result.json
    run.jsonl
    run.lock
    run_summary.md
    workspace/
    ");
}

#[test]
fn a_run_without_an_agent() {
    let person = Person::with_plan(ONE);
    person.question("tf", "CLQ-001", "blocking");
    person.wf(&["run", "tf"]);
    insta::assert_snapshot!(person.tree(&person.runs()[0], &[]), @"
    commands.log
    env_snapshot.txt
    result.json
    run.jsonl
    run.lock
    run_summary.md
    ");
}

#[test]
fn the_ops_directory_after_a_run() {
    let Some(person) = person_with_one() else { return };
    person.run_once(0);
    insta::assert_snapshot!(person.tree(&person.ops(), &["worktrees/tf", "mirrors", "runs", "agents", "workflow"]), @"
    agents/
    locks/
    locks/global.lock
    locks/workstream.app.tf.lock
    mirrors/
    runs/
    state/
    workflow/
    worktrees/
    worktrees/tf/
    ");
}

#[test]
fn the_workstream_after_a_run() {
    let Some(person) = person_with_one() else { return };
    person.run_once(0);
    insta::assert_snapshot!(person.tree(&person.workstream_dir("tf"), &[]), @"
    clarifications/
    clarifications/answered/
    clarifications/pending/
    meta.env
    notes.md
    plan.md
    touched_files.txt
    uat/
    uat/failed/
    uat/passed/
    uat/pending/
    uat/pending/UAT-001.json
    uat/pending/UAT-001.md
    ");
}

#[test]
fn the_workstream_after_a_merge() {
    let person = Person::with_plan(ONE_DONE);
    person.worktree("tf").write("feature", "x\n").commit("COMMIT-TF-001: x");
    person.wf(&["run", "tf"]);
    person.ok(&["uat", "pass", "UAT-001"]);
    person.ok(&["merge", "tf"]);
    let merge =
        person.runs().into_iter().find(|run| run.ends_with_name("_merge")).expect("a merge");
    let trees = [person.tree(&person.workstream_dir("tf"), &[]), person.tree(&merge, &[])];
    insta::assert_snapshot!(trees.join("\n"), @"
    clarifications/
    clarifications/answered/
    clarifications/pending/
    meta.env
    notes.md
    plan.md
    touched_files.txt
    uat/
    uat/failed/
    uat/passed/
    uat/passed/UAT-001.json
    uat/passed/UAT-001.md
    uat/pending/

    commands.log
    run.lock
    tests/
    tests/merge-gate/
    tests/merge-gate/output.log
    ");
}

trait EndsWithName {
    fn ends_with_name(&self, end: &str) -> bool;
}

impl EndsWithName for std::path::PathBuf {
    fn ends_with_name(&self, end: &str) -> bool {
        self.to_string_lossy().ends_with(end)
    }
}

#[test]
fn the_drafting_of_a_plan() {
    let Some(person) = person_with_one() else { return };
    person.cast(GOOD, "[[step]]\nprint = '''{\"commits\": [{\"title\": \"Add a form\"}]}\n'''\n");
    person.ok(&["plan", "tf", "--from", "people can log in"]);
    insta::assert_snapshot!(last_tree(&person), @"
    boxes/
    boxes/plan/
    commands.log
    plan.log
    run.lock
    ");
}
