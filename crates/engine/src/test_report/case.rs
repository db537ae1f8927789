//! Test cases of a JUnit-like file, one after the other and without entities, links or recursion: the file is hostile.

use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::TestOutcome;

/// Characters of a name that are kept as they are; of a longer one the rest is a digest.
const NAME_CHARS: usize = 300;

/// Digits of an address in memory from which on it is one.
const ADDRESS_DIGITS: usize = 6;

/// Classes that say nothing about a test. Node's runner writes "test" for each.
const NO_CLASSES: [&str; 2] = ["", "test"];

pub(super) struct TestCase {
    /// Class or suites, and name; empty if it has none.
    pub(super) name: String,
    pub(super) outcome: TestOutcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JunitFile {
    /// Not a report, by its first element.
    Other,
    Whole,
    /// A report that breaks off or is not well formed.
    Broken,
}

/// Reads the cases of a file as far as it is well formed.
pub(super) fn read_cases(bytes: &[u8], mut each: impl FnMut(TestCase)) -> JunitFile {
    let mut reader = Reader::from_reader(bytes);
    let mut buffer = Vec::new();
    let (mut depth, mut has_root) = (0_u64, false);
    let mut suites: Vec<String> = Vec::new();
    let mut open: Option<TestCase> = None;
    loop {
        buffer.clear();
        let Ok(event) = reader.read_event_into(&mut buffer) else { break };
        match event {
            Event::Start(start) => {
                if !has_root && !is_root(&start) {
                    return JunitFile::Other;
                }
                (depth, has_root) = (depth + 1, true);
                match start.local_name().as_ref() {
                    b"testsuite" => suites.push(attribute(&start, b"name")),
                    b"testcase" => open = Some(case_of(&start, &suites)),
                    other => note(&mut open, other),
                }
            }
            Event::Empty(start) => {
                if !has_root && !is_root(&start) {
                    return JunitFile::Other;
                }
                has_root = true;
                match start.local_name().as_ref() {
                    b"testcase" => each(case_of(&start, &suites)),
                    other => note(&mut open, other),
                }
            }
            Event::End(end) => {
                depth = depth.saturating_sub(1);
                match end.local_name().as_ref() {
                    b"testsuite" => drop(suites.pop()),
                    b"testcase" => open.take().into_iter().for_each(&mut each),
                    _ => {}
                }
            }
            Event::Eof if has_root && depth == 0 => return JunitFile::Whole,
            Event::Eof => break,
            _ => {}
        }
    }
    if has_root { JunitFile::Broken } else { JunitFile::Other }
}

fn is_root(start: &BytesStart<'_>) -> bool {
    matches!(start.local_name().as_ref(), b"testsuites" | b"testsuite")
}

/// Notes what an element in a test case says about its outcome. A case may have several failures.
fn note(open: &mut Option<TestCase>, element: &[u8]) {
    let Some(case) = open else { return };
    match element {
        b"failure" | b"error" => case.outcome = TestOutcome::Failed,
        b"skipped" | b"disabled" if case.outcome == TestOutcome::Passed => {
            case.outcome = TestOutcome::Skipped;
        }
        _ => {}
    }
}

fn case_of(start: &BytesStart<'_>, suites: &[String]) -> TestCase {
    let [name, class] = [b"name".as_slice(), b"classname"].map(|key| attribute(start, key));
    let class = if NO_CLASSES.contains(&class.as_str()) { suite_path(suites) } else { class };
    // GoogleTest and CTest name tests that they do not run.
    let [status, result] = [b"status".as_slice(), b"result"].map(|key| attribute(start, key));
    let words = ["notrun", "disabled", "skipped", "suppressed", "ignored"];
    let is_off = [status, result].iter().any(|it| words.contains(&it.to_lowercase().as_str()));
    let outcome = if is_off { TestOutcome::Skipped } else { TestOutcome::Passed };
    let name = match (name.as_str(), class.as_str()) {
        ("", _) => String::new(),
        (name, "") => test_name(name),
        // CTest and jest-junit.
        (name, class) if name == class => test_name(name),
        (name, class) => test_name(&format!("{class}::{name}")),
    };
    TestCase { name, outcome }
}

/// Names of the open suites, without those that have none.
fn suite_path(suites: &[String]) -> String {
    let named: Vec<&str> =
        suites.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    named.join("::")
}

/// Value of an attribute with the usual entities; empty if there is none. Names are not compared with one another, which
/// would take long for many of them.
fn attribute(start: &BytesStart<'_>, key: &[u8]) -> String {
    let mut attributes = start.attributes();
    attributes.with_checks(false);
    let own = attributes.flatten().find(|it| it.key.local_name().as_ref() == key);
    own.map_or_else(String::new, |it| match it.unescape_value() {
        Ok(value) => value.into_owned(),
        Err(_) => String::from_utf8_lossy(&it.value).into_owned(),
    })
}

/// The name as it is compared: on one line, without addresses in memory, which differ from run to run, and not too long.
fn test_name(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut name = String::with_capacity(plain.len());
    let mut rest = plain.as_str();
    while let Some(at) = rest.find("0x") {
        let digits = &rest[at + 2..];
        let count = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
        name.push_str(&rest[..at + 2]);
        let is_address = count >= ADDRESS_DIGITS;
        name.push_str(if is_address { "…" } else { &digits[..count] });
        rest = &digits[count..];
    }
    name.push_str(rest);
    if name.chars().count() <= NAME_CHARS {
        return name;
    }
    let start: String = name.chars().take(NAME_CHARS).collect();
    format!("{start}… {}", model::digest::short_sha256(name.as_bytes(), 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(file: &str, expected: &[&str]) {
        let mut found = Vec::new();
        let kind = read_cases(file.as_bytes(), |case| {
            found.push(format!("{} {:?}", case.name, case.outcome));
        });
        assert_eq!(
            (kind, found),
            (JunitFile::Whole, expected.iter().map(|it| (*it).to_owned()).collect()),
            "{file}"
        );
    }

    /// Output of cargo-nextest 0.9, which leaves out ignored tests; one test was run again.
    #[test]
    fn nextest_is_read() {
        check(
            include_str!("samples/nextest.xml"),
            &[
                "sample::tests::deep::is_flaky Passed",
                "sample::tests::deep::passes Passed",
                "sample::tests::deep::fails Failed",
                "sample::it::passes Passed",
            ],
        );
    }

    /// Output of pytest 9.
    #[test]
    fn pytest_is_read() {
        check(
            include_str!("samples/pytest.xml"),
            &[
                "test_a.TestB::test_x[1] Failed",
                "test_a.TestB::test_x[a<b] Passed",
                "test_a.TestB::test_x[x\\x01y] Passed",
                "test_a::test_off Skipped",
                "test_a::test_known Skipped",
                "test_a::test_known_passes Passed",
                "test_a::test_setup Failed",
                "test_a::test_teardown Failed",
                "test_a.C::test_sub Failed",
            ],
        );
    }

    /// Output of Maven's surefire 3.2 with JUnit 5.
    #[test]
    fn surefire_is_read() {
        check(
            include_str!("samples/surefire.xml"),
            &[
                "p.ATest::aborted Skipped",
                "p.ATest::passes Passed",
                "p.ATest::off Skipped",
                "p.ATest::each(String)[1] Passed",
                "p.ATest::each(String)[2] Passed",
                "p.ATest::fails Failed",
                "p.ATest$Inner::passes Passed",
            ],
        );
    }

    /// Output of GoogleTest 1.12.
    #[test]
    fn gtest_is_read() {
        check(
            include_str!("samples/gtest.xml"),
            &[
                "Math::Adds Passed",
                "Math::Fails Failed",
                "Math::DISABLED_Old Skipped",
                "Math::Later Skipped",
                "All/Each::Works/0 Passed",
                "All/Each::Works/1 Passed",
            ],
        );
    }

    /// Output of CTest 3.25.
    #[test]
    fn ctest_is_read() {
        check(
            include_str!("samples/ctest.xml"),
            &["passes Passed", "fails Failed", "off Skipped", "skips Skipped", "gone Skipped"],
        );
    }

    /// Output of go-junit-report 2.1.
    #[test]
    fn go_junit_report_is_read() {
        check(
            include_str!("samples/go-junit-report.xml"),
            &[
                "example.com/sample::TestPasses Passed",
                "example.com/sample::TestEach Passed",
                "example.com/sample::TestEach/one_two Passed",
                "example.com/sample::TestEach/a/b Passed",
                "example.com/sample::TestOff Skipped",
                "example.com/sample::TestFails Failed",
            ],
        );
    }

    /// Output of Node 20, whose classes are all "test", and whose tests may have the same name.
    #[test]
    fn node_is_read() {
        check(
            include_str!("samples/node.xml"),
            &[
                "A::works Passed",
                "A::later Skipped",
                "A::off Skipped",
                "B::deep::works Failed",
                "alone Passed",
                "alone Passed",
            ],
        );
    }

    #[test]
    fn what_other_runners_write_is_read() {
        // A test that failed and passed when it was run again; tests without a class.
        check(
            "<testsuite name=\"com.A\"><testcase name=\"flaky\" classname=\"com.A\"><flakyFailure message=\"x\"/></testcase></testsuite>",
            &["com.A::flaky Passed"],
        );
        check(
            "<testsuites><testsuite name=\"adds\"><testcase classname=\"adds one\" name=\"adds one\"><error/></testcase>\
             <testsuite><testsuite name=\"deep\"><testcase name=\"by suite\"/></testsuite></testsuite></testsuite></testsuites>",
            &["adds one Failed", "adds::deep::by suite Passed"],
        );
    }

    #[test]
    fn names_do_not_differ_from_run_to_run() {
        assert_eq!(test_name("t[<a at 0x7f00deadbeef>, 0x10]"), "t[<a at 0x…>, 0x10]");
        assert_eq!(test_name("a\nb\u{1b}[1m"), "a b [1m");
        let [one, other] = ["a", "b"].map(|end| test_name(&("x".repeat(5000) + end)));
        assert!(one != other && one.chars().count() < 400, "{one}");
    }

    #[test]
    fn hostile_files_are_read_in_one_pass() {
        let bomb = "<!DOCTYPE t [<!ENTITY a \"xxxxxxxxxx\"><!ENTITY b \"&a;&a;&a;&a;\">]><testsuite><testcase name=\"&b;\"/></testsuite>";
        let mut names = Vec::new();
        read_cases(bomb.as_bytes(), |case| names.push(case.name));
        assert_eq!(names, ["&b;"]);
        let deep = "<testsuite>".repeat(500_000);
        assert_eq!(read_cases(deep.as_bytes(), |_| {}), JunitFile::Broken);
        let attributes: String = (0..200_000).map(|n| format!(" a{n}=''")).collect();
        let wide = format!(
            "<testsuite><testcase{attributes} name='{}'/></testsuite>",
            "x".repeat(4 << 20)
        );
        let mut count = 0;
        assert_eq!(read_cases(wide.as_bytes(), |case| count += case.name.len()), JunitFile::Whole);
        assert!((1..2000).contains(&count), "{count}");
    }

    #[test]
    fn a_file_may_break_off_anywhere() {
        let whole = "<?xml version='1.0'?><!-- x --><testsuites><testsuite name='a'><testcase name='&#x41;'><skipped/></testcase>\
                     <testcase name='\u{e4}'><![CDATA[<failure>]]></testcase></testsuite></testsuites>";
        for end in 0..whole.len() {
            let kind = read_cases(&whole.as_bytes()[..end], |_| {});
            assert_ne!(kind, JunitFile::Whole, "{end}");
        }
        check(whole, &["a::A Skipped", "a::\u{e4} Passed"]);
    }
}
