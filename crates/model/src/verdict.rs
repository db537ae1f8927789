//! End of a box, as a value that is recorded.

/// End of a box, as observed from outside it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Ended {
    /// Ended by itself.
    Exited { code: i32 },
    /// Ended by a signal that this program did not send.
    Signalled { signal: i32 },
    /// The clock ran out.
    OutOfTime,
    /// The memory of the box ran out.
    OutOfMemory,
    /// The disk space of the box ran out.
    OutOfSpace,
    /// Stopped by a person.
    Stopped,
    /// Frozen, to be rehydrated later.
    Frozen,
    /// The infrastructure below it failed.
    Infra { reason: String },
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
}
