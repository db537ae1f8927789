//! Limits on an agent's change, and tests that a change weakens.

use crate::rules::constraint::{ChangeLimits, ObservedChange, judge_change};
use crate::rules::protected::find_weakened;

use super::{commit_id, sha};

fn change() -> ObservedChange {
    ObservedChange {
        head_before: sha('a'),
        head_after: sha('b'),
        descends: true,
        subjects: vec!["COMMIT-LG-001: Add a form".to_owned()],
        changed: vec![b"src/login.rs".to_vec()],
        lines_changed: 12,
        strange: Vec::new(),
        sensitive: Vec::new(),
    }
}

fn judged(name: &str, edit: impl FnOnce(&mut ObservedChange)) -> String {
    let mut change = change();
    edit(&mut change);
    let words = |list: &[&str]| list.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let limits = ChangeLimits {
        id: &commit_id(),
        max_files: 2,
        max_lines: 20,
        allowed: &words(&["src/", "docs", "secrets", "ci"]),
        forbidden: &words(&["secrets/", ".env", "ci/keys"]),
        expected: &words(&["src/"]),
    };
    match judge_change(&change, &limits) {
        Ok(warnings) if warnings.is_empty() => format!("{name}: accepted\n"),
        Ok(warnings) => format!("{name}: accepted, but {}\n", warnings.join("; ")),
        Err(reason) => format!("{name}: refused, {reason}\n"),
    }
}

fn paths(paths: &[&str]) -> impl FnOnce(&mut ObservedChange) {
    let paths: Vec<Vec<u8>> = paths.iter().map(|path| path.as_bytes().to_vec()).collect();
    move |change| change.changed = paths
}

