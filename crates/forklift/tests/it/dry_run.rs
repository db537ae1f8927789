//! `--dry-run`, `--no-push` and `--no-pull-request`: how far a run goes with what it verified.

use testkit::fake_forge::{FakeGitea, TOKEN};
use testkit::hermetic::Output;
use testkit::repo::Fork;

use crate::crash::killed_at;
use crate::support::{MERGE, Person, field_of};

fn refs(person: &Person) -> String {
    person.fork.origin.git(&["for-each-ref", "--format=%(refname) %(objectname)"])
}

fn alone(person: &Person, flags: &[&str]) -> Output {
    person.hermetic.run(&mut person.alone(flags))
}

#[test]
fn a_dry_run_leaves_origin_alone_and_the_next_run_publishes_its_commit() {
    let Some(person) = Person::new() else { return };
    let before = refs(&person);
    let output = alone(&person, &["--dry-run"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(refs(&person), before);
    for words in ["dry run: nothing was pushed", "would go to", "next        forklift publish "] {
        assert!(output.stdout.contains(words), "{words}: {}", output.stdout);
    }
    let first = person.only_run();
    assert_eq!(field_of(&first, "/settings/publish_mode"), "dry-run");
    assert_eq!(field_of(&first, "/publication/pushed"), false);
    assert!(first.join("PULL_REQUEST.md").exists());
    let again = alone(&person, &["--dry-run"]);
    assert_eq!(again.status, Some(0), "{}", again.snapshot());
    assert_eq!(refs(&person), before);
    let output = alone(&person, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let branch = person.published().pop().expect("published");
    assert_eq!(person.fork.origin.sha(&branch), field_of(&first, "/evidence/tip"));
    assert!(output.stdout.contains("git fetch origin && git diff origin/main...origin/forklift/"));
}

/// An agent that merges and empties a file of the fork.
const LOSSY: &str = "[[step]]\nrun = '''git merge -q --no-edit upstream/main\n: > fork.txt\ngit commit -qam more'''\n";

#[test]
fn what_a_dry_run_accepted_is_not_accepted_by_the_next_run() {
    let Some(person) = Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        fork.checkout.write("fork.txt", "the fork's\n".repeat(9));
        fork.fork_commit("a file of the fork's");
        fork.clean_merge()
    }) else {
        return;
    };
    let accepted = person.run(LOSSY, &["--dry-run", "--accept-loss"]);
    assert_eq!(accepted.status, Some(0), "{}", accepted.snapshot());
    let plain = person.run(LOSSY, &[]);
    assert_eq!(plain.status, Some(3), "{}", plain.snapshot());
    assert!(plain.stdout.contains("--accept-loss"), "{}", plain.stdout);
    assert!(person.published().is_empty());
    let judged = person.runs().pop().expect("a run");
    assert!(!judged.join("boxes/agent").exists(), "an agent was started");
    let again = person.run(LOSSY, &[]);
    assert_eq!((again.status, person.runs().len()), (Some(3), 2), "{}", again.snapshot());
    let output = person.run(LOSSY, &["--accept-loss"]);
    assert_eq!((output.status, person.published().len()), (Some(0), 1), "{}", output.snapshot());
}

#[test]
fn a_verified_commit_does_not_follow_an_instruction_that_came_later() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.run(MERGE, &["--no-push"]).status, Some(0));
    let output = person.run(MERGE, &["--no-push", "--instruction", "keep the old names"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let second = person.runs().pop().expect("a run");
    assert!(second.join("boxes/agent").exists(), "the earlier commit was taken");
    // The same instruction was followed, and none asks for nothing else.
    for flags in [&["--no-push", "--instruction", "keep the old names"][..], &[]] {
        assert_eq!(person.run(MERGE, flags).status, Some(0));
        let last = person.runs().pop().expect("a run");
        assert!(!last.join("boxes/agent").exists(), "an agent was started");
    }
}

#[test]
fn a_commit_that_was_not_pushed_is_published_later() {
    let Some(person) = Person::new() else { return };
    let before = refs(&person);
    let output = person.run(MERGE, &["--no-push"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("--no-push was given"), "{}", output.stdout);
    assert_eq!(refs(&person), before);
    let listed = person.hermetic.run(&mut person.forklift(&["runs"])).stdout;
    assert!(listed.contains("not published"), "{listed}");
    let published = person.hermetic.run(&mut person.forklift(&["publish"]));
    assert_eq!(published.status, Some(0), "{}", published.snapshot());
    assert_eq!(person.published().len(), 1);
}

#[test]
fn a_branch_can_be_pushed_without_a_pull_request() {
    let Some(person) = Person::new() else { return };
    let forge = FakeGitea::start();
    let on_forge = |flags: &[&str]| {
        let mut command = person.alone(&["--forge-url", &forge.remote_url()]);
        person.hermetic.run(command.args(flags).env("FORKLIFT_TOKEN", TOKEN))
    };
    let output = on_forge(&["--no-pull-request"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("--no-pull-request was given"), "{}", output.stdout);
    assert_eq!((person.published().len(), forge.pulls().len()), (1, 0));
    let mut command = person.forklift(&["publish"]);
    let output = person.hermetic.run(command.env("FORKLIFT_TOKEN", TOKEN));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!((person.published().len(), forge.pulls().len()), (1, 1));
}

#[test]
fn the_limit_holds_for_a_run_that_is_repeated_or_continued() {
    let Some(person) = Person::new() else { return };
    let before = refs(&person);
    killed_at(&person, "judged", MERGE, &["--dry-run"]);
    let attached = person.hermetic.run(&mut person.forklift(&["attach"]));
    assert_eq!(attached.status, Some(0), "{}", attached.snapshot());
    for words in [&["retry"][..], &["retry", "--no-push"]] {
        let output = person.hermetic.run(&mut person.forklift(words));
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        assert!(output.stdout.contains("dry run"), "{}", output.stdout);
    }
    assert_eq!(refs(&person), before);
    let Some(person) = Person::new() else { return };
    killed_at(&person, "judged", MERGE, &[]);
    let output = person.hermetic.run(&mut person.forklift(&["attach", "--no-push"]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(person.published().is_empty());
}

#[test]
fn a_dry_run_is_removed_by_prune_and_a_commit_that_is_kept_is_not() {
    let Some(person) = Person::new() else { return };
    assert_eq!(alone(&person, &["--dry-run"]).status, Some(0));
    assert_eq!(alone(&person, &["--no-push", "--again"]).status, Some(0));
    let prune = ["prune", "--keep", "0", "--older-than", "0d", "--yes"];
    let output = person.hermetic.run(&mut person.forklift(&prune));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let kept = person.only_run();
    assert_eq!(field_of(&kept, "/settings/publish_mode"), "keep");
}
