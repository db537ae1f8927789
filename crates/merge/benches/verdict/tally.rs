//! Counts of what was refused, shown and missed, and the promises about them.

use std::collections::BTreeMap;

use crate::dishonest::{Operator, Place};

/// What became of a dishonest merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Refused,
    /// A person is shown the path, with words that the honest result does not get.
    Shown,
    /// A person is shown the path, with the words that the honest result gets too.
    ShownAlike,
    Missed,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FateCounts {
    pub(crate) made: usize,
    pub(crate) refused: usize,
    pub(crate) shown: usize,
    pub(crate) shown_alike: usize,
    pub(crate) missed: usize,
    pub(crate) not_applicable: usize,
}

impl FateCounts {
    pub(crate) fn add(&mut self, fate: Fate) {
        self.made += 1;
        match fate {
            Fate::Refused => self.refused += 1,
            Fate::Shown => self.shown += 1,
            Fate::ShownAlike => self.shown_alike += 1,
            Fate::Missed => self.missed += 1,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            made: self.made + other.made,
            refused: self.refused + other.refused,
            shown: self.shown + other.shown,
            shown_alike: self.shown_alike + other.shown_alike,
            missed: self.missed + other.missed,
            not_applicable: self.not_applicable + other.not_applicable,
        }
    }
}

#[derive(Default)]
pub(crate) struct Tally(pub(crate) BTreeMap<(Operator, Place), FateCounts>);

impl Tally {
    pub(crate) fn of(&mut self, operator: Operator, place: Place) -> &mut FateCounts {
        self.0.entry((operator, place)).or_default()
    }

    pub(crate) fn add(&mut self, other: Self) {
        for (key, counts) in other.0 {
            let sum = self.0.entry(key).or_default();
            *sum = sum.plus(counts);
        }
    }

    /// Prints the table and returns whether every promise holds.
    pub(crate) fn print(&self) -> bool {
        println!(
            "| operator | where | made | refused | shown first | as the honest one | missed | caught | not applicable |"
        );
        println!("|---|---|---|---|---|---|---|---|---|");
        for ((operator, place), counts) in &self.0 {
            print_row(operator.as_str(), place.as_str(), *counts);
        }
        let mut holds = true;
        for promise in PROMISES {
            let matching = self.0.iter().filter(|(key, _)| (promise.covers)(key.0, key.1));
            let sum = matching.fold(FateCounts::default(), |sum, (_, counts)| sum.plus(*counts));
            let kept = (sum.made - sum.missed) * 100 >= promise.percent * sum.made;
            holds &= kept;
            let word = if kept { "ok" } else { "BROKEN" };
            let caught = share(sum.made - sum.missed, sum.made);
            let alike = share(sum.shown_alike, sum.made);
            println!(
                "{}: {caught} caught, promised {} %: {word}; {alike} only as the honest one",
                promise.name, promise.percent
            );
        }
        println!(
            "caught: refused, shown first, or shown as the honest one, which is with the words that the honest merge gets at \
             the same path too: a person who reads them learns nothing new"
        );
        holds
    }
}

struct Promise {
    name: &'static str,
    covers: fn(Operator, Place) -> bool,
    percent: usize,
}

const PROMISES: [Promise; 4] = [
    Promise { name: "whole sides", covers: |_, place| place == Place::Whole, percent: 100 },
    Promise { name: "lost tests", covers: |operator, _| is_lost_test(operator), percent: 100 },
    Promise {
        name: "outside the conflicts",
        covers: |operator, place| place == Place::Outside && !is_lost_test(operator),
        percent: 98,
    },
    Promise {
        name: "inside the conflicts",
        covers: |operator, place| place == Place::Inside && !is_lost_test(operator),
        percent: 90,
    },
];

fn is_lost_test(operator: Operator) -> bool {
    matches!(operator, Operator::DeleteTest | Operator::SkipTest)
}

fn print_row(operator: &str, place: &str, counts: FateCounts) {
    let FateCounts { made, refused, shown, shown_alike, missed, not_applicable } = counts;
    let caught = share(made - missed, made);
    println!(
        "| {operator} | {place} | {made} | {refused} | {shown} | {shown_alike} | {missed} | {caught} | {not_applicable} |"
    );
}

pub(crate) fn share(part: usize, whole: usize) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let tenths = part * 1000 / whole;
    format!("{}.{} % ({part} of {whole})", tenths / 10, tenths % 10)
}
