//! Commits that are signed with the host's key: git verifies them, and the bottle goes on from them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use testkit::hermetic::Hermetic;
use testkit::part::{Part, require};

use crate::support::{COMMIT, DONE, SLUG, Scene};

fn scene() -> Option<Scene> {
    require(Part::SshKeygen)?;
    let scene = Scene::new()?;
    scene.person.agent("worker", "sign_commits = true\n");
    Some(scene)
}

/// Messages of the published commits, newest first, each of which git has verified with the key of the host.
fn verified(scene: &Scene) -> Vec<String> {
    let person = &scene.person;
    let line = person.run(&["key", "show", "--ssh"]).stdout;
    assert!(line.starts_with("ssh-ed25519 "), "{line}");
    let signers = person.hermetic.root().join("signers");
    fs::write(&signers, format!("* {line}")).expect("written");
    let signers = format!("gpg.ssh.allowedSignersFile={}", signers.display());
    let origin = &person.fork.origin;
    let range = ["rev-list", &format!("main..bot-bottle/{SLUG}")];
    let commits = origin.git(&range);
    let verify = |commit: &str| {
        let verified = origin.try_git(&["-c", &signers, "verify-commit", commit]);
        assert!(verified.is_ok(), "{commit}: {verified:?}");
        origin.git(&["show", "-s", "--format=%s by %an", commit]).trim().to_owned()
    };
    commits.lines().map(verify).collect()
}

/// The commit in a workspace, as its own files say it.
fn head_of(workspace: &Path) -> String {
    let name = format!("refs/heads/bot-bottle/{SLUG}");
    fs::read_to_string(workspace.join(".git").join(name)).expect("a branch").trim().to_owned()
}

#[test]
fn published_commits_are_signed_and_the_next_run_goes_on_from_them() {
    let Some(scene) = scene() else { return };
    let two = format!("{COMMIT}{}", COMMIT.replace("do the work", "do more"));
    scene.start_ok(&format!("{two}{DONE}"));
    let first = verified(&scene);
    assert_eq!(first.len(), 2, "{first:?}");
    assert!(first.iter().all(|line| line.ends_with("by Bottleworks agent")), "{first:?}");
    let workspace = scene.person.bottle(SLUG).join("workspace");
    let tip = scene.published().expect("published");
    assert_ne!(head_of(&workspace), tip, "the agent's own commit has another id");
    let report = scene.person.json(&["provenance", "verify", SLUG]);
    assert_eq!(report["verified"], true, "{report:#}");

    let output = scene.resume(&format!("{COMMIT}{DONE}"));
    assert_eq!(output.status, Some(0), "{}\n{}", output.snapshot(), scene.log());
    assert_eq!(verified(&scene).len(), 3, "each commit is there once");
    let new = scene.published().expect("published");
    let contains = ["merge-base", "--is-ancestor", tip.trim(), new.trim()];
    assert!(scene.person.fork.origin.try_git(&contains).is_ok(), "no force was needed");
    assert_eq!(scene.forge.pulls().len(), 1);
    let bundle = scene.person.last_run(SLUG).join("provenance.json");
    let bundle: attest::bundle::Bundle =
        serde_json::from_slice(&fs::read(bundle).expect("statements")).expect("a bundle");
    let run = bundle.claimed_run().expect("a statement");
    assert_eq!(run.subject[0].digest["gitCommit"], new.trim(), "it is about what was published");
    assert!(run.subject[0].annotations["signedFrom"].is_string());
}

/// The key is replaced in between: the commit that was signed is published, and no second one.
#[test]
fn killed_after_the_commits_were_signed_the_same_ones_are_published() {
    let Some(scene) = scene() else { return };
    let mut command = scene.start_command(&format!("{COMMIT}{DONE}"));
    let output = scene.person.hermetic.run(command.env("BOTTLEWORKS_FAILPOINT", "commits-signed"));
    assert_eq!(output.signal, Some(9), "{}", output.snapshot());
    let record = scene.person.bottle(SLUG).join("record.json");
    let record: serde_json::Value =
        serde_json::from_slice(&fs::read(record).expect("a record")).expect("JSON");
    let signed = record["signed"]["to"].as_str().expect("a commit").to_owned();
    verified_after_rotation(&scene, &signed);
}

