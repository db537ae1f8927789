//! Stores that fail: in the middle of an upload, for a while, or by losing what they had.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;

use super::{Scene, claim, fleet_key, noise, picture, write};
use crate::error::BottleStoreError;
use crate::object::{ConditionalPut, ListedObject, ObjectBackend, ObjectVersion};
use crate::store::BottleStore;

/// A store that fails after so many writes, or whose answers get lost.
#[derive(Debug)]
struct Faulty {
    inner: Arc<dyn ObjectBackend>,
    writes: AtomicU64,
    /// Writes that succeed.
    fails_after: u64,
    /// True if a write that fails has arrived.
    loses_answers: bool,
}

impl Faulty {
    fn store(scene: &Scene, fails_after: u64, loses_answers: bool) -> BottleStore {
        let inner = Arc::clone(&scene.store.backend);
        let faulty = Self { inner, writes: AtomicU64::new(0), fails_after, loses_answers };
        BottleStore::with_backend(Arc::new(faulty), fleet_key("a"))
    }

    fn write<T>(
        &self,
        write: impl Fn() -> Result<T, BottleStoreError>,
    ) -> Result<T, BottleStoreError> {
        if self.writes.fetch_add(1, Ordering::SeqCst) < self.fails_after {
            return write();
        }
        if self.loses_answers {
            write()?;
        }
        let source = "503 Slow Down".into();
        Err(BottleStoreError::Unreachable {
            action: "write",
            store: "the store".to_owned(),
            source,
        })
    }
}

impl ObjectBackend for Faulty {
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn get(&self, object: &str) -> Result<Option<(Vec<u8>, ObjectVersion)>, BottleStoreError> {
        self.inner.get(object)
    }
    fn put(&self, object: &str, bytes: Vec<u8>) -> Result<(), BottleStoreError> {
        self.write(|| self.inner.put(object, bytes.clone()))
    }
    fn put_if_absent(
        &self,
        object: &str,
        bytes: Vec<u8>,
    ) -> Result<ConditionalPut, BottleStoreError> {
        self.write(|| self.inner.put_if_absent(object, bytes.clone()))
    }
    fn put_if_unchanged(
        &self,
        object: &str,
        bytes: Vec<u8>,
        version: &ObjectVersion,
    ) -> Result<ConditionalPut, BottleStoreError> {
        self.write(|| self.inner.put_if_unchanged(object, bytes.clone(), version))
    }
    fn list(&self, folder: &str) -> Result<Vec<ListedObject>, BottleStoreError> {
        self.inner.list(folder)
    }
    fn modified(&self, object: &str) -> Result<Option<Timestamp>, BottleStoreError> {
        self.inner.modified(object)
    }
    fn delete(&self, object: &str) -> Result<(), BottleStoreError> {
        self.inner.delete(object)
    }
}

#[test]
fn a_store_that_fails_at_any_write_leaves_the_old_head_and_the_next_try_goes_on() {
    for loses_answers in [false, true] {
        let scene = Scene::new();
        let folder = scene.bottle("one");
        scene.save(&folder, claim(1)).unwrap();
        write(&folder, "workspace/large", &noise(12 << 20, 3));
        let mut tries = 0;
        let saved = loop {
            let store = Faulty::store(&scene, tries, loses_answers);
            match scene.save_to(&store, &folder, claim(2)) {
                Ok(saved) => break saved,
                Err(error) => {
                    assert!(error.is_transient(), "{error}");
                    let head = scene.store.head(&scene.id).unwrap().unwrap();
                    let (third, _) =
                        scene.pull(&format!("host-{tries}"), Some(head.claim)).unwrap();
                    let is_new = third.join("workspace/large").exists();
                    assert_eq!(is_new, head.generation == 2, "half a freeze");
                }
            }
            tries += 1;
            assert!(tries < 60, "it never goes on");
        };
        assert_eq!(saved.generation, 2, "lost answers: {loses_answers}");
        assert!(tries > 3, "{tries}");
        assert!(!folder.join("saved/uploaded").exists());
        let (pulled, _) = scene.pull("two", claim(3)).unwrap();
        assert_eq!(picture(&folder), picture(&pulled));
    }
}

