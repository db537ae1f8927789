//! `key`: the signing key of a home. The key itself differs from run to run, so it is struck out.

use super::{transcript, tree};
use crate::support::Person;

/// Takes the base64 lines of a PEM out.
fn without_pem(text: &str) -> String {
    let is_key = |line: &&str| line.len() > 40 && !line.contains(' ') && !line.contains('/');
    let lines = text.lines().map(|line| if is_key(&line) { "[BASE64]" } else { line });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn a_home_without_a_key() {
    let Some(person) = Person::new() else { return };
    let lines: [&[&str]; 3] = [&["key", "show"], &["key", "rotate"], &["key", "show", "--json"]];
    insta::assert_snapshot!(transcript(&person, &lines), @"");
}

#[test]
fn a_key_is_made_once() {
    let Some(person) = Person::new() else { return };
    let lines: [&[&str]; 3] = [&["key", "create"], &["key", "show"], &["key", "create"]];
    insta::assert_snapshot!(without_pem(&transcript(&person, &lines)), @"");
}

#[test]
fn a_key_is_replaced() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.run(&["key", "create"]).status, Some(0));
    insta::assert_snapshot!(without_pem(&transcript(&person, &[&["key", "rotate"]])), @"");
}

#[test]
fn what_keys_leave_on_disk() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.run(&["key", "create"]).status, Some(0));
    let once = tree(&person, &person.home());
    assert_eq!(person.run(&["key", "rotate"]).status, Some(0));
    insta::assert_snapshot!(format!("{once}-- after a rotation\n{}", tree(&person, &person.home())), @"");
}

#[test]
fn a_key_that_others_can_read() {
    use std::os::unix::fs::PermissionsExt;
    let Some(person) = Person::new() else { return };
    let made = person.json(&["key", "create"]);
    let file = made["file"].as_str().expect("a path").to_owned();
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(&file, open).expect("set");
    insta::assert_snapshot!(transcript(&person, &[&["key", "show"]]), @"");
}

#[test]
fn a_key_that_is_damaged() {
    let Some(person) = Person::new() else { return };
    let made = person.json(&["key", "create"]);
    let file = made["file"].as_str().expect("a path").to_owned();
    std::fs::write(&file, "no key\n").expect("written");
    insta::assert_snapshot!(transcript(&person, &[&["key", "show"]]), @"");
}
