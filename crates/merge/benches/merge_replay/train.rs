//! Makes the shipped table from forks. Whatever is said about one fork is learned from the others only.

use std::collections::BTreeMap;

use merge::ladder::decide::best_texts;
use merge::ladder::habit::{Choice, Shares};
use merge::ladder::hunk::hunks;
use merge::ladder::knowledge::{Knowledge, Settled};
use merge::ladder::plain::look;
use merge::ladder::replay::relive;
use merge::ladder::table::Table;
use merge::ladder::weigh::{choice_of, kind_of, sides_of, token_signs};
use merge::three::text::bare;

use crate::fit::{Case, fit};
use crate::load::Fork;

/// No fork has more voice than so many cases.
const TOKEN_VOICE: f64 = 120.0;
const GRADE_VOICE: f64 = 40.0;
const SCORE_VOICE: f64 = 300.0;

/// The table that these forks teach.
pub(crate) fn learn_table(forks: &[&Fork]) -> Table {
    let views: Vec<View> = forks.iter().map(|fork| view(fork)).collect();
    let first: Vec<Table> = (0..forks.len()).map(|at| first_table(&views, Some(at))).collect();
    let records: Vec<Records> =
        forks.iter().zip(&first).map(|(fork, table)| records_of(fork, table)).collect();
    let mut scores = Scores::default();
    for (at, (fork, table)) in forks.iter().zip(first).enumerate() {
        let table = Table { grades: priors(&records, Some(at)), ..table };
        scores.take(fork, &table);
    }
    Table {
        grades: priors(&records, None),
        by_hunks: fit(&scores.by_hunks, 1.0),
        whole: fit(&scores.whole, 1.0),
        ..first_table(&views, None)
    }
}

/// What needs no past: choices and token merges.
struct View {
    files: BTreeMap<String, BTreeMap<Choice, f64>>,
    hunks: BTreeMap<String, BTreeMap<Choice, f64>>,
    tokens: Vec<(Vec<f64>, bool)>,
}

fn view(fork: &Fork) -> View {
    let mut view = View { files: BTreeMap::new(), hunks: BTreeMap::new(), tokens: Vec::new() };
    for merge in &fork.merges {
        let conflicts = merge.facts.disputes.len();
        for (dispute, people) in &merge.facts.disputes {
            let kind = view.files.entry(kind_of(dispute)).or_default();
            *kind.entry(people.choice).or_default() += 1.0;
            let count = hunks(&dispute.pieces).count();
            for (hunk, answer) in hunks(&dispute.pieces).zip(&people.hunks) {
                let plain = look(hunk);
                let choice =
                    answer.as_ref().map_or(Choice::Other, |answer| choice_of(hunk, &plain, answer));
                let sides = view.hunks.entry(sides_of(hunk).to_owned()).or_default();
                *sides.entry(choice).or_default() += 1.0;
                if let Some(text) = plain.apart.as_ref().or(plain.touching.as_ref()) {
                    let held = answer.as_ref().is_some_and(|answer| bare(answer) == bare(text));
                    view.tokens.push((token_signs(&plain, count, conflicts).to_vec(), held));
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
        cases.extend(view.tokens.iter().map(|(signs, held)| Case {
            signs: signs.clone(),
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
    counts: impl Iterator<Item = &'a BTreeMap<String, BTreeMap<Choice, f64>>>,
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

/// Cases and agreements by grade.
type Records = BTreeMap<String, (f64, f64)>;

fn records_of(fork: &Fork, table: &Table) -> Records {
    let mut records = Records::new();
    for (_, settled) in relived(fork, table) {
        for one in &settled {
            for (grade, agreed) in answers_of(one) {
                let record = records.entry(grade).or_default();
                record.0 += 1.0;
                record.1 += f64::from(u8::from(agreed));
            }
        }
    }
    records
}

fn relived<'a>(
    fork: &'a Fork,
    table: &'a Table,
) -> impl Iterator<Item = (usize, Vec<Settled>)> + 'a {
    let mut knowledge = Knowledge::default();
    fork.merges.iter().map(move |merge| {
        let settled = relive(table, &mut knowledge, &merge.sha, merge.facts.disputes.clone());
        (settled.len(), settled)
    })
}

fn answers_of(settled: &Settled) -> Vec<(String, bool)> {
    let Settled { dispute, people, weighed } = settled;
    let mut answers = Vec::new();
    if let Some(whole) = &weighed.whole {
        let agreed = people.agree_with_choice(dispute, whole.choice);
        answers.push((whole.grade.name.clone(), agreed));
    }
    for (hunk, answer) in weighed.hunks.iter().zip(&people.hunks) {
        let answer = answer.as_deref().map(bare);
        for candidate in &hunk.candidates {
            let agreed = answer.as_ref().is_some_and(|answer| *answer == bare(&candidate.text));
            answers.push((candidate.grade.name.clone(), agreed));
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
        for (grade, (cases, agreed)) in records {
            let weight = (GRADE_VOICE / cases).min(1.0);
            let sum = sums.entry(grade.clone()).or_default();
            sum.0 += cases * weight;
            sum.1 += agreed * weight;
        }
    }
    sums.into_iter()
        .map(|(grade, (cases, agreed))| (grade, rounded((agreed + 1.0) / (cases + 2.0))))
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
        for (_, settled) in relived(fork, table) {
            for Settled { dispute, people, weighed } in settled {
                if let Some(found) = &weighed.whole {
                    let held = people.agree_with_choice(&dispute, found.choice);
                    whole.push((found.signs.to_vec(), held));
                }
                if let Some(found) = &weighed.by_hunks {
                    let texts: Vec<&[u8]> = best_texts(&weighed).collect();
                    let held = people.agree_with_hunks(&dispute, &texts).holds();
                    by_hunks.push((found.signs.to_vec(), held));
                }
            }
        }
        for (cases, all) in [(by_hunks, &mut self.by_hunks), (whole, &mut self.whole)] {
            let weight = voice(SCORE_VOICE, cases.len());
            all.extend(cases.into_iter().map(|(signs, held)| Case { signs, held, weight }));
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
