//! Documents of `--json`: empty lists and errors.

use super::snapshot;

#[test]
fn an_empty_list() {
    insta::assert_snapshot!(snapshot(&["list", "--json"]), @"");
}

#[test]
fn an_empty_list_of_agents() {
    insta::assert_snapshot!(snapshot(&["agent", "list", "--json"]), @"");
}

#[test]
fn an_empty_list_of_hooks() {
    insta::assert_snapshot!(snapshot(&["hook", "list", "--json"]), @"");
}

#[test]
fn an_empty_status() {
    insta::assert_snapshot!(snapshot(&["orchestrate", "status", "--json"]), @"");
}

#[test]
fn an_agent_without_a_manifest() {
    insta::assert_snapshot!(snapshot(&["start", "ghost", "--headless", "--prompt", "x", "--json"]), @"");
}

#[test]
fn a_bottle_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["freeze", "ghost", "--json"]), @"");
}

#[test]
fn a_run_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["provenance", "show", "ghost", "--json"]), @"");
}

#[test]
fn a_statement_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["provenance", "verify", "ghost", "--json"]), @"");
}

#[test]
fn a_manifest_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["agent", "show", "ghost", "--json"]), @"");
}

#[test]
fn a_log_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["logs", "ghost", "--json"]), @"");
}

#[test]
fn a_command_in_no_bottle() {
    insta::assert_snapshot!(snapshot(&["exec", "ghost", "--json", "true"]), @"");
}

#[test]
fn a_configuration_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["config", "check", "nowhere.toml", "--json"]), @"");
}

#[test]
fn a_hook_on_an_unknown_forge() {
    insta::assert_snapshot!(snapshot(&["hook", "install", "acme/widget", "--url", "https://b.example", "--json"]), @"");
}

#[test]
fn an_orchestrated_start_without_variables() {
    insta::assert_snapshot!(snapshot(&["orchestrate", "start", "--agent", "a", "--prompt", "x", "--json"]), @"");
}

#[test]
fn an_option_that_does_not_exist() {
    insta::assert_snapshot!(snapshot(&["list", "--colour", "--json"]), @"");
}
