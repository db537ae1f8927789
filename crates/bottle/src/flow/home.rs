//! The folder of bot-bottle: `~/.bot-bottle`.
//!
//! ```text
//! agents/<name>.toml    bottles/<name>.toml    manifests
//! cellar/<slug>/        one bottle: record.json, lock, workspace/, harness-state/, runs/
//! cache/                mirrors of repositories, and repositories to make bottles from
//! bot-bottle.db         which bottle works on which issue
//! serve.lock            held by the one that serves
//! forge-token           the forge's token (0600), where FORGE_TOKEN is not set
//! hooks/<host>/<owner>/<repo>.json   webhooks that were installed, with their secrets (0600)
//! attest/               keys (signing-key.pem, 0600), the chain of all runs (runs.jsonl), statements still owed (pending/)
//! ```

use std::path::PathBuf;

use attest::keyring::Keyring;
use host::dirs::Dirs;
use model::exit::BottleExit;
use model::id::AgentName;

use crate::exit::{Failure, OrExit, if_found};
use crate::rules::agent_manifest::{AgentManifest, ManifestFault, invalid_name, parse_agent};
use crate::rules::bottle_manifest::{BottleManifest, parse_bottle, pour};

#[derive(Debug, Clone)]
pub(crate) struct Home {
    root: PathBuf,
    /// Folder of the programs that `forklift agents install` installs.
    pub(crate) programs: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ManifestKind {
    Agents,
    Bottles,
}

impl ManifestKind {
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Bottles => "bottles",
        }
    }

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
        Ok(Self {
            root: home.join(".bot-bottle"),
            programs: dirs.data_home().join("bottleworks/agents"),
        })
    }

    #[cfg(test)]
    pub(crate) fn at(root: &std::path::Path) -> Self {
        Self { root: root.to_path_buf(), programs: root.join("programs") }
    }

    /// Folder of all bottles; `cellar` on disk, because `bottles` has the manifests.
    pub(crate) fn bottles(&self) -> PathBuf {
        self.root.join("cellar")
    }

    pub(crate) fn mirrors(&self) -> PathBuf {
        self.root.join("cache/mirrors")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.root.join("bot-bottle.db")
    }

    /// Repositories that `serve` creates to make bottles from.
    pub(crate) fn sources(&self) -> PathBuf {
        self.root.join("cache/sources")
    }

    /// Held by the process that serves.
    pub(crate) fn serve_lock(&self) -> PathBuf {
        self.root.join("serve.lock")
    }

    pub(crate) fn attest_dir(&self) -> PathBuf {
        self.root.join("attest")
    }

    pub(crate) fn keyring(&self) -> Keyring {
        Keyring::new(self.attest_dir())
    }

    pub(crate) fn host_chain(&self) -> PathBuf {
        self.attest_dir().join("runs.jsonl")
    }

    /// Runs whose statements are not signed yet, one file for each.
    pub(crate) fn owed(&self) -> PathBuf {
        self.attest_dir().join("pending")
    }

    pub(crate) fn hooks(&self) -> PathBuf {
        self.root.join("hooks")
    }

    pub(crate) fn token_file(&self) -> PathBuf {
        self.root.join("forge-token")
    }

    pub(crate) fn manifest_dir(&self, kind: ManifestKind) -> PathBuf {
        self.root.join(kind.folder())
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
        self.load(ManifestKind::Agents, name, parse_agent)
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
        parse: fn(&str) -> Result<T, ManifestFault>,
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
