//! The id of a run, which is also the name of its directory.
//!
//! It is made of the project and the time, for people who read a listing. It is never parsed for facts: those are in the
//! record inside the run directory.

use super::checked::{Rule, checked_id, is_shaped, keeps};
use super::{IdError, ProjectName};

checked_id! {
    /// One run of one agent.
    RunId, "run id", check
}

const MAX: usize = 128;

impl RunId {
    /// Names a run `<project>_<stamp>`, and `<project>_<stamp>-<n>` from the second run of the same second on. The stamp
    /// is `YYYYMMDD_HHMMSS`.
    pub fn new(project: &ProjectName, stamp: &str, attempt: u32) -> Result<Self, IdError> {
        let id = if attempt < 2 {
            format!("{project}_{stamp}")
        } else {
            format!("{project}_{stamp}-{attempt}")
        };
        if !is_stamp(stamp) {
            return Err(IdError::new("run id", &id, "the stamp must be YYYYMMDD_HHMMSS".into()));
        }
        Self::parse(&id)
    }
}

fn check(text: &str) -> Result<(), Rule> {
    let first = |b: u8| b.is_ascii_alphanumeric();
    let rest = |b: u8| b.is_ascii_alphanumeric() || b"._+-".contains(&b);
    let kept = is_shaped(text, first, rest, MAX) && !text.contains("..");
    keeps(
        "1 to 128 of A-Z, a-z, 0-9, '.', '_', '+' and '-', starting with a letter or digit, without '..'",
        kept,
    )
}

fn is_stamp(text: &str) -> bool {
    let is_number = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    text.split_once('_').is_some_and(|(day, time)| {
        day.len() == 8 && time.len() == 6 && is_number(day) && is_number(time)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(attempt: u32) -> String {
        let project = ProjectName::parse("app").unwrap();
        RunId::new(&project, "20250115_120000", attempt).unwrap().to_string()
    }

    #[test]
    fn the_first_attempt_has_no_number() {
        assert_eq!(id(0), "app_20250115_120000");
        assert_eq!(id(1), "app_20250115_120000");
        assert_eq!(id(2), "app_20250115_120000-2");
        assert_eq!(id(u32::MAX), "app_20250115_120000-4294967295");
    }

    #[test]
    fn a_run_id_is_one_safe_path_component() {
        for good in ["a", "app+x_20250115-2", &"a".repeat(128)] {
            assert!(RunId::parse(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "a..b", "a/b", "-a", "_a", "a b", "a\0", &"a".repeat(129)] {
            assert!(RunId::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_malformed_stamp_is_refused() {
        let project = ProjectName::parse("app").unwrap();
        for stamp in ["", "2025-01-15", "20250115120000", "20250115_12000", "2025011a_120000"] {
            assert!(RunId::new(&project, stamp, 1).is_err(), "{stamp}");
        }
    }

    proptest! {
        #[test]
        fn every_project_can_have_runs(folder in any::<String>(), attempt in any::<u32>()) {
            let project = ProjectName::from_folder(&folder);
            prop_assert!(RunId::new(&project, "20250115_120000", attempt).is_ok());
        }
    }
}
