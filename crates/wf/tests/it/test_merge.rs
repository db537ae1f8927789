//! Merging locally.

use std::os::unix::fs::PermissionsExt;

use testkit::repo::Repo;

use crate::support::{ONE_DONE, Person, operations};

#[test]
fn a_merge_needs_acceptance() {
    let person = Person::with_plan(ONE_DONE);
    person.refused(&["merge", "tf"], 8, &["not merge-ready"]);
}

#[test]
fn a_checked_out_branch_is_fast_forwarded_with_its_files() {
    let person = Person::accepted();
    assert!(person.ok(&["merge", "tf"]).contains("fast-forward"));
    assert_eq!(person.repo.sha("main"), person.worktree("tf").head());
    assert_eq!(person.repo.read("feature"), "x\n");
    assert_eq!(person.repo.git(&["status", "--porcelain"]), "");
    assert_eq!(person.meta("tf", "STATUS"), "done");
    assert!(person.ok(&["list"]).contains("No active workstreams"));
    person.ok(&["close", "tf"]);
}

#[test]
fn a_branch_that_moved_gets_a_merge_commit_and_no_tree_is_needed() {
    let person = Person::accepted();
    person.repo.write("other", "y\n").commit("on main");
    let main = person.repo.sha("main");
    person.repo.git(&["switch", "-q", "--detach"]);
    assert!(person.ok(&["merge", "tf"]).contains("merge commit"));
    let parents = person.repo.git(&["log", "-1", "--format=%P %s", "main"]);
    assert_eq!(
        parents,
        format!("{main} {} Merge workstream tf: Test framework", person.worktree("tf").head())
    );
}

#[test]
fn conflicts_and_uncommitted_changes_block_with_8() {
    let person = Person::accepted();
    person.repo.write("README.md", "dirty");
    person.refused(&["merge", "tf"], 8, &["uncommitted"]);
    person.repo.write("feature", "other\n").commit("on main");
    let main = person.repo.sha("main");
    person.refused(&["merge", "tf"], 8, &["conflicts with main in feature"]);
    assert_eq!(person.repo.sha("main"), main);
    person.worktree("tf").write("stray", "x");
    person.refused(&["merge", "tf"], 8, &["stray"]);
    assert_eq!(person.meta("tf", "STATUS"), "merge-ready");
}

#[test]
fn the_gate_test_must_pass() {
    let person = Person::accepted();
    person.profile("TEST_IN=host\nMERGE_MODE=local\nMAKE_TARGET_MERGE_GATE_TEST=gate\n");
    person.worktree("tf").write("Makefile", "gate:\n\tfalse\n").commit("COMMIT-TF-001: gate");
    person.refused(&["merge", "tf"], 5, &["gate test failed", "COMMIT-TF-002"]);
    assert_eq!(person.meta("tf", "STATUS"), "implement");
    person.refused(&["merge", "tf"], 8, &["not merge-ready"]);
    person.ok(&["plan", "drop", "COMMIT-TF-002", "-w", "tf"]);
    assert_eq!(person.meta("tf", "STATUS"), "merge-ready");
}

/// A gate that passes on each side alone and fails on both together.
#[test]
fn the_gate_judges_what_main_will_be() {
    let person = Person::accepted();
    person.profile("TEST_IN=host\nMERGE_MODE=local\nMAKE_TARGET_MERGE_GATE_TEST=gate\n");
    let gate = "gate:\n\ttest ! -e feature || test ! -e other\n";
    person.worktree("tf").write("Makefile", gate).commit("COMMIT-TF-001: gate");
    person.repo.write("other", "y\n").commit("on main");
    let main = person.repo.sha("main");
    person.refused(&["merge", "tf"], 5, &["gate test failed", "COMMIT-TF-002"]);
    assert_eq!(person.repo.sha("main"), main);
}

/// Main has the workstream, and more that nobody judged: after a push that origin refused and a pull, or by hand.
#[test]
fn a_base_that_went_on_from_the_workstream_is_judged() {
    let person = Person::accepted();
    person.profile("TEST_IN=host\nMERGE_MODE=local\nMAKE_TARGET_MERGE_GATE_TEST=gate\n");
    let gate = "gate:\n\ttest ! -e feature || test ! -e other\n";
    person.worktree("tf").write("Makefile", gate).commit("COMMIT-TF-001: gate");
    let branch = person.meta("tf", "BRANCH");
    person.repo.git(&["merge", "-q", &branch]);
    person.repo.write("other", "y\n").commit("somebody else");
    let main = person.repo.sha("main");
    person.refused(&["merge", "tf"], 5, &["gate test failed", "COMMIT-TF-002"]);
    assert_eq!(person.repo.sha("main"), main);
    assert_eq!(person.meta("tf", "STATUS"), "implement");
}

