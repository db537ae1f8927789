//! `forklift runs`: the runs of this user, newest first.

use engine::publish::Publication;
use engine::run::Phase;
use jiff::{SignedDuration, Timestamp};
use model::exit::ForkliftExit;
use run_store::run_dir::{self, RunDir};
use serde_json::json;
use shell::Ui;

use super::ForkliftDirs;
use crate::exit::{OrExit, Outcome};
use crate::flow::record::ForkRunRecord;

pub(crate) fn cmd_runs(ui: &Ui) -> Outcome {
    let runs = run_dir::list(&ForkliftDirs::from_env()?.runs).or_machine()?;
    if ui.is_json() {
        let rows: Vec<_> = runs
            .iter()
            .map(|dir| {
                let meta = ForkRunRecord::load(dir).ok();
                json!({"run": dir.id(), "path": dir.path(), "metadata": meta})
            })
            .collect();
        ui.document(&rows);
        return Ok(ForkliftExit::Success);
    }
    let now = host::clock::now();
    let rows = runs.iter().map(|dir| row(dir, now).to_vec());
    ui.table(&["RUN", "AGE", "STATE", "PULL OR BRANCH", "VERDICT"], rows);
    Ok(ForkliftExit::Success)
}

fn row(dir: &RunDir, now: Timestamp) -> [String; 5] {
    let run = dir.id().to_string();
    match ForkRunRecord::load(dir) {
        Ok(meta) => {
            let state = if meta.phase == Phase::Closed { "closed" } else { "open" };
            let age = render_age(now.duration_since(meta.started_at));
            let sent = meta.publication.as_ref().map_or_else(|| "-".to_owned(), where_to);
            let verdict = meta.verdict.map_or_else(String::new, |verdict| verdict.message());
            [run, age, state.to_owned(), sent, verdict]
        }
        Err(error) => {
            [run, "-".to_owned(), "unreadable".to_owned(), "-".to_owned(), error.to_string()]
        }
    }
}

fn where_to(sent: &Publication) -> String {
    match (&sent.pull, &sent.problem) {
        (Some(pull), _) => pull.url.clone(),
        (None, None) => sent.branch.to_string(),
        (None, Some(_)) => "not published".to_owned(),
    }
}

/// In the largest unit that makes sense.
fn render_age(age: SignedDuration) -> String {
    let minutes = age.as_mins().max(0);
    match minutes {
        0..60 => format!("{minutes}m"),
        60..1440 => format!("{}h", minutes / 60),
        _ => format!("{}d", minutes / 1440),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_one_unit() {
        for (minutes, expected) in
            [(-5, "0m"), (0, "0m"), (59, "59m"), (60, "1h"), (1439, "23h"), (4320, "3d")]
        {
            assert_eq!(render_age(SignedDuration::from_mins(minutes)), expected);
        }
    }
}
