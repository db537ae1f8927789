//! Report of a replay: a row for each merge, totals, a chart for the terminal. Pure.

use merge::path::TreePath;
use merge::resolver::decide::TrustThreshold;
use merge::resolver::history::Skipped;
use merge::resolver::replay::ReplayScore;
use merge::resolver::replayed::{Otherwise, ReplayedFile, ReplayedMerge};
use model::escape::escape_line;
use model::id::Sha;
use serde::Serialize;

use super::words::counted;

/// Replayed merges of a fork.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReplayReport {
    pub(crate) fork: String,
    pub(crate) upstream: String,
    pub(crate) summary: ReplaySummary,
    /// Oldest first.
    pub(crate) merges: Vec<ReplayRow>,
}

/// A replayed merge at one threshold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ReplayRow {
    pub(crate) merge: Sha,
    /// Day of the merge, if the commit could be read.
    pub(crate) date: Option<String>,
    pub(crate) subject: String,
    pub(crate) conflicts: usize,
    pub(crate) score: ReplayScore,
    pub(crate) files: Vec<FileRow>,
    pub(crate) merge_ms: u64,
    pub(crate) resolver_ms: u64,
}

/// Date and subject of a merge, as the commit claims.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MergeLine<'a> {
    /// Seconds since 1970.
    pub(crate) seconds: i64,
    pub(crate) subject: &'a str,
}

/// A file in conflict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct FileRow {
    pub(crate) path: TreePath,
    pub(crate) outcome: FileOutcome,
    /// Confidence of the answer that would have been applied.
    pub(crate) confidence: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) otherwise: Option<Otherwise>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FileOutcome {
    /// Left to an agent or a person.
    Open,
    AsPeopleDid,
    Otherwise,
}

impl FileOutcome {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Open => "left open",
            Self::AsPeopleDid => "resolved as people did",
            Self::Otherwise => "resolved otherwise",
        }
    }
}

impl FileRow {
    fn new(file: &ReplayedFile, trust: TrustThreshold) -> Self {
        let answer = file.answer(trust);
        let outcome = match answer {
            None => FileOutcome::Open,
            Some(answer) if answer.agreed() => FileOutcome::AsPeopleDid,
            Some(_) => FileOutcome::Otherwise,
        };
        Self {
            path: file.path.clone(),
            outcome,
            confidence: answer.map(|answer| answer.confidence),
            otherwise: answer.and_then(|answer| answer.otherwise.clone()),
        }
    }
}

impl ReplayRow {
    pub(crate) fn new(
        replayed: &ReplayedMerge,
        line: Option<MergeLine<'_>>,
        trust: TrustThreshold,
    ) -> Self {
        let date = line.and_then(|line| jiff::Timestamp::from_second(line.seconds).ok());
        Self {
            merge: replayed.merge.clone(),
            date: date.map(|date| date.strftime("%Y-%m-%d").to_string()),
            subject: line.map(|line| escape_line(line.subject).into_owned()).unwrap_or_default(),
            conflicts: replayed.conflicts,
            score: replayed.score(trust),
            files: replayed.files.iter().map(|file| FileRow::new(file, trust)).collect(),
            merge_ms: replayed.merge_ms,
            resolver_ms: replayed.resolver_ms,
        }
    }
}

