//! Supervision of one box from its first process to its last: the deadline, the watchdogs, the signals from outside
//! and the kill ladder.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use egress::EgressReport;
use guest::config::GuestReport;
use host::clock::{BootTimer, ClockError};
use model::error_chain;
use model::redact::Redactor;
use model::verdict::Ended;
use sandbox::backend::{Backend, BoxControl, BoxExit, Started};
use sandbox::error::SandboxError;
use sandbox::remedy::with_remedy;
use sandbox::spec::{BoxSpec, MIB};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::egress::{EgressServer, EgressServerError};
use super::output::{OutputCount, Pump, PumpSignals};
use super::watch::{
    DiskScan, LastOutput, begin_disk_scan, find_full_folder, keep_pulse, watch_memory,
    watch_silence, watch_space,
};
use crate::box_dir::{BoxDir, ShimConfig};
use crate::record::ExitRecord;

/// Time limit for the end of a box after the final signal.
const AFTER_KILL: Duration = Duration::from_secs(20);

/// Longest time for which a box whose lease is over may tidy up: another host may begin soon.
const LEASE_GRACE: Duration = Duration::from_secs(1);

/// Why a box ended whose lease nobody renewed.
const LEASE_ENDED: &str = "the lease on its work was not renewed in time; the box ended itself";

/// Time limit for output after the end of a box.
const LAST_OUTPUT: Duration = Duration::from_secs(5);

/// Bytes at the start of a log in which a message is looked for, and characters of it that are shown.
const MESSAGE_BYTES: u64 = 8 * 1024;
const MESSAGE_CHARS: usize = 300;

/// Reason for which the shim ended the box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Deadline,
    Silence,
    Stop,
    Freeze,
    Memory,
    Space,
    Overflow,
    Lease,
}

/// Signals from outside: SIGTERM means stop and SIGUSR1 means freeze.
pub(super) struct StopSignals {
    stop: Signal,
    freeze: Signal,
    /// The launcher may have ignored these (nohup, a shell's background), and an ignored signal stays ignored in every
    /// program that is started from here. A caught one does not: so keys at a terminal reach the agent in the box.
    _caught: [Signal; 3],
}

impl StopSignals {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            stop: signal(SignalKind::terminate())?,
            freeze: signal(SignalKind::user_defined1())?,
            _caught: [
                signal(SignalKind::interrupt())?,
                signal(SignalKind::hangup())?,
                signal(SignalKind::quit())?,
            ],
        })
    }
}

/// Runs the box to its end. Never fails: errors are part of the record.
pub(super) async fn supervise<B: Backend>(
    backend: &B,
    config: &ShimConfig,
    redactor: &Arc<Redactor>,
    stop_signals: &mut StopSignals,
) -> ExitRecord {
    let started_at = host::clock::now();
    let begun = host::clock::boottime();
    let mut watched = Watched::default();
    let ended = watched.run(backend, config, redactor, stop_signals).await;
    ExitRecord {
        ended: ended
            .unwrap_or_else(|error| Ended::Infra { reason: with_remedy(error_chain(&error)) }),
        backend: config.backend,
        started_at,
        finished_at: host::clock::now(),
        ready_ms: watched.ready.map(|ready| millis(ready.saturating_sub(begun))),
        wall_ms: millis(host::clock::boottime().saturating_sub(begun)),
        report: watched.report,
        output_bytes: watched.seen.bytes,
        dropped_bytes: watched.seen.dropped,
        peak_memory_bytes: watched.peak_memory.get(),
        fell_silent: watched.fell_silent,
        egress: watched.egress,
    }
}

#[derive(Debug, thiserror::Error)]
enum SuperviseError {
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error("could not open the log of the box")]
    Log(#[source] io::Error),
    #[error(transparent)]
    EgressServer(#[from] EgressServerError),
    #[error("could not set the deadline")]
    Timer(#[from] ClockError),
    #[error(
        "too little free disk space to start a box: {folder} has {free_mib} MiB left, and {floor_mib} MiB must stay free",
        folder = folder.display()
    )]
    NoSpace { folder: PathBuf, free_mib: u64, floor_mib: u64 },
}

