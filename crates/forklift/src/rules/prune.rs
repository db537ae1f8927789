//! Choice of the runs to remove, with a reason for each of the others.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Span, SpanRelativeTo};
use model::id::RunId;
use serde::Serialize;

#[derive(Debug, Clone)]
pub(crate) struct OldRun {
    pub(crate) run: RunId,
    /// `None` if its record cannot be read.
    pub(crate) fork: Option<String>,
    pub(crate) age: SignedDuration,
    pub(crate) state: RunState,
    pub(crate) resumed_from: Option<RunId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunState {
    /// A box of it runs, or a forklift works on its fork.
    Alive,
    Unfinished,
    Unreadable,
    /// Work of an agent that was not published.
    UnpublishedWork,
    /// A verified commit that could not be published.
    UnpublishedCommit,
    Published,
    Empty,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct PruneOptions {
    pub(crate) older_than: SignedDuration,
    /// Newest runs of each fork that stay.
    pub(crate) keep: usize,
    pub(crate) unpublished: Unpublished,
}

/// Handling of work that was published nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unpublished {
    Keep,
    Remove,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fate {
    Remove,
    Alive,
    Unfinished,
    Unreadable,
    Young,
    Newest,
    UnpublishedWork,
    UnpublishedCommit,
}

impl Fate {
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Remove => "it is old",
            Self::Alive => "it is at work",
            Self::Unfinished => "it is not finished (see: forklift attach)",
            Self::Unreadable => "its record cannot be read",
            Self::Young => "it is young (--older-than)",
            Self::Newest => "it is among the newest or the last published of its fork (--keep)",
            Self::UnpublishedWork => "an agent's unpublished work is in it (--unpublished)",
            Self::UnpublishedCommit => {
                "a verified commit that was not published is in it (--unpublished)"
            }
        }
    }
}

/// Decides about every run; they must come newest first. What must never be removed outranks every option, and a run is
/// removed only if its age and its place among the newest both allow it.
pub(crate) fn judge_runs(runs: &[OldRun], options: PruneOptions) -> Vec<Fate> {
    let mut newer: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    let mut published: BTreeSet<Option<&str>> = BTreeSet::new();
    let mut fates = Vec::new();
    for run in runs {
        let before = newer.entry(run.fork.as_deref()).or_default();
        let is_last_published =
            run.state == RunState::Published && published.insert(run.fork.as_deref());
        let is_newest = *before < options.keep || (is_last_published && options.keep > 0);
        *before += 1;
        let spared = options.unpublished == Unpublished::Keep && !is_carried_on(run, runs);
        fates.push(match run.state {
            RunState::Alive => Fate::Alive,
            RunState::Unfinished => Fate::Unfinished,
            RunState::Unreadable => Fate::Unreadable,
            _ if run.age <= options.older_than => Fate::Young,
            _ if is_newest => Fate::Newest,
            RunState::UnpublishedWork if spared => Fate::UnpublishedWork,
            RunState::UnpublishedCommit if spared => Fate::UnpublishedCommit,
            RunState::UnpublishedWork
            | RunState::UnpublishedCommit
            | RunState::Published
            | RunState::Empty => Fate::Remove,
        });
    }
    fates
}

/// Returns whether a later run that continues this one was published: then its work is too. A chain of runs has as many
/// links as there are runs, so following it ends.
fn is_carried_on(run: &OldRun, runs: &[OldRun]) -> bool {
    let mut names = vec![&run.run];
    while let Some(name) = names.pop() {
        for later in runs.iter().filter(|later| later.resumed_from.as_ref() == Some(name)) {
            if later.state == RunState::Published {
                return true;
            }
            // Later runs have later names; anything else is a record that was tampered with.
            if later.run.as_str() > name.as_str() {
                names.push(&later.run);
            }
        }
    }
    false
}

