//! Steps after a closed run, over every verdict and report.

use sidecar::DoneStatus;

use super::super::closed_run::{AfterRun, ClosedRun, judge_closed_run};
use super::super::judge::Verdict;

fn verdicts() -> [(&'static str, Option<Verdict>); 8] {
    let text = |words: &str| words.to_owned();
    [
        ("none", None),
        ("publish", Some(Verdict::Publish)),
        ("nothing", Some(Verdict::Nothing)),
        ("unfinished", Some(Verdict::Unfinished { how: text("out of time") })),
        ("refused", Some(Verdict::Refused { reasons: vec![text("too large: x"), text("y")] })),
        ("set-up failed", Some(Verdict::SetupFailed { how: text("status 4") })),
        ("not rehydrated", Some(Verdict::NotRehydrated { how: text("status 1") })),
        ("infra", Some(Verdict::Infra { reason: text("the shim died") })),
    ]
}

fn show(after: AfterRun) -> String {
    match after {
        AfterRun::Freeze { reason } => format!("freeze: {reason}"),
        AfterRun::Wait { until, reason } => format!("wait until {until}: {reason}"),
        AfterRun::Retry { reason } => format!("retry: {reason}"),
        AfterRun::CallPerson { reason } => format!("call a person: {reason}"),
    }
}

/// One line for each verdict and report.
fn check(pull: Option<u64>, problem: Option<&str>, quota: Option<&str>) -> String {
    let mut lines = Vec::new();
    for (name, verdict) in verdicts() {
        for (said, report) in [("no report", None), ("success", Some(DoneStatus::Success))] {
            let waiting_until = quota.map(|at| at.parse().expect("a time"));
            let run = ClosedRun {
                verdict: verdict.as_ref(),
                problem,
                pull,
                report,
                summary: None,
                waiting_until,
            };
            lines.push(format!("{name}, {said}: {}", show(judge_closed_run(&run))));
        }
    }
    lines.join("\n")
}

#[test]
fn with_a_pull_request() {
    insta::assert_snapshot!(check(Some(4), None, None), @"
    none, no report: call a person: the run has no verdict
    none, success: call a person: the run has no verdict
    publish, no report: freeze: pull request #4 is up for review
    publish, success: freeze: pull request #4 is up for review
    nothing, no report: call a person: no new commits
    nothing, success: freeze: the agent says that nothing needs a change
    unfinished, no report: call a person: not finished: out of time
    unfinished, success: call a person: not finished: out of time
    refused, no report: call a person: not to be published: too large: x; y
    refused, success: call a person: not to be published: too large: x; y
    set-up failed, no report: call a person: the bottle's set-up failed: status 4
    set-up failed, success: call a person: the bottle's set-up failed: status 4
    not rehydrated, no report: call a person: git in the workspace could not take in what is new (status 1); mend it with bot-bottle exec
    not rehydrated, success: call a person: git in the workspace could not take in what is new (status 1); mend it with bot-bottle exec
    infra, no report: retry: the shim died
    infra, success: retry: the shim died
    ");
}

#[test]
fn without_a_pull_request() {
    insta::assert_snapshot!(check(None, None, None), @"
    none, no report: call a person: the run has no verdict
    none, success: call a person: the run has no verdict
    publish, no report: freeze: the work is published
    publish, success: freeze: the work is published
    nothing, no report: call a person: no new commits
    nothing, success: freeze: the agent says that nothing needs a change
    unfinished, no report: call a person: not finished: out of time
    unfinished, success: call a person: not finished: out of time
    refused, no report: call a person: not to be published: too large: x; y
    refused, success: call a person: not to be published: too large: x; y
    set-up failed, no report: call a person: the bottle's set-up failed: status 4
    set-up failed, success: call a person: the bottle's set-up failed: status 4
    not rehydrated, no report: call a person: git in the workspace could not take in what is new (status 1); mend it with bot-bottle exec
    not rehydrated, success: call a person: git in the workspace could not take in what is new (status 1); mend it with bot-bottle exec
    infra, no report: retry: the shim died
    infra, success: retry: the shim died
    ");
}

#[test]
fn with_a_problem_of_publishing() {
    insta::assert_snapshot!(check(None, Some("origin rejected the branch"), None), @"
    none, no report: call a person: the work passed and is not published: origin rejected the branch
    none, success: call a person: the work passed and is not published: origin rejected the branch
    publish, no report: call a person: the work passed and is not published: origin rejected the branch
    publish, success: call a person: the work passed and is not published: origin rejected the branch
    nothing, no report: call a person: the work passed and is not published: origin rejected the branch
    nothing, success: call a person: the work passed and is not published: origin rejected the branch
    unfinished, no report: call a person: the work passed and is not published: origin rejected the branch
    unfinished, success: call a person: the work passed and is not published: origin rejected the branch
    refused, no report: call a person: the work passed and is not published: origin rejected the branch
    refused, success: call a person: the work passed and is not published: origin rejected the branch
    set-up failed, no report: call a person: the work passed and is not published: origin rejected the branch
    set-up failed, success: call a person: the work passed and is not published: origin rejected the branch
    not rehydrated, no report: call a person: the work passed and is not published: origin rejected the branch
    not rehydrated, success: call a person: the work passed and is not published: origin rejected the branch
    infra, no report: call a person: the work passed and is not published: origin rejected the branch
    infra, success: call a person: the work passed and is not published: origin rejected the branch
    ");
}

#[test]
fn with_a_quota_that_is_used_up() {
    insta::assert_snapshot!(check(Some(4), Some("x"), Some("2026-01-01T00:00:00Z")), @"
    none, no report: wait until 2026-01-01T00:00:00Z: the model's quota is used up
    none, success: wait until 2026-01-01T00:00:00Z: the model's quota is used up
    publish, no report: wait until 2026-01-01T00:00:00Z: the model's quota is used up
    publish, success: wait until 2026-01-01T00:00:00Z: the model's quota is used up
    nothing, no report: wait until 2026-01-01T00:00:00Z: the model's quota is used up
    nothing, success: wait until 2026-01-01T00:00:00Z: the model's quota is used up
    unfinished, no report: wait until 2026-01-01T00:00:00Z: the model's quota is used up
    unfinished, success: wait until 2026-01-01T00:00:00Z: the model's quota is used up
    refused, no report: wait until 2026-01-01T00:00:00Z: the model's quota is used up
    refused, success: wait until 2026-01-01T00:00:00Z: the model's quota is used up
    set-up failed, no report: wait until 2026-01-01T00:00:00Z: the model's quota is used up
    set-up failed, success: wait until 2026-01-01T00:00:00Z: the model's quota is used up
    not rehydrated, no report: wait until 2026-01-01T00:00:00Z: the model's quota is used up
    not rehydrated, success: wait until 2026-01-01T00:00:00Z: the model's quota is used up
    infra, no report: wait until 2026-01-01T00:00:00Z: the model's quota is used up
    infra, success: wait until 2026-01-01T00:00:00Z: the model's quota is used up
    ");
}
