//! One call of git: arguments in, bytes out, limits on time and size, and an optional record.
//!
//! [`Git`] also has the queries that every repository answers; each is beside its parser.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use model::command::{CommandExit, CommandRecord, CommandSpec, render_command};
use model::id::Sha;

use super::progress::{FetchProgress, strip_progress};
use super::{GitError, GitLog};
use crate::file::free_space;
use crate::process::{Leftovers, ProcessOutput, RunLimits, StdinSource, run_spec};
use crate::signal::Cancel;
use crate::{clock, tool, trace};

/// Size limit of output that is parsed; patches and blobs have limits of their own.
const ANSWER_CAP: usize = 64 << 20;
const STDERR_CAP: usize = 64 << 10;
/// Size limit of standard error with counts and a line for each branch: the error, which is last, has to fit.
const PROGRESS_CAP: usize = 4 << 20;
const RECORD_CAP: usize = 64 << 10;
const STDERR_SHOWN: usize = 2000;
/// Time limit of calls that read objects on this machine.
const LOCAL_LIMIT: Duration = Duration::from_secs(120);

/// The git program with the environment, directory and flags that all calls of one handle share.
#[derive(Clone)]
pub struct Git {
    /// Absolute path: the environment of a sealed call has its own search path.
    pub(super) program: PathBuf,
    pub(super) cwd: PathBuf,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) flags: Vec<OsString>,
    pub(super) log: Option<GitLog>,
    pub(super) cancel: Cancel,
}

impl fmt::Debug for Git {
    /// Leaves out the environment, which for a user's repository is the user's own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Git")
            .field("cwd", &self.cwd)
            .field("flags", &self.flags)
            .finish_non_exhaustive()
    }
}

/// Arguments of a call, and the limits on its output.
pub(super) struct GitCall<'a> {
    pub(super) args: Vec<OsString>,
    pub(super) input: StdinSource<'a>,
    pub(super) timeout: Duration,
    pub(super) overflow: Overflow,
    /// Gets the counts of a fetch; they are left out of the standard error that is kept.
    pub(super) progress: Option<&'a FetchProgress>,
}

/// Handling of output that is too long.
#[derive(Clone, Copy)]
pub(super) enum Overflow {
    /// An error: a truncated answer must not be taken for a whole one.
    Refuse,
    /// The output is cut after this many bytes and marked as truncated.
    Cut(usize),
}

impl From<Vec<OsString>> for GitCall<'_> {
    fn from(args: Vec<OsString>) -> Self {
        Self::new(args)
    }
}

impl<'a> GitCall<'a> {
    pub(super) fn new(args: Vec<OsString>) -> Self {
        let (input, overflow) = (StdinSource::Nothing, Overflow::Refuse);
        Self { args, input, timeout: LOCAL_LIMIT, overflow, progress: None }
    }

    pub(super) fn within(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    pub(super) fn counting(self, progress: &'a FetchProgress) -> Self {
        Self { progress: Some(progress), ..self }
    }

    pub(super) fn reading_file(self, file: File) -> Self {
        Self { input: StdinSource::File(file), ..self }
    }

    pub(super) fn cut_after(self, cap: usize) -> Self {
        Self { overflow: Overflow::Cut(cap), ..self }
    }

    pub(super) fn reading(self, input: &'a [u8]) -> Self {
        Self { input: StdinSource::Bytes(input), ..self }
    }
}

#[derive(Debug)]
pub(super) struct GitOutput {
    /// Arguments, for messages.
    pub(super) args: String,
    pub(super) status: i32,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    pub(super) truncated: bool,
}

impl GitOutput {
    /// Returns the output of a lookup. Status 1 means that git found nothing; any other failure is git's own.
    pub(super) fn found(&self) -> Result<Option<&Self>, GitError> {
        match self.status {
            0 => Ok(Some(self)),
            1 => Ok(None),
            _ => Err(self.failure()),
        }
    }

    /// Parses the whole of stdout; `problem` says what it is not.
    pub(super) fn parse<'a, T>(
        &'a self,
        parse: impl FnOnce(&'a [u8]) -> Option<T>,
        problem: &str,
    ) -> Result<T, GitError> {
        parse(&self.stdout).ok_or_else(|| self.unreadable(problem))
    }

    /// Parses an object id from each line.
    pub(super) fn parse_ids(&self) -> Result<Vec<Sha>, GitError> {
        let text = String::from_utf8_lossy(&self.stdout);
        let ids: Result<_, _> = text.lines().map(Sha::parse).collect();
        ids.map_err(|error| self.unreadable(error))
    }

    /// Parses the object id in the first line.
    pub(super) fn parse_id(&self) -> Result<Sha, GitError> {
        let text = String::from_utf8_lossy(&self.stdout);
        let line = text.lines().next().unwrap_or_default();
        Sha::parse(line).map_err(|error| self.unreadable(error))
    }

    /// Returns the answers if there are as many as questions.
    pub(super) fn all_of<T>(&self, answers: Vec<T>, count: usize) -> Result<Vec<T>, GitError> {
        if answers.len() != count {
            return Err(self.unreadable(format!("{} answers to {count} questions", answers.len())));
        }
        Ok(answers)
    }

