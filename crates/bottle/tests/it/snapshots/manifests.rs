//! `agent` and `bottle`: manifests that are written, listed, shown and checked.

use super::{transcript, tree};
use crate::support::Person;

#[test]
fn a_home_without_manifests() {
    let Some(person) = Person::new() else { return };
    std::fs::remove_dir_all(person.home()).expect("removed");
    insta::assert_snapshot!(transcript(&person, &[&["agent", "list"], &["bottle", "list"]]), @"");
}

#[test]
fn a_new_agent() {
    let Some(person) = Person::new() else { return };
    let lines: [&[&str]; 2] = [&["agent", "new", "fresh"], &["agent", "show", "fresh"]];
    insta::assert_snapshot!(transcript(&person, &lines), @"");
}

#[test]
fn a_new_agent_as_a_document() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.run(&["agent", "new", "fresh"]).status, Some(0));
    insta::assert_snapshot!(transcript(&person, &[&["agent", "show", "fresh", "--json"]]), @"");
}

#[test]
fn a_new_bottle() {
    let Some(person) = Person::new() else { return };
    let lines: [&[&str]; 2] = [&["bottle", "new", "fresh"], &["bottle", "show", "fresh"]];
    insta::assert_snapshot!(transcript(&person, &lines), @"");
}

#[test]
fn a_new_bottle_as_a_document() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.run(&["bottle", "new", "fresh"]).status, Some(0));
    insta::assert_snapshot!(transcript(&person, &[&["bottle", "show", "fresh", "--json"]]), @"");
}

#[test]
fn a_name_that_is_taken() {
    let Some(person) = Person::new() else { return };
    let lines: [&[&str]; 2] = [&["agent", "new", "worker"], &["bottle", "new", "worker"]];
    insta::assert_snapshot!(transcript(&person, &lines), @"");
}

#[test]
fn names_that_cannot_be() {
    let Some(person) = Person::new() else { return };
    let lines: [&[&str]; 4] = [
        &["agent", "new", "../x"],
        &["agent", "show", "a b"],
        &["bottle", "check", ""],
        &["bottle", "new", ".hidden"],
    ];
    insta::assert_snapshot!(transcript(&person, &lines), @"");
}

#[test]
fn an_agent_that_is_good_here() {
    let Some(person) = Person::new() else { return };
    person.script("");
    let lines: [&[&str]; 2] =
        [&["agent", "check", "worker"], &["agent", "check", "worker", "--json"]];
    insta::assert_snapshot!(transcript(&person, &lines), @"");
}

#[test]
fn an_agent_whose_script_is_missing() {
    let Some(person) = Person::new() else { return };
    insta::assert_snapshot!(transcript(&person, &[&["agent", "check", "worker"]]), @"");
}

#[test]
fn an_agent_whose_bottle_is_missing() {
    let Some(person) = Person::new() else { return };
    person.agent("worker", "bottle = \"nope\"\n");
    person.script("");
    insta::assert_snapshot!(transcript(&person, &[&["agent", "check", "worker"]]), @"");
}

#[test]
fn manifests_are_listed_by_name() {
    let Some(person) = Person::new() else { return };
    for name in ["zoe", "ann"] {
        assert_eq!(person.run(&["agent", "new", name]).status, Some(0));
        assert_eq!(person.run(&["bottle", "new", name]).status, Some(0));
    }
    let lines: [&[&str]; 4] = [
        &["agent", "list"],
        &["agent", "list", "--json"],
        &["bottle", "list"],
        &["bottle", "list", "--json"],
    ];
    insta::assert_snapshot!(transcript(&person, &lines), @"");
}

#[test]
fn what_new_leaves_on_disk() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.run(&["agent", "new", "fresh"]).status, Some(0));
    assert_eq!(person.run(&["bottle", "new", "fresh"]).status, Some(0));
    insta::assert_snapshot!(tree(&person, &person.home()), @"");
}

#[test]
fn a_mount_that_is_not_there() {
    let Some(person) = Person::new() else { return };
    let mount = "[[mount]]\nhost = \"/nowhere/data\"\ninside = \"/opt/data\"\n";
    person.manifest("bottles", "lend", mount);
    insta::assert_snapshot!(transcript(&person, &[&["bottle", "check", "lend"]]), @"");
}

#[test]
fn a_mount_of_the_home() {
    let Some(person) = Person::new() else { return };
    let home = person.hermetic.home();
    let mount = format!("[[mount]]\nhost = \"{}\"\ninside = \"/opt/home\"\n", home.display());
    person.manifest("bottles", "lend", &mount);
    insta::assert_snapshot!(transcript(&person, &[&["bottle", "check", "lend"]]), @"");
}

#[test]
fn a_mount_with_a_key_in_it() {
    let Some(person) = Person::new() else { return };
    let data = person.hermetic.root().join("data");
    std::fs::create_dir_all(data.join(".ssh")).expect("made");
    let mount = format!("[[mount]]\nhost = \"{}\"\ninside = \"/opt/data\"\n", data.display());
    person.manifest("bottles", "lend", &mount);
    insta::assert_snapshot!(transcript(&person, &[&["bottle", "check", "lend"]]), @"");
}
