//! The shim as a program of its own, for tests and for running one box by hand. Products contain the same code behind
//! [`engine::shim::SHIM_WORD`].

use std::io::Write;
use std::process::ExitCode;

use engine::box_dir::BoxDir;

fn main() -> ExitCode {
    let Some(box_dir) = std::env::args_os().next_back().filter(|_| std::env::args_os().len() > 1)
    else {
        return failed("usage: bottle-shim <folder of the box>");
    };
    match engine::shim::run(&BoxDir::new(box_dir)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&format!("bottle-shim: {error}")),
    }
}

fn failed(message: &str) -> ExitCode {
    // Standard error is the shim's log; an error there cannot be reported.
    drop(writeln!(std::io::stderr(), "{message}"));
    ExitCode::FAILURE
}
