//! What is taken from upstream, and how it gets into the fork.

use testkit::repo::Fork;

use crate::support::{MERGE, Person};

/// Upstream with releases: two tags, and a commit after them.
fn with_tags() -> Option<Person> {
    Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        fork.checkout.write("fork.txt", "of the fork\n");
        fork.fork_commit("a change of the fork's own");
        fork.upstream_commit("a.txt", "1\n", "first");
        fork.upstream.git(&["tag", "v1.9.0", "main"]);
        fork.upstream_commit("a.txt", "2\n", "second");
        fork.upstream.git(&["tag", "-a", "-m", "a release", "v1.10.0", "main"]);
        fork.upstream_commit("a.txt", "3\n", "after the release");
        fork.upstream.git(&["tag", "v2.0.0-rc1", "main"]);
        fork
    })
}

fn published_file(person: &Person, path: &str) -> String {
    let branch = person.published().pop().expect("something was published");
    person.fork.origin.git(&["show", &format!("{branch}:{path}")])
}

#[test]
fn the_tip_is_taken_by_default() {
    let Some(person) = with_tags() else { return };
    let output = person.hermetic.run(&mut person.alone(&[]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(published_file(&person, "a.txt"), "3");
}

#[test]
fn the_latest_release_is_the_highest_version_and_no_preview() {
    let Some(person) = with_tags() else { return };
    let output = person.hermetic.run(&mut person.alone(&["--target", "latest-tag"]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(published_file(&person, "a.txt"), "2");
    assert_eq!(person.metadata("/settings/target_name"), "v1.10.0");
    let pins = person.metadata("/pins/upstream");
    assert_eq!(pins, person.fork.upstream.git(&["rev-parse", "v1.10.0^{commit}"]));
}

/// P14: the fork's tag of the same name is neither in the way nor touched.
#[test]
fn p14_a_tag_of_the_forks_own_with_the_same_name_is_not_in_the_way() {
    let Some(person) = with_tags() else { return };
    let checkout = &person.fork.checkout;
    checkout.git(&["tag", "v1.10.0", "HEAD"]);
    let own = checkout.sha("refs/tags/v1.10.0");
    let output = person.hermetic.run(&mut person.alone(&["--target", "latest-tag"]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(published_file(&person, "a.txt"), "2");
    assert_eq!(checkout.sha("refs/tags/v1.10.0"), own);
}

/// P14: an upstream without releases is told about, in one line.
#[test]
fn p14_no_release_at_all_is_one_clear_line() {
    let Some(person) = Person::new() else { return };
    let output = person.hermetic.run(&mut person.alone(&["--target", "latest-tag"]));
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("no tag that looks like a release"), "{}", output.stderr);
}

#[test]
fn a_tag_a_branch_and_a_commit_can_be_named() {
    for (name, expected) in [("v1.9.0", "1"), ("refs/heads/main", "3"), ("refs/tags/v1.9.0", "1")] {
        let Some(person) = with_tags() else { return };
        let output = person.hermetic.run(&mut person.alone(&["--target", name]));
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        assert_eq!(published_file(&person, "a.txt"), expected, "{name}");
    }
    let Some(person) = with_tags() else { return };
    let commit = person.fork.upstream.git(&["rev-parse", "v1.9.0"]);
    let output = person.hermetic.run(&mut person.alone(&["--target", &commit]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(published_file(&person, "a.txt"), "1");
}

#[test]
fn a_target_that_is_not_there_is_named() {
    let Some(person) = with_tags() else { return };
    for name in ["v9.9.9", "deadbeefdeadbeef", "no/such/branch"] {
        let output = person.hermetic.run(&mut person.alone(&["--target", name]));
        assert_eq!(output.status, Some(2), "{}", output.snapshot());
        assert!(output.stderr.contains(name), "{}", output.stderr);
    }
}

#[test]
fn a_release_that_the_fork_has_already_is_nothing_to_do() {
    let Some(person) = with_tags() else { return };
    let merged = person.hermetic.run(&mut person.alone(&["--target", "v1.9.0"]));
    assert_eq!(merged.status, Some(0), "{}", merged.snapshot());
    let branch = person.published().pop().expect("published");
    person.fork.origin.git(&["update-ref", "refs/heads/main", &branch]);
    let output = person.hermetic.run(&mut person.alone(&["--target", "v1.9.0"]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("up to date"), "{}", output.stdout);
}

#[test]
fn the_forks_rules_say_what_and_how_and_a_flag_outranks_them() {
    let rules = "---\ntarget: latest-tag\nstrategy: rebase\n---\n";
    let Some(person) = with_tags() else { return };
    person.fork.checkout.write("FORK.md", rules);
    person.fork.fork_commit("rules");
    let output = person.hermetic.run(&mut person.alone(&[]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(published_file(&person, "a.txt"), "2");
    assert_eq!(person.metadata("/settings/strategy"), "rebase");
    let Some(person) = with_tags() else { return };
    person.fork.checkout.write("FORK.md", rules);
    person.fork.fork_commit("rules");
    let flags = ["--target", "tip", "--strategy", "merge"];
    let output = person.hermetic.run(&mut person.alone(&flags));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(published_file(&person, "a.txt"), "3");
}

#[test]
fn a_clean_rebase_needs_no_agent_and_makes_the_forks_commits_anew() {
    let Some(person) = with_tags() else { return };
    let output = person.hermetic.run(&mut person.alone(&["--strategy", "rebase"]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let branch = person.published().pop().expect("published");
    let upstream = person.fork.upstream.sha("main");
    let origin = &person.fork.origin;
    origin.git(&["merge-base", "--is-ancestor", &upstream, &branch]);
    let merges = origin.git(&["rev-list", "--merges", &branch, &format!("^{upstream}")]);
    assert_eq!(merges, "", "a rebase has no merge commit");
    let subjects = origin.git(&["log", "--format=%s", &branch, &format!("^{upstream}")]);
    assert_eq!(subjects, "a change of the fork's own\nfork: say what it is for");
    let text = person.only_run().join("PULL_REQUEST.md");
    assert!(std::fs::read_to_string(text).expect("there").contains("This is a rebase"));
}

#[test]
fn an_agents_rebase_is_verified_like_a_merge() {
    let Some(person) = Person::with(|hermetic| Fork::new(hermetic).conflicting_merge()) else {
        return;
    };
    let script =
        "[[step]]\nrun = '''mkdir -p .git/info && echo '* merge=union' > .git/info/attributes
git rebase upstream/main'''\n";
    let output = person.run(script, &["--strategy", "rebase", "--accept-loss"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.metadata("/evidence/upstream_reachable"), true);
    assert_eq!(person.metadata("/evidence/base_reachable"), false);
}

#[test]
fn a_rebase_that_drops_the_forks_work_is_refused() {
    let Some(person) = with_tags() else { return };
    let script = "[[step]]\nrun = \"git reset -q --hard upstream/main\"\n";
    let output = person.run(script, &["--strategy", "rebase"]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert_eq!(person.metadata("/verdict/kind"), "work-lost", "{}", output.snapshot());
    assert!(person.published().is_empty());
}

#[test]
fn a_merge_that_is_asked_for_is_not_answered_with_a_rebase() {
    let Some(person) = with_tags() else { return };
    let output = person.run("[[step]]\nrun = \"git rebase -q upstream/main\"\n", &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    let merged = person.hermetic.run(&mut person.command(MERGE, &[]));
    assert_eq!(merged.status, Some(0), "{}", merged.snapshot());
}
