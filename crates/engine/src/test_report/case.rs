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

/// The folder of the repository in a box.
const WORKSPACE: &str = "/workspace/";

/// Suites in one another whose names count. Nobody nests them so deep, and a hostile file must not make each of its tests
/// carry thousands of names.
const SUITES_DEEP: usize = 64;

pub(super) struct TestCase {
    /// Class, or file and suites, and name; empty if it has none.
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
    let mut suites = Suites::default();
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
                    b"testsuite" => suites.open(&start),
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
                    b"testsuite" => suites.close(),
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

/// The open suites. What is nested deeper than anybody nests suites has the name of the last one that counts.
#[derive(Default)]
struct Suites {
    open: Vec<Suite>,
    beyond: u64,
}

/// An open suite.
struct Suite {
    /// Names of the suites around it and its own, without empty ones; as short as a name of a test.
    path: String,
    /// File of its tests below the workspace, or that of the suite around it; may be empty.
    file: String,
}

impl Suites {
    fn open(&mut self, start: &BytesStart<'_>) {
        if self.open.len() >= SUITES_DEEP {
            self.beyond += 1;
            return;
        }
        let (name, file) = (attribute(start, b"name"), file_of(start));
        let (path, outer) = (self.path(), self.file());
        let path = match (path, name.as_str()) {
            (path, "") => path.to_owned(),
            ("", name) => test_name(name),
            (path, name) => test_name(&format!("{path}::{name}")),
        };
        let file = if file.is_empty() { outer.to_owned() } else { file };
        self.open.push(Suite { path, file });
    }

    fn close(&mut self) {
        match self.beyond {
            0 => drop(self.open.pop()),
            _ => self.beyond -= 1,
        }
    }

    fn path(&self) -> &str {
        self.open.last().map_or("", |suite| &suite.path)
    }

