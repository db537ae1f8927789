//! Formats numbers and times for people.

use jiff::Timestamp;

use engine::run::Phase;

/// Formats a time span in one unit.
pub(crate) fn span(secs: i64) -> String {
    match secs.unsigned_abs() {
        0..60 => "moments".to_owned(),
        secs @ 60..3600 => format!("{} min", secs / 60),
        secs @ 3600..86_400 => format!("{} h", secs / 3600),
        secs @ 86_400..172_800 => format!("{} day", secs / 86_400),
        secs => format!("{} days", secs / 86_400),
    }
}

pub(crate) fn between(from: Timestamp, to: Timestamp) -> String {
    span(to.as_second() - from.as_second())
}

/// Formats a duration in milliseconds.
pub(crate) fn clock(ms: u64) -> String {
    let secs = ms / 1000;
    match secs {
        0..60 => format!("{}.{} s", secs, ms % 1000 / 100),
        60..3600 => format!("{} min {:02} s", secs / 60, secs % 60),
        _ => format!("{} h {:02} min", secs / 3600, secs % 3600 / 60),
    }
}

/// Formats the time since a start.
pub(crate) fn elapsed(from: Timestamp, now: Timestamp) -> String {
    let secs = u64::try_from(now.as_second() - from.as_second()).unwrap_or_default();
    match secs {
        0..60 => format!("{secs} s"),
        60..3600 => format!("{} min", secs / 60),
        _ => format!("{} h {:02} min", secs / 3600, secs % 3600 / 60),
    }
}

/// Formats dollars to the cent.
pub(crate) fn dollars(usd: f64) -> String {
    match usd {
        usd if usd <= 0.0 => "$0".to_owned(),
        usd if usd < 0.01 => "under $0.01".to_owned(),
        usd => format!("${usd:.2}"),
    }
}

/// Formats bytes in the largest unit of which there is one.
pub(crate) fn bytes(count: u64) -> String {
    let mut rest = count;
    let mut tenths = 0;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if rest < 1024 {
            return match unit {
                "B" => format!("{rest} B"),
                _ => format!("{rest}.{tenths} {unit}"),
            };
        }
        tenths = rest % 1024 * 10 / 1024;
        rest /= 1024;
    }
    format!("{rest}.{tenths} TiB")
}

/// Formats a number with narrow spaces between thousands.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push('\u{202f}');
        }
        shown.push(digit);
    }
    shown
}

/// The activity of a run after a phase.
pub(crate) fn after(phase: Phase) -> &'static str {
    match phase {
        Phase::Pinned => "making the workspace",
        Phase::Prepared => "setting up the bottle",
        Phase::SetUp => "starting the agent",
        Phase::Launched => "the agent is running",
        Phase::Ended => "importing the commits",
        Phase::Imported => "judging the commits",
        Phase::Judged | Phase::Checked => "publishing",
        Phase::Published => "closing the record",
        Phase::Closed => "closed",
    }
}

pub(crate) fn plural(number: usize, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_told_in_one_unit() {
        let all = [0, 59, 60, 3599, 3600, 86_399, 86_400, 172_800, -120].map(span);
        assert_eq!(
            all.join(", "),
            "moments, moments, 1 min, 59 min, 1 h, 23 h, 1 day, 2 days, 2 min"
        );
        assert_eq!([900, 61_000, 7_260_000].map(clock).join(", "), "0.9 s, 1 min 01 s, 2 h 01 min");
    }

    #[test]
    fn money_is_never_shown_as_less_than_it_is() {
        assert_eq!(
            [0.0, 0.004, 0.01, 12.345].map(dollars).join(", "),
            "$0, under $0.01, $0.01, $12.35"
        );
    }

    #[test]
    fn sizes_and_counts_are_short() {
        assert_eq!([0, 1023, 1536, 5 << 20].map(bytes).join(", "), "0 B, 1023 B, 1.5 KiB, 5.0 MiB");
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(count(999), "999");
    }
}
