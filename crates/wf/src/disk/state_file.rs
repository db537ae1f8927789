//! State of a workstream in the ops directory, each in one JSON file that is replaced whole: the journal of the active
//! run, the implementation that waits for tests and review, and changes of the workstream that are under way.

use std::collections::BTreeSet;
use std::path::PathBuf;

use jiff::Timestamp;
use model::id::{BranchName, MicroCommitId, Sha, WorkstreamId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::project_dirs::ProjectDirs;
use super::{DiskResult, load_json, make_dir, names_in, remove_optional};
use crate::rules::schema::render_json;

const MODE: u32 = 0o600;

pub(crate) trait StateFile: Serialize + DeserializeOwned {
    const SUFFIX: &'static str;

    /// Reports whether this state must survive a power failure.
    fn is_durable(&self) -> bool {
        true
    }

    /// The name includes the project's, because projects may share an ops directory.
    fn file_name(dirs: &ProjectDirs, id: &str) -> String {
        format!("{}.{id}.{}", dirs.project.name, Self::SUFFIX)
    }

    fn path(dirs: &ProjectDirs, id: &WorkstreamId) -> PathBuf {
        dirs.state_dir().join(Self::file_name(dirs, id.as_str()))
    }

    fn load(dirs: &ProjectDirs, id: &WorkstreamId) -> DiskResult<Option<Self>> {
        load_json(&Self::path(dirs, id))
    }

    fn save(&self, dirs: &ProjectDirs, id: &WorkstreamId) -> DiskResult<()> {
        make_dir(&dirs.state_dir())?;
        let (path, text) = (Self::path(dirs, id), render_json(self));
        if self.is_durable() {
            Ok(host::file::write_atomic(&path, text.as_bytes(), MODE)?)
        } else {
            Ok(host::file::write_transient(&path, text.as_bytes(), MODE)?)
        }
    }

    fn remove(dirs: &ProjectDirs, id: &WorkstreamId) -> DiskResult<()> {
        remove_optional(&Self::path(dirs, id))
    }
}

/// Journal of a run that is under way, or was when its process died; it is removed at the end of the run. It is written
/// before each step, so that the next command can finish what a crash interrupted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenRun {
    pub(crate) stem: String,
    pub(crate) directory: String,
    pub(crate) stage: String,
    pub(crate) started: Timestamp,
    pub(crate) micro_commit: Option<MicroCommitId>,
    /// The commit to accept, set once every gate has passed. From then on recovery rolls the run forward.
    pub(crate) accepted: Option<Sha>,
}

impl StateFile for OpenRun {
    const SUFFIX: &'static str = "run.json";

    /// Only an acceptance must survive a power failure; the rest only shows where a failed run died.
    fn is_durable(&self) -> bool {
        self.accepted.is_some()
    }
}

impl OpenRun {
    /// The run whose process died. The next `wf run` finishes it.
    pub(crate) fn load_interrupted(
        dirs: &ProjectDirs,
        id: &WorkstreamId,
    ) -> DiskResult<Option<Self>> {
        let Some(open) = Self::load(dirs, id)? else { return Ok(None) };
        if dirs.is_running(id) {
            return Ok(None);
        }
        // One that ended between the two looks has removed its journal.
        Ok(Self::load(dirs, id)?.filter(|again| *again == open))
    }
}

/// An implementation that passed its checks and waits for tests and review. It is recorded before the branch moves, so
/// that a crash or a signal neither loses the commit nor makes it twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Implemented {
    pub(crate) micro_commit: MicroCommitId,
    pub(crate) before: Sha,
    pub(crate) tip: Sha,
    /// The run whose import repository holds it until the branch has it.
    pub(crate) run: String,
    pub(crate) name: String,
}

impl StateFile for Implemented {
    const SUFFIX: &'static str = "implemented.json";
}

/// Change of a workstream as a whole that is under way, or was when its process died. It is recorded before the first
/// effect; the next command that creates, closes or deletes the workstream finishes it or takes it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub(crate) enum PendingChange {
    /// Taken back unless the workstream's folder is in its place, which is the last step.
    New { branch: BranchName, base: Sha, worktree: PathBuf },
    /// Finished once the folder is in its `trash`, which is the first step.
    Delete(Deletion),
    /// Finished once the folder is in `archive`, which is the first step.
    Close { branch: BranchName, worktree: PathBuf, archive: PathBuf },
    /// Taken back unless the folder is in its place again, which is the last step.
    Open { worktree: PathBuf },
}

impl PendingChange {
    /// Reads all changes of the project that were interrupted.
    pub(crate) fn load_all(dirs: &ProjectDirs) -> DiskResult<Vec<(WorkstreamId, Self)>> {
        let (prefix, suffix) = (format!("{}.", dirs.project.name), format!(".{}", Self::SUFFIX));
        let mut found = Vec::new();
        for name in names_in(&dirs.state_dir())? {
            let id = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(&suffix));
            let Some(Ok(id)) = id.map(WorkstreamId::parse) else { continue };
            found.extend(Self::load(dirs, &id)?.map(|change| (id, change)));
        }
        Ok(found)
    }
}

/// Parts that a deletion removes beside the workstream's folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Deletion {
    pub(crate) branch: BranchName,
    pub(crate) base_branch: BranchName,
    pub(crate) tip: Option<Sha>,
    pub(crate) worktree: PathBuf,
    /// The place that the folder is moved to before it is removed.
    pub(crate) trash: PathBuf,
    pub(crate) remote: RemoteBranchPolicy,
}

impl StateFile for PendingChange {
    const SUFFIX: &'static str = "change.json";
}

/// Treatment of a deleted workstream's branch on origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RemoteBranchPolicy {
    Delete,
    Keep,
}

/// Comments on the pull request that are in the plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FeedbackSeen {
    pub(crate) comments: BTreeSet<String>,
}

impl StateFile for FeedbackSeen {
    const SUFFIX: &'static str = "feedback.json";
}

/// Fast-forward of a checkout that is under way: a git that is killed in the middle leaves files of both commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PendingForward {
    pub(crate) checkout: PathBuf,
    pub(crate) from: Sha,
    pub(crate) to: Sha,
}

impl StateFile for PendingForward {
    const SUFFIX: &'static str = "forward.json";
}
