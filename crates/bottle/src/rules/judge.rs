//! Judges a run: from the host's evidence to a verdict, and to the exit status of a headless command.

use engine::evidence::{Evidence, EvidenceFault, SensitiveChange};
use engine::run::ImportOutcome;
use forge::find_foreign_actions;
use merge::pattern::PathPatterns;
use model::exit::BottleExit;
use model::id::Sha;
use model::verdict::Ended;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sidecar::DoneStatus;

use super::leak::ScanReport;

/// References of one message that an objection names.
const REFERENCES_MAX: usize = 5;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// The commits may be published.
    Publish,
    /// The check fails although the agent tried to repair it; the commits are published as a draft.
    Draft { how: String },
    /// The check fails; the commits are kept and not published.
    CheckFailed { how: String },
    /// The agent wrote a plan, which people approve before it works.
    Planned,
    /// The agent left no new commits.
    Nothing,
    /// The agent did not finish; its commits are kept and not published.
    Unfinished { how: String },
    /// The result holds something that must not be published.
    Refused { reasons: Vec<String> },
    /// The bottle's own set-up failed, so the agent was not started.
    SetupFailed { how: String },
    /// New commits of origin could not be brought into the workspace, so the agent was not started.
    NotRehydrated { how: String },
    /// The infrastructure failed.
    Infra { reason: String },
}

impl Verdict {
    /// The serialised tag.
    pub(crate) fn kind(&self) -> String {
        json!(self)["kind"].as_str().unwrap_or_default().to_owned()
    }

    /// True if the commits go to the forge, as a draft or not.
    pub(crate) fn is_published(&self) -> bool {
        matches!(self, Self::Publish | Self::Draft { .. })
    }

    pub(crate) fn words(&self) -> String {
        match self {
            Self::Publish => "the work holds".to_owned(),
            Self::Draft { how } => format!("a draft: the check fails ({how})"),
            Self::CheckFailed { how } => format!("the check fails ({how})"),
            Self::Planned => "a plan, and no work yet".to_owned(),
            Self::Nothing => "no new commits".to_owned(),
            Self::Unfinished { how } => format!("not finished: {how}"),
            Self::Refused { reasons } => format!("not to be published: {}", reasons.join("; ")),
            Self::SetupFailed { how } => format!("the bottle's set-up failed: {how}"),
            Self::NotRehydrated { how } => format!(
                "git in the workspace could not take in what is new ({how}); mend it with bot-bottle exec"
            ),
            Self::Infra { reason } => format!("the machine failed: {reason}"),
        }
    }
}

/// Facts after the box has ended and its commits were imported.
#[derive(Debug, Clone)]
pub(crate) struct AgentWork<'a> {
    pub(crate) ended: Ended,
    pub(crate) report: Option<DoneStatus>,
    pub(crate) import: ImportOutcome,
    pub(crate) scans: &'a [ScanReport],
    pub(crate) protected: &'a [String],
    /// Patterns of paths that the agent may change although they are protected or act by themselves.
    pub(crate) allowed: &'a [String],
    /// Paths that differ from the start of the branch.
    pub(crate) changed: &'a [Vec<u8>],
    pub(crate) acting: &'a [ActingMessage],
    /// True if the agent had to write a plan.
    pub(crate) planning: bool,
}

/// Commit message that closes or reopens an issue of others when its commit is merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ActingMessage {
    commit: Sha,
    /// References to the issues, as written.
    references: Vec<String>,
}

impl ActingMessage {
    /// Reads a message; `None` if it acts on no issue but the run's own.
    pub(crate) fn find(commit: &Sha, message: &str, own_issue: u64) -> Option<Self> {
        let found = find_foreign_actions(message, own_issue);
        let references: Vec<String> =
            found.iter().take(REFERENCES_MAX).map(|it| it.escape_debug().to_string()).collect();
        (!references.is_empty()).then(|| Self { commit: commit.clone(), references })
    }

    fn objection(&self) -> String {
        format!(
            "the message of {} closes or reopens {} when it is merged; reword it",
            self.commit.short(),
            self.references.join(", ")
        )
    }
}

