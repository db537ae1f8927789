//! `forklift publish` and `forklift attach`: a verified commit is published later, without an agent.

use testkit::fake_forge::{FakeGitea, TOKEN};
use testkit::repo::Fork;

use crate::support::{MERGE, Person, field_of, name_of};

/// Resolves a conflict by dropping work of the fork.
const THEIRS: &str = "[[step]]\nrun = \"git merge --no-edit -X theirs upstream/main && git rm -q FORK.md && git commit -qm x\"\n";

/// A run whose commit is verified, and which origin refused.
fn refused_by_origin(person: &Person) -> std::path::PathBuf {
    person.reject_pushes();
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(7), "{}", output.snapshot());
    assert!(output.stdout.contains("forklift publish "), "{}", output.stdout);
    person.only_run()
}

#[test]
fn a_verified_commit_is_published_later_without_an_agent() {
    let Some(person) = Person::new() else { return };
    let first = refused_by_origin(&person);
    let record = std::fs::read(first.join("metadata.json")).expect("read");
    person.accept_pushes();
    let output = person.about(&first, &["publish"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1);
    let second = person.runs().pop().expect("a run");
    assert_eq!(field_of(&second, "/publishes"), name_of(&first));
    assert_eq!(field_of(&second, "/publication/commit"), field_of(&first, "/evidence/tip"));
    assert!(!second.join("boxes").exists(), "a box was started");
    let after = std::fs::read(first.join("metadata.json")).expect("read");
    assert_eq!(after, record, "a closed run was edited");
}

#[test]
fn what_is_said_about_a_run_that_was_published_later_is_true() {
    let Some(person) = Person::new() else { return };
    let first = refused_by_origin(&person);
    let shown = person.about(&first, &["show"]);
    assert!(shown.stdout.contains("not published"), "{}", shown.stdout);
    person.accept_pushes();
    assert_eq!(person.about(&first, &["publish"]).status, Some(0));
    let second = name_of(&person.runs().pop().expect("a run"));
    for (words, expected) in [("show", 0), ("attach", 0), ("publish", 0)] {
        let output = person.about(&first, &[words]);
        assert_eq!(output.status, Some(expected), "{words}: {}", output.snapshot());
        let told = output.stdout.contains(&second) || output.stderr.contains(&second);
        assert!(told, "{words}: {}", output.snapshot());
    }
    assert_eq!(person.runs().len(), 2, "what is published was published again");
    let listed = person.hermetic.run(&mut person.forklift(&["runs"])).stdout;
    assert!(!listed.contains("not published"), "{listed}");
    let listed = person.hermetic.run(&mut person.forklift(&["runs", "--json"])).stdout;
    let rows: serde_json::Value = serde_json::from_str(&listed).expect("a list");
    assert_eq!(rows[1]["published_by"], second.as_str());
}

#[test]
fn attach_on_a_closed_run_that_is_not_published_says_so_and_what_to_do() {
    let Some(person) = Person::new() else { return };
    let first = refused_by_origin(&person);
    person.accept_pushes();
    let output = person.about(&first, &["attach"]);
    assert_eq!(output.status, Some(7), "{}", output.snapshot());
    let remedy = format!("forklift publish {}", name_of(&first));
    assert!(output.stdout.contains(&remedy), "{}", output.stdout);
    let output = person.about(&first, &["resume"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains(&remedy), "{}", output.stderr);
    assert!(person.published().is_empty());
}

#[test]
fn the_next_run_publishes_the_commit_that_origin_refused() {
    let Some(person) = Person::new() else { return };
    let first = refused_by_origin(&person);
    person.accept_pushes();
    let output = person.run("[[step]]\nexit = 9\n", &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1);
    let second = person.runs().pop().expect("a run");
    assert_eq!(field_of(&second, "/publishes"), name_of(&first));
}

#[test]
fn an_address_that_was_wrong_can_be_mended_before_publishing() {
    let Some(person) = Person::new() else { return };
    let url = person.fork.origin.dir().display().to_string();
    person.fork.checkout.git(&["remote", "set-url", "--push", "origin", "/no/such/place"]);
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(7), "{}", output.snapshot());
    person.fork.checkout.git(&["remote", "set-url", "--push", "origin", &url]);
    let output = person.about(&person.only_run(), &["publish"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1);
}

#[test]
fn a_pull_request_that_could_not_be_opened_is_opened_later_on_the_same_branch() {
    let Some(person) = Person::new() else { return };
    let forge = FakeGitea::start();
    let mut command = person.alone(&["--forge-url", &forge.remote_url()]);
    let output = person.hermetic.run(command.env("FORKLIFT_TOKEN", "wrong-token-1234"));
    assert_eq!(output.status, Some(7), "{}", output.snapshot());
    let name = name_of(&person.only_run());
    let mut command = person.forklift(&["publish", &name]);
    let output = person.hermetic.run(command.env("FORKLIFT_TOKEN", TOKEN));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!((person.published().len(), forge.pulls().len()), (1, 1));
    assert_eq!(person.published(), [format!("refs/heads/{}", forge.pulls()[0].head)]);
}

fn lost_work(person: &Person) -> std::path::PathBuf {
    let output = person.run(THEIRS, &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    person.only_run()
}

#[test]
fn a_refused_result_is_published_when_its_loss_is_accepted_later() {
    for word in ["publish", "attach"] {
        let Some(person) = Person::with(|hermetic| Fork::new(hermetic).conflicting_merge()) else {
            return;
        };
        let first = lost_work(&person);
        let output = person.about(&first, &["publish"]);
        assert_eq!(output.status, Some(2), "{}", output.snapshot());
        let output = person.about(&first, &[word, "--accept-loss", "--accept-dropped"]);
        assert_eq!(output.status, Some(0), "{word}: {}", output.snapshot());
        assert_eq!(person.published().len(), 1);
        let second = person.runs().pop().expect("a run");
        assert_eq!(field_of(&second, "/settings/accept_loss"), true);
        assert!(!second.join("boxes/agent").exists(), "an agent was started");
        assert_eq!(field_of(&second, "/publication/commit"), field_of(&first, "/evidence/tip"));
    }
}

#[test]
fn a_run_that_was_killed_after_the_verdict_is_judged_again_with_what_is_accepted() {
    let Some(person) = Person::with(|hermetic| Fork::new(hermetic).conflicting_merge()) else {
        return;
    };
    crate::crash::killed_at(&person, "judged", THEIRS, &[]);
    let run = person.only_run();
    let output = person.about(&run, &["attach", "--accept-loss", "--accept-dropped"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1);
    assert_eq!(person.runs().len(), 1);
}

#[test]
fn what_cannot_be_published_is_refused_with_the_reason() {
    let Some(person) = Person::new() else { return };
    let output = person.run("[[step]]\nstuck = \"Which way?\"\n", &[]);
    assert_eq!(output.status, Some(4), "{}", output.snapshot());
    let output = person.about(&person.only_run(), &["publish"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("stuck"), "{}", output.stderr);
}

#[test]
fn an_older_result_does_not_replace_a_newer_one() {
    let Some(person) = Person::new() else { return };
    let first = refused_by_origin(&person);
    person.accept_pushes();
    person.fork.upstream_commit("upstream.txt", "1\n2\n3\n", "third");
    assert_eq!(person.run(MERGE, &[]).status, Some(0));
    let newer = person.fork.origin.sha(&person.published()[0]);
    let output = person.about(&first, &["publish"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("outdated"), "{}", output.stderr);
    assert_eq!(person.fork.origin.sha(&person.published()[0]), newer);
}
