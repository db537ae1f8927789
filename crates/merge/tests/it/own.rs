//! Which files are the fork's own.

use merge::own::{OwnChange, TheirChange, observe_own_files};

use crate::world::{FORK, UPSTREAM, World};

async fn own(world: &World) -> Vec<(String, OwnChange, TheirChange)> {
    let (base, upstream) = (world.sha(FORK), world.sha(UPSTREAM));
    let files = observe_own_files(&world.sealed().await, &base, &upstream).await.unwrap().unwrap();
    files.into_iter().map(|file| (file.path.to_string(), file.fork, file.upstream)).collect()
}

#[tokio::test]
async fn what_upstream_alone_did_is_not_listed() {
    let world = World::new(&[("a", "1\n"), ("b", "x\n"), ("gone", "y\n")]);
    world.write(FORK, "a", "2\n");
    world.remove(UPSTREAM, "gone");
    world.write(UPSTREAM, "b", "z\n");
    assert_eq!(own(&world).await, [("a".into(), OwnChange::Changed, TheirChange::Untouched)]);
}

#[tokio::test]
async fn a_rename_meets_what_upstream_did_under_the_old_name() {
    let world = World::new(&[("old", "1\n2\n3\n4\n5\n"), ("other", "x\n")]);
    world.on(FORK).git(&["mv", "old", "new"]);
    world.repo.commit("rename");
    world.write(UPSTREAM, "old", "1\n2\n3\n4\nfive\n");
    assert_eq!(own(&world).await, [("new".into(), OwnChange::Renamed, TheirChange::Changed)]);
}

#[tokio::test]
async fn histories_without_a_common_commit_have_no_answer() {
    let world = World::new(&[("a", "1\n")]);
    world.repo.git(&["checkout", "--quiet", "--orphan", "other"]);
    world.repo.commit("another first");
    world.repo.git(&["branch", "--force", UPSTREAM]);
    let (base, upstream) = (world.sha(FORK), world.sha(UPSTREAM));
    let files = observe_own_files(&world.sealed().await, &base, &upstream).await.unwrap();
    assert_eq!(files, None);
}
