//! `forklift`: keeps a fork up to date with its upstream. An agent in a sealed box merges, the host verifies and
//! publishes.

mod cli;
mod commands;
mod exit;
mod flow;
mod rules;

mod ui {
    //! The printer.
    pub(crate) use shell::Ui;
}

use std::process::ExitCode;

use model::exit::ForkliftExit;
use shell::start::{JsonOutput, Program};

/// How forklift differs from the other programs.
static PROGRAM: Program = Program { name: "forklift", label_width: 11, json: JsonOutput::Events };

fn main() -> ExitCode {
    shell::start::main::<ForkliftExit>(&PROGRAM, &[], cli::run)
}
