//! The folder of bot-bottle: `~/.bot-bottle`.
//!
//! ```text
//! agents/<name>.toml    bottles/<name>.toml    manifests
//! cellar/<slug>/        one bottle: record.json, lock, workspace/, harness-state/, runs/
//! cache/                mirrors of repositories, and repositories to make bottles from
//! bot-bottle.db         which bottle works on which issue
//! serve.lock            held by the one that serves
//! host-id               name of this home in a database that several share
//! forge-token           the forge's token (0600), where FORGE_TOKEN is not set
//! hooks/<host>/<owner>/<repo>.json   webhooks that were installed, with their secrets (0600)
//! web-key, web-sessions.json         the key of the page's forms, and digests of its sessions (0600)
//! attest/               keys (signing-key.pem, 0600), the chain of all runs (runs.jsonl), statements still owed (pending/)
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;

use agent::Provider;
use attest::keyring::Keyring;
use host::dirs::Dirs;
use model::exit::BottleExit;
use model::id::AgentName;
use shell::config::Config;

use crate::exit::{Failure, OrExit, if_found};
use crate::rules::agent_manifest::{AgentManifest, ManifestFault, invalid_name, parse_agent_of};
use crate::rules::bottle_manifest::{BottleManifest, parse_bottle, pour};

#[derive(Debug, Clone)]
pub(crate) struct Home {
    pub(crate) root: PathBuf,
    /// Folder of the programs that `forklift agents install` installs.
    pub(crate) programs: PathBuf,
    /// Folder of all bottles; `cellar` on disk, because `bottles` has the manifests.
    pub(crate) bottles: PathBuf,
    pub(crate) mirrors: PathBuf,
    /// Repositories that `serve` creates to make bottles from.
    pub(crate) sources: PathBuf,
    /// The database, unless the configuration names one in its place.
    pub(crate) database: PathBuf,
    /// True if the user's configuration counts; a test has none.
    pub(crate) is_configured: bool,
    /// Name of this home in a shared database.
    pub(crate) host_id: PathBuf,
    /// Held by the process that serves.
    pub(crate) serve_lock: PathBuf,
    pub(crate) host_chain: PathBuf,
    /// Runs whose statements are not signed yet, one file for each.
    pub(crate) unsigned: PathBuf,
    pub(crate) hooks: PathBuf,
    pub(crate) token_file: PathBuf,
    /// Key of the forms of the page.
    pub(crate) web_key: PathBuf,
    /// Digests of the sessions of the page.
    pub(crate) web_sessions: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ManifestKind {
    Agents,
    Bottles,
}

impl ManifestKind {
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Agents => "agent",
            Self::Bottles => "bottle",
        }
    }
}

impl Home {
    pub(crate) fn from_env() -> Result<Self, Failure> {
        let home = host::env::home().ok_or_else(|| Failure::usage("HOME is not set"))?;
        let dirs = Dirs::from_env().or_exit(BottleExit::Usage)?;
        let programs = dirs.data_home().join("bottleworks/agents");
        Ok(Self { is_configured: true, ..Self::new(home.join(".bot-bottle"), programs) })
    }

    fn new(root: PathBuf, programs: PathBuf) -> Self {
        Self {
            programs,
            bottles: root.join("cellar"),
            mirrors: root.join("cache/mirrors"),
            sources: root.join("cache/sources"),
            database: root.join("bot-bottle.db"),
            is_configured: false,
            host_id: root.join("host-id"),
            serve_lock: root.join("serve.lock"),
            host_chain: root.join("attest/runs.jsonl"),
            unsigned: root.join("attest/pending"),
            hooks: root.join("hooks"),
            token_file: root.join("forge-token"),
            web_key: root.join("web-key"),
            web_sessions: root.join("web-sessions.json"),
            root,
        }
    }

    #[cfg(test)]
    pub(crate) fn at(root: &std::path::Path) -> Self {
        Self::new(root.to_path_buf(), root.join("programs"))
    }

    pub(crate) fn keyring(&self) -> Keyring {
        Keyring::new(self.root.join("attest"))
    }

    pub(crate) fn manifest_dir(&self, kind: ManifestKind) -> PathBuf {
        self.root.join(format!("{}s", kind.noun()))
    }

    /// The file of a manifest. The name is checked: it becomes part of a path.
    pub(crate) fn manifest(&self, kind: ManifestKind, name: &str) -> Result<PathBuf, Failure> {
        let wrong = |error| Failure::usage(invalid_name(kind.noun(), &error));
        let name = AgentName::parse(name).map_err(wrong)?;
        Ok(self.manifest_dir(kind).join(format!("{name}.toml")))
    }

    pub(crate) fn names(&self, kind: ManifestKind) -> Result<Vec<String>, Failure> {
        let entries = if_found(std::fs::read_dir(self.manifest_dir(kind)))?;
        let name = |path: PathBuf| {
            let stem = path.file_stem()?.to_str()?.to_owned();
            (path.extension()? == "toml").then_some(stem)
        };
        let mut names: Vec<String> =
            entries.into_iter().flatten().flatten().filter_map(|it| name(it.path())).collect();
        names.sort();
        Ok(names)
    }

    pub(crate) fn load_agent(&self, name: &str) -> Result<AgentManifest, Failure> {
        let shared = Config::load().or_exit(BottleExit::Usage)?;
        let provider = |name: &String| Some(shared.agent_options(name).ok()?.provider);
        let own: BTreeMap<String, Provider> =
            shared.agents.keys().filter_map(|name| Some((name.clone(), provider(name)?))).collect();
        self.load(ManifestKind::Agents, name, |text| parse_agent_of(text, &own))
    }

    pub(crate) fn load_bottle(&self, name: &str) -> Result<BottleManifest, Failure> {
        self.load(ManifestKind::Bottles, name, parse_bottle)
    }

    /// Loads bottles and merges them.
    pub(crate) fn load_bottles(&self, names: &[String]) -> Result<BottleManifest, Failure> {
        let list =
            names.iter().map(|name| self.load_bottle(name)).collect::<Result<Vec<_>, _>>()?;
        pour(&list).or_exit(BottleExit::Usage)
    }

    fn load<T>(
        &self,
        kind: ManifestKind,
        name: &str,
        parse: impl Fn(&str) -> Result<T, ManifestFault>,
    ) -> Result<T, Failure> {
        let (path, noun) = (self.manifest(kind, name)?, kind.noun());
        let shown = path.display();
        let text = std::fs::read_to_string(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Failure::usage(format!(
                "there is no {noun} '{name}' ({shown}); make one with: bot-bottle {noun} new {name}"
            )),
            _ => Failure::usage(format!("could not read {shown}: {error}")),
        })?;
        parse(&text).map_err(|fault| Failure::usage(format!("{shown}: {fault}")))
    }
}