/// Reads an age such as `30d`, `2w` or `12h`. A day has 24 hours.
pub(crate) fn parse_age(text: &str) -> Result<SignedDuration, String> {
    let wrong = || format!("'{text}' is no age; give a number and w, d, h or m, such as 30d");
    let span: Span = text.parse().map_err(|_ignored: jiff::Error| wrong())?;
    let age = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok();
    age.filter(|age| !age.is_negative()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: SignedDuration = SignedDuration::from_hours(24);

    fn run(day: u32, state: RunState) -> OldRun {
        // The newest run is of the last day of the month, so that names are in the order of time.
        OldRun {
            run: id(day),
            fork: Some("/fork".to_owned()),
            age: DAY * i32::try_from(day).expect("small"),
            state,
            resumed_from: None,
        }
    }

    fn id(day: u32) -> RunId {
        RunId::parse(&format!("fork_202501{:02}_120000", 31 - day)).expect("a name")
    }

    fn options(days: i32, keep: usize, unpublished: Unpublished) -> PruneOptions {
        PruneOptions { older_than: DAY * days, keep, unpublished }
    }

    #[test]
    fn each_state_has_its_fate_when_age_and_number_allow() {
        use Unpublished::{Keep, Remove};
        for (state, unpublished, expected) in [
            (RunState::Alive, Remove, Fate::Alive),
            (RunState::Unfinished, Remove, Fate::Unfinished),
            (RunState::Unreadable, Remove, Fate::Unreadable),
            (RunState::UnpublishedWork, Keep, Fate::UnpublishedWork),
            (RunState::UnpublishedWork, Remove, Fate::Remove),
            (RunState::UnpublishedCommit, Keep, Fate::UnpublishedCommit),
            (RunState::UnpublishedCommit, Remove, Fate::Remove),
            (RunState::Published, Keep, Fate::Remove),
            (RunState::Empty, Keep, Fate::Remove),
        ] {
            let fates = judge_runs(&[run(20, state)], options(10, 0, unpublished));
            assert_eq!(fates, [expected], "{state:?} {unpublished:?}");
        }
    }

    #[test]
    fn age_and_number_must_both_allow_it() {
        let runs: Vec<_> = [1, 5, 20, 25].map(|day| run(day, RunState::Empty)).to_vec();
        for (days, keep, expected) in [
            (10, 0, [Fate::Young, Fate::Young, Fate::Remove, Fate::Remove]),
            (0, 2, [Fate::Newest, Fate::Newest, Fate::Remove, Fate::Remove]),
            (10, 3, [Fate::Young, Fate::Young, Fate::Newest, Fate::Remove]),
            (30, 0, [Fate::Young, Fate::Young, Fate::Young, Fate::Young]),
            (0, 10, [Fate::Newest, Fate::Newest, Fate::Newest, Fate::Newest]),
        ] {
            let fates = judge_runs(&runs, options(days, keep, Unpublished::Keep));
            assert_eq!(fates, expected, "{days} days, keep {keep}");
        }
    }

    #[test]
    fn the_newest_are_counted_for_each_fork() {
        let other = OldRun { fork: Some("/other".to_owned()), ..run(25, RunState::Empty) };
        let runs = [run(20, RunState::Empty), run(22, RunState::Empty), other];
        let fates = judge_runs(&runs, options(10, 1, Unpublished::Keep));
        assert_eq!(fates, [Fate::Newest, Fate::Remove, Fate::Newest]);
    }

    #[test]
    fn work_that_a_published_run_went_on_from_is_published() {
        let stuck = run(25, RunState::UnpublishedWork);
        let again = OldRun { resumed_from: Some(id(25)), ..run(22, RunState::UnpublishedWork) };
        let done = OldRun { resumed_from: Some(id(22)), ..run(20, RunState::Published) };
        let fates =
            judge_runs(&[done, again.clone(), stuck.clone()], options(10, 0, Unpublished::Keep));
        assert_eq!(fates, [Fate::Remove, Fate::Remove, Fate::Remove]);
        let fates = judge_runs(&[again, stuck], options(10, 0, Unpublished::Keep));
        assert_eq!(fates, [Fate::UnpublishedWork, Fate::UnpublishedWork]);
    }

    #[test]
    fn runs_that_claim_to_go_on_from_each_other_hang_nobody() {
        let one = OldRun { resumed_from: Some(id(22)), ..run(20, RunState::UnpublishedWork) };
        let two = OldRun { resumed_from: Some(id(20)), ..run(22, RunState::UnpublishedWork) };
        let fates = judge_runs(&[one, two], options(10, 0, Unpublished::Keep));
        assert_eq!(fates, [Fate::UnpublishedWork, Fate::UnpublishedWork]);
    }

    #[test]
    fn ages_are_read_and_nonsense_is_not() {
        for (text, hours) in [("30d", 720), ("2w", 336), ("12h", 12), ("0d", 0), ("1d 6h", 30)] {
            assert_eq!(parse_age(text), Ok(SignedDuration::from_hours(hours)), "{text}");
        }
        for text in ["", "30", "soon", "-3d", "1y", "2mo", "99999999999999999999d"] {
            assert!(parse_age(text).is_err(), "{text}");
        }
    }
}
