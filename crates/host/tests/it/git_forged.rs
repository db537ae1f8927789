//! History cannot be forged: the four ways that fool an ordinary `merge-base --is-ancestor` do not fool
//! a sealed repository.

use std::fs;

use host::git::SealedRepo;
use model::command::CommandExit;
use model::id::Sha;

use crate::world::World;

/// A fork that did not take in `upstream`, in a sealed repository with all objects.
struct Forgery {
    world: World,
    sealed: SealedRepo,
    parent: Sha,
    tip: Sha,
    upstream: Sha,
}

impl Forgery {
    async fn new() -> Self {
        let world = World::new();
        world.init("fork").await;
        let base = world.commit("fork", "a", "1").await;
        world.git("fork", &["checkout", "--quiet", "-b", "upstream"]).await;
        let upstream = world.commit("fork", "u", "1").await;
        world.git("fork", &["checkout", "--quiet", "main"]).await;
        let parent = world.commit("fork", "a", "2").await;
        let tip = world.commit("fork", "a", "3").await;
        let sealed = world.sealed_over("host.git", "fork", &base).await;
        Self { world, sealed, parent, tip, upstream }
    }

    /// Whether git without any care believes that the fork has taken in upstream.
    async fn fools_plain_git(&self) -> bool {
        let range = format!("^{}", self.tip);
        let args = ["rev-list", "--count", self.upstream.as_str(), &range];
        let output = self.world.try_git("host.git", &args).await;
        assert_eq!(output.exit, CommandExit::Exited(0));
        output.stdout == b"0\n"
    }

    async fn assert_not_fooled(&self) {
        assert!(!self.sealed.is_ancestor(&self.upstream, &self.tip).await.unwrap());
        let exclude = std::slice::from_ref(&self.tip);
        let missing = self.sealed.new_commits(&self.upstream, exclude, 10).await.unwrap();
        assert_eq!(missing.len(), 1);
        let shown = self.sealed.new_commits(&self.tip, &[], 1).await.unwrap();
        assert_eq!(shown[0].parents, std::slice::from_ref(&self.parent));
    }
}

#[tokio::test]
async fn a_replacement_is_not_believed() {
    let story = Forgery::new().await;
    let parents = [story.parent.as_str(), story.upstream.as_str()];
    let args = ["replace", "--graft", story.tip.as_str(), parents[0], parents[1]];
    story.world.git("host.git", &args).await;
    assert!(story.fools_plain_git().await);
    story.assert_not_fooled().await;
}

#[tokio::test]
async fn a_graft_is_not_believed() {
    let story = Forgery::new().await;
    let line = format!("{} {} {}\n", story.tip, story.parent, story.upstream);
    story.world.write("host.git/info/grafts", &line);
    assert!(story.fools_plain_git().await);
    story.assert_not_fooled().await;
}

#[tokio::test]
async fn a_commit_graph_is_not_believed() {
    let story = Forgery::new().await;
    for (name, sha) in [("tip", &story.tip), ("upstream", &story.upstream)] {
        story.world.git("host.git", &["update-ref", &format!("refs/{name}/x"), sha.as_str()]).await;
    }
    story.world.git("host.git", &["commit-graph", "write", "--reachable"]).await;
    let path = story.world.path("host.git/objects/info/commit-graph");
    let mut graph = fs::read(&path).unwrap();
    add_second_parent(&mut graph, &story.tip, &story.upstream);
    fs::remove_file(&path).unwrap();
    fs::write(&path, graph).unwrap();
    assert!(story.fools_plain_git().await);
    story.assert_not_fooled().await;
}

#[tokio::test]
async fn a_moved_ref_changes_nothing_about_a_known_commit() {
    let story = Forgery::new().await;
    let base = story.world.tip("fork", "main~2").await;
    story.world.git("host.git", &["update-ref", "refs/remotes/upstream/main", base.as_str()]).await;
    story.assert_not_fooled().await;
}

/// Writes `parent` into the entry of `commit` in a commit-graph file: names are 20 bytes in the chunk
/// OIDL, and entries 36 bytes in CDAT with the second parent's place after the tree and the first's.
fn add_second_parent(graph: &mut [u8], commit: &Sha, parent: &Sha) {
    let names = chunk(graph, b"OIDL");
    let count = (chunk(graph, b"CDAT") - names) / 20;
    let place = |sha: &Sha| {
        let raw = raw_of(sha);
        (0..count).find(|at| graph[names + at * 20..][..20] == raw[..]).unwrap()
    };
    let (at, parent) = (place(commit), u32::try_from(place(parent)).unwrap());
    let field = chunk(graph, b"CDAT") + at * 36 + 24;
    graph[field..field + 4].copy_from_slice(&parent.to_be_bytes());
}

fn chunk(graph: &[u8], id: &[u8; 4]) -> usize {
    let entries = (0..usize::from(graph[6])).map(|at| &graph[8 + at * 12..][..12]);
    let entry = entries.into_iter().find(|entry| &entry[..4] == id).unwrap();
    usize::try_from(u64::from_be_bytes(entry[4..].try_into().unwrap())).unwrap()
}

fn raw_of(sha: &Sha) -> Vec<u8> {
    let digits = sha.as_str();
    (0..40).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}
