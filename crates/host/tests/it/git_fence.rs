//! A forge that was told of a newer claim refuses whatever an older one pushes, however late it arrives.

use std::time::Duration;

use host::git::{
    BranchUpdate, FenceValue, PushFence, PushOutcome, PushSpec, RaisedFence, RemoteBranch,
    SealedRepo,
};
use model::id::{BranchName, Sha};

use crate::world::World;

const LIMIT: Duration = Duration::from_secs(300);
const ISSUE: u64 = 7;

/// A forge with a bottle's branch, and two workers that have a commit on top of it each.
struct Forge {
    world: World,
    url: String,
    base: Sha,
    old: Worker,
    new: Worker,
}

/// A worker under a claim.
struct Worker {
    repo: SealedRepo,
    claim: u64,
    commit: Sha,
}

impl Forge {
    async fn new() -> Self {
        let world = World::new();
        world.init("fork").await;
        let base = world.commit("fork", "a.txt", "one\n").await;
        world.git(".", &["init", "--quiet", "--bare", "forge.git"]).await;
        let url = world.path("forge.git").display().to_string();
        world
            .git("fork", &["push", "--quiet", &url, &format!("{base}:{}", branch().full_ref())])
            .await;
        let mut workers = Vec::new();
        for claim in [1, 2] {
            world.git("fork", &["reset", "--quiet", "--hard", base.as_str()]).await;
            let commit = world.commit("fork", "a.txt", &format!("by {claim}\n")).await;
            let repo = world.sealed_over(&format!("{claim}.git"), "fork", &base).await;
            workers.push(Worker { repo, claim, commit });
        }
        let [old, new] = workers.try_into().ok().unwrap();
        Self { world, url, base, old, new }
    }

    async fn raise(&self, worker: &Worker) -> RaisedFence {
        let claim = (ISSUE, worker.claim);
        worker.repo.raise_fence(&self.url, claim, self.world.user_env(), LIMIT).await.unwrap()
    }

    async fn push(&self, worker: &Worker, value: FenceValue) -> PushOutcome {
        let (branch, fence) = (branch(), Some(PushFence { issue: ISSUE, value }));
        let (url, commit) = (self.url.as_str(), &worker.commit);
        let spec =
            PushSpec { url, branch: &branch, commit, update: BranchUpdate::FastForward, fence };
        worker.repo.push(spec, self.world.user_env(), LIMIT).await.unwrap()
    }

    async fn tip(&self) -> Sha {
        let (repo, branch) = (&self.new.repo, branch());
        let there = repo.remote_branch(&self.url, &branch, self.world.user_env(), LIMIT).await;
        let RemoteBranch::At(tip) = there.unwrap() else { panic!("the branch is gone") };
        tip
    }
}

fn branch() -> BranchName {
    BranchName::parse("bottle/fix").unwrap()
}

fn value(claim: u64, write: u64) -> FenceValue {
    FenceValue { claim, write }
}

#[tokio::test]
async fn a_fence_moves_with_each_push_and_shows_among_no_branches() {
    let forge = Forge::new().await;
    assert_eq!(forge.raise(&forge.old).await, RaisedFence::Held(value(1, 0)));
    assert_eq!(forge.push(&forge.old, value(1, 0)).await, PushOutcome::Updated);
    assert_eq!(forge.raise(&forge.old).await, RaisedFence::Held(value(1, 1)));
    assert_eq!(forge.push(&forge.old, value(1, 1)).await, PushOutcome::UpToDate);
    assert_eq!(forge.raise(&forge.old).await, RaisedFence::Held(value(1, 2)));
    assert_eq!(forge.world.git("forge.git", &["branch", "--list"]).await.lines().count(), 1);
}

#[tokio::test]
async fn who_was_taken_over_pushes_nothing() {
    let forge = Forge::new().await;
    forge.raise(&forge.old).await;
    assert_eq!(forge.raise(&forge.new).await, RaisedFence::Held(value(2, 0)));
    let late = forge.push(&forge.old, value(1, 0)).await;
    assert!(matches!(&late, PushOutcome::Rejected { .. }), "{late:?}");
    assert_eq!(forge.tip().await, forge.base);
    assert_eq!(forge.raise(&forge.old).await, RaisedFence::Newer(value(2, 0)));
    assert_eq!(forge.push(&forge.new, value(2, 0)).await, PushOutcome::Updated);
    assert_eq!(forge.tip().await, forge.new.commit);
}

/// The forge was read before the takeover, and is written after it.
#[tokio::test]
async fn a_push_that_was_under_way_during_the_takeover_is_refused_by_the_forge_itself() {
    let forge = Forge::new().await;
    forge.raise(&forge.old).await;
    // The server has told the old worker the values; now the new one claims, and then the server goes on.
    let repo = forge.world.path("forge.git").display().to_string();
    let fence = format!("refs/bottleworks/fence/{ISSUE}");
    let hook = format!(
        "#!/bin/sh\nunset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES\n\
         new=$(printf 'claim 2 write 0\\n' | git -C '{repo}' hash-object -w --stdin) || exit 1\n\
         git -C '{repo}' update-ref '{fence}' \"$new\" || exit 1\n"
    );
    forge.world.trap("forge.git/hooks/pre-receive");
    forge.world.write("forge.git/hooks/pre-receive", &hook);
    let late = forge.push(&forge.old, value(1, 0)).await;
    assert!(matches!(&late, PushOutcome::Rejected { .. }), "{late:?}");
    assert_eq!(forge.tip().await, forge.base);
    assert_eq!(forge.raise(&forge.old).await, RaisedFence::Newer(value(2, 0)));
}

#[tokio::test]
async fn of_two_that_race_the_newer_one_never_finds_a_commit_that_came_after_it() {
    for _ in 0..10 {
        let forge = Forge::new().await;
        forge.raise(&forge.old).await;
        let takeover = async {
            let raised = forge.raise(&forge.new).await;
            (raised, forge.tip().await)
        };
        let (late, (raised, seen)) = tokio::join!(forge.push(&forge.old, value(1, 0)), takeover);
        assert_eq!(raised, RaisedFence::Held(value(2, 0)));
        assert_eq!(forge.tip().await, seen, "{late:?}");
        assert_eq!(matches!(late, PushOutcome::Updated), seen == forge.old.commit, "{late:?}");
    }
}

#[tokio::test]
async fn a_forge_that_takes_no_such_ref_is_named() {
    let forge = Forge::new().await;
    forge.world.git("forge.git", &["config", "receive.hideRefs", "refs/bottleworks"]).await;
    let raised = forge.raise(&forge.old).await;
    assert!(
        matches!(&raised, RaisedFence::Rejected { reason } if reason.contains("hidden")),
        "{raised:?}"
    );
}
