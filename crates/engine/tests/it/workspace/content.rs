//! What is in a workspace, and above all what is not.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use engine::workspace::AGENT_IDENTITY;
use sandbox::spec::BoxUser;
use testkit::repo::{ForkPlan, ObjectFormat};
use testkit::tree::{entries, holding};
use testkit::{Fork, Hermetic};

use super::{make, make_of};
use crate::support::{Project, Rig, on_every_backend};

#[tokio::test]
async fn the_branch_is_checked_out_and_upstream_has_its_name() {
    let made = make(clean).await;
    let pins = &made.project.pins;
    assert_eq!(made.git.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    let refs = made.git.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
    let wanted =
        format!("refs/heads/main {}\nrefs/remotes/upstream/main {}", pins.base, pins.upstream);
    assert_eq!(refs, wanted);
    assert_eq!(made.git.git(&["status", "--porcelain", "--ignored"]), "");
    assert_eq!(made.git.read("FORK.md"), made.project.fork.checkout.read("FORK.md"));
    assert_eq!(made.git.git(&["fsck", "--strict", "--no-dangling"]), "");
}

#[tokio::test]
async fn nothing_leads_back() {
    let made = make(clean).await;
    let git_dir = made.path.join(".git");
    assert_eq!(made.git.git(&["remote"]), "");
    for name in ["objects/info/alternates", "logs", "FETCH_HEAD", "ORIG_HEAD", "shallow", "hooks"] {
        assert!(!git_dir.join(name).exists(), "{name}");
    }
    let here: BTreeSet<_> = fs::read_dir(&git_dir)
        .expect("the repository")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(here, ["HEAD", "config", "index", "objects", "refs"].map(str::to_owned).into());
}

#[tokio::test]
async fn the_configuration_is_ours() {
    let made = make(clean).await;
    let (name, email) = AGENT_IDENTITY;
    let settings = made.git.git(&["config", "--local", "--list"]);
    let sections: BTreeSet<&str> =
        settings.lines().filter_map(|line| line.split('.').next()).collect();
    assert_eq!(sections, ["advice", "core", "gc", "maintenance", "user"].into());
    assert_eq!(made.git.git(&["config", "user.name"]), name);
    assert_eq!(made.git.git(&["config", "user.email"]), email);
}

#[tokio::test]
async fn no_file_is_shared_with_the_person_or_the_mirror() {
    let made = make(clean).await;
    let files = |root: &Path| -> BTreeSet<(u64, u64)> {
        let metas = entries(root).into_iter().map(|path| fs::symlink_metadata(path).expect("meta"));
        metas.filter(fs::Metadata::is_file).map(|meta| (meta.dev(), meta.ino())).collect()
    };
    let own = files(&made.path);
    for other in [made.project.fork.checkout.dir(), &made.project.mirror()] {
        assert!(own.is_disjoint(&files(other)), "{}", other.display());
    }
    for path in entries(&made.path) {
        let meta = fs::symlink_metadata(&path).expect("meta");
        assert!(meta.is_dir() || meta.nlink() == 1, "{}", path.display());
    }
}

#[tokio::test]
async fn no_path_of_this_host_is_told() {
    let made = make(clean).await;
    let hermetic = made.project.hermetic.root().to_string_lossy().into_owned();
    let folder = made.project.hermetic.root().file_name().expect("a name").to_string_lossy();
    for text in [hermetic.as_str(), &folder, "/forge/", "upstream.git", "origin.git"] {
        assert!(holding(&made.path, text).is_empty(), "{text}");
    }
}

#[tokio::test]
async fn only_what_is_wanted_comes_along() {
    let project = Project::new(|hermetic| clean(hermetic).on_branch("draft")).await;
    let checkout = &project.fork.checkout;
    let draft = checkout.head();
    checkout.write("stashed.txt", "stashed\n").git(&["add", "stashed.txt"]);
    checkout.git(&["stash", "--quiet"]);
    let stash = checkout.sha("stash");
    checkout.git(&["tag", "of-mine"]);
    checkout.write("loose.txt", "nobody reaches this\n");
    let loose = checkout.git(&["hash-object", "-w", "loose.txt"]);
    let blob = checkout.git(&["rev-parse", "draft:draft.txt"]);
    let made = make_of(project, "workspace").await;
    for object in [&draft, &stash, &loose, &blob] {
        assert!(made.project.fork.checkout.try_git(&["cat-file", "-e", object]).is_ok());
        assert!(!made.has(object), "{object}");
    }
    assert_eq!(made.git.git(&["tag"]), "");
}

#[tokio::test]
async fn links_stay_links_wherever_they_lead() {
    let made = make(|hermetic| clean(hermetic).dangling_symlink()).await;
    let target = |name| fs::read_link(made.path.join(name)).expect("a link");
    assert_eq!(target("dangling"), Path::new("no/such/file"));
    assert_eq!(target("outside"), Path::new("../../.."));
    let user = BoxUser::of_caller();
    assert_eq!(fs::symlink_metadata(made.path.join("outside")).expect("meta").uid(), user.uid);
    let outside = fs::metadata(made.project.hermetic.root()).expect("meta");
    assert_eq!(outside.uid(), host::env::uid(), "given away through a link");
}

#[tokio::test]
async fn every_file_belongs_to_the_user_of_the_box() {
    let made = make(|hermetic| clean(hermetic).dangling_symlink()).await;
    let user = BoxUser::of_caller();
    for path in entries(&made.path).into_iter().chain([made.path.clone()]) {
        let meta = fs::symlink_metadata(&path).expect("meta");
        assert_eq!((meta.uid(), meta.gid()), (user.uid, user.gid), "{}", path.display());
    }
}

#[tokio::test]
async fn submodules_and_large_files_are_told() {
    let project = Project::new(|hermetic| clean(hermetic).submodule().lfs()).await;
    let path = project.hermetic.root().join("workspace");
    let notes = project.workspace_at(&path).await.expect("a workspace");
    assert_eq!((notes.submodules, notes.lfs_pointers), (vec!["vendor/lib".to_owned()], true));
    assert_eq!(fs::read_dir(path.join("vendor/lib")).expect("a folder").count(), 0);
    assert!(fs::read_to_string(path.join("model.bin")).expect("a pointer").starts_with("version "));
    let plain = Project::new(Fork::new).await;
    let path = plain.hermetic.root().join("workspace");
    assert_eq!(plain.workspace_at(&path).await.expect("a workspace"), Default::default());
}

#[tokio::test]
async fn the_newer_hash_works() {
    let plan = ForkPlan { object_format: ObjectFormat::Sha256, ..ForkPlan::default() };
    let made = make(|hermetic| Fork::build(hermetic, plan).clean_merge()).await;
    assert_eq!(made.git.head().len(), 64);
    assert_eq!(made.git.git(&["status", "--porcelain"]), "");
    assert_eq!(made.git.sha("upstream/main"), made.project.pins.upstream.as_str());
}

on_every_backend!(git_works_in_the_box_without_a_question);

/// The folder of the run is closed to everybody but its owner.
async fn git_works_in_the_box_without_a_question(rig: &Rig) {
    let mode = fs::metadata(rig.dir()).expect("meta").mode() & 0o777;
    assert_eq!(mode, 0o700, "a folder that others cannot enter");
    let project = Project::new(clean).await;
    project.fill(rig).await;
    let script = "git status --porcelain && git log --format=%s main..upstream/main && \
        git merge --quiet --no-edit upstream/main && git log -1 --format='%an <%ae> %cn %s' && git remote";
    let ran = rig.sh(script).run_ok().await;
    let (name, email) = AGENT_IDENTITY;
    assert_eq!(
        ran.stdout,
        format!("second\n{name} <{email}> {name} Merge remote-tracking branch 'upstream/main'\n")
    );
}

fn clean(hermetic: &Hermetic) -> Fork {
    Fork::new(hermetic).clean_merge()
}
