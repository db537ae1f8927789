//! `wf`: takes a planned workstream through micro-commits: implement, test, review, QA, docs, acceptance, merge, with
//! people at the gates.
//!
//! The program is a library with one door, so that fuzz targets and benches can reach its parsers through [`fuzz_api`].

mod cli;
mod commands;
mod disk;
mod exit;
mod flow;
pub mod fuzz_api;
mod manual;
mod rules;

use std::process::ExitCode;

use clap::CommandFactory;
use shell::manual::Manual;
use shell::start::{JsonOutput, Program, Role};

static PROGRAM: Program =
    Program { name: "wf", label_width: 14, json: JsonOutput::Documents, manual: &manual::MANUAL };

/// A run in the background, in a process and a session of its own.
const BACKGROUND: Role = Role {
    word: flow::background::BACKGROUND_WORD,
    run: |path| flow::background::play_background(path, cli::run_words),
};

/// The parts of the manual that the command line does not have.
pub fn manual() -> &'static Manual {
    &manual::MANUAL
}

/// The command line, for manual pages and completions.
pub fn command() -> clap::Command {
    cli::WfCli::command()
}

pub fn main() -> ExitCode {
    shell::start::start(&PROGRAM, &[BACKGROUND], |cli: &cli::WfCli| cli.output, cli::dispatch)
}
