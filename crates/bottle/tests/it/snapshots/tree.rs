//! What runs leave on disk: the folder of a bottle and its run directory, with modes.

use super::tree;
use crate::support::{COMMIT, DONE, Person, SLUG, Scene};

#[test]
fn the_folder_of_a_bottle_after_one_run() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.start(COMMIT, &["--label", "plain"]).status, Some(0));
    insta::assert_snapshot!(tree(&person, &person.bottle("plain")), @"");
}

#[test]
fn the_folder_of_a_destroyed_bottle() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.start(COMMIT, &["--label", "plain"]).status, Some(0));
    assert_eq!(person.run(&["destroy", "plain", "--force"]).status, Some(0));
    insta::assert_snapshot!(tree(&person, &person.bottle("plain")), @"");
}

#[test]
fn the_folder_of_a_bottle_whose_start_failed() {
    let Some(person) = Person::new() else { return };
    person.manifest("bottles", "odd", "setup = \"exit 4\"\n");
    let output = person.start(COMMIT, &["--label", "plain", "--bottle", "odd"]);
    assert_eq!(output.status, Some(125), "{}", output.snapshot());
    insta::assert_snapshot!(tree(&person, &person.bottle("plain")), @"");
}

#[test]
fn the_run_directory_of_a_forge_run() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    insta::assert_snapshot!(tree(&scene.person, &scene.person.last_run(SLUG)), @"");
}

#[test]
fn the_home_after_one_run() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.start(COMMIT, &["--label", "plain"]).status, Some(0));
    let shown = tree(&person, &person.home());
    let top: Vec<&str> = shown.lines().filter(|line| !line.starts_with("cellar/plain/")).collect();
    insta::assert_snapshot!(top.join("\n"), @"");
}
