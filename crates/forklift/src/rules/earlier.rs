//! Decisions by the earlier runs of a fork: whether a new run has work, and which branch it publishes to.

use model::id::{BranchName, Sha};

use super::judge::Verdict;

/// State of a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PullState {
    Open,
    Merged,
    /// Closed and not merged.
    Closed,
}

/// Earlier run with the same commits and strategy that was verified, or is not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EarlierFacts {
    pub(crate) is_closed: bool,
    /// The box that it waits for ended without a record, so nothing can come of it.
    pub(crate) box_is_lost: bool,
    /// Its commit is still in its directory.
    pub(crate) has_commit: bool,
    pub(crate) is_pushed: bool,
    /// Its pull request could not be opened.
    pub(crate) lacks_pull: bool,
    /// Origin was asked and does not have its branch any more.
    pub(crate) branch_is_gone: bool,
    /// `None` if it has no pull request, or the forge could not be asked.
    pub(crate) pull: Option<PullState>,
}

/// Beginning of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartChoice {
    New,
    /// A new run takes the place of the earlier one.
    Restart,
    /// The earlier run is continued.
    Finish,
    /// The commit of the earlier run is published.
    Publish,
    /// Nothing is started: the earlier result waits for review.
    AwaitReview,
}

/// Chooses how to begin. A user who deleted the branch or closed the pull request wants another result.
pub(crate) fn choose_start(earlier: EarlierFacts) -> StartChoice {
    let EarlierFacts {
        is_closed,
        box_is_lost,
        has_commit,
        is_pushed,
        lacks_pull,
        branch_is_gone,
        pull,
    } = earlier;
    if !is_closed {
        return if box_is_lost { StartChoice::Restart } else { StartChoice::Finish };
    }
    let is_rejected = is_pushed && (branch_is_gone || pull == Some(PullState::Closed));
    match (is_rejected, is_pushed && !lacks_pull) {
        (true, _) => StartChoice::New,
        (false, true) => StartChoice::AwaitReview,
        (false, false) if has_commit => StartChoice::Publish,
        (false, false) => StartChoice::New,
    }
}

/// Returns whether a person has to decide what becomes of a result. Another run with the same commits and settings would cost
/// the same and most likely end the same, unlike after an end that passes by itself.
pub(crate) fn waits_for_person(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Stuck
        | Verdict::WorkLost
        | Verdict::UpstreamDropped { .. }
        | Verdict::TestsLost { .. }
        | Verdict::TestsNotRun { .. }
        | Verdict::CheckFailed { .. }
        | Verdict::Refused { .. } => true,
        Verdict::UpToDate
        | Verdict::Publish
        | Verdict::AwaitingReview { .. }
        | Verdict::Withdrawn { .. }
        | Verdict::TimedOut
        | Verdict::AgentFailed { .. }
        | Verdict::Waiting { .. }
        | Verdict::NotIntegrated
        | Verdict::ForkLost
        | Verdict::SetupFailed { .. }
        | Verdict::Stopped
        | Verdict::Infra { .. } => false,
    }
}

/// Branch that the newest published run left on origin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EarlierBranch<'a> {
    /// The commit that was pushed.
    pub(crate) pushed: &'a Sha,
    /// The commit that it is at now; `None` if the branch is gone or origin could not be asked.
    pub(crate) at: Option<&'a Sha>,
    /// The pushed commit is in the fork's main branch.
    pub(crate) is_merged: bool,
    pub(crate) pull: Option<PullState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BranchChoice {
    /// A branch with the name of the run.
    New,
    /// The same, because others have pushed to the earlier one.
    NewBeside,
    /// The earlier branch, from the commit that was pushed.
    Renew,
}

/// Chooses the branch for `commit`. An earlier branch is renewed while it waits for review and is at the commit that was
/// pushed.
pub(crate) fn choose_branch(commit: &Sha, earlier: EarlierBranch<'_>) -> BranchChoice {
    let is_over =
        earlier.is_merged || matches!(earlier.pull, Some(PullState::Merged | PullState::Closed));
    match earlier.at {
        None => BranchChoice::New,
        // A process that was killed pushed it.
        Some(at) if at == commit => BranchChoice::Renew,
        Some(_) if is_over => BranchChoice::New,
        Some(at) if at == earlier.pushed => BranchChoice::Renew,
        Some(_) => BranchChoice::NewBeside,
    }
}

/// A branch with a commit that a run of this fork pushed to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnBranch {
    pub(crate) branch: BranchName,
    pub(crate) commit: Sha,
}

/// Publications of a fork that are known when a new one is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EarlierPublications {
    /// Branches that runs of the same kind pushed: updates of the same branch, or runs that land the same fix.
    pub(crate) same_kind: Vec<OwnBranch>,
    /// Branches of the fork's other runs.
    pub(crate) other_kinds: Vec<BranchName>,
    /// The mark of this kind in the text of a pull request.
    pub(crate) mark: String,
}

/// An open pull request, as the forge shows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenPull<'a> {
    pub(crate) branch: &'a str,
    pub(crate) head: &'a str,
    pub(crate) body: &'a str,
}

