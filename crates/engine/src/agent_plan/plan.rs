//! What is going to be started: decided and checked before anything is, and kept with the run, so that another process
//! can start it if this one is killed first.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use agent::{AgentCommand, Provider};
use egress::EgressConfig;
use sandbox::spec::{BoxRelay, ProgramMount};
use serde::{Deserialize, Serialize};

use super::{KeyLocation, ResolveAgentError};
use crate::launch::BoxEgress;
use crate::shim::EGRESS_SOCKET;
use crate::terminal::TerminalPlan;

/// Where the box finds the proxy.
pub const PROXY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3128);

/// Where the program of the agent `command` stands in the box.
pub(crate) const PROGRAM_DIR: &str = "/opt/bottleworks/command";

/// Everything about the agent's box that does not follow from the run itself. Holds no secret.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AgentPlan {
    pub provider: String,
    pub argv: Vec<String>,
    /// Variables of its own.
    pub env: BTreeMap<String, String>,
    /// Files for the box's read-only folder, by name.
    pub files: BTreeMap<String, String>,
    /// Files for the agent's home, by path.
    pub home: BTreeMap<String, String>,
    /// Programs that the box's root lacks.
    pub programs: Vec<ProgramMount>,
    /// One program that is copied beside the box.
    pub program: Option<PathBuf>,
    /// Its way out.
    pub egress: Option<EgressConfig>,
    /// Where its model's key is.
    pub key: KeyLocation,
    /// Ways to sockets in the box's folder that others serve, beside the way out.
    #[serde(default)]
    pub sidecars: Vec<BoxRelay>,
    /// Seconds without output or traffic after which it is ended.
    pub silence_secs: Option<u64>,
    /// The terminal at which somebody sits, if anybody does.
    #[serde(default)]
    pub terminal: Option<TerminalPlan>,
    /// What it was told, for people to read.
    pub instructions: String,
    /// What the repository's people say about it.
    pub context: Option<String>,
}

impl AgentPlan {
    pub(super) fn new(
        provider: Provider,
        command: &AgentCommand,
        instructions: String,
        context: Option<String>,
    ) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let files = command.files.iter().map(|file| (file.name.clone(), text(&file.bytes)));
        let home = command.home.iter().map(|file| (file.path.clone(), text(&file.bytes)));
        Self {
            provider: provider.name().to_owned(),
            argv: command.argv.clone(),
            env: command.env.clone(),
            files: files.collect(),
            home: home.collect(),
            programs: Vec::new(),
            program: None,
            egress: None,
            key: KeyLocation::Nowhere,
            sidecars: Vec::new(),
            silence_secs: None,
            terminal: None,
            instructions,
            context,
        }
    }

    /// The way out of the box, with its keys looked up.
    pub fn egress(&self, log: &Path) -> Result<Option<BoxEgress>, ResolveAgentError> {
        let Some(config) = &self.egress else { return Ok(None) };
        let config = EgressConfig { log_path: log.to_path_buf(), ..config.clone() };
        Ok(Some(BoxEgress { config, keys: self.key.variables()? }))
    }

    /// The relays of the box: one if there is a way out, and those of its sidecars.
    pub(crate) fn relays(&self) -> Vec<BoxRelay> {
        let relay = || BoxRelay { listen: PROXY, socket: EGRESS_SOCKET.to_owned() };
        let egress = self.egress.iter().map(|_| relay());
        egress.chain(self.sidecars.iter().cloned()).collect()
    }
}