/// Facts gathered while the box runs.
#[derive(Default)]
struct Watched {
    report: Option<GuestReport>,
    ready: Option<Duration>,
    seen: OutputCount,
    peak_memory: Cell<Option<u64>>,
    fell_silent: bool,
    egress: Option<EgressReport>,
}

impl Watched {
    async fn run<B: Backend>(
        &mut self,
        backend: &B,
        config: &ShimConfig,
        redactor: &Arc<Redactor>,
        stop_signals: &mut StopSignals,
    ) -> Result<Ended, SuperviseError> {
        let spec = &config.spec;
        if let Some((folder, free)) = find_full_folder(spec) {
            let (free_mib, floor_mib) = (free / MIB, spec.limits.free_floor_bytes / MIB);
            return Err(SuperviseError::NoSpace { folder: folder.into(), free_mib, floor_mib });
        }
        let box_dir = BoxDir::new(&spec.box_dir);
        let last_output = LastOutput::default();
        let (pump, signals) = Pump::open(&box_dir, spec.output, redactor, &last_output)
            .map_err(SuperviseError::Log)?;
        let deadline = BootTimer::after(Duration::from_secs(spec.deadline_secs))?;
        let mut reasons = Reasons { stop_signals, signals, deadline };
        let disk = begin_disk_scan(spec);
        let egress = match &config.egress {
            Some(config) => Some(EgressServer::open(spec, config).await?),
            None => None,
        };
        let traffic = egress.as_ref().map(EgressServer::state);
        let Started { control, mut exit, output } = backend.start(spec).await?;
        let draining = tokio::spawn(pump.drain(output));
        let first = {
            let mut silence = std::pin::pin!(watch_silence(spec, &last_output, traffic));
            tokio::select! {
                event = self.watch(&control, &mut exit, spec, &mut reasons, disk) => event,
                () = lease_ended(config) => Err(Cause::Lease),
                () = &mut silence => Err(Cause::Silence),
                never = keep_pulse(&control, &box_dir) => match never {},
            }
        };
        self.fell_silent = matches!(first, Err(Cause::Silence));
        let (cause, box_exit) = match first {
            Ok(box_exit) => (None, box_exit),
            Err(cause) => (Some(cause), end(&control, &mut exit, spec, cause).await),
        };
        if let Ok(Ok(Ok(seen))) = tokio::time::timeout(LAST_OUTPUT, draining).await {
            self.seen = seen;
        }
        if let (None, Ok(report)) = (&self.report, reasons.signals.report.try_recv()) {
            self.report = report;
        }
        if let Some(egress) = egress {
            self.egress = egress.close().await;
        }
        if let Err(error) = control.remove().await {
            // The exit of the box stays the same; the sweeper removes what is left.
            drop(writeln!(io::stderr(), "could not tidy up: {}", error_chain(&error)));
        }
        let message = match &self.report {
            Some(_) => None,
            None => first_message(&box_dir.stderr()),
        };
        Ok(judge(cause, &box_exit, self.report.as_ref(), message.as_deref()))
    }

    /// Waits for the box to end, or for the first reason to end it.
    async fn watch(
        &mut self,
        control: &impl BoxControl,
        exit: &mut (impl Future<Output = BoxExit> + Unpin),
        spec: &BoxSpec,
        reasons: &mut Reasons<'_>,
        disk: DiskScan,
    ) -> Result<BoxExit, Cause> {
        let Reasons { stop_signals, signals, deadline } = reasons;
        let mut space = std::pin::pin!(watch_space(spec, control, disk));
        let mut memory = std::pin::pin!(watch_memory(control, &spec.limits, &self.peak_memory));
        let (mut reporting, mut exact) = (true, true);
        loop {
            tokio::select! {
                box_exit = &mut *exit => return Ok(box_exit),
                _ = deadline.wait() => return Err(Cause::Deadline),
                _ = stop_signals.stop.recv() => return Err(Cause::Stop),
                _ = stop_signals.freeze.recv() => return Err(Cause::Freeze),
                () = &mut space => return Err(Cause::Space),
                () = &mut memory => return Err(Cause::Memory),
                report = &mut signals.report, if reporting => {
                    reporting = false;
                    self.ready = Some(host::clock::boottime());
                    self.report = report.ok().flatten();
                }
                full = &mut signals.overflow, if exact => {
                    exact = false;
                    if full.is_ok() {
                        return Err(Cause::Overflow);
                    }
                }
            }
        }
    }
}

