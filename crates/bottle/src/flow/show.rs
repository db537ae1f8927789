//! The end of a run, for people and for machines.

use run_store::run_dir::RunDir;
use serde_json::json;
use shell::Ui;

use super::run_record::BottleRunRecord;
use crate::rules::judge::Verdict;

pub(crate) fn show_end(ui: &Ui, dir: &RunDir, meta: &BottleRunRecord) {
    ui.result("bottle", meta.slug.as_str());
    ui.result("run", &dir.path().display().to_string());
    if let Some(answer) = meta.agent_result.as_ref().and_then(|result| result.answer.as_ref()) {
        ui.result("answer", answer);
    }
    if let Some(done) = &meta.done {
        ui.result("done", &format!("{}: {}", done.status.name(), done.summary));
    }
    if meta.watchdog.is_some() {
        ui.result("watchdog", "the agent did not report for itself; the record may be incomplete");
    }
    if let Some(verdict) = &meta.verdict {
        ui.result("verdict", &verdict.words());
    }
    let tip = meta.evidence.as_ref().and_then(|evidence| evidence.tip.as_ref());
    match (&meta.publication, tip) {
        (Some(sent), _) => {
            if let Some(pull) = &sent.pull {
                ui.result("pull", &format!("#{} {}", pull.number, pull.url));
            }
            if let Some(problem) = &sent.problem {
                ui.result("publish", &format!("not published: {problem}"));
            }
        }
        (None, Some(tip)) => {
            let slug = &meta.slug;
            let take = match &meta.verdict {
                Some(Verdict::Publish) => {
                    format!(
                        "; take it with: bot-bottle apply {slug}, or bot-bottle checkout {slug}"
                    )
                }
                _ => String::new(),
            };
            let kept = format!("{} is kept; look at it with: bot-bottle diff {slug}", tip.short());
            ui.result("commits", &format!("{kept}{take}"));
        }
        (None, None) => {}
    }
    if let Some(left) = &meta.uncommitted {
        let place = format!("in no commit, only in the workspace: {}", left.words());
        ui.result("uncommitted", &place);
    }
    for scan in &meta.scans {
        ui.event("scan", &json!(scan));
    }
    let mut end = json!({
        "slug": meta.slug, "run": meta.run, "path": dir.path(), "verdict": meta.verdict,
        "publication": meta.publication, "done": meta.done, "watchdog_fired": meta.watchdog.is_some(),
        "status": meta.exit_status,
    });
    if let Some(left) = &meta.uncommitted {
        end["uncommitted"] = json!(left);
    }
    ui.event("end", &end);
}
