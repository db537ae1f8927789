//! Wrong input: each command says what is wrong and what to do.

use super::snapshot;

#[test]
fn start_without_an_agent() {
    insta::assert_snapshot!(snapshot(&["start"]), @"
    status: 2
    --- stdout
    --- stderr
    error: <AGENT> is missing; see: bot-bottle start --help
    ");
}

#[test]
fn start_with_an_agent_that_has_no_manifest() {
    insta::assert_snapshot!(snapshot(&["start", "ghost", "--headless", "--prompt", "x"]), @"
    status: 125
    --- stdout
    --- stderr
    error: there is no agent 'ghost' ([ROOT]/home/.bot-bottle/agents/ghost.toml); make one with: bot-bottle agent new ghost
    ");
}

#[test]
fn start_with_a_name_that_leads_elsewhere() {
    insta::assert_snapshot!(snapshot(&["start", "../x", "--headless", "--prompt", "x"]), @r#"
    status: 125
    --- stdout
    --- stderr
    error: "../x" is not a valid agent name: 1 to 64 of a-z, 0-9, '.', '_' and '-', starting with a letter or digit
    "#);
}

#[test]
fn start_headless_without_a_prompt() {
    insta::assert_snapshot!(snapshot(&["start", "worker", "--headless"]), @"
    status: 2
    --- stdout
    --- stderr
    error: --headless needs --prompt TEXT, @file or -
    ");
}

#[test]
fn start_without_a_terminal() {
    insta::assert_snapshot!(snapshot(&["start", "worker"]), @"
    status: 2
    --- stdout
    --- stderr
    error: there is no terminal to show the agent on: give --headless and --prompt TEXT, @file or -; look into it with 'bot-bottle logs -f' and 'bot-bottle exec'
    ");
}

#[test]
fn start_with_json_and_no_headless() {
    insta::assert_snapshot!(snapshot(&["start", "worker", "--json"]), @r#"
    status: 2
    --- stdout
    {"event":"error","name":"usage","status":2,"text":"--json needs --headless: a terminal shows no events"}
    --- stderr
    error: --json needs --headless: a terminal shows no events
    "#);
}

#[test]
fn start_that_reads_the_prompt_from_keys() {
    insta::assert_snapshot!(snapshot(&["start", "worker", "--prompt", "-"]), @"
    status: 2
    --- stdout
    --- stderr
    error: --prompt - needs --headless: at a terminal the keys are the agent's
    ");
}

#[test]
fn start_with_a_prompt_file_that_is_missing() {
    insta::assert_snapshot!(snapshot(&["start", "worker", "--headless", "--prompt", "@/nowhere/task.md"]), @"
    status: 2
    --- stdout
    --- stderr
    error: could not read the prompt /nowhere/task.md: No such file or directory (os error 2)
    ");
}

#[test]
fn start_with_an_empty_prompt() {
    insta::assert_snapshot!(snapshot(&["start", "worker", "--headless", "--prompt", " "]), @"
    status: 2
    --- stdout
    --- stderr
    error: the prompt is empty; say what is to be done
    ");
}

#[test]
fn resume_of_a_bottle_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["resume", "ghost", "--headless", "--prompt", "x"]), @"
    status: 125
    --- stdout
    --- stderr
    error: there is no bottle 'ghost'; see: bot-bottle list
    ");
}

#[test]
fn resume_of_a_name_that_is_not_a_slug() {
    insta::assert_snapshot!(snapshot(&["resume", "No Slug", "--headless", "--prompt", "x"]), @r#"
    status: 125
    --- stdout
    --- stderr
    error: "No Slug" is not a valid slug: 1 to 64 of a-z, 0-9 and '-', starting with a letter or digit
    "#);
}

#[test]
fn resume_without_a_terminal() {
    insta::assert_snapshot!(snapshot(&["resume", "ghost"]), @"
    status: 2
    --- stdout
    --- stderr
    error: there is no terminal to show the agent on: give --headless and --prompt TEXT, @file or -; look into it with 'bot-bottle logs -f' and 'bot-bottle exec'
    ");
}

#[test]
fn freeze_of_a_bottle_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["freeze", "ghost"]), @"
    status: 3
    --- stdout
    --- stderr
    error: there is no bottle 'ghost'; see: bot-bottle list
    ");
}

#[test]
fn stop_of_a_bottle_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["stop", "ghost"]), @"
    status: 3
    --- stdout
    --- stderr
    error: there is no bottle 'ghost'; see: bot-bottle list
    ");
}

#[test]
fn destroy_of_a_bottle_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["destroy", "ghost"]), @"
    status: 3
    --- stdout
    --- stderr
    error: there is no bottle 'ghost'; see: bot-bottle list
    ");
}

#[test]
fn destroy_of_a_name_that_leads_elsewhere() {
    insta::assert_snapshot!(snapshot(&["destroy", "../ghost", "--force"]), @r#"
    status: 3
    --- stdout
    --- stderr
    error: "../ghost" is not a valid slug: 1 to 64 of a-z, 0-9 and '-', starting with a letter or digit
    "#);
}

#[test]
fn logs_of_a_bottle_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["logs", "ghost"]), @"
    status: 3
    --- stdout
    --- stderr
    error: there is no bottle 'ghost'; see: bot-bottle list
    ");
}

#[test]
fn exec_in_a_bottle_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["exec", "ghost", "true"]), @"
    status: 3
    --- stdout
    --- stderr
    error: there is no bottle 'ghost'; see: bot-bottle list
    ");
}

#[test]
fn exec_without_a_command() {
    insta::assert_snapshot!(snapshot(&["exec", "ghost"]), @"
    status: 2
    --- stdout
    --- stderr
    error: <COMMAND>... is missing; see: bot-bottle exec --help
    ");
}

#[test]
fn provenance_of_a_run_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["provenance", "show", "ghost"]), @"
    status: 3
    --- stdout
    --- stderr
    error: there is no bottle and no run 'ghost'; see: bot-bottle list
    ");
}

#[test]
fn verification_of_a_run_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["provenance", "verify", "ghost"]), @"
    status: 3
    --- stdout
    --- stderr
    error: there is no bottle and no run 'ghost'; see: bot-bottle list
    ");
}

#[test]
fn verification_of_a_file_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["provenance", "verify", "nowhere/provenance.json"]), @"
    status: 3
    --- stdout
    --- stderr
    error: could not read nowhere/provenance.json: No such file or directory (os error 2)
    ");
}

#[test]
fn verification_with_a_key_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["provenance", "verify", "ghost", "--key", "nowhere.pem"]), @"
    status: 3
    --- stdout
    --- stderr
    error: there is no bottle and no run 'ghost'; see: bot-bottle list
    ");
}

#[test]
fn serve_with_a_configuration_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["serve", "--config", "nowhere.toml"]), @"
    status: 2
    --- stdout
    --- stderr
    error: could not read nowhere.toml: No such file or directory (os error 2); begin one with: bot-bottle config show > nowhere.toml
    ");
}
