//! Execution of a program until it exits, runs out of time or is cancelled.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::pin::{Pin, pin};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use model::command::{CommandExit, CommandSpec};
use rustix::process::Signal;
use tokio::net::unix::pipe;
use tokio::process::Child;

use super::ProcessError;
use super::exited::ExitWatch;
use super::group::GroupGuard;
use super::log::LogWriter;
use super::pump::{Capture, feed, pump};
use super::spawn::{ChildOptions, spawn_child};
use crate::clock::{self, BootTimer};
use crate::signal::{Cancel, CancelReason};
use crate::trace;

/// Time that pipes may stay open after the program has ended: a process that left the group may hold them for
/// ever.
const DRAIN: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct RunLimits {
    /// Time limit, on a clock that keeps counting while the machine sleeps.
    pub timeout: Option<Duration>,
    pub stdout_cap: usize,
    pub stderr_cap: usize,
    /// Time between the request to end and the kill.
    pub grace: Duration,
    /// Handling of processes left behind when the program ends by itself.
    pub leftovers: Leftovers,
}

/// Handling of processes of the group that outlive its leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    Kill,
    /// They keep running, as git's credential cache must.
    Leave,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            timeout: None,
            stdout_cap: 1 << 20,
            stderr_cap: 64 << 10,
            grace: Duration::from_secs(5),
            leftovers: Leftovers::Kill,
        }
    }
}

#[derive(Clone, Debug)]
pub struct ProcessOutput {
    pub exit: CommandExit,
    /// Reason of the cancellation, if it was cancelled and did not time out.
    pub cancelled: Option<CancelReason>,
    /// The start of its standard output.
    pub stdout: Vec<u8>,
    /// The start of its standard error.
    pub stderr: Vec<u8>,
    /// Dropped bytes of standard output.
    pub stdout_dropped: u64,
    /// Dropped bytes of both streams.
    pub dropped_bytes: u64,
    pub duration: Duration,
}

/// Result of a program whose output went to a log.
#[derive(Clone, Debug)]
pub struct LogOutput {
    pub exit: CommandExit,
    /// Reason of the cancellation, if it was cancelled and did not time out.
    pub cancelled: Option<CancelReason>,
    pub duration: Duration,
}

/// Runs a program with nothing on its standard input.
pub async fn run(
    spec: &CommandSpec,
    limits: &RunLimits,
    cancel: &Cancel,
) -> Result<ProcessOutput, ProcessError> {
    trace::command(spec);
    run_spec(spec, StdinSource::Nothing, limits, cancel, None).await
}

/// Runs a program that reads `input`.
pub async fn run_with_input(
    spec: &CommandSpec,
    input: &[u8],
    limits: &RunLimits,
    cancel: &Cancel,
) -> Result<ProcessOutput, ProcessError> {
    trace::command(spec);
    run_spec(spec, StdinSource::Bytes(input), limits, cancel, None).await
}

/// Runs a program whose standard output and error go to one log, in the order they were written. The
/// caller finishes the log.
pub async fn run_to_log(
    spec: &CommandSpec,
    limits: &RunLimits,
    cancel: &Cancel,
    log: &mut LogWriter,
) -> Result<LogOutput, ProcessError> {
    trace::command(spec);
    let start = clock::monotonic();
    // One pipe for both: with two, a secret could be cut in half by the other stream.
    let failed = || ProcessError::io("make a pipe for", spec);
    let (reader, writer) = std::io::pipe().map_err(failed())?;
    let reader = pipe::Receiver::from_owned_fd(reader.into()).map_err(failed())?;
    let options = ChildOptions {
        stdout: writer.try_clone().map_err(failed())?.into(),
        stderr: writer.into(),
        ..ChildOptions::default()
    };
    let mut child = spawn_child(spec, options)?;
    let pumps = async { pump(Some(reader), |chunk| log.push(chunk)).await };
    let (stop, status) = supervise(&mut child, spec, limits, cancel, pumps).await?;
    let (exit, cancelled) = read_end(stop, status);
    Ok(LogOutput { exit, cancelled, duration: start.elapsed() })
}

pub(crate) enum StdinSource<'a> {
    Nothing,
    Bytes(&'a [u8]),
    /// The file, from its current position.
    File(File),
}

/// Called with each piece of standard error as it comes.
pub(crate) type StderrObserver<'a> = dyn Fn(&[u8]) + Send + Sync + 'a;

pub(crate) async fn run_spec(
    spec: &CommandSpec,
    input: StdinSource<'_>,
    limits: &RunLimits,
    cancel: &Cancel,
    on_stderr: Option<&StderrObserver<'_>>,
) -> Result<ProcessOutput, ProcessError> {
    let start = clock::monotonic();
    let (stdin, bytes) = match input {
        StdinSource::Nothing => (Stdio::null(), None),
        StdinSource::Bytes(bytes) => (Stdio::piped(), Some(bytes)),
        StdinSource::File(file) => (Stdio::from(file), None),
    };
    let (stdout, stderr) = (Stdio::piped(), Stdio::piped());
    let options = ChildOptions { stdin, stdout, stderr, ..ChildOptions::default() };
    let mut child = spawn_child(spec, options)?;
    let (mut out, mut err) = (Capture::new(limits.stdout_cap), Capture::new(limits.stderr_cap));
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let pumps = async {
        let (fed, read_out, read_err) = tokio::join!(
            feed(stdin, bytes.unwrap_or_default()),
            pump(stdout, |chunk| out.push(chunk)),
            pump(stderr, |chunk| {
                err.push(chunk);
                if let Some(observe) = on_stderr {
                    observe(chunk);
                }
            }),
        );
        fed.and(read_out).and(read_err)
    };
    let (stop, status) = supervise(&mut child, spec, limits, cancel, pumps).await?;
    let (exit, cancelled) = read_end(stop, status);
    Ok(ProcessOutput {
        exit,
        cancelled,
        stdout_dropped: out.dropped,
        dropped_bytes: out.dropped.saturating_add(err.dropped),
        stdout: out.bytes,
        stderr: err.bytes,
        duration: start.elapsed(),
    })
}

