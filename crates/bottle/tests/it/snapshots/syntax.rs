//! Command lines that cannot be parsed, and the version.

use super::snapshot;

#[test]
fn no_command_at_all() {
    insta::assert_snapshot!(snapshot(&[]), @"");
}

#[test]
fn a_command_that_does_not_exist() {
    insta::assert_snapshot!(snapshot(&["strat"]), @"");
}

#[test]
fn an_option_that_does_not_exist() {
    insta::assert_snapshot!(snapshot(&["list", "--colour"]), @"");
}

#[test]
fn an_option_of_another_command() {
    insta::assert_snapshot!(snapshot(&["freeze", "worker", "--force"]), @"");
}

#[test]
fn a_second_bottle_where_one_is_meant() {
    insta::assert_snapshot!(snapshot(&["destroy", "one", "two"]), @"");
}

#[test]
fn an_agent_command_that_does_not_exist() {
    insta::assert_snapshot!(snapshot(&["agent", "delete", "worker"]), @"");
}

#[test]
fn an_orchestrated_start_without_a_prompt() {
    insta::assert_snapshot!(snapshot(&["orchestrate", "start", "--agent", "worker"]), @"");
}

#[test]
fn an_orchestrated_resume_without_a_slug() {
    insta::assert_snapshot!(snapshot(&["orchestrate", "resume", "--prompt", "x"]), @"");
}

#[test]
fn a_hook_without_an_address() {
    insta::assert_snapshot!(snapshot(&["hook", "install", "acme/widget"]), @"");
}

#[test]
fn serve_without_a_configuration() {
    insta::assert_snapshot!(snapshot(&["serve"]), @"");
}

#[test]
fn a_configuration_check_without_a_file() {
    insta::assert_snapshot!(snapshot(&["config", "check"]), @"");
}

#[test]
fn completions_for_no_shell() {
    insta::assert_snapshot!(snapshot(&["completions"]), @"");
}

#[test]
fn completions_for_an_unknown_shell() {
    insta::assert_snapshot!(snapshot(&["completions", "tcsh"]), @"");
}

#[test]
fn quiet_and_verbose_together() {
    insta::assert_snapshot!(snapshot(&["list", "--quiet", "--json"]), @"");
}

#[test]
fn the_version() {
    insta::assert_snapshot!(snapshot(&["--version"]), @"");
}

#[test]
fn help_of_a_command_that_does_not_exist() {
    insta::assert_snapshot!(snapshot(&["help", "strat"]), @"");
}
