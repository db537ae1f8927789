//! Removing what no head needs: manifests past their retention, and chunks that no kept manifest names.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use jiff::Timestamp;

use crate::error::BottleStoreError;
use crate::object::ListedObject;
use crate::rules::garbage::{CHUNKS, epoch_at, is_garbage};
use crate::rules::manifest::generation_of;
use crate::store::BottleStore;

#[derive(Debug, Clone, Copy)]
pub struct CollectOptions {
    /// Time for which states before the head are kept. The one before it always is.
    pub retention: Duration,
    /// Time for which the mark of a destroyed bottle is kept.
    pub tombstones: Duration,
}

/// Result of a collection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collected {
    pub bottles: u64,
    pub manifests_removed: u64,
    pub chunks_kept: u64,
    pub chunks_removed: u64,
    pub bytes_removed: u64,
}

impl BottleStore {
    /// Collects garbage. One process at a time is enough; several are safe. `may_go_on` is asked before each removal.
    pub fn collect(
        &self,
        options: CollectOptions,
        may_go_on: &dyn Fn() -> bool,
    ) -> Result<Collected, BottleStoreError> {
        self.prove_key()?;
        let now = self.now()?;
        let epoch = epoch_at(now.as_second(), self.epoch_secs);
        let mut mark = Mark { store: self, options, now, live: HashSet::new(), old: Vec::new() };
        let mut done = Collected::default();
        for (folder, objects) in by_folder(self.backend.list("bottles/")?) {
            mark.bottle(&folder, &objects)?;
            done.bottles += 1;
        }
        for object in &mark.old {
            if !may_go_on() {
                return Ok(done);
            }
            self.backend.delete(object)?;
            done.manifests_removed += 1;
        }
        for ListedObject { name, bytes, .. } in self.backend.list(CHUNKS)? {
            if !is_garbage(&name, epoch, &mark.live) {
                done.chunks_kept += 1;
                continue;
            }
            if !may_go_on() {
                return Ok(done);
            }
            self.backend.delete(&name)?;
            done.chunks_removed += 1;
            done.bytes_removed += bytes;
        }
        Ok(done)
    }
}

/// The objects of each bottle, by its folder.
fn by_folder(objects: Vec<ListedObject>) -> BTreeMap<String, Vec<ListedObject>> {
    let mut folders: BTreeMap<String, Vec<ListedObject>> = BTreeMap::new();
    for object in objects {
        if let Some((folder, _)) = object.name.rsplit_once('/') {
            folders.entry(format!("{folder}/")).or_default().push(object);
        }
    }
    folders
}

/// Marks of everything that is needed, and the manifests that are not.
struct Mark<'a> {
    store: &'a BottleStore,
    options: CollectOptions,
    now: Timestamp,
    live: HashSet<String>,
    old: Vec<String>,
}

impl Mark<'_> {
    /// Marks what a bottle needs. A head or a newest manifest that cannot be read ends the collection: what it needs is unknown.
    fn bottle(&mut self, folder: &str, objects: &[ListedObject]) -> Result<(), BottleStoreError> {
        let names = |object: &ListedObject| {
            let name = object.name.strip_prefix(folder).unwrap_or_default();
            generation_of(name).map(|generation| (generation, object.clone()))
        };
        let manifests: Vec<(u64, ListedObject)> = objects.iter().filter_map(names).collect();
        let Some((head, _)) = self.store.load_head(folder)? else {
            // A first freeze may be about to move it.
            let grace = Duration::from_secs(self.store.epoch_secs) * 2;
            let old = manifests.into_iter().filter(|(_, it)| self.is_older(it.modified, grace));
            let old: Vec<String> = old.map(|(_, object)| object.name).collect();
            self.old.extend(old);
            return Ok(());
        };
        if head.is_destroyed {
            self.old.extend(manifests.into_iter().map(|(_, object)| object.name));
            let own = objects.iter().find(|object| object.name.ends_with("/head"));
            let kept = self.options.tombstones;
            self.old.extend(
                own.filter(|it| self.is_older(it.modified, kept)).map(|it| it.name.clone()),
            );
            return Ok(());
        }
        let oldest = self.chain(folder, &head.manifest)?;
        let old = manifests.into_iter().filter(|(generation, _)| *generation < oldest);
        self.old.extend(old.map(|(_, object)| object.name));
        Ok(())
    }

    /// Marks the manifests that are kept, and returns the number of the oldest one.
    fn chain(&mut self, folder: &str, newest: &str) -> Result<u64, BottleStoreError> {
        let mut manifest = self.store.load_manifest(folder, newest)?;
        let mut kept = 1;
        loop {
            self.live.extend(manifest.chunks.iter().map(crate::rules::garbage::ChunkRef::object));
            let Some(before) = manifest.previous.clone() else { return Ok(manifest.generation) };
            let earlier = match self.store.load_manifest(folder, &before) {
                // It was removed before, or is damaged, and then it is of no use.
                Err(error) if error.is_damage() => return Ok(manifest.generation),
                loaded => loaded?,
            };
            if kept >= 2 && self.is_older(manifest.saved_at, self.options.retention) {
                return Ok(manifest.generation);
            }
            (manifest, kept) = (earlier, kept + 1);
        }
    }

    fn is_older(&self, time: Timestamp, age: Duration) -> bool {
        let passed = self.now.duration_since(time);
        u64::try_from(passed.as_secs()).is_ok_and(|secs| secs > age.as_secs())
    }
}
