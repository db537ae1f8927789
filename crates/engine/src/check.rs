//! A repository's own check on a commit: set-up and check in boxes, in a fresh copy where no agent has been.

use std::path::Path;

use host::git::SealedRepo;
use model::id::Sha;
use model::verdict::Ended;

use crate::agent_run::BoxLayout;
use crate::box_command::BoxCommandSummary;
use crate::run::{Product, ProductRecord, RunError, SetupCommand};
use crate::scratch::Scratch;
use crate::test_count::TestCount;
use crate::test_report::{TestReport, read_reports};

/// File in the folder of a box with the report of its check.
const REPORT_FILE: &str = "tests.json";

/// Lines of a check.
#[derive(Debug, Clone)]
pub struct CheckCommand {
    /// Set-up of the fresh copy: the agent may have changed what the set-up made in its workspace.
    pub setup: Option<SetupCommand>,
    pub line: String,
    pub timeout_secs: u64,
}

/// End of a check, or of the set-up before it.
#[derive(Debug, Clone)]
pub struct CheckEnd {
    pub summary: BoxCommandSummary,
    pub is_set_up: bool,
    /// Tests by name, as the files that the check left report them.
    pub report: TestReport,
}

impl CheckEnd {
    /// Returns whether the result is at fault, and not the machine or the set-up.
    pub fn agent_can_help(&self) -> bool {
        self.is_set_up && !is_machine(&self.summary.ended)
    }
}

/// Returns whether a command says nothing about the result, because it was stopped or the machine failed.
pub fn is_machine(ended: &Ended) -> bool {
    matches!(ended, Ended::Infra { .. } | Ended::Stopped | Ended::Frozen)
}

/// Runs set-up and check on a commit, in boxes with the name of the scratch folders. `run_line` runs one line in a box.
pub async fn check_commit<P: Product>(
    scratch: &Scratch<'_, P::Record>,
    repo: &SealedRepo,
    commit: &Sha,
    command: &CheckCommand,
    run_line: impl AsyncFn(BoxLayout, &str) -> Result<BoxCommandSummary, P::Failure>,
) -> Result<CheckEnd, P::Failure> {
    let name = scratch.prefix;
    let setup_name = format!("{name}-setup");
    let boxes = scratch.run.dir.path().join("boxes");
    // A box of an earlier process that was killed may work in the folders; then they stay.
    if ![name, setup_name.as_str()].iter().any(|name| boxes.join(name).exists()) {
        scratch.check_out(repo, commit).await.map_err(P::failure)?;
    }
    let remove = || scratch.remove().map_err(|error| P::failure(error.into()));
    if let Some(setup) = &command.setup {
        let layout = scratch.layout(&setup_name, setup.timeout_secs).map_err(P::failure)?;
        let summary = run_line(layout, &setup.line).await?;
        if !summary.passed() {
            remove()?;
            return Ok(CheckEnd { summary, is_set_up: false, report: TestReport::lost() });
        }
    }
    let layout = scratch.layout(name, command.timeout_secs).map_err(P::failure)?;
    let mut summary = run_line(layout, &command.line).await?;
    let report = kept_report(repo, commit, &scratch.folder("workspace"), &boxes.join(name)).await;
    let report = report.map_err(P::failure)?;
    // Most runners print what they report.
    let more = |reported: &TestCount| summary.tests.is_none_or(|it| it.ran() < reported.ran());
    summary.tests = report.count.filter(more).or(summary.tests);
    remove()?;
    Ok(CheckEnd { summary, is_set_up: true, report })
}

/// Describes the end of a check, with the number of tests that its output reports.
pub fn check_words(check: &BoxCommandSummary) -> String {
    if !check.passed() {
        return match check.tests {
            Some(TestCount { failed, .. }) if failed > 0 => {
                let ran = check.tests.map_or(0, TestCount::ran);
                format!("failed ({}, {failed} of {} failed)", check.how(), tests(ran))
            }
            Some(_) | None => format!("failed ({})", check.how()),
        };
    }
    match check.tests {
        Some(count) if count.ran() > 0 => format!("passed, {}", tests(count.ran())),
        Some(count) if count.groups > 0 => format!("passed, tests of {} packages", count.groups),
        Some(_) | None => "passed, no test was seen".to_owned(),
    }
}

fn tests(count: u64) -> String {
    if count == 1 { "1 test".to_owned() } else { format!("{count} tests") }
}

/// Loads the report of a check that is over. One that is gone is not whole.
pub fn load_report<R: ProductRecord>(scratch: &Scratch<'_, R>) -> TestReport {
    let box_dir = scratch.run.dir.path().join("boxes").join(scratch.prefix);
    find_report(&box_dir.join(REPORT_FILE)).unwrap_or_else(TestReport::lost)
}

fn find_report(file: &Path) -> Option<TestReport> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

/// Reads what the check reports about its tests, and keeps it before the copy goes: a process that continues after a killed
/// one finds the exit of the box and no copy.
async fn kept_report(
    repo: &SealedRepo,
    commit: &Sha,
    workspace: &Path,
    box_dir: &Path,
) -> Result<TestReport, RunError> {
    let file = box_dir.join(REPORT_FILE);
    if let Some(report) = find_report(&file) {
        return Ok(report);
    }
    let report = read_reports(repo, commit, workspace).await?;
    let bytes = serde_json::to_vec(&report).unwrap_or_default();
    host::file::write_atomic(&file, &bytes, 0o600)?;
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(code: i32, tests: Option<TestCount>) -> BoxCommandSummary {
        let (command, tail) = ("make test".to_owned(), "the reason\n".to_owned());
        BoxCommandSummary { command, ended: Ended::Exited { code }, wall_ms: 1, tail, tests }
    }

    #[test]
    fn a_check_that_ran_no_test_says_so() {
        let check =
            |code, tests, expected| assert_eq!(check_words(&summary(code, tests)), expected);
        let count = TestCount { passed: 4, failed: 0, skipped: 1, groups: 0 };
        check(0, None, "passed, no test was seen");
        check(0, Some(TestCount { passed: 0, ..count }), "passed, no test was seen");
        check(0, Some(count), "passed, 4 tests");
        check(0, Some(TestCount { passed: 1, ..count }), "passed, 1 test");
        check(
            0,
            Some(TestCount { groups: 3, ..TestCount::default() }),
            "passed, tests of 3 packages",
        );
        check(1, None, "failed (status 1)");
        check(1, Some(TestCount { failed: 2, ..count }), "failed (status 1, 2 of 6 tests failed)");
    }
}
