//! Verdicts: what ended a box, and the exit statuses of the three products.
//!
//! A verdict is a value that is recorded and then mapped to a status. An error is something else:
//! it means that we could not do our own work.

mod bottle;
mod forklift;
mod wf;

pub use bottle::BottleStatus;
pub use forklift::ForkliftStatus;
pub use wf::WfStatus;

/// What ended a box, as seen from outside it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Ended {
    /// The agent ended by itself.
    Exited {
        /// Its exit code.
        code: i32,
    },
    /// The agent was ended by a signal that we did not send.
    Signalled {
        /// The signal.
        signal: i32,
    },
    /// The clock ran out.
    OutOfTime,
    /// The box used all its memory.
    OutOfMemory,
    /// The box used all its disk space.
    OutOfSpace,
    /// A person stopped it.
    Stopped,
    /// It was frozen, to be rehydrated later.
    Frozen,
    /// It did not end: what it runs on failed.
    Infra {
        /// What failed.
        reason: String,
    },
}

impl Ended {
    /// One word for tables and filters.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Exited { code: 0 } => "done",
            Self::Exited { .. } => "exited",
            Self::Signalled { .. } => "killed",
            Self::OutOfTime => "timeout",
            Self::OutOfMemory => "oom",
            Self::OutOfSpace => "space",
            Self::Stopped => "stopped",
            Self::Frozen => "frozen",
            Self::Infra { .. } => "infra",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(ended: Ended, class: &str, json: &str) {
        assert_eq!(ended.class(), class);
        assert_eq!(serde_json::to_string(&ended).unwrap(), json);
        assert_eq!(serde_json::from_str::<Ended>(json).unwrap(), ended);
    }

    #[test]
    fn every_end_has_a_class_and_reads_back_from_json() {
        check(Ended::Exited { code: 0 }, "done", r#"{"kind":"exited","code":0}"#);
        check(Ended::Exited { code: 3 }, "exited", r#"{"kind":"exited","code":3}"#);
        check(Ended::Signalled { signal: 9 }, "killed", r#"{"kind":"signalled","signal":9}"#);
        check(Ended::OutOfTime, "timeout", r#"{"kind":"out-of-time"}"#);
        check(Ended::OutOfMemory, "oom", r#"{"kind":"out-of-memory"}"#);
        check(Ended::OutOfSpace, "space", r#"{"kind":"out-of-space"}"#);
        check(Ended::Stopped, "stopped", r#"{"kind":"stopped"}"#);
        check(Ended::Frozen, "frozen", r#"{"kind":"frozen"}"#);
        let infra = Ended::Infra { reason: "no engine".to_owned() };
        check(infra, "infra", r#"{"kind":"infra","reason":"no engine"}"#);
    }

    #[test]
    fn statuses_have_the_codes_of_the_design() {
        assert_eq!(ForkliftStatus::ALL.map(ForkliftStatus::code), [0, 1, 2, 3, 4, 5, 6, 7, 9]);
        assert_eq!(WfStatus::ALL.map(WfStatus::code), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(BottleStatus::ALL.map(BottleStatus::code), [0, 1, 2, 3, 8, 9, 125]);
    }

    #[test]
    fn names_are_unique_and_meanings_are_one_line() {
        let forklift = ForkliftStatus::ALL.map(|s| (s.name(), s.meaning()));
        let wf = WfStatus::ALL.map(|s| (s.name(), s.meaning()));
        let bottle = BottleStatus::ALL.map(|s| (s.name(), s.meaning()));
        for table in [&forklift[..], &wf[..], &bottle[..]] {
            let names: std::collections::BTreeSet<_> = table.iter().map(|(name, _)| name).collect();
            assert_eq!(names.len(), table.len());
            assert!(
                table.iter().all(|(_, meaning)| !meaning.is_empty() && !meaning.contains('\n'))
            );
        }
    }
}
