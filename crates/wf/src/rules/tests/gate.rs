//! The gates: QA, acceptance, pull request and the removal of copies.

use jiff::Timestamp;
use model::id::{UatId, WorkstreamId};

use crate::rules::manifest::{Stats, SuiteResult, SuiteStatus, TestManifest};
use crate::rules::prune::{RunCopy, judge_copy};
use crate::rules::pull::{next_pull_action, render_pull};
use crate::rules::qa::{
    QaFacts, Strictness, SuiteEvidence, TestEvidence, judge_qa, parse_junit, parse_summary,
};
use crate::rules::result::RunResult;
use crate::rules::review::ReviewDecision;
use crate::rules::uat::{Uat, judge_gate, new_uat};

use super::{plan, sha};

fn found(failed: u64) -> TestEvidence<Stats> {
    TestEvidence::Found(Stats { total: 3, passed: 3 - failed, failed, skipped: 0 })
}

fn broken<T>() -> TestEvidence<T> {
    TestEvidence::Broken("it ends too early".to_owned())
}

fn qa(name: &str, suite: &str, summary: TestEvidence<Stats>, junit: TestEvidence<u64>) -> String {
    let ran = SuiteResult {
        status: SuiteStatus::Passed,
        tests_seen: Some(3),
        ..SuiteResult::skipped(suite, "x")
    };
    let manifest = TestManifest::new(vec![ran], Timestamp::UNIX_EPOCH);
    let judge = |strictness| {
        let suite = SuiteEvidence {
            name: suite.to_owned(),
            status: SuiteStatus::Passed,
            summary: summary.clone(),
            junit: junit.clone(),
        };
        let verdict = judge_qa(&QaFacts {
            manifest: Some(&manifest),
            suites: vec![suite],
            review: Some(ReviewDecision::Approve),
            strictness,
        });
        match verdict.fault {
            Some(fault) => format!("fails, {fault}"),
            None if verdict.warnings.is_empty() => "passes".to_owned(),
            None => format!("passes with warnings: {}", verdict.warnings.join("; ")),
        }
    };
    let (lenient, strict) = (judge(Strictness::Lenient), judge(Strictness::Strict));
    format!("{name}\n  lenient: {lenient}\n  strict: {strict}\n")
}

