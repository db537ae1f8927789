//! Notification: the user's own command, with the verdict as JSON on its standard input.

use std::time::Duration;

use host::process::{RunLimits, run_with_input};
use host::signal::Cancel;
use model::command::{CommandExit, CommandSpec};
use run_store::run_dir::RunDir;
use shell::Ui;

use super::record::ForkRunRecord;
use super::show::verdict_event;
use crate::rules::judge::Verdict;
use crate::rules::review::review_points;

const LIMIT: Duration = Duration::from_secs(60);

/// Runs the command, if there is one. Its failure does not change the verdict, which is recorded already.
pub(super) async fn notify(ui: &Ui, dir: &RunDir, meta: &ForkRunRecord) {
    let Some(line) = &meta.settings.notify_cmd else { return };
    let verdict = meta.verdict.clone().unwrap_or(Verdict::UpToDate);
    let text = format!("{}\n", verdict_event(dir, meta, &verdict, &review_points(meta)));
    let mut spec = CommandSpec::new("/bin/sh").args(["-c", line]).cwd(&meta.fork.path);
    for (name, value) in host::env::vars_os() {
        spec = spec.env(name, value);
    }
    let limits = RunLimits { timeout: Some(LIMIT), ..RunLimits::default() };
    let problem = match run_with_input(&spec, text.as_bytes(), &limits, &Cancel::new()).await {
        Ok(output) if output.exit == CommandExit::Exited(0) => return,
        Ok(output) => format!("{:?}", output.exit),
        Err(error) => error.to_string(),
    };
    ui.note(&format!("the notification command failed: {problem}"));
}
