//! The state of a train: a branch in a repository of the host's, and a small record beside it.
//!
//! The branch is at the last step that was verified. What a step merges is told by the commits: a step is done if its commit of
//! upstream is in the branch. So nothing else has to be kept in step with it, whatever is killed in between.

use std::path::{Path, PathBuf};

use host::file::{write_atomic, write_transient};
use host::git::{OldValue, RefName, SealedRepo, UserRepo};
use jiff::Timestamp;
use model::exit::ForkliftExit;
use model::id::{BranchName, Sha};
use run_store::run_dir::RunDir;
use serde::{Deserialize, Serialize};

use crate::commands::ForkliftDirs;
use crate::exit::{Failure, OrExit};
use crate::flow::earlier::{StoredRun, stored_runs};
use crate::flow::observe::{Observation, fork_key};
use crate::flow::record::Fork;
use crate::flow::resolver::learned_file;
use crate::rules::judge::Verdict;
use crate::rules::train::{CommitLabel, PullLayout, TRAIN_BRANCHES, train_name};

/// A commit that breaks the check, as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FoundBreak {
    pub(crate) commit: CommitLabel,
    pub(crate) author: String,
    /// The check's exit with it, in words.
    pub(crate) how: String,
    /// Checks that were run to find it.
    pub(crate) checks: usize,
    /// The commits of which one breaks the check, where those between cannot be checked; `commit` is the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) one_of: Vec<CommitLabel>,
}

impl FoundBreak {
    /// Returns whether the commit itself is known to break the check.
    pub(crate) fn is_certain(&self) -> bool {
        self.one_of.len() <= 1
    }

