//! Merges as the host sees them, in a repository of its own and without a work tree.
//!
//! - [`clean`] makes the merge that needs nobody, or says where it conflicts
//! - [`contract`] accounts for everything that was the fork's: kept, superseded, changed or lost
//! - [`forecast`] says what is coming from upstream before anything is done
//! - [`ladder`] settles what can be settled without a model, with receipts, and briefs whoever settles the rest
//! - [`three`] merges sequences of lines and of tokens
//!
//! Whether a loss stops a run, and what is done about a conflict, is for others to decide.

pub mod clean;
pub mod contract;
pub mod forecast;
pub mod ladder;
pub mod path;
pub mod three;
