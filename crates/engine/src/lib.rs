//! One supervised run: workspace in, box, workspace out, evidence.
//!
//! The products say what they observe, how they judge and where they publish; everything between is here. The
//! [`shim`] is a process of its own, so a run outlives whoever started it; [`launch`] starts it and finds it
//! again.

pub mod chore;
pub mod claim;
pub mod errand;
pub mod evidence;
pub mod export;
pub mod hire;
pub mod install;
pub mod launch;
pub mod listen;
pub mod mirror;
pub mod place;
pub mod record;
pub mod shim;
pub mod terminal;
pub mod workspace;
