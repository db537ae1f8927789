//! Tests that a change deletes or weakens, found in the patch, so that the agent's report need not be trusted.

use std::collections::BTreeMap;

#[derive(Debug, Default)]
struct TestChanges {
    is_deleted: bool,
    removed: usize,
    added: usize,
    skips: usize,
}

/// Lists every test file that the patch deletes, removes assertions from or marks as skipped, and targets that it removes
/// from a makefile. This is a heuristic: the reviewer checks it.
pub(crate) fn find_weakened(patch: &str) -> Vec<String> {
    let mut by_path: BTreeMap<String, TestChanges> = BTreeMap::new();
    let mut path: Option<String> = None;
    let mut in_hunk = false;
    for line in patch.lines() {
        if let Some(names) = line.strip_prefix("diff --git ") {
            path = old_name(names).filter(|path| is_test(path));
            in_hunk = false;
            continue;
        }
        let Some(path) = &path else { continue };
        in_hunk |= line.starts_with("@@");
        let changes = by_path.entry(path.clone()).or_default();
        match line.as_bytes().first() {
            _ if !in_hunk => changes.is_deleted |= line.starts_with("deleted file mode"),
            Some(b'-') => changes.removed += usize::from(checks(&line[1..])),
            Some(b'+') => {
                changes.added += usize::from(checks(&line[1..]));
                changes.skips += usize::from(skips(&line[1..]));
            }
            _ => {}
        }
    }
    by_path.into_iter().filter_map(|(path, changes)| render_changes(&path, &changes)).collect()
}

fn render_changes(path: &str, changes: &TestChanges) -> Option<String> {
    if changes.is_deleted {
        return Some(format!("{path} was deleted"));
    }
    let fewer = changes.removed.saturating_sub(changes.added);
    match (fewer, changes.skips) {
        (0, 0) => None,
        (0, _) => Some(format!("{path}: tests are skipped")),
        (fewer, 0) => Some(format!("{path}: {fewer} checks fewer than before")),
        (fewer, _) => Some(format!("{path}: {fewer} checks fewer than before, tests are skipped")),
    }
}

/// The name before the change, of `a/NAME b/NAME`. Both have one length where the file kept its name; renames are shown
/// as a deletion and a new file.
fn old_name(names: &str) -> Option<String> {
    let names = names.trim_matches('"');
    let name = names.strip_prefix("a/")?;
    let half = name.len().checked_sub(" b/".len())? / 2;
    name.get(..half).map(str::to_owned)
}

const FOLDERS: [&str; 7] = ["test", "tests", "spec", "specs", "__tests__", "testing", "e2e"];

/// Reports whether a file holds tests, by the customs of most languages. Makefiles count: they name the tests to run.
fn is_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let lower = name.to_ascii_lowercase();
    let stem = lower.split('.').next().unwrap_or(&lower);
    let folders = path.split('/').rev().skip(1);
    folders.into_iter().any(|folder| FOLDERS.contains(&folder.to_ascii_lowercase().as_str()))
        || [".test.", ".spec."].iter().any(|mark| lower.contains(mark))
        || stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem.ends_with("_spec")
        || name
            .split('.')
            .next()
            .is_some_and(|stem| stem.ends_with("Test") || stem.ends_with("Tests"))
        || lower == "makefile"
}

/// Reports whether a line checks something, declares a test, or is a test target.
fn checks(line: &str) -> bool {
    let line = line.trim_start();
    ["assert", "expect(", "expect!", "should.", "require.", "t.Error", "t.Fatal", "#[test]"]
        .iter()
        .any(|mark| line.contains(mark))
        || ["def test", "it(", "test(", "@Test", "func Test", "test-", "test:"]
            .iter()
            .any(|mark| line.starts_with(mark))
}

fn skips(line: &str) -> bool {
    [
        "#[ignore",
        ".skip(",
        "xit(",
        "xdescribe(",
        "mark.skip",
        "mark.xfail",
        "unittest.skip",
        "t.Skip(",
        "@Ignore",
        "@Disabled",
    ]
    .iter()
    .any(|mark| line.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(path: &str, body: &str) -> String {
        format!(
            "diff --git a/{path} b/{path}\nindex 1..2 100644\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n{body}"
        )
    }

    #[test]
    fn a_deleted_test_is_named() {
        let text = "diff --git a/tests/a.rs b/tests/a.rs\ndeleted file mode 100644\n--- a/tests/a.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-assert!(x);\n";
        assert_eq!(find_weakened(text), ["tests/a.rs was deleted"]);
    }

    #[test]
    fn fewer_checks_and_skips_are_named() {
        let fewer = patch("src/a_test.go", "-  t.Fatal(1)\n-  t.Fatal(2)\n+  t.Fatal(3)\n");
        assert_eq!(find_weakened(&fewer), ["src/a_test.go: 1 checks fewer than before"]);
        let skipped = patch("web/a.spec.ts", "+it.skip('x', () => {})\n");
        assert_eq!(find_weakened(&skipped), ["web/a.spec.ts: tests are skipped"]);
        let target = patch("Makefile", "-test-unit:\n+all:\n");
        assert_eq!(find_weakened(&target), ["Makefile: 1 checks fewer than before"]);
    }

    #[test]
    fn better_tests_and_other_files_are_not() {
        assert!(find_weakened(&patch("tests/a.py", "+    assert x\n")).is_empty());
        assert!(find_weakened(&patch("src/main.rs", "-assert!(x);\n")).is_empty());
        assert!(find_weakened(&patch("contest/latest.py", "-assert x\n")).is_empty());
        assert!(find_weakened("garbage\ndiff --git x\n").is_empty());
    }
}