#[test]
fn limits_on_history_content_and_size() {
    let rows = [
        judged("one small commit", |_| {}),
        judged("no commit", |change| change.head_after = change.head_before.clone()),
        judged("an amended commit", |change| change.descends = false),
        judged("a second commit with another subject", |change| {
            change.subjects.push("wip".to_owned());
        }),
        judged("a subject of a longer id", |change| {
            change.subjects = vec!["COMMIT-LG-0011: x".to_owned()];
        }),
        judged("a link to another repository", |change| {
            change.strange.push("lib links another repository".to_owned());
        }),
        judged("20 lines", |change| change.lines_changed = 20),
        judged("21 lines", |change| change.lines_changed = 21),
        judged("two files", paths(&["src/a", "src/b"])),
        judged("three files", paths(&["src/a", "src/b", "src/c"])),
    ];
    insta::assert_snapshot!(rows.concat(), @r#"
    one small commit: accepted
    no commit: refused, no commit was created
    an amended commit: refused, the history of the branch was rewritten
    a second commit with another subject: refused, the commit "wip" does not start with COMMIT-LG-001:
    a subject of a longer id: refused, the commit "COMMIT-LG-0011: x" does not start with COMMIT-LG-001:
    a link to another repository: refused, lib links another repository
    20 lines: accepted
    21 lines: refused, 21 lines were changed; at most 20 are allowed
    two files: accepted
    three files: refused, 3 files were changed; at most 2 are allowed
    "#);
}

#[test]
fn limits_on_paths() {
    let rows = [
        ["src/a"],
        ["docs/a.md"],
        ["docs2/a.md"],
        ["lib/x"],
        ["secrets/key"],
        ["secrets.md"],
        ["src/.env"],
        ["src/.env.sample"],
        ["ci/keys"],
        ["ci/keys/x"],
        ["src/ci/keys"],
    ]
    .map(|list| judged(list[0], paths(&list)));
    insta::assert_snapshot!(rows.concat(), @"
    src/a: accepted
    docs/a.md: accepted, but docs/a.md is outside the expected paths
    docs2/a.md: refused, docs2/a.md was changed, but only src/ docs secrets ci is allowed
    lib/x: refused, lib/x was changed, but only src/ docs secrets ci is allowed
    secrets/key: refused, secrets/key was changed, but secrets/ is forbidden
    secrets.md: refused, secrets.md was changed, but only src/ docs secrets ci is allowed
    src/.env: refused, src/.env was changed, but .env is forbidden
    src/.env.sample: accepted
    ci/keys: refused, ci/keys was changed, but ci/keys is forbidden
    ci/keys/x: refused, ci/keys/x was changed, but ci/keys is forbidden
    src/ci/keys: accepted
    ");
}

fn patch(path: &str, body: &str) -> String {
    format!(
        "diff --git a/{path} b/{path}\nindex 1..2 100644\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n{body}"
    )
}

fn deleted(path: &str) -> String {
    format!(
        "diff --git a/{path} b/{path}\ndeleted file mode 100644\n--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    )
}

fn weakened(rows: &[(&str, String)]) -> String {
    let row = |(name, patch): &(&str, String)| {
        let found = find_weakened(patch);
        let found = if found.is_empty() { "nothing".to_owned() } else { found.join("; ") };
        format!("{name}: {found}\n")
    };
    rows.iter().map(row).collect()
}

#[test]
fn test_files_are_known_by_the_customs_of_most_languages() {
    let names = [
        "tests/a.rs",
        "src/tests/a.rs",
        "spec/a.rb",
        "web/__tests__/a.js",
        "e2e/a.ts",
        "web/a.test.ts",
        "web/a.spec.js",
        "test_a.py",
        "src/a_test.go",
        "lib/a_spec.rb",
        "src/FooTest.java",
        "src/FooTests.cs",
        "Makefile",
        "contest/a.py",
        "src/latest.py",
        "src/testing.rs",
        "a b/tests/c d.py",
    ];
    let rows: Vec<(&str, String)> = names.iter().map(|name| (*name, deleted(name))).collect();
    insta::assert_snapshot!(weakened(&rows), @"
    tests/a.rs: tests/a.rs was deleted
    src/tests/a.rs: src/tests/a.rs was deleted
    spec/a.rb: spec/a.rb was deleted
    web/__tests__/a.js: web/__tests__/a.js was deleted
    e2e/a.ts: e2e/a.ts was deleted
    web/a.test.ts: web/a.test.ts was deleted
    web/a.spec.js: web/a.spec.js was deleted
    test_a.py: test_a.py was deleted
    src/a_test.go: src/a_test.go was deleted
    lib/a_spec.rb: lib/a_spec.rb was deleted
    src/FooTest.java: src/FooTest.java was deleted
    src/FooTests.cs: src/FooTests.cs was deleted
    Makefile: Makefile was deleted
    contest/a.py: nothing
    src/latest.py: nothing
    src/testing.rs: nothing
    a b/tests/c d.py: a b/tests/c d.py was deleted
    ");
}

#[test]
fn weakened_checks_are_counted() {
    let rows = [
        ("an assertion is removed", patch("tests/a.py", "-    assert x\n")),
        ("an assertion is replaced", patch("tests/a.py", "-    assert x\n+    assert y\n")),
        (
            "one of three is left",
            patch("a_test.go", "-t.Fatal(1)\n-t.Fatal(2)\n-t.Error(3)\n+t.Fatal(4)\n"),
        ),
        ("a test is ignored", patch("tests/a.rs", "+#[ignore = \"slow\"]\n")),
        ("a test is skipped and loses a check", patch("a.spec.ts", "-expect(x)\n+it.skip('x')\n")),
        ("a target is removed", patch("Makefile", "-test-unit:\n+all:\n")),
        ("a check is added", patch("tests/a.py", "+    assert x\n")),
        ("production code", patch("src/main.rs", "-assert!(x);\n")),
        ("two files", patch("tests/b.py", "-assert x\n") + &deleted("tests/a.py")),
        ("a text that is not a patch", "diff --git x\ngarbage\n".to_owned()),
    ];
    insta::assert_snapshot!(weakened(&rows), @"
    an assertion is removed: tests/a.py: 1 checks fewer than before
    an assertion is replaced: nothing
    one of three is left: a_test.go: 2 checks fewer than before
    a test is ignored: tests/a.rs: tests are skipped
    a test is skipped and loses a check: a.spec.ts: 1 checks fewer than before, tests are skipped
    a target is removed: Makefile: 1 checks fewer than before
    a check is added: nothing
    production code: nothing
    two files: tests/a.py was deleted; tests/b.py: 1 checks fewer than before
    a text that is not a patch: nothing
    ");
}
