//! The person's checkout, which is never touched, and the mirror, which saves work but never remembers too much.

use std::fs;
use std::path::Path;

use testkit::tree::picture;
use testkit::{Fork, Hermetic};

use super::{make, make_of};
use crate::support::Project;

#[tokio::test]
async fn a_checkout_on_another_branch_stays_as_it_is() {
    check_untouched(|hermetic| clean(hermetic).on_branch("draft")).await;
}

#[tokio::test]
async fn a_detached_checkout_stays_as_it_is() {
    check_untouched(|hermetic| clean(hermetic).detached()).await;
}

#[tokio::test]
async fn a_dirty_checkout_stays_as_it_is() {
    check_untouched(|hermetic| clean(hermetic).dirty()).await;
}

#[tokio::test]
async fn a_checkout_that_is_behind_stays_as_it_is() {
    check_untouched(|hermetic| clean(hermetic).behind_origin()).await;
}

/// Every byte of it, those of its repository included, and what git says about it.
async fn check_untouched(fork: impl FnOnce(&Hermetic) -> Fork) {
    let project = Project::new(fork).await;
    let status = |project: &Project| {
        let ask = ["--no-optional-locks", "status", "--porcelain=v2", "--branch", "--show-stash"];
        project.fork.checkout.git(&ask)
    };
    let before = (status(&project), picture(project.fork.checkout.dir()));
    let made = make_of(project, "workspace").await;
    let after = (status(&made.project), picture(made.project.fork.checkout.dir()));
    assert_eq!(before.0, after.0);
    assert!(before.1 == after.1, "something in the checkout has changed");
    assert_eq!(made.git.head(), made.project.pins.base.as_str());
    assert_eq!(made.git.git(&["status", "--porcelain"]), "");
}

#[tokio::test]
async fn a_folder_may_have_an_odd_name() {
    for name in ["my fork +1", "it's \"quoted\"", "ünïcode", "-dash"] {
        let made = make(|hermetic| Fork::named(hermetic, name).clean_merge()).await;
        let odd = made.project.hermetic.root().join("run").join(name);
        made.project.workspace_at(&odd).await.expect("a workspace");
        assert!(odd.join("FORK.md").exists(), "{name}");
    }
}

#[tokio::test]
async fn the_mirror_serves_again_and_only_grows_by_what_is_new() {
    let made = make(clean).await;
    let first = packs(&made.project.mirror());
    let mut project = made.project;
    project.fork.upstream_commit("upstream.txt", "1\n2\n3\n", "third");
    project.pin_again();
    let made = make_of(project, "second").await;
    let second = packs(&made.project.mirror());
    assert!(first.iter().all(|pack| second.contains(pack)) && first.len() < second.len());
    let pins = &made.project.pins;
    assert_eq!(made.git.sha("upstream/main"), pins.upstream.as_str());
    assert_eq!(made.git.git(&["log", "--format=%s", "main..upstream/main"]), "third\nsecond");
    assert_eq!(made.git.git(&["fsck", "--strict", "--no-dangling"]), "");
    let third = make_of(made.project, "third").await;
    assert_eq!(packs(&third.project.mirror()), second, "nothing was new");
}

#[tokio::test]
async fn what_upstream_took_back_is_forgotten() {
    let made = make(clean).await;
    let dropped = made.project.pins.upstream.to_string();
    assert!(made.has(&dropped));
    let mut project = made.project;
    let upstream = project.fork.upstream.dir().to_path_buf();
    let parent = project.fork.upstream.sha("main~1");
    project.fork.upstream.git(&["update-ref", "refs/heads/main", &parent]);
    let rewriter = testkit::Repo::init(project.hermetic.root().join("rewriter"));
    let address = format!("file://{}", upstream.display());
    rewriter.git(&["fetch", "--quiet", &address, "main"]);
    rewriter.git(&["reset", "--quiet", "--hard", "FETCH_HEAD"]);
    rewriter.write("upstream.txt", "rewritten\n").commit("second, rewritten");
    rewriter.git(&["push", "--quiet", &address, "HEAD:main"]);
    project.pin_again();
    let made = make_of(project, "second").await;
    assert_eq!(made.git.git(&["log", "--format=%s", "main..upstream/main"]), "second, rewritten");
    assert!(!made.has(&dropped), "it was taken back");
    assert!(made.project.fork.checkout.try_git(&["cat-file", "-e", &dropped]).is_ok());
}

/// Somebody was killed while they packed: the pins tell of commits that are not there, and half a pack lies about.
#[tokio::test]
async fn a_mirror_that_was_left_half_done_is_made_anew() {
    let mut project = make(clean).await.project;
    let mirror = project.mirror();
    let lost = project.fork.upstream_commit("upstream.txt", "lost\n", "lost");
    fs::write(mirror.join("pins"), format!("{}\n{lost}\n", project.pins.base)).expect("pins");
    fs::write(mirror.join("objects/pack/tmp_pack_half"), "half a pack").expect("half a pack");
    project.pin_again();
    let made = make_of(project, "second").await;
    assert_eq!(made.git.git(&["log", "--format=%s", "main..upstream/main"]), "lost\nsecond");
    assert!(!made.path.join(".git/objects/pack/tmp_pack_half").exists());
    assert_eq!(made.git.git(&["fsck", "--strict", "--no-dangling"]), "");
}

#[tokio::test]
async fn two_workspaces_can_be_made_at_once() {
    let project = Project::new(clean).await;
    let paths = ["one", "two"].map(|name| project.hermetic.root().join("run").join(name));
    let (one, two) = tokio::join!(project.workspace_at(&paths[0]), project.workspace_at(&paths[1]));
    assert!(one.is_ok() && two.is_ok());
    for path in &paths {
        let repo = testkit::Repo::open(path);
        assert_eq!(repo.git(&["status", "--porcelain"]), "");
        assert_eq!(repo.sha("upstream/main"), project.pins.upstream.as_str());
    }
}

fn packs(mirror: &Path) -> Vec<String> {
    let entries = fs::read_dir(mirror.join("objects/pack")).expect("packs");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".pack"))
        .collect();
    names.sort();
    names
}

fn clean(hermetic: &Hermetic) -> Fork {
    Fork::new(hermetic).clean_merge()
}
