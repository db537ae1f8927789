//! What is coming, without doing anything.

use merge::clean::ConflictKind;
use merge::forecast::{MergeForecast, UpstreamForecast, observe_forecast};

use crate::world::{FORK, UPSTREAM, World};

async fn forecast(world: &World, limit: usize) -> UpstreamForecast {
    let (base, upstream) = (world.sha(FORK), world.sha(UPSTREAM));
    observe_forecast(&world.sealed().await, &base, &upstream, limit).await.unwrap()
}

#[tokio::test]
async fn commits_numbers_and_a_clean_merge_are_foretold() {
    let world = World::new(&[("a", "1\n2\n3\n"), ("b", "x\n")]);
    world.write(FORK, "b", "y\n");
    world.write(UPSTREAM, "a", "1\nnew\nnewer\n3\n");
    let newest = world.write(UPSTREAM, "c", "c\n");
    let found = forecast(&world, 1).await;
    assert_eq!((found.commit_count, found.commits.len()), (2, 1));
    assert_eq!((&found.commits[0].sha, found.commits[0].subject.as_str()), (&newest, "up: c"));
    assert!(found.commits[0].authored_at.is_some());
    assert_eq!((found.files, found.insertions, found.deletions), (2, 3, 1));
    let changed: Vec<_> = found.changed.iter().map(|file| file.path.to_string()).collect();
    assert_eq!(changed, ["a", "c"]);
    assert_eq!(found.merge, MergeForecast::Clean);
    assert_eq!(forecast(&world, 10).await.commits.len(), 2);
}

#[tokio::test]
async fn conflicts_are_foretold() {
    let world = World::new(&[("a", "1\n")]);
    world.write(FORK, "a", "fork\n");
    world.write(UPSTREAM, "a", "upstream\n");
    let MergeForecast::Conflicts(conflicts) = forecast(&world, 10).await.merge else {
        panic!("no conflicts")
    };
    assert_eq!(conflicts[0].kind, ConflictKind::Content);
}

#[tokio::test]
async fn nothing_new_and_unrelated_are_told_apart() {
    let world = World::new(&[("a", "1\n")]);
    world.write(FORK, "a", "fork\n");
    let found = forecast(&world, 10).await;
    assert_eq!((found.merge, found.commit_count, found.files), (MergeForecast::NothingNew, 0, 0));
    world.repo.git(&["checkout", "--quiet", "--orphan", "other"]);
    world.repo.commit("another first");
    world.repo.git(&["branch", "--force", UPSTREAM]);
    assert_eq!(forecast(&world, 10).await.merge, MergeForecast::Unrelated);
}
