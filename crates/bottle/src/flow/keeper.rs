//! Whoever keeps a run: a command that a person typed, or the orchestrator.

use host::signal::Cancel;

use super::home::Home;
use crate::ui::Ui;

/// What a run needs of whoever keeps it.
#[derive(Clone, Copy)]
pub(crate) struct Keeper<'a> {
    /// How it talks.
    pub(crate) ui: &'a Ui,
    /// Where it keeps things.
    pub(crate) home: &'a Home,
    /// What tells it to stop.
    pub(crate) cancel: &'a Cancel,
    /// What it does about trouble that passes, such as a forge that is down.
    pub(crate) trouble: Trouble,
}

/// What is done when a good result cannot be published now and could be later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The run is closed, and a person is told.
    Close,
    /// The run stays open where it is, and whoever keeps it comes back.
    Wait,
}
