//! Freezes after the first one, and who may move a head.

use std::fs;

use super::{Scene, claim, noise, picture, write};
use crate::error::BottleStoreError;
use crate::known::FolderMark;

#[test]
fn nothing_is_sent_when_nothing_changed_and_little_when_little_did() {
    let scene = Scene::new();
    let folder = scene.bottle("one");
    write(&folder, "workspace/large", &noise(24 << 20, 11));
    let first = scene.save(&folder, claim(1)).unwrap();
    assert!(first.sent_bytes > 24 << 20, "{first:?}");
    let objects = (scene.objects("chunks/").len(), scene.objects("bottles/").len());
    let again = scene.save(&folder, claim(1)).unwrap();
    assert_eq!((again.sent, again.sent_bytes, &again.manifest), (0, 0, &first.manifest));
    let under_another = scene.save(&folder, claim(2)).unwrap();
    assert_eq!((under_another.sent, &under_another.manifest), (0, &first.manifest));
    let now = (scene.objects("chunks/").len(), scene.objects("bottles/").len());
    assert_eq!(now, objects, "no object is new");
    write(&folder, "workspace/src/main.rs", b"fn main() { todo!() }\n");
    let second = scene.save(&folder, claim(3)).unwrap();
    assert_eq!(second.generation, 2);
    assert!((1..=4).contains(&second.sent), "{second:?}");
    let (pulled, _) = scene.pull("two", claim(4)).unwrap();
    assert_eq!(picture(&folder), picture(&pulled));
}

#[test]
fn a_host_that_pulled_sends_only_what_it_changed() {
    let scene = Scene::new();
    let folder = scene.bottle("one");
    write(&folder, "workspace/large", &noise(24 << 20, 11));
    scene.save(&folder, claim(1)).unwrap();
    let (pulled, _) = scene.pull("two", claim(2)).unwrap();
    assert_eq!(scene.save(&pulled, claim(2)).unwrap().sent, 0);
    // The list of its chunks may be lost, and is asked for then.
    fs::remove_file(pulled.join("saved/manifest.json")).unwrap();
    write(&pulled, "workspace/new", b"new");
    let saved = scene.save(&pulled, claim(2)).unwrap();
    assert!((1..=4).contains(&saved.sent), "{saved:?}");
}

#[test]
fn an_older_claim_does_not_move_the_head() {
    let scene = Scene::new();
    let folder = scene.bottle("one");
    scene.save(&folder, claim(5)).unwrap();
    write(&folder, "workspace/late", b"late");
    // Another host takes over, and has done nothing yet.
    let (pulled, _) = scene.pull("two", claim(6)).unwrap();
    let error = scene.save(&folder, claim(5)).unwrap_err();
    assert!(matches!(error, BottleStoreError::Overtaken { .. }), "{error}");
    assert!(!error.is_transient());
    write(&pulled, "workspace/mine", b"mine");
    scene.save(&pulled, claim(6)).unwrap();
    let (third, _) = scene.pull("three", claim(7)).unwrap();
    assert!(third.join("workspace/mine").exists() && !third.join("workspace/late").exists());
}

#[test]
fn a_head_that_is_raised_is_moved_by_no_older_claim() {
    let scene = Scene::new();
    let folder = scene.bottle("one");
    let saved = scene.save(&folder, claim(5)).unwrap();
    let raised = scene.store.raise_head(&scene.id, "coder-issue-7", claim(6)).unwrap();
    assert_eq!((raised.manifest, raised.claim), (saved.manifest, claim(6).unwrap()));
    write(&folder, "workspace/late", b"late");
    for older in [claim(5), claim(4)] {
        let error = scene.save(&folder, older).unwrap_err();
        assert!(matches!(error, BottleStoreError::Overtaken { .. }), "{error}");
        scene.store.raise_head(&scene.id, "coder-issue-7", older).unwrap_err();
    }
}

#[test]
fn a_folder_that_is_older_than_the_head_is_not_saved_over_it() {
    let scene = Scene::new();
    let folder = scene.bottle("one");
    scene.save(&folder, claim(1)).unwrap();
    let (pulled, _) = scene.pull("two", claim(2)).unwrap();
    write(&pulled, "workspace/mine", b"mine");
    scene.save(&pulled, claim(2)).unwrap();
    // The first host claims the issue once more, and nobody told it that its folder is old.
    let error = scene.save(&folder, claim(3)).unwrap_err();
    assert!(matches!(error, BottleStoreError::Diverged { .. }), "{error}");
    let by_hand = scene.save(&folder, None).unwrap_err();
    assert!(matches!(by_hand, BottleStoreError::Diverged { .. }), "{by_hand}");
    assert_eq!(scene.save(&pulled, None).unwrap().generation, 2, "a person keeps the claim");
}

