//! Memory of a host beside the folder of a bottle: which manifest the folder is of, and what of it is in the store.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use host::file::{FileError, write_atomic};
use serde::{Deserialize, Serialize};

use crate::error::BottleStoreError;
use crate::rules::manifest::Manifest;

/// Folder in a bottle's folder; it stays behind when the bottle travels.
const FOLDER: &str = "saved";

/// State of its bottle that a folder has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderMark {
    /// The manifest that it was saved as or pulled from.
    pub manifest: Option<String>,
    /// The manifest that it is being saved as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<String>,
    /// Its number among those of the bottle.
    pub generation: u64,
    /// True since something was done in the folder.
    pub is_changed: bool,
    /// True if only the records of its runs are here: the trees were removed to make room.
    #[serde(default)]
    pub is_trimmed: bool,
    /// True if the store had damage: the next freeze writes every chunk again.
    #[serde(default)]
    pub rewrites: bool,
}

impl FolderMark {
    /// The mark of a bottle's folder; `None` for one that was never saved.
    pub fn load(bottle: &Path) -> Result<Option<Self>, BottleStoreError> {
        let path = bottle.join(FOLDER).join("mark.json");
        match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => {
                let bytes = read.map_err(FileError::io("read", &path))?;
                let parsed = serde_json::from_slice(&bytes).map_err(io::Error::other);
                Ok(Some(parsed.map_err(FileError::io("understand", &path))?))
            }
        }
    }

    /// Notes that something is done in the folder now; before it is done.
    pub fn note_change(bottle: &Path) -> Result<(), BottleStoreError> {
        match Self::load(bottle)? {
            Some(mark) if !mark.is_changed => Self { is_changed: true, ..mark }.store(bottle),
            Some(_) | None => Ok(()),
        }
    }

    /// Notes that the agent's trees are removed from the folder now; before they are.
    pub fn note_trim(self, bottle: &Path) -> Result<(), BottleStoreError> {
        Self { is_trimmed: true, ..self }.store(bottle)
    }

    /// The mark of a bottle's folder, or that of a new one.
    pub(crate) fn load_or_new(bottle: &Path) -> Result<Self, BottleStoreError> {
        Ok(Self::load(bottle)?.unwrap_or_default())
    }

    /// The manifests that the folder may be of.
    pub(crate) fn bases(&self) -> Vec<&str> {
        self.manifest.iter().chain(&self.pending).map(String::as_str).collect()
    }

    pub(crate) fn store(&self, bottle: &Path) -> Result<(), BottleStoreError> {
        write_json(&bottle.join(FOLDER), "mark.json", self)
    }
}

fn write_json(folder: &Path, name: &str, value: &impl Serialize) -> Result<(), BottleStoreError> {
    host::file::create_dirs(folder)?;
    let path = folder.join(name);
    let bytes = serde_json::to_vec(value).map_err(io::Error::other);
    Ok(write_atomic(&path, &bytes.map_err(FileError::io("write", &path))?, 0o600)?)
}

/// The manifest that a host keeps, so that it need not be asked for. A file that cannot be read is as good as none.
pub(crate) fn load_manifest(bottle: &Path, name: &str) -> Option<Manifest> {
    let bytes = fs::read(bottle.join(FOLDER).join("manifest.json")).ok()?;
    let (known, manifest): (String, Manifest) = serde_json::from_slice(&bytes).ok()?;
    (known == name).then_some(manifest)
}

pub(crate) fn store_manifest(
    bottle: &Path,
    name: &str,
    manifest: &Manifest,
) -> Result<(), BottleStoreError> {
    write_json(&bottle.join(FOLDER), "manifest.json", &(name, manifest))
}

/// Chunks that an upload has put: one that was interrupted goes on after them.
#[derive(Debug)]
pub(crate) struct UploadLog {
    path: PathBuf,
    file: File,
}

impl UploadLog {
    /// Opens the log of an upload, and returns what it has put in this epoch.
    pub(crate) fn open(
        bottle: &Path,
        epoch: u64,
    ) -> Result<(Self, HashSet<String>), BottleStoreError> {
        let folder = bottle.join(FOLDER);
        host::file::create_dirs(&folder)?;
        let path = folder.join("uploaded");
        let failed = || FileError::io("open", &path);
        let file = OpenOptions::new().read(true).append(true).create(true).open(&path);
        let file = file.map_err(failed())?;
        let suffix = format!("-{epoch}");
        // A torn last line is no name of a chunk, and neither is one of an earlier epoch.
        let lines = BufReader::new(&file).lines().map_while(Result::ok);
        let known = lines.filter(|line| line.ends_with(&suffix)).collect();
        let mut log = Self { file, path };
        log.add("")?;
        Ok((log, known))
    }

    /// Notes an object that the store has acknowledged.
    pub(crate) fn add(&mut self, object: &str) -> Result<(), BottleStoreError> {
        let written = self.file.write_all(format!("{object}\n").as_bytes());
        Ok(written.map_err(FileError::io("append to", &self.path))?)
    }

    /// Forgets the log: the head has moved.
    pub(crate) fn remove(self) -> Result<(), BottleStoreError> {
        Ok(fs::remove_file(&self.path).map_err(FileError::io("remove", &self.path))?)
    }
}
