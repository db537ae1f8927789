//! Makes the shipped table from forks. Whatever is said about one fork is learned from the others only.

use std::collections::BTreeMap;

use merge::resolver::analysis::analyze_hunk;
use merge::resolver::decide::best_texts;
use merge::resolver::habit::{Resolution, Shares};
use merge::resolver::hunk::hunks;
use merge::resolver::knowledge::{Knowledge, ReplayedConflict, basis_cases};
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

/// What each fork teaches, kept apart, so that a table can be made without any one of them.
pub(crate) struct Lessons {
    views: Vec<View>,
    records: Vec<Records>,
    scores: Vec<Scores>,
    bases: Vec<BTreeMap<String, f64>>,
}

impl Lessons {
    /// Replays every fork three times, each time with a table of the others: for the precision of the answer classes, for
    /// the features of whole answers, and for the bases.
    pub(crate) fn gather(forks: &[Fork]) -> Self {
        let views: Vec<View> = forks.iter().map(view).collect();
        let mut lessons =
            Self { views, records: Vec::new(), scores: Vec::new(), bases: Vec::new() };
        let tables = |lessons: &Self| -> Vec<Table> {
            (0..forks.len()).map(|at| lessons.table(Some(at))).collect()
        };
        let of = |tables: Vec<Table>| forks.iter().zip(tables);
        lessons.records = of(tables(&lessons)).map(|(fork, it)| records_of(fork, &it)).collect();
        lessons.scores = of(tables(&lessons)).map(|(fork, it)| Scores::of(fork, &it)).collect();
        lessons.bases = of(tables(&lessons)).map(|(fork, it)| bases_of(fork, &it)).collect();
        lessons
    }

    /// The table that the forks teach, without one of them where wanted.
    pub(crate) fn table(&self, without: Option<usize>) -> Table {
        let mut scores = Scores::default();
        for one in others(&self.scores, without) {
            scores.by_hunks.extend(one.by_hunks.iter().cloned());
            scores.whole.extend(one.whole.iter().cloned());
        }
        Table {
            answer_classes: priors(others(&self.records, without)),
            by_hunks: fit(&scores.by_hunks, 1.0),
            whole: fit(&scores.whole, 1.0),
            bases: mean_bases(others(&self.bases, without)),
            ..first_table(others(&self.views, without).collect())
        }
    }
}

fn others<T>(all: &[T], without: Option<usize>) -> impl Iterator<Item = &T> {
    all.iter().enumerate().filter(move |(at, _)| Some(*at) != without).map(|(_, one)| one)
}

/// Share of merges in which the answers on a basis were right, in one fork.
fn bases_of(fork: &Fork, table: &Table) -> BTreeMap<String, f64> {
    let mut shares: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for replayed in replayed(fork, table) {
        let mut counts: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        for case in replayed.iter().flat_map(basis_cases) {
            let count = counts.entry(case.basis).or_default();
            count.0 += 1.0;
            count.1 += f64::from(u8::from(case.agreed));
        }
        for (basis, (cases, agreed)) in counts {
            shares.entry(basis.to_owned()).or_default().push(agreed / cases);
        }
    }
    shares.into_iter().map(|(basis, shares)| (basis, mean(&shares, 0.0))).collect()
}

/// The mean over forks: each has one voice. Sceptical where few forks have a basis.
fn mean_bases<'a>(forks: impl Iterator<Item = &'a BTreeMap<String, f64>>) -> BTreeMap<String, f64> {
    let mut shares: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (basis, share) in forks.flatten() {
        shares.entry(basis.clone()).or_default().push(*share);
    }
    shares.into_iter().map(|(basis, shares)| (basis, rounded(mean(&shares, 2.0)))).collect()
}

/// The mean with this many cases of a half beside it.
fn mean(shares: &[f64], doubts: f64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    let count = shares.len() as f64;
    (shares.iter().sum::<f64>() + doubts * 0.5) / (count + doubts)
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

fn first_table(views: Vec<&View>) -> Table {
    let mut cases = Vec::new();
    for view in &views {
        let weight = voice(TOKEN_VOICE, view.tokens.len());
        cases.extend(view.tokens.iter().map(|(features, held)| Case {
            features: features.clone(),
            held: *held,
            weight,
        }));
    }
    Table {
        files: shares(views.iter().map(|view| &view.files)),
        hunks: shares(views.iter().map(|view| &view.hunks)),
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
    for replayed in replayed(fork, table) {
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
) -> impl Iterator<Item = Vec<ReplayedConflict>> + 'a {
    let mut knowledge = Knowledge::default();
    fork.merges.iter().map(move |merge| {
        replay_merge(table, &mut knowledge, &merge.sha, merge.facts.conflicts.clone())
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
fn priors<'a>(records: impl Iterator<Item = &'a Records>) -> BTreeMap<String, f64> {
    let mut sums: Records = Records::new();
    for records in records {
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
    fn of(fork: &Fork, table: &Table) -> Self {
        let (mut by_hunks, mut whole) = (Vec::new(), Vec::new());
        for replayed in replayed(fork, table) {
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
        let weighed = |cases: Vec<(Vec<f64>, bool)>| {
            let weight = voice(SCORE_VOICE, cases.len());
            cases.into_iter().map(|(features, held)| Case { features, held, weight }).collect()
        };
        Self { by_hunks: weighed(by_hunks), whole: weighed(whole) }
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
