//! One bottle on disk: its folder, its record and its lock. Frozen means that nothing runs and everything is in here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent::Usage;
use host::lock::{FileLock, LockError, LockKind};
use jiff::Timestamp;
use model::exit::BottleExit;
use model::id::{BranchName, RunId, Sha, Slug};
pub(crate) use orchestrator_db::BottleState;
use run_store::run_dir::{self, RunDir};
use sandbox::backend::BackendKind;
use serde::{Deserialize, Serialize};

use super::home::Home;
use crate::exit::{Failure, OrExit};
use crate::rules::forge_env::ForgeEnv;
use crate::rules::slug::next_slug;

const RECORD: &str = "record.json";
/// The version of the record's shape.
pub(crate) const VERSION: u32 = 1;
const ATTEMPTS: u32 = 1000;

/// The folder of a bottle.
#[derive(Debug, Clone)]
pub(crate) struct Bottle {
    slug: Slug,
    path: PathBuf,
}

/// Everything that is needed to go on, on any backend.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) version: u32,
    pub(crate) slug: Slug,
    pub(crate) state: BottleState,
    pub(crate) agent: String,
    pub(crate) bottles: Vec<String>,
    pub(crate) created_at: Timestamp,
    /// The person's checkout that it was made from.
    pub(crate) repo: PathBuf,
    pub(crate) base_branch: BranchName,
    /// The bottle's own branch, in the workspace and at origin.
    pub(crate) branch: BranchName,
    /// Where the bottle began.
    pub(crate) base: Sha,
    /// The newest commit of the base branch that the workspace has.
    pub(crate) known_base: Sha,
    pub(crate) published: Option<Sha>,
    pub(crate) pull: Option<u64>,
    /// The title that the pull request was given last by us.
    #[serde(default)]
    pub(crate) pull_title: Option<String>,
    pub(crate) forge: Option<ForgeEnv>,
    pub(crate) backend: BackendKind,
    /// The agent's conversation, and whose it is.
    pub(crate) session: Option<Session>,
    /// Whether the workspace is whole, and whether the bottle's set-up was run in it.
    pub(crate) workspace: WorkspaceState,
    pub(crate) runs: Vec<RunId>,
    /// Comments that the agent has seen, or that are not for it.
    #[serde(default, alias = "heard")]
    pub(crate) seen_comments: BTreeSet<String>,
}

/// How far the workspace has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WorkspaceState {
    Absent,
    Made,
    SetUp,
}

/// A conversation that can be gone on with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) provider: String,
    pub(crate) id: String,
    pub(crate) usage: Option<Usage>,
}

/// The name of a bottle and its record, or why that cannot be read.
pub(crate) type Found = (String, Result<Record, Failure>);

impl Bottle {
    /// Makes a new one. The folder is made and not looked for first, so two starts never get the same.
    pub(crate) fn create(home: &Home, label: &str) -> Result<Self, Failure> {
        let folder = home.bottles();
        std::fs::create_dir_all(&folder).or_general()?;
        for attempt in 1..=ATTEMPTS {
            let slug = next_slug(label, attempt)
                .ok_or_else(|| Failure::usage(format!("'{label}' cannot be a bottle's name")))?;
            let path = folder.join(slug.as_str());
            match host::file::create_dir_exclusive(&path) {
                Ok(()) => return Ok(Self { slug, path }),
                Err(host::file::FileError::Exists { .. }) => {}
                Err(error) => return Err(error).or_general(),
            }
        }
        Err(Failure::usage(format!(
            "there are too many bottles named '{label}'; give another --label"
        )))
    }

    /// Finds one by its name.
    pub(crate) fn open(home: &Home, name: &str) -> Result<(Self, Record), Failure> {
        let slug = Slug::parse(name).or_exit(BottleExit::NotFound)?;
        let path = home.bottles().join(slug.as_str());
        let bottle = Self { slug, path };
        let bytes = std::fs::read(bottle.record_path()).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Failure::not_found(format!("there is no bottle '{name}'; see: bot-bottle list"))
            }
            _ => Failure::new(BottleExit::General, format!("the record of '{name}': {error}")),
        })?;
        let record: Record = serde_json::from_slice(&bytes).or_general()?;
        Ok((bottle, record))
    }

    /// All bottles, by name; what cannot be read is named with its reason.
    pub(crate) fn all(home: &Home) -> Result<Vec<Found>, Failure> {
        let entries = match std::fs::read_dir(home.bottles()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).or_general(),
        };
        let mut names: Vec<String> = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        let load = |name: String| {
            let record = Self::open(home, &name).map(|(_, record)| record);
            (name, record)
        };
        Ok(names.into_iter().map(load).collect())
    }

    pub(crate) fn slug(&self) -> &Slug {
        &self.slug
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.path.join("workspace")
    }

    pub(crate) fn harness_state(&self) -> PathBuf {
        self.path.join("harness-state")
    }

    pub(crate) fn runs(&self) -> PathBuf {
        self.path.join("runs")
    }

    fn record_path(&self) -> PathBuf {
        self.path.join(RECORD)
    }

    /// The directory of a run.
    pub(crate) fn run(&self, run: &RunId) -> Result<RunDir, Failure> {
        RunDir::open(&self.runs().join(run.as_str())).or_exit(BottleExit::NotFound)
    }

    /// The newest run, if there was any.
    pub(crate) fn last_run(&self, record: &Record) -> Result<Option<RunDir>, Failure> {
        record.runs.last().map(|run| self.run(run)).transpose()
    }

    /// Keeps the record, whole or not at all.
    pub(crate) fn save(&self, record: &Record) -> Result<(), Failure> {
        let bytes = serde_json::to_vec_pretty(record).or_exit(BottleExit::Internal)?;
        host::file::write_atomic(&self.record_path(), &bytes, 0o600).or_general()
    }

    /// Takes the bottle for this process; `wait` is for those that have just asked the other one to end.
    pub(crate) async fn take(&self, wait: Duration) -> Result<FileLock, Failure> {
        let kind = LockKind::Exclusive { note: "bot-bottle" };
        let path = self.path.join("lock");
        let taken = match wait.is_zero() {
            true => FileLock::try_acquire(&path, kind),
            false => FileLock::acquire(&path, kind, wait).await,
        };
        taken.map_err(|error| match error {
            LockError::Held { holder, .. } => {
                let who = holder.map_or_else(String::new, |it| format!(" (process {})", it.pid));
                Failure::not_found(format!(
                    "the bottle '{}' is in use{who}; end its run with: bot-bottle freeze {}",
                    self.slug, self.slug
                ))
            }
            other => Err::<(), _>(other).or_general().expect_err("it is an error"),
        })
    }
}

/// Finds a run by its name, or the start of it, in any bottle.
pub(crate) fn find_run(home: &Home, name: &str) -> Result<Option<RunDir>, Failure> {
    for (slug, _) in Bottle::all(home)? {
        if let Ok(found) = run_dir::find(&home.bottles().join(slug).join("runs"), name) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}
