//! Context of a run: the command or the orchestrator that drives it.

use host::signal::Cancel;
use shell::Ui;

use super::home::Home;

/// Environment of a run.
#[derive(Clone, Copy)]
pub(crate) struct RunContext<'a> {
    pub(crate) ui: &'a Ui,
    pub(crate) home: &'a Home,
    pub(crate) cancel: &'a Cancel,
    pub(crate) transient: TransientFailure,
    /// Address of the page that people open, if there is one.
    pub(crate) public_url: Option<&'a str>,
}

/// Handling of a good result that cannot be published now, because a forge is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransientFailure {
    /// The run is closed with the reason.
    Close,
    /// The run stays open, and the orchestrator continues it later.
    Wait,
}
