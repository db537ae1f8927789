//! Pid 1 of the box: checks the isolation, reports, starts the command, and ends with it.
//!
//! Everything up to the report runs before any code of the agent. The report is the only line that the init
//! writes to stdout; the rest of it belongs to the command.

mod inherited;
mod network;
mod preflight;
mod reach;
mod relay;
mod stage;
mod status;
mod supervise;
mod terminal;
pub(crate) mod userns;

use std::io::Write;
use std::path::{Path, PathBuf};

use guest::config::{
    ConfigError, GuestConfig, GuestReport, PreflightItem, ReportError, RlimitSpec,
};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::{complain, limit};

/// A failure of the init itself.
#[derive(Debug, thiserror::Error)]
enum InitError {
    #[error("could not read the configuration {path}: {source}", path = path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("could not read our own status in /proc: {0}")]
    Status(status::StatusError),
    #[error("could not close the files we were started with: {0}")]
    Inherited(std::io::Error),
    #[error("could not hide our memory from the agent: {0}")]
    Dumpable(rustix::io::Errno),
    #[error("could not block signals: {0}")]
    Signals(nix::errno::Errno),
    #[error(transparent)]
    Limit(#[from] limit::LimitError),
    #[error("this is not a box: the init must be pid 1 and must not be root")]
    NotABox,
    #[error(transparent)]
    Relay(#[from] relay::RelayError),
    #[error(transparent)]
    Terminal(#[from] terminal::TerminalError),
    #[error("could not watch the box: {0}")]
    Supervise(std::io::Error),
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error("could not write the report: {0}")]
    WriteReport(std::io::Error),
}

/// Runs the box and returns its status.
pub(crate) fn run(config: &Path) -> u8 {
    let mut findings = Findings::default();
    let prepared = prepare(config, &mut findings);
    match report_and_launch(prepared, findings) {
        Ok(status) => status,
        Err(error) => complain(error, guest::EXIT_GUEST_FAILED as u8),
    }
}

/// Findings so far; reported even if the preparations fail half way.
#[derive(Default)]
struct Findings {
    uid: u32,
    preflight: Vec<PreflightItem>,
    limits: RlimitSpec,
}

/// A box that is ready to run its command.
struct Prepared {
    config: GuestConfig,
    command_limits: RlimitSpec,
    signals: supervise::SignalQueue,
    doors: Vec<relay::RelayListener>,
    terminal: Option<terminal::GuestTerminal>,
}

fn prepare(path: &Path, findings: &mut Findings) -> Result<Prepared, InitError> {
    inherited::close_all().map_err(InitError::Inherited)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(InitError::Dumpable)?;
    let signals = supervise::SignalQueue::block().map_err(InitError::Signals)?;
    let config = load_config(path)?;

    let status = status::load_own_status().map_err(InitError::Status)?;
    findings.uid = status.effective_uid();
    findings.preflight = preflight::identity(&status, std::process::id(), &config.demand);
    // The rest is pointless outside a box, and some of it harmful.
    if findings.preflight.iter().any(|item| item.name.is_always_demanded() && item.failed()) {
        return Err(InitError::NotABox);
    }

    let (for_init, command_limits) = limit::split_for_init(&config.limits);
    findings.limits = limit::set(&for_init)?;
    findings.limits.address_space = command_limits.address_space;
    findings.limits.cpu_secs = command_limits.cpu_secs;
    findings.preflight.extend(preflight::attempts(&config));
    let doors = relay::open(&config.relays)?;
    let terminal = config.terminal.as_ref().map(terminal::GuestTerminal::open).transpose()?;
    Ok(Prepared { config, command_limits, signals, doors, terminal })
}

fn report_and_launch(
    prepared: Result<Prepared, InitError>,
    findings: Findings,
) -> Result<u8, InitError> {
    let problem = prepared.as_ref().err().map(ToString::to_string);
    let report = GuestReport::new(findings.preflight, findings.limits, findings.uid, problem);
    write_report(&report)?;
    match prepared {
        Ok(prepared) if report.ready => {
            relay::serve(prepared.doors)?;
            let Prepared { config, command_limits, signals, terminal, .. } = prepared;
            supervise::run(&config, &command_limits, &signals, terminal)
                .map_err(InitError::Supervise)
        }
        Ok(_) | Err(_) => Ok(guest::EXIT_GUEST_FAILED as u8),
    }
}

fn load_config(path: &Path) -> Result<GuestConfig, InitError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| InitError::Read { path: path.to_path_buf(), source })?;
    Ok(GuestConfig::parse(&text)?)
}

fn write_report(report: &GuestReport) -> Result<(), InitError> {
    let line = report.render_line()?;
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).map_err(InitError::WriteReport)
}
