//! `forklift delta export`, `forklift delta rebase` and the page: the changes of a fork as patches, and its size over time.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::delta::{Keeper, PARSER};

/// A fork with changes of every kind: lines of two commits in one place, a renamed, a deleted, a binary and a linked file.
fn rich_fork() -> Keeper {
    let keeper = Keeper::new();
    keeper.fork().upstream_commit("src/a.c", "one\ntwo\nthree\nfour\nfive\n", "a file");
    keeper.fork().upstream_commit("old.c", PARSER, "a parser");
    keeper.fork().upstream_commit("gone.c", "a\nb\n", "another file");
    keeper.sync();
    keeper.commit("src/a.c", "one\nours\nmore\nthree\nfive\n", "ours and more");
    keeper.commit("src/a.c", "one\nours\neven more\nthree\nfive\nsix", "even more");
    keeper.checkout().git(&["mv", "old.c", "new.c"]);
    keeper.commit("new.c", &format!("{PARSER}int more;\n"), "move it");
    keeper.checkout().git(&["rm", "-q", "gone.c"]);
    keeper.fork().fork_commit("without it");
    keeper.commit("logo.bin", "\0\x01\x02", "a picture");
    std::os::unix::fs::symlink("src/a.c", keeper.checkout().dir().join("link")).expect("a link");
    keeper.fork().fork_commit("a link");
    keeper
}

/// The patches of a series, in order.
fn series(folder: &std::path::Path) -> Vec<PathBuf> {
    let list = fs::read_to_string(folder.join("series")).expect("a list");
    list.lines().map(|name| folder.join(name)).collect()
}

#[test]
fn an_exported_series_gives_the_forks_tree() {
    let keeper = rich_fork();
    let folder = keeper.0.hermetic.root().join("patches");
    let output = keeper.run(&["delta", "export", &folder.to_string_lossy()]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("the series gives the fork's tree"), "{}", output.stdout);
    let patches = series(&folder);
    assert_eq!(patches.len(), 7, "{patches:?}");
    let first = fs::read_to_string(&patches[0]).expect("a patch");
    assert!(first.starts_with("Description: ") && first.contains("\nAuthor: "), "{first}");
    // The same by git alone, in another work tree.
    let checkout = keeper.checkout();
    let tree = checkout.git(&["rev-parse", "HEAD^{tree}"]);
    checkout.git(&["fetch", "-q", "upstream"]);
    checkout.git(&["checkout", "-q", "--detach", "upstream/main"]);
    for patch in patches {
        checkout.git(&["apply", "--index", "--whitespace=nowarn", &patch.to_string_lossy()]);
    }
    assert_eq!(checkout.git(&["write-tree"]), tree);
}

#[test]
fn a_folder_with_files_is_not_written_to() {
    let keeper = Keeper::new();
    let folder = keeper.0.hermetic.root().join("patches");
    fs::create_dir_all(&folder).expect("made");
    fs::write(folder.join("mine"), "mine").expect("written");
    let output = keeper.run(&["delta", "export", &folder.to_string_lossy()]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("it is not empty"), "{}", output.stderr);
    assert_eq!(fs::read_dir(&folder).expect("read").count(), 1);
}

#[test]
fn submodules_that_no_patch_has_are_named() {
    let keeper = Keeper::new();
    keeper.commit("src/parse.c", PARSER, "a parser");
    let gitlink = format!("160000,{},vendor/lib", keeper.checkout().head());
    keeper.checkout().git(&["update-index", "--add", "--cacheinfo", &gitlink]);
    keeper.checkout().commit_index("a submodule");
    keeper.push();
    let folder = keeper.0.hermetic.root().join("patches");
    let output = keeper.run(&["delta", "export", &folder.to_string_lossy()]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("without its submodules"), "{}", output.stdout);
    assert!(output.stderr.contains("no patch has the submodule vendor/lib"), "{}", output.stderr);
}

/// The verdict about each change.
fn verdicts(keeper: &Keeper) -> Vec<(String, String)> {
    let event = keeper.delta(&["delta", "rebase"]);
    let row = |row: &Value| {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        (text(&row["change"]), text(&row["verdict"]["kind"]))
    };
    event["changes"].as_array().expect("a list").iter().map(row).collect()
}

