//! Help of the command groups, whole.

use super::snapshot;

#[test]
fn help_of_agent() {
    insta::assert_snapshot!(snapshot(&["agent", "--help"]), @"");
}

#[test]
fn help_of_agent_list() {
    insta::assert_snapshot!(snapshot(&["agent", "list", "--help"]), @"");
}

#[test]
fn help_of_agent_show() {
    insta::assert_snapshot!(snapshot(&["agent", "show", "--help"]), @"");
}

#[test]
fn help_of_agent_check() {
    insta::assert_snapshot!(snapshot(&["agent", "check", "--help"]), @"");
}

#[test]
fn help_of_agent_new() {
    insta::assert_snapshot!(snapshot(&["agent", "new", "--help"]), @"");
}

#[test]
fn help_of_bottle() {
    insta::assert_snapshot!(snapshot(&["bottle", "--help"]), @"");
}

#[test]
fn help_of_bottle_check() {
    insta::assert_snapshot!(snapshot(&["bottle", "check", "--help"]), @"");
}

#[test]
fn help_of_orchestrate() {
    insta::assert_snapshot!(snapshot(&["orchestrate", "--help"]), @"");
}

#[test]
fn help_of_orchestrate_start() {
    insta::assert_snapshot!(snapshot(&["orchestrate", "start", "--help"]), @"");
}

#[test]
fn help_of_orchestrate_resume() {
    insta::assert_snapshot!(snapshot(&["orchestrate", "resume", "--help"]), @"");
}

#[test]
fn help_of_orchestrate_status() {
    insta::assert_snapshot!(snapshot(&["orchestrate", "status", "--help"]), @"");
}

#[test]
fn help_of_serve() {
    insta::assert_snapshot!(snapshot(&["serve", "--help"]), @"");
}

#[test]
fn help_of_config() {
    insta::assert_snapshot!(snapshot(&["config", "--help"]), @"");
}

#[test]
fn help_of_config_show() {
    insta::assert_snapshot!(snapshot(&["config", "show", "--help"]), @"");
}

#[test]
fn help_of_config_check() {
    insta::assert_snapshot!(snapshot(&["config", "check", "--help"]), @"");
}

#[test]
fn help_of_hook() {
    insta::assert_snapshot!(snapshot(&["hook", "--help"]), @"");
}

#[test]
fn help_of_hook_install() {
    insta::assert_snapshot!(snapshot(&["hook", "install", "--help"]), @"");
}

#[test]
fn help_of_hook_list() {
    insta::assert_snapshot!(snapshot(&["hook", "list", "--help"]), @"");
}

#[test]
fn help_of_hook_remove() {
    insta::assert_snapshot!(snapshot(&["hook", "remove", "--help"]), @"");
}

#[test]
fn help_of_key() {
    insta::assert_snapshot!(snapshot(&["key", "--help"]), @"");
}

#[test]
fn help_of_key_create() {
    insta::assert_snapshot!(snapshot(&["key", "create", "--help"]), @"");
}

#[test]
fn help_of_key_show() {
    insta::assert_snapshot!(snapshot(&["key", "show", "--help"]), @"");
}

#[test]
fn help_of_key_rotate() {
    insta::assert_snapshot!(snapshot(&["key", "rotate", "--help"]), @"");
}

#[test]
fn help_of_provenance() {
    insta::assert_snapshot!(snapshot(&["provenance", "--help"]), @"");
}

#[test]
fn help_of_provenance_show() {
    insta::assert_snapshot!(snapshot(&["provenance", "show", "--help"]), @"");
}

#[test]
fn help_of_provenance_verify() {
    insta::assert_snapshot!(snapshot(&["provenance", "verify", "--help"]), @"");
}

#[test]
fn help_of_completions() {
    insta::assert_snapshot!(snapshot(&["completions", "--help"]), @"");
}

#[test]
fn help_of_man() {
    insta::assert_snapshot!(snapshot(&["man", "--help"]), @"");
}
