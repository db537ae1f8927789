//! Merges made by the host in a bare repository of its own, without a work tree.
//!
//! - [`account`] compares a result with both sides: what of each was taken, adapted or dropped
//! - [`clean`] makes a merge that has no conflicts, or lists the conflicts
//! - [`rebase`] does the same for a fork that is kept as a stack of commits on top of upstream
//! - [`contract`] accounts for every change of the fork: kept, superseded, changed or lost
//! - [`delta`] takes the inventory of a fork: every line of its own, and the commit that it comes from
//! - [`entry`] lists the changes that the judges of a result share
//! - [`forecast`] previews upstream's commits, files and conflicts
//! - [`likeness`] says how much of a change another version of a file has
//! - [`pick`] applies the change of one commit to another
//! - [`provenance`] reads from messages which commits they bring or undo
//! - [`resolver`] resolves conflicts without a model, with a receipt for each, and writes briefs for the rest
//! - [`own`] lists the files in which the fork differs from its merge base with upstream
//! - [`pattern`] matches paths by gitignore-like patterns
//! - [`test_names`] accounts for the tests of both sides by name: missing, skipped or weakened in the result
//! - [`three`] merges sequences of lines and of tokens
//! - [`trusted_check`] puts the files that define a check back as trusted people have them
//!
//! The products decide whether a loss stops a run and who resolves an open conflict.

pub mod account;
pub mod clean;
pub mod contract;
pub mod delta;
pub mod entry;
pub mod forecast;
mod generated;
pub mod likeness;
pub mod own;
pub mod path;
pub mod pattern;
pub mod pick;
pub mod provenance;
pub mod rebase;
pub mod resolver;
pub mod test_names;
pub mod three;
pub mod trusted_check;
