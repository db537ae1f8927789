//! Summary lines of test runners.

use super::TestCount;

/// Counts by the kind of line. Some runners print each test and a total; the total counts then.
#[derive(Debug, Default)]
pub(super) struct LineCounts {
    summaries: TestCount,
    /// Lines of the Test Anything Protocol.
    tap: TestCount,
    /// Totals in comments of that protocol, or of Node's own reporter.
    node: TestCount,
    /// Maven's lines for each class, and for all.
    class: TestCount,
    all_classes: TestCount,
    go_tests: TestCount,
    go_packages: TestCount,
    /// A total of unittest, whose next line has the failures.
    unittest: Option<u64>,
}

impl LineCounts {
    pub(super) fn read(&mut self, line: &str) {
        let line = line.trim_end();
        if let Some(count) = read_summary(line) {
            self.summaries = self.summaries.with(count);
        } else if let Some(count) = read_maven(line) {
            let kind =
                if line.contains("Time elapsed") { &mut self.class } else { &mut self.all_classes };
            *kind = kind.with(count);
        } else if let Some(count) = read_go_test(line.trim_start()) {
            self.go_tests = self.go_tests.with(count);
        } else if is_go_package(line) {
            self.go_packages.groups += 1;
        } else if let Some(count) = read_node(line) {
            self.node = self.node.with(count);
        } else if let Some(count) = read_tap(line) {
            self.tap = self.tap.with(count);
        } else {
            self.read_unittest(line);
        }
    }

    fn read_unittest(&mut self, line: &str) {
        let ran = line.strip_prefix("Ran ").and_then(|rest| rest.split_once(" test"));
        if let Some(count) = ran.and_then(|(number, _)| number.parse().ok()) {
            self.unittest = Some(count);
            return;
        }
        if !line.starts_with("OK") && !line.starts_with("FAILED") {
            return;
        }
        let Some(total) = self.unittest.take() else { return };
        let number = |name: &str| value_after(line, &format!("{name}="));
        let (failed, skipped) = (number("failures") + number("errors"), number("skipped"));
        self.summaries = self.summaries.with(of_total(total, failed, skipped));
    }

    pub(super) fn total(self) -> TestCount {
        let first = |one: TestCount, other: TestCount| if one.is_empty() { other } else { one };
        // A total of unittest without a last line: its process ended early.
        let early = TestCount { passed: self.unittest.unwrap_or(0), ..TestCount::default() };
        [
            self.summaries,
            first(self.node, self.tap),
            first(self.class, self.all_classes),
            first(self.go_tests, self.go_packages),
            early,
        ]
        .into_iter()
        .fold(TestCount::default(), TestCount::with)
    }
}

/// A line that says how many tests passed, failed or were skipped.
fn read_summary(line: &str) -> Option<TestCount> {
    let text = line.trim_matches(|c: char| c == '=' || c.is_whitespace());
    if let Some(count) = read_totals(text) {
        return Some(count);
    }
    // The words before a number's name differ; those that come first tell the runner.
    let is_summary = text.starts_with("test result:")
        || (text.starts_with("Summary [") && text.contains("tests run:"))
        || text.starts_with("Tests:")
        || (text.starts_with("Tests ") && text.ends_with(')'))
        || text.starts_with("test cases:")
        || text.starts_with("ok | ")
        || text.starts_with("FAILED | ")
        || is_pytest(text)
        || is_mocha(text);
    if !is_summary {
        return None;
    }
    let number =
        |names: &[&str]| -> u64 { names.iter().map(|name| value_before(text, name)).sum() };
    Some(TestCount {
        passed: number(&["passed", "passing", "xpassed"]),
        failed: number(&["failed", "failing", "error", "errors"]),
        skipped: number(&["ignored", "skipped", "pending", "xfailed", "todo"]),
        groups: 0,
    })
}

fn is_pytest(text: &str) -> bool {
    let has_number = text.starts_with(|c: char| c.is_ascii_digit());
    let counted = [" passed", " failed", " error", " skipped", " xfailed"];
    has_number && counted.iter().any(|word| text.contains(word)) && text.contains(" in ")
}

fn is_mocha(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let is_number = words.next().is_some_and(|word| word.parse::<u64>().is_ok());
    let is_name = matches!(words.next(), Some("passing" | "failing" | "pending"));
    is_number && is_name && words.next().is_none_or(|rest| rest.starts_with('('))
}

