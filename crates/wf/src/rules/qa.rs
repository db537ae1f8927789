//! The QA gate: the artifacts of tests and review must exist and be consistent.

use quick_xml::events::Event;
use quick_xml::reader::Reader;

use super::manifest::{Stats, SuiteStatus, TestManifest, Tested};
use super::review::ReviewDecision;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SuiteEvidence {
    pub(crate) name: String,
    pub(crate) status: SuiteStatus,
    pub(crate) summary: TestEvidence<Stats>,
    pub(crate) junit: TestEvidence<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TestEvidence<T> {
    Absent,
    Broken(String),
    Found(T),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QaFacts<'a> {
    pub(crate) manifest: Option<&'a TestManifest>,
    pub(crate) suites: Vec<SuiteEvidence>,
    pub(crate) review: Option<ReviewDecision>,
    pub(crate) strictness: Strictness,
}

/// Treatment of a missing artifact: a warning or a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strictness {
    Lenient,
    Strict,
}

/// Verdict of the gate: warnings, and the first failure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct QaVerdict {
    pub(crate) warnings: Vec<String>,
    pub(crate) fault: Option<String>,
}

pub(crate) fn judge_qa(facts: &QaFacts<'_>) -> QaVerdict {
    let mut verdict = QaVerdict::default();
    let Some(manifest) = facts.manifest else {
        verdict.fail("the test manifest is missing".to_owned());
        return verdict;
    };
    if manifest.tested() == Tested::No {
        verdict.lack(facts.strictness, "no test suite ran".to_owned());
    }
    for name in manifest.passed_without_a_test() {
        verdict.warnings.push(format!("no test was seen in the output of {name}"));
    }
    for suite in facts.suites.iter().filter(|suite| suite.status != SuiteStatus::Skipped) {
        judge_suite(suite, facts.strictness, &mut verdict);
    }
    match facts.review {
        Some(ReviewDecision::Approve) => {}
        Some(ReviewDecision::RequestChanges) => {
            verdict.fail("the review did not approve".to_owned());
        }
        None => verdict.fail("the review is missing".to_owned()),
    }
    verdict
}

fn judge_suite(suite: &SuiteEvidence, strictness: Strictness, verdict: &mut QaVerdict) {
    let name = &suite.name;
    match &suite.summary {
        TestEvidence::Found(stats) if stats.failed > 0 => {
            verdict.fail(format!("summary.json of {name} counts {} failed tests", stats.failed));
        }
        TestEvidence::Found(_) => {}
        TestEvidence::Broken(why) => {
            verdict.fail(format!("summary.json of {name} is invalid: {why}"));
        }
        TestEvidence::Absent => {
            verdict.lack(strictness, format!("summary.json of {name} is missing"));
        }
    }
    match &suite.junit {
        TestEvidence::Found(failed) if *failed > 0 => {
            verdict.fail(format!("junit.xml of {name} has {failed} failed tests"));
        }
        TestEvidence::Found(_) => {}
        TestEvidence::Broken(why) => {
            verdict.fail(format!("junit.xml of {name} is malformed: {why}"));
        }
        TestEvidence::Absent if name == "unit" => {
            verdict.lack(strictness, format!("junit.xml of {name} is missing"));
        }
        TestEvidence::Absent => {}
    }
}

impl QaVerdict {
    /// Keeps the first fault.
    fn fail(&mut self, message: String) {
        self.fault.get_or_insert(message);
    }

    fn lack(&mut self, strictness: Strictness, message: String) {
        match strictness {
            Strictness::Lenient => self.warnings.push(message),
            Strictness::Strict => self.fail(message),
        }
    }
}

pub(crate) fn parse_summary(bytes: &[u8]) -> TestEvidence<Stats> {
    match serde_json::from_slice::<serde_json::Value>(bytes) {
        Err(error) => TestEvidence::Broken(error.to_string()),
        Ok(value) if !value.is_object() => TestEvidence::Broken("it is no object".to_owned()),
        Ok(value) => match serde_json::from_value(value) {
            Ok(stats) => TestEvidence::Found(stats),
            Err(error) => TestEvidence::Broken(error.to_string()),
        },
    }
}

/// Parses a junit.xml and counts failed test cases. A file without tests is valid.
pub(crate) fn parse_junit(bytes: &[u8]) -> TestEvidence<u64> {
    match count_failures(bytes) {
        Ok(failed) => TestEvidence::Found(failed),
        Err(why) => TestEvidence::Broken(why),
    }
}

