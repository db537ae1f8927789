//! Context of a run: the command or the orchestrator that drives it.

use host::signal::{Cancel, CancelReason, StopSignal};
use shell::Ui;

use super::home::Home;
use super::issue_row::IssueRows;

/// Environment of a run.
#[derive(Clone, Copy)]
pub(crate) struct RunContext<'a> {
    pub(crate) ui: &'a Ui,
    pub(crate) home: &'a Home,
    /// Writes the rows of its issue.
    pub(crate) rows: IssueRows<'a>,
    pub(crate) cancel: &'a Cancel,
    pub(crate) transient: TransientFailure,
    /// Address of the page that people open, if there is one.
    pub(crate) public_url: Option<&'a str>,
}

impl RunContext<'_> {
    /// Words of a person who stopped the run, other than by a signal.
    pub(crate) fn stop_words(&self) -> Option<String> {
        match self.cancel.reason()? {
            CancelReason::Asked(words) => Some(words.to_string()),
            CancelReason::Signal(_) => None,
        }
    }

    /// The signal that ends this command.
    pub(crate) fn stop_signal(&self) -> Option<StopSignal> {
        match self.cancel.reason()? {
            CancelReason::Signal(signal) => Some(signal),
            CancelReason::Asked(_) => None,
        }
    }
}

/// Handling of a good result that cannot be published now, because a forge is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransientFailure {
    /// The run is closed with the reason.
    Close,
    /// The run stays open, and the orchestrator continues it later.
    Wait,
}
