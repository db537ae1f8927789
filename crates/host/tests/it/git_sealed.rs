//! From a bundle to a published branch, in a repository of our own.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use host::git::{
    BranchUpdate, EntryStatus, GitError, ObjectFormat, OldValue, PushOutcome, PushSpec,
    RemoteBranch, SealedRepo,
};
use model::id::{BranchName, Sha};

use crate::world::{World, name_of};

const LIMIT: Duration = Duration::from_secs(300);

/// A person's repository with one commit, an agent's copy with two more, and a sealed repository that
/// took them in.
struct Story {
    world: World,
    sealed: SealedRepo,
    base: Sha,
    tip: Sha,
}

impl Story {
    async fn new() -> Self {
        let world = World::new();
        world.init("fork").await;
        let base = world.commit("fork", "kept.txt", "one\n").await;
        world.git(".", &["clone", "--quiet", "--no-hardlinks", "fork", "work"]).await;
        world.commit("work", "ü name.txt", "added\n").await;
        let tip = world.commit("work", "kept.txt", "two\n").await;
        let range = format!("^{base}");
        let bundle = world.bundle("work", "out.bundle", &["main", &range]).await;
        let sealed = world.sealed_over("host.git", "fork", &base).await;
        let (src, dst) = (name_of("refs/heads/main"), name_of("refs/bottle/r1/main"));
        sealed.fetch_bundle(&bundle, &src, &dst).await.unwrap();
        Self { world, sealed, base, tip }
    }
}

fn branch(name: &str) -> BranchName {
    BranchName::parse(name).unwrap()
}

#[tokio::test]
async fn a_bundle_comes_in_under_the_ref_we_chose() {
    let story = Story::new().await;
    let Story { sealed, base, tip, world } = &story;
    assert_eq!(sealed.resolve_commit("refs/bottle/r1/main").await.unwrap(), Some(tip.clone()));
    assert_eq!(sealed.resolve_commit("refs/heads/main").await.unwrap(), None);
    assert!(sealed.is_ancestor(base, tip).await.unwrap());
    assert!(!sealed.is_ancestor(tip, base).await.unwrap());
    assert_eq!(sealed.merge_base(tip, base).await.unwrap(), Some(base.clone()));
    assert!(!world.path("host.git/FETCH_HEAD").exists());
    assert!(!world.path("host.git/hooks").exists());
}

#[tokio::test]
async fn new_commits_say_who_made_them() {
    let story = Story::new().await;
    let Story { sealed, base, tip, .. } = &story;
    let commits = sealed.new_commits(tip, std::slice::from_ref(base), 10).await.unwrap();
    let subjects: Vec<_> = commits.iter().map(|commit| commit.subject.as_str()).collect();
    assert_eq!(subjects, ["change kept.txt", "change ü name.txt"]);
    assert_eq!(commits[1].parents, std::slice::from_ref(base));
    assert_eq!(commits[0].author.email, "ada@example.org");
    assert_eq!(commits[0].committer.name, "Bot");
    assert_eq!(sealed.new_commits(tip, &[], 1).await.unwrap().len(), 1);
}

#[tokio::test]
async fn changes_come_as_a_list_and_as_a_patch() {
    let story = Story::new().await;
    let Story { sealed, base, tip, .. } = &story;
    let entries = sealed.changed_entries(base, tip).await.unwrap();
    let seen: Vec<_> = entries.iter().map(|entry| (entry.path.as_slice(), entry.status)).collect();
    let expected = [
        (b"kept.txt".as_slice(), EntryStatus::Modified),
        ("ü name.txt".as_bytes(), EntryStatus::Added),
    ];
    assert_eq!(seen, expected);
    let patch = sealed.diff(base, tip, 1 << 20).await.unwrap();
    let text = String::from_utf8(patch.bytes).unwrap();
    assert!(text.contains("\n-one\n+two\n") && !patch.truncated, "{text}");
    let short = sealed.diff(base, tip, 10).await.unwrap();
    assert_eq!((short.bytes.len(), short.truncated), (10, true));
}

#[tokio::test]
async fn a_rename_is_a_removal_and_an_addition() {
    let story = Story::new().await;
    let Story { world, .. } = &story;
    let from = world.tip("work", "HEAD").await;
    world.git("work", &["mv", "kept.txt", "moved.txt"]).await;
    let to = world.commit("work", "other", "x").await;
    let sealed = world.sealed("second.git").await;
    sealed.add_alternate(&world.path("work/.git/objects")).unwrap();
    let entries = sealed.changed_entries(&from, &to).await.unwrap();
    let deleted: Vec<_> =
        entries.iter().filter(|entry| entry.status == EntryStatus::Deleted).collect();
    assert_eq!(deleted.len(), 1);
    assert_eq!(deleted[0].path, b"kept.txt");
}

