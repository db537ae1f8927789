//! A store in a folder, on a disk of this host or one that several share.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use host::lock::{FileLock, LockError, LockKind};
use jiff::Timestamp;

use super::{ConditionalPut, ListedObject, ObjectBackend, ObjectVersion};
use crate::error::BottleStoreError;

/// Time to wait for another process that replaces an object.
const LOCK_LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
    name: String,
}

impl Folder {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_path_buf(), name: format!("the folder {}", root.display()) }
    }

    fn path(&self, object: &str) -> PathBuf {
        self.root.join(object)
    }

    fn failed(&self, action: &'static str) -> impl Fn(io::Error) -> BottleStoreError + '_ {
        move |source| {
            let store = self.name.clone();
            match source.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    BottleStoreError::Refused { action, store, source: Box::new(source) }
                }
                _ => BottleStoreError::Unreachable { action, store, source: Box::new(source) },
            }
        }
    }

    /// A file whole on disk beside the place of an object.
    fn draft(&self, object: &str, bytes: &[u8]) -> Result<PathBuf, BottleStoreError> {
        let path = self.path(object);
        let folder = path.parent().unwrap_or(&self.root);
        let suffix = model::digest::hex(&host::random::bytes::<8>()?);
        // Names of objects begin with no dot, so a list passes over it.
        let draft = folder.join(format!(".new-{suffix}"));
        let written = fs::create_dir_all(folder)
            .and_then(|()| File::create(&draft))
            .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
        written.map_err(self.failed("write"))?;
        Ok(draft)
    }

    fn sync_folder(&self, object: &str) -> Result<(), BottleStoreError> {
        let path = self.path(object);
        let folder = path.parent().unwrap_or(&self.root);
        File::open(folder).and_then(|it| it.sync_all()).map_err(self.failed("write"))
    }

    /// Keeps other writers out that replace objects by their version.
    fn lock(&self) -> Result<FileLock, BottleStoreError> {
        let path = self.root.join(".lock");
        let deadline = host::clock::boottime() + LOCK_LIMIT;
        loop {
            match FileLock::try_acquire(&path, LockKind::Exclusive { note: "bottle store" }) {
                Err(LockError::Held { .. }) if host::clock::boottime() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                taken => {
                    return taken.map_err(|error| BottleStoreError::Unreachable {
                        action: "lock",
                        store: self.name.clone(),
                        source: Box::new(error),
                    });
                }
            }
        }
    }

    fn collect(&self, folder: &Path, found: &mut Vec<ListedObject>) -> io::Result<()> {
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if entry.file_type()?.is_dir() {
                self.collect(&entry.path(), found)?;
                continue;
            }
            let metadata = match entry.metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                metadata => metadata?,
            };
            let path = entry.path();
            let name = path.strip_prefix(&self.root).unwrap_or(&path).display().to_string();
            let modified = timestamp(&metadata)?;
            found.push(ListedObject { name, bytes: metadata.len(), modified });
        }
        Ok(())
    }
}

fn timestamp(metadata: &fs::Metadata) -> io::Result<Timestamp> {
    Timestamp::try_from(metadata.modified()?).map_err(io::Error::other)
}

fn version_of(bytes: &[u8]) -> ObjectVersion {
    ObjectVersion { tag: Some(blake3::hash(bytes).to_hex().to_string()), number: None }
}

impl ObjectBackend for Folder {
    fn name(&self) -> &str {
        &self.name
    }

    fn get(&self, object: &str) -> Result<Option<(Vec<u8>, ObjectVersion)>, BottleStoreError> {
        match fs::read(self.path(object)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A folder that is not mounted must not look like a store without objects.
                self.root.metadata().map(|_| None).map_err(self.failed("read"))
            }
            read => {
                let bytes = read.map_err(self.failed("read"))?;
                let version = version_of(&bytes);
                Ok(Some((bytes, version)))
            }
        }
    }

    fn put(&self, object: &str, bytes: Vec<u8>) -> Result<(), BottleStoreError> {
        self.root.metadata().map_err(self.failed("write"))?;
        let draft = self.draft(object, &bytes)?;
        fs::rename(&draft, self.path(object)).map_err(self.failed("write"))?;
        self.sync_folder(object)
    }

    fn put_if_absent(
        &self,
        object: &str,
        bytes: Vec<u8>,
    ) -> Result<ConditionalPut, BottleStoreError> {
        self.root.metadata().map_err(self.failed("write"))?;
        let path = self.path(object);
        if path.try_exists().map_err(self.failed("write"))? {
            return Ok(ConditionalPut::Refused);
        }
        let draft = self.draft(object, &bytes)?;
        let linked = fs::hard_link(&draft, &path);
        fs::remove_file(&draft).map_err(self.failed("write"))?;
        match linked {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Ok(ConditionalPut::Refused)
            }
            linked => {
                linked.map_err(self.failed("write"))?;
                self.sync_folder(object)?;
                Ok(ConditionalPut::Written)
            }
        }
    }

    fn put_if_unchanged(
        &self,
        object: &str,
        bytes: Vec<u8>,
        version: &ObjectVersion,
    ) -> Result<ConditionalPut, BottleStoreError> {
        let lock = self.lock()?;
        let found = self.get(object)?.map(|(_, version)| version);
        if found.as_ref() != Some(version) {
            return Ok(ConditionalPut::Refused);
        }
        self.put(object, bytes)?;
        drop(lock);
        Ok(ConditionalPut::Written)
    }

    fn list(&self, folder: &str) -> Result<Vec<ListedObject>, BottleStoreError> {
        self.root.metadata().map_err(self.failed("list"))?;
        let mut found = Vec::new();
        self.collect(&self.path(folder), &mut found).map_err(self.failed("list"))?;
        Ok(found)
    }

    fn modified(&self, object: &str) -> Result<Option<Timestamp>, BottleStoreError> {
        match fs::metadata(self.path(object)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.root.metadata().map(|_| None).map_err(self.failed("read"))
            }
            metadata => {
                let found = metadata.and_then(|it| timestamp(&it));
                found.map(Some).map_err(self.failed("read"))
            }
        }
    }

    fn delete(&self, object: &str) -> Result<(), BottleStoreError> {
        match fs::remove_file(self.path(object)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(self.failed("remove")),
        }
    }
}
