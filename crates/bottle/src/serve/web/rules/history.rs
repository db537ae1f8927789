//! Runs by day: how many, how they ended, and what they took.

use std::collections::BTreeMap;

use jiff::civil::Date;

/// A run, as far as its history matters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PastRun<'a> {
    pub(crate) day: Date,
    /// Kind of its verdict; `None` for a run at work, or one that was cut off.
    pub(crate) verdict: Option<&'a str>,
    pub(crate) tokens: Option<u64>,
    pub(crate) usd: Option<f64>,
}

/// The runs that began on one day, in UTC.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct DayOfRuns {
    pub(crate) runs: usize,
    /// Runs whose work was published.
    pub(crate) published: usize,
    pub(crate) tokens: u64,
    pub(crate) usd: f64,
}

/// The last days until `today`, oldest first, also those without a run.
pub(crate) fn by_day<'a>(
    runs: impl IntoIterator<Item = PastRun<'a>>,
    today: Date,
    days: u16,
) -> Vec<(Date, DayOfRuns)> {
    let first = |back: u16| today.checked_sub(jiff::Span::new().days(i64::from(back))).ok();
    let list = (0..days).rev().filter_map(first);
    let mut found: BTreeMap<Date, DayOfRuns> =
        list.map(|day| (day, DayOfRuns::default())).collect();
    for run in runs {
        let Some(day) = found.get_mut(&run.day) else { continue };
        day.runs += 1;
        day.published += usize::from(run.verdict == Some("publish"));
        day.tokens = day.tokens.saturating_add(run.tokens.unwrap_or_default());
        day.usd += run.usd.unwrap_or_default();
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn each_run_counts_on_its_day_and_days_without_runs_are_there() {
        let run = |day, verdict, usd| PastRun { day, verdict, tokens: Some(5), usd };
        let runs = [
            run(date(2026, 2, 28), Some("publish"), Some(1.5)),
            run(date(2026, 3, 2), None, None),
            run(date(2026, 3, 2), Some("publish"), Some(0.5)),
            run(date(2026, 2, 27), Some("publish"), Some(9.0)),
        ];
        let days = by_day(runs, date(2026, 3, 2), 3);
        let short: Vec<_> =
            days.iter().map(|(day, it)| (day.to_string(), it.runs, it.published, it.usd)).collect();
        assert_eq!(
            short,
            [
                ("2026-02-28".to_owned(), 1, 1, 1.5),
                ("2026-03-01".to_owned(), 0, 0, 0.0),
                ("2026-03-02".to_owned(), 2, 1, 0.5),
            ]
        );
        assert_eq!(days[2].1.tokens, 10);
    }
}
