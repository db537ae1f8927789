//! The directory of a run: created first, renamed when the micro-commit is known.

use std::fs;
use std::path::{Path, PathBuf};

use host::file::FileError;
use host::lock::{FileLock, LockKind, holder_of, is_held};
use jiff::Timestamp;

use super::{DiskError, DiskResult, load_document, make_dir, names_in};
use crate::rules::result::RunResult;
use crate::rules::run_id::{RunTopic, run_name};
use crate::rules::schema::Schema;
use crate::rules::suggest::hint;

pub(crate) const RESULT: &str = "result.json";
pub(crate) const SUMMARY: &str = "run_summary.md";
pub(crate) const DIFF: &str = "diff.patch";
pub(crate) const REVIEW: &str = "claude_review.json";
pub(crate) const MANIFEST: &str = "test_manifest.json";
pub(crate) const IMPLEMENT_LOG: &str = "implement.log";
pub(crate) const REVIEW_LOG: &str = "review.log";
pub(crate) const EVENTS: &str = "run.jsonl";

/// Folders of a run: of its boxes, and of the agents that compete.
pub(crate) const BOXES_DIR: &str = "boxes";
pub(crate) const COMPETE_DIR: &str = "compete";

/// Locked by the process of a run while it lives; its note names the owner.
const RUN_LOCK: &str = "run.lock";

const MAX_ATTEMPTS: u32 = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WfRunDir {
    root: PathBuf,
    stem: String,
    name: String,
}

