//! The script of a scripted agent: steps that the player executes in the box.
//!
//! Users write it in TOML as `[[step]]` tables, the host passes it on in JSON; both have this one shape. A
//! step is a table with exactly one of the keys that name a kind.

mod event;

pub use event::PlayerEvent;

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// File for the question of a stuck agent, in the root of the workspace.
pub const STUCK_FILE: &str = "STUCK.md";

/// File for an agent's clarification request, in the harness state.
pub const CLARIFICATION_FILE: &str = "clarification.json";

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The steps. An empty script is an agent that does nothing and succeeds.
    #[serde(default, rename = "step")]
    pub steps: Vec<ScriptStep>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StepTable", into = "StepTable")]
pub enum ScriptStep {
    /// Runs a command; the script ends with its status unless that was expected.
    Run {
        command: ScriptCommand,
        /// Working directory, by default the workspace root.
        cwd: Option<PathBuf>,
        /// The status with which the script continues.
        expect: ExpectedStatus,
    },
    /// Writes a file and the folders above it.
    Write(WriteFile),
    Sleep(Duration),
    Print(String),
    /// Leaves a [`STUCK_FILE`].
    Stuck(String),
    Ask(ScriptQuestion),
    Exit(u8),
    /// Leaves a shell line running in a session of its own that ignores SIGTERM, as a misbehaving agent does.
    Daemon(String),
}

/// A command, as one shell line or as plain arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a shell line or a list of arguments")]
pub enum ScriptCommand {
    /// A line for `sh -c`.
    Shell(String),
    Argv(Vec<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ExpectValue", into = "ExpectValue")]
pub enum ExpectedStatus {
    Status(i32),
    Any,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteFile {
    /// Relative to the workspace root.
    pub path: PathBuf,
    pub text: String,
    /// Adds to the file instead of replacing it.
    #[serde(default)]
    pub append: bool,
    /// Permission bits, as in `mode = 0o755`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptQuestion {
    pub question: String,
    /// Answers to choose from, if any.
    #[serde(default)]
    pub options: Vec<String>,
}

impl ScriptStep {
    /// Returns the key that names the kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Run { .. } => "run",
            Self::Write(_) => "write",
            Self::Sleep(_) => "sleep",
            Self::Print(_) => "print",
            Self::Stuck(_) => "stuck",
            Self::Ask(_) => "ask",
            Self::Exit(_) => "exit",
            Self::Daemon(_) => "daemon",
        }
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    #[error("a step needs one of {KINDS}")]
    NoKind,
    #[error("a step does one thing, but this one has {found}; make them steps of their own")]
    ManyKinds { found: String },
    /// A key that belongs to `run`.
    #[error("`{key}` goes with `run`, not with `{kind}`")]
    NotARun { key: &'static str, kind: &'static str },
    #[error("`run` needs a command")]
    NoCommand,
    #[error("`sleep` needs a number of seconds from 0, not {secs}")]
    Sleep { secs: String },
    /// Neither a status nor "any".
    #[error("`expect` is a status or \"any\", not \"{found}\"")]
    Expect { found: String },
}

const KINDS: &str = "run, write, sleep, print, stuck, ask, exit, daemon";

/// A step as written: every key optional. Serde's own enum forms either require the kind's options nested
/// below it or give errors that do not name the wrong key.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepTable {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<ScriptCommand>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cwd: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expect: Option<ExpectedStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    write: Option<WriteFile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sleep: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    print: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stuck: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ask: Option<ScriptQuestion>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exit: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    daemon: Option<String>,
}

impl TryFrom<StepTable> for ScriptStep {
    type Error = StepError;

    fn try_from(table: StepTable) -> Result<Self, StepError> {
        let run = table.run.map(|command| {
            let expect = table.expect.unwrap_or(ExpectedStatus::Status(0));
            Self::Run { command, cwd: table.cwd.clone(), expect }
        });
        let sleep = table.sleep.map(parse_secs).transpose()?;
        let found: Vec<Self> = [
            run,
            table.write.map(Self::Write),
            sleep.map(Self::Sleep),
            table.print.map(Self::Print),
            table.stuck.map(Self::Stuck),
            table.ask.map(Self::Ask),
            table.exit.map(Self::Exit),
            table.daemon.map(Self::Daemon),
        ]
        .into_iter()
        .flatten()
        .collect();
        let step = exactly_one(found)?;
        match &step {
            Self::Run { command, .. } if command.is_empty() => Err(StepError::NoCommand),
            Self::Run { .. } => Ok(step),
            other => match (table.cwd, table.expect) {
                (Some(_), _) => Err(StepError::NotARun { key: "cwd", kind: other.kind() }),
                (None, Some(_)) => Err(StepError::NotARun { key: "expect", kind: other.kind() }),
                (None, None) => Ok(step),
            },
        }
    }
}

fn exactly_one(mut found: Vec<ScriptStep>) -> Result<ScriptStep, StepError> {
    if found.len() > 1 {
        let keys: Vec<String> = found.iter().map(|step| format!("`{}`", step.kind())).collect();
        return Err(StepError::ManyKinds { found: keys.join(" and ") });
    }
    found.pop().ok_or(StepError::NoKind)
}

fn parse_secs(secs: f64) -> Result<Duration, StepError> {
    Duration::try_from_secs_f64(secs)
        .map_err(|_out_of_range| StepError::Sleep { secs: secs.to_string() })
}

impl From<ScriptStep> for StepTable {
    fn from(step: ScriptStep) -> Self {
        let table = Self::default();
        match step {
            ScriptStep::Run { command, cwd, expect } => {
                let expect = (expect != ExpectedStatus::Status(0)).then_some(expect);
                Self { run: Some(command), cwd, expect, ..table }
            }
            ScriptStep::Write(file) => Self { write: Some(file), ..table },
            ScriptStep::Sleep(time) => Self { sleep: Some(time.as_secs_f64()), ..table },
            ScriptStep::Print(text) => Self { print: Some(text), ..table },
            ScriptStep::Stuck(text) => Self { stuck: Some(text), ..table },
            ScriptStep::Ask(question) => Self { ask: Some(question), ..table },
            ScriptStep::Exit(status) => Self { exit: Some(status), ..table },
            ScriptStep::Daemon(line) => Self { daemon: Some(line), ..table },
        }
    }
}

impl ScriptCommand {
    fn is_empty(&self) -> bool {
        match self {
            Self::Shell(line) => line.trim().is_empty(),
            Self::Argv(argv) => argv.is_empty(),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a status or \"any\"")]
enum ExpectValue {
    Status(i32),
    Word(String),
}

impl TryFrom<ExpectValue> for ExpectedStatus {
    type Error = StepError;