    pub(super) fn failure(&self) -> GitError {
        GitError::Failed {
            args: self.args.clone(),
            status: CommandExit::Exited(self.status),
            stderr: with_full_disk(tail_of(&self.stderr), |path| free_space(path).ok()),
        }
    }

    pub(super) fn unreadable(&self, problem: impl fmt::Display) -> GitError {
        GitError::Parse { args: self.args.clone(), problem: problem.to_string() }
    }
}

impl Git {
    pub(super) fn new(cwd: &Path, env: Vec<(OsString, OsString)>, flags: Vec<OsString>) -> Self {
        let program = tool::which("git").unwrap_or_else(|| "git".into());
        Self { program, cwd: cwd.to_path_buf(), env, flags, log: None, cancel: Cancel::new() }
    }

    /// Runs git and returns its output, whatever the exit status.
    pub(super) async fn call(&self, call: impl Into<GitCall<'_>>) -> Result<GitOutput, GitError> {
        let GitCall { args, input, timeout, overflow, progress } = call.into();
        let shown = shown_args(&args);
        // A program without a path was not found; the search path of a sealed call is another one.
        if !self.program.is_absolute() {
            return Err(GitError::Missing);
        }
        let spec = CommandSpec {
            program: self.program.clone(),
            args: self.flags.iter().chain(&args).cloned().collect(),
            cwd: self.cwd.clone(),
            env: self.env.clone(),
        };
        trace::line(|| trace::render_started(&format!("git {shown}"), &self.cwd));
        let started_at = clock::now();
        let mut limits = limits_of(timeout, overflow);
        let ran = match progress {
            None => run_spec(&spec, input, &limits, &self.cancel, None).await,
            Some(progress) => {
                limits.stderr_cap = PROGRESS_CAP;
                let observe = |chunk: &[u8]| progress.observe(chunk);
                let ran = run_spec(&spec, input, &limits, &self.cancel, Some(&observe)).await;
                ran.map(|ran| ProcessOutput { stderr: strip_progress(&ran.stderr), ..ran })
            }
        };
        if let Some(log) = &self.log {
            log(record_of(&spec, started_at, ran.as_ref().ok()));
        }
        let output = ran.map_err(|source| GitError::Start { args: shown.clone(), source })?;
        trace_end(&output);
        read_output(shown, output, timeout, overflow)
    }

    /// Runs git and returns its output if it exited with success.
    pub(super) async fn query(&self, call: impl Into<GitCall<'_>>) -> Result<GitOutput, GitError> {
        let output = self.call(call).await?;
        if output.status == 0 { Ok(output) } else { Err(output.failure()) }
    }

    /// Runs git for its effect.
    pub(super) async fn run(&self, call: impl Into<GitCall<'_>>) -> Result<(), GitError> {
        self.query(call).await.map(|_| ())
    }

    /// Sets a variable, replacing an existing one.
    pub(super) fn set_env(&mut self, name: &str, value: impl Into<OsString>) {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.into(), value.into()));
    }
}

/// Splits fixed words at blanks.
pub(super) fn argv(words: &str) -> Vec<OsString> {
    words.split(' ').map(OsString::from).collect()
}

/// Splits fixed words at blanks and appends values as they are.
pub(super) fn argv_with<S: AsRef<OsStr>>(
    words: &str,
    values: impl IntoIterator<Item = S>,
) -> Vec<OsString> {
    let values = values.into_iter().map(|value| value.as_ref().to_owned());
    argv(words).into_iter().chain(values).collect()
}

/// Builds the record with the start of git's output: a blob or a patch belongs elsewhere.
fn record_of(
    spec: &CommandSpec,
    started_at: Timestamp,
    ran: Option<&ProcessOutput>,
) -> CommandRecord {
    let args = spec.args.iter().map(|arg| shown_arg(&arg.to_string_lossy()));
    let shown = CommandSpec::new(&spec.program).args(args);
    let mut record = CommandRecord {
        started_at,
        cwd: spec.cwd.clone(),
        command: render_command(&shown),
        exit: CommandExit::NotStarted,
        duration_ms: 0,
        stdout: Vec::new(),
        stderr: Vec::new(),
        dropped_bytes: 0,
    };
    if let Some(output) = ran {
        let kept = output.stdout.len().min(RECORD_CAP);
        record.exit = output.exit;
        record.duration_ms = u64::try_from(output.duration.as_millis()).unwrap_or(u64::MAX);
        record.stdout = output.stdout[..kept].to_vec();
        record.stderr = output.stderr.clone();
        record.dropped_bytes = output.dropped_bytes + (output.stdout.len() - kept) as u64;
    }
    record
}

/// Reports an end that a reader wants to know: a failure, or one that took its time.
fn trace_end(output: &ProcessOutput) {
    const LONG: Duration = Duration::from_secs(1);
    if output.exit != CommandExit::Exited(0) || output.duration >= LONG {
        let secs = output.duration.as_secs_f64();
        let end = match output.exit {
            CommandExit::Exited(status) => format!("status {status}"),
            CommandExit::Signalled(signal) => format!("signal {signal}"),
            CommandExit::TimedOut => "its time limit".to_owned(),
            CommandExit::NotStarted => "no start".to_owned(),
        };
        trace::line(|| format!("  git ended with {end} after {secs:.1} s"));
    }
}

