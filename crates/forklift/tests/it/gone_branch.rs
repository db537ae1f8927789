//! A branch that its remote has no longer is not believed, although the refs of the checkout still name it.

use std::fs;

use serde_json::Value;
use testkit::hermetic::Output;
use testkit::repo::Repo;

use crate::support::Person;
use crate::train::{KEEPS_BOTH, only_branch, seven, train};

/// A fork that has all of upstream, by refs that were fetched.
fn up_to_date() -> Option<Person> {
    let person = Person::new()?;
    assert_eq!(sync(&person, &[]).status, Some(0));
    let published = person.published().pop().expect("a branch");
    person.fork.origin.git(&["update-ref", "refs/heads/main", &published]);
    let output = sync(&person, &[]);
    assert!(output.stdout.contains("up to date"), "{}", output.snapshot());
    Some(person)
}

fn sync(person: &Person, flags: &[&str]) -> Output {
    person.hermetic.run(&mut person.alone(flags))
}

fn row(person: &Person) -> Value {
    let output = person.hermetic.run(&mut person.forklift(&["status", "--json"]));
    let rows: Value = serde_json::from_str(&output.stdout).expect("JSON");
    rows[0].clone()
}

/// Renames `main`. The HEAD of a server that does not follow names a branch that is gone.
fn rename(repo: &Repo, head: &str) {
    repo.git(&["branch", "-m", "main", "trunk"]);
    repo.git(&["symbolic-ref", "HEAD", &format!("refs/heads/{head}")]);
}

#[test]
fn a_branch_that_upstream_renamed_is_not_up_to_date() {
    let Some(person) = up_to_date() else { return };
    rename(&person.fork.upstream, "trunk");
    for (flags, words) in [
        (["--main-branch", "main"], "'upstream' has no branch 'main' (it has trunk)"),
        (["--target", "main"], "no tag, branch or commit 'main'"),
        (["--target", "refs/heads/main"], "no tag, branch or commit 'refs/heads/main'"),
    ] {
        let output = sync(&person, &flags);
        assert_eq!(output.status, Some(2), "{flags:?}: {}", output.snapshot());
        assert!(output.stderr.contains(words), "{}", output.stderr);
    }
    // The HEAD of some servers goes on naming the old branch.
    person.fork.upstream.git(&["symbolic-ref", "HEAD", "refs/heads/main"]);
    for words in [&[][..], &["changelog"], &["security"], &["train"]] {
        let output = person.hermetic.run(&mut person.forklift(words));
        assert_eq!(output.status, Some(2), "{words:?}: {}", output.snapshot());
        for part in ["'upstream' has no branch 'main'", "--target BRANCH"] {
            assert!(output.stderr.contains(part), "{words:?}: {}", output.stderr);
        }
    }
    let row = row(&person);
    assert_eq!(row["behind"], Value::Null, "{row}");
    assert_ne!(row["overdue"], Value::Null, "{row}");
    person.fork.upstream.git(&["symbolic-ref", "HEAD", "refs/heads/trunk"]);
    let output = sync(&person, &["--dry-run"]);
    assert!(output.stderr.contains("upstream/trunk goes into main"), "{}", output.snapshot());
}

#[test]
fn a_branch_that_origin_renamed_is_not_up_to_date() {
    let Some(person) = up_to_date() else { return };
    rename(&person.fork.origin, "main");
    for flags in [&[][..], &["--main-branch", "main"]] {
        let output = sync(&person, flags);
        assert_eq!(output.status, Some(2), "{}", output.snapshot());
        for part in ["'origin' has no branch 'main'", "--main-branch"] {
            assert!(output.stderr.contains(part), "{}", output.stderr);
        }
    }
    let row = row(&person);
    assert_eq!((&row["behind"], row["overdue"].is_null()), (&Value::Null, false), "{row}");
    assert!(row["behind_unknown"].as_str().expect("text").contains("had no branch main"), "{row}");
    let output = sync(&person, &["--main-branch", "trunk"]);
    assert_eq!(output.status, Some(2), "upstream has none: {}", output.snapshot());
    assert_eq!(sync(&person, &["--main-branch", "trunk", "--target", "main"]).status, Some(0));
}

#[test]
fn an_upstream_without_branches_is_not_up_to_date() {
    let Some(person) = up_to_date() else { return };
    let empty = person.hermetic.root().join("empty.git");
    fs::create_dir_all(&empty).expect("a folder");
    Repo::init_bare(&empty);
    let address = empty.to_str().expect("UTF-8");
    person.fork.checkout.git(&["remote", "set-url", "upstream", address]);
    let output = sync(&person, &[]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("has no branch 'main', and no other"), "{}", output.stderr);
    assert_eq!(row(&person)["behind"], Value::Null);
}

#[test]
fn what_a_train_fetched_before_upstream_was_rewritten_does_not_count() {
    let Some(person) = seven("words\n") else { return };
    assert_eq!(train(&person, KEEPS_BOTH, &[]).status, Some(0));
    let tip = only_branch(&person);
    person.fork.origin.git(&["update-ref", "refs/heads/main", &tip]);
    assert_eq!(train(&person, KEEPS_BOTH, &[]).status, Some(0));
    assert_eq!(row(&person)["behind"], 0);
    person.fork.upstream_rewrite("shared.txt", "another past\n", "rewritten");
    sync(&person, &["--dry-run"]);
    assert_eq!(row(&person)["behind"], 1, "{}", row(&person));
}

#[test]
fn a_train_branch_that_was_deleted_after_a_fetch_saw_it_is_noticed() {
    for steps in [&["--steps", "1"][..], &[]] {
        let Some(person) = seven("words\n") else { return };
        assert_eq!(train(&person, KEEPS_BOTH, steps).status, Some(0));
        assert_eq!(train(&person, KEEPS_BOTH, &["--plan"]).status, Some(0));
        person.fork.origin.git(&["update-ref", "-d", &only_branch(&person)]);
        let output = train(&person, KEEPS_BOTH, &[]);
        assert_eq!(output.status, Some(3), "{steps:?}: {}", output.snapshot());
        assert!(output.stderr.contains("was deleted on origin"), "{}", output.stderr);
        assert!(output.stderr.contains("forklift train --again"), "{}", output.stderr);
        assert!(person.published().is_empty());
        assert_eq!(train(&person, KEEPS_BOTH, &["--again"]).status, Some(0));
        assert_eq!(person.published().len(), 1);
    }
}
