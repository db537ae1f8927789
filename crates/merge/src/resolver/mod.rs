//! Conflict resolver: resolves conflicts of a merge without a model, as far as each class of answers is trusted.
//!
//! - [`conflict`] reads the conflicts of a merge, [`hunk`] cuts a file into merged pieces and conflicting hunks
//! - [`analysis`], [`memory`], [`habit`] and [`rule`] are the sources of answers; [`answer_class`] names their classes
//! - [`structure`] is the interface to an external program that merges by syntax; [`nearby`] lists earlier resolutions
//!   at the same path or folder
//! - [`scorer`] gives every answer a confidence, [`standing`] limits it by the record of its kind in this fork, [`decide`]
//!   picks one, [`gate`] rejects broken results
//! - [`resolve_conflicts()`] does all of that for one merge and writes a [`receipt`] for each resolved and a [`brief`]
//!   for each open conflict; [`touch`] adds the commits of both sides to the briefs
//! - [`human`] reads people's resolution of a past conflict, [`knowledge`] learns from it, [`record`] holds the measured
//!   precision of each answer class, [`table`] the shipped values
//! - [`replay`] tries the resolver on one past merge, [`history`] on all merges of a fork; [`replayed`] holds the results

pub mod analysis;
pub mod answer_class;
pub mod brief;
pub mod conflict;
pub mod decide;
pub mod gate;
pub mod habit;
pub mod history;
pub mod human;
pub mod hunk;
pub mod knowledge;
pub mod memory;
pub mod nearby;
pub mod receipt;
pub mod record;
pub mod replay;
pub mod replayed;
pub mod resolve;
pub mod rule;
pub mod scorer;
pub mod standing;
pub mod structure;
pub mod table;
pub mod touch;

pub use brief::{Brief, HunkBrief, Proposal};
pub use resolve::{
    MergeHeads, RegeneratedFile, RegeneratedFiles, ResolveOptions, ResolvedMerge, resolve_conflicts,
};
