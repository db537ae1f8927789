//! Rebasing without a work tree does what git does with one.

use merge::clean::MergeOptions;
use merge::rebase::{RebaseAttempt, try_rebase};
use testkit::Repo;

use crate::world::{FORK, UPSTREAM, World};

const TEN: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n";

async fn attempt(world: &World) -> RebaseAttempt {
    let name = host::git::RefName::parse("refs/merge/attempt").unwrap();
    let identity = host::git::GitIdentity { name: "Bot".into(), email: "bot@example.com".into() };
    let when = jiff::Timestamp::UNIX_EPOCH;
    let wish = MergeOptions { message: "", identity: &identity, when, name: &name };
    let sealed = world.sealed().await;
    try_rebase(&sealed, &world.sha(FORK), &world.sha(UPSTREAM), wish).await.unwrap()
}

fn rebased_by_git(repo: &Repo) -> String {
    repo.git(&["checkout", "-q", "-B", "rebased", FORK]);
    repo.git(&["rebase", "-q", "--onto", UPSTREAM, UPSTREAM, "rebased"]);
    repo.git(&["rev-parse", "rebased^{tree}"])
}

#[tokio::test]
async fn a_clean_rebase_has_the_tree_that_git_would_make_and_keeps_authors_and_messages() {
    let world = World::new(&[("a.txt", TEN)]);
    world.write(FORK, "a.txt", TEN.replace("one", "fork's one"));
    world.write(FORK, "fork.txt", "fork\n");
    world.write(UPSTREAM, "a.txt", TEN.replace("ten", "upstream's ten"));
    let RebaseAttempt::Clean { commit, made, dropped } = attempt(&world).await else {
        panic!("not clean")
    };
    assert_eq!((made, dropped.len()), (2, 0));
    let host = Repo::open(world.hermetic.root().join("host.git"));
    let tree = host.git(&["rev-parse", &format!("{commit}^{{tree}}")]);
    let (fork, upstream) = (world.sha(FORK), world.sha(UPSTREAM));
    let told =
        |tip: &str| host.git(&["log", "--format=%an %ae %at %B", tip, &format!("^{upstream}")]);
    assert_eq!(tree, rebased_by_git(&world.repo));
    assert_eq!(told(commit.as_str()), told(fork.as_str()), "authors, dates and messages stay");
    assert!(
        matches!(attempt(&world).await, RebaseAttempt::Clean { commit: again, .. } if again == commit)
    );
}

#[tokio::test]
async fn what_upstream_has_already_is_dropped() {
    let world = World::new(&[("a.txt", TEN)]);
    world.write(FORK, "a.txt", TEN.replace("one", "1"));
    world.write(FORK, "fork.txt", "fork\n");
    world.write(UPSTREAM, "a.txt", TEN.replace("one", "1"));
    let RebaseAttempt::Clean { made, dropped, .. } = attempt(&world).await else {
        panic!("not clean")
    };
    assert_eq!((made, dropped.len()), (1, 1));
}

#[tokio::test]
async fn the_first_commit_that_does_not_fit_is_named() {
    let world = World::new(&[("a.txt", TEN)]);
    world.write(FORK, "fork.txt", "fork\n");
    world.write(FORK, "a.txt", TEN.replace("one", "ours"));
    world.write(UPSTREAM, "a.txt", TEN.replace("one", "theirs"));
    let RebaseAttempt::Conflicts { at, conflicts } = attempt(&world).await else { panic!("clean") };
    assert_eq!(at, world.sha(FORK));
    assert_eq!(conflicts.len(), 1);
    assert_eq!(conflicts[0].path.to_string(), "a.txt");
}
