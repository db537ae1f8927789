//! Carries out one step of a script.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::thread;

use guest::config::RlimitSpec;
use guest::script::{
    CLARIFICATION_FILE, Command, Event, Expect, Question, STUCK_FILE, Step, WriteFile,
};

use super::{PlayError, print, render_line};
use crate::exec::{self, Session};
use crate::{complain, spawn};

/// The status of a command that could not be started, as shells have it.
const EXIT_NOT_FOUND: i32 = 127;

/// Leaves the line running after the shell that started it has ended, so that the init becomes its parent.
const DAEMON: &str = r#"(trap "" TERM HUP; eval "$1") </dev/null &"#;

/// Where things are, beside the workspace, which is the current folder.
pub(crate) struct Places<'a> {
    pub(crate) harness_state: &'a Path,
}

/// Whether the script goes on after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// With the next step; the step itself ended like this.
    GoOn(i32),
    /// No: this is the status of the script.
    End(i32),
}

impl Outcome {
    pub(crate) fn status(self) -> i32 {
        match self {
            Self::GoOn(status) | Self::End(status) => status,
        }
    }
}

/// Carries out a step.
pub(crate) fn run(step: &Step, places: &Places<'_>) -> Result<Outcome, PlayError> {
    match step {
        Step::Run { command, cwd, expect } => {
            return Ok(judge(run_command(command, cwd.as_deref()), *expect));
        }
        Step::Exit(status) => return Ok(Outcome::End(i32::from(*status))),
        Step::Write(file) => write_file(file)?,
        Step::Sleep(time) => thread::sleep(*time),
        Step::Print(text) => print(text)?,
        Step::Stuck(text) => write_text(Path::new(STUCK_FILE), text)?,
        Step::Ask(question) => ask(question, places)?,
        Step::Daemon(line) => leave_daemon(line)?,
    }
    Ok(Outcome::GoOn(0))
}

/// What a step is about, on one line of the log.
pub(crate) fn render_detail(step: &Step) -> String {
    match step {
        Step::Run { command: Command::Shell(line), .. } => line.clone(),
        Step::Run { command: Command::Argv(argv), .. } => argv.join(" "),
        Step::Write(file) => file.path.display().to_string(),
        Step::Sleep(time) => format!("{} s", time.as_secs_f64()),
        Step::Print(text) | Step::Stuck(text) | Step::Daemon(text) => text.clone(),
        Step::Ask(question) => question.question.clone(),
        Step::Exit(status) => status.to_string(),
    }
}

/// An unexpected success ends the script as well, with a status that is none.
fn judge(status: i32, expect: Expect) -> Outcome {
    match expect {
        Expect::Any => Outcome::GoOn(status),
        Expect::Status(expected) if expected == status => Outcome::GoOn(status),
        Expect::Status(_) => Outcome::End(if status == 0 { 1 } else { status }),
    }
}

fn run_command(command: &Command, cwd: Option<&Path>) -> i32 {
    let mut process = match command {
        Command::Shell(line) => {
            let mut shell = spawn::command("sh");
            shell.args(["-c", line]);
            shell
        }
        Command::Argv(argv) => {
            let mut program = spawn::command(&argv[0]);
            program.args(&argv[1..]);
            program
        }
    };
    process.current_dir(cwd.unwrap_or(Path::new("."))).stdin(Stdio::null());
    match process.status() {
        Ok(status) => spawn::status_code(status),
        Err(error) => {
            complain(format_args!("could not start the command: {error}"), 0);
            EXIT_NOT_FOUND
        }
    }
}

fn write_file(file: &WriteFile) -> Result<(), PlayError> {
    write_file_io(file).map_err(|source| PlayError::Write { path: file.path.clone(), source })
}

fn write_file_io(file: &WriteFile) -> io::Result<()> {
    if let Some(parent) = file.path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut options = OpenOptions::new();
    options.create(true).write(true).append(file.append).truncate(!file.append);
    let mut open = options.open(&file.path)?;
    open.write_all(file.text.as_bytes())?;
    file.mode.map_or(Ok(()), |mode| open.set_permissions(Permissions::from_mode(mode)))
}

fn write_text(path: &Path, text: &str) -> Result<(), PlayError> {
    fs::write(path, text).map_err(|source| PlayError::Write { path: path.to_path_buf(), source })
}

fn ask(question: &Question, places: &Places<'_>) -> Result<(), PlayError> {
    let Question { question, options } = question.clone();
    let line = render_line(&Event::Clarification { question, options })?;
    print(&line)?;
    write_text(&places.harness_state.join(CLARIFICATION_FILE), &line)
}

fn leave_daemon(line: &str) -> Result<(), PlayError> {
    let argv = ["sh", "-c", DAEMON, "daemon", line];
    exec::command(Session::Plain, &RlimitSpec::default(), argv)
        .map_err(io::Error::from)
        .and_then(|mut command| command.stdin(Stdio::null()).status())
        .map(drop)
        .map_err(PlayError::Daemon)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_ends_with_the_first_status_nobody_expected() {
        check(0, Expect::Status(0), Outcome::GoOn(0));
        check(3, Expect::Status(3), Outcome::GoOn(3));
        check(3, Expect::Any, Outcome::GoOn(3));
        check(3, Expect::Status(0), Outcome::End(3));
    }

    #[test]
    fn an_unexpected_success_is_a_failure() {
        check(0, Expect::Status(3), Outcome::End(1));
    }

    fn check(status: i32, expect: Expect, outcome: Outcome) {
        assert_eq!(judge(status, expect), outcome);
    }
}
