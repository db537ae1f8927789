//! "Verified" means it: an agent that drops a side's work, in part or whole, is refused or named first.

use serde_json::Value;
use testkit::repo::Fork;

use crate::support::Person;

/// The right merge of a fork and an upstream that both changed the end of `f1.txt`.
const HONEST: &str = "git merge -q --no-edit upstream/main >/dev/null
git show upstream/main:f1.txt > f1.txt; echo 'fork tail' >> f1.txt; git add -A; git commit -qm merge
";

fn hundred(word: &str) -> String {
    (0..100).map(|n| format!("{word}_{n} = {n}\n")).collect()
}

/// The fork has a source file, a script, a test and a picture of its own; upstream has two files with news in them.
pub(crate) fn fork_and_upstream(fork: Fork) -> Fork {
    fork.upstream_commit("f1.txt", "one\ntwo\n", "f1");
    fork.upstream_commit("f2.txt", &hundred("two"), "f2");
    fork.checkout.git(&["fetch", "-q", "upstream"]);
    fork.checkout.git(&["merge", "-q", "--no-edit", "upstream/main"]);
    fork.checkout.write("f1.txt", "one\ntwo\nfork tail\n");
    fork.checkout.write("auth.py", hundred("auth")).write("run.sh", "echo run\n");
    fork.checkout.write("own.txt", "own\n").write("tests/t.py", "def test_fork():\n    assert 1\n");
    fork.checkout.write("logo.png", b"\x89PNG\0fork");
    fork.checkout.git(&["add", "-A"]);
    fork.checkout.git(&["update-index", "--chmod=+x", "run.sh"]);
    fork.checkout.commit_index("the fork's work");
    fork.checkout.git(&["push", "-q", "origin", "HEAD:main"]);
    let changed = hundred("two").replace("two_9 = 9\n", "two_9 = 'safe'\n");
    fork.upstream_commit("f2.txt", &changed, "fix a hole");
    fork.upstream_commit("f1.txt", "one\ntwo\nupstream tail\n", "upstream's tail");
    fork
}

pub(crate) fn person() -> Option<Person> {
    Person::with(|hermetic| fork_and_upstream(Fork::new(hermetic)))
}

fn script(act: &str) -> String {
    format!("[[step]]\nrun = '''set -e\n{act}'''\n")
}

/// An agent that merges well and then does something else.
pub(crate) fn evil(act: &str) -> String {
    script(&format!("{}{act}\ngit add -A; git commit -qm more", HONEST.replace("set -e", "")))
        .replace("set -e\n", "")
}

/// The agent is refused for this verdict, and nothing is on origin.
#[track_caller]
fn refused(act: &str, kind: &str, words: &str) {
    let Some(person) = person() else { return };
    let output = person.run(act, &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert_eq!(person.metadata("/verdict/kind"), kind, "{}", output.snapshot());
    assert_eq!(person.published(), Vec::<String>::new());
    assert!(output.snapshot().contains(words), "{}", output.snapshot());
}

#[test]
fn an_honest_agent_is_verified() {
    let Some(person) = person() else { return };
    let output = person.run(&script(HONEST).replace("set -e\n", ""), &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1);
    assert_eq!(person.metadata("/account/conflicts/0/resolution"), "both");
    assert_eq!(person.metadata("/account/upstream/changes"), Value::Array(Vec::new()));
    assert_eq!(person.metadata("/account/departures"), Value::Array(Vec::new()));
}

#[test]
fn upstream_left_out_is_refused_unless_it_is_accepted() {
    let ours = script("git merge -q -s ours --no-edit upstream/main");
    refused(&ours, "upstream-dropped", "nothing of upstream is in it");
    let Some(person) = person() else { return };
    let output = person.run(&ours, &["--accept-dropped"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1);
}

#[test]
fn the_forks_side_of_all_conflicts_is_refused() {
    let Some(person) = Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        let names: Vec<String> = (0..9).map(|n| format!("c{n}.txt")).collect();
        for name in &names {
            fork.upstream_commit(name, "a\nb\nc\n", name);
        }
        fork.checkout.git(&["fetch", "-q", "upstream"]);
        fork.checkout.git(&["merge", "-q", "--no-edit", "upstream/main"]);
        for name in &names {
            fork.checkout.write(name, "a\nb\nfork\n");
        }
        fork.fork_commit("the fork's");
        for name in &names {
            fork.upstream_commit(name, "a\nb\nup\n", name);
        }
        fork.upstream_commit("other.txt", "new\n", "other");
        fork
    }) else {
        return;
    };
    let lazy = "git merge -q --no-edit upstream/main || true; git checkout -q --ours .; git add -A; git commit -qm m";
    let output = person.run(&format!("[[step]]\nrun = '''{lazy}'''\n"), &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert_eq!(person.metadata("/verdict/kind"), "upstream-dropped");
    assert_eq!(person.published(), Vec::<String>::new());
}

#[test]
fn one_dropped_hunk_of_upstream_stands_first() {
    let Some(person) = person() else { return };
    let output = person.run(
        &evil(
            "git show HEAD~1:f2.txt > f2.txt 2>/dev/null || true; git checkout -q HEAD^1 -- f2.txt",
        ),
        &[],
    );
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let change = person.metadata("/account/upstream/changes/0");
    assert_eq!((&change["path"], &change["status"]), (&"f2.txt".into(), &"dropped".into()));
}

#[test]
fn ninety_nine_of_a_hundred_lines_are_a_loss() {
    refused(&evil("head -1 auth.py > x; mv x auth.py"), "work-lost", "1 of 100 lines");
}

#[test]
fn a_file_that_has_become_something_else_is_a_loss() {
    refused(&evil(r"printf '\\000' > auth.py"), "work-lost", "auth.py");
    refused(&evil("ln -sf f2.txt own.txt"), "work-lost", "own.txt");
    refused(&evil("head -c 3000000 /dev/urandom | base64 > auth.py"), "work-lost", "auth.py");
    refused(&evil(r"printf 'x\\000y' > logo.png"), "work-lost", "logo.png");
}

#[test]
fn code_that_is_a_comment_now_is_a_loss() {
    refused(&evil("sed -i 's/^/# /' auth.py"), "work-lost", "0 of 100 lines");
}

#[test]
fn an_executable_that_is_none_any_more_is_a_loss() {
    refused(&evil("chmod -x run.sh"), "work-lost", "the fork's mode is gone");
}

#[test]
fn a_file_under_a_name_that_nothing_runs_is_a_loss() {
    refused(&evil("git mv tests/t.py tests/x.txt"), "work-lost", "hidden under another name");
    refused(&evil("git mv auth.py \u{430}uth.py"), "work-lost", "hidden under another name");
}

#[test]
fn a_file_without_its_body_is_refused() {
    refused(&evil("head -3 f2.txt > x; mv x f2.txt"), "upstream-dropped", "f2.txt");
}