#[test]
fn artifacts_decide_at_the_qa_gate() {
    use TestEvidence::{Absent, Found};
    let rows = [
        qa("both artifacts, all passed", "unit", found(0), Found(0)),
        qa("a summary with failures", "unit", found(1), Found(0)),
        qa("a junit.xml with failures", "unit", found(0), Found(2)),
        qa("a broken summary", "unit", broken(), Found(0)),
        qa("a broken junit.xml", "unit", found(0), broken()),
        qa("no summary", "unit", Absent, Found(0)),
        qa("no junit.xml of the unit tests", "unit", found(0), Absent),
        qa("no junit.xml of other tests", "e2e", found(0), Absent),
        qa("no artifacts", "unit", Absent, Absent),
    ];
    insta::assert_snapshot!(rows.concat(), @"
    both artifacts, all passed
      lenient: passes
      strict: passes
    a summary with failures
      lenient: fails, summary.json of unit counts 1 failed tests
      strict: fails, summary.json of unit counts 1 failed tests
    a junit.xml with failures
      lenient: fails, junit.xml of unit has 2 failed tests
      strict: fails, junit.xml of unit has 2 failed tests
    a broken summary
      lenient: fails, summary.json of unit is invalid: it ends too early
      strict: fails, summary.json of unit is invalid: it ends too early
    a broken junit.xml
      lenient: fails, junit.xml of unit is malformed: it ends too early
      strict: fails, junit.xml of unit is malformed: it ends too early
    no summary
      lenient: passes with warnings: summary.json of unit is missing
      strict: fails, summary.json of unit is missing
    no junit.xml of the unit tests
      lenient: passes with warnings: junit.xml of unit is missing
      strict: fails, junit.xml of unit is missing
    no junit.xml of other tests
      lenient: passes
      strict: passes
    no artifacts
      lenient: passes with warnings: summary.json of unit is missing; junit.xml of unit is missing
      strict: fails, summary.json of unit is missing
    ");
}

#[test]
fn a_review_and_a_manifest_are_required() {
    let manifest =
        TestManifest::new(vec![SuiteResult::skipped("unit", "x")], Timestamp::UNIX_EPOCH);
    let judge = |manifest, review, strictness| {
        let facts = QaFacts { manifest, suites: Vec::new(), review, strictness };
        format!("{review:?}, {strictness:?}: {:?}\n", judge_qa(&facts))
    };
    use ReviewDecision::{Approve, RequestChanges};
    let rows = [
        judge(Some(&manifest), Some(Approve), Strictness::Lenient),
        judge(Some(&manifest), Some(Approve), Strictness::Strict),
        judge(Some(&manifest), Some(RequestChanges), Strictness::Lenient),
        judge(Some(&manifest), None, Strictness::Lenient),
        judge(None, Some(Approve), Strictness::Lenient),
    ];
    insta::assert_snapshot!(rows.concat(), @r#"
    Some(Approve), Lenient: QaVerdict { warnings: ["no test suite ran"], fault: None }
    Some(Approve), Strict: QaVerdict { warnings: [], fault: Some("no test suite ran") }
    Some(RequestChanges), Lenient: QaVerdict { warnings: ["no test suite ran"], fault: Some("the review did not approve") }
    None, Lenient: QaVerdict { warnings: ["no test suite ran"], fault: Some("the review is missing") }
    Some(Approve), Lenient: QaVerdict { warnings: [], fault: Some("the test manifest is missing") }
    "#);
}

#[test]
fn artifacts_are_parsed() {
    let summaries = [
        r#"{"passed": 42, "failed": 0, "skipped": 3, "total": 45}"#,
        "{}",
        r#"{"failed": 1}"#,
        "[]",
        "x",
        r#"{"failed": "none"}"#,
        r#"{"failed": -1}"#,
    ];
    let junits = [
        "<testsuites><testsuite name=\"a\"/></testsuites>",
        "<testsuite><testcase><failure>x &lt; y</failure></testcase><testcase><error/></testcase></testsuite>",
        "",
        "<testsuite>",
        "<testsuite></testcase>",
        "<html/>",
        "<testsuite",
    ];
    let summary = |text: &&str| format!("{text}\n  => {:?}\n", parse_summary(text.as_bytes()));
    let junit = |text: &&str| format!("{text}\n  => {:?}\n", parse_junit(text.as_bytes()));
    let rows: String = summaries.iter().map(summary).chain(junits.iter().map(junit)).collect();
    insta::assert_snapshot!(rows, @r#"
    {"passed": 42, "failed": 0, "skipped": 3, "total": 45}
      => Found(Stats { total: 45, passed: 42, failed: 0, skipped: 3 })
    {}
      => Found(Stats { total: 0, passed: 0, failed: 0, skipped: 0 })
    {"failed": 1}
      => Found(Stats { total: 0, passed: 0, failed: 1, skipped: 0 })
    []
      => Broken("it is no object")
    x
      => Broken("expected value at line 1 column 1")
    {"failed": "none"}
      => Broken("invalid type: string \"none\", expected u64")
    {"failed": -1}
      => Broken("invalid value: integer `-1`, expected u64")
    <testsuites><testsuite name="a"/></testsuites>
      => Found(0)
    <testsuite><testcase><failure>x &lt; y</failure></testcase><testcase><error/></testcase></testsuite>
      => Found(2)

      => Broken("it ends too early")
    <testsuite>
      => Broken("it ends too early")
    <testsuite></testcase>
      => Broken("ill-formed document: expected `</testsuite>`, but `</testcase>` was found")
    <html/>
      => Broken("its root is neither testsuites nor testsuite")
    <testsuite
      => Broken("syntax error: tag not closed: `>` not found before end of input")
    "#);
}

fn uat(number: u32) -> Uat {
    let workstream = WorkstreamId::parse("login").unwrap();
    let head = sha('a');
    new_uat(
        UatId::numbered(number),
        &workstream,
        &plan().commits,
        Some(&head),
        Timestamp::UNIX_EPOCH,
    )
}

#[test]
fn acceptance_tests_open_the_gate() {
    let now = Timestamp::UNIX_EPOCH;
    let passed = |number| uat(number).passed("ada".to_owned(), now);
    let failed = |number| uat(number).failed(vec!["no".to_owned()], "ada".to_owned(), now);
    let row = |name: &str, tests: &[Uat]| {
        let (same, moved) = (sha('a'), sha('b'));
        let gates = [Some(&same), Some(&moved), None].map(|head| judge_gate(tests, head));
        let [same, moved, none] = gates;
        format!(
            "{name}\n  same commit: {same:?}\n  later commit: {moved:?}\n  no commit: {none:?}\n"
        )
    };
    let rows = [
        row("no test", &[]),
        row("one pending", &[uat(1)]),
        row("one passed", &[passed(1)]),
        row("one failed", &[failed(1)]),
        row("passed and pending", &[passed(1), uat(2)]),
        row("passed and failed", &[passed(1), failed(2)]),
        row("two failed", &[failed(1), failed(2)]),
    ];
    insta::assert_snapshot!(rows.concat(), @r#"
    no test
      same commit: Generate { supersede: [] }
      later commit: Generate { supersede: [] }
      no commit: Generate { supersede: [] }
    one pending
      same commit: Pending([UatId("UAT-001")])
      later commit: Pending([UatId("UAT-001")])
      no commit: Pending([UatId("UAT-001")])
    one passed
      same commit: Open
      later commit: Open
      no commit: Open
    one failed
      same commit: Failed([UatId("UAT-001")])
      later commit: Generate { supersede: [UatId("UAT-001")] }
      no commit: Generate { supersede: [UatId("UAT-001")] }
    passed and pending
      same commit: Pending([UatId("UAT-002")])
      later commit: Pending([UatId("UAT-002")])
      no commit: Pending([UatId("UAT-002")])
    passed and failed
      same commit: Failed([UatId("UAT-002")])
      later commit: Generate { supersede: [UatId("UAT-002")] }
      no commit: Generate { supersede: [UatId("UAT-002")] }
    two failed
      same commit: Failed([UatId("UAT-001"), UatId("UAT-002")])
      later commit: Generate { supersede: [UatId("UAT-001"), UatId("UAT-002")] }
      no commit: Generate { supersede: [UatId("UAT-001"), UatId("UAT-002")] }
    "#);
}

#[test]
fn the_state_of_a_pull_request_decides_the_next_action() {
    let states = [
        ("no pull request", None),
        ("open", Some((true, false))),
        ("merged", Some((false, true))),
        ("closed", Some((false, false))),
    ];
    let row = |(name, state): &(&str, Option<(bool, bool)>)| {
        let [pushed, moved] = [true, false].map(|is_pushed| next_pull_action(*state, is_pushed));
        format!("{name}: {pushed:?} if the branch is as pushed, {moved:?} if it moved\n")
    };
    insta::assert_snapshot!(states.iter().map(row).collect::<String>(), @"
    no pull request: Publish if the branch is as pushed, Publish if it moved
    open: Wait if the branch is as pushed, Publish if it moved
    merged: Finish if the branch is as pushed, LeftBehind if it moved
    closed: Publish if the branch is as pushed, Publish if it moved
    ");
}

#[test]
fn the_text_of_a_pull_request() {
    insta::assert_snapshot!(render_pull(&plan()), @"
    ## Micro-commits

    - COMMIT-LG-001: Add a form
      - the form is shown
      - the password is hidden
    - COMMIT-LG-002: Check the password
    ");
}

#[test]
fn copies_are_removed_once_a_later_run_was_accepted() {
    let result = |commit: Option<&str>, status: &str, hour: u32| -> RunResult {
        serde_json::from_value(serde_json::json!({
            "version": 1, "project": "app", "workstream": "login", "microcommit": commit,
            "status": status,
            "timestamps": {"started": "2025-01-15T09:00:00Z", "ended": format!("2025-01-15T{hour}:00:00Z")},
        }))
        .unwrap()
    };
    let row = |name: &str, own: Option<RunResult>, is_awaited: bool, others: &[RunResult]| {
        let copy = RunCopy { name: "run".to_owned(), result: own, is_awaited };
        let verdict = judge_copy(&copy, others);
        format!("{name}: {verdict:?}, {}\n", verdict.reason())
    };
    let own = || Some(result(Some("COMMIT-LG-001"), "failed", 11));
    let passed = |commit, hour| [result(Some(commit), "passed", hour)];
    let rows = [
        row("a later run passed", own(), false, &passed("COMMIT-LG-001", 12)),
        row("an earlier run passed", own(), false, &passed("COMMIT-LG-001", 10)),
        row("another micro-commit passed", own(), false, &passed("COMMIT-LG-002", 12)),
        row("a later run failed", own(), false, &[result(Some("COMMIT-LG-001"), "failed", 12)]),
        row("its commit waits for tests", own(), true, &passed("COMMIT-LG-001", 12)),
        row("the run is active", None, false, &passed("COMMIT-LG-001", 12)),
        row(
            "a run without a micro-commit",
            Some(result(None, "failed", 11)),
            false,
            &[result(None, "passed", 12)],
        ),
    ];
    insta::assert_snapshot!(rows.concat(), @"
    a later run passed: Superseded, a later run had its micro-commit accepted
    an earlier run passed: OnlyCopy, its micro-commit was not accepted since, so this may be the only copy of the work
    another micro-commit passed: OnlyCopy, its micro-commit was not accepted since, so this may be the only copy of the work
    a later run failed: OnlyCopy, its micro-commit was not accepted since, so this may be the only copy of the work
    its commit waits for tests: InUse, it is still needed
    the run is active: InUse, it is still needed
    a run without a micro-commit: OnlyCopy, its micro-commit was not accepted since, so this may be the only copy of the work
    ");
}
