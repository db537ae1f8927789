//! Merges as the host sees them, in a repository of its own and without a work tree.
//!
//! - [`clean`] makes the merge that needs nobody, or says where it conflicts
//! - [`rebase`] does the same for a fork that is kept as a stack of commits on top of upstream
//! - [`contract`] accounts for everything that was the fork's: kept, superseded, changed or lost
//! - [`forecast`] says what is coming from upstream before anything is done
//!
//! Whether a loss stops a run, and what is done about a conflict, is for others to decide.

pub mod clean;
pub mod contract;
pub mod forecast;
pub mod path;
pub mod rebase;
