//! Looking ahead: what is coming, which files are the fork's own, and where the trouble begins.

use std::process::Stdio;

use serde_json::Value;
use testkit::hermetic::Output;
use testkit::repo::Fork;

use crate::support::Person;

/// Runs a command that only looks, and makes sure that it did no more than that.
fn look(person: &Person, args: &[&str]) -> Output {
    let seen = || {
        let checkout = &person.fork.checkout;
        (checkout.git(&["status", "--porcelain"]), checkout.head(), person.published())
    };
    let before = seen();
    let output = person.hermetic.run(&mut person.forklift(args));
    assert_eq!(seen(), before, "something was changed");
    assert_eq!(person.runs().len(), 0, "a run was made");
    let previews = person.hermetic.home().join(".cache/bottleworks/previews");
    let left = std::fs::read_dir(previews).map_or(0, Iterator::count);
    assert_eq!(left, 0, "something was left behind");
    output
}

/// The last object that was printed.
fn json(person: &Person, args: &[&str]) -> Value {
    let output = look(person, &[args, &["--json"]].concat());
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let last = output.stdout.lines().last().expect("a line");
    let value: Value = serde_json::from_str(last).expect("JSON");
    assert_eq!(value["event"], args[0]);
    value
}

fn conflicting() -> Option<Person> {
    Person::with(|hermetic| Fork::new(hermetic).clean_merge().conflicting_merge())
}

#[test]
fn what_is_coming_is_told_with_its_conflicts_and_without_a_model() {
    let Some(person) = conflicting() else { return };
    let output = look(&person, &["changelog"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    for words in [
        "2 commits",
        "2 files, +2 -1",
        "upstream's two",
        "second",
        "1 conflict,",
        "shared.txt (content)",
    ] {
        assert!(output.stdout.contains(words), "{words}: {}", output.stdout);
    }
    let value = json(&person, &["changelog"]);
    assert_eq!(value["forecast"]["commit_count"], 2);
    assert_eq!(value["forecast"]["merge"]["conflicts"][0]["path"], "shared.txt");
    assert_eq!(value["pins"]["upstream"], person.fork.upstream.sha("main"));
}

#[test]
fn a_clean_future_and_an_empty_one_are_told() {
    let Some(person) = Person::new() else { return };
    let output = look(&person, &["changelog"]);
    assert!(output.stdout.contains("without conflicts"), "{}", output.stdout);
    let Some(person) = Person::with(Fork::new) else { return };
    let output = look(&person, &["changelog"]);
    assert!(output.stdout.contains("nothing to do"), "{}", output.stdout);
    let Some(person) = Person::with(Fork::unrelated) else { return };
    let output = look(&person, &["changelog"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("no commit in common"), "{}", output.stdout);
}

#[test]
fn the_rules_that_would_apply_are_told() {
    let Some(person) = conflicting() else { return };
    let rules = "---\ncheck: make test\nstrategy: rebase\nprotect: [shared.txt]\n---\nwords\n";
    person.fork.checkout.write("FORK.md", rules);
    person.fork.fork_commit("rules");
    let output = look(&person, &["changelog"]);
    for words in [
        "check: make test",
        "strategy: rebase",
        "protected, and changed upstream: shared.txt",
        "does not fit",
    ] {
        assert!(output.stdout.contains(words), "{words}: {}", output.stdout);
    }
    let value = json(&person, &["changelog"]);
    assert_eq!(value["rebase"]["kind"], "conflicts");
    assert_eq!(value["rules"]["check"]["line"], "make test");
}

#[test]
fn long_lists_are_cut_and_say_so() {
    let Some(person) = Person::new() else { return };
    for number in 0..5 {
        person.fork.upstream_commit(&format!("n{number}"), "x\n", &format!("number {number}"));
    }
    let output = look(&person, &["changelog", "--limit", "2"]);
    assert!(output.stdout.contains("6 commits"), "{}", output.stdout);
    assert!(output.stdout.contains("and 4 commits more"), "{}", output.stdout);
    assert!(output.stdout.contains("and 4 files more"), "{}", output.stdout);
}

/// A fork that added, changed, deleted and renamed, and an upstream that did things of its own.
fn busy() -> Option<Person> {
    Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        for name in ["theirs-gone", "fork-gone", "old-name", "both"] {
            fork.upstream_commit(name, &format!("{name}\nsome\nlines\n"), name);
        }
        fork.checkout.git(&["pull", "--quiet", "--no-rebase", "--no-edit", "upstream", "main"]);
        fork.checkout.git(&["rm", "--quiet", "fork-gone"]);
        fork.checkout.git(&["mv", "old-name", "new-name"]);
        fork.checkout.write("both", "the fork's\nsome\nlines\n").write("mine", "mine\n");
        fork.fork_commit("the fork's own ways");
        fork.upstream_commit("both", "upstream's\nsome\nlines\n", "both");
        fork.upstream_commit("elsewhere", "x\n", "elsewhere");
        fork.upstream_remove("theirs-gone");
        fork
    })
}

#[test]
fn p19_the_forks_own_files_are_listed_with_what_upstream_did() {
    let Some(person) = busy() else { return };
    let value = json(&person, &["files"]);
    let row = |file: &Value| {
        let text = |key: &str| file[key].as_str().unwrap_or_default().to_owned();
        (text("path"), text("fork"), text("upstream"))
    };
    let rows: Vec<_> = value["files"].as_array().expect("a list").iter().map(row).collect();
    let expected = [
        ("FORK.md", "added", "untouched"),
        ("both", "changed", "changed"),
        ("fork-gone", "deleted", "untouched"),
        ("mine", "added", "untouched"),
        ("new-name", "renamed", "untouched"),
    ];
    let expected = expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()));
    assert_eq!(rows, expected);
    let output = look(&person, &["files"]);
    assert!(output.stdout.contains("new-name (was old-name)"), "{}", output.stdout);
    assert!(output.stdout.contains("changed upstream too"), "{}", output.stdout);
}

