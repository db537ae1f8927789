//! A person's repository: found, read, fetched into, and otherwise left alone.

use std::time::Duration;

use host::git::{FetchProgress, GitError, ObjectFormat, UserRepo};
use host::signal::{Cancel, CancelReason};
use model::id::RemoteName;

use crate::world::{World, exists};

const LIMIT: Duration = Duration::from_secs(300);

fn remote(name: &str) -> RemoteName {
    RemoteName::parse(name).unwrap()
}

/// A fork whose upstream has one commit more.
async fn fork_and_upstream() -> World {
    let world = World::new();
    world.init("upstream").await;
    world.commit("upstream", "a", "1").await;
    world.git(".", &["clone", "--quiet", "upstream", "fork"]).await;
    world.git("fork", &["remote", "rename", "origin", "upstream"]).await;
    world.commit("upstream", "b", "2").await;
    world.git("upstream", &["tag", "v1"]).await;
    world
}

#[tokio::test]
async fn a_repository_is_found_from_a_directory_inside_it() {
    let world = fork_and_upstream().await;
    world.write("fork/sub/dir/file", "x");
    let repo = world.user_repo("fork/sub/dir").await;
    assert_eq!(repo.toplevel(), Some(world.path("fork").as_path()));
    assert_eq!(repo.common_dir(), world.path("fork/.git"));
    assert_eq!(repo.objects_dir(), world.path("fork/.git/objects"));
    assert_eq!(repo.object_format(), ObjectFormat::Sha1);
    assert!(!repo.is_bare() && !repo.is_shallow());
    assert!(repo.partial_clone_settings().is_empty());
}

#[tokio::test]
async fn a_worktree_shares_the_repository() {
    let world = fork_and_upstream().await;
    world.git("fork", &["worktree", "add", "--quiet", "../tree"]).await;
    let repo = world.user_repo("tree").await;
    assert_eq!(repo.toplevel(), Some(world.path("tree").as_path()));
    assert_eq!(repo.common_dir(), world.path("fork/.git"));
}

#[tokio::test]
async fn bare_and_shallow_repositories_say_so() {
    let world = fork_and_upstream().await;
    world.git(".", &["clone", "--quiet", "--bare", "upstream", "bare.git"]).await;
    let bare = world.user_repo("bare.git").await;
    assert!(bare.is_bare() && bare.toplevel().is_none());
    let url = format!("file://{}", world.path("upstream").display());
    world.git(".", &["clone", "--quiet", "--depth=1", &url, "shallow"]).await;
    assert!(world.user_repo("shallow").await.is_shallow());
    world.git("upstream", &["config", "uploadpack.allowFilter", "true"]).await;
    world.git(".", &["clone", "--quiet", "--filter=blob:none", &url, "partial"]).await;
    assert!(!world.user_repo("partial").await.partial_clone_settings().is_empty());
}

#[tokio::test]
async fn outside_of_any_repository_there_is_none() {
    let world = World::new();
    let error = UserRepo::discover_as(&world.path("home"), world.user_env()).await.unwrap_err();
    assert!(matches!(error, GitError::NotARepository { .. }), "{error}");
}

#[tokio::test]
async fn variables_of_git_do_not_lead_elsewhere() {
    let world = fork_and_upstream().await;
    world.init("elsewhere").await;
    let mut vars = world.env();
    vars.push(("GIT_DIR".into(), world.path("elsewhere/.git").into()));
    let env = host::git::UserEnv::new(vars);
    let repo = UserRepo::discover_as(&world.path("fork"), env).await.unwrap();
    assert_eq!(repo.common_dir(), world.path("fork/.git"));
}

