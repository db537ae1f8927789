//! Where everything of bot-bottle's is: `~/.bot-bottle`.
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

use std::path::{Path, PathBuf};

use attest::keyring::Keyring;
use host::dirs::Dirs;
use model::exit::BottleExit;
use model::id::AgentName;

use crate::exit::{Failure, OrExit};
use crate::rules::agent_manifest::{AgentManifest, ManifestFault, parse_agent};
use crate::rules::bottle_manifest::{BottleManifest, parse_bottle, pour};

/// The folder of one person.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    root: PathBuf,
    /// Where `forklift agents install` puts programs.
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
    /// As `HOME` and the XDG variables say.
    pub(crate) fn from_env() -> Result<Self, Failure> {
        let home = host::env::home().ok_or_else(|| Failure::usage("HOME is not set"))?;
        let dirs = Dirs::from_env().or_exit(BottleExit::Usage)?;
        Ok(Self {
            root: home.join(".bot-bottle"),
            programs: dirs.data_home().join("bottleworks/agents"),
        })
    }

    /// In a folder of a test.
    #[cfg(test)]
    pub(crate) fn at(root: &Path) -> Self {
        Self { root: root.to_path_buf(), programs: root.join("programs") }
    }

    /// Folder of all bottles; `cellar` on disk, because `bottles` has the manifests.
    pub(crate) fn bottles(&self) -> PathBuf {
        self.root.join("cellar")
    }

    /// Where mirrors of repositories are kept.
    pub(crate) fn mirrors(&self) -> PathBuf {
        self.root.join("cache/mirrors")
    }

    /// The forge state.
    pub(crate) fn database(&self) -> PathBuf {
        self.root.join("bot-bottle.db")
    }

    /// Repositories of our own to make bottles from.
    pub(crate) fn sources(&self) -> PathBuf {
        self.root.join("cache/sources")
    }

    /// Held by the one that serves.
    pub(crate) fn serve_lock(&self) -> PathBuf {
        self.root.join("serve.lock")
    }

    /// Keys, the chain of runs, and what is still owed.
    pub(crate) fn attest_dir(&self) -> PathBuf {
        self.root.join("attest")
    }

    /// The keys that statements are signed with.
    pub(crate) fn keyring(&self) -> Keyring {
        Keyring::new(self.attest_dir())
    }

    /// The chain of all runs.
    pub(crate) fn host_chain(&self) -> PathBuf {
        self.attest_dir().join("runs.jsonl")
    }

    /// Runs whose statements are not signed yet, one file for each.
    pub(crate) fn owed(&self) -> PathBuf {
        self.attest_dir().join("pending")
    }

    /// Webhooks that were installed, with their secrets.
    pub(crate) fn hooks(&self) -> PathBuf {
        self.root.join("hooks")
    }

    /// The forge's token.
    pub(crate) fn token_file(&self) -> PathBuf {
        self.root.join("forge-token")
    }

    /// Folder of a kind of manifest.
    pub(crate) fn manifest_dir(&self, kind: ManifestKind) -> PathBuf {
        self.root.join(kind.folder())
    }

    /// The file of a manifest. The name is checked: it becomes part of a path.
    pub(crate) fn manifest(&self, kind: ManifestKind, name: &str) -> Result<PathBuf, Failure> {
        let name = AgentName::parse(name).or_exit(BottleExit::Usage)?;
        Ok(self.manifest_dir(kind).join(format!("{name}.toml")))
    }

    pub(crate) fn names(&self, kind: ManifestKind) -> Result<Vec<String>, Failure> {
        let entries = match std::fs::read_dir(self.manifest_dir(kind)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).or_general(),
        };
        let name = |path: PathBuf| {
            let stem = path.file_stem()?.to_str()?.to_owned();
            (path.extension()? == "toml").then_some(stem)
        };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| name(entry.path())).collect();
        names.sort();
        Ok(names)
    }

    /// Reads an agent's manifest.
    pub(crate) fn load_agent(&self, name: &str) -> Result<AgentManifest, Failure> {
        self.load(ManifestKind::Agents, name, parse_agent)
    }

    /// Reads one bottle's manifest.
    pub(crate) fn load_bottle(&self, name: &str) -> Result<BottleManifest, Failure> {
        self.load(ManifestKind::Bottles, name, parse_bottle)
    }

    /// Reads bottles and pours them together.
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
        let path = self.manifest(kind, name)?;
        let text = read(&path, kind, name)?;
        parse(&text).map_err(|fault| Failure::usage(format!("{}: {fault}", path.display())))
    }
}

fn read(path: &Path, kind: ManifestKind, name: &str) -> Result<String, Failure> {
    let noun = kind.noun();
    std::fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::usage(format!(
            "there is no {noun} '{name}' ({}); make one with: bot-bottle {noun} new {name}",
            path.display()
        )),
        _ => Failure::usage(format!("could not read {}: {error}", path.display())),
    })
}
