//! `hook`: webhooks of repositories, right and wrong.

use super::transcript;
use crate::support::{Person, Scene};

/// Outputs of commands with the forge's variables.
fn on_forge(scene: &Scene, lines: &[&[&str]]) -> String {
    let shown = |args: &&[&str]| {
        let output = scene.person.hermetic.run(&mut scene.command(args)).snapshot();
        format!("$ bot-bottle {}\n{output}", args.join(" "))
    };
    let text = lines.iter().map(shown).collect::<Vec<_>>().join("\n");
    text.replace(scene.forge.url().trim_start_matches("http://"), "[FORGE]")
}

#[test]
fn a_home_without_hooks() {
    let Some(person) = Person::new() else { return };
    insta::assert_snapshot!(transcript(&person, &[&["hook", "list"]]), @"");
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
    insta::assert_snapshot!(transcript(&person, &lines), @"");
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
    insta::assert_snapshot!(on_forge(&scene, &lines), @"");
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
    insta::assert_snapshot!(on_forge(&scene, &lines), @"");
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
    insta::assert_snapshot!(on_forge(&scene, &lines), @"");
}

#[test]
fn a_repository_that_the_forge_does_not_have() {
    let Some(scene) = Scene::new() else { return };
    let lines: [&[&str]; 1] = [&["hook", "install", "acme/ghost", "--url", "https://b.example"]];
    insta::assert_snapshot!(on_forge(&scene, &lines), @"");
}
