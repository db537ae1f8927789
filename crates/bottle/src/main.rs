//! `bot-bottle`: a forge issue turned into a pull request, by an agent in a bottle that freezes while people review.

mod cli;
mod commands;
mod exit;
mod flow;
mod rules;
mod serve;
mod ui;

use std::ffi::OsString;
use std::process::ExitCode;

use engine::box_dir::BoxDir;
use engine::shim::SHIM_WORD;

use crate::flow::sidecar::SIDECAR_WORD;

fn main() -> ExitCode {
    // The same program is the shim of its boxes and the sidecar beside them. This comes before anything else: neither
    // has a terminal, flags or settings.
    let mut words = std::env::args_os().skip(1);
    match words.next() {
        Some(word) if word == SHIM_WORD => hidden(words.next(), |place| {
            engine::shim::run(&BoxDir::new(place)).map_err(|error| error.to_string())
        }),
        Some(word) if word == SIDECAR_WORD => hidden(words.next(), |run| {
            flow::desk::run(run.as_ref()).map_err(|failure| failure.to_string())
        }),
        _ => cli::run(),
    }
}

fn hidden(path: Option<OsString>, role: impl FnOnce(OsString) -> Result<(), String>) -> ExitCode {
    let Some(path) = path else {
        ui::complain("this word is for bot-bottle's own use");
        return ExitCode::from(2);
    };
    match role(path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            ui::complain(&words);
            ExitCode::FAILURE
        }
    }
}
