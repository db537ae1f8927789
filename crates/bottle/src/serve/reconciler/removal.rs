//! The host that removes a bottle when its time is over.

use orchestrator_db::{HostRow, IssueKey, WorkItem};

use super::Reconciler;
use crate::exit::{Failure, OrGeneral};
use crate::rules::bottle_place::BottlePlace;

impl Reconciler {
    /// True if the bottle of an item is here, or was until it was removed. What never had one is for the server that has the
    /// turn.
    pub(super) fn is_ours_to_destroy(&self, work: &WorkItem) -> Result<bool, Failure> {
        Ok(match self.place_of(&work.key)? {
            Some(BottlePlace::Elsewhere { .. }) => false,
            Some(BottlePlace::Here | BottlePlace::HalfMade | BottlePlace::Missing) => true,
            Some(BottlePlace::Cached | BottlePlace::Stored) => self.is_left_to_us(&work.key)?,
            None => {
                let removed = self.service.store.forge_state(&work.key).or_general()?;
                match removed.and_then(|row| row.host) {
                    Some(host) => host == self.holder.host,
                    None => self.board.is_some(),
                }
            }
        })
    }

    /// True if a bottle in the store is this host's to remove: it is the one that the row names, or it has the turn and that one
    /// no longer reports itself.
    fn is_left_to_us(&self, key: &IssueKey) -> Result<bool, Failure> {
        let store = &self.service.store;
        let row = store.forge_state(key).or_general()?;
        let Some(host) = row.and_then(|row| row.host) else { return Ok(true) };
        if host == self.holder.host {
            return Ok(true);
        }
        let is_live = |it: &HostRow| it.report.name == host && it.is_live;
        Ok(self.board.is_some() && !store.hosts().or_general()?.iter().any(is_live))
    }
}
