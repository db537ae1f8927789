//! Plan of an agent: checked before anything is started, and kept with the run, so that another process can start it if
//! this one is killed first.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use egress::{EgressConfig, EgressPolicy};
use model::id::RunId;
use sandbox::spec::{BoxRelay, ProgramMount};
use serde::{Deserialize, Serialize};

use super::{KeyLocation, ResolveAgentError};
use crate::launch::BoxEgress;
use crate::shim::EGRESS_SOCKET;
use crate::terminal::TerminalPlan;

/// Address of the proxy in the box.
pub const PROXY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3128);

/// Folder in the box of the agent `command`'s program.
pub(crate) const PROGRAM_DIR: &str = "/opt/bottleworks/command";

/// Everything about the agent's box that does not follow from the run itself. Holds no secret.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AgentPlan {
    pub provider: String,
    pub argv: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// Files for the box's read-only folder, by name.
    pub files: BTreeMap<String, String>,
    /// Files for the agent's home, by path.
    pub home: BTreeMap<String, String>,
    /// Programs that the box's root lacks.
    pub programs: Vec<ProgramMount>,
    /// One program that is copied beside the box.
    pub program: Option<PathBuf>,
    pub egress: Option<EgressConfig>,
    pub key: KeyLocation,
    /// Relays to sockets in the box's folder that other processes serve.
    #[serde(default)]
    pub sidecars: Vec<BoxRelay>,
    /// Seconds without output or traffic after which it is ended.
    pub silence_secs: Option<u64>,
    /// The user's terminal, for an interactive agent.
    #[serde(default)]
    pub terminal: Option<TerminalPlan>,
    /// The prompt, for users to read.
    pub instructions: String,
    /// The maintainers' notes on the repository.
    pub context: Option<String>,
}

impl AgentPlan {
    /// A plan without an agent, for a run that may need none. It keeps the prompt for the agent that is chosen later, and
    /// commands of the run have the egress of `policy`.
    pub fn undecided(
        run: &RunId,
        policy: Option<EgressPolicy>,
        instructions: String,
        context: Option<String>,
    ) -> Self {
        let egress = |policy| EgressConfig {
            run: run.to_string(),
            policy,
            model: None,
            log_path: PathBuf::new(),
        };
        Self {
            provider: String::new(),
            argv: Vec::new(),
            env: BTreeMap::new(),
            files: BTreeMap::new(),
            home: BTreeMap::new(),
            programs: Vec::new(),
            program: None,
            egress: policy.map(egress),
            key: KeyLocation::Nowhere,
            sidecars: Vec::new(),
            silence_secs: None,
            terminal: None,
            instructions,
            context,
        }
    }

    /// True until an agent is chosen.
    pub fn is_undecided(&self) -> bool {
        self.provider.is_empty()
    }

    /// Egress of the box, with its keys looked up.
    pub fn egress(&self, log: &Path) -> Result<Option<BoxEgress>, ResolveAgentError> {
        let Some(config) = &self.egress else { return Ok(None) };
        let config = EgressConfig { log_path: log.to_path_buf(), ..config.clone() };
        Ok(Some(BoxEgress { config, keys: self.key.variables()? }))
    }

    pub(crate) fn relays(&self) -> Vec<BoxRelay> {
        let relay = || BoxRelay { listen: PROXY, socket: EGRESS_SOCKET.to_owned() };
        let egress = self.egress.iter().map(|_| relay());
        egress.chain(self.sidecars.iter().cloned()).collect()
    }
}
