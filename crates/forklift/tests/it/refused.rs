//! Deeds of an agent that are refused by name: status 3, the run closed, nothing pushed, and a reason with the path.

use std::path::Path;

use testkit::hermetic::{Hermetic, Output};
use testkit::repo::Fork;

use crate::support::{MERGE, Person};

/// A script of an honest merge and then `act`, in the shell.
fn after_merge(act: &str) -> String {
    format!("[[step]]\nrun = '''set -e\ngit merge -q --no-edit upstream/main\n{act}\n'''\n")
}

fn committing(act: &str) -> String {
    after_merge(&format!("{act}\ngit add -A\ngit commit -qm more"))
}

#[track_caller]
fn assert_refused(person: &Person, output: &Output, reasons: &[&str]) {
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    assert_eq!(person.metadata("/verdict/kind"), "refused", "{}", output.snapshot());
    assert_eq!(person.metadata("/exit_status"), 3, "the run is closed");
    for reason in reasons {
        assert!(output.stdout.contains(reason), "{reason}: {}", output.stdout);
    }
    assert_eq!(person.published(), Vec::<String>::new());
}

/// Refuses what `script` does on a fork made by `make`.
#[track_caller]
fn refuses_on(make: impl FnOnce(&Hermetic) -> Fork, script: &str, reasons: &[&str]) {
    let Some(person) = Person::with(make) else { return };
    let output = person.run(script, &[]);
    assert_refused(&person, &output, reasons);
}

#[track_caller]
fn refuses(script: &str, reasons: &[&str]) {
    refuses_on(|hermetic| Fork::new(hermetic).clean_merge(), script, reasons);
}

#[track_caller]
fn publishes_on(make: impl FnOnce(&Hermetic) -> Fork, script: &str, flags: &[&str]) {
    let Some(person) = Person::with(make) else { return };
    let output = person.run(script, flags);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1);
}

#[track_caller]
fn publishes(script: &str, flags: &[&str]) {
    publishes_on(|hermetic| Fork::new(hermetic).clean_merge(), script, flags);
}

#[test]
fn a_changed_address_of_a_submodule_is_refused() {
    let make = |hermetic: &Hermetic| Fork::new(hermetic).submodule().clean_merge();
    let evil = committing("sed -i s/example.com/evil.example/ .gitmodules; mkdir -p vendor/lib");
    refuses_on(make, &evil, &["vendor/lib: https://evil.example/lib.git"]);
}

#[test]
fn a_new_address_of_a_submodule_is_refused_in_any_spelling() {
    let new = "printf '[submodule \"x\"] path = x\\n URL = \\\\\\n https://evil.example\\n' > .gitmodules";
    refuses(&committing(new), &["neither side's: x: https://evil.example"]);
    let other = "printf '[submodule \"x\"]\\npath=x\\nurl=https://evil.example\\n' > .GitModules";
    refuses(&committing(other), &["neither side's: x: https://evil.example"]);
}

