//! Output of a run's result, for users and scripts.

use merge::contract::{ContractFormat, render_contract};
use run_store::run_dir::RunDir;
use serde_json::{Value, json};
use shell::Ui;

use super::record::ForkRunRecord;
use crate::rules::STUCK_FILE;
use crate::rules::check_text::check_words;
use crate::rules::judge::{Verdict, held_changes, objections};
use crate::rules::review::{ReviewPoint, review_points};
use crate::rules::words::counted;

/// Lines of the agent's note or of a command's output that are shown.
const LINES_SHOWN: usize = 20;

/// Paths that the next command names.
const PATHS_NAMED: usize = 4;

/// Points that are shown; more are counted.
const POINTS_SHOWN: usize = 10;

pub(crate) fn show_end(ui: &Ui, dir: &RunDir, meta: &ForkRunRecord, verdict: &Verdict) {
    let points = review_points(meta);
    ui.result("verdict", &verdict.message_with(points.len(), meta.left_out_by_rule()));
    show_points(ui, &points);
    ui.result("run", &dir.path().display().to_string());
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
        if let Some(note) = &sent.note {
            ui.note(note);
        }
        if sent.pushed {
            let message = format!("{} at {} on origin", sent.branch, sent.commit.short());
            ui.result("branch", &message);
        } else {
            let message = format!("{} is kept in {}", sent.commit, dir.repo().display());
            ui.result("commit", &message);
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
    if let Some(flags) = flags_to_publish(meta, verdict) {
        ui.result("next", &format!("forklift publish {}{flags}", dir.id()));
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
    if let Some(changed) = &meta.check_changed {
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
    // The last event of a run.
    ui.event("verdict", &verdict_event(dir, meta, verdict, &points));
}

/// Shows what needs a look, worst first.
fn show_points(ui: &Ui, points: &[ReviewPoint]) {
    if points.is_empty() {
        return;
    }
    ui.result("needs look", &counted(points.len(), "point"));
    for ReviewPoint { path, what } in points.iter().take(POINTS_SHOWN) {
        ui.item(&path.as_ref().map_or_else(|| what.clone(), |path| format!("{path}: {what}")));
    }
    let more = points.len().saturating_sub(POINTS_SHOWN);
    if more > 0 {
        ui.item(&format!("and {more} more"));
    }
}

/// Flags of the command that publishes a closed run later; `None` if there is nothing to publish.
fn flags_to_publish(meta: &ForkRunRecord, verdict: &Verdict) -> Option<String> {
    let sent = meta.publication.as_ref();
    match verdict {
        Verdict::Publish if sent.is_some_and(|sent| sent.problem.is_some()) => Some(String::new()),
        Verdict::WorkLost | Verdict::TestsLost { .. } => Some(" --accept-loss".to_owned()),
        Verdict::UpstreamDropped { .. } => Some(" --accept-dropped".to_owned()),
        Verdict::Refused { .. } => {
            // Other reasons stay whatever is allowed.
            let evidence = meta.evidence.as_ref()?;
            let allowed = meta.settings.allowed_paths();
            let paths = held_changes(evidence, &allowed).map(|change| change.path.clone());
            let paths: Vec<String> = paths.collect();
            let allowed = [allowed, paths.clone()].concat();
            objections(evidence, &allowed).is_empty().then(|| allow_flags(&paths))?
        }
        Verdict::CheckFailed { .. } => {
            let changed = meta.check_changed.as_ref()?;
            let paths: Vec<String> = changed.files.iter().map(ToString::to_string).collect();
            changed.with_agent_files.passed().then(|| allow_flags(&paths))?
        }
        _ => None,
    }
}

/// Flags that allow these paths; `None` if there are none or many, or if a name means something to a shell or as a pattern.
fn allow_flags(paths: &[String]) -> Option<String> {
    let is_plain = |path: &String| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
        path.chars().all(is_plain) && !path.starts_with('-')
    };
    let can_be_typed = (1..=PATHS_NAMED).contains(&paths.len()) && paths.iter().all(is_plain);
    can_be_typed.then(|| paths.iter().map(|path| format!(" --allow-path {path}")).collect())
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
        "words": verdict.message_with(points.len(), meta.left_out_by_rule()), "status": meta.exit_status, "publication": meta.publication,
        "evidence": meta.evidence, "stuck": meta.stuck, "needs_look": points,
        "check": meta.check, "check_changed": meta.check_changed, "tests": meta.tests,
    })
}
