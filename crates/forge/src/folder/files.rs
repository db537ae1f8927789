//! Files of a folder forge: one for each thread, one for each comment, written whole and under a lock. Users
//! write issues and comments by hand, so everything but the text has a default.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use host::file::write_atomic;
use host::lock::{FileLock, LockKind};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{ForgeError, ForgeResult};

const LOCK_FILE: &str = "lock";
const THREADS: &str = "threads";
const COMMENTS: &str = "comments";
const ORGS_FILE: &str = "organisations.json";

/// Time to wait for the lock, whose holder writes one small file.
const LOCK_WAIT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct ForgeFiles {
    dir: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ThreadFile {
    pub(super) number: u64,
    pub(super) title: String,
    #[serde(default)]
    pub(super) body: String,
    #[serde(default = "default_author")]
    pub(super) author: String,
    #[serde(default = "default_open")]
    pub(super) open: bool,
    #[serde(default)]
    pub(super) labels: Vec<String>,
    #[serde(default)]
    pub(super) assignees: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) draft: bool,
    /// Fields that an issue does not have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pull: Option<PullFields>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PullFields {
    pub(super) head: String,
    pub(super) base: String,
    /// Initial commit of the branch, kept in case the branch is deleted.
    pub(super) head_sha: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CommentFile {
    pub(super) id: u64,
    #[serde(default = "default_author")]
    pub(super) author: String,
    pub(super) body: String,
    pub(super) created_at: Timestamp,
}

fn default_author() -> String {
    "somebody".to_owned()
}

fn default_open() -> bool {
    true
}

impl ForgeFiles {
    /// Returns the files of a repository, which are beside it so that git never sees them.
    pub(super) fn beside(repository: &Path) -> Self {
        let mut name = repository.file_name().unwrap_or_default().to_os_string();
        name.push(".forge");
        Self { dir: repository.with_file_name(name) }
    }

    /// Creates the folders if need be, and locks out other writers until the lock is dropped.
    pub(super) async fn lock(&self) -> ForgeResult<FileLock> {
        for folder in [THREADS, COMMENTS] {
            fs::create_dir_all(self.dir.join(folder)).map_err(self.failed("make folders"))?;
        }
        let kind = LockKind::Exclusive { note: "folder forge" };
        let lock = FileLock::acquire(&self.dir.join(LOCK_FILE), kind, LOCK_WAIT).await;
        lock.map_err(self.failed("take the lock"))
    }

    pub(super) fn entry_path(&self, number: u64) -> PathBuf {
        self.dir.join(THREADS).join(format!("{number:06}.json"))
    }

    pub(super) fn note_path(&self, on: u64, id: u64) -> PathBuf {
        self.dir.join(COMMENTS).join(format!("{on:06}-{id:06}.json"))
    }

    pub(super) fn load_entry(&self, number: u64) -> ForgeResult<Option<ThreadFile>> {
        self.load(&self.entry_path(number))
    }

    pub(super) fn load_entries(&self) -> ForgeResult<Vec<ThreadFile>> {
        self.load_all(THREADS, "")
    }

    pub(super) fn load_notes(&self, on: u64) -> ForgeResult<Vec<CommentFile>> {
        self.load_all(COMMENTS, &format!("{on:06}-"))
    }

    pub(super) fn next_number(&self) -> ForgeResult<u64> {
        let last = self.load_entries()?.into_iter().map(|entry| entry.number).max();
        Ok(last.unwrap_or(0) + 1)
    }

    pub(super) fn next_note(&self, on: u64) -> ForgeResult<u64> {
        Ok(self.load_notes(on)?.into_iter().map(|note| note.id).max().unwrap_or(0) + 1)
    }

    pub(super) fn save_entry(&self, entry: &ThreadFile) -> ForgeResult<()> {
        self.save(&self.entry_path(entry.number), entry)
    }

    pub(super) fn save_note(&self, on: u64, note: &CommentFile) -> ForgeResult<()> {
        self.save(&self.note_path(on, note.id), note)
    }

    pub(super) fn load_orgs(&self) -> ForgeResult<BTreeMap<String, BTreeSet<String>>> {
        Ok(self.load(&self.dir.join(ORGS_FILE))?.unwrap_or_default())
    }

    pub(super) fn change_orgs(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, BTreeSet<String>>),
    ) -> ForgeResult<()> {
        let mut orgs = self.load_orgs()?;
        change(&mut orgs);
        self.save(&self.dir.join(ORGS_FILE), &orgs)
    }

    /// Loads the files of a folder with this prefix, in the order of their numbers.
    fn load_all<T: DeserializeOwned>(&self, folder: &str, prefix: &str) -> ForgeResult<Vec<T>> {
        let entries = match fs::read_dir(self.dir.join(folder)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.failed("list the files")(error)),
        };
        let mut paths = Vec::new();
        for entry in entries {
            let entry = entry.map_err(self.failed("list the files"))?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            // A file has another name until it is complete.
            if name.starts_with(prefix) && name.ends_with(".json") && !name.starts_with('.') {
                paths.push(entry.path());
            }
        }
        paths.sort();
        paths.iter().filter_map(|path| self.load(path).transpose()).collect()
    }

    fn load<T: DeserializeOwned>(&self, path: &Path) -> ForgeResult<Option<T>> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed("read a file")(error)),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(self.failed("understand a file"))
    }

    fn save<T: Serialize>(&self, path: &Path, value: &T) -> ForgeResult<()> {
        let text = serde_json::to_string_pretty(value).map_err(self.failed("render a file"))?;
        write_atomic(path, format!("{text}\n").as_bytes(), 0o600)
            .map_err(self.failed("write a file"))
    }

    fn failed<E>(&self, action: &'static str) -> impl FnOnce(E) -> ForgeError
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        ForgeError::folder(&self.dir, action)
    }
}
