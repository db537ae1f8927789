//! The configuration that the host writes for the init, and the report that the init gives back.

mod limits;
mod report;

pub use limits::RlimitSpec;
pub use report::{GuestReport, PreflightCheck, PreflightItem, ReportError};

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::terminal::TerminalSize;

/// Everything the init needs to know. The agent can read this file: it must hold nothing the agent may not see.
///
/// Unknown fields are refused, because host and guest always come from the same build and a field that only one side
/// knows is a limit that nobody keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestConfig {
    /// The command to run and its arguments; looked up in the `PATH` of `env` when it has no slash.
    pub argv: Vec<String>,
    /// The whole environment of the command; nothing is inherited.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Where the command starts.
    pub cwd: PathBuf,
    /// Limits for every process in the box.
    #[serde(default)]
    pub limits: RlimitSpec,
    /// Loopback ports that lead to sockets of the host.
    #[serde(default)]
    pub relays: Vec<Relay>,
    /// Gateways and LAN addresses that must not answer, beside the metadata address, which is always tried.
    #[serde(default)]
    pub probe_addresses: Vec<SocketAddr>,
    /// What must hold before the command starts. Everything is tried and reported; only these decide.
    #[serde(default = "every_check")]
    pub demand: Vec<PreflightCheck>,
    /// How long leftover processes may take to end after the command has ended.
    #[serde(default = "default_linger_ms")]
    pub linger_ms: u64,
    /// How long everything may take to end after the box was asked to stop.
    #[serde(default = "default_grace_ms")]
    pub grace_ms: u64,
    /// The terminal of the command; without one it has nothing on its standard input.
    #[serde(default)]
    pub terminal: Option<TerminalConfig>,
    /// The init ends the box by itself after this time, sleep of the machine included. The host's clock comes first:
    /// this is for the day the host died.
    pub backstop_secs: u64,
}

/// A loopback port in the box whose connections go on to a Unix socket of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relay {
    /// Where programs in the box connect to, as in `127.0.0.1:3128`.
    pub listen: SocketAddr,
    /// The socket, as seen in the box.
    pub socket: PathBuf,
}

/// A terminal in the box, and the socket of the host at which somebody sits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TerminalConfig {
    /// The socket, as seen in the box.
    pub socket: PathBuf,
    /// How large it is at first.
    pub size: TerminalSize,
}

impl GuestConfig {
    /// A configuration that demands every check and sets no limit but the one on core files.
    pub fn new(argv: Vec<String>, cwd: impl Into<PathBuf>, backstop_secs: u64) -> Self {
        Self {
            argv,
            env: BTreeMap::new(),
            cwd: cwd.into(),
            limits: RlimitSpec::default(),
            relays: Vec::new(),
            probe_addresses: Vec::new(),
            demand: every_check(),
            linger_ms: default_linger_ms(),
            grace_ms: default_grace_ms(),
            terminal: None,
            backstop_secs,
        }
    }

    /// Reads the text of the configuration file.
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

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Not the JSON we write.
    #[error("the configuration does not parse: {0}")]
    Json(serde_json::Error),
    /// There is nothing to run.
    #[error("the configuration names no command")]
    NoCommand,
    /// A relay may be reached from this box only.
    #[error("a relay listens on loopback only, not on {listen}")]
    NotLoopback {
        /// The address that was asked for.
        listen: SocketAddr,
    },
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
