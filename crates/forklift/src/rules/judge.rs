//! Verdict on a run, from facts of the host; and the exit status of a verdict.

use engine::agent_result::AgentClaim;
use engine::evidence::{Evidence, EvidenceFault, SensitiveChange};
use engine::run::ImportOutcome;
use merge::pattern::PathPatterns;
use model::exit::ForkliftExit;
use model::id::{BranchName, RunId};
use model::verdict::Ended;
use serde::{Deserialize, Serialize};

use super::STUCK_FILE;
use super::strategy::Strategy;
use super::words::counted;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// Upstream was contained in the fork before the run, or nothing new came out of it.
    UpToDate,
    Publish,
    /// An earlier run published the result for the same commits, and it is not merged yet.
    AwaitingReview {
        run: RunId,
        branch: BranchName,
        pull: Option<String>,
    },
    /// The publication of an earlier run was taken back.
    Withdrawn {
        run: RunId,
    },
    TimedOut,
    Stuck,
    AgentFailed {
        how: String,
    },
    /// The quota of the model is exhausted, until this time if known.
    Waiting {
        until: Option<String>,
    },
    /// The pinned upstream commit is not in the result.
    NotIntegrated,
    /// The fork's own history is not in the result.
    ForkLost,
    /// Something that the fork had is in the result no longer, and upstream does not have it either.
    WorkLost,
    /// Changes of upstream are not in the result.
    UpstreamDropped {
        reasons: Vec<String>,
    },
    /// Tests of the fork or of upstream are missing or skipped in the result.
    TestsLost {
        tests: Vec<String>,
    },
    /// Tests that passed on the fork or on upstream were not run by the check on the result.
    TestsNotRun {
        tests: Vec<String>,
    },
    CheckFailed {
        how: String,
    },
    /// The fork's own set-up failed, so the agent was not started.
    SetupFailed {
        how: String,
    },
    /// The result contains something that must not be published.
    Refused {
        reasons: Vec<String>,
    },
    Stopped,
    Infra {
        reason: String,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct ResultFacts {
    pub(crate) ended: Ended,
    /// True if the agent left a note.
    pub(crate) stuck: bool,
    pub(crate) claim: AgentClaim,
    pub(crate) import: ImportOutcome,
    /// True if work of the fork was lost and the user does not accept it.
    pub(crate) lost: bool,
    /// Reasons why upstream counts as dropped, unless the user accepts it.
    pub(crate) dropped: Vec<String>,
    pub(crate) strategy: Strategy,
    /// Patterns of the files that may be published although they act by themselves.
    pub(crate) allow_paths: Vec<String>,
}

/// Decides the verdict. The clock outranks the agent's note, the note outranks its exit status, and the host's evidence
/// outranks every claim.
pub(crate) fn judge(after: &ResultFacts) -> Verdict {
    match (&after.ended, after.stuck) {
        // Some agents wait for their quota without a word until the clock runs out; the reason is worth more.
        (Ended::OutOfTime, _) => match &after.claim {
            AgentClaim::Waiting { until } => Verdict::Waiting { until: until.clone() },
            AgentClaim::Finished | AgentClaim::Failed { .. } => Verdict::TimedOut,
        },
        (Ended::Stopped | Ended::Frozen, _) => Verdict::Stopped,
        (Ended::Infra { reason }, _) => Verdict::Infra { reason: reason.clone() },
        (Ended::OutOfMemory, _) => failed("it used up its memory"),
        (Ended::OutOfSpace, _) => failed("it used up its disk space"),
        (Ended::Exited { .. } | Ended::Signalled { .. }, true) => Verdict::Stuck,
        (Ended::Signalled { signal }, false) => failed(&format!("ended by signal {signal}")),
        (Ended::Exited { code }, false) => match &after.claim {
            AgentClaim::Waiting { until } => Verdict::Waiting { until: until.clone() },
            AgentClaim::Failed { reason } => failed(&format!("status {code}: {reason}")),
            AgentClaim::Finished if *code != 0 => failed(&format!("status {code}")),
            AgentClaim::Finished => judge_import(after),
        },
    }
}

fn failed(how: &str) -> Verdict {
    Verdict::AgentFailed { how: how.to_owned() }
}

/// A rebase makes the fork's commits anew, so their old ids need not be there; the account of its work still has to
/// add up.
fn judge_import(after: &ResultFacts) -> Verdict {
    let keeps_history = after.strategy == Strategy::Merge;
    match &after.import {
        ImportOutcome::Nothing => Verdict::NotIntegrated,
        ImportOutcome::Refused(reason) => Verdict::Refused { reasons: vec![reason.clone()] },
        ImportOutcome::Commits(evidence) if keeps_history && !evidence.base_reachable => {
            Verdict::ForkLost
        }
        ImportOutcome::Commits(evidence) if !evidence.upstream_reachable => Verdict::NotIntegrated,
        ImportOutcome::Commits(_) if after.lost => Verdict::WorkLost,
        ImportOutcome::Commits(_) if !after.dropped.is_empty() => {
            Verdict::UpstreamDropped { reasons: after.dropped.clone() }
        }
        ImportOutcome::Commits(evidence) => {
            let reasons = objections(evidence, &after.allow_paths);
            if reasons.is_empty() { Verdict::Publish } else { Verdict::Refused { reasons } }
        }
    }
}

/// Items of one kind that a reason names; more are counted.
const NAMED: usize = 10;

/// Changes to files that act by themselves and that no pattern allows.
pub(crate) fn held_changes<'a>(
    evidence: &'a Evidence,
    allow_paths: &[String],
) -> impl Iterator<Item = &'a SensitiveChange> {
    let allowed = PathPatterns::new(allow_paths);
    evidence.sensitive.iter().filter(move |change| !allowed.matches(change.path.as_bytes()))
}

