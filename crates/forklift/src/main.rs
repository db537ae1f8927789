//! `forklift`: the program. Everything else is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    forklift::main()
}
