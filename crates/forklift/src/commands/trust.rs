//! `forklift trust`: what is resolved without an agent in this fork, and how often that was right.

use std::path::Path;

use clap::Args;
use merge::resolver::decide::TrustThreshold;
use merge::resolver::history::Learned;
use merge::resolver::record::{PrecisionRecord, PrecisionTally};
use merge::resolver::replay::ReplayScore;
use merge::resolver::standing::{Standing, stated};
use merge::resolver::structure::StructureRecord;
use merge::resolver::table::Table;
use model::exit::ForkliftExit;
use serde_json::json;
use shell::Ui;

use super::history::{ForkHistory, HistoryArgs};
use super::{ForkliftDirs, block_on_stoppable};
use crate::exit::Outcome;
use crate::rules::replay_summary::one_sided;
use crate::rules::words::counted;

/// Show what is resolved without an agent in this fork, and how often that was right in its past
#[derive(Debug, Clone, Args)]
pub(crate) struct TrustArgs {
    #[command(flatten)]
    fork: HistoryArgs,
    /// Show the measured values of every class of answers, too
    #[arg(long)]
    all: bool,
}

pub(crate) fn cmd_trust(ui: &Ui, args: &TrustArgs, directory: Option<&Path>) -> Outcome {
    let places = ForkliftDirs::from_env()?;
    let (learned, structure) = block_on_stoppable(async {
        let fork = ForkHistory::find(&args.fork, directory, &places).await?;
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
            "past": learned.past(TrustThreshold::DEFAULT),
            "bases": basis_rows(&learned),
            "structure": structure.map(|structure| structure.program),
            "answer_classes": rows,
        }));
        return Ok(ForkliftExit::Success);
    }
    ui.page(&render(&learned, structure.as_ref(), &basis_rows(&learned)));
    if args.all {
        ui.line(LEGEND);
        ui.table(
            &["ANSWER", "CASES", "AGREED", "HERE", "ELSEWHERE"],
            rows.iter().map(TrustRow::cells),
        );
    } else {
        ui.line("How far each kind of answer is trusted, in numbers: forklift trust --all");
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

const LEGEND: &str = "Cases and agreed: answers of a class in this fork's merges, and those that people committed, old ones fading. \
    Here and elsewhere: the share that agrees, in this fork and in other public forks. No answer counts for more than the kind it rests on.";

/// A kind of answer in this fork.
#[derive(serde::Serialize)]
struct BasisRow {
    basis: String,
    /// Merges in which all answers of the kind were right; old ones fade.
    held: f64,
    failed: f64,
    /// Most confidence of a single answer of the kind.
    bound: f64,
}

/// Kinds of answers that this fork's merges say something about, the surest first.
fn basis_rows(learned: &Learned) -> Vec<BasisRow> {
    let standings = &learned.knowledge.standings;
    let row = |(basis, standing): (&str, &Standing)| BasisRow {
        basis: basis.to_owned(),
        held: standing.held,
        failed: standing.failed,
        bound: stated(standings.bound(Table::shipped(), basis, "", 1)),
    };
    let mut rows: Vec<BasisRow> = standings.bases().map(row).collect();
    rows.sort_by(|one, other| other.bound.total_cmp(&one.bound));
    rows
}

fn render(learned: &Learned, structure: Option<&StructureRecord>, bases: &[BasisRow]) -> String {
    let trust = TrustThreshold::DEFAULT;
    let ReplayScore { merges, files, files_resolved, files_agreed, .. } = learned.past(trust);
    let mut text = format!(
        "Learned from {}, {merges} of them with conflicts; old ones fade.\n",
        counted(learned.seen.len(), "merge")
    );
    if files > 0 {
        text += &format!(
            "In that past, at trust {trust}: of {} in conflict {files_resolved} would have been resolved without an agent, \
            {files_agreed} of them as people did.\n",
            counted(files, "file")
        );
    }
    let (trusted, open): (Vec<&BasisRow>, Vec<&BasisRow>) =
        bases.iter().partition(|row| trust.allows(row.bound));
    text += &format!(
        "Resolved here from now on: {}.\n",
        named(&trusted, "only what FORK.md has a rule for")
    );
    text += &format!("Left to the agent: {}.\n", named(&open, "everything that is not known yet"));
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

fn named(rows: &[&BasisRow], none: &str) -> String {
    if rows.is_empty() {
        return none.to_owned();
    }
    let name = |row: &&BasisRow| {
        let merges = (row.held + row.failed).round();
        format!("{} (held in {:.0} of {merges:.0})", basis_name(&row.basis), row.held)
    };
    rows.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// A kind of answer in words.
fn basis_name(basis: &str) -> &str {
    match basis {
        "deleted-by-fork absent" => "deletions of the fork that upstream changed",
        "deleted-by-fork theirs" => "deletions of the fork that come back",
        "deleted-upstream absent" => "deletions of upstream that the fork changed",
        "deleted-upstream ours" => "deletions of upstream that stay in the fork",
        "binary ours" => "binary files as the fork has them",
        "binary theirs" => "binary files as upstream has them",
        "whole-file ours" => "text files as the fork has them",
        "whole-file theirs" => "text files as upstream has them",
        "same-file" => "the same conflict as in another merge",
        "hunks same-hunk" => "the same hunk as in an earlier merge",
        "hunks similar-hunk" => "a hunk like one of an earlier merge",
        "hunks whitespace" => "differences in whitespace",
        "hunks contained" => "changes that contain the other side's",
        "hunks words" => "changes to different words",
        "hunks both" => "lines that both sides added",
        "hunks hunk" => "the side that people usually take at a path",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use merge::path::TreePath;
    use merge::resolver::habit::Resolution;
    use merge::resolver::replayed::{Otherwise, ReplayedAnswer, ReplayedFile, ReplayedMerge};
    use merge::resolver::standing::BasisCase;
    use model::id::Sha;

    use super::*;

    /// Nine of forty are resolved, the last of them otherwise than people did.
    fn file(number: usize) -> ReplayedFile {
        let otherwise = (number == 8).then(|| Otherwise {
            resolver: Resolution::Ours,
            people: Resolution::Theirs,
            hunks: Vec::new(),
            more: 0,
        });
        let answer = ReplayedAnswer { confidence: 0.95, basis: String::new(), otherwise };
        let answers = if number < 9 { vec![answer] } else { Vec::new() };
        ReplayedFile { path: TreePath::new("a"), answers }
    }

    fn learned(merges: usize) -> Learned {
        let mut learned = Learned::default();
        for _ in 0..merges {
            let case = |basis, agreed| BasisCase { basis, path: "src/a".to_owned(), agreed };
            let cases = [case("deleted-by-fork absent", true), case("hunks words", false)];
            learned.knowledge.standings.learn(&cases);
        }
        learned.replayed = vec![ReplayedMerge {
            merge: Sha::parse(&"a".repeat(40)).unwrap(),
            conflicts: 40,
            files: (0..40).map(file).collect(),
            merge_ms: 1,
            resolver_ms: 1,
        }];
        learned
    }

    #[test]
    fn a_fork_is_told_in_a_few_lines_what_is_resolved_in_it() {
        let learned = learned(12);
        insta::assert_snapshot!(render(&learned, None, &basis_rows(&learned)), @r"
        Learned from 0 merges, 1 of them with conflicts; old ones fade.
        In that past, at trust 0.9: of 40 files in conflict 9 would have been resolved without an agent, 8 of them as people did.
        Resolved here from now on: deletions of the fork that upstream changed (held in 9 of 9).
        Left to the agent: changes to different words (held in 0 of 9).
        ");
    }

    #[test]
    fn nothing_is_promised_to_a_fork_without_merges() {
        let text = render(&Learned::default(), None, &[]);
        insta::assert_snapshot!(text, @r"
        Learned from 0 merges, 0 of them with conflicts; old ones fade.
        Resolved here from now on: only what FORK.md has a rule for.
        Left to the agent: everything that is not known yet.
        ");
    }
}
