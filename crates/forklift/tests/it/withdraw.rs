//! `forklift withdraw`: the pull request is closed, the branch deleted, and nothing of others is touched.

use testkit::fake_forge::{FakeGitea, TOKEN};
use testkit::hermetic::Output;
use testkit::screen::Screen;

use crate::support::{Person, field_of, name_of};

fn published() -> Option<(Person, FakeGitea)> {
    let person = Person::new()?;
    let forge = FakeGitea::start();
    let mut command = person.alone(&["--forge-url", &forge.remote_url()]);
    let output = person.hermetic.run(command.env("FORKLIFT_TOKEN", TOKEN));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!((person.published().len(), forge.pulls().len()), (1, 1));
    Some((person, forge))
}

fn withdraw(person: &Person, flags: &[&str]) -> Output {
    let mut command = person.forklift(&[&["withdraw"][..], flags].concat());
    person.hermetic.run(command.env("FORKLIFT_TOKEN", TOKEN))
}

#[test]
fn the_pull_request_is_closed_with_a_comment_and_the_branch_is_deleted() {
    let Some((person, forge)) = published() else { return };
    let first = person.only_run();
    let output = withdraw(&person, &["--yes"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(person.published().is_empty());
    assert!(!forge.pulls()[0].open);
    let comment = forge.comments().pop().expect("a comment");
    assert!(comment.body.contains(&name_of(&first)), "{}", comment.body);
    for words in ["withdrawn: what", "closed", "deleted on origin"] {
        assert!(output.stdout.contains(words), "{words}: {}", output.stdout);
    }
    let again = withdraw(&person, &["--yes", "--json"]);
    assert_eq!(again.status, Some(0), "{}", again.snapshot());
    let last = again.stdout.lines().last().expect("an event");
    let event: serde_json::Value = serde_json::from_str(last).expect("JSON");
    assert_eq!(event["withdraws"]["branch_end"], "was-gone", "{event}");
    assert_eq!(event["withdraws"]["pull_end"], "was-closed", "{event}");
    assert_eq!(forge.comments().len(), 1);
}

#[test]
fn a_branch_that_others_have_pushed_to_stays() {
    let Some((person, forge)) = published() else { return };
    let branch = person.published().pop().expect("a branch");
    let main = person.fork.origin.sha("refs/heads/main");
    person.fork.origin.git(&["update-ref", &branch, &main]);
    let output = withdraw(&person, &["--yes"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("stays: others have pushed"), "{}", output.stdout);
    assert_eq!(person.fork.origin.sha(&branch), main);
    assert!(!forge.pulls()[0].open);
}

#[test]
fn what_a_later_run_renewed_is_withdrawn_by_its_name() {
    let Some((person, forge)) = published() else { return };
    let first = name_of(&person.only_run());
    person.fork.upstream_commit("upstream.txt", "1\n2\n3\n", "third");
    let mut command = person.alone(&["--forge-url", &forge.remote_url()]);
    let output = person.hermetic.run(command.env("FORKLIFT_TOKEN", TOKEN));
    assert!(output.stderr.contains("renewing"), "{}", output.snapshot());
    let second = name_of(&person.runs()[1]);
    let output = withdraw(&person, &[&first, "--yes"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    let next = format!("forklift withdraw {second}");
    assert!(output.stderr.contains(&next), "{}", output.stderr);
    assert!(forge.pulls()[0].open && person.published().len() == 1);
    let output = withdraw(&person, &[&second, "--yes"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(!forge.pulls()[0].open && person.published().is_empty());
}

#[test]
fn a_withdrawal_that_origin_refuses_is_said_and_gone_on_with() {
    let Some((person, _forge)) = published() else { return };
    let branch = person.published().pop().expect("a branch");
    let branch = branch.trim_start_matches("refs/heads/").to_owned();
    person.reject_pushes();
    for _ in 0..2 {
        let output = withdraw(&person, &["--yes"]);
        assert_eq!(output.status, Some(7), "{}", output.snapshot());
        let output = person.hermetic.run(&mut person.forklift(&["status"]));
        let words = format!("is not finished: {branch} may still be on origin");
        assert!(output.stdout.contains(&words), "{}", output.stdout);
        assert!(output.stdout.contains("published"), "{}", output.stdout);
        assert_eq!(person.runs().len(), 2, "a second withdrawal was begun");
    }
    person.accept_pushes();
    assert_eq!(withdraw(&person, &["--yes"]).status, Some(0));
    assert!(person.published().is_empty());
}

#[test]
fn without_a_terminal_the_flag_is_needed() {
    let Some((person, forge)) = published() else { return };
    let output = withdraw(&person, &[]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("--yes"), "{}", output.stderr);
    assert!(forge.pulls()[0].open && person.published().len() == 1);
}

#[test]
fn a_withdrawal_that_was_killed_is_finished_and_says_why_once() {
    for phase in ["pull-closed", "branch-deleted"] {
        let Some((person, forge)) = published() else { return };
        let mut command = person.forklift(&["withdraw", "--yes"]);
        command.env("FORKLIFT_TOKEN", TOKEN).env("BOTTLEWORKS_FAILPOINT", phase);
        let output = person.hermetic.run(&mut command);
        assert_eq!(output.signal, Some(9), "{}", output.snapshot());
        let mut command = person.forklift(&["attach"]);
        let output = person.hermetic.run(command.env("FORKLIFT_TOKEN", TOKEN));
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        assert!(person.published().is_empty());
        assert!(!forge.pulls()[0].open);
        assert_eq!(forge.comments().len(), 1);
        assert_eq!(field_of(&person.runs()[1], "/phase"), "closed");
    }
}

#[test]
fn what_is_merged_or_was_never_published_is_refused() {
    let Some((person, forge)) = published() else { return };
    forge.merge_pull(1);
    let output = withdraw(&person, &["--yes"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("is merged"), "{}", output.stderr);
    let Some(person) = Person::new() else { return };
    assert_eq!(person.hermetic.run(&mut person.alone(&["--no-push"])).status, Some(0));
    for name in [&["--yes"][..], &["--yes", "last"]] {
        let output = withdraw(&person, name);
        assert_eq!(output.status, Some(2), "{}", output.snapshot());
    }
}

#[test]
fn what_was_withdrawn_is_made_again_by_the_next_run() {
    let Some((person, forge)) = published() else { return };
    assert_eq!(withdraw(&person, &["--yes"]).status, Some(0));
    let mut command = person.alone(&["--forge-url", &forge.remote_url()]);
    let output = person.hermetic.run(command.env("FORKLIFT_TOKEN", TOKEN));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1);
    assert_eq!(forge.pulls().iter().filter(|pull| pull.open).count(), 1);
}

#[test]
fn on_a_terminal_it_asks_first() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.hermetic.run(&mut person.alone(&[])).status, Some(0));
    let line = format!("{} withdraw; cat", env!("CARGO_BIN_EXE_forklift"));
    for (key, words, left) in [("n", "nothing was withdrawn", 1), ("y", "deleted on origin", 0)] {
        let dir = person.fork.checkout.dir();
        let Some(screen) = Screen::start(&person.hermetic, dir, &["sh", "-c", &line]) else {
            return;
        };
        screen.shows("[y/N]");
        screen.press(&[key, "Enter"]);
        screen.shows(words);
        assert_eq!(person.published().len(), left);
    }
}

#[test]
fn what_was_withdrawn_is_not_listed_as_published() {
    let Some((person, _forge)) = published() else { return };
    let listed = || person.hermetic.run(&mut person.forklift(&["runs"])).stdout;
    assert!(!listed().contains("withdrawn"), "{}", listed());
    assert_eq!(withdraw(&person, &["--yes"]).status, Some(0));
    let rows = listed();
    let row = rows.lines().find(|line| line.contains("verified")).expect("a row");
    assert!(row.trim_end().ends_with("withdrawn"), "{rows}");
}