#[tokio::test]
async fn a_fetch_brings_branches_and_touches_nothing_else() {
    let world = fork_and_upstream().await;
    let before = world.tip("fork", "main").await;
    let repo = world.user_repo("fork").await;
    repo.fetch(&remote("upstream"), LIMIT, &FetchProgress::default()).await.unwrap();
    let found = repo.resolve_commit("refs/remotes/upstream/main").await.unwrap().unwrap();
    assert_eq!(found, world.tip("upstream", "main").await);
    assert!(repo.is_ancestor(&before, &found).await.unwrap());
    assert!(!repo.is_ancestor(&found, &before).await.unwrap());
    assert_eq!(world.tip("fork", "main").await, before);
    assert_eq!(repo.resolve_commit("refs/tags/v1").await.unwrap(), None);
    assert!(!exists(&world.path("fork/.git/FETCH_HEAD")));
    assert!(!exists(&world.path("fork/b")));
}

#[tokio::test]
async fn a_fetch_counts_and_its_error_is_free_of_counts() {
    let world = fork_and_upstream().await;
    let (repo, progress) = (world.user_repo("fork").await, FetchProgress::default());
    repo.fetch(&remote("upstream"), LIMIT, &progress).await.unwrap();
    let count = progress.latest().map(|count| count.to_string()).unwrap_or_default();
    assert!(count.contains(" of ") && count.contains(" objects "), "{count}");
    world.commit("upstream", "c", "3").await;
    // The lock makes the update of the ref fail after the objects were received.
    std::fs::write(world.path("fork/.git/refs/remotes/upstream/main.lock"), "").unwrap();
    let error = repo.fetch(&remote("upstream"), LIMIT, &progress).await.unwrap_err().to_string();
    assert!(error.contains("main.lock") && !error.contains("objects"), "{error}");
}

#[tokio::test]
async fn remotes_have_names_addresses_and_default_branches() {
    let world = fork_and_upstream().await;
    world.git("fork", &["remote", "set-head", "--delete", "upstream"]).await;
    let repo = world.user_repo("fork").await;
    assert!(repo.has_remote(&remote("upstream")) && !repo.has_remote(&remote("none")));
    let url = repo.remote_url(&remote("upstream")).await.unwrap().unwrap();
    assert_eq!(url, world.path("upstream").display().to_string());
    assert_eq!(repo.remote_url(&remote("none")).await.unwrap(), None);
    assert_eq!(repo.default_branch(&remote("upstream")).await.unwrap(), None);
    let asked = repo.ask_default_branch(&remote("upstream"), LIMIT).await.unwrap();
    assert_eq!(asked.unwrap().as_str(), "main");
    world.git("fork", &["remote", "set-head", "upstream", "main"]).await;
    let known = repo.default_branch(&remote("upstream")).await.unwrap();
    assert_eq!(known.unwrap().as_str(), "main");
    let branches = repo.remote_branches(&remote("upstream")).await.unwrap();
    let names: Vec<&str> = branches.iter().map(|(branch, _)| branch.as_str()).collect();
    assert_eq!(names, ["main"], "the remote's HEAD is no branch");
    assert!(repo.remote_branches(&remote("none")).await.unwrap().is_empty());
}

#[tokio::test]
async fn names_that_mean_no_commit_mean_nothing() {
    let world = fork_and_upstream().await;
    let repo = world.user_repo("fork").await;
    for rev in ["none", "--help", "--all", "", "HEAD:a", "main..main"] {
        let found = repo.resolve_commit(rev).await;
        assert!(!matches!(found, Ok(Some(_))), "{rev:?} is {found:?}");
    }
    assert!(repo.resolve_commit("HEAD").await.unwrap().is_some());
}

#[tokio::test]
async fn files_and_settings_are_read() {
    let world = fork_and_upstream().await;
    let repo = world.user_repo("fork").await;
    let head = repo.resolve_commit("HEAD").await.unwrap().unwrap();
    assert_eq!(repo.read_blob(&head, "a", 10).await.unwrap().unwrap().bytes, b"1");
    assert_eq!(repo.read_blob(&head, "*", 10).await.unwrap(), None);
    world.git("fork", &["config", "user.name", "Ada L."]).await;
    assert_eq!(repo.config_get("user.name").await.unwrap().as_deref(), Some("Ada L."));
    assert_eq!(repo.config_get("user.nothing").await.unwrap(), None);
}

