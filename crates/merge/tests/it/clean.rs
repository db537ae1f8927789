//! Merging without a work tree does what git does with one, and runs nothing.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use merge::clean::{ConflictKind, MergeAttempt};
use merge::path::TreePath;
use testkit::Repo;

use crate::world::{FORK, UPSTREAM, World};

const TEN: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n";

#[tokio::test]
async fn a_clean_merge_has_the_tree_that_git_would_make() {
    let world = World::new(&[("a.txt", TEN), ("moved.txt", &TEN.repeat(3)), ("gone.txt", "x\n")]);
    world.write(FORK, "a.txt", TEN.replace("one", "fork's one"));
    world.write(FORK, "moved.txt", TEN.repeat(3) + "of the fork\n");
    world.write(FORK, "fork.txt", "fork\n");
    world.write(UPSTREAM, "a.txt", TEN.replace("ten", "upstream's ten"));
    world.on(UPSTREAM).git(&["mv", "moved.txt", "renamed.txt"]);
    world.remove(UPSTREAM, "gone.txt");
    let MergeAttempt::Clean { commit, tree } = world.attempt().await else { panic!("not clean") };
    let by_git = world.merged_by_git();
    assert_eq!(tree.as_str(), world.repo.git(&["rev-parse", &format!("{by_git}^{{tree}}")]));
    let sealed = world.sealed().await;
    let facts = sealed.new_commits(&commit, &[], 1).await.unwrap();
    assert_eq!(facts[0].parents, [world.sha(FORK), world.sha(UPSTREAM)]);
    assert_eq!(
        (facts[0].subject.as_str(), facts[0].author.name.as_str()),
        ("Merge upstream", "Bot")
    );
    assert_eq!(sealed.resolve_commit("refs/merge/attempt").await.unwrap(), Some(commit.clone()));
    assert_eq!(world.attempt().await, MergeAttempt::Clean { commit, tree });
}

#[tokio::test]
async fn a_ref_that_points_elsewhere_is_not_moved() {
    let world = World::new(&[("a.txt", TEN)]);
    world.write(FORK, "fork.txt", "1\n");
    world.write(UPSTREAM, "up.txt", "1\n");
    world.attempt().await;
    let before = world.sealed().await.resolve_commit("refs/merge/attempt").await.unwrap();
    let name = host::git::RefName::parse("refs/merge/attempt").unwrap();
    let identity = host::git::GitIdentity { name: "Other".into(), email: "o@example.com".into() };
    let when = jiff::Timestamp::UNIX_EPOCH;
    let wish = merge::clean::MergeOptions { message: "x", identity: &identity, when, name: &name };
    let sealed = world.sealed().await;
    let (base, upstream) = (world.sha(FORK), world.sha(UPSTREAM));
    assert!(merge::clean::try_merge(&sealed, &base, &upstream, wish).await.is_err());
    assert_eq!(sealed.resolve_commit("refs/merge/attempt").await.unwrap(), before);
}

#[tokio::test]
async fn every_kind_of_conflict_is_told() {
    let world = World::new(&[
        ("content.txt", TEN),
        ("deleted-upstream.txt", "x\n"),
        ("deleted-here.txt", "y\n"),
        ("binary", "\0one"),
        ("renamed", &TEN.repeat(2)),
        ("renamed-deleted", &TEN.repeat(4)),
        ("type", "z\n"),
        ("dir/file", TEN),
    ]);
    gitlink(&world.repo, '1');
    world.repo.git(&["branch", "--force", UPSTREAM]);
    for (branch, word) in [(FORK, "fork"), (UPSTREAM, "upstream")] {
        let repo = world.on(branch);
        repo.write("content.txt", TEN.replace("two", word)).write("new.txt", word);
        repo.write("binary", format!("\0{word}"));
        repo.git(&["mv", "renamed", &format!("renamed-by-{word}")]);
        let (gone, kept) = match branch {
            FORK => ("deleted-here.txt", "deleted-upstream.txt"),
            _ => ("deleted-upstream.txt", "deleted-here.txt"),
        };
        repo.git(&["rm", "--quiet", gone]);
        repo.write(kept, "changed\n");
        if branch == FORK {
            repo.git(&["mv", "renamed-deleted", "renamed-only-here"]);
            fs::remove_file(repo.dir().join("type")).unwrap();
            symlink("somewhere", repo.dir().join("type")).unwrap();
            repo.write("dir/new", "in the old folder\n");
        } else {
            repo.git(&["rm", "--quiet", "renamed-deleted"]);
            repo.write("type", "zz\n").git(&["mv", "dir", "folder"]);
        }
        gitlink(repo, if branch == FORK { '2' } else { '3' });
    }
    let MergeAttempt::Conflicts(conflicts) = world.attempt().await else { panic!("clean") };
    let found: Vec<_> = conflicts.iter().map(|one| (one.path.to_string(), one.kind)).collect();
    let expected = [
        ("binary", ConflictKind::Binary),
        ("content.txt", ConflictKind::Content),
        ("deleted-here.txt", ConflictKind::DeleteModify),
        ("deleted-upstream.txt", ConflictKind::ModifyDelete),
        ("folder/new", ConflictKind::DirectoryRename),
        ("new.txt", ConflictKind::AddAdd),
        ("renamed", ConflictKind::RenameRename),
        ("renamed-only-here", ConflictKind::RenameDelete),
        ("sub", ConflictKind::Submodule),
        ("type", ConflictKind::Modes),
    ];
    assert_eq!(found, expected.map(|(path, kind)| (path.to_owned(), kind)));
    let renamed = conflicts.iter().find(|one| one.kind == ConflictKind::RenameRename).unwrap();
    let also = ["renamed-by-fork", "renamed-by-upstream"].map(TreePath::new);
    assert_eq!(renamed.also, also);
    assert_eq!(world.sealed().await.resolve_commit("refs/merge/attempt").await.unwrap(), None);
}

