//! JUnit's XML, which most test runners can write.

use quick_xml::events::Event;
use quick_xml::reader::Reader;

use super::TestCount;

/// Counts the test cases of a JUnit file; `None` if it is no such file.
pub fn parse_junit(bytes: &[u8]) -> Option<TestCount> {
    let mut reader = Reader::from_reader(bytes);
    let mut buffer = Vec::new();
    let (mut cases, mut failed, mut skipped) = (0, 0, 0);
    let (mut depth, mut has_root) = (0_u64, false);
    // A case may have several failures; it is one test.
    let mut state = Case::Outside;
    loop {
        let event = reader.read_event_into(&mut buffer).ok()?;
        let (name, is_open) = match &event {
            Event::Start(start) => (start.local_name().as_ref().to_vec(), true),
            Event::Empty(start) => (start.local_name().as_ref().to_vec(), false),
            Event::End(end) => {
                depth = depth.saturating_sub(1);
                if end.local_name().as_ref() == b"testcase" {
                    failed += u64::from(state == Case::Failed);
                    skipped += u64::from(state == Case::Skipped);
                    state = Case::Outside;
                }
                continue;
            }
            Event::Eof => break,
            _ => continue,
        };
        if depth == 0 && !matches!(name.as_slice(), b"testsuites" | b"testsuite") {
            return None;
        }
        has_root = true;
        depth += u64::from(is_open);
        match name.as_slice() {
            b"testcase" => {
                cases += 1;
                state = if is_open { Case::Passed } else { Case::Outside };
            }
            b"failure" | b"error" if state != Case::Outside => state = Case::Failed,
            b"skipped" if state == Case::Passed => state = Case::Skipped,
            _ => {}
        }
        buffer.clear();
    }
    let passed = u64::saturating_sub(cases, failed + skipped);
    has_root.then_some(TestCount { passed, failed, skipped, groups: 0 })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Outside,
    Passed,
    Failed,
    Skipped,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_counted_by_their_end() {
        let text = b"<?xml version='1.0'?><testsuites><testsuite name='a' tests='9'><testcase name='x'/>\
            <testcase name='y'><failure/><failure/></testcase><testcase name='z'><skipped/></testcase>\
            <testcase name='w'><system-out>hi</system-out></testcase></testsuite></testsuites>";
        let expected = TestCount { passed: 2, failed: 1, skipped: 1, groups: 0 };
        assert_eq!(parse_junit(text), Some(expected));
    }

    #[test]
    fn other_files_have_no_tests() {
        for text in
            ["", "<html></html>", "no xml", "<testsuite><", "<project><testcase/></project>"]
        {
            assert_eq!(parse_junit(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_junit(b"<testsuite></testsuite>"), Some(TestCount::default()));
    }
}
