//! Webhooks from the command line: made with a fresh secret, replaced, listed, removed; and what `doctor` finds of them.

use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use testkit::fake_forge::GithubFlavour;
use testkit::fake_forge::GitlabFlavour;
use testkit::fake_forge::{FakeForge, Flavour, Mishap};
use testkit::fake_forge::{GiteaFlavour, OWNER, REPO, TOKEN};
use testkit::hermetic::{Hermetic, Output};

const SERVER: &str = "https://bottles.example";

/// Somebody with a forge, and no checkout: none is needed.
struct Keeper<F: Flavour> {
    hermetic: Hermetic,
    forge: FakeForge<F>,
}

impl<F: Flavour> Keeper<F> {
    fn new() -> Self {
        Self { hermetic: Hermetic::new(), forge: FakeForge::start() }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.hermetic.command(env!("CARGO_BIN_EXE_bot-bottle"));
        command
            .args(args)
            .env("FORGE_GITEA_API", format!("{}/api/v1", self.forge.url()))
            .env("FORGE_TOKEN", TOKEN);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.hermetic.run(&mut self.command(args))
    }

    fn ok(&self, args: &[&str]) -> Output {
        let output = self.run(args);
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        output
    }

    fn list(&self) -> Value {
        serde_json::from_str(&self.ok(&["hook", "list", "--json"]).stdout).expect("a document")
    }

    fn file(&self) -> PathBuf {
        let host = self.forge.addr().to_string().replace(':', "_");
        let path = format!(".bot-bottle/hooks/{host}/{OWNER}/{REPO}.json");
        self.hermetic.home().join(path)
    }

    fn secrets(&self) -> Vec<String> {
        let bytes = std::fs::read(self.file()).expect("a file");
        let file: Value = serde_json::from_slice(&bytes).expect("JSON");
        let list = file["secrets"].as_array().expect("secrets").iter();
        list.filter_map(|it| it.as_str().map(str::to_owned)).collect()
    }
}

fn install_words() -> [String; 5] {
    ["hook", "install", &format!("{OWNER}/{REPO}"), "--url", SERVER].map(str::to_owned)
}

fn install(keeper: &Keeper<GiteaFlavour>) -> Output {
    keeper.run(&install_words().each_ref().map(String::as_str))
}

#[test]
fn a_webhook_is_made_with_a_fresh_secret_that_only_its_owner_can_read() {
    let keeper = Keeper::<GiteaFlavour>::new();
    let output = install(&keeper);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let hooks = keeper.forge.hooks();
    assert_eq!(hooks[0].url, "https://bottles.example/webhooks/gitea");
    let events = ["issues", "issue_comment", "pull_request", "status", "workflow_job"];
    assert_eq!(hooks[0].events, events);
    assert_eq!(hooks[0].secret.len(), 64);
    assert_eq!(keeper.secrets(), [hooks[0].secret.clone()]);
    assert_eq!(std::fs::metadata(keeper.file()).expect("a file").mode() & 0o777, 0o600);
    assert!(!(output.stdout + &output.stderr).contains(&hooks[0].secret));
    assert_eq!(keeper.list()[0]["repo"], format!("{OWNER}/{REPO}"));
}

#[test]
fn installing_again_replaces_and_never_doubles_also_at_another_address() {
    let keeper = Keeper::<GiteaFlavour>::new();
    install(&keeper);
    let first = keeper.secrets();
    let output = install(&keeper);
    assert!(output.stdout.contains("replaced"), "{}", output.stdout);
    assert_eq!(keeper.forge.hooks().len(), 1);
    assert_ne!(keeper.secrets(), first);
    let repo = format!("{OWNER}/{REPO}");
    keeper.ok(&["hook", "install", &repo, "--url", "https://elsewhere.example/in"]);
    let urls: Vec<String> = keeper.forge.hooks().into_iter().map(|hook| hook.url).collect();
    assert_eq!(urls, ["https://elsewhere.example/in"]);
    assert_eq!(keeper.secrets(), [keeper.forge.hooks()[0].secret.clone()]);
}

#[test]
fn while_the_forge_has_not_confirmed_the_new_secret_the_old_one_counts_too() {
    let keeper = Keeper::<GiteaFlavour>::new();
    install(&keeper);
    let old = keeper.secrets();
    keeper.forge.fail_next_on("POST", 1, &Mishap::status(403, "no"));
    let output = install(&keeper);
    assert_eq!(output.status, Some(1), "{}", output.snapshot());
    assert_eq!(keeper.secrets().len(), 2);
    assert_eq!(keeper.secrets()[1], old[0]);
    assert_eq!(keeper.list()[0]["confirmed"], false);
    assert_eq!(install(&keeper).status, Some(0));
    assert_eq!(keeper.secrets(), [keeper.forge.hooks()[0].secret.clone()]);
}

