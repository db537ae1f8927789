//! Help of the commands for single bottles, whole.

use super::snapshot;

#[test]
fn help_of_bot_bottle() {
    insta::assert_snapshot!(snapshot(&["--help"]), @"");
}

#[test]
fn help_of_start() {
    insta::assert_snapshot!(snapshot(&["start", "--help"]), @"");
}

#[test]
fn help_of_resume() {
    insta::assert_snapshot!(snapshot(&["resume", "--help"]), @"");
}

#[test]
fn help_of_freeze() {
    insta::assert_snapshot!(snapshot(&["freeze", "--help"]), @"");
}

#[test]
fn help_of_stop() {
    insta::assert_snapshot!(snapshot(&["stop", "--help"]), @"");
}

#[test]
fn help_of_destroy() {
    insta::assert_snapshot!(snapshot(&["destroy", "--help"]), @"");
}

#[test]
fn help_of_list() {
    insta::assert_snapshot!(snapshot(&["list", "--help"]), @"");
}

#[test]
fn help_of_logs() {
    insta::assert_snapshot!(snapshot(&["logs", "--help"]), @"");
}

#[test]
fn help_of_exec() {
    insta::assert_snapshot!(snapshot(&["exec", "--help"]), @"");
}

#[test]
fn help_of_doctor() {
    insta::assert_snapshot!(snapshot(&["doctor", "--help"]), @"");
}
