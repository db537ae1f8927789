//! A bottle that is pulled is the one that was saved.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;

use super::{Scene, claim, noise, picture, write};
use crate::error::BottleStoreError;

#[test]
fn a_bottle_comes_back_with_everything_that_makes_a_tree() {
    let scene = Scene::new();
    let folder = scene.bottle("one");
    let workspace = folder.join("workspace");
    let long = "d".repeat(120);
    fs::create_dir_all(workspace.join(&long).join(&long)).unwrap();
    write(&workspace.join(&long).join(&long), "long", b"long");
    let odd = OsStr::from_bytes(b"\xe9t\xe9 \xff\n\"");
    fs::write(workspace.join(odd), "not utf-8").unwrap();
    fs::write(workspace.join("größe"), "utf-8").unwrap();
    symlink(odd, workspace.join("to-odd")).unwrap();
    symlink("/usr/bin/python3", workspace.join("python")).unwrap();
    symlink("l".repeat(300), workspace.join("to-long")).unwrap();
    fs::hard_link(workspace.join("blob"), workspace.join("blob-2")).unwrap();
    fs::hard_link(workspace.join("blob"), workspace.join("src/blob-3")).unwrap();
    write(&workspace, "empty", b"");
    fs::create_dir(workspace.join("empty-folder")).unwrap();
    let mut sparse = File::create(workspace.join("sparse")).unwrap();
    sparse.write_all(b"start").unwrap();
    sparse.seek(SeekFrom::Start(1 << 33)).unwrap();
    sparse.write_all(b"end").unwrap();
    sparse.set_len((1 << 33) + 70_000).unwrap();
    File::create(workspace.join("hole")).unwrap().set_len(1 << 34).unwrap();
    write(&workspace, "run", b"#!/bin/sh\n");
    fs::set_permissions(workspace.join("run"), Permissions::from_mode(0o755)).unwrap();
    write(&workspace, "old", b"old");
    let old = SystemTime::UNIX_EPOCH - Duration::new(1000, 250_000_000);
    File::options().write(true).open(workspace.join("old")).unwrap().set_modified(old).unwrap();
    write(&workspace, "closed", b"closed");
    fs::set_permissions(workspace.join("closed"), Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(workspace.join("empty-folder"), Permissions::from_mode(0o555)).unwrap();
    let saved = scene.save(&folder, claim(1)).unwrap();
    assert_eq!((saved.generation, saved.left_out), (1, 0));
    let (pulled, what) = scene.pull("two", claim(2)).unwrap();
    assert_eq!((what.manifest, what.damage), (saved.manifest, None));
    let readable = |folder: &Path| {
        let file = folder.join("workspace/closed");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0);
        fs::set_permissions(file, Permissions::from_mode(0o600)).unwrap();
        let sparse = folder.join("workspace/sparse");
        assert_eq!(sparse.metadata().unwrap().len(), (1 << 33) + 70_000);
        // Reading all of it would take long; the ends tell.
        File::options().write(true).open(sparse).unwrap().set_len(4096).unwrap();
        let hole = folder.join("workspace/hole");
        assert_eq!(hole.metadata().unwrap().len(), 1 << 34);
        fs::remove_file(hole).unwrap();
    };
    readable(&folder);
    readable(&pulled);
    let (mut before, mut after) = (picture(&folder), picture(&pulled));
    // The checks above changed these two.
    for name in [b"workspace".as_slice(), b"workspace/sparse"] {
        before.remove(name);
        after.remove(name);
    }
    assert_eq!(before, after);
    assert!(!pulled.join("lock").exists(), "a lock is of its host");
}

#[test]
fn a_socket_stays_behind_and_is_told() {
    let scene = Scene::new();
    let folder = scene.bottle("one");
    let _socket = UnixListener::bind(folder.join("harness-state/agent.sock")).unwrap();
    assert_eq!(scene.save(&folder, claim(1)).unwrap().left_out, 1);
    let (pulled, _) = scene.pull("two", claim(2)).unwrap();
    assert!(!pulled.join("harness-state/agent.sock").exists());
}

#[test]
fn bits_that_give_rights_stay_behind() {
    let scene = Scene::new();
    let folder = scene.bottle("one");
    let file = folder.join("workspace/src/main.rs");
    fs::set_permissions(&file, Permissions::from_mode(0o6755)).unwrap();
    scene.save(&folder, claim(1)).unwrap();
    let (pulled, _) = scene.pull("two", claim(2)).unwrap();
    let mode = pulled.join("workspace/src/main.rs").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
}