/// Lines that give a total and what differs from it.
fn read_totals(text: &str) -> Option<TestCount> {
    let starts_with_number = text.starts_with(|c: char| c.is_ascii_digit());
    if text.contains("tests passed,") && text.contains("tests failed out of ") {
        return Some(of_total(value_after(text, "out of "), value_before(text, "tests failed"), 0));
    }
    if text.contains(" tests completed") && starts_with_number {
        let (failed, skipped) = (value_before(text, "failed"), value_before(text, "skipped"));
        return Some(of_total(value_before(text, "tests completed"), failed, skipped));
    }
    if let Some(rest) = text.strip_prefix("OK (").filter(|rest| rest.contains(" test")) {
        return Some(of_total(value_before(rest, "test"), 0, 0));
    }
    if let Some(rest) = text.strip_prefix("[  PASSED  ] ") {
        return Some(of_total(value_before(rest, "test"), 0, 0));
    }
    if let Some(rest) =
        text.strip_prefix("[  FAILED  ] ").filter(|rest| rest.contains("listed below"))
    {
        return Some(TestCount { failed: value_before(rest, "test"), ..TestCount::default() });
    }
    if text.starts_with("All tests passed (") {
        return Some(of_total(value_before(text, "test case"), 0, 0));
    }
    if text.starts_with("Files=") && text.contains("Tests=") {
        return Some(of_total(value_after(text, "Tests="), 0, 0));
    }
    if text.contains(" example") && text.contains(" failure") && starts_with_number {
        let (failed, pending) = (value_before(text, "failure"), value_before(text, "pending"));
        return Some(of_total(value_before(text, "example"), failed, pending));
    }
    if text.contains(" runs, ") && text.contains(" assertions") && starts_with_number {
        let failed = value_before(text, "failures") + value_before(text, "errors");
        return Some(of_total(value_before(text, "runs"), failed, value_before(text, "skips")));
    }
    if text.contains("Failed:") && text.contains("Passed:") && text.contains("Total:") {
        let number = |name: &str| value_after(text, name);
        let (passed, failed) = (number("Passed:"), number("Failed:"));
        return Some(TestCount { passed, failed, skipped: number("Skipped:"), groups: 0 });
    }
    None
}

fn read_maven(line: &str) -> Option<TestCount> {
    if !line.contains("Tests run:") || !line.contains("Failures:") {
        return None;
    }
    let number = |name: &str| value_after(line, name);
    let failed = number("Failures:") + number("Errors:");
    Some(of_total(number("Tests run:"), failed, number("Skipped:")))
}

fn read_go_test(line: &str) -> Option<TestCount> {
    let one = TestCount::default();
    match line.strip_prefix("--- ")?.split_once(": ")?.0 {
        "PASS" => Some(TestCount { passed: 1, ..one }),
        "FAIL" => Some(TestCount { failed: 1, ..one }),
        "SKIP" => Some(TestCount { skipped: 1, ..one }),
        _ => None,
    }
}

fn is_go_package(line: &str) -> bool {
    line.starts_with("ok  \t") && !line.ends_with("[no tests to run]")
}

fn read_node(line: &str) -> Option<TestCount> {
    let rest = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ "))?;
    let (name, number) = rest.split_once(' ')?;
    let number = u64::from(number.trim().parse::<u32>().ok()?);
    let zero = TestCount::default();
    match name {
        "pass" => Some(TestCount { passed: number, ..zero }),
        "fail" => Some(TestCount { failed: number, ..zero }),
        "skipped" | "todo" => Some(TestCount { skipped: number, ..zero }),
        "tests" | "suites" | "cancelled" => Some(zero),
        _ => None,
    }
}

fn read_tap(line: &str) -> Option<TestCount> {
    let zero = TestCount::default();
    let (rest, failed) = match line.strip_prefix("not ok ") {
        Some(rest) => (rest, true),
        None => (line.strip_prefix("ok ")?, false),
    };
    rest.split_whitespace().next()?.parse::<u64>().ok()?;
    let directive = rest.split_once("# ").map(|(_, text)| text.to_ascii_lowercase());
    let is_skipped =
        directive.is_some_and(|text| text.starts_with("skip") || text.starts_with("todo"));
    Some(match (is_skipped, failed) {
        (true, _) => TestCount { skipped: 1, ..zero },
        (false, true) => TestCount { failed: 1, ..zero },
        (false, false) => TestCount { passed: 1, ..zero },
    })
}

fn of_total(total: u64, failed: u64, skipped: u64) -> TestCount {
    let passed = total.saturating_sub(failed).saturating_sub(skipped);
    TestCount { passed, failed, skipped, groups: 0 }
}

/// The number in front of a word, as in `12 passed`; zero if there is none.
fn value_before(text: &str, word: &str) -> u64 {
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let before = rest[..at].trim_end();
        let digits = before.len() - before.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        // `passed` is also the end of `xpassed`.
        let is_whole = !rest[..at].ends_with(|c: char| c.is_alphanumeric());
        let ends = word.contains("test")
            || matches!(word, "example" | "failure")
            || !rest[at + word.len()..].starts_with(|c: char| c.is_alphanumeric());
        if digits > 0 && is_whole && ends {
            return parse_count(&before[before.len() - digits..]);
        }
        rest = &rest[at + word.len()..];
    }
    0
}

/// The number behind a text, as in `Failures: 2`; zero if there is none.
fn value_after(text: &str, before: &str) -> u64 {
    let Some((_, rest)) = text.split_once(before) else { return 0 };
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    parse_count(&rest[..end])
}

/// A number of tests. What a check prints may be any number; one that no suite has is none, so that no sum overflows.
fn parse_count(digits: &str) -> u64 {
    digits.parse::<u32>().map_or(0, u64::from)
}

/// Removes the control sequences of terminals.
pub(super) fn strip_escapes(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            plain.push(c);
            continue;
        }
        if chars.next() == Some('[') {
            for c in chars.by_ref() {
                if c.is_ascii_alphabetic() {
                    break;
                }
            }
        }
    }
    plain
}
