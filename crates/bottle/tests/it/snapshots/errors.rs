//! Wrong input: each command says what is wrong and what to do.

use super::snapshot;

#[test]
fn start_without_an_agent() {
    insta::assert_snapshot!(snapshot(&["start"]), @"");
}

#[test]
fn start_with_an_agent_that_has_no_manifest() {
    insta::assert_snapshot!(snapshot(&["start", "ghost", "--headless", "--prompt", "x"]), @"");
}

#[test]
fn start_with_a_name_that_leads_elsewhere() {
    insta::assert_snapshot!(snapshot(&["start", "../x", "--headless", "--prompt", "x"]), @"");
}

#[test]
fn start_headless_without_a_prompt() {
    insta::assert_snapshot!(snapshot(&["start", "worker", "--headless"]), @"");
}

#[test]
fn start_without_a_terminal() {
    insta::assert_snapshot!(snapshot(&["start", "worker"]), @"");
}

#[test]
fn start_with_json_and_no_headless() {
    insta::assert_snapshot!(snapshot(&["start", "worker", "--json"]), @"");
}

#[test]
fn start_that_reads_the_prompt_from_keys() {
    insta::assert_snapshot!(snapshot(&["start", "worker", "--prompt", "-"]), @"");
}

#[test]
fn start_with_a_prompt_file_that_is_missing() {
    insta::assert_snapshot!(snapshot(&["start", "worker", "--headless", "--prompt", "@/nowhere/task.md"]), @"");
}

#[test]
fn start_with_an_empty_prompt() {
    insta::assert_snapshot!(snapshot(&["start", "worker", "--headless", "--prompt", " "]), @"");
}

#[test]
fn resume_of_a_bottle_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["resume", "ghost", "--headless", "--prompt", "x"]), @"");
}

#[test]
fn resume_of_a_name_that_is_not_a_slug() {
    insta::assert_snapshot!(snapshot(&["resume", "No Slug", "--headless", "--prompt", "x"]), @"");
}

#[test]
fn resume_without_a_terminal() {
    insta::assert_snapshot!(snapshot(&["resume", "ghost"]), @"");
}

#[test]
fn freeze_of_a_bottle_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["freeze", "ghost"]), @"");
}

#[test]
fn stop_of_a_bottle_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["stop", "ghost"]), @"");
}

#[test]
fn destroy_of_a_bottle_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["destroy", "ghost"]), @"");
}

#[test]
fn destroy_of_a_name_that_leads_elsewhere() {
    insta::assert_snapshot!(snapshot(&["destroy", "../ghost", "--force"]), @"");
}

#[test]
fn logs_of_a_bottle_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["logs", "ghost"]), @"");
}

#[test]
fn exec_in_a_bottle_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["exec", "ghost", "true"]), @"");
}

#[test]
fn exec_without_a_command() {
    insta::assert_snapshot!(snapshot(&["exec", "ghost"]), @"");
}

#[test]
fn provenance_of_a_run_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["provenance", "show", "ghost"]), @"");
}

#[test]
fn verification_of_a_run_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["provenance", "verify", "ghost"]), @"");
}

#[test]
fn verification_of_a_file_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["provenance", "verify", "nowhere/provenance.json"]), @"");
}

#[test]
fn verification_with_a_key_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["provenance", "verify", "ghost", "--key", "nowhere.pem"]), @"");
}

#[test]
fn serve_with_a_configuration_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["serve", "--config", "nowhere.toml"]), @"");
}
