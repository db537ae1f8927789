//! Tests of the whole way, on a store in a folder.

mod fault;
mod garbage;
mod hostile;
mod round_trip;
mod save;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use model::secret::Secret;
use tempfile::TempDir;

use crate::archive::Owners;
use crate::error::BottleStoreError;
use crate::object::StoreOptions;
use crate::pull::{PullOptions, PulledBottle};
use crate::rules::head::{BottleClaim, BottleId, BottleKey};
use crate::save::{SaveRequest, SavedBottle};
use crate::seal::FleetKey;
use crate::store::BottleStore;

/// A store and hosts with bottles.
pub(super) struct Scene {
    pub(super) dir: TempDir,
    pub(super) store: BottleStore,
    pub(super) id: BottleId,
}

pub(super) fn fleet_key(digit: &str) -> FleetKey {
    FleetKey::parse(&Secret::new(digit.repeat(64))).expect("a key")
}

pub(super) fn claim(number: u64) -> Option<BottleClaim> {
    Some(BottleClaim { number, id: number * 1000 })
}

fn owners() -> Owners {
    let own = (host::env::uid(), host::env::gid());
    Owners { host: own, agent: own }
}

impl Scene {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let store = Self::open(dir.path(), "a").expect("a store");
        let key = BottleKey {
            owner: "acme",
            repo: "app",
            issue: 7,
            slug: "coder-issue-7",
            made_at: "2026-11-19T10:00:00Z".parse().expect("a time"),
        };
        let id = store.id_of(key);
        Self { dir, store, id }
    }

    /// The store of this folder, with another key if the digit is another one.
    pub(super) fn open(dir: &Path, digit: &str) -> Result<BottleStore, BottleStoreError> {
        let root = dir.join("store");
        fs::create_dir_all(&root).expect("a folder");
        BottleStore::open(&StoreOptions {
            address: format!("file://{}", root.display()),
            endpoint: None,
            region: None,
            account: None,
            secret: None,
            ca_file: None,
            key: fleet_key(digit),
        })
    }

    /// The folder of the bottle on a host, with a few files if it is new.
    pub(super) fn bottle(&self, host: &str) -> PathBuf {
        let folder = self.dir.path().join(host).join("coder-issue-7");
        if !folder.exists() {
            for part in ["workspace/src", "harness-state/home", "runs/r1"] {
                fs::create_dir_all(folder.join(part)).expect("folders");
            }
            write(&folder, "record.json", b"{}");
            write(&folder, "lock", b"1");
            write(&folder, "workspace/src/main.rs", b"fn main() {}\n");
            write(&folder, "workspace/blob", &noise(3 << 20, 5));
            write(&folder, "harness-state/home/session.jsonl", b"{}\n");
            write(&folder, "runs/r1/metadata.json", b"{}");
        }
        folder
    }

    pub(super) fn save(
        &self,
        folder: &Path,
        claim: Option<BottleClaim>,
    ) -> Result<SavedBottle, BottleStoreError> {
        self.save_to(&self.store, folder, claim)
    }

    pub(super) fn save_to(
        &self,
        store: &BottleStore,
        folder: &Path,
        claim: Option<BottleClaim>,
    ) -> Result<SavedBottle, BottleStoreError> {
        let request = SaveRequest {
            id: &self.id,
            slug: "coder-issue-7",
            folder,
            claim,
            host: "one",
            owners: owners(),
            now: host::clock::now(),
        };
        store.save(request, &|_| {})
    }

    /// Pulls the bottle into a new folder of a host.
    pub(super) fn pull(
        &self,
        host: &str,
        claim: Option<BottleClaim>,
    ) -> Result<(PathBuf, PulledBottle), BottleStoreError> {
        let folder = self.dir.path().join(host).join("coder-issue-7");
        fs::create_dir_all(folder.parent().expect("a parent")).expect("a folder");
        let request = PullOptions {
            id: &self.id,
            slug: "coder-issue-7",
            claim,
            folder: &folder,
            owners: owners(),
        };
        let pulled = self.store.pull(request, &|_| {}, |_| Ok::<_, BottleStoreError>(()))?;
        Ok((folder, pulled))
    }

    /// Paths of the objects of a kind in the store.
    pub(super) fn objects(&self, kind: &str) -> Vec<PathBuf> {
        let root = self.dir.path().join("store");
        let listed = self.store.backend.list(kind).expect("a list");
        listed.into_iter().map(|it| root.join(it.name)).collect()
    }
}

pub(super) fn write(folder: &Path, path: &str, bytes: &[u8]) {
    fs::write(folder.join(path), bytes).expect("written");
}

/// Bytes that look random and are the same every time.
pub(super) fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..bytes.div_ceil(8)).flat_map(|_| next().to_le_bytes()).take(bytes).collect()
}

/// Facts that two trees have in common, by path: kind and mode, time, content or target, number of names, and bytes on disk
/// where it has holes.
pub(super) fn picture(folder: &Path) -> BTreeMap<Vec<u8>, String> {
    let mut found = BTreeMap::new();
    for part in ["record.json", "workspace", "harness-state", "runs"] {
        describe(&folder.join(part), folder, &mut found);
    }
    found
}

fn describe(path: &Path, root: &Path, found: &mut BTreeMap<Vec<u8>, String>) {
    let Ok(meta) = path.symlink_metadata() else { return };
    let name = path.strip_prefix(root).expect("inside").as_os_str().as_bytes().to_vec();
    let kind = meta.file_type();
    let content = if kind.is_symlink() {
        format!("{:?}", fs::read_link(path).expect("a target"))
    } else if kind.is_file() {
        let hash = blake3::hash(&fs::read(path).expect("a file"));
        format!("{hash} {} names, sparse: {}", meta.nlink(), meta.blocks() * 512 < meta.size() / 2)
    } else {
        String::new()
    };
    let time = (meta.mtime(), meta.mtime_nsec());
    found.insert(name, format!("{:o} {time:?} {content}", meta.mode()));
    if kind.is_dir() {
        for entry in fs::read_dir(path).expect("a folder") {
            describe(&entry.expect("an entry").path(), root, found);
        }
    }
}
