//! What the page and the API decide without touching anything.

pub(crate) mod diff;
pub(crate) mod link;
pub(crate) mod origin;
pub(crate) mod standing;
pub(crate) mod told;
pub(crate) mod wish;
pub(crate) mod words;
