//! The configuration that the host writes for the init, and the report that the init returns.

mod limits;
mod report;

pub use limits::{ControlGroupLimits, RlimitSpec};
pub use report::{GuestReport, PreflightCheck, PreflightItem, ReportError};

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::link::LinkPlace;
use crate::terminal::TerminalSize;

/// Configuration of the init. The agent can read this file: it must hold nothing that the agent may not see.
///
/// Unknown fields are refused, because host and guest always come from the same build and a field that only
/// one side knows is a limit that is not enforced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestConfig {
    /// The command to run and its arguments; looked up in the `PATH` of `env` when it has no slash.
    pub argv: Vec<String>,
    /// The whole environment of the command; nothing is inherited.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub cwd: PathBuf,
    #[serde(default)]
    pub limits: RlimitSpec,
    /// Limits that the box must find on itself.
    #[serde(default)]
    pub control_group: ControlGroupLimits,
    /// Folders that the box's user must be able to write to.
    #[serde(default)]
    pub writable: Vec<PathBuf>,
    /// Loopback ports that are relayed to sockets of the host.
    #[serde(default)]
    pub relays: Vec<Relay>,
    /// Gateways and LAN addresses that must be unreachable, beside the metadata address, which is always probed.
    #[serde(default)]
    pub probe_addresses: Vec<SocketAddr>,
    /// Checks that must pass before the command starts. All checks run and are reported; only these decide.
    #[serde(default = "every_check")]
    pub demand: Vec<PreflightCheck>,
    /// Time for leftover processes to end after the command has ended.
    #[serde(default = "default_linger_ms")]
    pub linger_ms: u64,
    /// Time for all processes to end after a stop request.
    #[serde(default = "default_grace_ms")]
    pub grace_ms: u64,
    /// The terminal of the command; without one its standard input is empty.
    #[serde(default)]
    pub terminal: Option<TerminalConfig>,
    /// Link to the host, see [`crate::link`].
    #[serde(default)]
    pub link: Option<LinkPlace>,
    /// Time after which the init ends the box by itself, sleep of the machine included. The host's deadline
    /// comes first: this one covers a crash of the host.
    pub backstop_secs: u64,
}

/// A loopback port in the box whose connections are relayed to a Unix socket of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relay {
    /// Address that programs in the box connect to, as in `127.0.0.1:3128`.
    pub listen: SocketAddr,
    /// The socket's path in the box.
    pub socket: PathBuf,
}

/// A terminal in the box, and the socket of the attached terminal on the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TerminalConfig {
    /// The socket's path in the box.
    pub socket: PathBuf,
    pub size: TerminalSize,
}

impl GuestConfig {
    /// Creates a configuration that demands every check and sets no limit but the one on core files.
    pub fn new(argv: Vec<String>, cwd: impl Into<PathBuf>, backstop_secs: u64) -> Self {
        Self {
            argv,
            env: BTreeMap::new(),
            cwd: cwd.into(),
            limits: RlimitSpec::default(),
            control_group: ControlGroupLimits::default(),
            writable: Vec::new(),
            relays: Vec::new(),
            probe_addresses: Vec::new(),
            demand: every_check(),
            linger_ms: default_linger_ms(),
            grace_ms: default_grace_ms(),
            terminal: None,
            link: None,
            backstop_secs,
        }
    }

    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let config: Self = serde_json::from_str(text).map_err(ConfigError::Json)?;
        if config.argv.is_empty() {
            return Err(ConfigError::NoCommand);
        }
        if let Some(relay) = config.relays.iter().find(|relay| !relay.listen.ip().is_loopback()) {
            return Err(ConfigError::NotLoopback { listen: relay.listen });
        }
        Ok(config)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("the configuration does not parse: {0}")]
    Json(serde_json::Error),
    #[error("the configuration names no command")]
    NoCommand,
    /// A relay must listen on loopback, so that only this box reaches it.
    #[error("a relay listens on loopback only, not on {listen}")]
    NotLoopback { listen: SocketAddr },
}

fn every_check() -> Vec<PreflightCheck> {
    PreflightCheck::ALL.to_vec()
}

fn default_linger_ms() -> u64 {
    200
}

fn default_grace_ms() -> u64 {
    5_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_writes_the_guest_reads() {
        let mut config = GuestConfig::new(vec!["sh".to_owned()], "/workspace", 60);
        config.env.insert("PATH".to_owned(), "/usr/bin".to_owned());
        config.limits.nproc = Some(256);
        config.relays.push(relay("127.0.0.1:3128"));
        let size = TerminalSize { rows: 24, cols: 80 };
        config.terminal =
            Some(TerminalConfig { socket: "/harness-state/run/terminal.sock".into(), size });
        let text = serde_json::to_string(&config).unwrap();
        assert_eq!(GuestConfig::parse(&text).unwrap(), config);
    }

    #[test]
    fn silence_demands_everything() {
        let config =
            GuestConfig::parse(r#"{"argv":["true"],"cwd":"/workspace","backstop_secs":9}"#)
                .unwrap();
        assert_eq!(config, GuestConfig::new(vec!["true".to_owned()], "/workspace", 9));
        assert_eq!(config.demand, PreflightCheck::ALL);
    }

    #[test]
    fn a_field_the_guest_does_not_know_is_refused() {
        let text = r#"{"argv":["true"],"cwd":"/","backstop_secs":9,"nproc":3}"#;
        let error = GuestConfig::parse(text).unwrap_err().to_string();
        assert!(error.contains("unknown field `nproc`"), "{error}");
    }

    #[test]
    fn a_configuration_needs_a_command() {
        let error = GuestConfig::parse(r#"{"argv":[],"cwd":"/","backstop_secs":9}"#).unwrap_err();
        assert!(matches!(error, ConfigError::NoCommand));
    }

    #[test]
    fn a_relay_is_never_open_to_others() {
        let mut config = GuestConfig::new(vec!["true".to_owned()], "/", 9);
        config.relays.push(relay("0.0.0.0:3128"));
        let error = GuestConfig::parse(&serde_json::to_string(&config).unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "a relay listens on loopback only, not on 0.0.0.0:3128");
    }

    fn relay(listen: &str) -> Relay {
        Relay { listen: listen.parse().unwrap(), socket: "/harness-state/run/egress.sock".into() }
    }
}
