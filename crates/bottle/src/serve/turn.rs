//! The turn: of the servers that share a database, one reconciles. The others keep webhooks, show the page, and take the turn
//! when its lease ends.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use crate::exit::{Failure, OrGeneral};
use crate::flow::lease::LeaseHolder;
use crate::rules::lease::deadline;
use crate::serve::Service;

/// Name of the chore in the database.
const CHORE: &str = "reconcile";

/// Until when this server has the turn, on the boot-time clock.
#[derive(Debug, Default)]
pub(crate) struct ServeTurn {
    until: Mutex<Duration>,
}

impl ServeTurn {
    /// True while the lease of this server's turn runs.
    pub(crate) fn is_ours(&self) -> bool {
        host::clock::boottime() < *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, until: Duration) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }
}

/// Takes the turn if no other server has it, or renews its lease; false while another one has it.
pub(super) fn hold_turn(
    service: &Service,
    holder: &LeaseHolder,
    lease: Duration,
) -> Result<bool, Failure> {
    let asked_at = host::clock::boottime();
    let is_held = service.store.hold_chore(CHORE, &holder.name, lease).or_general()?;
    service.turn.set(if is_held { deadline(asked_at, lease) } else { Duration::ZERO });
    Ok(is_held)
}

/// Ends the turns of earlier servers of this home. The lock on the home proves that they are gone.
pub(super) fn end_earlier_turns(service: &Service, holder: &LeaseHolder) -> Result<(), Failure> {
    service.store.release_host_chores(&holder.name).or_general()
}

/// Gives the turn up.
pub(super) fn end_turn(service: &Service, holder: &LeaseHolder) -> Result<(), Failure> {
    service.turn.set(Duration::ZERO);
    service.store.release_chore(CHORE, &holder.name).or_general()
}
