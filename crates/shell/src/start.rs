//! From `main` to a command and back to an exit status. A panic on the way ends with the status for internal errors.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use engine::box_dir::BoxDir;
use engine::shim::SHIM_WORD;
use model::escape::escape_line;
use model::exit::ExitStatus;

use crate::cli::{self, OutputArgs};
use crate::failure::Failure;
use crate::terminal;
use crate::ui::{Ui, wants_colour};

/// What differs between the programs in how they are started and how they print.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    pub name: &'static str,
    /// Columns for the labels of results.
    pub label_width: usize,
    /// What `--json` prints.
    pub json: JsonOutput,
}

/// What `--json` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonOutput {
    /// One object for each event, one event a line.
    Events,
    Documents,
}

/// A part that the program plays in another process of its own, under a hidden word.
#[derive(Debug, Clone, Copy)]
pub struct Role {
    pub word: &'static str,
    /// The part, given the path that follows the word.
    pub run: fn(&Path) -> Result<(), String>,
}

/// The shim: watches over one box until it is gone.
const SHIM: Role = Role {
    word: SHIM_WORD,
    run: |path| engine::shim::run(&BoxDir::new(path)).map_err(|error| error.to_string()),
};

/// Runs the program: a hidden role, or the command that the arguments name.
pub fn main<S: ExitStatus>(
    program: &'static Program,
    roles: &[Role],
    command: impl FnOnce() -> ExitCode,
) -> ExitCode {
    std::panic::set_hook(Box::new(report_panic));
    terminal::hide_environment();
    // Roles come before anything else: they have no terminal, no flags and no settings.
    let mut words = std::env::args_os().skip(1);
    let (word, path) = (words.next().unwrap_or_default(), words.next());
    let role = roles.iter().chain([&SHIM]).find(|role| word == OsStr::new(role.word));
    let run = || match role {
        Some(role) => run_role(program, role, path),
        None => command(),
    };
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|_reported| ExitCode::from(S::INTERNAL.row().code))
}

fn run_role(program: &Program, role: &Role, path: Option<OsString>) -> ExitCode {
    let outcome = match path {
        Some(path) => (role.run)(path.as_ref()).map_err(|message| (message, 1)),
        None => Err((format!("this word is for {}'s own use", program.name), 2)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err((message, code)) => {
            terminal::print_error(&format!("{}: {}", program.name, escape_line(&message)));
            ExitCode::from(code)
        }
    }
}

/// Parses the command line, runs the command and turns its outcome into an exit status.
pub fn run<C: Parser, T: Into<u8>, S: ExitStatus>(
    program: &'static Program,
    output: fn(&C) -> OutputArgs,
    command: impl FnOnce(&Ui, C) -> Result<T, Failure<S>>,
) -> ExitCode {
    match cli::answer_shell(C::command) {
        Ok(false) => {}
        Ok(true) => return ExitCode::SUCCESS,
        Err(error) => return show_usage(&error),
    }
    let parsed = match C::try_parse() {
        Ok(parsed) => parsed,
        Err(error) => return show_usage(&error),
    };
    let ui = Ui::new(program, output(&parsed));
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        host::failpoint::hit("command");
        command(&ui, parsed)
    }));
    ui.finish();
    let code = match outcome {
        Ok(Ok(status)) => status.into(),
        Ok(Err(failure)) => {
            ui.failure(&failure);
            failure.status.row().code
        }
        Err(panic) => {
            // The hook has printed it for people; scripts get the same as for any other failure.
            let text = panic_message(&*panic);
            ui.failure_document(&Failure::new(S::INTERNAL, text), text);
            S::INTERNAL.row().code
        }
    };
    ExitCode::from(code)
}

/// Shows help on standard output, and mistakes on standard error with status 2.
fn show_usage(error: &clap::Error) -> ExitCode {
    let stream_is_terminal =
        if error.use_stderr() { io::stderr().is_terminal() } else { io::stdout().is_terminal() };
    let text = error.render();
    let text = match stream_is_terminal && wants_colour() {
        true => text.ansi().to_string(),
        false => text.to_string(),
    };
    match error.use_stderr() {
        true => terminal::print_error(text.trim_end()),
        false => terminal::print(&text),
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Reports a panic in one line, with a backtrace if `RUST_BACKTRACE` asks for it.
fn report_panic(info: &PanicHookInfo<'_>) {
    let place =
        info.location().map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
    let message = escape_line(panic_message(info.payload())).into_owned();
    terminal::print_error(&format!("error: internal error{place}: {message}; please report it"));
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        terminal::print_error(&backtrace.to_string());
    }
}

fn panic_message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic")
}
