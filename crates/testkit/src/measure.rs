//! Measuring a promise beside its yardstick: both in turns, so that a busy machine is busy for both.

use std::io::Write;
use std::time::{Duration, Instant};

/// What came of it.
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
    ours();
    yardstick();
    let mut times = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        times.0.push(ours());
        times.1.push(yardstick());
    }
    Comparison { ours: median(times.0), yardstick: median(times.1) }
}

/// How long one call takes.
pub fn time(act: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    act();
    begun.elapsed()
}

/// The middle one.
///
/// # Panics
/// When there is none.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
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
        let slack = if slack.is_zero() { String::new() } else { format!(" + {} ms", slack.as_millis()) };
        row(&format!(
            "{name:<44} {:>9.1} ms   {yardstick:<36} {:>9.1} ms   ratio {:>5.2}   promised {factor}x{slack}: {word}",
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
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        let times = [5, 1, 9].map(Duration::from_millis).to_vec();
        assert_eq!(median(times), Duration::from_millis(5));
    }

    #[test]
    fn a_ratio_is_ours_over_theirs() {
        let comparison =
            Comparison { ours: Duration::from_millis(30), yardstick: Duration::from_millis(20) };
        assert!((comparison.ratio() - 1.5).abs() < 1e-9);
    }
}