    fn file(&self) -> &str {
        self.open.last().map_or("", |suite| &suite.file)
    }
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

fn case_of(start: &BytesStart<'_>, suites: &Suites) -> TestCase {
    let [name, class] = [b"name".as_slice(), b"classname"].map(|key| attribute(start, key));
    // GoogleTest and CTest name tests that they do not run.
    let [status, result] = [b"status".as_slice(), b"result"].map(|key| attribute(start, key));
    let words = ["notrun", "disabled", "skipped", "suppressed", "ignored"];
    let is_off = [status, result].iter().any(|it| words.contains(&it.to_lowercase().as_str()));
    let outcome = if is_off { TestOutcome::Skipped } else { TestOutcome::Passed };
    let (name, class) = (name.trim(), class.trim());
    if name.is_empty() {
        return TestCase { name: String::new(), outcome };
    }
    // CTest, jest-junit and mocha-junit-reporter repeat the name, or the end of it.
    let is_repeated = name.strip_suffix(class).is_some_and(|rest| !rest.ends_with(is_word));
    let is_without = NO_CLASSES.contains(&class);
    let own = file_of(start);
    let file = if own.is_empty() { suites.file() } else { own.as_str() };
    let parts = match (is_without, is_repeated) {
        (true, _) => vec![file, suites.path(), name],
        (false, true) => vec![file, name],
        (false, false) => vec![class, name],
    };
    let named: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    TestCase { name: test_name(&named.join("::")), outcome }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The file that an element names, below the workspace. One elsewhere may have another name in the next run.
fn file_of(start: &BytesStart<'_>) -> String {
    let named = attribute(start, b"file");
    let inner = named.strip_prefix(WORKSPACE).unwrap_or(&named);
    let inner = inner.trim_start_matches("./");
    if inner.starts_with('/') { String::new() } else { test_name(inner) }
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
        let expected: Vec<String> = expected.iter().map(|it| (*it).to_owned()).collect();
        assert_eq!(names_in(file), expected, "{file}");
    }

    /// Output of cargo-nextest 0.9, which leaves out ignored tests; one test was run again.
    #[test]
    fn nextest_is_read() {
        check(
            include_str!("samples/nextest.xml"),
            &[
                "sample::tests::deep::passes Passed",
                "sample::again::is_flaky Passed",
                "sample::tests::fails Failed",
                "sample::tests::passes Passed",
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
                "sub.test_b::test_passes Passed",
                "test_a::test_passes Passed",
                "test_a::test_fails Failed",
                "test_a::test_off Skipped",
                "test_a::test_known Skipped",
                "test_a::test_each[1] Passed",
                "test_a::test_each[a<b] Passed",
                "test_a::test_each[x y] Passed",
                "test_a::test_each[a.b] Passed",
                "test_a::test_each[x4] Passed",
                "test_a.TestA::test_same Passed",
                "test_a.TestA.TestInner::test_same Passed",
                "test_a.TestB::test_same Failed",
                "test_a.TestUnit::test_subs Failed",
                "test_a::test_setup Failed",
                "test_a::test_teardown Failed",
                "test_a::test_known_passes Passed",
                "test_a::test_control[x\\x01y] Passed",
            ],
        );
    }

    /// Output of unittest-xml-reporting 4, whose suites have the time in their names.
    #[test]
    fn unittest_is_read() {
        check(include_str!("samples/xmlrunner.xml"), &["test_a.TestUnit::test_subs (n=1) Failed"]);
    }

    /// Output of Maven's surefire 3.5 with JUnit 5, which puts tests of nested classes in suites of others.
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
                "p.ATest::made()[1] Passed",
                "p.ATest::made()[2] Passed",
                "p.ATest::again()[1] Passed",
                "p.ATest::again()[2] Passed",
                "p.ATest::fails Failed",
                "p.ATest::named(int)[1] Passed",
                "p.ATest::named(int)[2] Passed",
                "p.ATest::shown Passed",
                "p.ATest$Off::passes Skipped",
            ],
        );
        check(
            include_str!("samples/surefire-nested.xml"),
            &["p.ATest$Inner::passes Passed", "p.ATest$Inner$Deeper::passes Passed"],
        );
        // A class of the same name in another package, with JUnit 4.
        check(
            include_str!("samples/surefire-vintage.xml"),
            &["q.ATest::passes Passed", "q.ATest::off Skipped"],
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
                "Other::Adds Passed",
                "Typed/0::Works Passed",
                "Typed/1::Works Passed",
                "All/Each::Works/0 Passed",
                "All/Each::Works/1 Passed",
                "Named/Each::Works/n7 Passed",
                "Named/Each::Works/n8 Passed",
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

    const GO: [&str; 18] = [
        "example.com/sample/panics::TestFirst Passed",
        "example.com/sample/panics::TestPanics Failed",
        "example.com/sample/shelf::TestPasses Passed",
        "example.com/sample::Example Passed",
        "example.com/sample::FuzzSum Passed",
        "example.com/sample::FuzzSum/seed#0 Passed",
        "example.com/sample::TestEach Failed",
        "example.com/sample::TestEach/#00 Passed",
        "example.com/sample::TestEach/#01 Passed",
        "example.com/sample::TestEach/a/b Passed",
        "example.com/sample::TestEach/deep Failed",
        "example.com/sample::TestEach/deep/fails Failed",
        "example.com/sample::TestEach/off Skipped",
        "example.com/sample::TestEach/one_two Passed",
        "example.com/sample::TestFails Failed",
        "example.com/sample::TestOff Skipped",
        "example.com/sample::TestPasses Passed",
        "",
    ];

    /// Output of gotestsum 1.13 and go-junit-report 2.1. Each puts the tests in an order of its own, and has its own word for
    /// a package that cannot be built.
    #[test]
    fn reports_of_go_are_read() {
        let reports = [
            (include_str!("samples/gotestsum.xml"), "example.com/sample/broken::TestMain Failed"),
            (
                include_str!("samples/go-junit-report.xml"),
                "example.com/sample/broken::[build failed] Failed",
            ),
        ];
        for (report, broken) in reports {
            let mut expected = GO.to_vec();
            expected[GO.len() - 1] = broken;
            expected.sort_unstable();
            let mut found = names_in(report);
            found.sort_unstable();
            assert_eq!(found, expected);
        }
    }

    fn names_in(file: &str) -> Vec<String> {
        let mut found = Vec::new();
        let kind =
            read_cases(file.as_bytes(), |it| found.push(format!("{} {:?}", it.name, it.outcome)));
        assert_eq!(kind, JunitFile::Whole, "{file}");
        found
    }

    /// Output of Node 20, whose classes are all "test", and whose tests may have the same name.
    #[test]
    fn node_is_read() {
        check(
            include_str!("samples/node.xml"),
            &[
                "passes Passed",
                "fails Failed",
                "off Skipped",
                "later Skipped",
                "adds::same Passed",
                "adds::deep::same Passed",
                "subs::same Passed",
                "off group Skipped",
                "passes Passed",
                "adds::same Passed",
            ],
        );
    }

    /// Output of jest 30 with jest-junit 16. It has no word for `test.todo`, the test "later"; the comparison of the sources
    /// knows that such a test does not run.
    #[test]
    fn jest_is_read() {
        check(
            include_str!("samples/jest.xml"),
            &[
                "passes Passed",
                "fails Failed",
                "off Skipped",
                "later Passed",
                "each 1 is one Passed",
                "each 2 is two Passed",
                "adds same Passed",
                "adds deep same Passed",
                "subs same Passed",
                "off group same Skipped",
                "passes Passed",
                "adds same Passed",
            ],
        );
    }

    /// The same with `addFileAttribute`: tests of two files are two.
    #[test]
    fn jest_with_files_is_read() {
        let found = names_in(include_str!("samples/jest-file.xml"));
        let has = |name: &str| found.iter().filter(|it| *it == name).count();
        for name in ["a.test.js::adds same Passed", "sub/b.test.js::adds same Passed"] {
            assert_eq!(has(name), 1, "{found:?}");
        }
    }

    /// Output of vitest 4.
    #[test]
    fn vitest_is_read() {
        check(
            include_str!("samples/vitest.xml"),
            &[
                "a.test.js::passes Passed",
                "a.test.js::fails Failed",
                "a.test.js::off Skipped",
                "a.test.js::later Skipped",
                "a.test.js::each 1 is one Passed",
                "a.test.js::each 2 is two Passed",
                "a.test.js::adds > same Passed",
                "a.test.js::adds > deep > same Passed",
                "a.test.js::subs > same Passed",
                "a.test.js::off group > same Skipped",
                "sub/b.test.js::passes Passed",
                "sub/b.test.js::adds > same Passed",
            ],
        );
    }

    /// Output of mocha 10 with mocha-junit-reporter 2, which leaves out tests that do not run.
    #[test]
    fn mocha_is_read() {
        check(
            include_str!("samples/mocha.xml"),
            &[
                "passes Passed",
                "fails Failed",
                "passes Passed",
                "mo/a.js::adds same Passed",
                "mo/a.js::adds deep same Passed",
                "mo/a.js::subs same Passed",
                "mo/b.js::adds same Passed",
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
        // Each test would carry the names of all its suites.
        let names = |name: &str| format!("<testsuite name='{name}'>").repeat(10_000);
        let cases = "<testcase name='a'/>".repeat(10_000);
        for name in ["", &"x".repeat(50)] {
            let file = format!("{}{cases}", names(name));
            let mut most = 0;
            read_cases(file.as_bytes(), |case| most = case.name.len().max(most));
            assert!((1..2000).contains(&most), "{most}");
        }
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
