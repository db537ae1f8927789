//! From `main` to a command and back to an exit status. A panic on the way ends with the status for internal errors.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Command, Parser};
use engine::box_dir::BoxDir;
use engine::shim::SHIM_WORD;
use model::escape::escape_line;
use model::exit::ExitStatus;

use crate::cli::{self, OutputArgs};
use crate::failure::Failure;
use crate::manual::Manual;
use crate::terminal;
use crate::ui::{Ui, wants_colour};
use crate::usage;

/// Start and output of one program, where it differs from the others.
#[derive(Debug)]
pub struct Program {
    pub name: &'static str,
    /// Columns for the labels of results.
    pub label_width: usize,
    pub json: JsonOutput,
    pub manual: &'static Manual,
}

/// Output of `--json`.
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
    /// Called with the path that follows the word.
    pub run: fn(&Path) -> Result<(), String>,
}

/// The shim: supervises one box until it is gone.
const SHIM: Role = Role {
    word: SHIM_WORD,
    run: |path| engine::shim::run(&BoxDir::new(path)).map_err(|error| error.to_string()),
};

/// File name of the program that is all three commands in one, chosen by the name that it is called by.
pub const MULTI_CALL: &str = "bottleworks";

/// Runs a program: a hidden role, or the command that the arguments name. Returns its exit status; a panic anywhere ends
/// with the one for internal errors.
pub fn start<C: Parser, T: Into<u8>, S: ExitStatus>(
    program: &'static Program,
    roles: &[Role],
    output: fn(&C) -> OutputArgs,
    command: impl FnOnce(&Ui, C) -> Result<T, Failure<S>>,
) -> ExitCode {
    std::panic::set_hook(Box::new(report_panic));
    terminal::hide_environment();
    let ended = catch_unwind(AssertUnwindSafe(|| {
        play_role(program, roles).unwrap_or_else(|| run_command(program, output, command))
    }));
    ended.unwrap_or_else(|_reported| exit_code(S::INTERNAL))
}

fn run_command<C: Parser, T: Into<u8>, S: ExitStatus>(
    program: &'static Program,
    output: fn(&C) -> OutputArgs,
    command: impl FnOnce(&Ui, C) -> Result<T, Failure<S>>,
) -> ExitCode {
    let parsed = match parse::<C, S>(program) {
        Ok(parsed) => parsed,
        Err(ended) => return ended,
    };
    let output = output(&parsed);
    let ui = Ui::new(program, output);
    if output.verbose {
        ui.be_verbose();
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        host::failpoint::hit("command");
        command(&ui, parsed)
    }));
    ui.finish();
    match outcome {
        Ok(Ok(status)) => {
            let status = status.into();
            report_lost_output::<S>()
                .filter(|_| status == 0)
                .unwrap_or_else(|| ExitCode::from(status))
        }
        Ok(Err(failure)) => {
            ui.failure(&failure);
            exit_code(failure.status)
        }
        Err(panic) => {
            // The hook has printed it for users; scripts get the same as for any other failure.
            let text = panic_message(&*panic);
            ui.failure_document(&Failure::new(S::INTERNAL, text), text);
            exit_code(S::INTERNAL)
        }
    }
}

/// Plays the role that the first argument names. Roles come before anything else: they have no terminal, no flags and
/// no settings.
fn play_role(program: &Program, roles: &[Role]) -> Option<ExitCode> {
    let mut words = arguments(program).into_iter().skip(1);
    let (word, path) = (words.next()?, words.next());
    let role = roles.iter().chain([&SHIM]).find(|role| word == OsStr::new(role.word))?;
    let played = match path {
        Some(path) => (role.run)(path.as_ref()).map_err(|message| (message, 1)),
        None => Err((format!("this word is for {}'s own use", program.name), 2)),
    };
    Some(match played {
        Ok(()) => ExitCode::SUCCESS,
        Err((message, code)) => {
            terminal::print_error(&format!("{}: {}", program.name, escape_line(&message)));
            ExitCode::from(code)
        }
    })
}