#[test]
fn every_change_has_a_verdict_of_its_own_on_the_target() {
    let keeper = Keeper::new();
    keeper.fork().upstream_commit("src/a.c", "one\ntwo\nthree\n", "a file");
    keeper.sync();
    let taken = keeper.commit("src/parse.c", PARSER, "a parser");
    keeper.commit("ours.c", "int ours;\n", "ours alone");
    keeper.commit("src/a.c", "one\nours\nthree\n", "our two");
    keeper.upstream_takes(&taken, &[]);
    keeper.fork().upstream_commit("src/a.c", "one\ntheirs\nthree\n", "their two");
    let found = verdicts(&keeper);
    let of = |name: &str| {
        let row = found.iter().find(|row| row.0 == name);
        row.unwrap_or_else(|| panic!("{name} in {found:?}")).1.clone()
    };
    assert_eq!(of("a parser"), "empty");
    assert_eq!(of("ours alone"), "applies");
    assert_eq!(of("our two"), "conflicts");
    let output = keeper.run(&["delta", "rebase"]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert!(output.stdout.contains("src/a.c"), "{}", output.stdout);
}

#[test]
fn a_rebase_of_changes_that_apply_changes_nothing_here() {
    let keeper = Keeper::new();
    keeper.commit("ours.c", "int ours;\n", "ours alone");
    keeper.fork().upstream_commit("later.c", "later\n", "later");
    let before = keeper.checkout().git(&["for-each-ref", "refs/heads"]);
    let output = keeper.run(&["delta", "rebase"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(keeper.checkout().git(&["for-each-ref", "refs/heads"]), before);
}

#[test]
fn a_rebase_leaves_its_result_as_a_branch_that_did_not_exist() {
    let keeper = Keeper::new();
    keeper.commit("ours.c", "int ours;\n", "ours alone");
    keeper.fork().upstream_commit("later.c", "later\n", "later");
    let checkout = keeper.checkout();
    let (head, branch) = (checkout.head(), checkout.git(&["symbolic-ref", "HEAD"]));
    let output = keeper.run(&["delta", "rebase", "--branch", "rebased"]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!((checkout.head(), checkout.git(&["symbolic-ref", "HEAD"])), (head, branch));
    assert_eq!(checkout.git(&["status", "--porcelain"]), "");
    assert_eq!(checkout.git(&["show", "rebased:ours.c"]), "int ours;");
    assert_eq!(checkout.git(&["show", "rebased:later.c"]), "later");
    let subjects = checkout.git(&["log", "--format=%s", "upstream/main..rebased"]);
    assert!(subjects.lines().any(|subject| subject == "ours alone"), "{subjects}");
    checkout.git(&["fsck", "--strict", "rebased"]);
    let made = checkout.git(&["rev-parse", "rebased"]);
    let again = keeper.run(&["delta", "rebase", "--branch", "rebased"]);
    assert_eq!(again.status, Some(2), "{}", again.snapshot());
    assert!(again.stderr.contains("branch rebased exists"), "{}", again.stderr);
    assert_eq!(checkout.git(&["rev-parse", "rebased"]), made);
}

#[test]
fn a_change_that_a_rule_leaves_out_is_not_called_resolved() {
    let keeper = Keeper::new();
    keeper.fork().upstream_commit("src/a.c", "one\ntwo\nthree\n", "a file");
    keeper.sync();
    keeper.commit("src/a.c", "one\nours\nthree\n", "our two");
    let rule = "---\nresolve:\n  - {path: src/a.c, take: theirs}\n---\nour fork\n";
    keeper.commit("FORK.md", rule, "a rule");
    keeper.fork().upstream_commit("src/a.c", "one\ntheirs\nthree\n", "their two");
    let found = verdicts(&keeper);
    assert!(found.iter().any(|row| row.0 == "our two" && row.1 == "left-out"), "{found:?}");
    let output = keeper.run(&["delta", "rebase"]);
    assert!(output.stdout.contains("0 resolved, 1 left out"), "{}", output.stdout);
}

#[test]
fn the_page_shows_the_size_after_each_merge_of_upstream() {
    let keeper = Keeper::new();
    for number in 1..4 {
        let text: String = (0..number * 10).map(|line| format!("int line_{line};\n")).collect();
        keeper.commit("ours.c", &text, &format!("ours, {number}"));
        keeper.fork().upstream_commit("theirs.c", &text, "theirs");
        keeper.sync();
    }
    let file = keeper.0.hermetic.root().join("delta.html");
    let output = keeper.run(&["delta", "--html", &file.to_string_lossy()]);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let page = fs::read_to_string(&file).expect("a page");
    assert_eq!(page.matches("<circle").count(), 4, "{page}");
    assert!(page.contains("ours, 3") && page.contains("<polyline"), "{page}");
    let missing = keeper.run(&["delta", "--html", "/no/such/folder/delta.html"]);
    assert_eq!(missing.status, Some(2), "{}", missing.snapshot());
}

#[test]
fn files_that_conflicted_in_past_merges_are_counted() {
    let keeper = Keeper::new();
    keeper.fork().upstream_commit("src/a.c", "one\ntwo\nthree\n", "a file");
    keeper.sync();
    keeper.commit("src/a.c", "one\nours\nthree\n", "our two");
    keeper.commit("calm.c", "int calm;\n", "calm");
    keeper.fork().upstream_commit("src/a.c", "one\ntheirs\nthree\n", "their two");
    let checkout = keeper.checkout();
    checkout.git(&["fetch", "-q", "upstream"]);
    assert!(checkout.try_git(&["merge", "-q", "upstream/main"]).is_err());
    checkout.write("src/a.c", "one\nours\nthree\n").commit("merge upstream");
    keeper.push();
    // The second time what is kept is used.
    for _ in 0..2 {
        let event = keeper.delta(&["delta"]);
        let changes = event["delta"]["changes"].as_array().expect("a list");
        let of = |name: &str| {
            let change = changes.iter().find(|change| change["name"] == name);
            change.unwrap_or_else(|| panic!("{name} in {changes:#?}"))["conflicts"].clone()
        };
        assert_eq!((of("our two"), of("calm")), (1.into(), 0.into()));
        assert_eq!(event["delta"]["conflict_paths"][0]["path"], "src/a.c");
    }
}
