//! Figures about runs: time, tokens and cost, by stage and by workstream.

use std::collections::BTreeMap;

use serde::Serialize;

/// Width of the longest bar of a plot.
const BAR: usize = 40;

/// Time, tokens and cost of stages in some runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct RunFigures {
    /// Runs in which the stage took place.
    pub(crate) runs: usize,
    /// Of these, the ones in which it did not pass.
    pub(crate) failed: usize,
    pub(crate) seconds: f64,
    /// Tokens that models read, cached ones included.
    pub(crate) tokens_read: u64,
    pub(crate) tokens_written: u64,
    /// Cost as far as prices are known.
    pub(crate) usd: f64,
}

impl RunFigures {
    fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.failed += other.failed;
        self.seconds += other.seconds;
        self.tokens_read += other.tokens_read;
        self.tokens_written += other.tokens_written;
        self.usd += other.usd;
    }
}

/// Figures of one stage of one run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StageSample {
    pub(crate) workstream: String,
    pub(crate) stage: String,
    pub(crate) figures: RunFigures,
}

/// Subject of a row of the statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum StatsBy {
    /// One row for each stage of each workstream
    #[default]
    Both,
    /// One row for each stage
    Stage,
    /// One row for each workstream
    Workstream,
}

/// A row of the statistics. A part that the row does not depend on is empty.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct StatsRow {
    pub(crate) workstream: String,
    pub(crate) stage: String,
    #[serde(flatten)]
    pub(crate) figures: RunFigures,
}

/// Adds samples up. Rows come in the order of workstreams and, within one, of the pipeline; stages that took no time to speak
/// of and used nothing are left out.
pub(crate) fn sum_up(samples: &[StageSample], by: StatsBy, stages: &[&str]) -> Vec<StatsRow> {
    let mut rows: BTreeMap<(String, usize, String), RunFigures> = BTreeMap::new();
    let place = |stage: &str| stages.iter().position(|it| *it == stage).unwrap_or(stages.len());
    for sample in samples {
        let (workstream, stage) = (sample.workstream.clone(), sample.stage.clone());
        let key = match by {
            StatsBy::Both => (workstream, place(&stage), stage),
            StatsBy::Stage => (String::new(), place(&stage), stage),
            StatsBy::Workstream => (workstream, 0, String::new()),
        };
        rows.entry(key).or_default().add(&sample.figures);
    }
    let is_worth = |figures: &RunFigures| figures.seconds >= 0.05 || figures.tokens_read > 0;
    rows.into_iter()
        .filter(|(_, figures)| is_worth(figures))
        .map(|((workstream, _, stage), figures)| StatsRow { workstream, stage, figures })
        .collect()
}

/// The sum of all rows. Runs are not added up: a run has many stages.
pub(crate) fn total(rows: &[StatsRow], runs: usize) -> RunFigures {
    let mut sum = RunFigures::default();
    rows.iter().for_each(|row| sum.add(&row.figures));
    RunFigures { runs, failed: 0, ..sum }
}

/// Renders one bar for each row, by time.
pub(crate) fn render_plot(rows: &[StatsRow], time: impl Fn(f64) -> String) -> String {
    let name = |row: &StatsRow| match (row.workstream.is_empty(), row.stage.is_empty()) {
        (false, false) => format!("{} {}", row.workstream, row.stage),
        (false, true) => row.workstream.clone(),
        (true, _) => row.stage.clone(),
    };
    let width = rows.iter().map(|row| name(row).chars().count()).max().unwrap_or(0);
    let most = rows.iter().map(|row| row.figures.seconds).fold(0.0, f64::max);
    let line = |row: &StatsRow| {
        let share = if most > 0.0 { row.figures.seconds / most } else { 0.0 };
        let bar = bar(share);
        format!("{:<width$}  {bar} {}\n", name(row), time(row.figures.seconds))
    };
    rows.iter().map(line).collect()
}

/// A bar in eighths of a column; a share above nothing is visible.
fn bar(share: f64) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share from 0 to 1 of a small number"
    )]
    let eighths = (share.clamp(0.0, 1.0) * (BAR * 8) as f64).ceil() as usize;
    format!("{}{}", "█".repeat(eighths / 8), PARTS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(workstream: &str, stage: &str, seconds: f64, read: u64) -> StageSample {
        let figures = RunFigures { runs: 1, seconds, tokens_read: read, ..RunFigures::default() };
        StageSample { workstream: workstream.to_owned(), stage: stage.to_owned(), figures }
    }

    const STAGES: [&str; 3] = ["implement", "test", "review"];

    fn all() -> Vec<StageSample> {
        vec![
            sample("b", "review", 4.0, 10),
            sample("a", "test", 2.0, 0),
            sample("a", "implement", 8.0, 100),
            sample("a", "implement", 2.0, 20),
            sample("a", "lock", 0.001, 0),
        ]
    }

    fn names(by: StatsBy) -> Vec<String> {
        let rows = sum_up(&all(), by, &STAGES);
        let name = |row: &StatsRow| {
            let RunFigures { runs, seconds, tokens_read, .. } = row.figures;
            format!("{}/{} {runs} {seconds} {tokens_read}", row.workstream, row.stage)
        };
        rows.iter().map(name).collect()
    }

    #[test]
    fn rows_follow_the_pipeline() {
        assert_eq!(
            names(StatsBy::Both),
            ["a/implement 2 10 120", "a/test 1 2 0", "b/review 1 4 10"]
        );
        assert_eq!(names(StatsBy::Stage), ["/implement 2 10 120", "/test 1 2 0", "/review 1 4 10"]);
        assert_eq!(names(StatsBy::Workstream), ["a/ 4 12.001 120", "b/ 1 4 10"]);
    }

    #[test]
    fn a_plot_shows_shares_and_even_a_small_one() {
        let rows = sum_up(
            &[sample("a", "x", 100.0, 0), sample("b", "x", 0.1, 0)],
            StatsBy::Workstream,
            &[],
        );
        let plot = render_plot(&rows, |seconds| format!("{seconds} s"));
        let full = "█".repeat(BAR);
        assert_eq!(plot, format!("a  {full} 100 s\nb  ▏ 0.1 s\n"));
        assert_eq!(render_plot(&[], |_| String::new()), "");
    }

    #[test]
    fn the_total_counts_a_run_once() {
        let rows = sum_up(&all(), StatsBy::Both, &STAGES);
        let sum = total(&rows, 3);
        assert_eq!((sum.runs, sum.tokens_read, sum.seconds), (3, 130, 16.0));
    }
}
