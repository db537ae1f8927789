//! One result for the same commits, one branch and one pull request for a fork, and a record that agrees with origin.

use testkit::fake_forge::{FakeGitea, TOKEN};
use testkit::hermetic::Output;

use crate::crash::killed_at;
use crate::support::{MERGE, Person, field_of, name_of};

/// An agent that must not be started.
const NEVER: &str = "[[step]]\nexit = 9\n";

/// Runs without an agent on a fork whose pull requests are on this server.
fn on_forge(person: &Person, forge: &FakeGitea) -> Output {
    let mut command = person.alone(&["--forge-url", &forge.remote_url()]);
    person.hermetic.run(command.env("FORKLIFT_TOKEN", TOKEN))
}

fn newest(person: &Person) -> std::path::PathBuf {
    person.runs().pop().expect("a run")
}

/// The only branch on origin is at the commit of the newest run's record.
#[track_caller]
fn record_and_origin_agree(person: &Person) {
    let run = newest(person);
    assert_eq!(field_of(&run, "/publication/pushed"), true);
    assert_eq!(field_of(&run, "/publication/problem"), serde_json::Value::Null);
    let branch = field_of(&run, "/publication/branch");
    let branch = format!("refs/heads/{}", branch.as_str().expect("a branch"));
    assert_eq!(person.published(), std::slice::from_ref(&branch));
    assert_eq!(person.fork.origin.sha(&branch), field_of(&run, "/publication/commit"));
}

#[test]
fn a_push_whose_answer_is_lost_counts_where_origin_has_the_commit() {
    let Some(person) = Person::new() else { return };
    person.origin_hook("post-receive", "kill -9 $PPID\n");
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    record_and_origin_agree(&person);
}

/// What a push of the same commit does that arrives a moment earlier.
#[test]
fn a_push_that_another_one_overtook_counts_where_origin_has_the_commit() {
    let Some(person) = Person::new() else { return };
    person.origin_hook("update", "git update-ref \"$1\" \"$3\"\n");
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    record_and_origin_agree(&person);
    let log = std::fs::read_to_string(person.only_run().join("operations.jsonl")).expect("a log");
    assert!(log.contains("\"found_on_origin\":true"), "{log}");
}

#[test]
fn the_same_merge_is_paid_for_once() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.run(MERGE, &[]).status, Some(0));
    let (first, branches) = (person.only_run(), person.published());
    let output = person.run(NEVER, &["--json"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let last = output.stdout.lines().last().expect("an event");
    let event: serde_json::Value = serde_json::from_str(last).expect("JSON");
    let verdict = &event["verdict"];
    assert_eq!(verdict["kind"], "awaiting-review", "{event}");
    assert_eq!(verdict["run"], name_of(&first));
    assert_eq!(format!("refs/heads/{}", verdict["branch"].as_str().expect("one")), branches[0]);
    assert_eq!(person.published(), branches);
    assert!(!newest(&person).join("workspace").exists(), "a workspace was made");
}

#[test]
fn a_merge_without_an_agent_is_published_once_and_its_pull_request_is_named() {
    let Some(person) = Person::new() else { return };
    let forge = FakeGitea::start();
    assert_eq!(on_forge(&person, &forge).status, Some(0));
    let output = on_forge(&person, &forge);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("waits for review"), "{}", output.stdout);
    let url = field_of(&person.runs()[0], "/publication/pull/url");
    assert!(output.stdout.contains(url.as_str().expect("a url")), "{}", output.stdout);
    assert_eq!((person.published().len(), forge.pulls().len()), (1, 1));
}

#[test]
fn a_result_that_was_rejected_is_made_again() {
    let Some(person) = Person::new() else { return };
    let forge = FakeGitea::start();
    assert_eq!(on_forge(&person, &forge).status, Some(0));
    forge.change_pull(1, |pull| pull.open = false);
    let output = on_forge(&person, &forge);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(forge.pulls().iter().filter(|pull| pull.open).count(), 1);
    assert_eq!(forge.pulls().len(), 2, "a closed pull request was taken for the new one");
    for branch in person.published() {
        person.fork.origin.git(&["update-ref", "-d", &branch]);
    }
    let output = on_forge(&person, &forge);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1);
}