impl EarlierPublications {
    /// Returns whether a new publication takes the place of this one: it is of the same kind, and nobody else has pushed to its
    /// branch. A pull request of another machine, or of a run that was removed, is known by the mark in its text alone.
    pub(crate) fn has_as_predecessor(&self, pull: OpenPull<'_>) -> bool {
        let mut own =
            self.same_kind.iter().filter(|it| it.branch.as_str() == pull.branch).peekable();
        if own.peek().is_some() {
            return pull.head.is_empty() || own.any(|it| it.commit.as_str() == pull.head);
        }
        let is_of_other_kind = self.other_kinds.iter().any(|it| it.as_str() == pull.branch);
        !is_of_other_kind && pull.body.contains(&self.mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLISHED: EarlierFacts = EarlierFacts {
        is_closed: true,
        box_is_lost: false,
        has_commit: true,
        is_pushed: true,
        lacks_pull: false,
        branch_is_gone: false,
        pull: Some(PullState::Open),
    };

    fn check(earlier: EarlierFacts, expected: StartChoice) {
        assert_eq!(choose_start(earlier), expected, "{earlier:?}");
    }

    #[test]
    fn a_result_that_waits_for_review_is_not_made_again() {
        check(PUBLISHED, StartChoice::AwaitReview);
        check(EarlierFacts { pull: None, ..PUBLISHED }, StartChoice::AwaitReview);
        check(
            EarlierFacts { pull: Some(PullState::Merged), ..PUBLISHED },
            StartChoice::AwaitReview,
        );
    }

    #[test]
    fn a_result_that_was_rejected_is_made_again() {
        check(EarlierFacts { branch_is_gone: true, ..PUBLISHED }, StartChoice::New);
        check(EarlierFacts { pull: Some(PullState::Closed), ..PUBLISHED }, StartChoice::New);
        let closed = Some(PullState::Closed);
        check(EarlierFacts { pull: closed, lacks_pull: true, ..PUBLISHED }, StartChoice::New);
    }

    #[test]
    fn a_run_that_is_not_finished_is_finished_first() {
        let killed = EarlierFacts { is_closed: false, is_pushed: false, pull: None, ..PUBLISHED };
        check(killed, StartChoice::Finish);
        check(EarlierFacts { has_commit: false, ..killed }, StartChoice::Finish);
    }

    #[test]
    fn a_run_whose_box_is_lost_is_made_again() {
        let killed = EarlierFacts { is_closed: false, is_pushed: false, pull: None, ..PUBLISHED };
        let lost = EarlierFacts { box_is_lost: true, has_commit: false, ..killed };
        check(lost, StartChoice::Restart);
    }

    #[test]
    fn a_verified_commit_is_published_and_not_paid_for_again() {
        let kept = EarlierFacts { is_pushed: false, pull: None, ..PUBLISHED };
        check(kept, StartChoice::Publish);
        check(EarlierFacts { lacks_pull: true, pull: None, ..PUBLISHED }, StartChoice::Publish);
        check(EarlierFacts { has_commit: false, ..kept }, StartChoice::New);
    }

    fn sha(digit: char) -> Sha {
        Sha::parse(&digit.to_string().repeat(40)).unwrap()
    }

    fn branch(at: Option<char>, is_merged: bool, pull: Option<PullState>) -> BranchChoice {
        let (commit, pushed, at) = (sha('c'), sha('a'), at.map(sha));
        let earlier = EarlierBranch { pushed: &pushed, at: at.as_ref(), is_merged, pull };
        choose_branch(&commit, earlier)
    }

    #[test]
    fn a_branch_is_renewed_while_it_waits_and_is_ours() {
        assert_eq!(branch(Some('a'), false, None), BranchChoice::Renew);
        assert_eq!(branch(Some('a'), false, Some(PullState::Open)), BranchChoice::Renew);
        assert_eq!(branch(Some('c'), false, None), BranchChoice::Renew);
    }

    #[test]
    fn a_branch_of_others_or_of_the_past_is_left_alone() {
        assert_eq!(branch(Some('b'), false, Some(PullState::Open)), BranchChoice::NewBeside);
        assert_eq!(branch(None, false, None), BranchChoice::New);
        assert_eq!(branch(Some('a'), true, None), BranchChoice::New);
        assert_eq!(branch(Some('a'), false, Some(PullState::Closed)), BranchChoice::New);
        assert_eq!(branch(Some('b'), false, Some(PullState::Merged)), BranchChoice::New);
    }

    #[test]
    fn only_a_publication_of_the_same_kind_that_nobody_else_changed_is_superseded() {
        let name = |text| BranchName::parse(text).unwrap();
        let own = |digit| OwnBranch { branch: name("forklift/a"), commit: sha(digit) };
        let earlier = EarlierPublications {
            same_kind: vec![own('a'), own('b')],
            other_kinds: vec![name("forklift/fix")],
            mark: "<!-- forklift: update -->".to_owned(),
        };
        let marked = "<!-- forklift: update -->\n\nBrings main up to date";
        for (branch, head, body, expected) in [
            ("forklift/a", sha('b').to_string(), "", true),
            ("forklift/a", String::new(), "", true),
            ("forklift/a", sha('c').to_string(), marked, false),
            ("forklift/fix", sha('f').to_string(), marked, false),
            ("forklift/elsewhere", sha('e').to_string(), marked, true),
            ("forklift/elsewhere", sha('e').to_string(), "<!-- forklift: fix CVE-1 -->", false),
            ("forklift/elsewhere", sha('e').to_string(), "", false),
        ] {
            let pull = OpenPull { branch, head: &head, body };
            assert_eq!(earlier.has_as_predecessor(pull), expected, "{branch} {head} {body}");
        }
    }
}
