//! Notification: the user's own command, with the verdict of a run or the failure of a sync as JSON on its standard input.

use std::path::Path;
use std::time::Duration;

use host::process::{RunLimits, run_with_input};
use host::signal::Cancel;
use model::command::{CommandExit, CommandSpec};
use run_store::run_dir::RunDir;
use serde_json::Value;
use shell::Ui;

use super::record::ForkRunRecord;
use super::show::verdict_event;
use crate::rules::judge::Verdict;
use crate::rules::review::review_points;

const LIMIT: Duration = Duration::from_secs(60);

/// Runs the command about a finished run, if there is one. Its failure does not change the verdict, which is recorded already.
pub(super) async fn notify(ui: &Ui, dir: &RunDir, meta: &ForkRunRecord) {
    let Some(line) = &meta.settings.notify_cmd else { return };
    let verdict = meta.verdict.clone().unwrap_or(Verdict::UpToDate);
    let event = verdict_event(dir, meta, &verdict, &review_points(meta));
    run_notification(ui, line, &meta.fork.path, &event).await;
}

/// Runs the command with an event on its standard input. Returns whether it succeeded.
pub(super) async fn run_notification(ui: &Ui, line: &str, folder: &Path, event: &Value) -> bool {
    let text = format!("{event}\n");
    let mut spec = CommandSpec::new("/bin/sh").args(["-c", line]).cwd(folder);
    for (name, value) in host::env::vars_os() {
        spec = spec.env(name, value);
    }
    let limits = RunLimits { timeout: Some(LIMIT), ..RunLimits::default() };
    let problem = match run_with_input(&spec, text.as_bytes(), &limits, &Cancel::new()).await {
        Ok(output) if output.exit == CommandExit::Exited(0) => return true,
        Ok(output) => format!("{:?}", output.exit),
        Err(error) => error.to_string(),
    };
    ui.note(&format!("the notification command failed: {problem}"));
    false
}
