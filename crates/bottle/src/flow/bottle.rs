//! One bottle on disk: its folder, its record and its lock. Frozen means that nothing runs and everything is in here.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent::Usage;
use engine::box_dir::BoxDir;
use host::lock::{FileLock, LockError, LockKind};
use jiff::Timestamp;
use model::exit::BottleExit;
use model::id::{BoxName, BranchName, RunId, Sha, Slug};
pub(crate) use orchestrator_db::BottleState;
use orchestrator_db::{IssueText, WakeCause};
use run_store::run_dir::{self, RunDir};
use sandbox::backend::BackendKind;
use serde::{Deserialize, Serialize};

use super::home::Home;
use super::merged_branch::BranchRemoval;
use super::observe::{Base, Source};
use super::travel;
use crate::exit::{Failure, OrExit, OrGeneral, if_found};
use crate::rules::forge_env::ForgeEnv;
use crate::rules::slug::next_slug;

const RECORD: &str = "record.json";
pub(crate) const VERSION: u32 = 1;
const ATTEMPTS: u32 = 1000;

#[derive(Debug, Clone)]
pub(crate) struct Bottle {
    slug: Slug,
    path: PathBuf,
}

/// Everything that is needed to resume the bottle, on any backend.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) version: u32,
    pub(crate) slug: Slug,
    pub(crate) state: BottleState,
    pub(crate) agent: String,
    pub(crate) bottles: Vec<String>,
    pub(crate) created_at: Timestamp,
    /// The checkout that it was made from.
    pub(crate) repo: PathBuf,
    pub(crate) base_branch: BranchName,
    #[serde(default)]
    pub(crate) base_source: BaseSource,
    /// The bottle's own branch, in the workspace and at origin.
    pub(crate) branch: BranchName,
    /// The commit that the bottle began with.
    pub(crate) base: Sha,
    /// The newest commit of the base branch that the workspace has.
    pub(crate) known_base: Sha,
    pub(crate) published: Option<Sha>,
    pub(crate) pull: Option<u64>,
    /// The last title that a run gave the pull request.
    pub(crate) pull_title: Option<String>,
    pub(crate) forge: Option<ForgeEnv>,
    pub(crate) backend: BackendKind,
    pub(crate) session: Option<Session>,
    pub(crate) workspace: WorkspaceState,
    pub(crate) runs: Vec<RunId>,
    /// Comments that the agent has seen, or that are not for it.
    #[serde(default, alias = "heard")]
    pub(crate) seen_comments: BTreeSet<String>,
    /// Text of the issue that the last run worked by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<IssueText>,
    /// Model that a member chose in place of the manifest's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// Plan before the work; `None` if none is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<PlanStage>,
    /// Runs that a forge caused and no person, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) wakeups: Vec<Wakeup>,
    /// Commit of the branch that the workspace lacks, because the host merged it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) host_merge: Option<Sha>,
    /// The result that was signed last, and its signed twin: whoever publishes it again publishes the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signed: Option<SignedTwin>,
    /// The workspace's tip whose signed twin was published and is not in the workspace yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) workspace_twin: Option<SignedTwin>,
    /// End of the branch at origin, once its pull request is merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) branch_removal: Option<BranchRemoval>,
    /// Commit that was found to merge cleanly, and when: the forge may take a while to see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) merges_cleanly: Option<(String, Timestamp)>,
}

/// A commit, and the one that was made of it by signing it and its parents. Trees, people, dates and messages are the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SignedTwin {
    pub(crate) from: Sha,
    pub(crate) to: Sha,
}

/// Plan before the work on an issue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "kebab-case")]
pub(crate) enum PlanStage {
    Wanted,
    /// It is a comment on the issue.
    Proposed {
        comment: u64,
    },
    Approved {
        by: String,
    },
}

/// Run of a bottle that a forge caused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wakeup {
    pub(crate) cause: WakeCause,
    /// The newest commit of the pull request before it.
    pub(crate) head: String,
    pub(crate) pull: Option<u64>,
    pub(crate) at: Timestamp,
    /// True if the host needed no agent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) alone: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WorkspaceState {
    Absent,
    Made,
    SetUp,
}

/// Place where the base of a bottle comes from, and where a resumed one looks for new commits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BaseSource {
    /// A branch at origin.
    #[default]
    Origin,
    /// A branch of the checkout.
    Branch,
    /// One commit of the checkout, without a branch that moves.
    Commit,
}

impl BaseSource {
    /// Name under which the agent finds a branch of this place.
    pub(crate) fn name_of(self, branch: &BranchName) -> String {
        match self {
            Self::Origin => format!("origin/{branch}"),
            Self::Branch | Self::Commit => format!("checkout/{branch}"),
        }
    }
}

/// Conversation of an agent that can be resumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) provider: String,
    pub(crate) id: String,
    pub(crate) usage: Option<Usage>,
}

/// Name of a bottle, and the bottle if its record can be read.
pub(crate) type NamedBottle = (String, Result<(Bottle, Record), Failure>);

impl Record {
    /// True if the next run writes a plan and does no work.
    pub(crate) fn is_planning(&self) -> bool {
        matches!(self.plan, Some(PlanStage::Wanted | PlanStage::Proposed { .. }))
    }