fn limits_of(timeout: Duration, overflow: Overflow) -> RunLimits {
    let stdout_cap = match overflow {
        Overflow::Refuse => ANSWER_CAP,
        Overflow::Cut(cap) => cap,
    };
    RunLimits {
        timeout: Some(timeout),
        stdout_cap,
        stderr_cap: STDERR_CAP,
        grace: Duration::from_secs(2),
        leftovers: Leftovers::Leave,
    }
}

fn read_output(
    args: String,
    output: ProcessOutput,
    timeout: Duration,
    overflow: Overflow,
) -> Result<GitOutput, GitError> {
    if let Some(reason) = output.cancelled {
        return Err(GitError::Cancelled { args, reason });
    }
    let status = match output.exit {
        CommandExit::Exited(status) => status,
        CommandExit::TimedOut => {
            return Err(GitError::TimedOut { args, limit_secs: timeout.as_secs() });
        }
        CommandExit::Signalled(_) | CommandExit::NotStarted => {
            let stderr = tail_of(&output.stderr);
            return Err(GitError::Failed { args, status: output.exit, stderr });
        }
    };
    let truncated = output.stdout_dropped > 0;
    if truncated && matches!(overflow, Overflow::Refuse) {
        return Err(GitError::TooMuch { args, limit: ANSWER_CAP });
    }
    Ok(GitOutput { args, status, stdout: output.stdout, stderr: output.stderr, truncated })
}

/// Words of git about a file that it could not write, in some of which it does not say why.
const UNWRITTEN: [&str; 3] = ["couldn't write '", "unable to write '", "could not write '"];

/// Adds the reason where git could not write a file because the disk is full, and did not say so.
fn with_full_disk(stderr: String, free: impl Fn(&Path) -> Option<u64>) -> String {
    const FULL: &str = "No space left on device";
    let path = UNWRITTEN.iter().find_map(|words| {
        let (_, rest) = stderr.split_once(words)?;
        rest.split_once('\'').map(|(path, _)| Path::new(path))
    });
    let folder = path.and_then(|path| path.ancestors().skip(1).find_map(&free));
    match folder {
        Some(0) if !stderr.contains(FULL) => format!("{stderr}: {FULL}"),
        Some(_) | None => stderr,
    }
}

/// Returns the end of git's stderr on one line; git prints the cause last.
fn tail_of(stderr: &[u8]) -> String {
    let start = stderr.len().saturating_sub(STDERR_SHOWN);
    let text = String::from_utf8_lossy(&stderr[start..]);
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

/// Renders arguments for display, with any password in a URL removed.
fn shown_args(args: &[OsString]) -> String {
    args.iter().map(|arg| shown_arg(&arg.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

fn shown_arg(arg: &str) -> String {
    let Some((scheme, rest)) = arg.split_once("://") else { return arg.to_owned() };
    let host_end = rest.find('/').unwrap_or(rest.len());
    match rest[..host_end].rfind('@') {
        Some(at) => format!("{scheme}://***@{}", &rest[at + 1..]),
        None => arg.to_owned(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Builds git's output for tests without git.
    pub(crate) fn answer(status: i32, stdout: impl AsRef<[u8]>) -> GitOutput {
        GitOutput {
            args: "x".to_owned(),
            status,
            stdout: stdout.as_ref().to_vec(),
            stderr: Vec::new(),
            truncated: false,
        }
    }

    #[test]
    fn passwords_in_addresses_are_not_shown() {
        let shown = shown_args(&argv("push https://ada:hunter2@forge.example/a@b.git x:y"));
        assert_eq!(shown, "push https://***@forge.example/a@b.git x:y");
        assert_eq!(shown_arg("https://forge.example/a.git"), "https://forge.example/a.git");
    }

    #[test]
    fn a_full_disk_is_named_where_git_does_not_name_it() {
        let said = |words: &str, free: Option<u64>| with_full_disk(words.to_owned(), |_| free);
        let silent = "fatal: cannot update ref 'x': couldn't write '/disk/.git/x.lock'";
        assert_eq!(said(silent, Some(0)), format!("{silent}: No space left on device"));
        assert_eq!(said(silent, Some(4096)), silent);
        assert_eq!(said(silent, None), silent);
        let plain = "error: unable to write '/disk/x': No space left on device";
        assert_eq!(said(plain, Some(0)), plain);
        assert_eq!(said("fatal: bad object", Some(0)), "fatal: bad object");
    }

    #[test]
    fn the_last_words_of_git_are_kept_on_one_line() {
        let mut stderr = vec![b'x'; 5000];
        stderr.extend_from_slice(b"\nfatal: no\n\nhint: yes\n");
        let tail = tail_of(&stderr);
        assert!(tail.ends_with("; fatal: no; hint: yes"), "{tail}");
        assert!(tail.len() < 2100);
    }
}
