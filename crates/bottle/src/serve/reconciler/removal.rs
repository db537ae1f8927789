//! The host that changes or removes a bottle.

use orchestrator_db::{HostRow, IssueKey, WorkItem};

use super::Reconciler;
use crate::exit::{Failure, OrGeneral};
use crate::rules::bottle_place::BottlePlace;

impl Reconciler {
    /// True if the bottle of an item is here, or was until it was removed. What never had one is for the server that has the
    /// turn.
    pub(super) fn is_ours_to_destroy(&self, work: &WorkItem) -> Result<bool, Failure> {
        Ok(match self.place_of(&work.key)? {
            Some(place) => self.has_bottle(&work.key, &place)?,
            None => {
                let removed = self.service.store.forge_state(&work.key).or_general()?;
                match removed.and_then(|row| row.host) {
                    Some(host) => host == self.holder.host,
                    None => self.board.is_some(),
                }
            }
        })
    }

    /// True if a bottle at this place is this host's to change. Of the hosts that could all fetch one from the store, one is.
    pub(super) fn has_bottle(&self, key: &IssueKey, place: &BottlePlace) -> Result<bool, Failure> {
        Ok(match place {
            BottlePlace::Elsewhere { .. } => false,
            BottlePlace::Here | BottlePlace::HalfMade | BottlePlace::Missing => true,
            BottlePlace::Cached | BottlePlace::Stored => self.is_left_to_us(key)?,
        })
    }

    /// True if a bottle in the store is this host's: it is the one that the row names, or it has the turn and that one
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