#[tokio::test]
async fn a_link_to_another_repository_is_seen_whatever_gitmodules_says() {
    let story = Story::new().await;
    let Story { world, .. } = &story;
    let from = world.tip("work", "HEAD").await;
    let modules = "[submodule \"x\"]\n\tpath = x\n\turl = ./x\n\tignore = all\n";
    world.write("work/.gitmodules", modules);
    world.git("work", &["add", ".gitmodules"]).await;
    let info = format!("160000,{from},x");
    world.git("work", &["update-index", "--add", "--cacheinfo", &info]).await;
    world.git("work", &["commit", "--quiet", "-m", "link"]).await;
    let to = world.tip("work", "HEAD").await;
    let sealed = world.sealed("second.git").await;
    sealed.add_alternate(&world.path("work/.git/objects")).unwrap();
    let entries = sealed.changed_entries(&from, &to).await.unwrap();
    assert!(entries.iter().any(|entry| entry.new_mode == 0o160_000), "{entries:?}");
}

#[tokio::test]
async fn contents_are_read_in_the_order_asked() {
    let story = Story::new().await;
    let Story { sealed, tip, world, .. } = &story;
    let kept = sealed.read_blob(tip, "kept.txt", 100).await.unwrap().unwrap();
    assert_eq!(kept.bytes, b"two\n");
    assert_eq!(sealed.read_blob(tip, "none.txt", 100).await.unwrap(), None);
    let blob = world.tip("work", "HEAD:kept.txt").await;
    let missing = Sha::parse(&"1".repeat(40)).unwrap();
    let ids = [missing, blob.clone(), tip.clone(), blob];
    let sizes = sealed.blob_sizes(&ids).await.unwrap();
    assert_eq!(sizes, [None, Some(4), None, Some(4)]);
    let blobs = sealed.read_blobs(&ids, 2).await.unwrap();
    let bytes: Vec<_> =
        blobs.iter().map(|blob| blob.as_ref().map(|b| b.bytes.as_slice())).collect();
    assert_eq!(bytes, [None, Some(b"tw".as_slice()), None, Some(b"tw".as_slice())]);
    let whole = sealed.read_blobs(&ids, 100).await.unwrap();
    assert_eq!(whole[1].as_ref().unwrap().bytes, b"two\n");
}

#[tokio::test]
async fn a_large_blob_costs_no_more_than_the_cap() {
    let world = World::new();
    world.init("work").await;
    world.commit("work", "big", &"0123456789abcdef".repeat(2 << 20)).await;
    let blob = world.tip("work", "HEAD:big").await;
    let sealed = world.sealed("host.git").await;
    sealed.add_alternate(&world.path("work/.git/objects")).unwrap();
    let blobs = sealed.read_blobs(&[blob], 1000).await.unwrap();
    let blob = blobs[0].as_ref().unwrap();
    assert_eq!((blob.bytes.len(), blob.size), (1000, 32 << 20));
}

#[tokio::test]
async fn a_ref_moves_only_from_where_it_was() {
    let story = Story::new().await;
    let Story { sealed, base, tip, .. } = &story;
    let name = name_of("refs/heads/x");
    sealed.update_ref(&name, base, OldValue::Missing).await.unwrap();
    assert!(sealed.update_ref(&name, tip, OldValue::Missing).await.is_err());
    assert!(sealed.update_ref(&name, tip, OldValue::At(tip)).await.is_err());
    sealed.update_ref(&name, tip, OldValue::At(base)).await.unwrap();
}

fn forward<'a>(url: &'a str, commit: &'a Sha, branch: &'a BranchName) -> PushSpec<'a> {
    PushSpec { url, branch, commit, update: BranchUpdate::FastForward, fence: None }
}

#[tokio::test]
async fn a_replacement_leaves_a_branch_alone_that_others_moved() {
    let story = Story::new().await;
    let Story { world, sealed, base, tip } = &story;
    world.git(".", &["init", "--quiet", "--bare", "remote.git"]).await;
    let url = world.path("remote.git").display().to_string();
    let name = branch("bottle/fix");
    let push = |commit: Sha, expected: Sha| {
        let (url, branch, env) = (&url, &name, world.user_env());
        async move {
            let update = BranchUpdate::Replace { expected: &expected };
            let spec = PushSpec { url, branch, commit: &commit, update, fence: None };
            sealed.push(spec, env, LIMIT).await.unwrap()
        }
    };
    sealed.push(forward(&url, tip, &name), world.user_env(), LIMIT).await.unwrap();
    assert_eq!(push(base.clone(), tip.clone()).await, PushOutcome::Updated);
    assert_eq!(push(base.clone(), tip.clone()).await, PushOutcome::UpToDate);
    let stale = push(tip.clone(), tip.clone()).await;
    assert!(matches!(&stale, PushOutcome::Rejected { .. }), "{stale:?}");
    let there = sealed.remote_branch(&url, &name, world.user_env(), LIMIT).await.unwrap();
    assert_eq!(there, RemoteBranch::At(base.clone()));
    let other = sealed.remote_branch(&url, &branch("other"), world.user_env(), LIMIT).await;
    assert_eq!(other.unwrap(), RemoteBranch::Absent);
}