#[test]
fn a_plan_that_cannot_be_read_is_not_done() {
    let person = Person::accepted();
    let plan = person.workstream_dir("tf").join("plan.md");
    let text = std::fs::read_to_string(&plan).expect("the plan");
    std::fs::write(&plan, format!("{text}\n{text}")).expect("written");
    person.refused(&["merge", "tf"], 8, &["not known to be done", "COMMIT-TF-001"]);
    assert_eq!(person.meta("tf", "STATUS"), "merge-ready");
}

#[test]
fn commits_after_the_acceptance_are_named() {
    let person = Person::accepted();
    let accepted = person.worktree("tf").head();
    person.worktree("tf").write("sneak", "x\n").commit("sneak");
    let output = person.wf(&["merge", "tf"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let words = format!("is not what UAT-001 accepted ({})", &accepted[..12]);
    assert!(output.stderr.contains(&words), "{}", output.stderr);
    assert!(output.stderr.contains("1 commit came after it"), "{}", output.stderr);
}

#[test]
fn a_branch_that_is_gone_is_bad_to_the_doctor() {
    let person = Person::accepted();
    let branch = person.meta("tf", "BRANCH");
    person.repo.git(&["update-ref", "-d", &format!("refs/heads/{branch}")]);
    let output = person.wf(&["doctor"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(
        output.stdout.contains(&format!("{branch} does not exist any more; restore it")),
        "{}",
        output.stdout
    );
}

/// A branch that cannot be merged is not said to be ready for it.
#[test]
fn a_branch_that_is_gone_is_named_by_list_and_status() {
    let person = Person::accepted();
    let branch = person.meta("tf", "BRANCH");
    let list = person.wf(&["list"]);
    assert!(!list.snapshot().contains("gone"), "{}", list.snapshot());
    person.repo.git(&["update-ref", "-d", &format!("refs/heads/{branch}")]);
    let list = person.wf(&["list"]);
    assert_eq!(list.status, Some(0), "{}", list.snapshot());
    assert!(list.stdout.contains("merge-ready, branch gone"), "{}", list.stdout);
    let words = format!("{branch} does not exist any more; restore it");
    assert!(list.stderr.contains(&words), "{}", list.stderr);
    let status = person.wf(&["status", "tf"]);
    assert!(status.stdout.contains("merge-ready, but its branch is gone"), "{}", status.stdout);
    assert!(!status.stdout.contains("merge: wf merge"), "{}", status.stdout);
    for args in [&["list", "--json"][..], &["status", "tf", "--json"]] {
        let document: serde_json::Value =
            serde_json::from_str(&person.wf(args).stdout).expect("JSON");
        let row = document.get(0).unwrap_or(&document);
        let needs = row["needs"].as_str().expect("a need");
        assert!(needs.contains(&words) && row["fault"] == needs, "{document:#}");
        assert_eq!(row["meta"]["status"], "merge-ready", "{document:#}");
    }
}

#[test]
fn what_moved_while_the_gate_ran_is_judged_again() {
    let person = Person::accepted();
    person.profile("TEST_IN=host\nMERGE_MODE=local\nMAKE_TARGET_MERGE_GATE_TEST=gate\n");
    person.repo.git(&["switch", "-q", "--detach"]);
    let repo = person.repo.dir().display().to_string();
    let moved = person.hermetic.work().join("moved").display().to_string();
    let move_main = format!(
        "git -C {repo} update-ref refs/heads/main $$(git -C {repo} -c user.name=a -c user.email=a@example.com commit-tree -p main -m fast main^{{tree}})"
    );
    let gate = format!("gate:\n\ttest -e {moved} || {move_main}\n\techo run >> {moved}\n");
    person.worktree("tf").write("Makefile", &gate).commit("COMMIT-TF-001: gate");
    let said = person.ok(&["merge", "tf"]);
    assert!(said.contains("merge commit"), "{said}");
    assert_eq!(std::fs::read_to_string(&moved).expect("the gate's runs"), "run\nrun\n");
    let line = person.repo.git(&["log", "--first-parent", "-2", "--format=%s", "main"]);
    assert_eq!(line, "Merge workstream tf: Test framework\nfast");
    let judged = person.worktree("tf").git(&["rev-parse", "HEAD^{tree}"]);
    assert_eq!(person.repo.git(&["rev-parse", "main^{tree}"]), judged);
}

#[test]
fn a_branch_that_never_rests_is_not_merged() {
    let person = Person::accepted();
    person.profile("TEST_IN=host\nMERGE_MODE=local\nMAKE_TARGET_MERGE_GATE_TEST=gate\n");
    person.repo.git(&["switch", "-q", "--detach"]);
    let repo = person.repo.dir().display().to_string();
    let gate = format!(
        "gate:\n\tgit -C {repo} update-ref refs/heads/main $$(git -C {repo} -c user.name=a -c user.email=a@example.com commit-tree -p main -m fast main^{{tree}})\n"
    );
    person.worktree("tf").write("Makefile", &gate).commit("COMMIT-TF-001: gate");
    person.refused(&["merge", "tf"], 8, &["moved 3 times", "wf merge tf"]);
    assert_eq!(person.meta("tf", "STATUS"), "merge-ready");
    assert_eq!(person.repo.git(&["log", "-1", "--format=%s", "main"]), "fast");
}

#[test]
fn a_merge_that_died_is_finished_by_the_next() {
    for point in ["merge-before-move", "merge-after-move"] {
        let person = Person::accepted();
        let mut command = person.command(&["merge", "tf"]);
        assert_eq!(person.hermetic.run(command.env("BOTTLEWORKS_FAILPOINT", point)).status, None);
        person.ok(&["merge", "tf"]);
        assert_eq!(person.meta("tf", "STATUS"), "done", "{point}");
        assert_eq!(person.repo.sha("main"), person.worktree("tf").head(), "{point}");
    }
}

#[test]
fn a_merge_commit_of_a_merge_that_died_is_made_once() {
    for point in ["merge-before-move", "merge-after-move"] {
        let person = Person::accepted();
        person.repo.write("other", "y\n").commit("on main");
        let before = person.repo.sha("main");
        person.repo.git(&["switch", "-q", "--detach"]);
        let mut command = person.command(&["merge", "tf"]);
        let output = person.hermetic.run(command.env("BOTTLEWORKS_FAILPOINT", point));
        assert_eq!(output.signal, Some(9), "not killed at {point}: {}", output.snapshot());
        person.ok(&["merge", "tf"]);
        assert_eq!(person.meta("tf", "STATUS"), "done", "{point}");
        let parents = person.repo.git(&["log", "-1", "--format=%P", "main"]);
        assert_eq!(parents, format!("{before} {}", person.worktree("tf").head()), "{point}");
    }
}

#[test]
fn a_base_branch_that_moved_after_a_crash_is_merged_with_and_not_overwritten() {
    let person = Person::accepted();
    person.repo.git(&["switch", "-q", "--detach"]);
    let mut command = person.command(&["merge", "tf"]);
    person.hermetic.run(command.env("BOTTLEWORKS_FAILPOINT", "merge-before-move"));
    person.repo.git(&["switch", "-q", "main"]);
    person.repo.write("other", "y\n").commit("somebody else was faster");
    let theirs = person.repo.sha("main");
    person.ok(&["merge", "tf"]);
    let parents = person.repo.git(&["log", "-1", "--format=%P", "main"]);
    assert_eq!(parents, format!("{theirs} {}", person.worktree("tf").head()));
}

#[test]
fn an_unknown_mode_is_refused() {
    let person = Person::accepted();
    person.profile("MERGE_MODE=svn\n");
    person.refused(&["merge", "tf"], 2, &["MERGE_MODE must be"]);
}

#[test]
fn a_push_that_was_interrupted_is_finished_by_the_next_merge() {
    for point in [
        "wf-branch.merge-intended",
        "wf-branch.merge-happened",
        "wf-branch.push-intended",
        "wf-branch.push-happened",
    ] {
        let person = Person::accepted();
        let origin = Repo::init_bare(person.hermetic.work().join("origin.git"));
        person.repo.git(&["remote", "add", "origin", origin.dir().to_str().expect("UTF-8")]);
        let mut command = person.command(&["merge", "tf", "--push"]);
        let output = person.hermetic.run(command.env("BOTTLEWORKS_FAILPOINT", point));
        assert_eq!(output.signal, Some(9), "not killed at {point}: {}", output.snapshot());
        assert_eq!(person.meta("tf", "STATUS"), "merge-ready", "{point}");
        person.ok(&["merge", "tf", "--push"]);
        assert_eq!(origin.sha("main"), person.worktree("tf").head(), "{point}");
        assert_eq!(person.meta("tf", "STATUS"), "done", "{point}");
        let last = operations(&person).pop();
        assert_eq!(last.as_deref(), Some("branch.push main done"), "{point}");
        assert!(person.wf(&["doctor"]).stdout.contains("all finished"), "{point}");
    }
}

/// What a push of the same commit does that arrives a moment earlier, and a server that dies before it answers.
#[test]
fn a_push_that_did_not_clearly_succeed_counts_where_origin_has_the_commit() {
    for (name, script) in
        [("update", "git update-ref \"$1\" \"$3\"\n"), ("post-receive", "kill -9 $PPID\n")]
    {
        let person = Person::accepted();
        let origin = Repo::init_bare(person.hermetic.work().join("origin.git"));
        person.repo.git(&["remote", "add", "origin", origin.dir().to_str().expect("UTF-8")]);
        let hook = origin.git_dir().join("hooks").join(name);
        std::fs::create_dir_all(hook.parent().expect("a parent")).expect("made");
        std::fs::write(&hook, format!("#!/bin/sh\n{script}")).expect("written");
        std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).expect("set");
        person.ok(&["merge", "tf", "--push"]);
        assert_eq!(origin.sha("main"), person.worktree("tf").head(), "{name}");
        assert_eq!(person.meta("tf", "STATUS"), "done", "{name}");
    }
}
