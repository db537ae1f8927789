//! Collections beside freezes: nothing that a head needs goes, and everything else does.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::{Scene, claim, noise, picture, write};
use crate::collect::{CollectOptions, Collected};
use crate::store::BottleStore;

const NOW: CollectOptions =
    CollectOptions { retention: Duration::ZERO, tombstones: Duration::from_secs(3600) };

fn collect(store: &BottleStore) -> Collected {
    store.collect(NOW, &|| true).unwrap()
}

/// Waits until so many epochs of a second have begun.
fn pass_epochs(store: &BottleStore, count: u64) {
    let start = store.epoch().unwrap();
    testkit::wait::wait_until("epochs", || store.epoch().unwrap() >= start + count);
}

#[test]
fn what_no_head_names_goes_after_its_time_and_nothing_else() {
    let scene = Scene::new();
    let store = scene.store.clone().with_epoch_secs(1);
    let folder = scene.bottle("one");
    for (round, seed) in [(1, 11), (2, 12), (3, 13)] {
        write(&folder, "workspace/large", &noise(6 << 20, seed));
        assert_eq!(scene.save_to(&store, &folder, claim(1)).unwrap().generation, round);
    }
    let all = scene.objects("chunks/").len() as u64;
    pass_epochs(&store, 3);
    let done = collect(&store);
    assert_eq!((done.bottles, done.manifests_removed), (1, 1), "the one before is kept");
    assert!(done.chunks_removed > 3, "{done:?}");
    assert_eq!(done.chunks_kept + done.chunks_removed, all);
    assert_eq!(collect(&store).chunks_removed, 0);
    let (pulled, what) = scene.pull("two", claim(2)).unwrap();
    assert_eq!((picture(&pulled), what.damage), (picture(&folder), None));
    // Within the retention all states are kept.
    write(&folder, "workspace/large", &noise(6 << 20, 14));
    let kept = CollectOptions { retention: Duration::from_secs(3600), ..NOW };
    assert_eq!(store.collect(kept, &|| true).unwrap().manifests_removed, 0);
    scene.store.destroy(&scene.id, claim(2)).unwrap();
    let done = collect(&store);
    assert_eq!((done.chunks_kept, done.manifests_removed), (0, 2));
    assert_eq!(scene.objects("bottles/").len(), 1, "the mark of a destroyed bottle stays");
}

#[test]
fn a_head_that_cannot_be_read_ends_the_collection() {
    let scene = Scene::new();
    let store = scene.store.clone().with_epoch_secs(1);
    let folder = scene.bottle("one");
    scene.save_to(&store, &folder, claim(1)).unwrap();
    let head = scene.objects("bottles/").into_iter().find(|it| it.ends_with("head")).unwrap();
    let whole = std::fs::read(&head).unwrap();
    std::fs::write(&head, "x").unwrap();
    pass_epochs(&store, 3);
    let chunks = scene.objects("chunks/").len();
    store.collect(NOW, &|| true).unwrap_err();
    assert_eq!(scene.objects("chunks/").len(), chunks);
    std::fs::write(&head, whole).unwrap();
    assert_eq!(collect(&store).chunks_removed, 0);
}

#[test]
fn a_collection_that_loses_its_turn_removes_nothing_more() {
    let scene = Scene::new();
    let store = scene.store.clone().with_epoch_secs(1);
    scene.save_to(&store, &scene.bottle("one"), claim(1)).unwrap();
    scene.store.destroy(&scene.id, claim(1)).unwrap();
    pass_epochs(&store, 3);
    let chunks = scene.objects("chunks/").len();
    let done = store.collect(NOW, &|| false).unwrap();
    assert_eq!((done.chunks_removed, done.manifests_removed), (0, 0));
    assert_eq!(scene.objects("chunks/").len(), chunks);
}

/// Freezes that put, use again and drop the same contents all the time, beside collections that never rest. Epochs are of a
/// second, so that what a freeze uses becomes old while it runs.
#[test]
fn no_chunk_of_a_head_is_ever_missing() {
    let scene = Scene::new();
    let store = scene.store.clone().with_epoch_secs(1);
    let (is_over, removed) = (AtomicBool::new(false), AtomicU64::new(0));
    let folder = scene.bottle("one");
    std::fs::remove_file(folder.join("workspace/blob")).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                removed.fetch_add(collect(&store).chunks_removed, Ordering::SeqCst);
            }
        });
        let began = host::clock::boottime();
        let mut round = 0;
        // Until enough was removed under the freezes, and for some epochs.
        while host::clock::boottime() - began < Duration::from_secs(5) {
            round += 1;
            // Content comes back after it was dropped, also after its chunks may have gone.
            write(&folder, "workspace/large", &noise(300_000, round % 7));
            match scene.save_to(&store, &folder, claim(1)) {
                Ok(_) => {}
                // An epoch of a second is short on a busy machine.
                Err(crate::BottleStoreError::TooSlow { .. }) => continue,
                Err(error) => panic!("{error}"),
            }
            let host = format!("host-{round}");
            let (pulled, what) = scene.pull(&host, claim(1)).unwrap();
            assert_eq!((what.damage, picture(&pulled)), (None, picture(&folder)), "{round}");
            std::fs::remove_dir_all(scene.dir.path().join(host)).unwrap();
        }
        is_over.store(true, Ordering::SeqCst);
    });
    assert!(removed.load(Ordering::SeqCst) > 3, "{removed:?} chunks were removed meanwhile");
}