#[test]
fn the_submodules_of_both_sides_are_published() {
    let make = |hermetic: &Hermetic| {
        let fork = Fork::new(hermetic);
        let module = |name: &str| {
            format!("[submodule \"{name}\"]\n\tpath = {name}\n\turl = https://example.com/{name}\n")
        };
        fork.checkout.write(".gitmodules", module("ours"));
        fork.fork_commit("a module");
        fork.upstream_commit(".gitmodules", &module("theirs"), "another module");
        fork
    };
    let both = "[[step]]\nrun = '''git merge -q upstream/main || true
{ git show HEAD:.gitmodules; git show upstream/main:.gitmodules; } > .gitmodules
git add -A; git commit -qm merge'''\n";
    publishes_on(make, both, &[]);
}

#[test]
fn a_link_that_leaves_the_tree_through_a_link_is_refused() {
    let act = "mkdir -p a/b; ln -s ../.. a/b/l; ln -s a/b/l/../../../etc x";
    refuses(&committing(act), &["a symbolic link leads out of the tree: x"]);
}

#[test]
fn links_in_a_circle_and_into_the_repository_are_refused() {
    refuses(&committing("ln -s b a; ln -s a b"), &["a symbolic link cannot be followed: a"]);
    refuses(&committing("ln -s .git/hooks h"), &["a symbolic link leads out of the tree: h"]);
}

#[test]
fn a_link_that_the_fork_has_already_is_the_forks_own() {
    let make = |hermetic: &Hermetic| Fork::new(hermetic).dangling_symlink().clean_merge();
    publishes_on(make, &committing("ln -s README.md r"), &[]);
}

#[test]
fn a_link_whose_target_is_too_long_is_refused() {
    let act = "id=$(head -c 5000 /dev/zero | tr '\\0' x | git hash-object -w --stdin)
git update-index --add --cacheinfo 120000,$id,long
git commit -qm long";
    refuses(&after_merge(act), &["too large: link target of 5000 bytes: long"]);
}

#[test]
fn a_mode_that_git_does_not_write_is_refused() {
    let act = "id=$(echo x | git hash-object -w --stdin)
tree=$({ git ls-tree HEAD; printf '100664 blob %s\\tm.txt\\n' $id; } | git mktree)
git update-ref refs/heads/main $(git commit-tree -p HEAD -m odd $tree)";
    refuses(&after_merge(act), &["the mode is not one of git's: 100664 m.txt"]);
}

#[test]
fn a_tree_of_more_paths_than_anybody_can_list_is_refused() {
    let act = "id=$(git hash-object -w --stdin < /dev/null)
tree=$(printf '100644 blob %s\\tf\\n' $id | git mktree)
for level in 1 2 3 4 5 6 7 8 9; do
  tree=$(for name in 0 1 2 3 4 5 6 7 8 9; do printf '040000 tree %s\\t%s\\n' $tree $name; done | git mktree)
done
tree=$({ git ls-tree HEAD; printf '040000 tree %s\\tbomb\\n' $tree; } | git mktree)
git update-ref refs/heads/main $(git commit-tree -p HEAD -m bomb $tree)";
    refuses(&after_merge(act), &["too large: more than 200000 paths: bomb/"]);
}

#[test]
fn folders_that_are_too_deep_to_walk_are_refused() {
    let act = "id=$(git hash-object -w --stdin < /dev/null)
tree=$(printf '100644 blob %s\\tf\\n' $id | git mktree)
level=0; while [ $level -lt 300 ]; do
  tree=$(printf '040000 tree %s\\td\\n' $tree | git mktree); level=$((level + 1))
done
tree=$({ git ls-tree HEAD; printf '040000 tree %s\\tdeep\\n' $tree; } | git mktree)
git update-ref refs/heads/main $(git commit-tree -p HEAD -m deep $tree)";
    refuses(&after_merge(act), &["too large: folders more than 256 deep: deep/d/d"]);
}

#[test]
fn markers_of_any_shape_are_refused() {
    let shapes = [
        r"printf '<<<<<<< HEAD\na\nb\n>>>>>>> upstream/main\n' > m.txt",
        r"printf 'x\n<<<<<<<\tHEAD\na\n=======\nb\n>>>>>>>\tupstream/main\n' > m.txt",
        r"printf 'x\n||||||| 1a2b3c4\na\n' > m.txt",
        r"printf 'text before it\n>>>>>>> upstream/main\n' > m.txt",
    ];
    for shape in shapes {
        refuses(&committing(shape), &["conflict markers were left: m.txt"]);
    }
}

#[test]
fn a_separator_that_was_left_between_both_sides_is_refused() {
    let Some(person) = Person::with(|hermetic| Fork::new(hermetic).conflicting_merge()) else {
        return;
    };
    let script = "[[step]]\nrun = '''git merge --no-edit upstream/main\nsed -i '/^[<>]\\{7\\}/d' shared.txt\n\
                  git add -A\ngit commit -qm merge'''\n";
    let output = person.run(script, &[]);
    assert_refused(&person, &output, &["conflict markers were left: shared.txt"]);
}

#[test]
fn markers_that_a_side_has_are_published() {
    let text = |first: &str, last: &str| {
        format!(
            "{first}\n\n<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> other\n\n1\n2\n3\n4\n{last}\n"
        )
    };
    let make = |hermetic: &Hermetic| {
        let fork = Fork::new(hermetic);
        fork.upstream_commit("docs/merge.md", &text("How to merge", "end"), "explain");
        fork.checkout.git(&["fetch", "-q", "upstream"]);
        fork.checkout.git(&["merge", "-q", "--no-edit", "upstream/main"]);
        fork.checkout.write("docs/merge.md", text("How we merge", "end"));
        fork.fork_commit("our way");
        fork.upstream_commit("docs/merge.md", &text("How to merge", "the end"), "end well");
        fork
    };
    publishes_on(make, MERGE, &[]);
    publishes_on(
        make,
        &committing("git mv docs/merge.md docs/moved.md; echo >> docs/moved.md"),
        &["--accept-loss"],
    );
}

#[test]
fn a_committed_note_is_refused() {
    let act = "echo help > STUCK.md; git add STUCK.md; git commit -qm note; rm STUCK.md";
    refuses(&after_merge(act), &["the agent's note was committed: STUCK.md"]);
}

#[test]
fn every_commit_of_a_stranger_is_counted_and_refused() {
    let act = r#"perl -e 'for (1..12000) {
  print "commit refs/heads/main\ncommitter Eve <eve\@evil.example> $_ +0000\ndata 1\nx\n";
  print "from refs/heads/main^0\n" if $_ == 1;
  print "\n" }' | git fast-import --quiet"#;
    let reason = "12000 commits are not by the box's own identity, such as ";
    refuses(&after_merge(act), &[reason, "by Eve <eve@evil.example>"]);
}

#[test]
fn a_commit_of_a_stranger_is_named_once() {
    let Some(person) = Person::new() else { return };
    let act = "git -c user.name=Eve -c user.email=eve@evil.example commit -q --allow-empty -m x";
    let output = person.run(&after_merge(act), &[]);
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    let shown = format!("{}{}", output.stdout, output.stderr);
    assert_eq!(shown.matches("by Eve <eve@evil.example>").count(), 1, "{}", output.snapshot());
}

#[test]
fn a_rebase_keeps_the_authors_of_the_fork() {
    let rebase = "[[step]]\nrun = \"git rebase -q upstream/main\"\n";
    publishes(rebase, &["--strategy", "rebase"]);
}

#[test]
fn an_upstream_with_no_common_history_is_refused_unless_told() {
    let Some(person) = Person::with(Fork::unrelated) else { return };
    let script =
        "[[step]]\nrun = \"git merge -q --no-edit --allow-unrelated-histories upstream/main\"\n";
    let output = person.run(script, &[]);
    assert_refused(&person, &output, &["no history in common", "--allow-unrelated"]);
    let run = person.only_run();
    assert!(!run.join("boxes/agent").exists(), "no agent was started");
    let retry = ["retry", name_of(&run), "--allow-unrelated"];
    let output = person.hermetic.run(&mut person.forklift(&retry));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.published().len(), 1);
    assert!(output.stdout.contains("kept"), "{}", output.stdout);
}

#[test]
fn one_side_in_the_place_of_both_is_refused_without_a_common_history_too() {
    let merge = "git merge -q --no-edit --allow-unrelated-histories -s ours upstream/main";
    let theirs =
        "git rm -rq . && git checkout -q upstream/main -- . && git commit -q --amend --no-edit";
    for (act, kind) in
        [(merge.to_owned(), "upstream-dropped"), (format!("{merge} && {theirs}"), "work-lost")]
    {
        let Some(person) = Person::with(Fork::unrelated) else { return };
        let script = format!("[[step]]\nrun = '''{act}'''\n");
        let output = person.run(&script, &["--allow-unrelated"]);
        assert_eq!(output.status, Some(3), "{}", output.snapshot());
        assert_eq!(person.metadata("/verdict/kind"), kind, "{}", output.snapshot());
        assert!(person.published().is_empty());
    }
}

#[test]
fn a_workspace_too_deep_to_be_copied_is_refused_with_the_folders_name() {
    let Some(person) = Person::new() else { return };
    let deep = "[[step]]\nrun = '''echo help > STUCK.md
mkdir deep && cd deep && perl -e 'for (1..3000) { mkdir \"d\"; chdir \"d\" }' '''\n";
    let output = person.run(deep, &[]);
    assert_eq!(output.status, Some(4), "{}", output.snapshot());
    let run = person.only_run();
    let output = person.hermetic.run(&mut person.forklift(&["resume", name_of(&run)]));
    assert_eq!(output.status, Some(3), "{}", output.snapshot());
    let verdict = output.stdout.lines().next().expect("a verdict");
    assert!(verdict.contains("too deep to be copied: deep/d/d/"), "{verdict}");
    assert!(verdict.len() < 250, "{verdict}");
    assert!(person.runs().last().is_some_and(|run| !run.join("lock").exists()), "it is closed");
}

fn name_of(run: &Path) -> &str {
    run.file_name().and_then(|name| name.to_str()).expect("a name")
}
