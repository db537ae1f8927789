//! The program outside a box: it must do nothing there.

use std::fs;
use std::process::Command;

use guest::config::{GuestConfig, GuestReport, PreflightCheck};

#[test]
fn the_init_refuses_to_run_outside_a_box() {
    let dir = tempfile::tempdir().unwrap();
    let marker = dir.path().join("started");
    let argv = vec!["touch".to_owned(), marker.display().to_string()];
    let mut config = GuestConfig::new(argv, "/", 5);
    // Even if nothing is demanded.
    config.demand.clear();
    let (status, line) = init(dir.path(), &serde_json::to_string(&config).unwrap());
    let report = GuestReport::parse_line(&line).unwrap();
    assert_eq!(status, Some(guest::EXIT_GUEST_FAILED));
    assert!(!report.ready);
    let failed: Vec<PreflightCheck> =
        report.preflight.iter().filter(|item| item.failed()).map(|item| item.name).collect();
    assert!(failed.contains(&PreflightCheck::SharedPids), "{line}");
    assert_eq!(failed.contains(&PreflightCheck::Root), report.uid == 0, "{line}");
    assert!(!marker.exists());
}

#[test]
fn a_bad_configuration_is_reported_in_the_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let (status, line) = init(dir.path(), "{}");
    let report = GuestReport::parse_line(&line).unwrap();
    assert_eq!(status, Some(guest::EXIT_GUEST_FAILED));
    assert!(report.reasons()[0].contains("missing field"), "{line}");
}

#[test]
fn the_version_is_one_line() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_bottle-guest")).arg("--version").output().unwrap();
    let expected = format!("bottle-guest {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn a_wrong_call_is_told_how_to_call() {
    let output = Command::new(env!("CARGO_BIN_EXE_bottle-guest")).arg("dance").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("usage: bottle-guest init"));
}

fn init(dir: &std::path::Path, config: &str) -> (Option<i32>, String) {
    let path = dir.join(guest::CONFIG_FILE);
    fs::write(&path, config).unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_bottle-guest")).arg("init").arg(path).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}
