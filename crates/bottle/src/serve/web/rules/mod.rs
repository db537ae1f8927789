//! Pure rules of the page and the API.

pub(crate) mod action;
pub(crate) mod case_status;
pub(crate) mod diff;
pub(crate) mod format;
pub(crate) mod history;
pub(crate) mod link;
pub(crate) mod log_style;
pub(crate) mod steps;