#[tokio::test]
async fn a_remote_that_does_not_answer_costs_its_time_and_no_more() {
    let world = fork_and_upstream().await;
    world.git("fork", &["remote", "add", "slow", "ssh://host.invalid/x"]).await;
    let env = world.user_env().with("GIT_SSH_COMMAND", "sleep 900; :");
    let repo = UserRepo::discover_as(&world.path("fork"), env).await.unwrap();
    let error = repo
        .fetch(&remote("slow"), Duration::from_millis(500), &FetchProgress::default())
        .await
        .unwrap_err();
    assert!(matches!(error, GitError::TimedOut { .. }), "{error}");
}

#[tokio::test]
async fn a_fetch_stops_when_told_to() {
    let world = fork_and_upstream().await;
    world.git("fork", &["remote", "add", "slow", "ssh://host.invalid/x"]).await;
    let env = world.user_env().with("GIT_SSH_COMMAND", "sleep 900; :");
    let cancel = Cancel::new();
    let repo = UserRepo::discover_as(&world.path("fork"), env).await.unwrap();
    let repo = repo.cancelled_by(cancel.clone());
    let (slow, progress) = (remote("slow"), FetchProgress::default());
    let (fetched, ()) = tokio::join!(repo.fetch(&slow, LIMIT, &progress), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        cancel.cancel(CancelReason::Asked("enough".into()));
    });
    assert!(matches!(fetched, Err(GitError::Cancelled { .. })));
}

#[tokio::test]
async fn a_pack_goes_to_another_file_system_and_the_source_stays_as_it_is() {
    use std::os::unix::fs::MetadataExt;
    let world = fork_and_upstream().await;
    let shm = std::path::Path::new("/dev/shm");
    let device = |path: &std::path::Path| path.metadata().map(|facts| facts.dev()).ok();
    // On one file system the pack is made the same way.
    let folder = match device(shm) == device(&world.path(".")) {
        false if device(shm).is_some() => tempfile::tempdir_in(shm).unwrap(),
        _ => tempfile::tempdir().unwrap(),
    };
    let repo = world.user_repo("upstream").await;
    let packs = folder.path().join("pack");
    std::fs::create_dir(&packs).unwrap();
    let names = |path: &std::path::Path| {
        let entries = std::fs::read_dir(path).unwrap().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        names.sort();
        names
    };
    let source = world.path("upstream/.git/objects/pack");
    let before = names(&source);
    let tip = world.tip("upstream", "HEAD").await;
    repo.pack_into(&packs, std::slice::from_ref(&tip), &[]).await.unwrap();
    let made = names(&packs);
    assert_eq!(made.len(), 2, "{made:?}");
    assert!(made.iter().all(|name| name.to_string_lossy().starts_with("pack-")), "{made:?}");
    assert_eq!(names(&source), before);
}

#[tokio::test]
async fn a_worktree_is_erased_in_whatever_state_git_left_it() {
    let world = fork_and_upstream().await;
    let repo = host::git::WorktreeRepo::discover(&world.path("fork")).await.unwrap();
    let records = world.path("fork/.git/worktrees");
    for half in ["tree/.git", "fork/.git/worktrees/tree/gitdir", ""] {
        world.git("fork", &["worktree", "add", "--quiet", "-B", "tree", "../tree"]).await;
        world.write("fork/.git/worktrees/tree/locked", "initializing\n");
        if !half.is_empty() {
            std::fs::remove_file(world.path(half)).unwrap();
        }
        repo.erase_worktree(&world.path("tree")).await.unwrap();
        assert!(!exists(&world.path("tree")), "{half}");
        assert_eq!(std::fs::read_dir(&records).into_iter().flatten().count(), 0, "{half}");
    }
    // Nothing is there any more, and another worktree is left alone.
    world.git("fork", &["worktree", "add", "--quiet", "-B", "other", "../other"]).await;
    repo.erase_worktree(&world.path("tree")).await.unwrap();
    assert!(exists(&world.path("other/.git")) && exists(&records.join("other/gitdir")));
}