#[test]
fn another_result_for_the_same_commits_renews_the_branch() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.run(MERGE, &[]).status, Some(0));
    let (first, before) = (newest(&person), person.published());
    let other = format!("{MERGE}[[step]]\nrun = \"git commit -q --allow-empty -m another\"\n");
    let output = person.run(&other, &["--again"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    record_and_origin_agree(&person);
    let output = person.about(&first, &["retry"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    record_and_origin_agree(&person);
    assert_eq!(person.published(), before);
    assert_eq!(person.runs().len(), 3);
}

#[test]
fn a_new_upstream_renews_the_branch_and_the_pull_request() {
    let Some(person) = Person::new() else { return };
    let forge = FakeGitea::start();
    assert_eq!(on_forge(&person, &forge).status, Some(0));
    let (branches, pulls) = (person.published(), forge.pulls());
    let upstream = person.fork.upstream_commit("upstream.txt", "1\n2\n3\n", "third");
    let output = on_forge(&person, &forge);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    record_and_origin_agree(&person);
    assert_eq!(person.published(), branches);
    assert_eq!(forge.pulls().len(), 1);
    assert_ne!(forge.pulls()[0].body, pulls[0].body);
    assert!(forge.pulls()[0].body.contains(&upstream), "{}", forge.pulls()[0].body);
    assert!(forge.comments().is_empty(), "{:?}", forge.comments());
}

/// Adds a commit to a branch on origin, as a reviewer does.
fn push_of_a_reviewer(person: &Person, branch: &str) -> String {
    let tree = format!("{branch}^{{tree}}");
    let origin = &person.fork.origin;
    let identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"];
    let commit = ["commit-tree", &tree, "-p", branch, "-m", "by hand"];
    let sha = origin.git(&[&identity[..], &commit[..]].concat());
    origin.git(&["update-ref", branch, &sha]);
    sha
}

#[test]
fn a_branch_that_others_pushed_to_is_left_alone() {
    let Some(person) = Person::new() else { return };
    let forge = FakeGitea::start();
    assert_eq!(on_forge(&person, &forge).status, Some(0));
    let branch = person.published().pop().expect("a branch");
    let by_hand = push_of_a_reviewer(&person, &branch);
    forge.set_branch(branch.trim_start_matches("refs/heads/"), &by_hand);
    let output = on_forge(&person, &forge);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("waits for review"), "{}", output.stdout);
    for (text, words) in
        [("1\n2\n3\n", "others have pushed"), ("1\n2\n3\n4\n", "renewing forklift/")]
    {
        person.fork.upstream_commit("upstream.txt", text, "more");
        let output = on_forge(&person, &forge);
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        assert!(output.stderr.contains(words), "{}", output.stderr);
        assert_eq!(person.published().len(), 2, "one of theirs and one of ours");
        assert_eq!(person.fork.origin.sha(&branch), by_hand);
        assert_eq!(forge.pulls().iter().filter(|pull| pull.open).count(), 2);
    }
}

#[test]
fn an_origin_that_allows_no_rewriting_gets_a_new_branch() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.run(MERGE, &[]).status, Some(0));
    person.fork.origin.git(&["config", "receive.denyNonFastForwards", "true"]);
    person.fork.upstream_commit("upstream.txt", "1\n2\n3\n", "third");
    let output = person.run(MERGE, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stderr.contains("could not be renewed"), "{}", output.stderr);
    assert_eq!(person.published().len(), 2);
}

#[test]
fn a_run_that_was_killed_is_finished_by_the_next_one_with_the_same_commits() {
    for phase in ["imported", "published"] {
        let Some(person) = Person::new() else { return };
        killed_at(&person, phase, MERGE, &[]);
        let output = person.run(NEVER, &[]);
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        assert!(output.stderr.contains("finishing"), "{}", output.stderr);
        assert_eq!(person.metadata("/phase"), "closed");
        record_and_origin_agree(&person);
    }
}

#[test]
fn a_killed_run_that_was_overtaken_does_not_replace_the_newer_result() {
    let Some(person) = Person::new() else { return };
    killed_at(&person, "judged", MERGE, &[]);
    let killed = person.only_run();
    person.fork.upstream_commit("upstream.txt", "1\n2\n3\n", "third");
    assert_eq!(person.run(MERGE, &[]).status, Some(0));
    let output = person.about(&killed, &["attach"]);
    assert_eq!(output.status, Some(7), "{}", output.snapshot());
    assert!(output.stdout.contains("a later result"), "{}", output.stdout);
    record_and_origin_agree(&person);
}