/// Judges a run. The machine outranks the agent, a report of failure is believed, and an agent that was frozen after its
/// completion signal is done.
pub(crate) fn judge(after: &AgentWork<'_>) -> Verdict {
    match (&after.ended, after.report) {
        (Ended::Infra { reason }, _) => Verdict::Infra { reason: reason.clone() },
        (Ended::Signalled { signal }, _) => unfinished(&format!("ended by signal {signal}")),
        (Ended::OutOfTime, _) => unfinished("out of time"),
        (Ended::OutOfMemory, _) => unfinished("it used up its memory"),
        (Ended::OutOfSpace, _) => unfinished("it used up its disk space"),
        (Ended::Stopped, _) => unfinished("stopped"),
        (_, Some(DoneStatus::Failure)) => unfinished("the agent says that it could not do it"),
        (_, Some(DoneStatus::Blocked)) => unfinished("the agent waits for a person"),
        (Ended::Exited { .. } | Ended::Frozen, Some(DoneStatus::Success)) if after.planning => {
            Verdict::Planned
        }
        (Ended::Exited { code: 0 }, None) if after.planning => unfinished("it handed in no plan"),
        (Ended::Exited { .. } | Ended::Frozen, Some(DoneStatus::Success))
        | (Ended::Exited { code: 0 }, None) => judge_import(after),
        (Ended::Exited { code }, None) => unfinished(&format!("status {code}")),
        (Ended::Frozen, None) => unfinished("frozen before it said that it is done"),
    }
}

fn unfinished(how: &str) -> Verdict {
    Verdict::Unfinished { how: how.to_owned() }
}

fn judge_import(after: &AgentWork<'_>) -> Verdict {
    match &after.import {
        ImportOutcome::Nothing => Verdict::Nothing,
        ImportOutcome::Refused(reason) => Verdict::Refused { reasons: vec![reason.clone()] },
        ImportOutcome::Commits(evidence) => {
            let reasons = objections(after, evidence);
            if reasons.is_empty() { Verdict::Publish } else { Verdict::Refused { reasons } }
        }
    }
}

/// Objections against publishing.
fn objections(after: &AgentWork<'_>, evidence: &Evidence) -> Vec<String> {
    let list = |what: &str, items: &[String]| -> Vec<String> {
        items.iter().map(|item| format!("{what}: {item}")).collect()
    };
    let protected = PathPatterns::new(after.protected);
    let allowed = PathPatterns::new(after.allowed);
    let touched = after.changed.iter();
    let touched = touched.filter(|path| protected.matches(path) && !allowed.matches(path));
    let touched: Vec<String> =
        touched.map(|path| String::from_utf8_lossy(path).escape_debug().to_string()).collect();
    let base = (!evidence.base_reachable)
        .then(|| "history that others built on is not in the result; merge it".to_owned());
    let held = evidence.sensitive.iter().filter(|it| !allowed.matches(it.path.as_bytes()));
    // A protected path has its reason already.
    let held = held.filter(|it| !touched.contains(&it.path)).map(SensitiveChange::message);
    let (by_strangers, faults): (Vec<_>, Vec<_>) = evidence
        .faults()
        .into_iter()
        .map(|(fault, items)| (fault, list(fault_words(fault), items)))
        .partition(|(fault, _)| *fault == EvidenceFault::ForeignIdentity);
    let words = |faults: Vec<(EvidenceFault, Vec<String>)>| -> Vec<String> {
        faults.into_iter().flat_map(|(_, items)| items).collect()
    };
    [
        base.into_iter().collect(),
        words(by_strangers),
        list("protected path", &touched),
        list("waits for a person (allow_paths in the manifest)", &held.collect::<Vec<_>>()),
        words(faults),
        after.acting.iter().map(ActingMessage::objection).collect(),
        after.scans.iter().filter_map(ScanReport::objection).collect(),
    ]
    .concat()
}

fn fault_words(fault: EvidenceFault) -> &'static str {
    match fault {
        EvidenceFault::LinkLeaving => "a link leads out of the tree",
        EvidenceFault::LinkBroken => "a link cannot be followed",
        EvidenceFault::GitlinkMade => "a link to another repository",
        EvidenceFault::SubmoduleChanged => "address of a submodule",
        EvidenceFault::MarkersLeft => "conflict markers",
        EvidenceFault::OddMode => "odd mode",
        EvidenceFault::Oversize => "too large",
        EvidenceFault::ForeignIdentity => "not by the box's own identity",
    }
}

