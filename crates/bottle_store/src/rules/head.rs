//! The head of a bottle: which manifest counts, and who may move it. Pure.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Identity of a bottle among all of a fleet; an earlier one of the same issue and name is another one.
#[derive(Debug, Clone, Copy)]
pub struct BottleKey<'a> {
    pub owner: &'a str,
    pub repo: &'a str,
    pub issue: u64,
    pub slug: &'a str,
    pub made_at: jiff::Timestamp,
}

/// Name of a bottle in the store, which tells nothing about its issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BottleId(String);

const ID_DIGITS: usize = 40;

impl BottleId {
    /// Reads a name that was stored elsewhere; `None` if it is no such name.
    pub fn parse(text: &str) -> Option<Self> {
        let is_id = text.len() == ID_DIGITS
            && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_id.then(|| Self(text.to_owned()))
    }

    pub(crate) fn of_hash(hash: &str) -> Self {
        Self(hash.get(..ID_DIGITS).unwrap_or(hash).to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its folder in the store.
    pub(crate) fn folder(&self) -> String {
        format!("bottles/{}/", self.0)
    }
}

/// The claim under which a bottle is saved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BottleClaim {
    /// Grows with every claim of an issue.
    pub number: u64,
    /// Random: a database that was restored gives numbers out twice.
    pub id: u64,
}

impl fmt::Display for BottleClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:08x}", self.number, self.id)
    }
}

/// The head as the store has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadState {
    pub version: u32,
    /// The manifest that counts.
    pub manifest: String,
    /// Its number among those of the bottle.
    pub generation: u64,
    pub claim: BottleClaim,
    /// True once the bottle was destroyed: nothing is saved under it again.
    pub is_destroyed: bool,
}

pub(crate) const HEAD_VERSION: u32 = 1;

/// Process or person that wants to move a head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeadMover<'a> {
    /// `None` for a person who works by hand, under whichever claim the head has.
    pub(crate) claim: Option<BottleClaim>,
    /// The manifests that the folder may be of.
    pub(crate) bases: &'a [&'a str],
}

/// Answer to somebody who wants to move a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadMove {
    /// The claim that the head has after it.
    Allowed(BottleClaim),
    Destroyed,
    /// A newer claim has it.
    Overtaken {
        held: BottleClaim,
        came: BottleClaim,
    },
    /// The folder is not of this head.
    Diverged,
}

pub(crate) fn judge_move(head: Option<&HeadState>, mover: HeadMover<'_>) -> HeadMove {
    let Some(head) = head else { return HeadMove::Allowed(mover.claim.unwrap_or_default()) };
    let held = head.claim;
    let came = mover.claim.unwrap_or(held);
    // Of two claims with one number, which a restored database gives out, the one that came first stays.
    let is_newer = came.number > held.number || came == held;
    let is_base = mover.bases.contains(&head.manifest.as_str());
    match (head.is_destroyed, is_newer, is_base) {
        (true, ..) => HeadMove::Destroyed,
        (false, false, _) => HeadMove::Overtaken { held, came },
        (false, true, false) => HeadMove::Diverged,
        (false, true, true) => HeadMove::Allowed(came),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "00000002-aa";

    fn head(number: u64, id: u64) -> HeadState {
        let claim = BottleClaim { number, id };
        HeadState {
            version: 1,
            manifest: OWN.to_owned(),
            generation: 2,
            claim,
            is_destroyed: false,
        }
    }

    #[track_caller]
    fn check(
        head: Option<&HeadState>,
        claim: Option<BottleClaim>,
        bases: &[&str],
        expected: HeadMove,
    ) {
        let mover = HeadMover { claim, bases };
        assert_eq!(judge_move(head, mover), expected, "{head:?} {mover:?}");
    }

    #[test]
    fn an_older_claim_never_moves_a_head() {
        let held = BottleClaim { number: 5, id: 7 };
        let head = head(5, 7);
        for (number, id) in [(6, 1), (5, 7)] {
            let came = BottleClaim { number, id };
            check(Some(&head), Some(came), &[OWN], HeadMove::Allowed(came));
            check(Some(&head), Some(came), &["00000001-bb"], HeadMove::Diverged);
            check(Some(&head), Some(came), &[], HeadMove::Diverged);
        }
        for (number, id) in [(4, 9), (5, 8), (0, 0)] {
            let came = BottleClaim { number, id };
            check(Some(&head), Some(came), &[OWN], HeadMove::Overtaken { held, came });
        }
        let came = BottleClaim { number: 1, id: 1 };
        check(None, Some(came), &[], HeadMove::Allowed(came));
    }

    #[test]
    fn a_person_moves_the_head_of_the_own_folder_alone() {
        let head = head(5, 7);
        check(Some(&head), None, &[OWN], HeadMove::Allowed(head.claim));
        check(Some(&head), None, &["00000001-bb", OWN], HeadMove::Allowed(head.claim));
        check(Some(&head), None, &["00000001-bb"], HeadMove::Diverged);
        check(Some(&head), None, &[], HeadMove::Diverged);
        check(None, None, &[], HeadMove::Allowed(BottleClaim::default()));
        // A store that was emptied is filled again.
        check(None, None, &[OWN], HeadMove::Allowed(BottleClaim::default()));
    }

    #[test]
    fn a_bottle_that_was_destroyed_is_not_saved_again() {
        let head = HeadState { is_destroyed: true, ..head(5, 7) };
        check(Some(&head), Some(BottleClaim { number: 9, id: 9 }), &[OWN], HeadMove::Destroyed);
    }

    #[test]
    fn names_in_the_store_are_checked() {
        let id = BottleId::of_hash(&"ab".repeat(32));
        assert_eq!(BottleId::parse(id.as_str()), Some(id));
        for wrong in ["", "../x", &"a".repeat(39), &"g".repeat(40), &"A".repeat(40)] {
            assert_eq!(BottleId::parse(wrong), None, "{wrong}");
        }
    }
}