#[test]
fn files_of_a_fork_that_is_up_to_date_and_of_one_without_a_common_past() {
    let Some(person) = Person::with(Fork::new) else { return };
    let output = look(&person, &["files"]);
    assert!(output.stdout.contains("FORK.md"), "{}", output.stdout);
    let Some(person) = Person::with(Fork::unrelated) else { return };
    for word in ["files", "first"] {
        let output = look(&person, &[word]);
        assert_eq!(output.status, Some(2), "{}", output.snapshot());
        assert!(output.stderr.contains("no commit in common"), "{}", output.stderr);
    }
}

#[test]
fn the_first_commit_that_conflicts_is_found_with_its_files() {
    let Some(person) = conflicting() else { return };
    let culprit = person.fork.upstream.sha("main");
    for number in 0..3 {
        person.fork.upstream_commit(&format!("n{number}"), "x\n", &format!("number {number}"));
    }
    let value = json(&person, &["first"]);
    assert_eq!(value["commit"], culprit);
    assert_eq!((&value["position"], &value["of"]), (&2.into(), &5.into()));
    assert_eq!(value["exact"], true);
    assert_eq!(value["conflicts"][0]["path"], "shared.txt");
    let output = look(&person, &["first"]);
    assert!(output.stdout.contains(&culprit[..12]), "{}", output.stdout);
    assert!(output.stdout.contains("shared.txt (content)"), "{}", output.stdout);
}

#[test]
fn nothing_conflicts_where_nothing_does() {
    for make in [Fork::new, |hermetic: &_| Fork::new(hermetic).clean_merge()] {
        let Some(person) = Person::with(make) else { return };
        let output = look(&person, &["first"]);
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        assert!(output.stdout.contains("nothing conflicts"), "{}", output.stdout);
        assert!(json(&person, &["first"])["commit"].is_null());
    }
}

/// Upstream took the change back: there is nothing to do about it any more.
#[test]
fn a_conflict_that_upstream_undid_is_none() {
    let Some(person) = conflicting() else { return };
    person.fork.upstream_commit("shared.txt", "one\ntwo\nthree\n", "undo");
    let output = look(&person, &["first"]);
    assert!(output.stdout.contains("nothing conflicts"), "{}", output.stdout);
}

#[test]
fn what_is_wrong_with_the_question_is_told_in_one_line() {
    let Some(person) = Person::new() else { return };
    for word in ["changelog", "files", "first"] {
        let output = look(&person, &[word, "--target", "v9.9.9"]);
        assert_eq!(output.status, Some(2), "{}", output.snapshot());
        assert!(output.stderr.contains("v9.9.9"), "{}", output.stderr);
        let output = look(&person, &[word, "--main-branch", "trunk"]);
        assert_eq!(output.status, Some(2), "{}", output.snapshot());
        assert!(output.stderr.contains("'trunk'"), "{}", output.stderr);
    }
}

/// A server that takes the call and says nothing.
#[test]
fn a_look_that_takes_too_long_can_be_stopped_and_leaves_nothing() {
    let Some(person) = Person::new() else { return };
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let url = format!("git://{}/upstream.git", listener.local_addr().expect("an address"));
    person.fork.checkout.git(&["remote", "set-url", "upstream", &url]);
    let mut command = person.forklift(&["changelog"]);
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let (_silent, _) = listener.accept().expect("git calls");
    let pid = child.id().to_string();
    person.hermetic.run_ok(person.hermetic.command("kill").args(["-TERM", &pid]));
    assert_eq!(child.wait().expect("it ends").code(), Some(143));
    let previews = person.hermetic.home().join(".cache/bottleworks/previews");
    assert_eq!(std::fs::read_dir(previews).map_or(0, Iterator::count), 0);
}
