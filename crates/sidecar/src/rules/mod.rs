//! Decisions about calls. Pure.

pub(crate) mod budget;
