//! What is going to be started: decided and checked before anything is, and kept with the run, so that another
//! forklift can start it if this one is killed first.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agent::{AgentCommand, Provider};
use egress::EgressConfig;
use engine::launch::WayOut;
use engine::shim::EGRESS_SOCKET;
use model::secret::Secret;
use model::verdict::ForkliftStatus;
use sandbox::spec::{ProgramMount, Relay};
use serde::{Deserialize, Serialize};
use store::run_dir::RunDir;

use crate::exit::{Failure, OrExit};
use crate::rules::opencode_env::{AgentSettings, Overrides, parse_settings};

/// The plan in the run directory.
const PLAN_FILE: &str = "plan.json";

/// Where the box finds the proxy.
pub(crate) const PROXY: std::net::SocketAddr =
    std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 3128);

/// The variable by which a key from a file of settings reaches the shim.
pub(crate) const KEY_VARIABLE: &str = "FORKLIFT_MODEL_KEY";

/// Everything about the agent's box that does not follow from the run itself. Holds no secret.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) provider: String,
    pub(crate) argv: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    /// Files for the box's read-only folder, by name.
    pub(crate) files: BTreeMap<String, String>,
    /// Files for the agent's home, by path.
    pub(crate) home: BTreeMap<String, HomeText>,
    pub(crate) programs: Vec<ProgramMount>,
    pub(crate) egress: Option<EgressConfig>,
    pub(crate) key: KeyPlace,
    pub(crate) silence_secs: Option<u64>,
}

/// A file for the agent's home.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HomeText {
    pub(crate) text: String,
    pub(crate) mode: u32,
}

/// Where the model's key is on this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum KeyPlace {
    /// There is none.
    Nowhere,
    /// In the settings file of OpenCode.
    Settings(PathBuf),
    /// In a variable of the caller.
    Variable(String),
    /// In a file of its own, which the shim reads itself.
    File(PathBuf),
    /// In the output of a command, which the shim runs itself.
    Command(Vec<String>),
}

impl KeyPlace {
    /// The variables with the key that the shim needs; none where it looks the key up itself.
    pub(crate) fn variables(&self) -> Result<Vec<(String, Secret)>, Failure> {
        match self {
            Self::Nowhere | Self::File(_) | Self::Command(_) => Ok(Vec::new()),
            Self::Settings(path) => {
                let settings = load_settings(path, &Overrides::default())?;
                Ok(vec![(KEY_VARIABLE.to_owned(), settings.api_key)])
            }
            Self::Variable(name) => match host::env::var(name) {
                Some(value) => Ok(vec![(name.clone(), Secret::new(value))]),
                None => Err(Failure::usage(format!(
                    "the model's key is not there: set {name}, or name a file with --key-file"
                ))),
            },
        }
    }
}

/// Reads OpenCode's settings, which must be the person's alone, and applies the flags.
pub(crate) fn load_settings(path: &Path, flags: &Overrides) -> Result<AgentSettings, Failure> {
    let bytes = host::file::read_private(path).or_exit(ForkliftStatus::Usage)?;
    parse_settings(&bytes, flags)
        .map_err(|fault| Failure::usage(format!("{}: {fault}", path.display())))
}

impl Plan {
    /// A plan for this command, without a way out.
    pub(crate) fn new(provider: Provider, command: &AgentCommand) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let home = command
            .home
            .iter()
            .map(|file| (file.path.clone(), HomeText { text: text(&file.bytes), mode: file.mode }));
        Self {
            provider: provider.name().to_owned(),
            argv: command.argv.clone(),
            env: command.env.clone(),
            files: command
                .files
                .iter()
                .map(|file| (file.name.clone(), text(&file.bytes)))
                .collect(),
            home: home.collect(),
            programs: Vec::new(),
            egress: None,
            key: KeyPlace::Nowhere,
            silence_secs: None,
        }
    }

    /// Keeps the plan with the run.
    pub(crate) fn save(&self, dir: &RunDir) -> Result<(), Failure> {
        let bytes = serde_json::to_vec_pretty(self).or_exit(ForkliftStatus::Internal)?;
        host::file::write_atomic(&dir.path().join(PLAN_FILE), &bytes, 0o600)
            .or_exit(ForkliftStatus::Machine)
    }

    /// Reads the plan of a run.
    pub(crate) fn load(dir: &RunDir) -> Result<Self, Failure> {
        let path = dir.path().join(PLAN_FILE);
        let bytes = std::fs::read(&path)
            .map_err(|error| Failure::usage(format!("{} has no plan: {error}", dir.id())))?;
        serde_json::from_slice(&bytes).or_exit(ForkliftStatus::Machine)
    }

    /// The way out of the box, with its keys looked up.
    pub(crate) fn way_out(&self, log: &Path) -> Result<Option<WayOut>, Failure> {
        let Some(config) = &self.egress else { return Ok(None) };
        let config = EgressConfig { log_path: log.to_path_buf(), ..config.clone() };
        Ok(Some(WayOut { config, keys: self.key.variables()? }))
    }

    /// The relays of the box: one, if there is a way out.
    pub(crate) fn relays(&self) -> Vec<Relay> {
        let relay = || Relay { listen: PROXY, socket: EGRESS_SOCKET.to_owned() };
        self.egress.iter().map(|_| relay()).collect()
    }
}
