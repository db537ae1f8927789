//! Makes the shipped table from forks. Whatever is said about one fork is learned from the others only.

use std::collections::BTreeMap;

use merge::resolver::analysis::analyze_hunk;
use merge::resolver::decide::best_texts;
use merge::resolver::habit::{Resolution, Shares};
use merge::resolver::hunk::hunks;
use merge::resolver::knowledge::{Knowledge, ReplayedConflict};
use merge::resolver::replay::replay_merge;
use merge::resolver::scorer::{choice_of, kind_of, sides_of, token_features};
use merge::resolver::table::Table;
use merge::three::text::bare;

use crate::fit::{Case, fit};
use crate::load::Fork;

/// No fork has more voice than so many cases.
const TOKEN_VOICE: f64 = 120.0;
const CLASS_VOICE: f64 = 40.0;
const SCORE_VOICE: f64 = 300.0;

/// The table that these forks teach.
pub(crate) fn learn_table(forks: &[&Fork]) -> Table {
    let views: Vec<View> = forks.iter().map(|fork| view(fork)).collect();
    let first: Vec<Table> = (0..forks.len()).map(|at| first_table(&views, Some(at))).collect();
    let records: Vec<Records> =
        forks.iter().zip(&first).map(|(fork, table)| records_of(fork, table)).collect();
    let mut scores = Scores::default();
    for (at, (fork, table)) in forks.iter().zip(first).enumerate() {
        let table = Table { answer_classes: priors(&records, Some(at)), ..table };
        scores.take(fork, &table);
    }
    Table {
        answer_classes: priors(&records, None),
        by_hunks: fit(&scores.by_hunks, 1.0),
        whole: fit(&scores.whole, 1.0),
        ..first_table(&views, None)
    }
}

/// What needs no past: choices and token merges.
struct View {
    files: BTreeMap<String, BTreeMap<Resolution, f64>>,
    hunks: BTreeMap<String, BTreeMap<Resolution, f64>>,
    tokens: Vec<(Vec<f64>, bool)>,
}

fn view(fork: &Fork) -> View {
    let mut view = View { files: BTreeMap::new(), hunks: BTreeMap::new(), tokens: Vec::new() };
    for merge in &fork.merges {
        let conflict_count = merge.facts.conflicts.len();
        for (conflict, human) in &merge.facts.conflicts {
            let kind = view.files.entry(kind_of(conflict)).or_default();
            *kind.entry(human.choice).or_default() += 1.0;
            let count = hunks(&conflict.pieces).count();
            for (hunk, answer) in hunks(&conflict.pieces).zip(&human.hunks) {
                let analysis = analyze_hunk(hunk);
                let choice = answer
                    .as_ref()
                    .map_or(Resolution::Other, |answer| choice_of(hunk, &analysis, answer));
                let sides = view.hunks.entry(sides_of(hunk).to_owned()).or_default();
                *sides.entry(choice).or_default() += 1.0;
                if let Some(text) = analysis.apart.as_ref().or(analysis.touching.as_ref()) {
                    let held = answer.as_ref().is_some_and(|answer| bare(answer) == bare(text));
                    view.tokens
                        .push((token_features(&analysis, count, conflict_count).to_vec(), held));
                }
            }
        }
    }
    view
}

fn first_table(views: &[View], without: Option<usize>) -> Table {
    let others = || {
        views.iter().enumerate().filter(move |(at, _)| Some(*at) != without).map(|(_, view)| view)
    };
    let mut cases = Vec::new();
    for view in others() {
        let weight = voice(TOKEN_VOICE, view.tokens.len());
        cases.extend(view.tokens.iter().map(|(features, held)| Case {
            features: features.clone(),
            held: *held,
            weight,
        }));
    }
    Table {
        files: shares(others().map(|view| &view.files)),
        hunks: shares(others().map(|view| &view.hunks)),
        token: fit(&cases, 2.0),
        ..Table::default()
    }
}

