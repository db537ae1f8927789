//! `forklift trust`: measured precision of each class of answers in this fork.

use std::path::Path;

use clap::Args;
use merge::resolver::history::Learned;
use merge::resolver::record::{PrecisionRecord, PrecisionTally};
use merge::resolver::structure::StructureRecord;
use merge::resolver::table::Table;
use model::exit::ForkliftExit;
use serde_json::json;
use shell::Ui;

use super::history::{ForkHistory, HistoryArgs};
use super::{ForkliftDirs, block_on};
use crate::exit::Outcome;
use crate::rules::replay_page::one_sided;
use crate::rules::words::counted;

/// Show how far each kind of answer to a conflict is trusted in this fork, and why
#[derive(Debug, Clone, Args)]
pub(crate) struct TrustArgs {
    #[command(flatten)]
    fork: HistoryArgs,
}

pub(crate) fn cmd_trust(ui: &Ui, args: &TrustArgs, directory: Option<&Path>) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    let (learned, structure) = block_on(async {
        let fork = ForkHistory::find(&args.fork, directory).await?;
        let quiet = ui.without_events();
        quiet.phase("learn", "learning from the merges of this fork");
        let learned = fork.learned(&quiet, &places.cache).await?;
        Ok((learned, fork.structure(&places.cache)))
    })?;
    let rows = rows(&learned, structure.as_ref());
    if ui.is_json() {
        ui.document(&json!({
            "merges": learned.seen.len(),
            "skipped": learned.skipped,
            "one_sided": learned.one_sided,
            "structure": structure.map(|structure| structure.program),
            "answer_classes": rows,
        }));
    } else {
        ui.page(&render(&learned, structure.as_ref()));
        if rows.is_empty() {
            ui.line("No conflict is known yet: every answer counts as measured elsewhere.");
            return Ok(ForkliftExit::Success);
        }
        ui.table(
            &["ANSWER", "CASES", "AGREED", "HERE", "ELSEWHERE"],
            rows.iter().map(TrustRow::cells),
        );
    }
    Ok(ForkliftExit::Success)
}

#[derive(serde::Serialize)]
struct TrustRow {
    answer_class: String,
    cases: f64,
    agreed: f64,
    here: f64,
    elsewhere: f64,
}

/// Rows, most cases first.
fn rows(learned: &Learned, structure: Option<&StructureRecord>) -> Vec<TrustRow> {
    let table = Table::shipped();
    let records =
        [Some(&learned.knowledge.record), structure.map(|it| &it.record)].into_iter().flatten();
    let row = |record: &PrecisionRecord, answer_class: &str, tally: &PrecisionTally| TrustRow {
        answer_class: answer_class.to_owned(),
        cases: tally.cases,
        agreed: tally.agreed,
        here: record.precision(table, answer_class),
        elsewhere: table.answer_classes.get(answer_class).copied().unwrap_or(0.5),
    };
    let mut rows: Vec<TrustRow> = records
        .flat_map(|record| {
            record
                .answer_classes()
                .map(move |(answer_class, tally)| row(record, answer_class, tally))
        })
        .collect();
    rows.sort_by(|one, other| other.cases.total_cmp(&one.cases));
    rows
}

impl TrustRow {
    fn cells(&self) -> Vec<String> {
        vec![
            self.answer_class.clone(),
            format!("{:.1}", self.cases),
            format!("{:.1}", self.agreed),
            format!("{:.2}", self.here),
            format!("{:.2}", self.elsewhere),
        ]
    }
}

fn render(learned: &Learned, structure: Option<&StructureRecord>) -> String {
    let mut text =
        format!("Learned from {}; old cases fade.\n", counted(learned.seen.len(), "merge"));
    if let Some(structure) = structure {
        text += &format!("{} was tried on {} of them.\n", structure.program, structure.seen.len());
    }
    if learned.one_sided > 0 {
        text += &format!("{}\n", one_sided(learned.one_sided));
    }
    for skipped in &learned.skipped {
        text += &format!("{} was left out: {}\n", skipped.merge.short(), skipped.why);
    }
    text
}
