//! Measuring a promise beside its yardstick: both in turns, so that a busy machine is busy for both.

use std::io::Write;
use std::time::{Duration, Instant};

/// Result of a measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// The median of ours.
    pub ours: Duration,
    /// The median of the yardstick.
    pub yardstick: Duration,
}

/// Runs both `rounds` times in turns, after one round each that does not count. Each says how long it took, because
/// not everything that it does need belong to what is measured.
pub fn compare(
    rounds: usize,
    mut ours: impl FnMut() -> Duration,
    mut yardstick: impl FnMut() -> Duration,
) -> Comparison {
    let [ours, yardstick] = in_turns(rounds, [&mut ours, &mut yardstick]).map(median);
    Comparison { ours, yardstick }
}

/// The same for any number of ways: all their times.
pub fn in_turns<const N: usize>(
    rounds: usize,
    ways: [&mut dyn FnMut() -> Duration; N],
) -> [Vec<Duration>; N] {
    let mut turns = ways.map(|way| (way, Vec::new()));
    for (way, _) in &mut turns {
        way();
    }
    for _ in 0..rounds {
        for (way, times) in &mut turns {
            times.push(way());
        }
    }
    turns.map(|(_, times)| times)
}

/// Duration of one call.
pub fn time(act: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    act();
    begun.elapsed()
}

/// The middle one.
///
/// # Panics
/// When there is none.
pub fn median(times: Vec<Duration>) -> Duration {
    quantile(times, 0.5)
}

/// The one that this share of the others does not exceed.
///
/// # Panics
/// When there is none.
pub fn quantile(mut times: Vec<Duration>, share: f64) -> Duration {
    times.sort();
    times[(times.len() as f64 * share) as usize]
}

impl Comparison {
    /// Ours as a multiple of the yardstick.
    pub fn ratio(&self) -> f64 {
        self.ours.as_secs_f64() / self.yardstick.as_secs_f64()
    }

    /// Prints one row: both times, the ratio, and whether ours is within `factor` times the yardstick plus `slack`.
    pub fn print(&self, name: &str, yardstick: &str, factor: f64, slack: Duration) {
        let bound = self.yardstick.mul_f64(factor) + slack;
        let word = if self.ours <= bound { "ok" } else { "OVER" };
        let slack =
            if slack.is_zero() { String::new() } else { format!(" + {} ms", slack.as_millis()) };
        row(&format!(
            "{name:<44} {:>9.3} ms   {yardstick:<36} {:>9.3} ms   ratio {:>5.2}   promised {factor}x{slack}: {word}",
            millis(self.ours),
            millis(self.yardstick),
            self.ratio(),
        ));
    }
}

/// Prints one row of plain text.
pub fn row(text: &str) {
    writeln!(std::io::stdout(), "{text}").expect("stdout is open");
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        let times = [5, 1, 9].map(Duration::from_millis).to_vec();
        assert_eq!(median(times), Duration::from_millis(5));
    }

    #[test]
    fn a_quantile_leaves_its_share_below() {
        let times: Vec<_> = (0..100).rev().map(Duration::from_millis).collect();
        assert_eq!(quantile(times, 0.99), Duration::from_millis(99));
    }

    #[test]
    fn everybody_has_a_turn_and_the_first_does_not_count() {
        let clock = Cell::new(0);
        let tick = || Duration::from_millis(clock.replace(clock.get() + 1));
        let times = in_turns(2, [&mut || tick(), &mut || tick()]);
        assert_eq!(times, [[2, 4], [3, 5]].map(|ms| ms.map(Duration::from_millis).to_vec()));
    }

    #[test]
    fn a_ratio_is_ours_over_theirs() {
        let comparison =
            Comparison { ours: Duration::from_millis(30), yardstick: Duration::from_millis(20) };
        assert!((comparison.ratio() - 1.5).abs() < 1e-9);
    }
}