    pub(crate) fn words(&self) -> String {
        if self.is_certain() {
            return self.commit.words();
        }
        let words: Vec<String> = self.one_of.iter().map(CommitLabel::words).collect();
        format!("one of {}", words.join(", "))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrainRecord {
    pub(crate) name: String,
    pub(crate) fork: Fork,
    /// Commit of the fork that it starts from.
    pub(crate) base: Sha,
    pub(crate) target: Sha,
    pub(crate) target_name: String,
    pub(crate) batch: usize,
    pub(crate) layout: PullLayout,
    pub(crate) started_at: Timestamp,
    #[serde(default)]
    pub(crate) breaks: Vec<FoundBreak>,
    /// True if another train took its place or its result is in the fork.
    #[serde(default)]
    pub(crate) is_over: bool,
}

impl TrainRecord {
    pub(crate) fn branch(&self) -> Result<BranchName, Failure> {
        BranchName::parse(&format!("{TRAIN_BRANCHES}{}", self.name)).or_exit(ForkliftExit::Internal)
    }
}

/// Folder of a fork's trains: the repository that all of them share, and their records.
pub(crate) struct TrainStore {
    folder: PathBuf,
    pub(crate) repo: UserRepo,
}

impl TrainStore {
    /// Opens the folder, and creates it first if it is missing.
    pub(crate) async fn open(places: &ForkliftDirs, user: &UserRepo) -> Result<Self, Failure> {
        let folder = places.runs.with_file_name("trains").join(fork_key(user));
        host::file::create_dirs(&folder).or_machine()?;
        let path = folder.join("repo.git");
        remove_half(&path)?;
        let repo = user.beside(&path).await.or_machine()?;
        let [theirs, own] = [user, &repo].map(|repo| learned_file(&places.cache, repo));
        if !own.exists() && theirs.is_file() {
            // It only saves time: without it the fork's merges are read again.
            drop(std::fs::copy(theirs, own));
        }
        Ok(Self { folder, repo })
    }

    pub(crate) fn repo_path(&self) -> PathBuf {
        self.folder.join("repo.git")
    }

    /// The repository as one whose settings are not believed.
    pub(crate) fn sealed(&self) -> SealedRepo {
        SealedRepo::open(&self.repo_path(), self.repo.object_format())
    }

    fn record_path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }

    pub(crate) fn save(&self, record: &TrainRecord) -> Result<(), Failure> {
        let bytes = serde_json::to_vec_pretty(record).or_exit(ForkliftExit::Internal)?;
        write_atomic(&self.record_path(&record.name), &bytes, 0o600).or_machine()
    }

    /// Records of all trains of the fork's branch, newest first.
    pub(crate) fn records(&self, branch: &BranchName) -> Result<Vec<TrainRecord>, Failure> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.folder).or_machine()?.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|kind| kind == "json") {
                let bytes = std::fs::read(&path).or_machine()?;
                let record: TrainRecord = serde_json::from_slice(&bytes).map_err(|error| {
                    let text = format!("{} cannot be read: {error}", path.display());
                    Failure::new(ForkliftExit::Machine, text)
                })?;
                found.push(record);
            }
        }
        found.retain(|record| record.fork.branch == *branch);
        found.sort_by_key(|record| std::cmp::Reverse(record.started_at));
        Ok(found)
    }

    /// Starts a train with a name that no other has.
    pub(crate) fn new_record(
        &self,
        seen: &Observation,
        batch: usize,
        layout: PullLayout,
    ) -> Result<TrainRecord, Failure> {
        let (base, target) = (seen.pins.base.clone(), seen.pins.upstream.clone());
        let taken =
            |attempt: &usize| self.record_path(&train_name(&base, &target, *attempt)).exists();
        let attempt = (1..).find(|attempt| !taken(attempt)).unwrap_or(1);
        Ok(TrainRecord {
            name: train_name(&base, &target, attempt),
            fork: seen.fork.clone(),
            base,
            target,
            target_name: seen.target_name.clone(),
            batch,
            layout,
            started_at: host::clock::now(),
            breaks: Vec::new(),
            is_over: false,
        })
    }

    /// Commit of the train's branch; without one, the commit that it starts from.
    pub(crate) async fn tip(&self, train: &TrainRecord) -> Result<Sha, Failure> {
        let name = RefName::of_branch(&train.branch()?);
        let tip = self.repo.resolve_commit(name.as_str()).await.or_machine()?;
        Ok(tip.unwrap_or_else(|| train.base.clone()))
    }

    /// Moves the train's branch to the commit of a verified step.
    pub(crate) async fn take(&self, train: &TrainRecord, run: &StoredRun) -> Result<Sha, Failure> {
        let missing = || Failure::new(ForkliftExit::Internal, "a verified run without a commit");
        let tip = run.meta.tip().ok_or_else(missing)?;
        let from = SealedRepo::open(&run.dir.repo(), self.repo.object_format());
        let pins = &run.meta.pins;
        let had = [pins.base.clone(), pins.upstream.clone()];
        let packs = self.repo.objects_dir().join("pack");
        host::file::create_dirs(&packs).or_machine()?;
        from.pack_into(&packs, std::slice::from_ref(&tip), &had).await.or_machine()?;
        host::failpoint::hit("train-packed");
        self.move_to(train, &tip).await?;
        host::failpoint::hit("train-moved");
        Ok(tip)
    }

    /// Moves the train's branch to a commit that the repository has.
    pub(crate) async fn move_to(&self, train: &TrainRecord, tip: &Sha) -> Result<(), Failure> {
        let branch = train.branch()?;
        let name = RefName::of_branch(&branch);
        let old = self.repo.resolve_commit(name.as_str()).await.or_machine()?;
        let expected = old.as_ref().map_or(OldValue::Missing, OldValue::At);
        self.repo.move_branch(&branch, tip, expected).await.or_machine()
    }

    /// Writes down why the check broke, for people who look at the folder.
    pub(crate) fn write_report(&self, name: &str, text: &str) -> Result<PathBuf, Failure> {
        let path = self.folder.join(format!("{name}.md"));
        write_transient(&path, text.as_bytes(), 0o600).or_machine()?;
        Ok(path)
    }
}

/// Removes the train's repository if it was not made to its end. The caller holds the fork's lock.
fn remove_half(path: &Path) -> Result<(), Failure> {
    let parts = ["HEAD", "config", "refs", "objects"];
    if path.exists() && !parts.iter().all(|part| path.join(part).exists()) {
        host::file::remove_tree_safely(path).or_machine()?;
    }
    Ok(())
}

/// Runs of a train, newest first.
pub(crate) fn runs_of_train(
    runs: &Path,
    name: &str,
) -> Result<impl Iterator<Item = StoredRun>, Failure> {
    let is_own = move |run: &StoredRun| run.meta.train.as_ref().is_some_and(|it| it.train == name);
    Ok(stored_runs(runs)?.filter(is_own))
}

/// The newest closed run whose verified commit continues a train at `tip`.
pub(crate) fn find_done(runs: &Path, name: &str, tip: &Sha) -> Result<Option<StoredRun>, Failure> {
    let counts = |run: &StoredRun| {
        run.dir.is_closed()
            && run.meta.pins.base == *tip
            && run.meta.verdict == Some(Verdict::Publish)
            && run.meta.tip().is_some()
            && run.dir.repo().is_dir()
    };
    Ok(runs_of_train(runs, name)?.find(counts))
}

/// The newest run of a train that is not finished.
pub(crate) fn find_open(runs: &Path, name: &str) -> Result<Option<RunDir>, Failure> {
    Ok(runs_of_train(runs, name)?.find(|run| !run.dir.is_closed()).map(|run| run.dir))
}
