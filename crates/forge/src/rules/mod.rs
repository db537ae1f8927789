//! What is decided without asking anybody: what may be written where, which words do what on a forge, and which pull
//! request belongs to an issue. Pure.

pub(crate) mod link;
pub(crate) mod neutral;
pub(crate) mod scope;