/// Waits until the lease of the box is over; for ever without one.
async fn lease_ended(config: &ShimConfig) {
    match &config.lease {
        Some(lease) => lease.ended().await,
        None => std::future::pending().await,
    }
}

/// Reasons to end a box, beside its own end and its use of resources.
struct Reasons<'a> {
    stop_signals: &'a mut StopSignals,
    signals: PumpSignals,
    deadline: BootTimer,
}

/// The kill ladder: terminate, wait, kill. A box that exceeds its memory or disk is killed at once.
async fn end(
    control: &impl BoxControl,
    exit: &mut (impl Future<Output = BoxExit> + Unpin),
    spec: &BoxSpec,
    cause: Cause,
) -> BoxExit {
    let polite = match cause {
        Cause::Deadline | Cause::Silence | Cause::Stop | Cause::Freeze | Cause::Lease => true,
        Cause::Memory | Cause::Space | Cause::Overflow => false,
    };
    if polite && control.terminate().await.is_ok() {
        let grace = Duration::from_millis(spec.grace_ms);
        let grace = if cause == Cause::Lease { grace.min(LEASE_GRACE) } else { grace };
        if let Ok(box_exit) = tokio::time::timeout(grace, &mut *exit).await {
            return box_exit;
        }
    }
    if let Err(error) = control.kill().await {
        return BoxExit::Lost(format!("could not be killed: {error}"));
    }
    tokio::time::timeout(AFTER_KILL, exit)
        .await
        .unwrap_or_else(|_| BoxExit::Lost("was still there long after it was killed".to_owned()))
}

/// The shim's reason outranks the exit of the box; a guest that never got ready outranks its exit status. `message` is
/// what the backend wrote about a box without a report.
fn judge(
    cause: Option<Cause>,
    exit: &BoxExit,
    report: Option<&GuestReport>,
    message: Option<&str>,
) -> Ended {
    match (cause, exit) {
        (_, BoxExit::Lost(reason)) => Ended::Infra { reason: reason.clone() },
        (Some(Cause::Deadline | Cause::Silence), _) => Ended::OutOfTime,
        (Some(Cause::Stop), _) => Ended::Stopped,
        (Some(Cause::Freeze), _) => Ended::Frozen,
        (Some(Cause::Lease), _) => Ended::Infra { reason: LEASE_ENDED.to_owned() },
        (Some(Cause::Memory), _) | (None, BoxExit::OutOfMemory) => Ended::OutOfMemory,
        (Some(Cause::Space | Cause::Overflow), _) => Ended::OutOfSpace,
        (None, exit) => match report {
            Some(report) if report.ready => match *exit {
                BoxExit::Exited(code) => Ended::Exited { code },
                BoxExit::KilledOutside(ref reason) => Ended::Infra { reason: reason.clone() },
                BoxExit::OutOfMemory | BoxExit::Lost(_) => Ended::OutOfMemory,
            },
            Some(report) => {
                let reasons = report.reasons().join("; ");
                let reason = with_remedy(format!("the box failed its own checks: {reasons}"));
                Ended::Infra { reason }
            }
            None => Ended::Infra { reason: with_remedy(never_ready(exit, message)) },
        },
    }
}

fn never_ready(exit: &BoxExit, message: Option<&str>) -> String {
    match (message, exit) {
        (Some(message), _) => format!("the box never got ready: {message}"),
        (None, BoxExit::Exited(code)) => format!("the box never got ready (status {code})"),
        (None, BoxExit::KilledOutside(reason) | BoxExit::Lost(reason)) => {
            format!("the box never got ready ({reason})")
        }
        (None, BoxExit::OutOfMemory) => "the box never got ready (out of memory)".to_owned(),
    }
}

