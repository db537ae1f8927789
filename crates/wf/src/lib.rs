//! `wf`: takes a planned workstream through micro-commits: implement, test, review, QA, docs, acceptance, merge, with
//! people at the gates.
//!
//! The program is a library with one door, so that fuzz targets and benches can reach its parsers through [`probe`].

mod cli;
mod commands;
mod disk;
mod exit;
mod flow;
pub mod probe;
mod rules;
mod ui;

pub use cli::run;