fn count_failures(bytes: &[u8]) -> Result<u64, String> {
    let mut reader = Reader::from_reader(bytes);
    let (mut failed, mut depth, mut has_root) = (0, 0_u32, false);
    let mut buffer = Vec::new();
    loop {
        let event = reader.read_event_into(&mut buffer).map_err(|error| error.to_string())?;
        let element = match &event {
            Event::Start(start) | Event::Empty(start) => Some(start.local_name().as_ref().to_vec()),
            _ => None,
        };
        if let Some(name) = element {
            if depth == 0 && !matches!(name.as_slice(), b"testsuites" | b"testsuite") {
                return Err("its root is neither testsuites nor testsuite".to_owned());
            }
            has_root = true;
            failed += u64::from(matches!(name.as_slice(), b"failure" | b"error"));
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Eof if depth > 0 || !has_root => return Err("it ends too early".to_owned()),
            Event::Eof => return Ok(failed),
            _ => {}
        }
        buffer.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::manifest::{Artifacts, SuiteResult};
    use jiff::Timestamp;

    fn manifest(status: SuiteStatus) -> TestManifest {
        let suite = SuiteResult {
            status,
            artifacts: Artifacts::default(),
            tests_seen: Some(1),
            ..SuiteResult::skipped("unit", "x")
        };
        TestManifest::new(vec![suite], Timestamp::UNIX_EPOCH)
    }

    fn judge(
        summary: TestEvidence<Stats>,
        junit: TestEvidence<u64>,
        strictness: Strictness,
    ) -> QaVerdict {
        let manifest = manifest(SuiteStatus::Passed);
        let suite =
            SuiteEvidence { name: "unit".to_owned(), status: SuiteStatus::Passed, summary, junit };
        judge_qa(&QaFacts {
            manifest: Some(&manifest),
            suites: vec![suite],
            review: Some(ReviewDecision::Approve),
            strictness,
        })
    }

    #[test]
    fn what_is_missing_warns_and_fails_when_strict() {
        let lenient = judge(TestEvidence::Absent, TestEvidence::Absent, Strictness::Lenient);
        assert_eq!((lenient.warnings.len(), lenient.fault), (2, None));
        let strict = judge(TestEvidence::Absent, TestEvidence::Absent, Strictness::Strict);
        assert!(strict.fault.unwrap().contains("summary.json"));
    }

    #[test]
    fn failures_in_the_evidence_fail_whatever_make_said() {
        let stats = Stats { failed: 1, ..Stats::default() };
        assert!(
            judge(TestEvidence::Found(stats), TestEvidence::Found(0), Strictness::Lenient)
                .fault
                .is_some()
        );
        let fine = TestEvidence::Found(Stats::default());
        assert!(judge(fine.clone(), TestEvidence::Found(2), Strictness::Lenient).fault.is_some());
        assert!(
            judge(fine.clone(), TestEvidence::Broken("x".to_owned()), Strictness::Lenient)
                .fault
                .is_some()
        );
        assert_eq!(judge(fine, TestEvidence::Found(0), Strictness::Strict), QaVerdict::default());
    }

    #[test]
    fn no_suite_at_all_is_worth_a_warning() {
        let manifest = manifest(SuiteStatus::Skipped);
        let facts = |strictness| QaFacts {
            manifest: Some(&manifest),
            suites: Vec::new(),
            review: Some(ReviewDecision::Approve),
            strictness,
        };
        assert_eq!(judge_qa(&facts(Strictness::Lenient)).warnings, ["no test suite ran"]);
        assert!(judge_qa(&facts(Strictness::Strict)).fault.is_some());
    }

    #[test]
    fn manifest_and_approval_are_required() {
        let manifest = manifest(SuiteStatus::Passed);
        let facts = |manifest, review| QaFacts {
            manifest,
            suites: Vec::new(),
            review,
            strictness: Strictness::Lenient,
        };
        assert!(judge_qa(&facts(None, Some(ReviewDecision::Approve))).fault.is_some());
        assert!(judge_qa(&facts(Some(&manifest), None)).fault.is_some());
        assert!(
            judge_qa(&facts(Some(&manifest), Some(ReviewDecision::RequestChanges))).fault.is_some()
        );
    }

    #[test]
    fn junit_is_read_as_xml() {
        assert_eq!(
            parse_junit(b"<?xml version=\"1.0\"?><testsuites><testsuite name=\"a\"/></testsuites>"),
            TestEvidence::Found(0)
        );
        assert_eq!(parse_junit(b"<testsuite><testcase name=\"a\"><failure>x &lt; y</failure></testcase><testcase/></testsuite>"), TestEvidence::Found(1));
        for bad in [&b""[..], b"<testsuite>", b"<testsuite></testcase>", b"<html/>", b"<testsuite"]
        {
            assert!(
                matches!(parse_junit(bad), TestEvidence::Broken(_)),
                "{}",
                String::from_utf8_lossy(bad)
            );
        }
    }

    #[test]
    fn a_summary_is_an_object_with_numbers() {
        let text =
            br#"{"passed": 42, "failed": 0, "skipped": 3, "total": 45, "duration_ms": 12345}"#;
        assert_eq!(
            parse_summary(text),
            TestEvidence::Found(Stats { total: 45, passed: 42, failed: 0, skipped: 3 })
        );
        for bad in [&b"[]"[..], b"x", br#"{"failed": "none"}"#] {
            assert!(matches!(parse_summary(bad), TestEvidence::Broken(_)));
        }
    }
}