#[test]
fn removing_takes_the_webhook_and_its_secret_away() {
    let keeper = Keeper::<GiteaFlavour>::new();
    install(&keeper);
    let repo = format!("{OWNER}/{REPO}");
    keeper.ok(&["hook", "remove", &repo]);
    assert!(keeper.forge.hooks().is_empty() && !keeper.file().exists());
    let again = keeper.run(&["hook", "remove", &repo]);
    assert_eq!(again.status, Some(3), "{}", again.snapshot());
}

#[test]
fn github_and_gitlab_are_known_by_the_whole_address() {
    fn check<F: Flavour>(kind: &str) {
        let keeper = Keeper::<F>::new();
        let address = keeper.forge.remote_url();
        keeper.ok(&["hook", "install", &address, "--url", SERVER]);
        keeper.ok(&["hook", "install", &address, "--url", SERVER]);
        let urls: Vec<String> = keeper.forge.hooks().into_iter().map(|hook| hook.url).collect();
        assert_eq!(urls, [format!("{SERVER}/webhooks/{kind}")]);
        assert_eq!(keeper.list()[0]["kind"], kind);
        keeper.ok(&["hook", "remove", &address]);
        assert!(keeper.forge.hooks().is_empty());
    }
    check::<GithubFlavour>("github");
    check::<GitlabFlavour>("gitlab");
}

#[test]
fn what_cannot_be_is_refused_before_the_forge_is_asked() {
    let keeper = Keeper::<GiteaFlavour>::new();
    for (repo, url, words) in [
        ("app", SERVER, "owner/name"),
        ("alice/hooks", "bottles.example", "not an address for a webhook"),
        ("alice/hooks", "https://me:secret@b.example", "not an address for a webhook"),
        ("alice/..", SERVER, "names no repository"),
    ] {
        let output = keeper.run(&["hook", "install", repo, "--url", url]);
        assert_eq!(output.status, Some(2), "{repo} {url}: {}", output.snapshot());
        assert!(output.stderr.contains(words), "{}", output.stderr);
    }
    assert!(keeper.forge.hooks().is_empty());
}

fn doctor(keeper: &Keeper<GiteaFlavour>) -> Output {
    let mut command = keeper.command(&["doctor"]);
    keeper.hermetic.run(command.env("FORGE_OWNER", OWNER).env("FORGE_REPO", REPO))
}

#[test]
fn doctor_tells_who_we_are_on_the_forge_and_what_is_wrong_there() {
    if testkit::part::require(testkit::part::Part::Bwrap).is_none() {
        return;
    }
    let keeper = Keeper::<GiteaFlavour>::new();
    let output = doctor(&keeper);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stdout.contains("bot1 on 127.0.0.1"), "{}", output.stdout);
    assert!(output.stderr.contains("runs on the forge would fail: org"), "{}", output.stderr);
    keeper.forge.add_member("bot-bottle", "bot1");
    let output = doctor(&keeper);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("bot-bottle hook install alice/hooks"), "{}", output.stdout);
    let receiver = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", receiver.local_addr().expect("an address"));
    keeper.ok(&["hook", "install", "alice/hooks", "--url", &url]);
    let output = doctor(&keeper);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains(&format!("leads to {url}/webhooks/gitea")), "{}", output.stdout);
    assert!(output.stdout.contains("answers, seen from here"), "{}", output.stdout);
    drop(receiver);
    let output = doctor(&keeper);
    assert_eq!(output.status, Some(2), "deliveries are lost: {}", output.snapshot());
    assert!(output.stdout.contains("is bot-bottle serve running?"), "{}", output.stdout);
}

#[test]
fn doctor_notices_a_webhook_that_is_gone_and_a_token_that_is_no_good() {
    if testkit::part::require(testkit::part::Part::Bwrap).is_none() {
        return;
    }
    let keeper = Keeper::<GiteaFlavour>::new();
    keeper.forge.add_member("bot-bottle", "bot1");
    install(&keeper);
    keeper.forge.remove_hooks();
    let output = doctor(&keeper);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stdout.contains("install it again"), "{}", output.stdout);
    let mut command = keeper.command(&["doctor"]);
    command.env("FORGE_OWNER", OWNER).env("FORGE_REPO", REPO).env("FORGE_TOKEN", "wrong");
    let output = keeper.hermetic.run(&mut command);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stdout.contains("does not accept the token"), "{}", output.stdout);
}
