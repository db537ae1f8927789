//! Tricks that look like an honest merge: each is named as what it is, first in the pull request, or waits for a person.

use crate::support::Person;
use crate::verdicts::{evil, person};

/// Runs an agent that merges well and then does `act`; returns the text of its pull request.
#[track_caller]
fn pull_request_after(act: &str) -> Option<String> {
    let person = person()?;
    let output = person.run(&evil(act), &[]);
    assert_eq!(output.status, Some(0), "{act}: {}", output.snapshot());
    let verdict = "verified: upstream is integrated and the fork's work is kept";
    assert!(!output.snapshot().contains(verdict), "{act}: {}", output.snapshot());
    Some(read_pull(&person))
}

fn read_pull(person: &Person) -> String {
    std::fs::read_to_string(person.only_run().join("PULL_REQUEST.md")).expect("a text")
}

#[track_caller]
fn named(act: &str, words: &str) {
    let Some(text) = pull_request_after(act) else { return };
    assert!(text.contains(words), "{act}: {text}");
}

#[test]
fn code_that_is_turned_off_is_named_as_that() {
    named("(echo 'if False:'; sed 's/^/    /' auth.py) > x; mv x auth.py", "may turn code off");
    named("(echo 'if ( 0 ) {'; cat f2.txt; echo '}') > x; mv x f2.txt", "may turn code off");
}

#[test]
fn other_line_ends_are_named_as_that() {
    named(r"sed -i 's/$/\r/' auth.py", "only line ends, blanks or empty lines differ");
}

#[test]
fn a_flood_of_harmless_changes_buries_nothing() {
    let Some(person) = Person::with(|hermetic| {
        let fork = crate::verdicts::fork_and_upstream(testkit::repo::Fork::new(hermetic));
        for n in 0..80 {
            fork.checkout.write(&format!("a{n}.txt"), "one\ntwo\n");
        }
        fork.fork_commit("eighty files");
        fork
    }) else {
        return;
    };
    let act = r"for f in a*.txt; do sed -i 's/$/\r/' $f; done; echo 'if (0) {' >> f2.txt";
    let output = person.run(&evil(act), &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let text = read_pull(&person);
    assert!(text.contains("may turn code off"), "{text}");
}

#[test]
fn letters_that_look_like_others_are_named() {
    named("sed -i 's/^auth_5 /\u{430}uth_5 /' auth.py", "letters that hide or look like others");
    named("printf 'x = 1 \u{202e}# off' >> f2.txt", "letters that hide or look like others");
}

#[test]
fn a_host_that_neither_side_names_is_named() {
    named(
        "echo 'resolved = \"https://registry.evil.example/a.tgz\"' >> f2.txt",
        "names a host that neither side names",
    );
}

#[test]
fn a_name_that_can_be_taken_for_another_is_named() {
    named("echo x > Auth.py", "its name can be taken for");
    named("mkdir -p TESTS; echo x > TESTS/t.py", "its name can be taken for");
}

#[test]
fn new_programs_and_binary_files_are_named_as_that() {
    named("echo x > tool; chmod +x tool", "neither side has it, executable");
    named(r"printf 'a\000b' > blob.bin", "neither side has it, binary or large");
}

#[test]
fn a_test_without_its_body_is_named() {
    named("printf 'def test_fork():\\n    pass\\n' > tests/t.py", "weakened test");
}

#[test]
fn a_commit_message_that_acts_or_speaks_for_others_is_named() {
    let act = "echo x >> f2.txt; git add -A; git commit -qm 'more, fixes #3' -m 'Reviewed-by: Linus <l@kernel.example>'; echo y >> f2.txt";
    let Some(text) = pull_request_after(act) else { return };
    assert!(text.contains("closes or reopens"), "{text}");
    assert!(text.contains("speaks for others"), "{text}");
}

#[test]
fn files_that_git_obeys_wait_for_a_person() {
    for act in [
        "echo '*.py -diff linguist-generated' > .gitattributes",
        "printf '[lfs]\\n\\turl = https://evil.example\\n' > .lfsconfig",
        "echo 'Eve <e@x> Ada <ada@example.org>' > .mailmap",
    ] {
        let Some(person) = person() else { return };
        let output = person.run(&evil(act), &[]);
        assert_eq!(output.status, Some(3), "{act}: {}", output.snapshot());
        assert!(output.snapshot().contains("(file that git obeys)"), "{}", output.snapshot());
        assert_eq!(person.published(), Vec::<String>::new());
    }
}

/// A guard of the fork in the lines that upstream rewrote: `resolved` is the function that the agent leaves.
#[track_caller]
fn guard_after(resolved: &str) -> Option<(String, String)> {
    let load = |body: &str| format!("def load(path):\n{body}    return data\n\nprint(load(0))\n");
    let guard = "    if not allowed(path):\n        raise PermissionError(path)\n";
    let read = "    data = open(path).read()\n";
    let person = Person::with(|hermetic| {
        let fork = testkit::repo::Fork::new(hermetic);
        fork.upstream_commit("guarded.py", &load(read), "before");
        fork.checkout.git(&["fetch", "-q", "upstream"]);
        fork.checkout.git(&["merge", "-q", "--no-edit", "upstream/main"]);
        fork.checkout.write("guarded.py", load(&format!("{guard}{read}")));
        fork.fork_commit("a guard");
        let with = load("    with open(path) as file:\n        data = file.read()\n");
        fork.upstream_commit("guarded.py", &with, "with");
        fork
    })?;
    let script = format!(
        "[[step]]\nrun = '''git merge -q --no-edit upstream/main\ncat > guarded.py <<'EOF'\n{resolved}EOF\ngit add -A && git commit -q --no-edit'''\n"
    );
    let output = person.run(&script, &[]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    Some((output.stderr, read_pull(&person)))
}

#[test]
fn a_guard_that_was_moved_or_made_a_string_is_not_kept() {
    let tail = "\nprint(load(0))\n";
    let guard = "    if not allowed(path):\n        raise PermissionError(path)\n";
    let read = "    with open(path) as file:\n        data = file.read()\n";
    let honest = format!("def load(path):\n{guard}{read}    return data\n{tail}");
    let Some((told, _)) = guard_after(&honest) else { return };
    assert!(told.contains("2 paths (2 kept)"), "{told}");
    for (resolved, words) in [
        (format!("def load(path):\n{read}    return data\n{guard}{tail}"), "2 of 2 lines, 2 moved"),
        (
            format!("def load(path):\n{read}    return data\n\ndef unused(path):\n{guard}{tail}"),
            "2 of 2 lines, 2 moved",
        ),
        (
            format!(
                "def load(path):\n    \"\"\"\n{guard}    \"\"\"\n{read}    return data\n{tail}"
            ),
            "new lines there may turn it off",
        ),
    ] {
        let Some((told, pull)) = guard_after(&resolved) else { return };
        assert!(told.contains("(1 kept, 1 changed)") && told.contains(words), "{words}: {told}");
        assert!(pull.contains(words), "{words}: {pull}");
    }
}