#[test]
fn of_two_hosts_that_freeze_at_once_one_moves_the_head() {
    for round in 0..10 {
        let scene = Scene::new();
        let folder = scene.bottle("one");
        scene.save(&folder, claim(1)).unwrap();
        let (pulled, _) = scene.pull("two", claim(1)).unwrap();
        write(&folder, "workspace/new", b"one");
        write(&pulled, "workspace/new", b"two");
        // A fail-over gave the same number out twice, and both were told that they have it.
        let other = Some(crate::BottleClaim { number: 1, id: 9 });
        let (one, two) = std::thread::scope(|scope| {
            let one = scope.spawn(|| scene.save(&folder, claim(1)));
            let two =
                scope.spawn(|| scene.save(&pulled, if round % 2 == 0 { claim(1) } else { other }));
            (one.join().unwrap(), two.join().unwrap())
        });
        let winners = usize::from(one.is_ok()) + usize::from(two.is_ok());
        assert_eq!(winners, 1, "{one:?} {two:?}");
        let (third, _) = scene.pull("three", claim(2)).unwrap();
        let content = fs::read_to_string(third.join("workspace/new")).unwrap();
        assert_eq!(content, if one.is_ok() { "one" } else { "two" });
    }
}

#[test]
fn a_process_that_died_after_its_head_moved_goes_on() {
    let scene = Scene::new();
    let folder = scene.bottle("one");
    scene.save(&folder, claim(1)).unwrap();
    write(&folder, "workspace/new", b"new");
    let before = FolderMark::load(&folder).unwrap().unwrap();
    let saved = scene.save(&folder, claim(1)).unwrap();
    // What was on disk when it died: the mark before the head moved.
    FolderMark { pending: Some(saved.manifest.clone()), ..before }.store(&folder).unwrap();
    write(&folder, "workspace/newer", b"newer");
    assert_eq!(scene.save(&folder, claim(2)).unwrap().generation, 3);
}

#[test]
fn a_bottle_that_was_destroyed_stays_so_and_its_name_can_be_used_again() {
    let scene = Scene::new();
    let folder = scene.bottle("one");
    scene.save(&folder, claim(3)).unwrap();
    let older = scene.store.destroy(&scene.id, claim(2)).unwrap_err();
    assert!(matches!(older, BottleStoreError::Overtaken { .. }), "{older}");
    scene.store.destroy(&scene.id, claim(3)).unwrap();
    scene.store.destroy(&scene.id, None).unwrap();
    assert!(scene.store.head(&scene.id).unwrap().unwrap().is_destroyed);
    let error = scene.save(&folder, claim(4)).unwrap_err();
    assert!(matches!(error, BottleStoreError::Destroyed { .. }), "{error}");
    scene.pull("two", claim(4)).unwrap_err();
    let key = crate::BottleKey {
        owner: "acme",
        repo: "app",
        issue: 7,
        slug: "coder-issue-7",
        made_at: "2026-11-19T11:00:00Z".parse().unwrap(),
    };
    assert_ne!(scene.store.id_of(key), scene.id, "a later bottle of the issue is another one");
}

#[test]
fn another_key_is_found_before_anything_is_done() {
    let scene = Scene::new();
    let folder = scene.bottle("one");
    scene.save(&folder, claim(1)).unwrap();
    let other = Scene::open(scene.dir.path(), "b").unwrap();
    for error in [
        scene.save_to(&other, &folder, claim(2)).unwrap_err(),
        other.head(&scene.id).unwrap_err(),
        other.check().unwrap_err(),
    ] {
        assert!(matches!(error, BottleStoreError::OtherKey { .. }), "{error}");
    }
}

#[test]
fn nothing_in_the_store_can_be_read_without_the_key() {
    let scene = Scene::new();
    let folder = scene.bottle("one");
    let secret = "a-text-that-nobody-may-read ".repeat(100);
    write(&folder, "workspace/secret", secret.as_bytes());
    scene.save(&folder, claim(1)).unwrap();
    let words = ["a-text-that", "coder-issue", "acme", "workspace", "main.rs", "fn main"];
    for object in scene.objects("") {
        let path = object.display().to_string();
        let path = path.strip_prefix(&scene.dir.path().display().to_string()).unwrap();
        let bytes = fs::read(&object).unwrap();
        for word in words {
            assert!(!path.contains(word), "{path}");
            assert!(!bytes.windows(word.len()).any(|it| it == word.as_bytes()), "{path}: {word}");
        }
    }
}

#[test]
fn a_folder_store_does_what_heads_stand_on() {
    let scene = Scene::new();
    let health = scene.store.check().unwrap();
    assert!(health.is_safe() && health.races == 10, "{health:?}");
    assert_eq!(scene.objects("check/").len(), 0, "nothing is left");
}
