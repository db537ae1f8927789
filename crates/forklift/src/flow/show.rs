//! Output of a run's result, for users and scripts.

use merge::contract::{ContractFormat, render_contract};
use run_store::run_dir::RunDir;
use serde_json::{Value, json};

use super::record::ForkRunRecord;
use super::run::STUCK_FILE;
use crate::rules::judge::Verdict;
use shell::Ui;

/// Lines of the agent's note that are shown.
const STUCK_SHOWN: usize = 20;

pub(crate) fn show_end(ui: &Ui, dir: &RunDir, meta: &ForkRunRecord, verdict: &Verdict) {
    ui.result("verdict", &verdict.words());
    ui.result("run", &dir.path().display().to_string());
    if let Some(note) = meta.stuck.as_ref().filter(|_| *verdict == Verdict::Stuck) {
        ui.result("note", &dir.workspace().join(STUCK_FILE).display().to_string());
        if !ui.is_json() {
            let shown: Vec<_> =
                note.lines().take(STUCK_SHOWN).map(|line| format!("  | {line}\n")).collect();
            ui.page(&shown.concat());
        }
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
            let words = format!("{} at {} on origin", sent.branch, sent.commit.short());
            ui.result("branch", &words);
        } else {
            let words = format!("{} is kept in {}", sent.commit, dir.repo().display());
            ui.result("commit", &words);
        }
        if let Some(problem) = &sent.problem {
            let what = if sent.pushed { "pull" } else { "branch" };
            ui.result(what, &format!("not published: {problem}"));
        }
    }
    if let Some(contract) = &meta.contract {
        for line in render_contract(contract, ContractFormat::Plain).lines() {
            ui.note(line);
        }
    }
    for who in meta.evidence.iter().flat_map(|evidence| &evidence.foreign_identities) {
        ui.note(&format!("commit not by the box's own identity: {who}"));
    }
    for (name, chore) in [("set-up", &meta.setup), ("check", &meta.check)] {
        let Some(chore) = chore.as_ref().filter(|chore| !chore.passed()) else { continue };
        ui.result(name, &chore.how());
        if !ui.is_json() {
            let tail: Vec<_> = chore.tail.lines().rev().take(STUCK_SHOWN).collect();
            let shown: Vec<_> = tail.iter().rev().map(|line| format!("  | {line}\n")).collect();
            ui.page(&shown.concat());
        }
    }
    // The last event of a run.
    ui.event("verdict", &verdict_event(dir, meta, verdict));
}

/// The verdict for scripts: an event, and the input of the notification command.
pub(super) fn verdict_event(dir: &RunDir, meta: &ForkRunRecord, verdict: &Verdict) -> Value {
    json!({
        "run": dir.id(), "path": dir.path(), "project": meta.fork.path, "verdict": verdict,
        "words": verdict.words(), "status": meta.exit_status, "publication": meta.publication,
        "evidence": meta.evidence, "stuck": meta.stuck,
    })
}
