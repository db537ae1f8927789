//! The examples for people who let bot-bottle serve.

use std::path::Path;

use testkit::hermetic::Hermetic;
use testkit::part::missing;

#[test]
fn the_unit_of_the_server_is_what_systemd_takes_for_a_unit() {
    verify_unit("bot-bottle.service", "serve");
}

#[test]
fn the_unit_of_a_worker_is_what_systemd_takes_for_a_unit() {
    verify_unit("bot-bottle-worker.service", "worker");
}

/// Systemd's own word on a unit, with the program where it is here.
fn verify_unit(name: &str, command: &str) {
    let hermetic = Hermetic::new();
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/systemd").join(name);
    let text = std::fs::read_to_string(unit).expect("the unit");
    assert!(text.contains(&format!("bot-bottle {command} --config")), "{text}");
    let text = text.replace("%h/.local/bin/bot-bottle", env!("CARGO_BIN_EXE_bot-bottle"));
    let path = hermetic.root().join(name);
    std::fs::write(&path, text).expect("written");
    let mut command = hermetic.command("systemd-analyze");
    command.args(["--user", "--man=no", "verify"]).arg(&path);
    let Ok(output) = command.output() else {
        missing("systemd", "systemd-analyze is not installed");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}
