//! Tests that a check ran, by name, read from the JUnit-like files that it left.
//!
//! The files are written by the code under test, so they are claims: a test that is not in them was not run, and one that is
//! in them may not have been. They are read with bounds, and what exceeds these is said.

mod case;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use host::git::SealedRepo;
use host::safe_read::{FindLimits, find_within, read_beneath};
use model::id::Sha;
use serde::{Deserialize, Serialize};

use crate::run::RunError;
use crate::test_count::{TestCount, parse_junit};

use case::{JunitFile, TestCase, read_cases};

/// Bytes of a file that are read, and the part of it by which other files are recognised.
const FILE_CAP: usize = 8 << 20;
const SNIFFED: usize = 64 << 10;

/// Bytes of all files, and of all names of tests.
const TOTAL_CAP: usize = 128 << 20;
const NAMES_CAP: usize = 16 << 20;

/// Files of the commit that are compared with those of its copy at once.
const COMPARED_AT_ONCE: usize = 16;

/// Files of a tree that are looked at.
const LIMITS: FindLimits = FindLimits { visited: 400_000, found: 5000, deep: 24 };

/// Tests by name, as the files of a check report them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestReport {
    pub tests: BTreeMap<String, TestOutcome>,
    /// Runs of tests that ran more than once, or of several tests with one name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub repeated: BTreeMap<String, u32>,
    /// Number of tests, those without a name included; `None` if there are no files.
    #[serde(default)]
    pub count: Option<TestCount>,
    /// Some of it could not be read: a test that is not here may have run.
    #[serde(default)]
    pub is_cut: bool,
}

/// Outcome of a test. Of several runs of one test the greatest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TestOutcome {
    Skipped,
    Failed,
    Passed,
}

impl TestReport {
    /// Number of runs under a name.
    pub fn runs_of(&self, name: &str) -> u32 {
        let ran = |outcome: &TestOutcome| *outcome != TestOutcome::Skipped;
        let once = u32::from(self.tests.get(name).is_some_and(ran));
        self.repeated.get(name).copied().unwrap_or(once)
    }

    /// A report that was there and cannot be read any more.
    pub(crate) fn lost() -> Self {
        Self { is_cut: true, ..Self::default() }
    }
}

/// A report that is being read.
#[derive(Default)]
struct ReportReader {
    report: TestReport,
    /// Bytes of the names so far.
    names: usize,
}

impl ReportReader {
    fn add(&mut self, bytes: &[u8]) {
        let Self { report, names } = self;
        let kind = read_cases(bytes, |TestCase { name, outcome }| {
            if name.is_empty() {
                return;
            }
            if let Some(known) = report.tests.get_mut(&name) {
                if outcome != TestOutcome::Skipped && *known != TestOutcome::Skipped {
                    *report.repeated.entry(name).or_insert(1) += 1;
                }
                *known = outcome.max(*known);
                return;
            }
            *names += name.len();
            if *names <= NAMES_CAP {
                report.tests.insert(name, outcome);
            }
        });
        report.is_cut |= *names > NAMES_CAP || kind == JunitFile::Broken;
        if let Some(count) = parse_junit(bytes) {
            report.count = Some(report.count.map_or(count, |it| it.with(count)));
        }
    }
}

/// Reads the reports that a check left in its copy of a commit. Files that the commit has do not count, unless the check wrote
/// them anew.
pub(crate) async fn read_reports(
    repo: &SealedRepo,
    commit: &Sha,
    workspace: &Path,
) -> Result<TestReport, RunError> {
    if !workspace.is_dir() {
        return Ok(TestReport::lost());
    }
    let found = find_within(workspace, ".xml", LIMITS);
    let mut paths = found.paths;
    paths.retain(|path| may_be_report(workspace, path));
    let committed = find_committed(repo, commit, workspace, &paths).await?;
    let mut reader = ReportReader::default();
    reader.report.is_cut = found.is_cut;
    let mut total = 0;
    for path in paths.iter().filter(|path| !committed.contains(path.as_bytes())) {
        let Ok(Some(file)) = read_beneath(workspace, path, FILE_CAP) else { continue };
        total += file.bytes.len();
        if total > TOTAL_CAP {
            reader.report.is_cut = true;
            break;
        }
        reader.report.is_cut |= file.truncated;
        reader.add(&file.bytes);
    }
    Ok(reader.report)
}

