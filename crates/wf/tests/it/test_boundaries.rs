//! What wf must never do, tried.

use crate::support::{ONE_DONE, Person};

/// Every command that writes, on a project with a remote; the product's checkout and the remote stay as they were.
#[test]
fn no_command_pushes_or_touches_the_checkout_unasked() {
    let person = Person::with_plan(ONE_DONE);
    let origin = testkit::repo::Repo::init_bare(person.hermetic.root().join("origin.git"));
    person.repo.git(&["remote", "add", "origin", origin.dir().to_str().expect("UTF-8")]);
    let before =
        (person.repo.sha("main"), person.repo.git(&["status", "--porcelain", "--ignored"]));
    person.worktree("tf").write("x", "x").commit("COMMIT-TF-001: x");
    person.wf(&["run", "tf"]);
    person.ok(&["refresh"]);
    person.ok(&["conflicts", "tf"]);
    person.ok(&["clarify", "ask", "tf", "--question", "Well?", "--urgency", "low"]);
    person.ok(&["uat", "pass", "UAT-001"]);
    assert_eq!(
        (person.repo.sha("main"), person.repo.git(&["status", "--porcelain", "--ignored"])),
        before
    );
    person.ok(&["merge", "tf"]);
    assert_eq!(origin.git(&["for-each-ref"]), "", "nothing was pushed");
    person.ok(&["close", "tf"]);
    assert_eq!(origin.git(&["for-each-ref"]), "");
}

#[test]
fn workflow_files_never_enter_the_product() {
    let person = Person::with_plan(ONE_DONE);
    person.wf(&["run", "tf"]);
    assert_eq!(person.worktree("tf").git(&["status", "--porcelain", "--ignored"]), "");
    assert_eq!(person.repo.git(&["log", "--all", "--format=%s"]), "start");
}
