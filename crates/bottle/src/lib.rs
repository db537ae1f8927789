//! `bot-bottle`: turns a forge issue into a pull request, by an agent in a bottle that freezes while people review.

mod cli;
mod commands;
mod exit;
mod flow;
mod manual;
mod rules;
mod serve;

use std::process::ExitCode;

use clap::CommandFactory;
use shell::manual::Manual;
use shell::start::{JsonOutput, Program, Role};

use crate::cli::BottleCli;
use crate::flow::sidecar::SIDECAR_WORD;

static PROGRAM: Program = Program {
    name: "bot-bottle",
    label_width: 11,
    json: JsonOutput::Events,
    manual: &manual::MANUAL,
};

/// The sidecar: serves the agent of one run, beside its box.
const SIDECAR: Role = Role {
    word: SIDECAR_WORD,
    run: |run| flow::sidecar_main::run(run).map_err(|failure| failure.to_string()),
};

/// The parts of the manual that the command line does not have.
pub fn manual() -> &'static Manual {
    &manual::MANUAL
}

/// The command line, for manual pages and completions.
pub fn command() -> clap::Command {
    BottleCli::command()
}

/// The program.
pub fn main() -> ExitCode {
    shell::start::start(&PROGRAM, &[SIDECAR], |cli: &BottleCli| cli.output, cli::dispatch)
}
