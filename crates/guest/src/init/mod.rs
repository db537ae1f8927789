//! Pid 1 of the box: checks the isolation, reports, starts the command, and ends with it.
//!
//! Everything up to the report runs before any code of the agent. The report is the only line that the init
//! writes to stdout; the rest of it belongs to the command.

mod control_group;
mod inherited;
mod kernel_memory;
mod link;
mod network;
mod preflight;
mod reach;
mod relay;
mod socket_memory;
mod stage;
mod status;
mod supervise;
mod terminal;
pub(crate) mod userns;

use std::io::{ErrorKind, Write};
use std::path::Path;

use guest::config::{GuestConfig, GuestReport, PreflightItem, RlimitSpec};
use guest::link::LinkMessage;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::{GuestError, complain, limit};

pub(crate) fn run(config: &Path) -> u8 {
    let mut findings = Findings::default();
    let prepared = prepare(config, &mut findings);
    let mut link = link::HostLink::none();
    let status = match report_and_launch(prepared, findings, &mut link) {
        Ok(status) => status,
        Err(error) => complain(error, guest::EXIT_GUEST_FAILED as u8),
    };
    link.say(LinkMessage::Ended);
    status
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
    listeners: Vec<relay::RelayListener>,
    terminal: Option<terminal::GuestTerminal>,
}

fn prepare(path: &Path, findings: &mut Findings) -> Result<Prepared, GuestError> {
    inherited::close_all()
        .map_err(GuestError::could_not("close the files we were started with"))?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(GuestError::could_not("hide our memory from the agent"))?;
    let signals =
        supervise::SignalQueue::block().map_err(GuestError::could_not("block signals"))?;
    let config = load_config(path)?;

    let status =
        status::load_own_status().map_err(GuestError::could_not("read our own status in /proc"))?;
    findings.uid = status.effective_uid();
    findings.preflight = preflight::identity(&status, std::process::id(), &config.demand);
    // The rest is pointless outside a box, and some of it harmful.
    if findings.preflight.iter().any(|item| item.name.is_always_demanded() && item.failed()) {
        let reason = "this is not a box: the init must be pid 1 and must not be root";
        return Err(GuestError::new(reason));
    }

    let (for_init, command_limits) = limit::split_for_init(&config.limits);
    findings.limits = limit::set(&for_init)?;
    findings.limits.address_space = command_limits.address_space;
    findings.limits.cpu_secs = command_limits.cpu_secs;
    findings.preflight.extend(preflight::attempts(&config));
    let listeners = relay::open(&config.relays)?;
    let terminal = config.terminal.as_ref().map(terminal::GuestTerminal::open).transpose()?;
    Ok(Prepared { config, command_limits, signals, listeners, terminal })
}

fn report_and_launch(
    prepared: Result<Prepared, GuestError>,
    findings: Findings,
    link: &mut link::HostLink,
) -> Result<u8, GuestError> {
    let problem = prepared.as_ref().err().map(ToString::to_string);
    let report = GuestReport::new(findings.preflight, findings.limits, findings.uid, problem);
    write_report(&report)?;
    match prepared {
        Ok(prepared) if report.ready => {
            relay::serve(prepared.listeners)?;
            let Prepared { config, command_limits, signals, terminal, .. } = prepared;
            if let Some(place) = &config.link {
                *link = link::HostLink::open(place)
                    .map_err(GuestError::could_not("take the link to the host"))?;
            }
            let status = supervise::run(&config, &command_limits, &signals, terminal, link)
                .map_err(GuestError::could_not("watch the box"))?;
            Ok(judge_memory(&config, status))
        }
        Ok(_) | Err(_) => Ok(guest::EXIT_GUEST_FAILED as u8),
    }
}

/// The status of the box. A process that was killed at the limit of the control group outranks the command's own status;
/// where the host limits memory by other means, it knows by itself.
fn judge_memory(config: &GuestConfig, status: u8) -> u8 {
    let is_limited = config.control_group.memory_bytes.is_some();
    match is_limited && control_group::observe_killed() > 0 {
        true => guest::EXIT_OUT_OF_MEMORY as u8,
        false => status,
    }
}

fn load_config(path: &Path) -> Result<GuestConfig, GuestError> {
    let text = std::fs::read_to_string(path)
        .map_err(GuestError::could_not(format!("read the configuration {}", path.display())))?;
    GuestConfig::parse(&text).map_err(GuestError::new)
}

fn write_report(report: &GuestReport) -> Result<(), GuestError> {
    let line = report.render_line().map_err(GuestError::new)?;
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}")
        .and_then(|()| stdout.flush())
        .map_err(GuestError::could_not("write the report"))
}

/// Returns whether a non-blocking read or write has to be tried again later.
fn is_for_later(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
