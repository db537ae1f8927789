//! Context of a run: the command or the orchestrator that drives it.

use host::signal::Cancel;
use shell::Ui;

use super::home::Home;

/// What the process that drives a run gives it.
#[derive(Clone, Copy)]
pub(crate) struct RunContext<'a> {
    pub(crate) ui: &'a Ui,
    pub(crate) home: &'a Home,
    pub(crate) cancel: &'a Cancel,
    pub(crate) transient: TransientFailure,
}

/// What happens to a good result that cannot be published now but could be later, because a forge is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransientFailure {
    /// The run is closed, and the person reads why.
    Close,
    /// The run stays open, and the orchestrator comes back to it.
    Wait,
}