/// Exit status of a headless command: the agent's own; 124, 137 and 143 for an agent that was ended, as in shells; 125 for
/// a failure of the host.
pub(crate) fn headless_status(ended: &Ended, done: Option<DoneStatus>) -> u8 {
    match ended {
        Ended::Exited { code } => u8::try_from(*code).unwrap_or(1),
        Ended::Signalled { signal } => u8::try_from(128 + *signal).unwrap_or(1),
        Ended::OutOfTime => 124,
        Ended::OutOfMemory | Ended::OutOfSpace => 137,
        // After its completion signal it was only slow to leave.
        Ended::Frozen => match done {
            Some(DoneStatus::Success) => 0,
            Some(DoneStatus::Failure) => 1,
            Some(DoneStatus::Blocked) => BottleExit::Blocked.code(),
            None => 143,
        },
        Ended::Stopped => 143,
        Ended::Infra { .. } => BottleExit::OwnFailure.code(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::leak::ScanOutcome;
    use super::*;

    fn good() -> Evidence {
        Evidence { base_reachable: true, ..Evidence::default() }
    }

    fn verdict(evidence: Evidence, scans: &[ScanReport], changed: &[Vec<u8>]) -> Verdict {
        judge(&AgentWork {
            ended: Ended::Exited { code: 0 },
            report: None,
            import: ImportOutcome::Commits(Box::new(evidence)),
            scans,
            protected: &[".github/workflows".to_owned()],
            allowed: &[],
            changed,
            acting: &[],
            planning: false,
        })
    }

    fn ended(ended: Ended, report: Option<DoneStatus>) -> Verdict {
        let import = ImportOutcome::Commits(Box::new(good()));
        judge(&AgentWork {
            ended,
            report,
            import,
            scans: &[],
            protected: &[],
            allowed: &[],
            changed: &[],
            acting: &[],
            planning: false,
        })
    }

    #[test]
    fn a_commit_message_that_acts_on_another_issue_is_not_published() {
        let commit = Sha::parse(&"a".repeat(40)).expect("a sha");
        assert_eq!(ActingMessage::find(&commit, "sort\n\nCloses #3, see #26", 3), None);
        let found = ActingMessage::find(&commit, "sort\n\nCloses #26\nReopens #27", 3);
        let acting = [found.expect("it acts")];
        let import = ImportOutcome::Commits(Box::new(good()));
        let verdict = judge(&AgentWork {
            ended: Ended::Exited { code: 0 },
            report: None,
            import,
            scans: &[],
            protected: &[],
            allowed: &[],
            changed: &[],
            acting: &acting,
            planning: false,
        });
        assert!(verdict.words().contains("closes or reopens #26, #27"), "{}", verdict.words());
    }

    #[test]
    fn what_holds_is_published() {
        assert_eq!(verdict(good(), &[], &[b"src/a.rs".to_vec()]), Verdict::Publish);
    }

    #[test]
    fn each_fault_blocks_and_is_named() {
        let check = |evidence, word: &str| {
            let Verdict::Refused { reasons } = verdict(evidence, &[], &[]) else {
                panic!("refused")
            };
            assert!(reasons.iter().any(|reason| reason.contains(word)), "{reasons:?}");
        };
        let one = || vec!["x".to_owned()];
        check(Evidence { base_reachable: false, ..good() }, "history");
        check(Evidence { foreign_identities: one(), ..good() }, "identity");
        check(Evidence { links_leaving: one(), ..good() }, "leads out");
        let changed = [b".github/workflows/ci.yml".to_vec()];
        assert!(verdict(good(), &[], &changed).words().contains("protected path"));
        let status = ScanOutcome::Findings { count: 1, listed: vec![] };
        let scan = ScanReport {
            engine: "built-in".to_owned(),
            version: None,
            program_sha256: None,
            status,
        };
        assert!(verdict(good(), &[scan], &[]).words().contains("found 1 secret"));
    }

    #[test]
    fn only_an_agent_that_ended_or_said_done_is_published() {
        let done = Some(DoneStatus::Success);
        assert_eq!(ended(Ended::Frozen, done), Verdict::Publish);
        assert_eq!(ended(Ended::Exited { code: 3 }, done), Verdict::Publish);
        for (end, report) in [
            (Ended::Frozen, None),
            (Ended::Stopped, done),
            (Ended::OutOfTime, done),
            (Ended::Exited { code: 3 }, None),
            (Ended::Exited { code: 0 }, Some(DoneStatus::Blocked)),
            (Ended::Exited { code: 0 }, Some(DoneStatus::Failure)),
        ] {
            assert!(matches!(ended(end.clone(), report), Verdict::Unfinished { .. }), "{end:?}");
        }
    }

    #[test]
    fn the_agents_status_is_handed_on_and_ours_is_125() {
        assert_eq!(headless_status(&Ended::Exited { code: 7 }, None), 7);
        assert_eq!(headless_status(&Ended::OutOfTime, None), 124);
        assert_eq!(headless_status(&Ended::Frozen, Some(DoneStatus::Success)), 0);
        assert_eq!(headless_status(&Ended::Frozen, None), 143);
        let infra = Ended::Infra { reason: String::new() };
        assert_eq!(headless_status(&infra, Some(DoneStatus::Success)), 125);
    }
}
