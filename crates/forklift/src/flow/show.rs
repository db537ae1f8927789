//! Output of a run's result, for users and scripts.

use merge::contract::{ContractFormat, render_contract};
use run_store::run_dir::RunDir;
use serde_json::{Value, json};
use shell::Ui;

use super::record::{BranchEnd, ChangedCheck, ForkRunRecord, PullEnd, Withdrawal};
use crate::rules::STUCK_FILE;
use crate::rules::judge::Verdict;
use crate::rules::next_step::next_command;
use crate::rules::review::{ReviewPoint, review_points};
use crate::rules::run_facts::agent_facts;
use crate::rules::words::counted;
use engine::check::check_words;

/// Lines of the agent's note or of a command's output that are shown.
const LINES_SHOWN: usize = 20;

/// Points that are shown; more are counted.
const POINTS_SHOWN: usize = 10;

pub(crate) fn show_end(ui: &Ui, dir: &RunDir, meta: &ForkRunRecord, verdict: &Verdict) {
    let points = review_points(meta);
    ui.result("verdict", &verdict_words(meta, verdict, &points));
    show_points(ui, &points);
    ui.result("run", &dir.path().display().to_string());
    if let Some(cost) = agent_facts(meta).cost() {
        ui.result("cost", &cost);
    }
    if let Some(note) = meta.stuck.as_ref().filter(|_| *verdict == Verdict::Stuck) {
        ui.result("note", &dir.workspace().join(STUCK_FILE).display().to_string());
        show_quoted(ui, note.lines().take(LINES_SHOWN));
    }
    if let Some(sent) = &meta.publication {
        if let Some(pull) = &sent.pull {
            ui.result("pull", &format!("#{} {}", pull.number, pull.url));
        }
        if let Some(text) = &sent.pull_text {
            ui.result("pull text", &text.display().to_string());
        }
        if sent.pushed {
            let message = format!("{} at {} on origin", sent.branch, sent.commit.short());
            ui.result("branch", &message);
        } else {
            let message = format!("{} is kept in {}", sent.commit, dir.repo().display());
            ui.result("commit", &message);
        }
        if let Some(note) = &sent.note {
            ui.result("publish", note);
        }
        if let Some(problem) = &sent.problem {
            let what = if sent.pushed { "pull" } else { "branch" };
            ui.result(what, &format!("not published: {problem}"));
        }
    }
    if let Verdict::AwaitingReview { branch, pull, .. } = verdict {
        ui.result("branch", &format!("{branch} on origin"));
        if let Some(pull) = pull {
            ui.result("pull", pull);
        }
    }
    if let Some(withdrawal) = &meta.withdraws {
        show_withdrawal(ui, withdrawal);
    }
    if let Some(contract) = &meta.contract {
        for line in render_contract(contract, ContractFormat::Plain).lines() {
            ui.note(line);
        }
    }
    if let Some(check) = &meta.check_on_merge {
        let how = check_words(check);
        ui.note(&format!(
            "the check {how} on the merge without an agent, so the agent was started"
        ));
    }
    let defined =
        |changed: &&ChangedCheck| !(changed.files.is_empty() && changed.allowed.is_empty());
    if let Some(changed) = meta.check_changed.as_ref().filter(defined) {
        let files = changed.files.iter().chain(&changed.allowed).take(POINTS_SHOWN);
        let files: Vec<String> = files.map(ToString::to_string).collect();
        let how = check_words(&changed.with_agent_files);
        let files = files.join(", ");
        ui.note(&format!(
            "the agent changed files that define the check ({files}); with its files it {how}"
        ));
    }
    for (name, command) in [("set-up", &meta.setup), ("check", &meta.check)] {
        let Some(command) = command.as_ref().filter(|command| !command.passed()) else { continue };
        ui.result(name, &check_words(command));
        let skipped = command.tail.lines().count().saturating_sub(LINES_SHOWN);
        show_quoted(ui, command.tail.lines().skip(skipped));
    }
    if let Some(next) = next_command(meta, verdict) {
        ui.result("next", &next);
    }
    // The last event of a run.
    ui.event("verdict", &verdict_event(dir, meta, verdict, &points));
}

/// The verdict in words. That of a fix says nothing of an upstream that is integrated.
pub(crate) fn verdict_words(
    meta: &ForkRunRecord,
    verdict: &Verdict,
    points: &[ReviewPoint],
) -> String {
    match (&meta.fix, verdict) {
        (Some(fix), Verdict::Publish) => {
            let points = match points.len() {
                0 => "the fork's work is kept".to_owned(),
                count => format!("{} to look at first", counted(count, "point")),
            };
            format!("{}; {points}", fix.verdict())
        }
        _ => verdict.message_with(points.len(), meta.left_out_by_rule()),
    }
}

/// Shows what needs a look, worst first.
fn show_points(ui: &Ui, points: &[ReviewPoint]) {
    if points.is_empty() {
        return;
    }
    ui.result("needs look", &counted(points.len(), "point"));
    for ReviewPoint { path, what, .. } in points.iter().take(POINTS_SHOWN) {
        ui.item(&path.as_ref().map_or_else(|| what.clone(), |path| format!("{path}: {what}")));
    }
    let more = points.len().saturating_sub(POINTS_SHOWN);
    if more > 0 {
        ui.item(&format!("and {more} more"));
    }
}

fn show_withdrawal(ui: &Ui, withdrawal: &Withdrawal) {
    let Withdrawal { branch, pull, pull_end, branch_end, .. } = withdrawal;
    if let (Some(pull), Some(end)) = (pull, pull_end) {
        let how = match end {
            PullEnd::Closed => "closed",
            PullEnd::WasClosed => "was closed before",
        };
        ui.result("pull", &format!("#{} {} {how}", pull.number, pull.url));
    }
    match branch_end {
        Some(BranchEnd::Deleted) => ui.result("branch", &format!("{branch} deleted on origin")),
        Some(BranchEnd::WasGone) => ui.result("branch", &format!("{branch} was gone before")),
        Some(BranchEnd::Moved) => {
            ui.result("branch", &format!("{branch} stays: others have pushed to it"));
        }
        None => {}
    }
}

fn show_quoted<'a>(ui: &Ui, lines: impl Iterator<Item = &'a str>) {
    if !ui.is_json() {
        ui.page(&lines.map(|line| format!("  | {line}\n")).collect::<String>());
    }
}

/// The verdict for scripts: an event, and the input of the notification command.
pub(super) fn verdict_event(
    dir: &RunDir,
    meta: &ForkRunRecord,
    verdict: &Verdict,
    points: &[ReviewPoint],
) -> Value {
    json!({
        "run": dir.id(), "path": dir.path(), "project": meta.fork.path, "verdict": verdict,
        "words": verdict_words(meta, verdict, points), "fix": meta.fix, "status": meta.exit_status, "publication": meta.publication,
        "evidence": meta.evidence, "stuck": meta.stuck, "needs_look": points,
        "publish_mode": meta.settings.publish_mode, "check": meta.check, "check_changed": meta.check_changed, "ran_tests": meta.ran_tests, "tests": meta.tests, "withdraws": meta.withdraws,
        "next": next_command(meta, verdict),
    })
}
