//! The ladder: what can be settled of a merge without a model, rung by rung, and only as far as each has earned it.
//!
//! - [`dispute`] has conflicts as data, [`hunk`] the pieces of a file that both sides changed
//! - [`plain`], [`memory`], [`habit`] and [`rule`] are what the rungs answer from, [`grade`] names their answers
//! - [`people`] reads off what people made of a conflict; [`knowledge`] learns from it, [`record`] keeps how often
//!   each grade was right, [`table`] is what other forks teach
//! - [`structure`] is a program that somebody else runs, with a record of its own; [`nearby`] is what earlier merges did
//!   around a conflict
//! - [`weigh`] has all answers with their confidence, [`decide`] picks one, [`gate`] has the last word
//! - [`climb()`] does it for a merge and writes [`receipt`]s and [`brief`]s, [`touch`] adds to the
//!   briefs who touched what is left; [`replay`] tries it on one past
//!   merge, [`history`] on all of a fork's

pub mod brief;
pub mod climb;
pub mod decide;
pub mod dispute;
pub mod gate;
pub mod grade;
pub mod habit;
pub mod history;
pub mod hunk;
pub mod knowledge;
pub mod memory;
pub mod nearby;
pub mod people;
pub mod plain;
pub mod receipt;
pub mod record;
pub mod replay;
pub mod rule;
pub mod structure;
pub mod table;
pub mod touch;
pub mod weigh;

pub use brief::{Brief, HunkBrief, Proposal};
pub use climb::{Climb, ClimbOptions, Ends, Made, Remade, climb};
