//! The shell around the three programs: everything between `main` and the work of a command that is the same in
//! `forklift`, `wf` and `bot-bottle`.
//!
//! - [`start`]: hidden roles, the panic hook, the command line, the exit status. `usage`: wrong usage in one line.
//! - [`ui`]: the only printer. [`terminal`] is the only writer, with the redactor in front of it.
//! - [`failure`]: an error with its exit status and its remedy.
//! - [`runtime`]: the async runtime of a command, stopped by signals.
//! - [`cli`]: flags and commands that every program has.
//! - [`confirm`]: consent to delete. [`progress`]: counts of fetches.
//! - [`config`]: the configuration that the programs share, and the command that shows and changes it.
//! - [`agent_choice`]: the agent of a run where none is named. [`agent_options`]: the options of one that a file names.
//! - [`agent_facts`]: model, duration, tokens and cost of an agent, in words.
//! - [`demo`]: the folder and the user of a demo.
//! - [`init`]: the part of `init` that the programs share.
//! - [`manual`]: manual pages, and the examples in help texts.
//! - [`identity`]: the user under whose name commits are published. [`price_list`]: what a run cost, about.
//! - [`doctor`], [`agent_log`], [`agent_settings`], [`pull`]: common parts of commands.

pub mod agent_choice;
pub mod agent_facts;
pub mod agent_log;
pub mod agent_options;
pub mod agent_settings;
pub mod cli;
pub mod config;
pub mod confirm;
pub mod demo;
pub mod doctor;
pub mod failure;
pub mod identity;
pub mod init;
pub mod manual;
pub mod price_list;
pub mod progress;
pub mod pull;
pub mod runtime;
pub mod start;
pub mod terminal;
pub mod ui;
mod usage;

pub use failure::{Failure, OrExit};
pub use start::{Program, Role};
pub use ui::{KeptOutput, Ui};