    pub(crate) fn new(
        bottle: &Bottle,
        source: &Source,
        base: Base,
        agent: String,
        bottles: Vec<String>,
        backend: BackendKind,
    ) -> Result<Self, Failure> {
        let branch = format!("bot-bottle/{}", bottle.slug());
        Ok(Self {
            version: VERSION,
            slug: bottle.slug().clone(),
            state: BottleState::Running,
            agent,
            bottles,
            created_at: host::clock::now(),
            repo: source.root.clone(),
            base_branch: base.branch,
            base_source: base.source,
            branch: BranchName::parse(&branch).or_exit(BottleExit::Internal)?,
            known_base: base.known,
            base: base.commit,
            published: None,
            pull: None,
            pull_title: None,
            forge: None,
            backend,
            session: None,
            workspace: WorkspaceState::Absent,
            runs: Vec::new(),
            seen_comments: BTreeSet::new(),
            text: None,
            model: None,
            plan: None,
            wakeups: Vec::new(),
            host_merge: None,
            signed: None,
            workspace_twin: None,
            branch_removal: None,
            merges_cleanly: None,
        })
    }
}

impl Bottle {
    /// Creates a bottle. Creating the folder claims the name, so two starts never get the same one. Names in `taken` are those
    /// of bottles that may come here.
    pub(crate) fn create(
        home: &Home,
        label: &str,
        taken: &BTreeSet<String>,
    ) -> Result<Self, Failure> {
        host::file::create_dirs(&home.bottles).or_general()?;
        for attempt in 1..=ATTEMPTS {
            let slug = next_slug(label, attempt)
                .ok_or_else(|| Failure::usage(format!("'{label}' cannot be a bottle's name")))?;
            if taken.contains(slug.as_str()) {
                continue;
            }
            let path = home.bottles.join(slug.as_str());
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

    /// A bottle that is in the store of bottles, by its record; its folder is not here.
    pub(crate) fn of_stored(home: &Home, record: &Record) -> Self {
        let slug = record.slug.clone();
        Self { path: home.bottles.join(slug.as_str()), slug }
    }

    pub(crate) fn open(home: &Home, name: &str) -> Result<(Self, Record), Failure> {
        let slug = Slug::parse(name).or_exit(BottleExit::NotFound)?;
        let path = home.bottles.join(slug.as_str());
        let bottle = Self { slug, path };
        let path = bottle.record_path();
        let failed = |what: String| Failure::new(BottleExit::General, what);
        let bytes = fs::read(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Failure::not_found(format!("there is no bottle '{name}'; see: bot-bottle list"))
            }
            _ => failed(format!("the record of '{name}': {error}")),
        })?;
        // The page shows this text, so the path is in the remedy alone.
        let record = serde_json::from_slice(&bytes).map_err(|error| {
            let (file, runs) = (path.display(), bottle.path.join("runs"));
            let remedy =
                format!("restore {file}; the records of its runs are in {}", runs.display());
            failed(format!("the record of '{name}': {error}")).with_remedy(remedy)
        })?;
        Ok((bottle, record))
    }

    /// All bottles, by name; an unreadable record comes as its failure.
    pub(crate) fn all(home: &Home) -> Result<Vec<NamedBottle>, Failure> {
        let entries = if_found(fs::read_dir(&home.bottles))?;
        let mut names: Vec<String> = entries
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            // Bottles that are being fetched, and older states of others.
            .filter(|name| !name.starts_with('.'))
            .collect();
        names.sort();
        let load = |name: String| {
            let opened = Self::open(home, &name);
            (name, opened)
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

    pub(crate) fn run(&self, run: &RunId) -> Result<RunDir, Failure> {
        RunDir::open(&self.runs().join(run.as_str())).or_exit(BottleExit::NotFound)
    }

    pub(crate) fn last_run(&self, record: &Record) -> Result<Option<RunDir>, Failure> {
        record.runs.last().map(|run| self.run(run)).transpose()
    }

    /// Removes the directories of runs that a killed process made and did not write down: nothing ran in them. The caller
    /// holds the lock.
    pub(crate) fn remove_unrecorded_runs(&self, record: &Record) -> Result<(), Failure> {
        let Some(entries) = if_found(fs::read_dir(self.runs()))? else { return Ok(()) };
        for entry in entries {
            let entry = entry.or_general()?;
            let is_recorded = record.runs.iter().any(|run| entry.file_name() == run.as_str());
            if !is_recorded {
                host::file::remove_tree_safely(&entry.path()).or_general()?;
            }
        }
        Ok(())
    }

    pub(crate) fn save(&self, record: &Record) -> Result<(), Failure> {
        // Before anything changes, so that no folder is taken for the state in a store that it was.
        travel::note_change(&self.path)?;
        let bytes = serde_json::to_vec_pretty(record).or_exit(BottleExit::Internal)?;
        host::file::write_atomic(&self.record_path(), &bytes, 0o600).or_general()
    }

    /// Locks the bottle for this process; `wait` is the time for another process that was just signalled to end.
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
                Failure::held(format!(
                    "the bottle '{}' is in use{who}; end its run with: bot-bottle freeze {}",
                    self.slug, self.slug
                ))
            }
            other => Failure::of(BottleExit::General, other),
        })
    }
}

/// The folder of the agent's box in a run.
pub(crate) fn agent_box(dir: &RunDir) -> Result<BoxDir, Failure> {
    let name = BoxName::parse("agent").or_exit(BottleExit::Internal)?;
    Ok(BoxDir::new(dir.box_dir(&name)))
}

/// Finds a run by its name, or the start of it, in any bottle.
pub(crate) fn find_run(home: &Home, name: &str) -> Result<Option<RunDir>, Failure> {
    for (slug, _) in Bottle::all(home)? {
        if let Ok(found) = run_dir::find(&home.bottles.join(slug).join("runs"), name) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}