/// Finds the files that are as the commit has them. One of the commit that is too large to be compared counts as one of them:
/// otherwise an agent could commit a report instead of running tests.
async fn find_committed(
    repo: &SealedRepo,
    commit: &Sha,
    workspace: &Path,
    paths: &[String],
) -> Result<BTreeSet<Vec<u8>>, RunError> {
    let asked: Vec<&[u8]> = paths.iter().map(String::as_bytes).collect();
    let tracked: Vec<_> = repo.entries_at(commit, &asked).await?.into_iter().collect();
    let mut committed = BTreeSet::new();
    for some in tracked.chunks(COMPARED_AT_ONCE) {
        let ids = some.iter().map(|(_, entry)| entry.id.clone()).collect();
        let blobs: BTreeMap<_, _> =
            repo.read_small_blobs(ids, FILE_CAP).await?.into_iter().collect();
        for (path, entry) in some {
            let is_own = match (blobs.get(&entry.id), std::str::from_utf8(path)) {
                (Some(own), Ok(name)) => {
                    let now = read_beneath(workspace, name, FILE_CAP).ok().flatten();
                    now.is_none_or(|now| without_returns(own) == without_returns(&now.bytes))
                }
                (None, _) | (_, Err(_)) => true,
            };
            if is_own {
                committed.insert(path.clone());
            }
        }
    }
    Ok(committed)
}

/// Returns whether a file begins as a report does, or with more than is looked at.
fn may_be_report(workspace: &Path, path: &str) -> bool {
    match read_beneath(workspace, path, SNIFFED) {
        Ok(Some(file)) => read_cases(&file.bytes, |_| {}) != JunitFile::Other,
        Ok(None) | Err(_) => false,
    }
}

/// Git may have changed the ends of lines.
fn without_returns(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().copied().filter(|byte| *byte != b'\r').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(files: &[&str]) -> TestReport {
        let mut reader = ReportReader::default();
        files.iter().for_each(|file| reader.add(file.as_bytes()));
        reader.report
    }

    #[test]
    fn of_several_runs_of_a_test_the_best_counts() {
        let first =
            "<testsuite><testcase name='a'><failure/></testcase><testcase name='b'/></testsuite>";
        let second =
            "<testsuite><testcase name='a'/><testcase name='b'><skipped/></testcase></testsuite>";
        let both = report(&[first, second]);
        assert_eq!(both.tests.values().collect::<Vec<_>>(), [&TestOutcome::Passed; 2]);
        assert_eq!(both.repeated, BTreeMap::from([("a".to_owned(), 2)]));
        assert_eq!([both.runs_of("a"), both.runs_of("b"), both.runs_of("c")], [2, 1, 0]);
        let count = TestCount { passed: 2, failed: 1, skipped: 1, groups: 0 };
        assert_eq!((both.count, both.is_cut), (Some(count), false));
    }

    #[test]
    fn a_report_that_breaks_off_is_known_as_that() {
        let broken = "<testsuite><testcase name='a'/><testcase name='b'";
        let report_of_it = report(&[broken]);
        assert!(report_of_it.is_cut && report_of_it.tests.len() == 1, "{report_of_it:?}");
        for other in ["", "<html><testcase name='a'/></html>", "no xml", "<project></wrong>"] {
            assert_eq!(report(&[other]), TestReport::default(), "{other}");
        }
    }

    #[test]
    fn a_report_survives_being_kept() {
        let kept = report(&["<testsuite><testcase name='a' classname='b'/></testsuite>"]);
        let text = serde_json::to_vec(&kept).unwrap();
        assert_eq!(serde_json::from_slice::<TestReport>(&text).unwrap(), kept);
    }
}
