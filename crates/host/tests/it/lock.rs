//! Locks between open files, and so between processes.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use host::lock::{FileLock, LockError, LockKind, holder_of, is_held, wait_released};
use host::process::{Signal, send_signal, spawn_detached};
use model::command::CommandSpec;

const CHILD: &str = "BOTTLEWORKS_TEST_LOCK";
const NOW: Duration = Duration::ZERO;
const LONG: Duration = Duration::from_secs(300);

fn kind(note: &str) -> LockKind<'_> {
    LockKind::Exclusive { note }
}

fn place() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    (dir, path)
}

#[tokio::test]
async fn the_second_waits_its_time_and_is_told_who_has_it() {
    let (_dir, path) = place();
    let _lock = FileLock::acquire(&path, kind("run 7\nof main"), NOW).await.unwrap();
    let start = Instant::now();
    let error = FileLock::acquire(&path, kind("x"), Duration::from_millis(300)).await.unwrap_err();
    assert!(start.elapsed() >= Duration::from_millis(300));
    let LockError::Held { holder: Some(holder), .. } = error else { panic!("{error}") };
    assert_eq!((holder.pid, holder.note.as_str()), (std::process::id(), "run 7 of main"));
}

#[tokio::test]
async fn the_second_gets_it_when_the_first_lets_go() {
    let (_dir, path) = place();
    let first = FileLock::try_acquire(&path, kind("first")).unwrap();
    let holder = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        drop(first);
    });
    let _second = FileLock::acquire(&path, kind("second"), LONG).await.unwrap();
    holder.join().unwrap();
    assert_eq!(holder_of(&path).unwrap().note, "second");
}

#[test]
fn readers_share_and_writers_do_not() {
    let (_dir, path) = place();
    let one = FileLock::try_acquire(&path, LockKind::Shared).unwrap();
    let two = FileLock::try_acquire(&path, LockKind::Shared).unwrap();
    assert!(!is_held(&path).unwrap());
    assert!(FileLock::try_acquire(&path, kind("w")).is_err());
    drop((one, two));
    let _writer = FileLock::try_acquire(&path, kind("w")).unwrap();
    assert!(FileLock::try_acquire(&path, LockKind::Shared).is_err());
    assert!(is_held(&path).unwrap());
}

#[test]
fn a_waiter_does_not_wipe_the_holders_name() {
    let (_dir, path) = place();
    let _lock = FileLock::try_acquire(&path, kind("holder")).unwrap();
    assert!(FileLock::try_acquire(&path, kind("waiter")).is_err());
    assert_eq!(holder_of(&path).unwrap().note, "holder");
}

#[test]
fn letting_go_leaves_the_file() {
    let (_dir, path) = place();
    drop(FileLock::try_acquire(&path, kind("x")).unwrap());
    assert!(path.exists());
    assert!(!is_held(&path).unwrap());
    assert!(!is_held(&path.with_file_name("none")).unwrap());
}

#[test]
fn a_file_exchanged_by_hand_does_not_give_two_holders_the_same_lock() {
    let (_dir, path) = place();
    let old = FileLock::try_acquire(&path, kind("old")).unwrap();
    fs::remove_file(&path).unwrap();
    let new = FileLock::try_acquire(&path, kind("new")).unwrap();
    assert_eq!(holder_of(&path).unwrap().note, "new");
    assert!(matches!(
        FileLock::from_inherited(old.into_file(), &path, "old"),
        Err(LockError::NotTheFile { .. })
    ));
    drop(new);
}

#[test]
fn only_the_locked_descriptor_carries_the_lock() {
    let (_dir, path) = place();
    let lock = FileLock::try_acquire(&path, kind("parent")).unwrap();
    let other = File::options().read(true).write(true).open(&path).unwrap();
    let refused = FileLock::from_inherited(other, &path, "thief");
    assert!(matches!(refused, Err(LockError::Held { .. })));
    let copy = lock.as_file().try_clone().unwrap();
    drop(lock);
    let taken = FileLock::from_inherited(copy, &path, "heir").unwrap();
    assert_eq!(holder_of(taken.path()).unwrap().note, "heir");
}

#[tokio::test]
async fn a_lock_handed_to_a_child_lives_as_long_as_the_child() {
    let (dir, path) = place();
    let lock = FileLock::try_acquire(&path, kind("parent")).unwrap();
    let stderr = File::create(dir.path().join("err")).unwrap();
    let spec = CommandSpec::new("sleep").arg("60").env("PATH", "/usr/bin:/bin");
    let child = spawn_detached(&spec, lock.into_file(), stderr).unwrap();
    assert!(is_held(&path).unwrap());
    assert!(FileLock::try_acquire(&path, kind("x")).is_err());
    let waited = tokio::time::timeout(Duration::from_millis(200), wait_released(&path)).await;
    assert!(waited.is_err());
    assert!(send_signal(&child, Signal::KILL).unwrap());
    wait_released(&path).await.unwrap();
    FileLock::acquire(&path, kind("x"), LONG).await.unwrap();
}

#[tokio::test]
async fn a_child_takes_the_lock_over_under_its_own_name() {
    let (dir, path) = place();
    let lock = FileLock::try_acquire(&path, kind("parent")).unwrap();
    let stderr = File::create(dir.path().join("err")).unwrap();
    let spec = CommandSpec::new(host::env::current_exe().unwrap())
        .args(["--exact", "lock::as_a_child_it_takes_the_lock_from_its_standard_input"])
        .env(CHILD, &path);
    let child = spawn_detached(&spec, lock.into_file(), stderr).unwrap();
    wait_released(&path).await.unwrap();
    let holder = holder_of(&path).unwrap();
    assert_eq!((i32::try_from(holder.pid).unwrap(), holder.note.as_str()), (child.pid, "child"));
}

/// Does its part only when the test above starts it.
#[test]
fn as_a_child_it_takes_the_lock_from_its_standard_input() {
    let Some(path) = host::env::var_os(CHILD) else { return };
    host::process::become_session_leader().unwrap();
    let stdin = File::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
    FileLock::from_inherited(stdin, path.as_ref(), "child").unwrap();
}

#[tokio::test]
async fn a_lock_that_was_passed_on_is_held_by_the_child_too() {
    use host::lock::PassLock;
    for (pass, is_still_held) in [(PassLock::Yes, true), (PassLock::No, false)] {
        let (_dir, path) = place();
        let lock = FileLock::try_acquire(&path, kind("first")).unwrap();
        lock.pass_to_children(PassLock::Yes).unwrap();
        lock.pass_to_children(pass).unwrap();
        let spec = CommandSpec::new("/bin/sleep").arg("60");
        let child = host::process::spawn_child(&spec, host::process::ChildOptions::default());
        let mut child = child.unwrap();
        drop(lock);
        if is_still_held {
            assert!(is_held(&path).unwrap(), "{pass:?}");
        } else {
            // The kernel closes the descriptors of a new program shortly after its parent continues.
            drop(FileLock::acquire(&path, kind("free"), LONG).await.unwrap());
        }
        child.kill().await.unwrap();
        let _second = FileLock::acquire(&path, kind("second"), LONG).await.unwrap();
    }
}
