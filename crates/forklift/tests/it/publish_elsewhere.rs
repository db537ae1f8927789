//! Pull requests on GitHub and merge requests on GitLab, and where their tokens come from.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use testkit::fake_forge::FakeGitea;
use testkit::fake_forge::{FakeForge, Flavour, Mishap, TOKEN};
use testkit::fake_forge::{FakeGithub, GithubFlavour};
use testkit::fake_forge::{FakeGitlab, GitlabFlavour};
use testkit::hermetic::Output;

use crate::support::Person;

/// The command line of a run that needs no agent, on a fork whose pull requests are on this server.
fn command<F: Flavour>(person: &Person, forge: &FakeForge<F>) -> Command {
    command_at(person, &forge.remote_url())
}

fn command_at(person: &Person, url: &str) -> Command {
    let path = person.hermetic.root().join("agent.toml");
    std::fs::write(&path, "[[step]]\nexit = 9\n").expect("written");
    let mut command = person.forklift(&["--provider", "scripted", "--backend", "bwrap"]);
    command.arg("--script").arg(path).args(["--forge-url", url]);
    command
}

fn with_token<F: Flavour>(person: &Person, forge: &FakeForge<F>) -> Output {
    person.hermetic.run(command(person, forge).env("FORKLIFT_TOKEN", TOKEN))
}

/// No file of the run and nothing that was printed holds the forge's token.
fn token_is_nowhere(person: &Person, output: &Output) {
    assert!(!output.stdout.contains(TOKEN) && !output.stderr.contains(TOKEN));
    let mut command = person.hermetic.command("grep");
    let found = person.hermetic.run(command.args(["-rl", TOKEN]).arg(person.only_run()));
    assert_eq!(found.status, Some(1), "the token is in {}", found.stdout);
}

fn opens_one_and_supersedes_another<F: Flavour>(reference: &str) {
    let Some(person) = Person::new() else { return };
    let forge = FakeForge::<F>::start();
    let earlier = forge.add_pull("old", "forklift/old", "main");
    forge.change_pull(earlier, |pull| pull.body = "<!-- forklift: update -->".to_owned());
    let stranger = forge.add_pull("feature", "topic", "main");
    let output = with_token(&person, &forge);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let open: Vec<u64> =
        forge.pulls().iter().filter(|pull| pull.open).map(|pull| pull.number).collect();
    assert_eq!(open, [stranger, 3], "{:?}", forge.pulls());
    assert_eq!(person.metadata("/publication/pull/number"), 3);
    let words: Vec<_> = forge.comments().iter().map(|comment| comment.body.clone()).collect();
    assert_eq!(words, [format!("Superseded by {reference}.")]);
    assert_eq!(forge.comments()[0].on, earlier);
    token_is_nowhere(&person, &output);
}

#[test]
fn a_pull_request_is_opened_on_github_and_an_earlier_one_is_superseded() {
    opens_one_and_supersedes_another::<GithubFlavour>("#3");
}

#[test]
fn a_merge_request_is_opened_on_gitlab_and_an_earlier_one_is_superseded() {
    opens_one_and_supersedes_another::<GitlabFlavour>("!3");
}

fn a_lost_answer_opens_one<F: Flavour>() {
    let Some(person) = Person::new() else { return };
    let forge = FakeForge::<F>::start();
    forge.fail_next_on("POST", 1, &Mishap::DropAfterWrite);
    let output = with_token(&person, &forge);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(forge.pulls().len(), 1);
}

#[test]
fn an_answer_that_was_lost_does_not_open_two_elsewhere_either() {
    a_lost_answer_opens_one::<GithubFlavour>();
    a_lost_answer_opens_one::<GitlabFlavour>();
}

#[test]
fn the_login_of_githubs_own_program_serves_for_a_github() {
    let Some(person) = Person::new() else { return };
    let forge = FakeGithub::start();
    let folder = person.hermetic.root().join("gh-bin");
    std::fs::create_dir(&folder).expect("a folder");
    let gh = folder.join("gh");
    let script =
        format!("#!/bin/sh\n[ \"$*\" = 'auth token --hostname 127.0.0.1' ] && echo {TOKEN}\n");
    std::fs::write(&gh, script).expect("written");
    std::fs::set_permissions(&gh, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    let mut command = command(&person, &forge);
    let path = command
        .get_envs()
        .find_map(|(name, value)| (name == "PATH").then(|| value.map(ToOwned::to_owned))?)
        .unwrap_or_default();
    let path = format!("{}:{}", folder.display(), path.display());
    let output = person.hermetic.run(command.env("PATH", path));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(forge.pulls().len(), 1);
    token_is_nowhere(&person, &output);
}

#[test]
fn a_token_for_github_is_never_sent_to_another_kind_of_forge() {
    let Some(person) = Person::new() else { return };
    let (github, gitlab) = (FakeGithub::start(), FakeGitlab::start());
    let variable = "GH_ENTERPRISE_TOKEN";
    let output = person.hermetic.run(command(&person, &gitlab).env(variable, TOKEN));
    assert_eq!(output.status, Some(7), "{}", output.snapshot());
    assert!(output.stdout.contains("set BOTTLEWORKS_FORGE_TOKEN"), "{}", output.stdout);
    assert!(gitlab.requests().iter().all(|request| request.header("authorization").is_none()));
    let Some(person) = Person::new() else { return };
    let output = person.hermetic.run(command(&person, &github).env(variable, TOKEN));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(github.pulls().len(), 1);
}

#[test]
fn a_forge_behind_a_login_is_named_by_the_person() {
    let Some(person) = Person::new() else { return };
    let forge = FakeGitea::start();
    forge.fail_next(3, &Mishap::status(403, "Only signed in user is allowed to call APIs."));
    let output = with_token(&person, &forge);
    assert!(
        output.stdout.contains("only to those who are logged in (status 403)"),
        "{}",
        output.snapshot()
    );
    assert!(output.stdout.contains("FORKLIFT_FORGE_KIND"), "{}", output.snapshot());
    assert_eq!(forge.pulls().len(), 0);
    let Some(person) = Person::new() else { return };
    let mut command = command(&person, &forge);
    command.env("FORKLIFT_TOKEN", TOKEN).env("FORKLIFT_FORGE_KIND", "Gitea");
    let output = person.hermetic.run(&mut command);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(forge.pulls().len(), 1);
    assert!(!forge.requests().iter().skip(3).any(|request| request.path.ends_with("/version")));
    let output = person.hermetic.run(command.env("FORKLIFT_FORGE_KIND", "svn"));
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("'svn'; use gitea"), "{}", output.snapshot());
}

/// The name does not exist, so that a request would say so.
#[test]
fn a_token_is_not_sent_over_plain_http_unless_that_is_allowed() {
    let Some(person) = Person::new() else { return };
    let plain = |person: &Person| {
        let mut command = command_at(person, "http://forge.invalid/alice/hooks.git");
        command.env("FORKLIFT_TOKEN", TOKEN).env("FORKLIFT_FORGE_KIND", "gitea");
        command
    };
    let output = person.hermetic.run(&mut plain(&person));
    let words = "the token for forge.invalid would travel unencrypted";
    assert!(output.stdout.contains(words), "{}", output.snapshot());
    assert!(output.stdout.contains("FORGE_ALLOW_HTTP=1"), "{}", output.snapshot());
    let Some(person) = Person::new() else { return };
    let output = person.hermetic.run(plain(&person).env("FORGE_ALLOW_HTTP", "1"));
    assert!(output.stdout.contains("could not be resolved"), "{}", output.snapshot());
}
