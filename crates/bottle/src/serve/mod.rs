//! `bot-bottle serve`: from webhook to pull request, with nobody watching. What comes in is kept before it is acknowledged;
//! the keeper looks at the issues that it names, decides, and runs bottles; the page shows all of it.

pub(crate) mod inbox;
pub(crate) mod log;
pub(crate) mod settings;
pub(crate) mod web;

use std::sync::Arc;

use state::SqliteForgeStateStore;

use self::inbox::Inbox;
use self::settings::Settings;
use crate::flow::home::Home;

/// What everybody who answers requests needs.
pub(crate) struct Service {
    pub(crate) home: Home,
    pub(crate) settings: Settings,
    pub(crate) store: Arc<SqliteForgeStateStore>,
    pub(crate) inbox: Inbox,
}
