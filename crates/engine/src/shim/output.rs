//! Output of a box: the guest's report comes first, the rest goes to the log or, byte for byte, to a file.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use guest::config::GuestReport;
use host::process::LogWriter;
use model::redact::Redactor;
use sandbox::backend::{OutputChunk, OutputStream};
use sandbox::spec::BoxOutput;
use tokio::sync::oneshot;

use super::watch::LastOutput;
use crate::box_dir::BoxDir;

/// The longest first line that can be a report.
const REPORT_CAP: usize = 64 * 1024;

/// Bytes of standard error that are kept.
const STDERR_CAP: u64 = 8 << 20;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct OutputCount {
    pub(super) bytes: u64,
    pub(super) dropped: u64,
}

/// Signals that leave the pump while it runs.
pub(super) struct PumpSignals {
    /// The guest's first line, once it is there.
    pub(super) report: oneshot::Receiver<Option<GuestReport>>,
    /// Fires when exact output grew beyond its cap.
    pub(super) overflow: oneshot::Receiver<()>,
}

/// Consumer of a box's output.
pub(super) struct Pump {
    head: Option<Vec<u8>>,
    report_sender: Option<oneshot::Sender<Option<GuestReport>>>,
    overflow: Option<oneshot::Sender<()>>,
    out: Sink,
    err: LogWriter,
    seen: OutputCount,
    last_output: LastOutput,
}

enum Sink {
    Log(Box<LogWriter>),
    Exact { file: File, left: u64 },
}

impl Pump {
    pub(super) fn open(
        box_dir: &BoxDir,
        output: BoxOutput,
        redactor: &Arc<Redactor>,
        last_output: &LastOutput,
    ) -> io::Result<(Self, PumpSignals)> {
        let stdout = create(&box_dir.stdout(output))?;
        let out = match output {
            BoxOutput::Log { cap } => {
                let log = LogWriter::new(stdout, cap, Arc::clone(redactor));
                let log = log.with_times(create(&box_dir.times())?);
                Sink::Log(Box::new(log.with_segments(&box_dir.stdout(output))))
            }
            BoxOutput::Exact { cap } => Sink::Exact { file: stdout, left: cap },
        };
        let err = LogWriter::new(create(&box_dir.stderr())?, STDERR_CAP, Arc::clone(redactor));
        let (report, report_signal) = oneshot::channel();
        let (overflow, overflow_signal) = oneshot::channel();
        let pump = Self {
            head: Some(Vec::new()),
            report_sender: Some(report),
            overflow: Some(overflow),
            out,
            err,
            seen: OutputCount::default(),
            last_output: last_output.clone(),
        };
        Ok((pump, PumpSignals { report: report_signal, overflow: overflow_signal }))
    }

    /// Runs until the end of the output.
    pub(super) async fn drain(mut self, mut output: OutputStream) -> io::Result<OutputCount> {
        while let Some(chunk) = output.recv().await {
            self.last_output.set_now();
            match chunk {
                OutputChunk::Out(bytes) => self.take_out(&bytes)?,
                OutputChunk::Err(bytes) => {
                    self.seen.bytes += bytes.len() as u64;
                    self.err.push(&bytes);
                }
            }
        }
        self.finish()
    }

    fn take_out(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(mut head) = self.head.take() else { return self.write_out(bytes) };
        head.extend_from_slice(bytes);
        match head.iter().position(|byte| *byte == b'\n') {
            Some(end) => {
                let line = String::from_utf8_lossy(&head[..end]).into_owned();
                self.report(GuestReport::parse_line(&line).ok());
                self.write_out(&head[end + 1..])
            }
            None if head.len() > REPORT_CAP => {
                self.report(None);
                self.write_out(&head)
            }
            None => {
                self.head = Some(head);
                Ok(())
            }
        }
    }

    fn report(&mut self, report: Option<GuestReport>) {
        if let Some(sender) = self.report_sender.take() {
            // The receiver is gone once the box was ended for another reason.
            drop(sender.send(report));
        }
    }

    fn write_out(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.seen.bytes += bytes.len() as u64;
        match &mut self.out {
            Sink::Log(log) => {
                log.push(bytes);
                Ok(())
            }
            Sink::Exact { file, left } => {
                let fits = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                file.write_all(&bytes[..fits])?;
                *left -= fits as u64;
                if fits < bytes.len() {
                    self.seen.dropped += (bytes.len() - fits) as u64;
                    // Sent once; the receiver may be gone by now, and then it no longer matters.
                    self.overflow.take().map(|overflow| overflow.send(()).is_ok());
                }
                Ok(())
            }
        }
    }

    fn finish(mut self) -> io::Result<OutputCount> {
        self.report(None);
        match self.out {
            Sink::Log(log) => self.seen.dropped += log.finish()?.dropped,
            Sink::Exact { file, .. } => file.sync_all()?,
        }
        self.seen.dropped += self.err.finish()?.dropped;
        Ok(self.seen)
    }
}

fn create(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).open(path)
}
