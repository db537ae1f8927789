//! `forklift runs`: the runs of this user, newest first.

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use model::verdict::ForkliftStatus;
use serde_json::json;
use store::metadata::load_metadata;
use store::run_dir::{self, RunDir};

use super::Places;
use crate::exit::{OrExit, Outcome};
use crate::flow::metadata::{Metadata, Phase};
use crate::ui::Ui;

/// Lists them.
pub(crate) fn run(ui: &Ui) -> Outcome {
    let runs = run_dir::list(&Places::from_env()?.runs).or_exit(ForkliftStatus::Machine)?;
    if ui.is_json() {
        let rows: Vec<_> = runs
            .iter()
            .map(|dir| {
                let meta = load_metadata::<Metadata>(dir).ok();
                json!({"run": dir.id(), "path": dir.path(), "metadata": meta})
            })
            .collect();
        ui.document(&rows);
        return Ok(ForkliftStatus::Success);
    }
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(["RUN", "STATE", "VERDICT"]);
    for dir in &runs {
        table.add_row(row(dir));
    }
    ui.page(&format!("{table}\n"));
    Ok(ForkliftStatus::Success)
}

fn row(dir: &RunDir) -> [String; 3] {
    match load_metadata::<Metadata>(dir) {
        Ok(meta) => {
            let state = if meta.phase == Phase::Closed { "closed" } else { "open" };
            let verdict = meta.verdict.map_or_else(String::new, |verdict| verdict.words());
            [dir.id().to_string(), state.to_owned(), verdict]
        }
        Err(error) => [dir.id().to_string(), "unreadable".to_owned(), error.to_string()],
    }
}