#[test]
fn an_interrupted_upload_sends_nothing_twice() {
    let scene = Scene::new();
    let folder = scene.bottle("one");
    write(&folder, "workspace/large", &noise(24 << 20, 3));
    let torn = Faulty::store(&scene, 12, false);
    scene.save_to(&torn, &folder, claim(1)).unwrap_err();
    let there = scene.objects("chunks/").len() as u64;
    assert!(there > 5, "{there}");
    let saved = scene.save(&folder, claim(1)).unwrap();
    assert_eq!(saved.sent, scene.objects("chunks/").len() as u64 - there);
}

#[test]
fn damage_falls_back_to_the_state_before_and_the_next_freeze_mends_it() {
    for kind in ["flipped", "missing", "emptied", "exchanged", "manifest", "lost manifest"] {
        let scene = Scene::new();
        let folder = scene.bottle("one");
        let first = scene.save(&folder, claim(1)).unwrap();
        let (old_chunks, old_manifests) = (scene.objects("chunks/"), scene.objects("bottles/"));
        let before = picture(&folder);
        write(&folder, "workspace/new", &noise(6 << 20, 9));
        let second = scene.save(&folder, claim(1)).unwrap();
        let new = |kind, old: &[PathBuf]| {
            scene.objects(kind).into_iter().find(|path| !old.contains(path)).unwrap()
        };
        let (chunk, manifest) = (new("chunks/", &old_chunks), new("bottles/", &old_manifests));
        let mut bytes = fs::read(&chunk).unwrap();
        match kind {
            "flipped" => {
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
                fs::write(&chunk, bytes).unwrap();
            }
            "missing" => fs::remove_file(&chunk).unwrap(),
            "emptied" => fs::write(&chunk, "").unwrap(),
            "exchanged" => fs::write(&chunk, fs::read(&old_chunks[0]).unwrap()).unwrap(),
            "manifest" => fs::write(&manifest, "x").unwrap(),
            _ => fs::remove_file(&manifest).unwrap(),
        }
        let (pulled, what) = scene.pull("two", claim(2)).unwrap();
        assert_eq!(what.manifest, first.manifest, "{kind}");
        assert!(what.damage.is_some(), "{kind}: the person is told");
        assert_eq!(picture(&pulled), before, "{kind}");
        // The same content again: what is damaged in the store must not count as sent.
        write(&pulled, "workspace/new", &noise(6 << 20, 9));
        let mended = scene.save(&pulled, claim(2)).unwrap();
        assert_ne!(mended.manifest, second.manifest);
        let (third, what) = scene.pull("three", claim(3)).unwrap();
        assert_eq!((what.damage, picture(&third)), (None, picture(&pulled)), "{kind}");
    }
}

#[test]
fn a_bottle_with_no_whole_state_is_an_error_that_names_what_is_damaged() {
    let scene = Scene::new();
    let folder = scene.bottle("one");
    scene.save(&folder, claim(1)).unwrap();
    fs::remove_file(&scene.objects("chunks/")[0]).unwrap();
    let error = scene.pull("two", claim(2)).unwrap_err();
    assert!(error.to_string().contains("chunks/"), "{error}");
    assert!(!error.is_transient());
    assert!(!scene.dir.path().join("two/coder-issue-7").exists());
}

#[test]
fn a_folder_that_is_not_mounted_is_no_store_without_bottles() {
    let scene = Scene::new();
    let folder = scene.bottle("one");
    scene.save(&folder, claim(1)).unwrap();
    fs::rename(scene.dir.path().join("store"), scene.dir.path().join("elsewhere")).unwrap();
    for error in [
        scene.store.head(&scene.id).unwrap_err(),
        scene.save(&folder, claim(1)).unwrap_err(),
        scene.pull("two", claim(2)).unwrap_err(),
    ] {
        assert!(error.is_transient(), "{error}");
    }
}
