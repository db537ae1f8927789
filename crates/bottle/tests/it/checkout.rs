//! Bottles made from a checkout, and their work taken back into it.

use testkit::hermetic::Output;

use crate::support::{COMMIT, Person};

fn succeeds(output: &Output) {
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
}

#[test]
fn a_bottle_starts_from_head_and_says_what_it_leaves_out() {
    let Some(person) = Person::new() else { return };
    let checkout = &person.fork.checkout;
    checkout.git(&["switch", "-qc", "topic"]);
    checkout.write("local.txt", "not pushed\n");
    checkout.git(&["add", "-A"]);
    checkout.git(&["commit", "-qm", "a local commit"]);
    checkout.write("local.txt", "not committed\n");
    checkout.write("new.txt", "not known to git\n");
    let before = checkout.git(&["status", "--porcelain"]);
    let script = "[[step]]\nrun = \"grep -q 'not pushed' local.txt && test ! -e new.txt\"\n";
    let output = person.start(script, &["--label", "plain"]);
    succeeds(&output);
    let warned = "without the uncommitted changes of local.txt, new.txt; take them along with --with-changes";
    assert!(output.stderr.contains(warned), "{}", output.stderr);
    let script = "[[step]]\nrun = \"grep -q 'not committed' local.txt && test -e new.txt && git show-ref checkout/topic\"\n";
    let output = person.start(script, &["--label", "changes", "--with-changes"]);
    succeeds(&output);
    assert!(!output.stderr.contains("warning"), "{}", output.stderr);
    assert_eq!(checkout.git(&["status", "--porcelain"]), before, "the checkout is as it was");
    let output = person.start(script, &["--with-changes", "--base", "main"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
}

#[test]
fn a_resumed_bottle_gets_the_new_commits_of_its_own_base() {
    let Some(person) = Person::new() else { return };
    let checkout = &person.fork.checkout;
    succeeds(&person.start(COMMIT, &["--label", "local"]));
    succeeds(&person.start(COMMIT, &["--label", "fixed", "--base", "HEAD~0"]));
    checkout.git(&["commit", "-qm", "later", "--allow-empty"]);
    let later = checkout.git(&["rev-parse", "HEAD"]);
    let script = format!("[[step]]\nrun = \"git cat-file -e {later}\"\n");
    succeeds(&person.resume("local", &script));
    let output = person.resume("fixed", &script);
    assert_ne!(output.status, Some(0), "{}", output.snapshot());
}

#[test]
fn a_bottle_needs_no_origin() {
    let Some(person) = Person::new() else { return };
    let checkout = &person.fork.checkout;
    for remote in ["origin", "upstream"] {
        checkout.git(&["remote", "remove", remote]);
    }
    succeeds(&person.start(COMMIT, &["--label", "alone"]));
    succeeds(&person.resume("alone", COMMIT));
    let output = person.start(COMMIT, &["--base", "origin/main"]);
    assert_eq!(output.status, Some(125), "{}", output.snapshot());
    assert!(output.stderr.contains("git remote add origin"), "{}", output.stderr);
}

#[test]
fn work_comes_back_as_a_diff_as_changes_and_as_a_branch() {
    let Some(person) = Person::new() else { return };
    let checkout = &person.fork.checkout;
    let binary =
        "[[step]]\nrun = \"printf 'a\\\\000b' > blob && git add -A && git commit -qm blob\"\n";
    succeeds(&person.start(&format!("{COMMIT}{binary}"), &["--label", "work"]));
    let output = person.run(&["diff", "work"]);
    succeeds(&output);
    assert!(output.stdout.contains("+++ b/work.txt") && output.stdout.contains("GIT binary patch"));

    succeeds(&person.run(&["apply", "work"]));
    assert_eq!(checkout.git(&["status", "--porcelain"]), "?? blob\n?? work.txt");
    let output = person.run(&["apply", "work"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("bot-bottle checkout work"), "{}", output.stderr);
    checkout.git(&["clean", "-fdq"]);

    succeeds(&person.run(&["checkout", "work"]));
    assert_eq!(checkout.git(&["branch", "--show-current"]), "bot-bottle/work");
    assert_eq!(checkout.git(&["log", "-1", "--format=%s"]), "blob");
    // Newer work moves the branch forward, unless it is checked out or has commits of its own.
    succeeds(&person.resume("work", COMMIT));
    let output = person.run(&["checkout", "work"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    checkout.git(&["switch", "-q", "main"]);
    succeeds(&person.run(&["checkout", "work"]));
    assert_eq!(checkout.git(&["log", "-1", "--format=%s"]), "do the work");
    checkout.git(&["commit", "-qm", "mine", "--allow-empty"]);
    checkout.git(&["switch", "-q", "main"]);
    succeeds(&person.resume("work", COMMIT));
    let output = person.run(&["checkout", "work"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("--branch NAME"), "{}", output.stderr);
    succeeds(&person.run(&["checkout", "work", "--branch", "second"]));
}

#[test]
fn work_that_was_not_found_good_is_taken_only_if_told() {
    let Some(person) = Person::new() else { return };
    person.agent("worker", "protect = [\"work.txt\"]\n");
    person.start(COMMIT, &["--label", "bad"]);
    for command in ["apply", "checkout"] {
        let output = person.run(&[command, "bad"]);
        assert_eq!(output.status, Some(2), "{}", output.snapshot());
        assert!(output.stderr.contains("was not found good"), "{}", output.stderr);
    }
    assert_eq!(person.fork.checkout.git(&["status", "--porcelain"]), "");
    succeeds(&person.run(&["diff", "bad"]));
    succeeds(&person.run(&["apply", "bad", "--force"]));
    let output = person.start("[[step]]\nprint = \"nothing\\n\"\n", &["--label", "idle"]);
    succeeds(&output);
    let output = person.run(&["diff", "idle"]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
}
