//! Approval of the last micro-commit: decides whether it is awaited.

use super::meta::Meta;
use super::profile::Pause;
use super::status::WorkstreamStatus;

/// Under supervision an accepted micro-commit waits for a verdict, unless the plan is complete.
pub(crate) fn awaits_approval(pause: Pause, meta: &Meta, last_rejected: Option<&str>) -> bool {
    let is_between = match meta.status {
        WorkstreamStatus::Implement
        | WorkstreamStatus::BlockedClarification
        | WorkstreamStatus::BlockedTest
        | WorkstreamStatus::BlockedReview => true,
        WorkstreamStatus::Planning
        | WorkstreamStatus::Docs
        | WorkstreamStatus::UatPending
        | WorkstreamStatus::UatFailed
        | WorkstreamStatus::MergeReady
        | WorkstreamStatus::Done => false,
    };
    let Some(last) = meta.last_commit_sha.as_ref() else { return false };
    let has_word = meta.approved_sha.as_ref() == Some(last) || last_rejected == Some(last.as_str());
    pause == Pause::EveryCommit && is_between && !has_word
}

#[cfg(test)]
mod tests {
    use model::env_file::EnvFile;
    use model::id::Sha;

    use super::*;
    use crate::rules::meta::parse_meta;

    fn sha(digit: &str) -> Option<Sha> {
        Sha::parse(&digit.repeat(40)).ok()
    }

    /// A workstream between two micro-commits, changed so.
    fn check(change: impl FnOnce(&mut Meta), last_rejected: Option<&str>, expected: bool) {
        let base = "c".repeat(40);
        let text = format!(
            "ID=tf\nTITLE=x\nBRANCH=feat/tf\nWORKTREE=/ops/worktrees/tf\nBASE_BRANCH=main\nBASE_SHA={base}\nSTATUS=implement\nEXPECTED_PATHS=mk/\nCREATED_AT=2025-01-15T10:00:00Z\nLAST_REFRESHED=2025-01-15T12:00:00Z\n"
        );
        let mut meta = parse_meta(&EnvFile::parse(&text).unwrap(), "tf").unwrap();
        meta.last_commit_sha = sha("a");
        change(&mut meta);
        assert_eq!(awaits_approval(Pause::EveryCommit, &meta, last_rejected), expected);
        assert!(!awaits_approval(Pause::Gates, &meta, last_rejected));
    }

    #[test]
    fn an_accepted_micro_commit_waits_for_a_word_of_either_kind() {
        let last = "a".repeat(40);
        check(|_| {}, None, true);
        check(|meta| meta.approved_sha = meta.last_commit_sha.clone(), None, false);
        check(|_| {}, Some(&last), false);
        check(|_| {}, Some(&"b".repeat(40)), true);
        check(|meta| meta.approved_sha = sha("b"), None, true);
    }

    #[test]
    fn nothing_waits_before_the_first_and_after_the_last() {
        check(|meta| meta.last_commit_sha = None, None, false);
        check(|meta| meta.status = WorkstreamStatus::UatPending, None, false);
    }
}