/// Objections to publishing.
pub(crate) fn objections(evidence: &Evidence, allow_paths: &[String]) -> Vec<String> {
    let note = |path: &&String| *path == STUCK_FILE;
    let notes: Vec<String> = evidence.files_made.iter().filter(note).cloned().collect();
    let held = held_changes(evidence, allow_paths);
    let held: Vec<String> = held.map(SensitiveChange::message).collect();
    let faults = evidence.faults().into_iter().flat_map(|(fault, items)| {
        let what = match fault {
            EvidenceFault::LinkLeaving => "a symbolic link leads out of the tree",
            EvidenceFault::LinkBroken => "a symbolic link cannot be followed",
            EvidenceFault::GitlinkMade => "a link to another repository was made",
            EvidenceFault::SubmoduleChanged => "the address of a submodule is neither side's",
            EvidenceFault::MarkersLeft => "conflict markers were left",
            EvidenceFault::OddMode => "the mode is not one of git's",
            EvidenceFault::Oversize => "too large",
            EvidenceFault::ForeignIdentity => return name_strangers(evidence),
        };
        name_all(what, items)
    });
    let mut reasons = name_all("the agent's note was committed", &notes);
    reasons.extend(faults);
    reasons.extend(name_all("waits for a person", &held));
    if !held.is_empty() {
        let remedy = "if it is right, allow it with --allow-path or with allow-paths in FORK.md";
        reasons.push(remedy.to_owned());
    }
    reasons
}

fn name_all(what: &str, items: &[String]) -> Vec<String> {
    let more = items.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("{what}: {more} more"));
    items.iter().take(NAMED).map(|item| format!("{what}: {item}")).chain(more).collect()
}

fn name_strangers(evidence: &Evidence) -> Vec<String> {
    let count = evidence.foreign_count.max(evidence.foreign_identities.len());
    let first = evidence.foreign_identities.first();
    let reason = |first| match count {
        1 => format!("a commit is not by the box's own identity: {first}"),
        _ => format!("{count} commits are not by the box's own identity, such as {first}"),
    };
    first.map(reason).into_iter().collect()
}

impl Verdict {
    pub(crate) fn status(&self) -> ForkliftExit {
        match self {
            Self::UpToDate
            | Self::Publish
            | Self::AwaitingReview { .. }
            | Self::Withdrawn { .. } => ForkliftExit::Success,
            Self::TimedOut => ForkliftExit::OutOfTime,
            Self::Stuck => ForkliftExit::Stuck,
            Self::AgentFailed { .. } | Self::Waiting { .. } => ForkliftExit::AgentFailed,
            Self::SetupFailed { .. } => ForkliftExit::Usage,
            Self::NotIntegrated
            | Self::ForkLost
            | Self::WorkLost
            | Self::UpstreamDropped { .. }
            | Self::TestsLost { .. }
            | Self::TestsNotRun { .. }
            | Self::CheckFailed { .. }
            | Self::Refused { .. } => ForkliftExit::NotIntegrated,
            Self::Stopped => ForkliftExit::Terminated,
            Self::Infra { .. } => ForkliftExit::Machine,
        }
    }

