//! `wf docs`: contents, orphaned pictures, and their removal.

use crate::support::{ONE, Person};

fn documented() -> Person {
    let person = Person::with_plan(ONE);
    person
        .worktree("tf")
        .write("docs/a.md", "![x](assets/used.png)")
        .write("docs/deep/b.rst", "text")
        .write("docs/assets/used.png", "x")
        .write("docs/assets/old.png", "x")
        .write("docs/assets/older.JPG", "x");
    person
}

#[test]
fn a_worktree_without_documentation() {
    let person = Person::with_plan(ONE);
    insta::assert_snapshot!(person.transcript(&[&["docs", "status", "tf"], &["docs", "cleanup", "tf"]]), @"
    $ wf docs status tf
    folder         [ROOT]/work/app.ops/worktrees/tf/docs
    pages          0
    pictures       0
    [0]
    $ wf docs cleanup tf
    Every picture is mentioned by a page.
    [0]
    ");
}

#[test]
fn orphaned_pictures_are_named_and_removed() {
    let person = documented();
    insta::assert_snapshot!(person.transcript(&[
        &["docs", "status", "tf"],
        &["docs", "cleanup", "tf"],
        &["docs", "cleanup", "tf", "--apply"],
        &["docs", "status", "tf"],
    ]), @"
    $ wf docs status tf
    folder         [ROOT]/work/app.ops/worktrees/tf/docs
    pages          2
    pictures       3
    orphaned       assets/old.png
    orphaned       assets/older.JPG
    [0]
    $ wf docs cleanup tf
    Would remove assets/old.png
    Would remove assets/older.JPG
    ! nothing was deleted; to delete: wf docs cleanup --yes
    [0]
    $ wf docs cleanup tf --apply
    Removed assets/old.png
    Removed assets/older.JPG
    [0]
    $ wf docs status tf
    folder         [ROOT]/work/app.ops/worktrees/tf/docs
    pages          2
    pictures       1
    [0]
    ");
}

#[test]
fn links_are_not_followed() {
    let person = documented();
    let docs = person.worktree("tf").dir().join("docs");
    std::os::unix::fs::symlink("/etc", docs.join("etc")).expect("a link");
    std::os::unix::fs::symlink("assets", docs.join("again")).expect("a link");
    insta::assert_snapshot!(person.transcript(&[&["docs", "status", "tf", "--json"]]), @r#"
    $ wf docs status tf --json
    {
      "coverage": {
        "assets": 3,
        "orphaned": [
          "assets/old.png",
          "assets/older.JPG"
        ],
        "pages": 2
      },
      "folder": "[ROOT]/work/app.ops/worktrees/tf/docs"
    }
    [0]
    "#);
}

#[test]
fn another_folder_of_the_profile() {
    let person = documented();
    person.profile("DOCS_PATH=manual\n");
    let other = person.shot(&["docs", "status", "tf"], &[]);
    person.profile("DOCS_PATH=../docs\n");
    insta::assert_snapshot!(format!("{other}{}", person.shot(&["docs", "status", "tf"], &[])), @"
    $ wf docs status tf
    folder         [ROOT]/work/app.ops/worktrees/tf/manual
    pages          0
    pictures       0
    [0]
    $ wf docs status tf
    ! error: [ROOT]/work/app.ops/workflow/projects/app/project_profile.env: DOCS_PATH must be a path inside the repository
    [2]
    ");
}