fn verified_after_rotation(scene: &Scene, signed: &str) {
    let rotated = scene.person.run(&["key", "rotate"]);
    assert_eq!(rotated.status, Some(0), "{}", rotated.snapshot());
    let output = scene.resume(DONE);
    assert_eq!(output.status, Some(0), "{}\n{}", output.snapshot(), scene.log());
    assert_eq!(scene.published().expect("published").trim(), signed);
    assert_eq!(scene.forge.pulls().len(), 1);
}

/// The keyring of GnuPG in a home. Its agent ends with it.
struct Keyring<'a>(&'a Hermetic);

impl<'a> Keyring<'a> {
    /// A keyring with one key.
    fn new(hermetic: &'a Hermetic) -> Self {
        let dir = hermetic.home().join(".gnupg");
        fs::create_dir(&dir).expect("made");
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).expect("set");
        let person = "Bot <bot@example.org>";
        let options = ["--batch", "--passphrase", "", "--quick-gen-key", person, "ed25519", "sign"];
        hermetic.run_ok(hermetic.command("gpg").args(options).arg("never"));
        Self(hermetic)
    }
}

impl Drop for Keyring<'_> {
    fn drop(&mut self) {
        self.0.run_ok(self.0.command("gpgconf").args(["--kill", "all"]));
    }
}

/// A scene that signs with a key of GnuPG.
fn gpg_scene(key: &str) -> Option<Scene> {
    require(Part::Gpg)?;
    let scene = scene()?;
    let config = scene.person.hermetic.home().join(".config/bottleworks/config.toml");
    fs::create_dir_all(config.parent().expect("a folder")).expect("made");
    fs::write(&config, format!("[identity]\ngpg_key = \"{key}\"\n")).expect("written");
    Some(scene)
}

#[test]
fn a_key_of_gnupg_signs_where_it_is_configured() {
    let Some(scene) = gpg_scene("bot@example.org") else { return };
    let hermetic = &scene.person.hermetic;
    let _keyring = Keyring::new(hermetic);
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let tip = scene.published().expect("published");
    let mut git = hermetic.command("git");
    git.arg("-C").arg(scene.person.fork.origin.dir());
    let words = hermetic.run_ok(git.args(["verify-commit", "--raw", tip.trim()])).stderr;
    assert!(words.contains("GOODSIG"), "{words}");
    let log = fs::read_to_string(scene.person.last_run(SLUG).join("operations.jsonl"));
    let log = log.expect("an operation log");
    let line = log.lines().find(|line| line.contains("commits.sign")).expect("the signature");
    let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
    let keys = line["detail"]["keyid"].as_array().expect("keys");
    assert!(words.contains(keys[0].as_str().expect("a key")), "{line}: {words}");
}

#[test]
fn a_key_that_gnupg_does_not_have_publishes_nothing_and_doctor_names_it() {
    let Some(scene) = gpg_scene("nobody@example.org") else { return };
    let _keyring = Keyring::new(&scene.person.hermetic);
    let output = scene.start(&format!("{COMMIT}{DONE}"));
    assert_ne!(output.status, Some(0));
    let reason = "gpg did not sign with the key nobody@example.org";
    assert!(output.stderr.contains(reason), "{}", output.snapshot());
    assert_eq!(scene.published(), None);
    let doctor = scene.person.run(&["doctor"]);
    assert!(doctor.status != Some(0) && doctor.stdout.contains(reason), "{}", doctor.snapshot());
}

#[test]
fn without_the_setting_the_agents_own_commits_are_published() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let workspace = scene.person.bottle(SLUG).join("workspace");
    assert_eq!(head_of(&workspace), scene.published().expect("published").trim());
}
