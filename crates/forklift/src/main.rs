//! `forklift`: keeps a fork up to date with its upstream. An agent in a sealed box merges, the host verifies and
//! publishes.

mod cli;
mod commands;
mod exit;
mod flow;
mod rules;
mod ui;

use std::process::ExitCode;

use engine::box_dir::BoxDir;
use engine::shim::SHIM_WORD;

fn main() -> ExitCode {
    // The same program is the shim of its boxes. This comes before anything else: a shim has no terminal, no
    // flags and no settings.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == SHIM_WORD) {
        return shim(words.next());
    }
    cli::run()
}

fn shim(place: Option<std::ffi::OsString>) -> ExitCode {
    let Some(place) = place else {
        ui::complain("this word is for forklift's own use");
        return ExitCode::from(2);
    };
    match engine::shim::run(&BoxDir::new(place)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            ui::complain(&error.to_string());
            ExitCode::FAILURE
        }
    }
}
