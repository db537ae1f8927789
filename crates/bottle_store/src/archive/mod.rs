//! The folder of a bottle as one stream of tar, and back.

mod pack;
mod sparse;
mod unpack;

use serde::{Deserialize, Serialize};

pub(crate) use pack::write_archive;
pub(crate) use unpack::{Unpacking, unpack_archive};

/// Parts of a bottle that the host wrote.
pub const HOST_PARTS: [&str; 2] = ["record.json", "runs"];
/// Parts of a bottle that the agent wrote.
pub const AGENT_PARTS: [&str; 2] = ["workspace", "harness-state"];

/// Users of a host: the one that runs it, and the one behind its boxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owners {
    pub host: (u32, u32),
    pub agent: (u32, u32),
}

/// Record of an entry's time, in the form of tar.
fn pax_time((seconds, nanos): (i64, u32)) -> String {
    // The fraction counts from the second before, and tar writes one number with a sign.
    match (seconds, nanos) {
        (seconds, 0) => seconds.to_string(),
        (0.., nanos) => format!("{seconds}.{nanos:09}"),
        (seconds, nanos) => {
            let whole = -(seconds + 1);
            format!("-{whole}.{:09}", 1_000_000_000 - nanos)
        }
    }
}

/// Reads the time of an entry.
fn parse_pax_time(text: &str) -> Option<(i64, u32)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_negative = whole.starts_with('-');
    let seconds: i64 = whole.parse().ok()?;
    if fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nanos: u32 = format!("{fraction:0<9}").parse().ok()?;
    match (is_negative, nanos) {
        (true, 1..) => Some((seconds.checked_sub(1)?, 1_000_000_000 - nanos)),
        _ => Some((seconds, nanos)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn times_come_back_as_they_were(seconds in -1_000_000_000_000_i64..1_000_000_000_000, nanos in 0..1_000_000_000_u32) {
            prop_assert_eq!(parse_pax_time(&pax_time((seconds, nanos))), Some((seconds, nanos)));
        }
    }

    #[test]
    fn times_are_in_the_form_of_tar() {
        assert_eq!(pax_time((5, 0)), "5");
        assert_eq!(pax_time((5, 30)), "5.000000030");
        assert_eq!(pax_time((-2, 500_000_000)), "-1.500000000");
        assert_eq!(pax_time((-1, 500_000_000)), "-0.500000000");
        assert_eq!(parse_pax_time("1.5"), Some((1, 500_000_000)));
        for wrong in ["", "x", "1.x", "1.0000000001", "1.-5"] {
            assert_eq!(parse_pax_time(wrong), None, "{wrong}");
        }
    }
}
