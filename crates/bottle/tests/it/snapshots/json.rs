//! Documents of `--json`: empty lists and errors.

use super::snapshot;

#[test]
fn an_empty_list() {
    insta::assert_snapshot!(snapshot(&["list", "--json"]), @"
    status: 0
    --- stdout
    []
    --- stderr
    ");
}

#[test]
fn an_empty_list_of_agents() {
    insta::assert_snapshot!(snapshot(&["agent", "list", "--json"]), @"
    status: 0
    --- stdout
    []
    --- stderr
    ");
}

#[test]
fn an_empty_list_of_hooks() {
    insta::assert_snapshot!(snapshot(&["hook", "list", "--json"]), @"
    status: 0
    --- stdout
    []
    --- stderr
    ");
}

#[test]
fn an_empty_status() {
    insta::assert_snapshot!(snapshot(&["orchestrate", "status", "--json"]), @"
    status: 0
    --- stdout
    []
    --- stderr
    ");
}

#[test]
fn an_agent_without_a_manifest() {
    insta::assert_snapshot!(snapshot(&["start", "ghost", "--headless", "--prompt", "x", "--json"]), @r#"
    status: 125
    --- stdout
    {"event":"error","name":"own-failure","status":125,"text":"there is no agent 'ghost' ([ROOT]/home/.bot-bottle/agents/ghost.toml); make one with: bot-bottle agent new ghost"}
    --- stderr
    error: there is no agent 'ghost' ([ROOT]/home/.bot-bottle/agents/ghost.toml); make one with: bot-bottle agent new ghost
    "#);
}

#[test]
fn a_bottle_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["freeze", "ghost", "--json"]), @r#"
    status: 3
    --- stdout
    {"event":"error","name":"not-found","status":3,"text":"there is no bottle 'ghost'; see: bot-bottle list"}
    --- stderr
    error: there is no bottle 'ghost'; see: bot-bottle list
    "#);
}

#[test]
fn a_run_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["provenance", "show", "ghost", "--json"]), @r#"
    status: 3
    --- stdout
    {"event":"error","name":"not-found","status":3,"text":"there is no bottle and no run 'ghost'; see: bot-bottle list"}
    --- stderr
    error: there is no bottle and no run 'ghost'; see: bot-bottle list
    "#);
}

#[test]
fn a_statement_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["provenance", "verify", "ghost", "--json"]), @r#"
    status: 3
    --- stdout
    {"event":"error","name":"not-found","status":3,"text":"there is no bottle and no run 'ghost'; see: bot-bottle list"}
    --- stderr
    error: there is no bottle and no run 'ghost'; see: bot-bottle list
    "#);
}

#[test]
fn a_manifest_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["agent", "show", "ghost", "--json"]), @r#"
    status: 2
    --- stdout
    {"event":"error","name":"usage","status":2,"text":"there is no agent 'ghost' ([ROOT]/home/.bot-bottle/agents/ghost.toml); make one with: bot-bottle agent new ghost"}
    --- stderr
    error: there is no agent 'ghost' ([ROOT]/home/.bot-bottle/agents/ghost.toml); make one with: bot-bottle agent new ghost
    "#);
}

#[test]
fn a_log_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["logs", "ghost", "--json"]), @r#"
    status: 3
    --- stdout
    {"event":"error","name":"not-found","status":3,"text":"there is no bottle 'ghost'; see: bot-bottle list"}
    --- stderr
    error: there is no bottle 'ghost'; see: bot-bottle list
    "#);
}

#[test]
fn a_command_in_no_bottle() {
    insta::assert_snapshot!(snapshot(&["exec", "ghost", "--json", "true"]), @r#"
    status: 3
    --- stdout
    {"event":"error","name":"not-found","status":3,"text":"there is no bottle 'ghost'; see: bot-bottle list"}
    --- stderr
    error: there is no bottle 'ghost'; see: bot-bottle list
    "#);
}

#[test]
fn a_configuration_that_is_not_there() {
    insta::assert_snapshot!(snapshot(&["config", "check", "nowhere.toml", "--json"]), @r#"
    status: 2
    --- stdout
    {"event":"error","name":"usage","status":2,"text":"could not read nowhere.toml: No such file or directory (os error 2); begin one with: bot-bottle config show > nowhere.toml"}
    --- stderr
    error: could not read nowhere.toml: No such file or directory (os error 2); begin one with: bot-bottle config show > nowhere.toml
    "#);
}

#[test]
fn a_hook_on_an_unknown_forge() {
    insta::assert_snapshot!(snapshot(&["hook", "install", "acme/widget", "--url", "https://b.example", "--json"]), @r#"
    status: 2
    --- stdout
    {"event":"error","name":"usage","status":2,"text":"the forge of acme/widget is not known: set FORGE_GITEA_API, or give the repository's whole address"}
    --- stderr
    error: the forge of acme/widget is not known: set FORGE_GITEA_API, or give the repository's whole address
    "#);
}

#[test]
fn an_orchestrated_start_without_variables() {
    insta::assert_snapshot!(snapshot(&["orchestrate", "start", "--agent", "a", "--prompt", "x", "--json"]), @r#"
    status: 125
    --- stdout
    {"event":"error","name":"own-failure","status":125,"text":"FORGE_GITEA_API is not set; a forge run needs it, see: bot-bottle orchestrate start --help"}
    --- stderr
    error: FORGE_GITEA_API is not set; a forge run needs it, see: bot-bottle orchestrate start --help
    "#);
}

#[test]
fn an_option_that_does_not_exist() {
    insta::assert_snapshot!(snapshot(&["list", "--colour", "--json"]), @r#"
    status: 2
    --- stdout
    {"event":"error","name":"usage","remedy":"see: bot-bottle list --help","status":2,"text":"unknown option '--colour'"}
    --- stderr
    error: unknown option '--colour'; see: bot-bottle list --help
    "#);
}
