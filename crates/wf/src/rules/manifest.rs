//! `test_manifest.json`: which suites ran, how they ended, and what they left in the run directory.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::meta::stamp;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TestManifest {
    pub(crate) version: u32,
    #[serde(default)]
    pub(crate) generated: String,
    pub(crate) suites: Vec<SuiteResult>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SuiteResult {
    pub(crate) name: String,
    pub(crate) status: SuiteStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) duration_seconds: Option<f64>,
    pub(crate) artifacts: Artifacts,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stats: Option<Stats>,
    /// Tests that ran, as the suite's summary, its JUnit file or its output says. None: no test was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tests_seen: Option<u64>,
}

/// Extent to which the suites tested anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Tested {
    /// No suite ran.
    No,
    /// Suites ran, and none of them reports a test.
    NoTestSeen,
    Yes,
}

impl Tested {
    /// Words that follow "passed".
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::No => ", untested",
            Self::NoTestSeen => ", no test was seen",
            Self::Yes => "",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SuiteStatus {
    Passed,
    Failed,
    Skipped,
}

/// Files of a suite, relative to the run directory. What is absent is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Artifacts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) summary_json: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) junit_xml: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) coverage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) screenshots: Vec<String>,
}

/// Numbers from a suite's own summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Stats {
    pub(crate) total: u64,
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl TestManifest {
    pub(crate) fn new(suites: Vec<SuiteResult>, now: Timestamp) -> Self {
        Self { version: 1, generated: stamp(now), suites }
    }

    pub(crate) fn failed(&self) -> Vec<&str> {
        let failed = self.suites.iter().filter(|suite| suite.status == SuiteStatus::Failed);
        failed.map(|suite| suite.name.as_str()).collect()
    }

    /// The reasons for which suites were skipped, each once.
    pub(crate) fn skip_reasons(&self) -> Vec<&str> {
        let mut reasons: Vec<&str> =
            self.suites.iter().filter_map(|suite| suite.reason.as_deref()).collect();
        reasons.dedup();
        reasons
    }

    pub(crate) fn tested(&self) -> Tested {
        let ran = || self.suites.iter().filter(|suite| suite.status != SuiteStatus::Skipped);
        if ran().next().is_none() {
            Tested::No
        } else if ran().any(|suite| suite.tests_seen.is_some()) {
            Tested::Yes
        } else {
            Tested::NoTestSeen
        }
    }

    /// Suites that passed without a sign of a test.
    pub(crate) fn passed_without_a_test(&self) -> impl Iterator<Item = &str> {
        let silent = self.suites.iter().filter(|suite| suite.is_passed_without_a_test());
        silent.map(|suite| suite.name.as_str())
    }
}

impl SuiteResult {
    pub(crate) fn skipped(name: &str, reason: &str) -> Self {
        Self {
            name: name.to_owned(),
            status: SuiteStatus::Skipped,
            reason: Some(reason.to_owned()),
            exit_code: None,
            duration_seconds: None,
            artifacts: Artifacts::default(),
            stats: None,
            tests_seen: None,
        }
    }

    pub(crate) fn is_passed_without_a_test(&self) -> bool {
        self.status == SuiteStatus::Passed && self.tests_seen.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::schema::Schema;

    #[track_caller]
    fn check(suites: &[(SuiteStatus, Option<u64>)], expected: Tested) {
        let suites = suites.iter().map(|(status, tests_seen)| SuiteResult {
            status: *status,
            tests_seen: *tests_seen,
            ..SuiteResult::skipped("unit", "x")
        });
        let manifest = TestManifest::new(suites.collect(), Timestamp::UNIX_EPOCH);
        assert_eq!(manifest.tested(), expected);
    }

    #[test]
    fn a_suite_that_shows_no_test_does_not_count_as_tested() {
        use SuiteStatus::{Failed, Passed, Skipped};
        check(&[], Tested::No);
        check(&[(Skipped, None)], Tested::No);
        check(&[(Passed, None)], Tested::NoTestSeen);
        check(&[(Skipped, None), (Passed, None), (Failed, None)], Tested::NoTestSeen);
        check(&[(Passed, None), (Passed, Some(3))], Tested::Yes);
    }

    #[test]
    fn what_is_written_keeps_the_schema_and_omits_what_is_absent() {
        let ran = SuiteResult {
            name: "unit".to_owned(),
            status: SuiteStatus::Failed,
            reason: None,
            exit_code: Some(124),
            duration_seconds: Some(1.5),
            artifacts: Artifacts {
                junit_xml: Some("test/unit/junit.xml".to_owned()),
                ..Artifacts::default()
            },
            stats: Some(Stats { total: 3, passed: 2, failed: 1, skipped: 0 }),
            tests_seen: Some(3),
        };
        let manifest = TestManifest::new(
            vec![ran, SuiteResult::skipped("e2e", "no target")],
            Timestamp::UNIX_EPOCH,
        );
        let value = serde_json::to_value(&manifest).unwrap();
        assert_eq!(Schema::TestManifest.check(&value), Ok(()));
        assert_eq!(value["suites"][1]["artifacts"], serde_json::json!({}));
        assert_eq!((manifest.failed(), manifest.tested()), (vec!["unit"], Tested::Yes));
    }
}