enum WaitEnd {
    Ended,
    OutOfTime,
    Cancelled(CancelReason),
}

/// Waits for a child while its streams are copied, and ends its group at the deadline or on cancellation.
///
/// The leader is waited for last: until then its id, and the group's, cannot mean anything else.
async fn supervise(
    child: &mut Child,
    spec: &CommandSpec,
    limits: &RunLimits,
    cancel: &Cancel,
    pumps: impl Future<Output = std::io::Result<()>>,
) -> Result<(WaitEnd, ExitStatus), ProcessError> {
    let failed = |action| ProcessError::io(action, spec);
    let pid = child.id().ok_or(std::io::ErrorKind::NotFound.into()).map_err(failed("find"))?;
    let mut group = GroupGuard::new(pid);
    let watch = ExitWatch::new(pid).map_err(failed("watch"))?;
    let timer = limits.timeout.map(BootTimer::after).transpose();
    let timer = timer.map_err(std::io::Error::other).map_err(failed("set the time limit of"))?;
    let mut pumps = Pumps { work: pin!(pumps), result: None };

    let stop = pumps.alongside(first_reason(&watch, timer.as_ref(), cancel)).await;
    let stop = stop.map_err(failed("wait for"))?;
    match &stop {
        WaitEnd::Ended if limits.leftovers == Leftovers::Leave => {}
        WaitEnd::Ended => group.signal(Signal::KILL)?,
        WaitEnd::OutOfTime | WaitEnd::Cancelled(_) => {
            group.signal(Signal::TERM)?;
            pumps.until_all_gone(&watch, limits.grace).await.map_err(failed("wait for"))?;
            group.signal(Signal::KILL)?;
            pumps.alongside(watch.ended()).await.map_err(failed("wait for"))?;
        }
    }
    let drained = pumps.finish_within(DRAIN).await;
    group.disarm();
    let status = child.wait().await.map_err(failed("wait for"))?;
    drained.map_err(failed("read from or write to"))?;
    Ok((stop, status))
}

async fn first_reason(
    watch: &ExitWatch,
    timer: Option<&BootTimer>,
    cancel: &Cancel,
) -> std::io::Result<WaitEnd> {
    let time_is_up = async {
        match timer {
            Some(timer) => timer.wait().await.map_err(std::io::Error::other),
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        // A program that ended at the last moment has ended, whatever else became ready.
        biased;
        ended = watch.ended() => ended.map(|()| WaitEnd::Ended),
        reason = cancel.cancelled() => Ok(WaitEnd::Cancelled(reason)),
        up = time_is_up => up.map(|()| WaitEnd::OutOfTime),
    }
}

/// Copies of the streams, which continue while other events are awaited.
struct Pumps<'a, F> {
    work: Pin<&'a mut F>,
    result: Option<std::io::Result<()>>,
}

impl<F: Future<Output = std::io::Result<()>>> Pumps<'_, F> {
    async fn alongside<T>(&mut self, other: impl Future<Output = T>) -> T {
        let mut other = pin!(other);
        loop {
            tokio::select! {
                biased;
                out = &mut other => return out,
                result = self.work.as_mut(), if self.result.is_none() => self.result = Some(result),
            }
        }
    }

    /// Waits until the leader has ended and its pipes are closed: processes that the leader left behind get
    /// the grace period as well.
    async fn until_all_gone(&mut self, watch: &ExitWatch, grace: Duration) -> std::io::Result<()> {
        let end = tokio::time::Instant::from(Instant::now()) + grace;
        let ended = self.alongside(tokio::time::timeout_at(end, watch.ended())).await;
        if let Ok(ended) = ended {
            ended?;
            self.alongside_until(end).await;
        }
        Ok(())
    }

    async fn finish_within(&mut self, limit: Duration) -> std::io::Result<()> {
        self.alongside_until(tokio::time::Instant::now() + limit).await;
        self.result.take().unwrap_or(Ok(()))
    }

    async fn alongside_until(&mut self, end: tokio::time::Instant) {
        if self.result.is_none()
            && let Ok(result) = tokio::time::timeout_at(end, self.work.as_mut()).await
        {
            self.result = Some(result);
        }
    }
}

fn read_end(stop: WaitEnd, status: ExitStatus) -> (CommandExit, Option<CancelReason>) {
    match stop {
        WaitEnd::Ended => (exit_of(status), None),
        WaitEnd::OutOfTime => (CommandExit::TimedOut, None),
        WaitEnd::Cancelled(reason) => (exit_of(status), Some(reason)),
    }
}

pub(super) fn exit_of(status: ExitStatus) -> CommandExit {
    match (status.code(), status.signal()) {
        (Some(code), _) => CommandExit::Exited(code),
        (None, Some(signal)) => CommandExit::Signalled(signal),
        // Only a stopped or continued process has neither, and those are not waited for.
        (None, None) => CommandExit::Exited(-1),
    }
}
