//! Nothing that configuration or a commit names is run: not in a sealed repository, not on a push, and
//! no hook or monitor in a person's repository.

use std::time::Duration;

use host::git::{BranchUpdate, FetchProgress, GitError, OldValue, PushOutcome, PushSpec};
use model::command::CommandExit;
use model::id::{BranchName, RemoteName};

use crate::world::{World, name_of};

const LIMIT: Duration = Duration::from_secs(300);
const HOOKS: [&str; 5] =
    ["reference-transaction", "post-update", "pre-push", "pre-auto-gc", "post-index-change"];

/// Settings that make git run `trap`, in the words of a configuration file.
fn hostile_settings(trap: &str) -> String {
    format!(
        "[core]\n\tfsmonitor = {trap}\n\tpager = {trap}\n\teditor = {trap}\n\tsshCommand = {trap}\n\
         \tgitProxy = {trap}\n\taskPass = {trap}\n\
         [diff]\n\texternal = {trap}\n[diff \"evil\"]\n\ttextconv = {trap}\n\tcommand = {trap}\n\
         [filter \"evil\"]\n\tclean = {trap}\n\tsmudge = {trap}\n\trequired = true\n\
         [gpg]\n\tprogram = {trap}\n[log]\n\tshowSignature = true\n\
         [credential]\n\thelper = {trap}\n[pager]\n\tlog = {trap}\n\tdiff-tree = {trap}\n"
    )
}

async fn fork_with_work(world: &World) -> (model::id::Sha, model::id::Sha, std::path::PathBuf) {
    world.init("fork").await;
    let base = world.commit("fork", "a.txt", "one\n").await;
    world.git(".", &["clone", "--quiet", "--no-hardlinks", "fork", "work"]).await;
    world.write("work/.gitattributes", "* filter=evil diff=evil\n");
    let tip = world.commit("work", "a.txt", "two\n").await;
    let bundle = world.bundle("work", "out.bundle", &["main", &format!("^{base}")]).await;
    (base, tip, bundle)
}

#[tokio::test]
async fn a_sealed_repository_runs_nothing_it_is_told_to() {
    let world = World::new();
    let (base, tip, bundle) = fork_with_work(&world).await;
    let sealed = world.sealed_over("host.git", "fork", &base).await;
    let trap = world.trap("trap");
    for hook in HOOKS {
        world.trap(&format!("host.git/hooks/{hook}"));
    }
    let own = std::fs::read_to_string(world.path("host.git/config")).unwrap();
    let settings = hostile_settings(trap.to_str().unwrap());
    world.write("host.git/config", &format!("{own}{settings}"));
    world.write("host.git/info/attributes", "* filter=evil diff=evil\n");

    let (src, dst) = (name_of("refs/heads/main"), name_of("refs/bottle/r1/main"));
    sealed.fetch_bundle(&bundle, &src, &dst).await.unwrap();
    sealed.update_ref(&name_of("refs/heads/x"), &tip, OldValue::Missing).await.unwrap();
    sealed.is_ancestor(&base, &tip).await.unwrap();
    assert_eq!(sealed.new_commits(&tip, std::slice::from_ref(&base), 10).await.unwrap().len(), 1);
    assert_eq!(sealed.changed_entries(&base, &tip).await.unwrap().len(), 2);
    assert!(!sealed.diff(&base, &tip, 1 << 20).await.unwrap().bytes.is_empty());
    assert!(sealed.read_blob(&tip, "a.txt", 100).await.unwrap().is_some());
    let blob = world.tip("work", "HEAD:a.txt").await;
    assert!(sealed.read_blobs(&[blob], 100).await.unwrap()[0].is_some());
    assert_eq!(world.marks(), "");

    // The traps are real: an ordinary call runs into them.
    world.git("host.git", &["update-ref", "refs/heads/y", tip.as_str()]).await;
    assert!(world.marks().contains("reference-transaction"), "{}", world.marks());
}