impl WfRunDir {
    /// Creates the directory of a run whose micro-commit is not known yet, and locks it for this process with `owner` as
    /// the note.
    pub(crate) fn create(root: &Path, stem: &str, owner: &str) -> DiskResult<(Self, FileLock)> {
        make_dir(root)?;
        loop {
            let name = make_exclusive(root, stem, RunTopic::Pending)?;
            let run = Self::reopen(root, stem, &name);
            match FileLock::try_acquire(&run.file(RUN_LOCK), LockKind::Exclusive { note: owner }) {
                Ok(lock) => return Ok((run, lock)),
                // Another run took it for what a killed one left.
                Err(_) if !run.path().exists() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Renames the directory after its topic. The new directory is created first, so that no two runs get the same name;
    /// moving the old one onto it is one atomic step.
    pub(crate) fn set_topic(&mut self, topic: RunTopic<'_>) -> DiskResult<()> {
        let name = make_exclusive(&self.root, &self.stem, topic)?;
        let (from, to) = (self.path(), self.root.join(&name));
        fs::rename(&from, &to).map_err(DiskError::io("rename", &from))?;
        self.name = name;
        Ok(())
    }

    pub(crate) fn reopen(root: &Path, stem: &str, name: &str) -> Self {
        Self { root: root.to_path_buf(), stem: stem.to_owned(), name: name.to_owned() }
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.name.starts_with(&run_name(&self.stem, RunTopic::Pending, 1))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn stem(&self) -> &str {
        &self.stem
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.root.join(&self.name)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}

fn make_exclusive(root: &Path, stem: &str, topic: RunTopic<'_>) -> DiskResult<String> {
    for attempt in 1..=MAX_ATTEMPTS {
        let name = run_name(stem, topic, attempt);
        match host::file::create_dir_exclusive(&root.join(&name)) {
            Ok(()) => return Ok(name),
            Err(FileError::Exists { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(DiskError::invalid(root, format!("there are {MAX_ATTEMPTS} runs of {stem} already")))
}

/// Removes directories of a run that hold nothing: one is made before the run's own is moved onto it, and a kill between
/// the two leaves it.
pub(crate) fn remove_empty(root: &Path, stem: &str) -> DiskResult<()> {
    let prefix = format!("{stem}_");
    for name in list_runs(root)?.into_iter().filter(|name| name.starts_with(&prefix)) {
        // Fails for every directory with something in it.
        fs::remove_dir(root.join(name)).ok();
    }
    Ok(())
}

/// Removes directories that nobody owns: a process that is killed at once leaves one without its name in the lock.
pub(crate) fn remove_unowned(root: &Path, stem_end: &str) -> DiskResult<()> {
    for name in list_runs(root)? {
        let is_ours =
            name.rsplit_once("_pending").is_some_and(|(stem, _)| stem.ends_with(stem_end));
        let lock = root.join(&name).join(RUN_LOCK);
        if !is_ours || holder_of(&lock).is_some() {
            continue;
        }
        if lock.exists() {
            // One that another process has just made is held, or its file is found gone and it starts over.
            let Ok(_held) = FileLock::try_acquire(&lock, LockKind::Shared) else { continue };
            if holder_of(&lock).is_none() {
                fs::remove_file(&lock).ok();
            }
        }
        // Fails for every directory with something in it.
        fs::remove_dir(root.join(name)).ok();
    }
    Ok(())
}

/// The directories of runs, newest first, by name.
pub(crate) fn list_runs(root: &Path) -> DiskResult<Vec<String>> {
    let mut names = names_in(root)?;
    names.retain(|name| root.join(name).is_dir());
    names.reverse();
    Ok(names)
}

/// True while the process of a run lives.
pub(crate) fn is_held_by_its_process(run: &Path) -> bool {
    is_held(&run.join(RUN_LOCK)).unwrap_or(false)
}

/// The newest change of a run's records and of the output of its boxes: the time until which it worked.
pub(crate) fn last_sign(run: &Path) -> DiskResult<Option<Timestamp>> {
    let mut folders = vec![run.to_path_buf()];
    folders.extend(list_boxes(run)?);
    let mut newest = None;
    for folder in folders {
        for name in names_in(&folder)? {
            let facts = folder.join(name).symlink_metadata();
            let changed =
                facts.ok().filter(fs::Metadata::is_file).and_then(|it| it.modified().ok());
            newest = newest.max(changed.and_then(|changed| Timestamp::try_from(changed).ok()));
        }
    }
    Ok(newest)
}

/// A run's directory, and those of its competitors.
pub(crate) fn with_competitors(run: &Path) -> DiskResult<Vec<PathBuf>> {
    let competitors = folders_in(&run.join(COMPETE_DIR))?;
    Ok(std::iter::once(run.to_path_buf()).chain(competitors).collect())
}

/// The folders of a run's boxes, those of its competitors included.
pub(crate) fn list_boxes(run: &Path) -> DiskResult<Vec<PathBuf>> {
    let mut boxes = Vec::new();
    for folder in with_competitors(run)? {
        boxes.extend(folders_in(&folder.join(BOXES_DIR))?);
    }
    Ok(boxes)
}

fn folders_in(dir: &Path) -> DiskResult<Vec<PathBuf>> {
    Ok(names_in(dir)?.into_iter().map(|name| dir.join(name)).collect())
}

/// Lists the runs of `owner` whose process died before they were renamed, with their start times.
pub(crate) fn list_abandoned(root: &Path, owner: &str) -> DiskResult<Vec<(WfRunDir, Timestamp)>> {
    let mut found = Vec::new();
    for name in list_runs(root)? {
        let Some((stem, _)) = name.rsplit_once("_pending") else { continue };
        let run = WfRunDir::reopen(root, stem, &name);
        let lock = run.file(RUN_LOCK);
        let is_ours = holder_of(&lock).is_some_and(|holder| holder.note == owner);
        if is_ours && !run.file(RESULT).exists() && !is_held(&lock)? {
            let begun = lock.metadata().and_then(|facts| facts.modified());
            let begun = begun.map_err(DiskError::io("look at", &lock))?;
            let begun = Timestamp::try_from(begun);
            found.push((run, begun.map_err(DiskError::in_file(&lock))?));
        }
    }
    Ok(found)
}

/// Finds a run by its name or by an unambiguous prefix.
pub(crate) fn find_run(root: &Path, typed: &str) -> DiskResult<PathBuf> {
    let names = list_runs(root)?;
    let matching: Vec<&String> = names.iter().filter(|name| name.starts_with(typed)).collect();
    match matching.as_slice() {
        _ if names.iter().any(|name| name == typed) => Ok(root.join(typed)),
        [only] => Ok(root.join(only)),
        [] => {
            let hint = hint(typed, names.iter().map(String::as_str));
            Err(DiskError::Unknown { kind: "run", name: typed.to_owned(), hint, list: "wf log" })
        }
        several => Err(DiskError::Setting(format!(
            "'{typed}' could be any of {} runs, such as {}; give more of the name",
            several.len(),
            several[0]
        ))),
    }
}

/// Reads a run's result; `None` while the run is active.
pub(crate) fn load_result(run: &Path) -> DiskResult<Option<RunResult>> {
    load_document(&run.join(RESULT), Schema::Result)
}
