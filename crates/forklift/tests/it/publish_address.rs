//! Addresses to push to, as git itself finds them.

use testkit::repo::Repo;

use crate::support::{Person, write_hook};

/// The branches that forklift published to a repository.
fn published_to(repo: &Repo) -> Vec<String> {
    let args = ["for-each-ref", "--format=%(refname)", "refs/heads/forklift"];
    repo.git(&args).lines().map(str::to_owned).collect()
}

/// A second repository beside origin, with the same history.
fn other_origin(person: &Person) -> Repo {
    let dir = person.fork.origin.dir().with_file_name("push.git");
    let (from, to) = (person.fork.origin.dir().to_str(), dir.to_str());
    let (from, to) = (from.expect("UTF-8"), to.expect("UTF-8"));
    person.fork.origin.git(&["clone", "--quiet", "--bare", from, to]);
    Repo::open(dir)
}

#[track_caller]
fn goes_to_the_other(person: &Person, other: &Repo) {
    let output = person.hermetic.run(&mut person.alone(&[]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!((person.published().len(), published_to(other).len()), (0, 1));
}

#[test]
fn a_relative_address_means_the_same_to_a_push_as_to_a_fetch() {
    let Some(person) = Person::new() else { return };
    person.fork.checkout.git(&["remote", "set-url", "origin", "../../forge/fork/origin.git"]);
    let below = person.fork.checkout.dir().join("below");
    std::fs::create_dir(&below).expect("made");
    let output = person.hermetic.run(person.alone(&[]).current_dir(below));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1);
}

#[test]
fn a_push_address_of_its_own_gets_the_branch() {
    let Some(person) = Person::new() else { return };
    let other = other_origin(&person);
    let url = other.dir().to_str().expect("UTF-8");
    person.fork.checkout.git(&["remote", "set-url", "--push", "origin", url]);
    goes_to_the_other(&person, &other);
}

#[test]
fn a_relative_push_address_gets_the_branch() {
    let Some(person) = Person::new() else { return };
    let other = other_origin(&person);
    let url = "../../forge/fork/push.git";
    person.fork.checkout.git(&["remote", "set-url", "--push", "origin", url]);
    goes_to_the_other(&person, &other);
}

#[test]
fn a_rule_for_push_addresses_is_applied() {
    let Some(person) = Person::new() else { return };
    let other = other_origin(&person);
    let from = format!("file://{}", person.fork.origin.dir().display());
    let rule = format!("url.file://{}.pushInsteadOf", other.dir().display());
    person.fork.checkout.git(&["config", &rule, &from]);
    goes_to_the_other(&person, &other);
}

#[test]
fn a_rule_for_all_addresses_is_applied() {
    let Some(person) = Person::new() else { return };
    let rule = format!("url.file://{}.insteadOf", person.fork.origin.dir().display());
    person.fork.checkout.git(&["config", &rule, "fork:"]);
    person.fork.checkout.git(&["remote", "set-url", "origin", "fork:"]);
    let output = person.hermetic.run(&mut person.alone(&[]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1);
}

/// Makes origin push to itself and to the other repository.
fn push_to_both(person: &Person, other: &Repo) {
    let first = person.fork.origin.dir().to_str().expect("UTF-8").to_owned();
    let second = other.dir().to_str().expect("UTF-8");
    person.fork.checkout.git(&["remote", "set-url", "--push", "origin", &first]);
    person.fork.checkout.git(&["remote", "set-url", "--add", "--push", "origin", second]);
}

#[test]
fn every_push_address_gets_the_branch_as_with_git_and_loses_it_again() {
    let Some(person) = Person::new() else { return };
    let other = other_origin(&person);
    push_to_both(&person, &other);
    let output = person.hermetic.run(&mut person.alone(&[]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(published_to(&other), published_to(&person.fork.origin));
    assert_eq!(published_to(&other).len(), 1);
    let output = person.hermetic.run(&mut person.forklift(&["withdraw", "--yes"]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!((published_to(&other).len(), published_to(&person.fork.origin).len()), (0, 0));
}

#[test]
fn a_push_address_that_refuses_is_named_and_gets_the_branch_later() {
    let Some(person) = Person::new() else { return };
    let other = other_origin(&person);
    push_to_both(&person, &other);
    let hook = write_hook(&other, "pre-receive", "echo closed for today >&2\nexit 1\n");
    let output = person.hermetic.run(&mut person.alone(&[]));
    assert_eq!(output.status, Some(7), "{}", output.snapshot());
    let said = output.snapshot();
    assert!(said.contains("push address 2 of 2: origin rejected the branch"), "{said}");
    assert_eq!((published_to(&other).len(), published_to(&person.fork.origin).len()), (0, 1));
    std::fs::remove_file(hook).expect("removed");
    let output = person.hermetic.run(&mut person.forklift(&["publish"]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(published_to(&other), published_to(&person.fork.origin));
}