fn shares<'a>(
    counts: impl Iterator<Item = &'a BTreeMap<String, BTreeMap<Resolution, f64>>>,
) -> BTreeMap<String, Shares> {
    let mut sums: BTreeMap<String, Shares> = BTreeMap::new();
    for (kind, choices) in counts.flatten() {
        let sum = sums.entry(kind.clone()).or_default();
        for (choice, count) in choices {
            *sum.entry(*choice).or_default() += count;
        }
    }
    for choices in sums.values_mut() {
        let all: f64 = choices.values().sum();
        choices.values_mut().for_each(|count| *count = rounded((*count + 1.0) / (all + 3.0)));
    }
    sums
}

/// Cases and agreements by answer class.
type Records = BTreeMap<String, (f64, f64)>;

fn records_of(fork: &Fork, table: &Table) -> Records {
    let mut records = Records::new();
    for (_, replayed) in replayed(fork, table) {
        for one in &replayed {
            for (answer_class, agreed) in answers_of(one) {
                let record = records.entry(answer_class).or_default();
                record.0 += 1.0;
                record.1 += f64::from(u8::from(agreed));
            }
        }
    }
    records
}

fn replayed<'a>(
    fork: &'a Fork,
    table: &'a Table,
) -> impl Iterator<Item = (usize, Vec<ReplayedConflict>)> + 'a {
    let mut knowledge = Knowledge::default();
    fork.merges.iter().map(move |merge| {
        let replayed =
            replay_merge(table, &mut knowledge, &merge.sha, merge.facts.conflicts.clone());
        (replayed.len(), replayed)
    })
}

fn answers_of(replayed: &ReplayedConflict) -> Vec<(String, bool)> {
    let ReplayedConflict { conflict, human, scored } = replayed;
    let mut answers = Vec::new();
    if let Some(whole) = &scored.whole {
        let agreed = human.agree_with_choice(conflict, whole.choice);
        answers.push((whole.answer_class.name.clone(), agreed));
    }
    for (hunk, answer) in scored.hunks.iter().zip(&human.hunks) {
        let answer = answer.as_deref().map(bare);
        for candidate in &hunk.candidates {
            let agreed = answer.as_ref().is_some_and(|answer| *answer == bare(&candidate.text));
            answers.push((candidate.answer_class.name.clone(), agreed));
        }
    }
    answers
}

/// Sceptical where little is known.
fn priors(records: &[Records], without: Option<usize>) -> BTreeMap<String, f64> {
    let mut sums: Records = Records::new();
    for (at, records) in records.iter().enumerate() {
        if Some(at) == without {
            continue;
        }
        for (answer_class, (cases, agreed)) in records {
            let weight = (CLASS_VOICE / cases).min(1.0);
            let sum = sums.entry(answer_class.clone()).or_default();
            sum.0 += cases * weight;
            sum.1 += agreed * weight;
        }
    }
    sums.into_iter()
        .map(|(answer_class, (cases, agreed))| {
            (answer_class, rounded((agreed + 1.0) / (cases + 2.0)))
        })
        .collect()
}

#[derive(Default)]
struct Scores {
    by_hunks: Vec<Case>,
    whole: Vec<Case>,
}

impl Scores {
    fn take(&mut self, fork: &Fork, table: &Table) {
        let (mut by_hunks, mut whole) = (Vec::new(), Vec::new());
        for (_, replayed) in replayed(fork, table) {
            for ReplayedConflict { conflict, human, scored } in replayed {
                if let Some(found) = &scored.whole {
                    let held = human.agree_with_choice(&conflict, found.choice);
                    whole.push((found.features.to_vec(), held));
                }
                if let Some(found) = &scored.by_hunks {
                    let texts: Vec<&[u8]> = best_texts(&scored).collect();
                    let held = human.agree_with_hunks(&conflict, &texts);
                    by_hunks.push((found.features.to_vec(), held));
                }
            }
        }
        for (cases, all) in [(by_hunks, &mut self.by_hunks), (whole, &mut self.whole)] {
            let weight = voice(SCORE_VOICE, cases.len());
            all.extend(cases.into_iter().map(|(features, held)| Case { features, held, weight }));
        }
    }
}

fn voice(most: f64, cases: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    let cases = cases.max(1) as f64;
    (most / cases).min(1.0)
}

fn rounded(share: f64) -> f64 {
    (share * 1e4).round() / 1e4
}