/// The first line of a log that says something, escaped and not longer than a sentence. The log is redacted.
fn first_message(log: &Path) -> Option<String> {
    let mut start = Vec::new();
    File::open(log).ok()?.take(MESSAGE_BYTES).read_to_end(&mut start).ok()?;
    let text = String::from_utf8_lossy(&start);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let short: String = line.chars().take(MESSAGE_CHARS).collect();
    Some(model::escape::escape_line(&short).into_owned())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use guest::config::RlimitSpec;

    fn ready() -> GuestReport {
        GuestReport::new(vec![], RlimitSpec::default(), 1000, None)
    }

    fn broken() -> GuestReport {
        let problem = Some("no command".to_owned());
        GuestReport::new(vec![], RlimitSpec::default(), 1000, problem)
    }

    #[test]
    fn the_clock_outranks_the_status() {
        let ended = judge(Some(Cause::Deadline), &BoxExit::Exited(0), Some(&ready()), None);
        assert_eq!(ended, Ended::OutOfTime);
    }

    #[test]
    fn a_status_counts_only_after_the_guest_was_ready() {
        assert_eq!(
            judge(None, &BoxExit::Exited(3), Some(&ready()), None),
            Ended::Exited { code: 3 }
        );
        assert!(matches!(
            judge(None, &BoxExit::Exited(125), Some(&broken()), None),
            Ended::Infra { reason } if reason.contains("no command")
        ));
        assert!(matches!(judge(None, &BoxExit::Exited(0), None, None), Ended::Infra { .. }));
    }

    #[test]
    fn a_box_that_never_got_ready_ends_with_the_backends_own_words_and_the_remedy() {
        let reason = |exit: &BoxExit, message| match judge(None, exit, None, message) {
            Ended::Infra { reason } => reason,
            other => format!("{other:?}"),
        };
        let said = reason(&killed(), Some("bwrap: setting up uid map: Permission denied"));
        // The remedy goes by what is seen on this machine.
        let words = "bwrap: setting up uid map: Permission denied";
        assert_eq!(said, format!("the box never got ready: {}", with_remedy(words.to_owned())));
        assert!(said.contains("user namespaces"), "{said}");
        assert_eq!(reason(&killed(), None), "the box never got ready (killed)");
        assert_eq!(reason(&BoxExit::Exited(3), None), "the box never got ready (status 3)");
    }

    #[test]
    fn the_first_line_with_words_is_the_message_of_a_log() {
        let dir = tempfile::tempdir().expect("a folder");
        let log = dir.path().join("stderr.log");
        assert_eq!(first_message(&log), None);
        std::fs::write(&log, "\n  \nbwrap: no \u{1b}[31m\nmore\n").expect("written");
        let message = first_message(&log).expect("a message");
        assert!(message.starts_with("bwrap: no ") && !message.contains('\u{1b}'), "{message}");
    }

    #[test]
    fn a_lost_box_is_never_an_agents_failure() {
        let lost = BoxExit::Lost("engine restarted".to_owned());
        assert!(matches!(judge(None, &lost, Some(&ready()), None), Ended::Infra { .. }));
    }

    #[test]
    fn the_kernels_memory_limit_and_the_watchdogs_mean_the_same() {
        assert_eq!(judge(None, &BoxExit::OutOfMemory, Some(&ready()), None), Ended::OutOfMemory);
        assert_eq!(judge(Some(Cause::Memory), &killed(), Some(&ready()), None), Ended::OutOfMemory);
    }

    #[test]
    fn a_box_that_was_killed_from_outside_is_never_an_agents_failure() {
        let ended = judge(None, &killed(), Some(&ready()), None);
        assert_eq!(ended, Ended::Infra { reason: "killed".to_owned() });
        assert_eq!(judge(Some(Cause::Stop), &killed(), Some(&ready()), None), Ended::Stopped);
    }

    fn killed() -> BoxExit {
        BoxExit::KilledOutside("killed".to_owned())
    }
}