#[tokio::test]
async fn a_push_runs_no_hook_of_anybody() {
    let world = World::new();
    let (base, _, _) = fork_with_work(&world).await;
    let sealed = world.sealed_over("host.git", "fork", &base).await;
    world.trap("hooks/pre-push");
    world.trap("host.git/hooks/pre-push");
    let hooks = world.path("hooks");
    let settings = format!(
        "[core]\n\thooksPath = {}\n[push]\n\tfollowTags = true\n\tgpgSign = true\n\tpushOption = x\n",
        hooks.display()
    );
    world.write("home/.gitconfig", &settings);
    world.git(".", &["init", "--quiet", "--bare", "remote.git"]).await;
    let url = world.path("remote.git").display().to_string();
    let branch = BranchName::parse("x").unwrap();
    let update = BranchUpdate::FastForward;
    let spec = PushSpec { url: &url, branch: &branch, commit: &base, update, fence: None };
    let outcome = sealed.push(spec, world.user_env(), LIMIT).await.unwrap();
    assert_eq!(outcome, PushOutcome::Created);
    assert_eq!(world.marks(), "");
}

#[tokio::test]
async fn a_persons_repository_is_fetched_without_hooks_or_monitors() {
    let world = World::new();
    world.init("upstream").await;
    let tip = world.commit("upstream", "a", "1").await;
    world.init("fork").await;
    let upstream = world.path("upstream").display().to_string();
    world.git("fork", &["remote", "add", "upstream", &upstream]).await;
    let trap = world.trap("trap");
    world.git("fork", &["config", "core.fsmonitor", trap.to_str().unwrap()]).await;
    for hook in HOOKS {
        world.trap(&format!("fork/.git/hooks/{hook}"));
    }
    let fork = world.user_repo("fork").await;
    fork.fetch(&RemoteName::parse("upstream").unwrap(), LIMIT, &FetchProgress::default())
        .await
        .unwrap();
    let found = fork.resolve_commit("refs/remotes/upstream/main").await.unwrap();
    assert_eq!(found, Some(tip));
    assert_eq!(world.marks(), "");
}

#[tokio::test]
async fn a_bundle_with_a_poisoned_tree_is_refused() {
    let world = World::new();
    world.init("work").await;
    world.commit("work", "a", "1").await;
    // Git's own commands will not make a tree with an entry named .git, so it is written by hand.
    let blob = world.tip("work", "HEAD:a").await;
    let raw: Vec<u8> = (0..40)
        .step_by(2)
        .map(|at| u8::from_str_radix(&blob.as_str()[at..at + 2], 16).unwrap())
        .collect();
    let mut tree = b"100644 .git\0".to_vec();
    tree.extend(raw);
    std::fs::write(world.path("tree"), tree).unwrap();
    let file = world.path("tree").display().to_string();
    let tree = world.git("work", &["hash-object", "-w", "-t", "tree", "--literally", &file]).await;
    let bad = world.git("work", &["commit-tree", "-m", "bad", &tree]).await;
    world.git("work", &["update-ref", "refs/heads/bad", &bad]).await;
    let bundle = world.bundle("work", "out.bundle", &["refs/heads/bad"]).await;

    let sealed = world.sealed("host.git").await;
    let (src, dst) = (name_of("refs/heads/bad"), name_of("refs/bottle/r1/bad"));
    let error = sealed.fetch_bundle(&bundle, &src, &dst).await.unwrap_err();
    assert!(error.to_string().contains("hasDotgit"), "{error}");
    assert_eq!(sealed.resolve_commit("refs/bottle/r1/bad").await.unwrap(), None);
}

#[tokio::test]
async fn a_bundle_that_builds_on_nothing_we_have_is_refused() {
    let world = World::new();
    let (_, _, bundle) = fork_with_work(&world).await;
    let sealed = world.sealed("host.git").await;
    let (src, dst) = (name_of("refs/heads/main"), name_of("refs/bottle/r1/main"));
    let error = sealed.fetch_bundle(&bundle, &src, &dst).await.unwrap_err();
    let is_refusal = |status: &CommandExit| *status != CommandExit::Exited(0);
    assert!(matches!(&error, GitError::Failed { status, .. } if is_refusal(status)), "{error}");
}