impl ReplayReport {
    pub(crate) fn new(
        [fork, upstream]: [String; 2],
        merges: Vec<ReplayRow>,
        trust: TrustThreshold,
        skipped: Vec<Skipped>,
        one_sided: usize,
    ) -> Self {
        let summary = ReplaySummary::new(&merges, trust, skipped, one_sided);
        Self { fork, upstream, summary, merges }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ReplaySummary {
    pub(crate) trust: f64,
    pub(crate) merges: usize,
    pub(crate) clean: usize,
    /// Totals of the merges with conflicts.
    pub(crate) score: ReplayScore,
    pub(crate) skipped: Vec<Skipped>,
    /// Merges with conflicts whose result is one side.
    pub(crate) one_sided: usize,
    pub(crate) median_merge_ms: u64,
    pub(crate) median_resolver_ms: u64,
    /// Oldest first.
    #[serde(skip)]
    outcomes: Vec<ReplayOutcome>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplayOutcome {
    Clean,
    Agreed,
    Differed,
    Open,
}

impl ReplayOutcome {
    pub(crate) const ALL: [Self; 4] = [Self::Clean, Self::Agreed, Self::Differed, Self::Open];

    pub(crate) fn of(row: &ReplayRow) -> Self {
        match row {
            ReplayRow { conflicts: 0, .. } => Self::Clean,
            ReplayRow { score: ReplayScore { merges_resolved: 0, .. }, .. } => Self::Open,
            ReplayRow { score: ReplayScore { merges_agreed: 0, .. }, .. } => Self::Differed,
            ReplayRow { .. } => Self::Agreed,
        }
    }

    /// Its label and symbol.
    pub(crate) fn shown(self) -> (&'static str, char) {
        match self {
            Self::Clean => ("git alone", '.'),
            Self::Agreed => ("resolved as people did", '+'),
            Self::Differed => ("resolved otherwise", '!'),
            Self::Open => ("left open", '?'),
        }
    }
}

impl ReplaySummary {
    fn new(
        rows: &[ReplayRow],
        trust: TrustThreshold,
        skipped: Vec<Skipped>,
        one_sided: usize,
    ) -> Self {
        Self {
            trust: trust.share(),
            merges: rows.len(),
            clean: rows.iter().filter(|row| row.conflicts == 0).count(),
            score: rows.iter().fold(ReplayScore::default(), |sum, row| sum.plus(row.score)),
            skipped,
            one_sided,
            median_merge_ms: median(rows.iter().map(|row| row.merge_ms)),
            median_resolver_ms: median(rows.iter().map(|row| row.merge_ms + row.resolver_ms)),
            outcomes: rows.iter().map(ReplayOutcome::of).collect(),
        }
    }

    pub(crate) fn count(&self, outcome: ReplayOutcome) -> usize {
        self.outcomes.iter().filter(|one| **one == outcome).count()
    }
}

fn median(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

const BAR: usize = 40;
const SYMBOLS_IN_A_ROW: usize = 60;

pub(crate) fn render_text(replayed: &ReplaySummary) -> String {
    if replayed.merges == 0 {
        return "No merge of upstream was found in this fork's history.\n".to_owned();
    }
    let mut text = format!(
        "{} of upstream, replayed in order at trust {}\n\n",
        counted(replayed.merges, "merge"),
        replayed.trust
    );
    for outcome in ReplayOutcome::ALL {
        let (count, (label, symbol)) = (replayed.count(outcome), outcome.shown());
        let bar = "#".repeat(count * BAR / replayed.merges);
        text += &format!("  {symbol} {label:<22} {count:>5}  {bar}\n");
    }
    text += &format!("\n{}\n\n", symbols(replayed));
    for line in numbers(replayed).into_iter().chain(left_out(replayed)) {
        text += &format!("{line}\n");
    }
    text
}

/// One symbol for each merge, oldest first.
fn symbols(replayed: &ReplaySummary) -> String {
    let symbols: Vec<char> = replayed.outcomes.iter().map(|outcome| outcome.shown().1).collect();
    let rows =
        symbols.chunks(SYMBOLS_IN_A_ROW).map(|row| format!("  {}", row.iter().collect::<String>()));
    rows.collect::<Vec<_>>().join("\n")
}

pub(crate) fn numbers(replayed: &ReplaySummary) -> [String; 3] {
    let ReplayScore { merges, merges_resolved, merges_agreed, files, files_resolved, files_agreed } =
        replayed.score;
    [
        format!(
            "files in conflict: {files}; resolved {}, of those as people did {}",
            share(files_resolved, files),
            share(files_agreed, files_resolved)
        ),
        format!(
            "merges in conflict: {merges}; resolved whole {}, of those as people did {}",
            share(merges_resolved, merges),
            share(merges_agreed, merges_resolved)
        ),
        format!(
            "median time of a merge: {} ms with git alone, {} ms with the resolver",
            replayed.median_merge_ms, replayed.median_resolver_ms
        ),
    ]
}

fn share(part: usize, whole: usize) -> String {
    match (part * 100).checked_div(whole) {
        Some(percent) => format!("{part} ({percent} %)"),
        None => "none".to_owned(),
    }
}

/// Lines about merges that were not replayed.
pub(crate) fn left_out(replayed: &ReplaySummary) -> Vec<String> {
    let one_sided = (replayed.one_sided > 0).then(|| one_sided(replayed.one_sided));
    let skipped = replayed.skipped.iter().map(|skipped| {
        format!("{} was left out: {}", skipped.merge.short(), escape_line(&skipped.why))
    });
    one_sided.into_iter().chain(skipped).collect()
}

/// Line about merges whose result is one side.
pub(crate) fn one_sided(count: usize) -> String {
    format!("left out: {} whose result is one side", counted(count, "merge"))
}

#[cfg(test)]
pub(crate) mod tests {
    use merge::resolver::habit::Resolution;
    use merge::resolver::replayed::ReplayedAnswer;

    use super::*;

    fn row(answers: &[Option<bool>]) -> ReplayRow {
        let answer = |agreed: bool| ReplayedAnswer {
            confidence: 0.95,
            basis: "hunks words".to_owned(),
            otherwise: (!agreed).then(|| Otherwise {
                resolver: Resolution::Ours,
                people: Resolution::Other,
                hunks: Vec::new(),
                more: 0,
            }),
        };
        let file = |agreed: &Option<bool>| ReplayedFile {
            path: TreePath::new("a"),
            answers: agreed.map(answer).into_iter().collect(),
        };
        let replayed = ReplayedMerge {
            merge: Sha::parse(&"a".repeat(40)).unwrap(),
            conflicts: answers.len(),
            files: answers.iter().map(file).collect(),
            merge_ms: 40,
            resolver_ms: 10,
        };
        ReplayRow::new(&replayed, None, TrustThreshold::DEFAULT)
    }

    pub(crate) fn replayed() -> ReplayReport {
        let merge = Sha::parse(&"b".repeat(40)).unwrap();
        let skipped = vec![Skipped { merge, why: "<b>\u{1b}".to_owned() }];
        let (yes, no) = (Some(true), Some(false));
        let rows = [&[][..], &[yes, yes], &[no], &[yes, None, None]].map(row);
        let names = ["org/fork", "org/upstream"].map(str::to_owned);
        ReplayReport::new(names, rows.to_vec(), TrustThreshold::DEFAULT, skipped, 2)
    }

    #[test]
    fn every_merge_has_one_outcome() {
        insta::assert_snapshot!(render_text(&replayed().summary), @r"
        4 merges of upstream, replayed in order at trust 0.9

          . git alone                  1  ##########
          + resolved as people did     1  ##########
          ! resolved otherwise         1  ##########
          ? left open                  1  ##########

          .+!?

        files in conflict: 6; resolved 4 (66 %), of those as people did 3 (75 %)
        merges in conflict: 3; resolved whole 2 (66 %), of those as people did 1 (50 %)
        median time of a merge: 40 ms with git alone, 50 ms with the resolver
        left out: 2 merges whose result is one side
        bbbbbbbbbbbb was left out: <b>\x1b
        ");
    }

    #[test]
    fn a_fork_without_merges_is_told_so() {
        let text = render_text(&ReplaySummary::new(&[], TrustThreshold::DEFAULT, Vec::new(), 0));
        assert_eq!(text, "No merge of upstream was found in this fork's history.\n");
    }
}