/// Parses the arguments. Help, completions and wrong usage end the program here.
fn parse<C: Parser, S: ExitStatus>(program: &'static Program) -> Result<C, ExitCode> {
    let mut command = cli::with_program(C::command(), program);
    let parsed = match cli::answer_shell(C::command) {
        Ok(true) => return Err(ExitCode::SUCCESS),
        Ok(false) => command.try_get_matches_from_mut(arguments(program)),
        Err(error) => Err(error),
    };
    parsed
        .and_then(|matches| {
            C::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
        })
        .map_err(|error| show_usage::<S>(program, &command, &error))
}

/// Shows help on standard output, and mistakes in one line on standard error with status 2; with `--json` among the
/// arguments scripts get the same as for any other failure.
fn show_usage<S: ExitStatus>(
    program: &'static Program,
    command: &Command,
    error: &clap::Error,
) -> ExitCode {
    let is_help = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => true,
        _ => !error.use_stderr(),
    };
    if error.use_stderr() {
        let wrong = usage::describe(error, command, &arguments(program));
        let ui =
            Ui::new(program, OutputArgs { json: asks_for_json(program), ..OutputArgs::default() });
        let failure =
            Failure::new(S::USAGE, &*wrong.message).with_remedy(format!("see: {}", wrong.help));
        ui.failure_document(&failure, &wrong.message);
        if !is_help {
            ui.error_line(&wrong.line());
        }
    }
    if is_help {
        show_help(error);
        if let Some(status) = report_lost_output::<S>() {
            return status;
        }
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Says that output was lost, as on a full disk, and returns the status of that; `None` if all of it was written.
fn report_lost_output<S: ExitStatus>() -> Option<ExitCode> {
    let error = terminal::take_lost_output()?;
    terminal::print_error(&format!(
        "error: standard output could not be written, so some of it is missing: {error}"
    ));
    Some(exit_code(S::GENERAL))
}

/// Help that was asked for goes to standard output, help instead of a missing subcommand to standard error.
fn show_help(error: &clap::Error) {
    let text = error.render();
    let stream_is_terminal =
        if error.use_stderr() { io::stderr().is_terminal() } else { io::stdout().is_terminal() };
    let text = match stream_is_terminal && wants_colour() {
        true => text.ansi().to_string(),
        false => text.to_string(),
    };
    match error.use_stderr() {
        true => terminal::print_error(text.trim_end()),
        false => terminal::print(&text),
    }
}

fn asks_for_json(program: &Program) -> bool {
    arguments(program).iter().take_while(|word| *word != "--").any(|word| word == "--json")
}

/// Words of the command line, as this program reads them: in `bottleworks wf list` they begin with `wf`.
pub(crate) fn arguments(program: &Program) -> Vec<OsString> {
    own_words(std::env::args_os().collect(), program.name)
}

fn own_words(mut words: Vec<OsString>, name: &str) -> Vec<OsString> {
    let is_multi_call = words
        .first()
        .and_then(|word| Path::new(word).file_name())
        .is_some_and(|called| called == MULTI_CALL);
    if is_multi_call && words.get(1).is_some_and(|word| word == name) {
        words.remove(0);
    }
    words
}

fn exit_code(status: impl ExitStatus) -> ExitCode {
    ExitCode::from(status.row().code)
}

/// Reports a panic in one line, with a backtrace if `RUST_BACKTRACE` asks for it.
fn report_panic(info: &PanicHookInfo<'_>) {
    let place =
        info.location().map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
    let message = escape_line(panic_message(info.payload())).into_owned();
    let issues = concat!(env!("CARGO_PKG_REPOSITORY"), "/issues");
    let line = format!("error: internal error{place}: {message}; please report it: {issues}");
    terminal::print_error(&line);
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        terminal::print_error(&backtrace.to_string());
    }
}

fn panic_message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, name: &str, expected: &str) {
        let words = line.split(' ').map(OsString::from).collect();
        let expected: Vec<OsString> = expected.split(' ').map(OsString::from).collect();
        assert_eq!(own_words(words, name), expected);
    }

    #[test]
    fn a_program_in_the_multi_call_binary_reads_its_own_words() {
        check("/usr/bin/bottleworks wf list", "wf", "wf list");
        check("bottleworks wf", "forklift", "bottleworks wf");
        check("bottleworks link wf", "bottleworks", "bottleworks link wf");
        check("/usr/bin/wf wf list", "wf", "/usr/bin/wf wf list");
    }
}
