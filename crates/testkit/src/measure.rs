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

/// Cost of some calls: time of the clock, and time of processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    pub wall: Duration,
    /// Of this process and of the children that it waited for. On a busy machine it says more than the clock.
    pub cpu: Duration,
}

/// Cost of one call.
pub fn cost(act: impl FnOnce()) -> Cost {
    let before = cpu_time();
    let wall = time(act);
    Cost { wall, cpu: cpu_time().saturating_sub(before) }
}

/// Runs both in turns as [`compare`] does, and compares the medians of both costs.
pub fn compare_costs(
    rounds: usize,
    mut ours: impl FnMut() -> Cost,
    mut yardstick: impl FnMut() -> Cost,
) -> CostComparison {
    let (mut own_cpu, mut other_cpu) = (Vec::new(), Vec::new());
    let timed = |cost: Cost, times: &mut Vec<Duration>| {
        times.push(cost.cpu);
        cost.wall
    };
    let wall =
        compare(rounds, || timed(ours(), &mut own_cpu), || timed(yardstick(), &mut other_cpu));
    // The first round does not count.
    let cpu = [own_cpu, other_cpu].map(|times| median(times.into_iter().skip(1).collect()));
    CostComparison { wall, cpu: Comparison { ours: cpu[0], yardstick: cpu[1] } }
}

/// Result of a measurement by both clocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostComparison {
    pub wall: Comparison,
    pub cpu: Comparison,
}

impl CostComparison {
    /// Prints one row for each clock.
    pub fn print(&self, name: &str, yardstick: &str, factor: f64) {
        self.wall.print(name, yardstick, factor, Duration::ZERO);
        self.cpu.print("  the same in time of processors", yardstick, factor, Duration::ZERO);
    }
}

/// Ticks of `/proc/self/stat` in a second. The kernel shows hundredths whatever its own clock is.
const TICKS_PER_SECOND: u64 = 100;

fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("the kernel's account");
    parse_cpu_time(&stat).expect("four counts of ticks")
}

/// Reads the time of a process and of its children in both modes. The name, in brackets, may contain anything.
fn parse_cpu_time(stat: &str) -> Option<Duration> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let ticks: Option<Vec<u64>> =
        fields.get(11..15)?.iter().map(|field| field.parse().ok()).collect();
    Some(Duration::from_millis(ticks?.iter().sum::<u64>() * 1000 / TICKS_PER_SECOND))
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
    fn time_of_processors_is_that_of_the_process_and_its_children() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194304 96 0 0 0 12 3 40 5 20 0 1 0 11 2 3";
        assert_eq!(parse_cpu_time(stat), Some(Duration::from_millis(600)));
        assert_eq!(parse_cpu_time("7 (x) S 1"), None);
        assert!(parse_cpu_time(&std::fs::read_to_string("/proc/self/stat").unwrap()).is_some());
    }

    #[test]
    fn both_clocks_have_their_own_median() {
        let cost =
            |wall, cpu| Cost { wall: Duration::from_millis(wall), cpu: Duration::from_millis(cpu) };
        let mut own = [cost(99, 99), cost(3, 30), cost(1, 10), cost(2, 20)].into_iter();
        let found = compare_costs(3, || own.next().unwrap(), || cost(1, 10));
        assert_eq!(found.wall.ours, Duration::from_millis(2));
        assert_eq!(found.cpu.ours, Duration::from_millis(20));
        assert!((found.cpu.ratio() - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_ratio_is_ours_over_theirs() {
        let comparison =
            Comparison { ours: Duration::from_millis(30), yardstick: Duration::from_millis(20) };
        assert!((comparison.ratio() - 1.5).abs() < 1e-9);
    }
}