    fn try_from(value: ExpectValue) -> Result<Self, StepError> {
        match value {
            ExpectValue::Status(status) => Ok(Self::Status(status)),
            ExpectValue::Word(word) if word == "any" => Ok(Self::Any),
            ExpectValue::Word(found) => Err(StepError::Expect { found }),
        }
    }
}

impl From<ExpectedStatus> for ExpectValue {
    fn from(expect: ExpectedStatus) -> Self {
        match expect {
            ExpectedStatus::Status(status) => Self::Status(status),
            ExpectedStatus::Any => Self::Word("any".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_a_list_of_step_tables() {
        let script = parse(
            r#"
            [[step]]
            run = "git merge --no-edit upstream/main"
            [[step]]
            run = ["git", "status"]
            cwd = "sub"
            expect = "any"
            [[step]]
            write = { path = "notes.txt", text = "hello\n" }
            [[step]]
            write = { path = "bin/x", text = "", append = true, mode = 0o755 }
            [[step]]
            sleep = 0.5
            [[step]]
            sleep = 2
            [[step]]
            print = "hi"
            [[step]]
            stuck = "which auth flow?"
            [[step]]
            ask = { question = "red or blue?", options = ["red", "blue"] }
            [[step]]
            daemon = "sleep 60"
            [[step]]
            exit = 3
            "#,
        )
        .unwrap();
        let kinds: Vec<_> = script.steps.iter().map(ScriptStep::kind).collect();
        assert_eq!(
            kinds,
            [
                "run", "run", "write", "write", "sleep", "sleep", "print", "stuck", "ask",
                "daemon", "exit"
            ]
        );
        assert_eq!(
            script.steps[1],
            ScriptStep::Run {
                command: ScriptCommand::Argv(vec!["git".to_owned(), "status".to_owned()]),
                cwd: Some("sub".into()),
                expect: ExpectedStatus::Any,
            }
        );
        assert_eq!(script.steps[4], ScriptStep::Sleep(Duration::from_millis(500)));

        let json = serde_json::to_string(&script).unwrap();
        assert_eq!(serde_json::from_str::<Script>(&json).unwrap(), script);
    }

    #[test]
    fn an_empty_script_does_nothing() {
        assert_eq!(parse("").unwrap(), Script::default());
    }

    #[test]
    fn an_unknown_step_is_named_with_those_that_exist() {
        refused("[[step]]\nrnu = 'ls'", "unknown field `rnu`, expected one of `run`");
        refused("[[step]]\nrnu = 'ls'", "line 2");
        refused("[[steps]]\nrun = 'ls'", "unknown field `steps`, expected `step`");
    }

    #[test]
    fn a_step_does_one_thing() {
        refused("[[step]]\nrun = 'ls'\nsleep = 1", "this one has `run` and `sleep`");
        refused("[[step]]", "a step needs one of run, write");
        refused("[[step]]\nsleep = 1\ncwd = 'x'", "`cwd` goes with `run`, not with `sleep`");
        refused("[[step]]\nexit = 1\nexpect = 0", "`expect` goes with `run`, not with `exit`");
    }

    #[test]
    fn values_are_checked_at_the_door() {
        refused("[[step]]\nrun = []", "`run` needs a command");
        refused("[[step]]\nrun = ' '", "`run` needs a command");
        refused("[[step]]\nrun = 3", "a shell line or a list of arguments");
        refused("[[step]]\nsleep = -1", "a number of seconds from 0, not -1");
        refused("[[step]]\nsleep = inf", "a number of seconds from 0, not inf");
        refused("[[step]]\nrun = 'ls'\nexpect = 'fine'", "a status or \"any\", not \"fine\"");
        refused("[[step]]\nwrite = { path = 'x', txt = '' }", "unknown field `txt`");
        refused("[[step]]\nexit = 256", "256");
    }

    fn parse(text: &str) -> Result<Script, toml::de::Error> {
        toml::from_str(text)
    }

    fn refused(text: &str, why: &str) {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
