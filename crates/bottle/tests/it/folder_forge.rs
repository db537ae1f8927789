//! A folder in place of a forge: from an issue in a file to a pull request in a file. And a token that stays here.

use std::fs;

use serde_json::{Value, json};
use testkit::fake_forge::TOKEN;
use testkit::repo::Repo;

use crate::support::{COMMIT, DONE, Person, Scene};

const START: [&str; 8] =
    ["orchestrate", "start", "--agent", "worker", "--prompt", "Do it.", "--backend", "bwrap"];

#[test]
fn an_issue_in_a_file_becomes_a_pull_request_in_a_file() {
    let Some(person) = Person::new() else { return };
    let folder = person.hermetic.work().join("forge");
    let (repo, files) = (folder.join("me/app.git"), folder.join("me/app.git.forge"));
    fs::create_dir_all(files.join("threads")).expect("folders");
    fs::rename(person.fork.origin.dir(), &repo).expect("origin moves");
    let url = repo.to_str().expect("UTF-8");
    person.fork.checkout.git(&["remote", "set-url", "origin", url]);
    // As a person writes it: everything else has a default.
    let issue = json!({
        "number": 1, "title": "Do it", "labels": ["bot-bottle:worker"], "assignees": ["bot-bottle"],
    });
    fs::write(files.join("threads/000001.json"), issue.to_string()).expect("an issue");
    let members = json!({ "bot-bottle": ["bot-bottle"] });
    fs::write(files.join("organisations.json"), members.to_string()).expect("members");

    let comment = "[[step]]\nrun = [\"forge\", \"comment\", \"1\", \"I have begun.\"]\n";
    person.script(&format!("{comment}{COMMIT}{DONE}"));
    let mut command = person.command(&START);
    command.env("FORGE_URL", format!("file://{}", folder.display())).envs([
        ("FORGE_OWNER", "me"),
        ("FORGE_REPO", "app"),
        ("FORGE_ISSUE_NUMBER", "1"),
    ]);
    let output = person.hermetic.run(&mut command);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());

    let read = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(files.join(name)).expect("a file")).expect("JSON")
    };
    let pull = read("threads/000002.json");
    assert_eq!(pull["pull"]["head"], "bot-bottle/worker-issue-1");
    assert!(pull["body"].as_str().expect("a text").contains("Closes #1"), "{pull}");
    assert_eq!(read("comments/000001-000001.json")["body"], "I have begun.");
    let tip = Repo::open(&repo).sha("refs/heads/bot-bottle/worker-issue-1");
    assert_eq!(pull["pull"]["head_sha"], tip);
}

/// Nothing is contacted: the name does not exist.
#[test]
fn a_token_is_not_sent_over_plain_http_unless_that_is_allowed() {
    let Some(scene) = Scene::new() else { return };
    let plain = || {
        let mut command = scene.command(&START);
        command.env("FORGE_GITEA_API", "http://forge.invalid/api/v1").env("FORGE_TOKEN", TOKEN);
        command
    };
    let output = scene.person.hermetic.run(&mut plain());
    let words = "the token for forge.invalid would travel unencrypted";
    assert!(output.stderr.contains(words), "{}", output.snapshot());
    assert!(output.stderr.contains("FORGE_ALLOW_HTTP=1"), "{}", output.snapshot());
    let output = scene.person.hermetic.run(plain().env("FORGE_ALLOW_HTTP", "1"));
    assert!(output.stderr.contains("forge.invalid could not be reached"), "{}", output.snapshot());
}
