//! Names of planned work: workstreams, micro-commits, and the questions and acceptance tests about them.

use super::checked::{Rule, checked_id, is_shaped, keeps};

checked_id! {
    /// A workstream: it enters paths, branch names and lock names.
    WorkstreamId, "workstream id", check_workstream
}

checked_id! {
    /// A micro-commit of a plan, such as `COMMIT-TF-001`.
    MicroCommitId, "micro-commit id", check_micro_commit
}

checked_id! {
    /// A question to a person, such as `CLQ-001`.
    ClarificationId, "clarification id", check_clarification
}

checked_id! {
    /// An acceptance test by a person, such as `UAT-001`.
    UatId, "UAT id", check_uat
}

const WORKSTREAM_MAX: usize = 64;
const MICRO_COMMIT_MAX: usize = 64;

impl ClarificationId {
    pub fn numbered(number: u32) -> Self {
        Self(format!("CLQ-{number:03}"))
    }

    pub fn number(&self) -> u32 {
        number_in(&self.0)
    }
}

impl UatId {
    pub fn numbered(number: u32) -> Self {
        Self(format!("UAT-{number:03}"))
    }

    pub fn number(&self) -> u32 {
        number_in(&self.0)
    }
}

fn check_workstream(text: &str) -> Result<(), Rule> {
    let first = |b: u8| b.is_ascii_lowercase();
    let rest = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b);
    keeps(
        "1 to 64 of a-z, 0-9, '_' and '-', starting with a letter",
        is_shaped(text, first, rest, WORKSTREAM_MAX),
    )
}

fn check_micro_commit(text: &str) -> Result<(), Rule> {
    keeps(
        "COMMIT-, then letters, digits, '_' or '-', then '-' and three digits, at most 64 characters",
        is_micro_commit(text),
    )
}

fn is_micro_commit(text: &str) -> bool {
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b"_-".contains(&b);
    let split = text.strip_prefix("COMMIT-").and_then(|rest| rest.rsplit_once('-'));
    split.is_some_and(|(name, number)| {
        text.len() <= MICRO_COMMIT_MAX
            && !name.is_empty()
            && name.bytes().all(is_name)
            && number.len() == 3
            && number.bytes().all(|b| b.is_ascii_digit())
    })
}

fn check_clarification(text: &str) -> Result<(), Rule> {
    keeps("CLQ- and three to nine digits", is_numbered(text, "CLQ-"))
}

fn check_uat(text: &str) -> Result<(), Rule> {
    keeps("UAT- and three to nine digits", is_numbered(text, "UAT-"))
}

fn is_numbered(text: &str, prefix: &str) -> bool {
    text.strip_prefix(prefix).is_some_and(|digits| {
        (3..=9).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
    })
}

/// At most nine digits always fit.
fn number_in(text: &str) -> u32 {
    text.get(4..).and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workstream_id_is_one_safe_word_d104() {
        for good in ["a", "test_framework", "x-1", &"a".repeat(64)] {
            assert!(WorkstreamId::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "1a", "_closed", "-a", "a/b", "a b", "..", "a.b", &"a".repeat(65)] {
            assert!(WorkstreamId::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_micro_commit_id_has_ascii_digits_d31() {
        for good in ["COMMIT-TF-001", "COMMIT-a_b-c-999", "COMMIT-A-001-001", "COMMIT---000"] {
            assert!(MicroCommitId::parse(good).is_ok(), "{good}");
        }
        for bad in ["COMMIT-001", "COMMIT-TF-1", "COMMIT-TF-0001", "commit-TF-001", "COMMIT--001"] {
            assert!(MicroCommitId::parse(bad).is_err(), "{bad}");
        }
        assert!(MicroCommitId::parse("COMMIT-TF-٠٠١").is_err());
    }

    #[test]
    fn questions_and_acceptance_tests_have_numbers() {
        assert_eq!(ClarificationId::numbered(7).as_str(), "CLQ-007");
        assert_eq!(UatId::numbered(1234).as_str(), "UAT-1234");
        assert_eq!(UatId::parse("UAT-1234").unwrap().number(), 1234);
        for bad in ["CLQ-1", "CLQ-", "UAT-001", "CLQ-0010000000", "CLQ-001.json"] {
            assert!(ClarificationId::parse(bad).is_err(), "{bad}");
        }
    }
}
