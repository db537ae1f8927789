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
mod rules;
mod ui;

pub use cli::run;

use std::ffi::OsString;
use std::process::ExitCode;

/// Watches over one box, until it is gone.
pub fn shim(place: Option<OsString>) -> ExitCode {
    let Some(place) = place else {
        ui::complain("this word is for wf's own use");
        return ExitCode::from(2);
    };
    match engine::shim::run(&engine::box_dir::BoxDir::new(place)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            ui::complain(&error.to_string());
            ExitCode::FAILURE
        }
    }
}