#[test]
fn git_finds_nothing_to_say_about_a_pulled_workspace() {
    let scene = Scene::new();
    let folder = scene.bottle("one");
    let workspace = folder.join("workspace");
    let repo = testkit::Repo::init(&workspace);
    fs::write(workspace.join(".gitignore"), "ignored\n").unwrap();
    repo.commit("all");
    fs::write(workspace.join("ignored"), "built").unwrap();
    fs::write(workspace.join("new"), "not committed").unwrap();
    fs::write(workspace.join("src/main.rs"), "changed").unwrap();
    repo.git(&["add", "src/main.rs"]);
    let before = repo.git(&["status", "--porcelain", "--ignored"]);
    assert_eq!(before.lines().count(), 3, "{before}");
    scene.save(&folder, claim(1)).unwrap();
    let (pulled, _) = scene.pull("two", claim(2)).unwrap();
    let workspace = pulled.join("workspace");
    let repo = testkit::Repo::open(&workspace);
    assert_eq!(repo.git(&["status", "--porcelain", "--ignored"]), before);
    assert_eq!(fs::read_to_string(workspace.join("ignored")).unwrap(), "built");
    repo.git(&["fsck", "--strict"]);
}

#[test]
fn a_pulled_folder_appears_whole_or_not_at_all() {
    let scene = Scene::new();
    let folder = scene.bottle("one");
    scene.save(&folder, claim(1)).unwrap();
    let target = scene.dir.path().join("two/coder-issue-7");
    fs::create_dir_all(target.parent().unwrap()).unwrap();
    let request = crate::PullOptions {
        id: &scene.id,
        slug: "coder-issue-7",
        claim: claim(2),
        folder: &target,
        owners: super::owners(),
    };
    let failed = scene.store.pull(request, &|_| {}, |draft| {
        assert!(draft.join("workspace/blob").exists() && !target.exists());
        Err(BottleStoreError::Key)
    });
    failed.unwrap_err();
    assert_eq!(fs::read_dir(target.parent().unwrap()).unwrap().count(), 0, "nothing is left");
    // A folder that is there already is not replaced.
    fs::create_dir_all(target.join("workspace")).unwrap();
    scene.store.pull(request, &|_| {}, |_| Ok::<_, BottleStoreError>(())).unwrap_err();
    assert_eq!(fs::read_dir(target.parent().unwrap()).unwrap().count(), 1);
}

/// A small tree: names, and what is there.
#[derive(Debug, Clone)]
enum Thing {
    File(Vec<u8>, u32),
    Dir,
    Link(Vec<u8>),
}

fn things() -> impl Strategy<Value = Vec<(Vec<Vec<u8>>, Thing)>> {
    let name = prop::collection::vec(
        any::<u8>().prop_filter("a name", |it| !matches!(it, 0 | b'/')),
        1..9,
    )
    .prop_filter("no dots", |name| name != b"." && name != b"..");
    let thing = prop_oneof![
        (prop::collection::vec(any::<u8>(), 0..3000), 0_u32..0o1000)
            .prop_map(|(it, mode)| Thing::File(it, mode)),
        Just(Thing::Dir),
        prop::collection::vec(1_u8..255, 1..200).prop_map(Thing::Link),
    ];
    prop::collection::vec((prop::collection::vec(name, 1..4), thing), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_tree_comes_back(things in things()) {
        let scene = Scene::new();
        let folder = scene.bottle("one");
        write(&folder, "workspace/blob", b"small");
        for (names, thing) in &things {
            let names: Vec<&OsStr> = names.iter().map(|it| OsStr::from_bytes(it)).collect();
            let path: std::path::PathBuf = folder.join("workspace").join(names.iter().collect::<std::path::PathBuf>());
            if fs::create_dir_all(path.parent().unwrap()).is_err() || path.symlink_metadata().is_ok() {
                continue;
            }
            match thing {
                Thing::File(bytes, mode) => {
                    fs::write(&path, bytes).unwrap();
                    fs::set_permissions(&path, Permissions::from_mode(mode | 0o400)).unwrap();
                }
                Thing::Dir => fs::create_dir(&path).unwrap(),
                Thing::Link(target) => symlink(OsStr::from_bytes(target), &path).unwrap(),
            }
        }
        scene.save(&folder, claim(1)).unwrap();
        let (pulled, _) = scene.pull("two", claim(2)).unwrap();
        prop_assert_eq!(picture(&folder), picture(&pulled));
    }
}

#[test]
fn a_large_file_is_many_chunks_and_one_file() {
    let scene = Scene::new();
    let folder = scene.bottle("one");
    write(&folder, "workspace/large", &noise(48 << 20, 11));
    let saved = scene.save(&folder, claim(1)).unwrap();
    assert!(saved.sent > 20, "{saved:?}");
    let (pulled, _) = scene.pull("two", claim(2)).unwrap();
    assert_eq!(picture(&folder), picture(&pulled));
}
