//! `hook`: webhooks of repositories, right and wrong.

use super::{transcript, without_padding};
use crate::support::{Person, Scene};

/// Outputs of commands with the forge's variables.
fn on_forge(scene: &Scene, lines: &[&[&str]]) -> String {
    let shown = |args: &&[&str]| {
        let output = scene.person.hermetic.run(&mut scene.command(args)).snapshot();
        format!("$ bot-bottle {}\n{output}", args.join(" "))
    };
    let text = lines.iter().map(shown).collect::<Vec<_>>().join("\n");
    without_padding(&text.replace(scene.forge.url().trim_start_matches("http://"), "[FORGE]"))
}

#[test]
fn a_home_without_hooks() {
    let Some(person) = Person::new() else { return };
    insta::assert_snapshot!(transcript(&person, &[&["hook", "list"]]), @"
    $ bot-bottle hook list
    status: 0
    --- stdout
    No webhooks yet. Install one with: bot-bottle hook install OWNER/REPO --url URL
    --- stderr
    ");
}

#[test]
fn repositories_that_cannot_be_meant() {
    let Some(person) = Person::new() else { return };
    let url = "https://bottles.example";
    let lines: [&[&str]; 4] = [
        &["hook", "install", "widget", "--url", url],
        &["hook", "install", "a/b/c", "--url", url],
        &["hook", "install", "acme/widget", "--url", url],
        &["hook", "remove", ""],
    ];
    insta::assert_snapshot!(transcript(&person, &lines), @"
    $ bot-bottle hook install widget --url https://bottles.example
    status: 2
    --- stdout
    --- stderr
    error: 'widget' is not a repository: give owner/name, or its whole address

    $ bot-bottle hook install a/b/c --url https://bottles.example
    status: 2
    --- stdout
    --- stderr
    error: 'a/b/c' is not a repository: give owner/name, or its whole address

    $ bot-bottle hook install acme/widget --url https://bottles.example
    status: 2
    --- stdout
    --- stderr
    error: the forge of acme/widget is not known: set FORGE_GITEA_API, or give the repository's whole address

    $ bot-bottle hook remove 
    status: 2
    --- stdout
    --- stderr
    error: '' is not a repository: give owner/name, or its whole address
    ");
}

#[test]
fn a_hook_is_installed_listed_and_removed() {
    let Some(scene) = Scene::new() else { return };
    let repo = format!("{}/{}", testkit::fake_forge::OWNER, testkit::fake_forge::REPO);
    let lines: [&[&str]; 5] = [
        &["hook", "install", &repo, "--url", "https://bottles.example"],
        &["hook", "list"],
        &["hook", "install", &repo, "--url", "http://bottles.example/own/path"],
        &["hook", "remove", &repo],
        &["hook", "remove", &repo],
    ];
    insta::assert_snapshot!(on_forge(&scene, &lines), @"
    $ bot-bottle hook install alice/hooks --url https://bottles.example
    status: 0
    --- stdout
    installed  alice/hooks on [FORGE]
    url  https://bottles.example/webhooks/gitea
    --- stderr

    $ bot-bottle hook list
    status: 0
    --- stdout
     REPOSITORY  FORGE  STATE  POSTS TO
     alice/hooks  [FORGE] (gitea)  installed  https://bottles.example/webhooks/gitea
    --- stderr

    $ bot-bottle hook install alice/hooks --url http://bottles.example/own/path
    status: 0
    --- stdout
    replaced  alice/hooks on [FORGE]
    url  http://bottles.example/own/path
    --- stderr
      the address has no TLS: what is delivered can be read and held back on the way

    $ bot-bottle hook remove alice/hooks
    status: 0
    --- stdout
    removed  alice/hooks: the webhook and its secret
    --- stderr

    $ bot-bottle hook remove alice/hooks
    status: 3
    --- stdout
    --- stderr
    error: no webhook was installed for alice/hooks from here; see: bot-bottle hook list
    ");
}

#[test]
fn hooks_as_documents() {
    let Some(scene) = Scene::new() else { return };
    let repo = format!("{}/{}", testkit::fake_forge::OWNER, testkit::fake_forge::REPO);
    let lines: [&[&str]; 3] = [
        &["hook", "install", &repo, "--url", "https://bottles.example", "--json"],
        &["hook", "list", "--json"],
        &["hook", "remove", &repo, "--json"],
    ];
    insta::assert_snapshot!(on_forge(&scene, &lines), @r#"
    $ bot-bottle hook install alice/hooks --url https://bottles.example --json
    status: 0
    --- stdout
    {"active":true,"event":"hook","host":"[FORGE]","id":1,"replaced":false,"repo":"alice/hooks","url":"https://bottles.example/webhooks/gitea"}
    --- stderr

    $ bot-bottle hook list --json
    status: 0
    --- stdout
    [
      {
        "confirmed": true,
        "host": "[FORGE]",
        "kind": "gitea",
        "repo": "alice/hooks",
        "url": "https://bottles.example/webhooks/gitea"
      }
    ]
    --- stderr

    $ bot-bottle hook remove alice/hooks --json
    status: 0
    --- stdout
    {"event":"hook","removed":1,"repo":"alice/hooks"}
    --- stderr
    "#);
}

#[test]
fn addresses_that_a_forge_cannot_post_to() {
    let Some(scene) = Scene::new() else { return };
    let repo = format!("{}/{}", testkit::fake_forge::OWNER, testkit::fake_forge::REPO);
    let lines: [&[&str]; 3] = [
        &["hook", "install", &repo, "--url", "bottles.example"],
        &["hook", "install", &repo, "--url", "ftp://bottles.example"],
        &["hook", "install", &repo, "--url", "https://u:p@bottles.example"],
    ];
    insta::assert_snapshot!(on_forge(&scene, &lines), @"
    $ bot-bottle hook install alice/hooks --url bottles.example
    status: 2
    --- stdout
    --- stderr
    error: 'bottles.example' is not an address for a webhook: give http(s)://host[:port][/path]

    $ bot-bottle hook install alice/hooks --url ftp://bottles.example
    status: 2
    --- stdout
    --- stderr
    error: 'ftp://bottles.example' is not an address for a webhook: give http(s)://host[:port][/path]

    $ bot-bottle hook install alice/hooks --url https://u:p@bottles.example
    status: 2
    --- stdout
    --- stderr
    error: 'https://u:***@bottles.example' is not an address for a webhook: give http(s)://host[:port][/path]
    ");
}

#[test]
fn a_repository_that_the_forge_does_not_have() {
    let Some(scene) = Scene::new() else { return };
    let lines: [&[&str]; 1] = [&["hook", "install", "acme/ghost", "--url", "https://b.example"]];
    insta::assert_snapshot!(on_forge(&scene, &lines), @"
    $ bot-bottle hook install acme/ghost --url https://b.example
    status: 1
    --- stdout
    --- stderr
    error: 127.0.0.1 could not list the webhooks, because it finds no such thing (not found); check the names of repository and branch, and that the token can see them
    ");
}