    /// The message about a result with so many points that a person has to look at, and so many changes that rules leave
    /// out: where something was dropped or decided, that is not "integrated and kept".
    pub(crate) fn message_with(&self, points: usize, left_out: usize) -> String {
        if *self != Self::Publish || points + left_out == 0 {
            return self.message();
        }
        let mut parts = vec!["verified: both histories are in the result".to_owned()];
        if points > 0 {
            parts.push(format!("{} to look at first", counted(points, "point")));
        }
        if left_out > 0 {
            parts.push(format!("{} left out by rules", counted(left_out, "change")));
        }
        parts.join("; ")
    }

    /// One or two words, for lists.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::UpToDate => "up to date",
            Self::Publish => "verified",
            Self::AwaitingReview { .. } => "waits for review",
            Self::Withdrawn { .. } => "withdrawn",
            Self::TimedOut => "out of time",
            Self::Stuck => "stuck",
            Self::AgentFailed { .. } => "agent failed",
            Self::Waiting { .. } => "waits for quota",
            Self::NotIntegrated => "not integrated",
            Self::ForkLost | Self::WorkLost | Self::TestsLost { .. } | Self::TestsNotRun { .. } => {
                "work lost"
            }
            Self::UpstreamDropped { .. } => "upstream dropped",
            Self::CheckFailed { .. } => "check failed",
            Self::SetupFailed { .. } => "set-up failed",
            Self::Refused { .. } => "refused",
            Self::Stopped => "stopped",
            Self::Infra { .. } => "could not be run",
        }
    }

    pub(crate) fn message(&self) -> String {
        match self {
            Self::UpToDate => "up to date: upstream is contained in the fork".to_owned(),
            Self::Publish => "verified: upstream is integrated and the fork's work is kept".to_owned(),
            Self::AwaitingReview { run, branch, pull } => {
                let pull = pull.as_ref().map_or_else(String::new, |pull| format!(" ({pull})"));
                format!("nothing new since run {run}: {branch}{pull} waits for review; make another with --again")
            }
            Self::Withdrawn { run } => format!("withdrawn: what {run} published is taken back"),
            Self::TimedOut => "out of time: the agent was ended and nothing was published".to_owned(),
            Self::Stuck => "stuck: the agent needs help; read its STUCK.md".to_owned(),
            Self::AgentFailed { how } => format!("the agent failed ({how})"),
            Self::Waiting { until: Some(until) } => format!("waiting: the model has no more to give until {until}"),
            Self::Waiting { until: None } => "waiting: the model has no more to give for now".to_owned(),
            Self::NotIntegrated => "not integrated: the result lacks upstream's commit".to_owned(),
            Self::ForkLost => "refused: the result lacks the fork's own history".to_owned(),
            Self::WorkLost => {
                "refused: work of the fork is lost (see below); publish it all the same with --accept-loss".to_owned()
            }
            Self::UpstreamDropped { reasons } => {
                format!("refused: {}; publish it all the same with --accept-dropped", reasons.join("; "))
            }
            Self::TestsLost { tests } => format!(
                "refused: {} tests of the fork or of upstream are missing or skipped (see below); publish it all the same \
                 with --accept-loss",
                tests.len()
            ),
            Self::TestsNotRun { tests } => {
                let (count, words) = match tests.len() {
                    1 => ("1 test".to_owned(), "that passes on the fork or on upstream does"),
                    count => (format!("{count} tests"), "that pass on the fork or on upstream do"),
                };
                format!(
                    "refused: {count} {words} not run in the result (see below); publish it all the same with \
                     --accept-dropped"
                )
            }
            Self::CheckFailed { how } => format!("refused: the fork's check does not pass on the result ({how})"),
            Self::SetupFailed { how } => format!("the fork's set-up failed ({how}); the agent was not started"),
            Self::Refused { reasons } => format!("refused: {}", reasons.join("; ")),
            Self::Stopped => "stopped before the agent was done".to_owned(),
            Self::Infra { reason } => format!("could not be run: {reason}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::sensitive_path::SensitiveKind;

    use super::*;

    fn good() -> Evidence {
        Evidence { upstream_reachable: true, base_reachable: true, ..Evidence::default() }
    }

    fn check(ended: Ended, stuck: bool, evidence: Evidence, expected: &Verdict) {
        let import = ImportOutcome::Commits(Box::new(evidence));
        let claim = AgentClaim::Finished;
        assert_eq!(
            judge(&ResultFacts {
                ended,
                stuck,
                claim,
                import,
                lost: false,
                dropped: Vec::new(),
                strategy: Strategy::Merge,
                allow_paths: vec!["allowed/".to_owned()],
            }),
            *expected
        );
    }

    #[test]
    fn kept_is_said_only_where_nothing_is_dropped_or_decided() {
        let message = |points, left_out| Verdict::Publish.message_with(points, left_out);
        assert!(message(0, 0).ends_with("upstream is integrated and the fork's work is kept"));
        assert_eq!(
            message(1, 2),
            "verified: both histories are in the result; 1 point to look at first; 2 changes left out by rules"
        );
        assert_eq!(Verdict::TimedOut.message_with(3, 3), Verdict::TimedOut.message());
    }

    const DONE: Ended = Ended::Exited { code: 0 };

    #[test]
    fn the_clock_outranks_the_note() {
        check(Ended::OutOfTime, true, good(), &Verdict::TimedOut);
    }

    #[test]
    fn the_note_outranks_the_status_and_the_merge() {
        check(DONE, true, good(), &Verdict::Stuck);
        check(Ended::Exited { code: 4 }, true, good(), &Verdict::Stuck);
    }

    #[test]
    fn a_status_of_zero_is_a_claim() {
        check(DONE, false, good(), &Verdict::Publish);
        let lying = Evidence { upstream_reachable: false, ..good() };
        check(DONE, false, lying, &Verdict::NotIntegrated);
        let lossy = Evidence { base_reachable: false, ..good() };
        check(DONE, false, lossy, &Verdict::ForkLost);
    }

    #[test]
    fn an_agent_that_says_it_failed_is_believed_whatever_its_status() {
        let after = |claim| ResultFacts {
            ended: DONE,
            stuck: false,
            claim,
            import: ImportOutcome::Commits(Box::new(good())),
            lost: false,
            dropped: Vec::new(),
            strategy: Strategy::Merge,
            allow_paths: Vec::new(),
        };
        let reason = "the model answered 401".to_owned();
        let verdict = judge(&after(AgentClaim::Failed { reason }));
        assert_eq!(verdict.status(), ForkliftExit::AgentFailed);
        let until = Some("noon".to_owned());
        let waiting = AgentClaim::Waiting { until: until.clone() };
        assert_eq!(judge(&after(waiting.clone())), Verdict::Waiting { until: until.clone() });
        let late = ResultFacts { ended: Ended::OutOfTime, ..after(waiting) };
        assert_eq!(judge(&late), Verdict::Waiting { until });
    }

    #[test]
    fn a_rebase_need_not_keep_the_old_commits_but_must_keep_the_work() {
        let anew = Evidence { base_reachable: false, ..good() };
        let after = |lost, evidence| ResultFacts {
            ended: DONE,
            stuck: false,
            claim: AgentClaim::Finished,
            import: ImportOutcome::Commits(Box::new(evidence)),
            lost,
            dropped: Vec::new(),
            strategy: Strategy::Rebase,
            allow_paths: Vec::new(),
        };
        assert_eq!(judge(&after(false, anew.clone())), Verdict::Publish);
        assert_eq!(judge(&after(true, anew)), Verdict::WorkLost);
        let nothing = Evidence { upstream_reachable: false, ..good() };
        assert_eq!(judge(&after(false, nothing)), Verdict::NotIntegrated);
    }

    #[test]
    fn lost_work_blocks_an_otherwise_good_result() {
        let import = ImportOutcome::Commits(Box::new(good()));
        let (claim, strategy) = (AgentClaim::Finished, Strategy::Merge);
        let dropped = vec!["all of it".to_owned()];
        let after = ResultFacts {
            ended: DONE,
            stuck: false,
            claim,
            import,
            lost: true,
            dropped,
            strategy,
            allow_paths: Vec::new(),
        };
        assert_eq!(judge(&after), Verdict::WorkLost);
        let after = ResultFacts { lost: false, ..after };
        let verdict = judge(&after);
        assert_eq!(verdict, Verdict::UpstreamDropped { reasons: vec!["all of it".to_owned()] });
        assert_eq!(verdict.status(), ForkliftExit::NotIntegrated);
    }

    #[test]
    fn nothing_dangerous_is_published() {
        let link = Evidence { links_leaving: vec!["a".to_owned()], ..good() };
        let expected = Verdict::Refused {
            reasons: vec!["a symbolic link leads out of the tree: a".to_owned()],
        };
        check(DONE, false, link, &expected);
        let marked = Evidence { markers_left: vec!["b".to_owned()], ..good() };
        check(
            DONE,
            false,
            marked,
            &Verdict::Refused { reasons: vec!["conflict markers were left: b".to_owned()] },
        );
    }

    #[track_caller]
    fn refused(evidence: Evidence, expected: &[&str]) {
        let reasons = expected.iter().map(|reason| (*reason).to_owned()).collect();
        check(DONE, false, evidence, &Verdict::Refused { reasons });
    }

    #[test]
    fn each_fault_is_refused_by_name() {
        let one = |item: &str| vec![item.to_owned()];
        let broken = Evidence { links_broken: one("a"), ..good() };
        refused(broken, &["a symbolic link cannot be followed: a"]);
        let moved = Evidence { submodules_changed: one("lib: https://evil"), ..good() };
        refused(moved, &["the address of a submodule is neither side's: lib: https://evil"]);
        let odd = Evidence { odd_modes: one("100664 a"), ..good() };
        refused(odd, &["the mode is not one of git's: 100664 a"]);
        let note = Evidence { files_made: one("STUCK.md"), ..good() };
        refused(note, &["the agent's note was committed: STUCK.md"]);
        let many = Evidence { oversize: vec!["x".to_owned(); 12], ..good() };
        let mut expected = vec!["too large: x"; 10];
        expected.push("too large: 2 more");
        refused(many, &expected);
        let stranger = Evidence { foreign_identities: one("abc by Eve <e@x>"), ..good() };
        let strangers = Evidence { foreign_count: 20_000, ..stranger.clone() };
        refused(stranger, &["a commit is not by the box's own identity: abc by Eve <e@x>"]);
        let many = "20000 commits are not by the box's own identity, such as abc by Eve <e@x>";
        refused(strangers, &[many]);
    }

    #[test]
    fn what_acts_by_itself_waits_until_it_is_allowed() {
        let change =
            |path: &str| SensitiveChange { path: path.to_owned(), kind: SensitiveKind::Ci };
        let evidence = |path| Evidence { sensitive: vec![change(path)], ..good() };
        check(DONE, false, evidence("allowed/ci.yml"), &Verdict::Publish);
        let remedy = "if it is right, allow it with --allow-path or with allow-paths in FORK.md";
        let held = "waits for a person: .github/workflows/a.yml (CI definition)";
        refused(evidence(".github/workflows/a.yml"), &[held, remedy]);
    }

    #[test]
    fn a_failing_agent_and_a_failing_machine_are_told_apart() {
        let after = |ended| ResultFacts {
            ended,
            stuck: false,
            claim: AgentClaim::Finished,
            import: ImportOutcome::Nothing,
            lost: false,
            dropped: Vec::new(),
            strategy: Strategy::Merge,
            allow_paths: Vec::new(),
        };
        let status = |ended| judge(&after(ended)).status();
        assert_eq!(status(Ended::Exited { code: 7 }), ForkliftExit::AgentFailed);
        assert_eq!(status(Ended::OutOfMemory), ForkliftExit::AgentFailed);
        assert_eq!(status(Ended::Infra { reason: "x".to_owned() }), ForkliftExit::Machine);
        assert_eq!(status(DONE), ForkliftExit::NotIntegrated);
    }
}
