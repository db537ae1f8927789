//! `key`: the signing key of a home. The key itself differs from run to run, so it is struck out.

use super::{transcript, tree};
use crate::support::Person;

/// Takes the base64 lines of a PEM out.
fn without_pem(text: &str) -> String {
    let is_key = |line: &&str| line.len() == 60 && line.ends_with('=') && !line.contains(' ');
    let lines = text.lines().map(|line| if is_key(&line) { "[BASE64]" } else { line });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn a_home_without_a_key() {
    let Some(person) = Person::new() else { return };
    let lines: [&[&str]; 3] = [&["key", "show"], &["key", "rotate"], &["key", "show", "--json"]];
    insta::assert_snapshot!(transcript(&person, &lines), @r#"
    $ bot-bottle key show
    status: 3
    --- stdout
    --- stderr
    error: there is no signing key ([ROOT]/home/.bot-bottle/attest/signing-key.pem); make one with: bot-bottle key create

    $ bot-bottle key rotate
    status: 3
    --- stdout
    --- stderr
    error: there is no signing key ([ROOT]/home/.bot-bottle/attest/signing-key.pem); make one with: bot-bottle key create

    $ bot-bottle key show --json
    status: 3
    --- stdout
    {"event":"error","name":"not-found","status":3,"text":"there is no signing key ([ROOT]/home/.bot-bottle/attest/signing-key.pem); make one with: bot-bottle key create"}
    --- stderr
    error: there is no signing key ([ROOT]/home/.bot-bottle/attest/signing-key.pem); make one with: bot-bottle key create
    "#);
}

#[test]
fn a_key_is_made_once() {
    let Some(person) = Person::new() else { return };
    let lines: [&[&str]; 3] = [&["key", "create"], &["key", "show"], &["key", "create"]];
    insta::assert_snapshot!(without_pem(&transcript(&person, &lines)), @"
    $ bot-bottle key create
    status: 0
    --- stdout
    keyid       [SHA]
    file        [ROOT]/home/.bot-bottle/attest/signing-key.pem
    -----BEGIN PUBLIC KEY-----
    [BASE64]
    -----END PUBLIC KEY-----
    --- stderr

    $ bot-bottle key show
    status: 0
    --- stdout
    keyid       [SHA]
    file        [ROOT]/home/.bot-bottle/attest/signing-key.pem
    -----BEGIN PUBLIC KEY-----
    [BASE64]
    -----END PUBLIC KEY-----
    --- stderr

    $ bot-bottle key create
    status: 3
    --- stdout
    --- stderr
    error: there is a signing key already ([ROOT]/home/.bot-bottle/attest/signing-key.pem); replace it with: bot-bottle key rotate
    ");
}

#[test]
fn a_key_is_replaced() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.run(&["key", "create"]).status, Some(0));
    insta::assert_snapshot!(without_pem(&transcript(&person, &[&["key", "rotate"]])), @"
    $ bot-bottle key rotate
    status: 0
    --- stdout
    keyid       [SHA]
    file        [ROOT]/home/.bot-bottle/attest/signing-key.pem
    -----BEGIN PUBLIC KEY-----
    [BASE64]
    -----END PUBLIC KEY-----
    --- stderr
      [SHA] is replaced; what it signed still verifies
    ");
}

#[test]
fn what_keys_leave_on_disk() {
    let Some(person) = Person::new() else { return };
    assert_eq!(person.run(&["key", "create"]).status, Some(0));
    let once = tree(&person, &person.home());
    assert_eq!(person.run(&["key", "rotate"]).status, Some(0));
    insta::assert_snapshot!(format!("{once}-- after a rotation\n{}", tree(&person, &person.home())), @"
    agents
    agents/worker.toml
    attest (private)
    attest/public (private)
    attest/public/[SHA].pem
    attest/signing-key.pem (private)
    -- after a rotation
    agents
    agents/worker.toml
    attest (private)
    attest/public (private)
    attest/public/[SHA].pem
    attest/public/[SHA].pem
    attest/rotations.jsonl (private)
    attest/runs.jsonl (private)
    attest/signing-key.pem (private)
    ");
}

#[test]
fn a_key_that_others_can_read() {
    use std::os::unix::fs::PermissionsExt;
    let Some(person) = Person::new() else { return };
    let made = person.json(&["key", "create"]);
    let file = made["file"].as_str().expect("a path").to_owned();
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(&file, open).expect("set");
    insta::assert_snapshot!(transcript(&person, &[&["key", "show"]]), @"
    $ bot-bottle key show
    status: 3
    --- stdout
    --- stderr
    error: [ROOT]/home/.bot-bottle/attest/signing-key.pem can be read by others (mode 644); run: chmod 600 [ROOT]/home/.bot-bottle/attest/signing-key.pem
    ");
}

#[test]
fn a_key_that_is_not_one() {
    let Some(person) = Person::new() else { return };
    let made = person.json(&["key", "create"]);
    std::fs::write(made["file"].as_str().expect("a path"), "no key").expect("written");
    let shown = transcript(&person, &[&["key", "show"]]);
    let fault = "attest/signing-key.pem: it is not an ed25519 private key in PEM: ";
    assert!(shown.contains(fault), "{shown}");
}
