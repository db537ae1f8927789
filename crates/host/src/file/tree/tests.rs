//! Tests of the operations on trees that an agent may have filled.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use rustix::fs::{Mode, OFlags, mkdirat, openat};

use super::*;
use crate::env;

const PLENTY: u64 = 1_000_000;

fn tree() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Creates directories nested deeper than the longest path.
fn nest(root: &Path, depth: usize) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut here = rustix::fs::open(root, flags, Mode::empty()).unwrap();
    for _ in 0..depth {
        mkdirat(&here, "d", Mode::RWXU).unwrap();
        here = openat(&here, "d", flags, Mode::empty()).unwrap();
    }
}

#[test]
fn a_tree_is_measured_without_following_links() {
    let (dir, outside) = (tree(), tree());
    fs::write(outside.path().join("big"), vec![1; 1 << 20]).unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    fs::write(dir.path().join("sub/file"), vec![1; 8192]).unwrap();
    symlink(outside.path(), dir.path().join("out")).unwrap();
    symlink("nowhere", dir.path().join("dangling")).unwrap();
    symlink("..", dir.path().join("sub/up")).unwrap();
    let size = tree_size(dir.path(), PLENTY).unwrap();
    assert_eq!((size.entries, size.stopped), (5, false));
    assert!(size.bytes < 1 << 20, "{size:?}");
}

#[test]
fn holes_take_no_space() {
    let dir = tree();
    File::create(dir.path().join("sparse")).unwrap().set_len(10 << 30).unwrap();
    assert!(tree_size(dir.path(), PLENTY).unwrap().bytes < 1 << 20);
}

#[test]
fn counting_ends_at_the_limit() {
    let dir = tree();
    for n in 0..20 {
        fs::write(dir.path().join(n.to_string()), "").unwrap();
    }
    let size = tree_size(dir.path(), 7).unwrap();
    assert_eq!((size.entries, size.stopped), (7, true));
}

#[test]
fn a_root_that_is_a_link_is_refused() {
    let (dir, outside) = (tree(), tree());
    fs::write(outside.path().join("kept"), "x").unwrap();
    let link = dir.path().join("link");
    symlink(outside.path(), &link).unwrap();
    assert!(tree_size(&link, PLENTY).is_err());
    assert!(lchown_tree(&link, env::uid(), env::gid()).is_err());
    assert!(remove_tree_safely(&link).is_err());
    assert!(outside.path().join("kept").exists());
}

#[test]
fn giving_a_tree_away_leaves_the_targets_of_links_alone() {
    let (dir, outside) = (tree(), tree());
    let target = outside.path().join("mine");
    fs::write(&target, "x").unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    fs::write(dir.path().join("sub/file"), "x").unwrap();
    symlink(&target, dir.path().join("link")).unwrap();
    symlink(outside.path(), dir.path().join("dir-link")).unwrap();
    symlink("nowhere", dir.path().join("dangling")).unwrap();
    // Only root can change the owner; other users can set the owner that is already set.
    let (uid, gid) = if env::is_root() { (12345, 12346) } else { (env::uid(), env::gid()) };
    lchown_tree(dir.path(), uid, gid).unwrap();
    for name in ["", "sub", "sub/file", "link", "dir-link", "dangling"] {
        let facts = fs::symlink_metadata(dir.path().join(name)).unwrap();
        assert_eq!((facts.uid(), facts.gid()), (uid, gid), "{name}");
    }
    assert_eq!(fs::metadata(&target).unwrap().uid(), env::uid());
    assert_eq!(fs::metadata(outside.path()).unwrap().uid(), env::uid());
}

#[test]
fn fifty_thousand_files_change_hands_in_seconds() {
    let dir = tree();
    for group in 0..50 {
        let sub = dir.path().join(group.to_string());
        fs::create_dir(&sub).unwrap();
        for n in 0..1000 {
            File::create(sub.join(n.to_string())).unwrap();
        }
    }
    let (uid, gid) = if env::is_root() { (12345, 12345) } else { (env::uid(), env::gid()) };
    lchown_tree(dir.path(), uid, gid).unwrap();
    remove_tree_safely(dir.path()).unwrap();
}

#[test]
fn removing_reaches_into_read_only_directories_and_not_through_links() {
    let (dir, outside) = (tree(), tree());
    fs::write(outside.path().join("kept"), "x").unwrap();
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("locked/inner")).unwrap();
    fs::write(root.join("locked/inner/file"), "x").unwrap();
    symlink(outside.path(), root.join("locked/out")).unwrap();
    for (name, mode) in [("locked/inner", 0o000), ("locked", 0o500), ("", 0o500)] {
        fs::set_permissions(root.join(name), Permissions::from_mode(mode)).unwrap();
    }
    remove_tree_safely(&root).unwrap();
    assert!(!root.exists());
    assert!(outside.path().join("kept").exists());
}

#[test]
fn depth_is_no_defence_against_removal() {
    let dir = tree();
    let root = dir.path().join("root");
    fs::create_dir(&root).unwrap();
    nest(&root, 5000);
    assert_eq!(tree_size(&root, PLENTY).unwrap().entries, 5000);
    remove_tree_safely(&root).unwrap();
    assert!(!root.exists());
}

#[test]
fn a_tree_that_is_gone_is_removed() {
    let dir = tree();
    remove_tree_safely(&dir.path().join("none")).unwrap();
}

#[test]
fn an_error_names_the_place() {
    let dir = tree();
    let error = tree_size(&dir.path().join("none"), PLENTY).unwrap_err();
    assert!(error.is_not_found());
    assert!(error.to_string().starts_with("could not measure "), "{error}");
}

#[test]
fn a_path_that_is_too_long_is_found_however_deep_it_is() {
    let dir = tree();
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::write(root.join("a/b/file"), "").unwrap();
    assert_eq!(find_long_path(&root, 8).unwrap(), None);
    assert_eq!(find_long_path(&root, 7).unwrap(), Some(PathBuf::from("a/b/file")));
    nest(&root, 3000);
    let found = find_long_path(&root, 4000).unwrap().unwrap();
    assert!(found.starts_with("d/d/d") && found.as_os_str().len() == 4001, "{found:?}");
    remove_tree_safely(&root).unwrap();
}
