//! How much may be asked. Pure.

pub(crate) mod budget;