/// Rules of the user's that would send an address which they produced elsewhere.
#[tokio::test]
async fn rules_that_rewrite_addresses_are_applied_once() {
    let story = Story::new().await;
    let Story { world, sealed, tip, .. } = &story;
    world.git(".", &["init", "--quiet", "--bare", "remote.git"]).await;
    let url = world.path("remote.git").display().to_string();
    let rules = "[url \"/nowhere\"]\n\tinsteadOf = /\n[url \"/elsewhere\"]\n\tpushInsteadOf = /\n";
    world.write("home/.gitconfig", rules);
    let name = branch("x");
    let outcome = sealed.push(forward(&url, tip, &name), world.user_env(), LIMIT).await.unwrap();
    assert_eq!(outcome, PushOutcome::Created);
    let there = sealed.remote_branch(&url, &name, world.user_env(), LIMIT).await.unwrap();
    assert_eq!(there, RemoteBranch::At(tip.clone()));
}

#[tokio::test]
async fn a_push_creates_updates_and_never_forces() {
    let story = Story::new().await;
    let Story { world, sealed, base, tip } = &story;
    world.git(".", &["init", "--quiet", "--bare", "remote.git"]).await;
    let url = world.path("remote.git").display().to_string();
    let name = branch("bottle/fix");
    let push = |commit: Sha| {
        let (url, name, env) = (&url, &name, world.user_env());
        async move { sealed.push(forward(url, &commit, name), env, LIMIT).await.unwrap() }
    };
    assert_eq!(push(base.clone()).await, PushOutcome::Created);
    assert_eq!(push(base.clone()).await, PushOutcome::UpToDate);
    assert_eq!(push(tip.clone()).await, PushOutcome::Updated);
    let back = push(base.clone()).await;
    assert!(
        matches!(&back, PushOutcome::Rejected { reason } if reason.contains("rejected")),
        "{back:?}"
    );
    assert_eq!(world.tip("remote.git", "refs/heads/bottle/fix").await, *tip);
}

#[tokio::test]
async fn what_the_other_side_refuses_is_a_rejection_with_its_reason() {
    let story = Story::new().await;
    let Story { world, sealed, tip, .. } = &story;
    world.git(".", &["init", "--quiet", "--bare", "remote.git"]).await;
    world.git("remote.git", &["config", "receive.denyCreates", "true"]).await;
    world.trap("remote.git/hooks/pre-receive");
    world.write("remote.git/hooks/pre-receive", "#!/bin/sh\necho protected >&2\nexit 1\n");
    let url = world.path("remote.git").display().to_string();
    let outcome =
        sealed.push(forward(&url, tip, &branch("x")), world.user_env(), LIMIT).await.unwrap();
    let reason = "[remote rejected] (pre-receive hook declined)".to_owned();
    assert_eq!(outcome, PushOutcome::Rejected { reason });
}

#[tokio::test]
async fn a_push_to_nowhere_is_an_error_and_no_rejection() {
    let story = Story::new().await;
    let Story { world, sealed, tip, .. } = &story;
    let url = world.path("gone.git").display().to_string();
    let error =
        sealed.push(forward(&url, tip, &branch("x")), world.user_env(), LIMIT).await.unwrap_err();
    assert!(matches!(error, GitError::Failed { .. }), "{error}");
}

#[tokio::test]
async fn every_command_can_be_recorded() {
    let story = Story::new().await;
    let Story { sealed, base, tip, .. } = &story;
    let records = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&records);
    let logged = sealed.clone().logged(Arc::new(move |record| sink.lock().unwrap().push(record)));
    logged.is_ancestor(base, tip).await.unwrap();
    let records = records.lock().unwrap();
    assert_eq!(records.len(), 1);
    assert!(records[0].command.contains("merge-base --is-ancestor"), "{}", records[0].command);
}

#[tokio::test]
async fn a_repository_is_made_once() {
    let world = World::new();
    world.sealed("host.git").await;
    let again = SealedRepo::init_bare(&world.path("host.git"), ObjectFormat::Sha1).await;
    assert!(matches!(again, Err(GitError::Prepare { .. })));
}

#[tokio::test]
async fn longer_object_names_work_too() {
    let world = World::new();
    let path = world.path("host.git");
    let sealed = SealedRepo::init_bare(&path, ObjectFormat::Sha256).await.unwrap();
    assert_eq!(sealed.resolve_commit("refs/heads/main").await.unwrap(), None);
    let missing = Sha::parse(&"1".repeat(64)).unwrap();
    assert_eq!(sealed.blob_sizes(&[missing]).await.unwrap(), [None]);
}

#[tokio::test]
async fn the_installed_git_will_do() {
    assert!(host::git::check_version().await.unwrap() >= host::git::MINIMUM);
}
