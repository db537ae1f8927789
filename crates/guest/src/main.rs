//! `bottle-guest`: our only program inside the box. Its first argument names its role.

mod exec;
mod forge;
mod init;
mod limit;
mod play;
mod spawn;
mod visible;

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use guest::HARNESS_STATE;

use exec::SessionKind;

/// Exit status of a wrong invocation. Only the host invokes this program, so it is a bug and not a user's mistake.
const EXIT_USAGE: u8 = 2;

const USAGE: &str = "usage: bottle-guest init <config.json> | play <script.json> [<harness state>] | forge <command> | --version";

fn main() -> ExitCode {
    let mut args: Vec<OsString> = std::env::args_os().collect();
    let own_name = if args.is_empty() { OsString::new() } else { args.remove(0) };
    // The agent's `PATH` has it under this name.
    if Path::new(&own_name).file_name() == Some(OsStr::new(forge::ROLE)) {
        return ExitCode::from(forge::run(&args));
    }
    let words: Vec<&str> = args.iter().map(|arg| arg.to_str().unwrap_or_default()).collect();
    ExitCode::from(match words.as_slice() {
        ["init", config] => init::run(Path::new(config)),
        ["play", script] => play::run(Path::new(script), Path::new(HARNESS_STATE)),
        ["play", script, state] => play::run(Path::new(script), Path::new(state)),
        [forge::ROLE, ..] => forge::run(&args[1..]),
        // The other roles are internal: see `exec` and `init::userns`.
        [exec::ROLE, limits, program, ..] => {
            exec::run(SessionKind::Plain, limits, program, &args[3..])
        }
        [exec::TERMINAL_ROLE, limits, program, ..] => {
            exec::run(SessionKind::AtTerminal, limits, program, &args[3..])
        }
        [init::userns::ROLE] => init::userns::run(),
        ["--version"] => print_version(),
        _ => complain(USAGE, EXIT_USAGE),
    })
}

fn print_version() -> u8 {
    let line = writeln!(std::io::stdout(), "bottle-guest {}", env!("CARGO_PKG_VERSION"));
    u8::from(line.is_err())
}

/// A failure of this program, as a sentence: its callers only show it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct GuestError(String);

impl GuestError {
    fn new(sentence: impl Display) -> Self {
        Self(sentence.to_string())
    }

    /// Wraps the cause of a failed action: "could not print: broken pipe".
    fn could_not<E: Display>(action: impl Display) -> impl FnOnce(E) -> Self {
        move |cause| Self(format!("could not {action}: {cause}"))
    }
}

/// Prints the reason on stderr, and returns the status. If even that cannot be written, the status remains.
fn complain(why: impl Display, status: u8) -> u8 {
    writeln!(std::io::stderr(), "bottle-guest: {why}").ok();
    status
}
