//! Carries out one step of a script.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::thread;

use guest::config::RlimitSpec;
use guest::script::{
    CLARIFICATION_FILE, ExpectedStatus, PlayerEvent, STUCK_FILE, ScriptCommand, ScriptQuestion,
    ScriptStep, WriteFile,
};

use super::{print, render_line};
use crate::exec::{self, SessionKind};
use crate::{GuestError, complain, spawn};

/// Keeps the line running after the shell that started it has ended, so that the init becomes its parent.
const DAEMON: &str = r#"(trap "" TERM HUP; eval "$1") </dev/null &"#;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepOutcome {
    /// Continue with the next step; the step ended with this status.
    GoOn(i32),
    End(i32),
}

impl StepOutcome {
    pub(crate) fn status(self) -> i32 {
        match self {
            Self::GoOn(status) | Self::End(status) => status,
        }
    }
}

pub(crate) fn run(step: &ScriptStep, harness_state: &Path) -> Result<StepOutcome, GuestError> {
    match step {
        ScriptStep::Run { command, cwd, expect } => {
            return Ok(judge(run_command(command, cwd.as_deref()), *expect));
        }
        ScriptStep::Exit(status) => return Ok(StepOutcome::End(i32::from(*status))),
        ScriptStep::Write(file) => write_file(file)?,
        ScriptStep::Sleep(time) => thread::sleep(*time),
        ScriptStep::Print(text) => print(text)?,
        ScriptStep::Stuck(text) => write_text(Path::new(STUCK_FILE), text)?,
        ScriptStep::Ask(question) => ask(question, harness_state)?,
        ScriptStep::Daemon(line) => leave_daemon(line)?,
    }
    Ok(StepOutcome::GoOn(0))
}

/// Renders a step on one line of the log.
pub(crate) fn render_detail(step: &ScriptStep) -> String {
    match step {
        ScriptStep::Run { command: ScriptCommand::Shell(line), .. } => line.clone(),
        ScriptStep::Run { command: ScriptCommand::Argv(argv), .. } => argv.join(" "),
        ScriptStep::Write(file) => file.path.display().to_string(),
        ScriptStep::Sleep(time) => format!("{} s", time.as_secs_f64()),
        ScriptStep::Print(text) | ScriptStep::Stuck(text) | ScriptStep::Daemon(text) => {
            text.clone()
        }
        ScriptStep::Ask(question) => question.question.clone(),
        ScriptStep::Exit(status) => status.to_string(),
    }
}

/// Compares a status with the expected one. An unexpected success ends the script as well, with a failure status.
fn judge(status: i32, expect: ExpectedStatus) -> StepOutcome {
    match expect {
        ExpectedStatus::Any => StepOutcome::GoOn(status),
        ExpectedStatus::Status(expected) if expected == status => StepOutcome::GoOn(status),
        ExpectedStatus::Status(_) => StepOutcome::End(if status == 0 { 1 } else { status }),
    }
}

fn run_command(command: &ScriptCommand, cwd: Option<&Path>) -> i32 {
    let mut process = match command {
        ScriptCommand::Shell(line) => {
            let mut shell = spawn::command("sh");
            shell.args(["-c", line]);
            shell
        }
        ScriptCommand::Argv(argv) => {
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
            i32::from(exec::EXIT_NOT_FOUND)
        }
    }
}

fn write_file(file: &WriteFile) -> Result<(), GuestError> {
    write_file_io(file).map_err(GuestError::could_not(format!("write {}", file.path.display())))
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

fn write_text(path: &Path, text: &str) -> Result<(), GuestError> {
    fs::write(path, text).map_err(GuestError::could_not(format!("write {}", path.display())))
}

fn ask(question: &ScriptQuestion, harness_state: &Path) -> Result<(), GuestError> {
    let ScriptQuestion { question, options } = question.clone();
    let line = render_line(&PlayerEvent::Clarification { question, options })?;
    print(&line)?;
    write_text(&harness_state.join(CLARIFICATION_FILE), &line)
}

fn leave_daemon(line: &str) -> Result<(), GuestError> {
    let argv = ["sh", "-c", DAEMON, "daemon", line];
    exec::command(SessionKind::Plain, &RlimitSpec::default(), argv)
        .map_err(io::Error::from)
        .and_then(|mut command| command.stdin(Stdio::null()).status())
        .map(drop)
        .map_err(GuestError::could_not("start the daemon"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_ends_with_the_first_status_nobody_expected() {
        check(0, ExpectedStatus::Status(0), StepOutcome::GoOn(0));
        check(3, ExpectedStatus::Status(3), StepOutcome::GoOn(3));
        check(3, ExpectedStatus::Any, StepOutcome::GoOn(3));
        check(3, ExpectedStatus::Status(0), StepOutcome::End(3));
    }

    #[test]
    fn an_unexpected_success_is_a_failure() {
        check(0, ExpectedStatus::Status(3), StepOutcome::End(1));
    }

    fn check(status: i32, expect: ExpectedStatus, outcome: StepOutcome) {
        assert_eq!(judge(status, expect), outcome);
    }
}