#[tokio::test]
async fn a_new_mode_and_new_content_merge() {
    let world = World::new(&[("run.sh", TEN)]);
    let file = world.on(FORK).dir().join("run.sh");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    world.repo.commit("make it run");
    world.write(UPSTREAM, "run.sh", TEN.replace("two", "2"));
    assert!(matches!(world.attempt().await, MergeAttempt::Clean { .. }));
}

#[tokio::test]
async fn odd_names_come_out_as_they_are() {
    let names: [&[u8]; 4] = [b"a b", b"new\nline", b"tab\tquote\"", b"\xff\xfe"];
    let world = World::new(&[("x", "x\n")]);
    for name in names {
        fs::write(world.odd_file(name), "one\n").unwrap();
    }
    world.repo.commit("odd names");
    world.repo.git(&["branch", "--force", UPSTREAM]);
    for branch in [FORK, UPSTREAM] {
        world.on(branch);
        for name in names {
            fs::write(world.odd_file(name), format!("{branch}\n")).unwrap();
        }
        world.repo.commit("change all");
    }
    let MergeAttempt::Conflicts(conflicts) = world.attempt().await else { panic!("clean") };
    let found: Vec<&[u8]> = conflicts.iter().map(|one| one.path.as_bytes()).collect();
    assert_eq!(found, names);
}

#[tokio::test]
async fn histories_without_a_common_commit_are_unrelated() {
    let world = World::new(&[("x", "x\n")]);
    world.repo.git(&["checkout", "--quiet", "--orphan", "other"]);
    world.repo.commit("another first");
    world.repo.git(&["branch", "--force", UPSTREAM]);
    assert_eq!(world.attempt().await, MergeAttempt::Unrelated);
}

/// Both the attributes in the tree and settings in the repository that lends its objects name drivers.
#[tokio::test]
async fn merge_drivers_and_filters_run_nowhere() {
    let attributes = "* merge=evil diff=evil filter=evil\n";
    let world = World::new(&[(".gitattributes", attributes), ("f", TEN), ("u", "a\n")]);
    let marker = world.hermetic.root().join("marker");
    world.write(FORK, "f", TEN.replace("one", "fork's"));
    world.write(UPSTREAM, "f", TEN.replace("ten", "upstream's"));
    for setting in
        ["merge.evil.driver", "diff.evil.command", "diff.evil.textconv", "filter.evil.clean"]
    {
        world.repo.git(&["config", setting, &format!("touch '{}'; cat %A", marker.display())]);
    }
    let MergeAttempt::Clean { commit, .. } = world.attempt().await else { panic!("not clean") };
    assert!(!world.contract(&commit, &[]).await.lost);
    assert!(!marker.exists());
}

/// An attribute may ask git to unite both sides of a conflict by itself; it is not asked.
#[tokio::test]
async fn an_attribute_resolves_no_conflict() {
    let world = World::new(&[(".gitattributes", "f merge=union\n"), ("f", "one\n")]);
    world.write(FORK, "f", "fork\n");
    world.write(UPSTREAM, "f", "upstream\n");
    assert!(matches!(world.attempt().await, MergeAttempt::Conflicts(_)));
}

fn gitlink(repo: &Repo, digit: char) {
    let id: String = std::iter::repeat_n(digit, 40).collect();
    fs::create_dir_all(repo.dir().join("sub")).unwrap();
    repo.git(&["add", "--all", "--", ".", ":!sub"]);
    repo.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{id},sub")]);
    repo.commit_index("with a submodule");
}
