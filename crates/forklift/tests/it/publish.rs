//! Merges without an agent, the account of the fork's work, and pull requests.

use testkit::fake_forge::{FakeGitea, Mishap};
use testkit::hermetic::Output;
use testkit::repo::Fork;

use crate::support::Person;

/// Runs forklift with a scripted agent that must not be needed.
fn without_agent(person: &Person, flags: &[&str]) -> Output {
    let path = person.hermetic.root().join("agent.toml");
    std::fs::write(&path, "[[step]]\nexit = 9\n").expect("written");
    let mut command = person.forklift(&["--provider", "scripted", "--backend", "bwrap"]);
    person.hermetic.run(command.arg("--script").arg(path).args(flags))
}

/// The same on a fork whose pull requests are on this server.
fn on_forge(person: &Person, forge: &FakeGitea, token: Option<&str>) -> Output {
    let path = person.hermetic.root().join("agent.toml");
    std::fs::write(&path, "[[step]]\nexit = 9\n").expect("written");
    let mut command = person.forklift(&["--provider", "scripted", "--backend", "bwrap"]);
    command.arg("--script").arg(path).args(["--forge-url", &forge.remote_url()]);
    if let Some(token) = token {
        command.env("FORKLIFT_TOKEN", token);
    }
    person.hermetic.run(&mut command)
}

#[test]
fn a_merge_without_conflicts_costs_no_agent() {
    let Some(person) = Person::new() else { return };
    let output = without_agent(&person, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stderr.contains("no agent is needed"), "{}", output.stderr);
    assert_eq!(person.published().len(), 1);
    assert_eq!(person.metadata("/merged_alone"), true);
    assert!(!person.only_run().join("boxes").exists());
    assert_eq!(person.metadata("/contract/lost"), false);
}

#[test]
fn a_conflict_is_named_and_given_to_the_agent() {
    let Some(person) = Person::with(|hermetic| Fork::new(hermetic).conflicting_merge()) else {
        return;
    };
    let output = without_agent(&person, &[]);
    assert_eq!(output.status, Some(6), "{}", output.snapshot());
    assert!(output.stderr.contains("shared.txt"), "{}", output.stderr);
}

#[test]
fn p03_lost_work_of_the_fork_blocks_publishing_until_it_is_accepted() {
    let Some(person) = Person::with(|hermetic| Fork::new(hermetic).conflicting_merge()) else {
        return;
    };
    let theirs = "[[step]]\nrun = \"git merge --no-edit -X theirs upstream/main && git rm -q FORK.md && git commit -qm x\"\n";
    let output = person.run(theirs, &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(output.stdout.contains("--accept-loss"), "{}", output.stdout);
    assert!(output.stderr.contains("lost"), "{}", output.stderr);
    assert_eq!(person.published().len(), 0);
    let output = person.run(theirs, &["--accept-loss"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1);
}

#[test]
fn without_a_forge_the_text_is_beside_the_run() {
    let Some(person) = Person::new() else { return };
    without_agent(&person, &[]);
    let text =
        std::fs::read_to_string(person.only_run().join("PULL_REQUEST.md")).expect("the text");
    for words in
        ["Merge upstream main", "What comes from upstream", "kept", "How it was made and checked"]
    {
        assert!(text.contains(words), "{words} is not in {text}");
    }
}

#[test]
fn a_pull_request_is_opened_and_an_earlier_one_is_superseded() {
    let Some(person) = Person::new() else { return };
    let forge = FakeGitea::start();
    // Another machine opened it, as its text shows.
    let earlier = forge.add_pull("old", "forklift/old", "main");
    forge.change_pull(earlier, |pull| pull.body = "<!-- forklift: update -->".to_owned());
    let stranger = forge.add_pull("feature", "topic", "main");
    let output = on_forge(&person, &forge, Some(testkit::fake_forge::TOKEN));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let open: Vec<u64> =
        forge.pulls().iter().filter(|pull| pull.open).map(|pull| pull.number).collect();
    assert_eq!(open.len(), 2, "{:?}", forge.pulls());
    assert!(open.contains(&stranger) && !open.contains(&earlier));
    assert_eq!(person.metadata("/publication/pull/number"), *open.iter().max().expect("one"));
    token_is_nowhere(&person);
}

#[test]
fn an_answer_that_was_lost_does_not_open_two() {
    let Some(person) = Person::new() else { return };
    let forge = FakeGitea::start();
    forge.fail_next_on("POST", 1, &Mishap::DropAfterWrite);
    let output = on_forge(&person, &forge, Some(testkit::fake_forge::TOKEN));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(forge.pulls().len(), 1);
}

#[test]
fn a_forge_that_says_no_costs_nothing_but_the_pull_request() {
    let Some(person) = Person::new() else { return };
    let forge = FakeGitea::start();
    let output = on_forge(&person, &forge, Some("wrong-token-1234"));
    assert_eq!(output.status, Some(7), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1);
    assert!(person.only_run().join("PULL_REQUEST.md").exists());
    assert!(!output.stdout.contains("wrong-token") && !output.stderr.contains("wrong-token"));
}

#[test]
fn without_a_token_the_person_is_told_what_to_set() {
    let Some(person) = Person::new() else { return };
    let forge = FakeGitea::start();
    let output = on_forge(&person, &forge, None);
    assert_eq!(output.status, Some(7), "{}", output.snapshot());
    assert!(output.stdout.contains("set BOTTLEWORKS_FORGE_TOKEN"), "{}", output.stdout);
    assert_eq!(forge.pulls().len(), 0);
}

/// No file of the run holds the forge's token.
fn token_is_nowhere(person: &Person) {
    let token = testkit::fake_forge::TOKEN;
    let mut command = person.hermetic.command("grep");
    let found = person.hermetic.run(command.args(["-rl", token]).arg(person.only_run()));
    assert_eq!(found.status, Some(1), "the token is in {}", found.stdout);
}
