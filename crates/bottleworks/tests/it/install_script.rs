//! `scripts/install.sh`: from a folder that is a release to programs below a prefix.

use std::fs;
use std::path::{Path, PathBuf};

use testkit::hermetic::{Hermetic, Output};
use testkit::part::missing;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/install.sh");

fn sh(hermetic: &Hermetic, line: &str) -> Output {
    let mut command = hermetic.command("sh");
    hermetic.run(command.current_dir(hermetic.work()).args(["-c", line]))
}

/// A release of version 1 whose program is a line of shell.
fn release(hermetic: &Hermetic) -> PathBuf {
    let machine = format!("bottleworks-1-{}-unknown-linux-musl", std::env::consts::ARCH);
    let line = format!(
        "mkdir -p release tree/{machine}/bin tree/{machine}/share/man/man1 && cd tree \
         && printf '#!/bin/sh\\necho it is \"$0\"\\n' > {machine}/bin/bottleworks && chmod +x {machine}/bin/bottleworks \
         && echo page > {machine}/share/man/man1/wf.1 && tar -czf ../release/{machine}.tar.gz {machine} \
         && cd ../release && sha256sum *.tar.gz > SHA256SUMS"
    );
    let output = sh(hermetic, &line);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    hermetic.work().join("release")
}

fn install(hermetic: &Hermetic, release: &Path) -> Output {
    let mut command = hermetic.command("sh");
    command
        .arg(SCRIPT)
        .env("BASE_URL", format!("file://{}", release.display()))
        .env("VERSION", "1");
    hermetic.run(command.current_dir(hermetic.work()))
}

#[test]
fn three_names_and_the_pages_are_installed() {
    let hermetic = Hermetic::new();
    let release = release(&hermetic);
    // The second time is an update.
    for _ in 0..2 {
        let output = install(&hermetic, &release);
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
        assert!(output.stdout.ends_with("try it: forklift demo\n"), "{}", output.stdout);
    }
    let local = hermetic.home().join(".local");
    for name in ["bottleworks", "forklift", "wf", "bot-bottle"] {
        let output = sh(&hermetic, &format!("{}/bin/{name}", local.display()));
        assert!(output.stdout.ends_with(&format!("/bin/{name}\n")), "{}", output.snapshot());
    }
    assert_eq!(fs::read_to_string(local.join("share/man/man1/wf.1")).expect("a page"), "page\n");
}

#[test]
fn a_tarball_that_was_changed_is_not_installed() {
    let hermetic = Hermetic::new();
    let release = release(&hermetic);
    let output = sh(&hermetic, "for file in release/*.tar.gz; do printf x >> \"$file\"; done");
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let output = install(&hermetic, &release);
    assert_eq!(output.status, Some(1), "{}", output.snapshot());
    assert!(output.stderr.contains("is wrong; nothing is installed"), "{}", output.stderr);
    assert!(!hermetic.home().join(".local/bin").exists());
}

#[test]
fn the_script_of_no_release_asks_for_the_address() {
    let hermetic = Hermetic::new();
    let output = sh(&hermetic, &format!("sh {SCRIPT}"));
    assert_eq!(output.status, Some(1), "{}", output.snapshot());
    assert!(output.stderr.contains("set BASE_URL and VERSION"), "{}", output.stderr);
}

#[test]
fn a_signature_is_checked_where_signers_are_named() {
    let hermetic = Hermetic::new();
    if sh(&hermetic, "command -v ssh-keygen").status != Some(0) {
        missing("openssh", "ssh-keygen is not installed");
        return;
    }
    let release = release(&hermetic);
    let keys = "ssh-keygen -q -t ed25519 -N '' -f key && ssh-keygen -q -t ed25519 -N '' -f other \
        && printf 'releases %s\\n' \"$(cat key.pub)\" > signers && printf 'releases %s\\n' \"$(cat other.pub)\" > strangers \
        && ssh-keygen -q -Y sign -n bottleworks -f key release/SHA256SUMS";
    let output = sh(&hermetic, keys);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    for (signers, status) in [("signers", 0), ("strangers", 1)] {
        let mut command = hermetic.command("sh");
        command.arg(SCRIPT).env("BASE_URL", format!("file://{}", release.display()));
        command.env("VERSION", "1").env("SIGNERS", signers);
        let output = hermetic.run(command.current_dir(hermetic.work()));
        assert_eq!(output.status, Some(status), "{signers}: {}", output.snapshot());
    }
}
