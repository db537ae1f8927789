//! Command lines that cannot be parsed, and the version.

use super::snapshot;

#[test]
fn no_command_at_all() {
    insta::assert_snapshot!(snapshot(&[]), @r"
    status: 2
    --- stdout
    --- stderr
    Turns a forge issue into a pull request: an agent in a bottle that freezes while people review

    Usage: bot-bottle [OPTIONS] <COMMAND>

    Commands:
      start        Start a new bottle: at your terminal, or headless with one prompt
      resume       Resume a frozen bottle: at your terminal, or headless with one more prompt
      freeze       End the agent of a bottle and keep everything, to resume later
      stop         End the agent of a bottle for good; its work is kept and not published
      destroy      Remove a bottle's workspace and the agent's files; the records of its runs stay
      prune        Remove old bottles, with the records of their runs
      list         List bottles
      show         Show a bottle and its newest run: agent, model, tokens, cost, times, result
      logs         Show what the agent of the newest run printed
      diff         Show what a bottle has changed, as a patch
      apply        Put the changes of a bottle into the files of your checkout, uncommitted
      checkout     Make a branch of a bottle's commits in your repository, and check it out
      exec         Run a command on a bottle's workspace, in a sealed box of its own; returns its status
      doctor       Try what a run needs: git, a box, its egress and limits, agents, the forge,
                   serve.toml
      agent        Agents: who works, with which model, within which limits
      bottle       Bottles: what a box is made of
      orchestrate  Start and resume on behalf of a forge, from variables
      serve        Serve webhooks, the page and the API: issues become pull requests without a person
                   beside them
      worker       Run bottles for `serve` on other machines: claim queued issues of the shared database
                   as far as there is room
      fleet        Several hosts on one database: which there are, and logins for workers
      dispatch     Give an agent work without an issue; `serve` opens the issue and the work ends in a
                   pull request
      init         Prepare bot-bottle: the agent and its key, the forge's token, and a manifest
      config       Show or change the shared configuration; show or check that of `serve`
      hook         Webhooks: how a forge reports to `bot-bottle serve`
      key          The key that signs statements about runs
      provenance   What a run was: agent, timing, operations, scans, commits; and whether that is true
      demo         Turn an issue into a pull request, without a model and without a forge
      completions  Print completions for a shell
      man          Print the manual page
      help         Print this message or the help of the given subcommand(s)

    Options:
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help (see more with '--help')
      -V, --version  Print version

    Exit status:
      0    done
      1    general error
      2    wrong configuration or usage
      3    no such bottle, or it is in the wrong state
      8    waiting for a person
      9    internal error; please report it
      125  start or resume failed before the agent had a status of its own

    Runs return the agent's own status: 124 out of time, 137 out of memory or space, 143 stopped or
    frozen, 130 stopped by Ctrl-C.
    ");
}

#[test]
fn a_command_that_does_not_exist() {
    insta::assert_snapshot!(snapshot(&["strat"]), @"
    status: 2
    --- stdout
    --- stderr
    error: unknown command 'strat'; did you mean 'start'? See: bot-bottle --help
    ");
}

#[test]
fn an_option_that_does_not_exist() {
    insta::assert_snapshot!(snapshot(&["list", "--colour"]), @"
    status: 2
    --- stdout
    --- stderr
    error: unknown option '--colour'; see: bot-bottle list --help
    ");
}

#[test]
fn an_option_of_another_command() {
    insta::assert_snapshot!(snapshot(&["freeze", "worker", "--force"]), @"
    status: 2
    --- stdout
    --- stderr
    error: unknown option '--force'; see: bot-bottle freeze --help
    ");
}

#[test]
fn a_second_bottle_where_one_is_meant() {
    insta::assert_snapshot!(snapshot(&["destroy", "one", "two"]), @"
    status: 2
    --- stdout
    --- stderr
    error: unexpected word 'two'; see: bot-bottle destroy --help
    ");
}

#[test]
fn an_agent_command_that_does_not_exist() {
    insta::assert_snapshot!(snapshot(&["agent", "delete", "worker"]), @"
    status: 2
    --- stdout
    --- stderr
    error: unknown command 'delete'; see: bot-bottle agent --help
    ");
}

#[test]
fn an_orchestrated_start_without_a_prompt() {
    insta::assert_snapshot!(snapshot(&["orchestrate", "start", "--agent", "worker"]), @"
    status: 2
    --- stdout
    --- stderr
    error: --prompt <PROMPT> is missing; see: bot-bottle orchestrate start --help
    ");
}

#[test]
fn an_orchestrated_resume_without_a_slug() {
    insta::assert_snapshot!(snapshot(&["orchestrate", "resume", "--prompt", "x"]), @"
    status: 2
    --- stdout
    --- stderr
    error: --slug <SLUG> is missing; see: bot-bottle orchestrate resume --help
    ");
}

#[test]
fn a_hook_without_an_address() {
    insta::assert_snapshot!(snapshot(&["hook", "install", "acme/widget"]), @"
    status: 2
    --- stdout
    --- stderr
    error: --url <URL> is missing; see: bot-bottle hook install --help
    ");
}

#[test]
fn serve_without_a_configuration() {
    insta::assert_snapshot!(snapshot(&["serve"]), @"
    status: 2
    --- stdout
    --- stderr
    error: --config <CONFIG> is missing; see: bot-bottle serve --help
    ");
}

#[test]
fn a_configuration_check_without_a_file() {
    insta::assert_snapshot!(snapshot(&["config", "check"]), @"
    status: 2
    --- stdout
    --- stderr
    error: <FILE> is missing; see: bot-bottle config check --help
    ");
}

#[test]
fn completions_for_no_shell() {
    insta::assert_snapshot!(snapshot(&["completions"]), @"
    status: 2
    --- stdout
    --- stderr
    error: <SHELL> is missing; see: bot-bottle completions --help
    ");
}

#[test]
fn completions_for_an_unknown_shell() {
    insta::assert_snapshot!(snapshot(&["completions", "tcsh"]), @"
    status: 2
    --- stdout
    --- stderr
    error: the shell 'tcsh' is not one of bash, elvish, fish, powershell, zsh
    ");
}

#[test]
fn quiet_does_not_silence_a_document() {
    insta::assert_snapshot!(snapshot(&["list", "--quiet", "--json"]), @"
    status: 0
    --- stdout
    []
    --- stderr
    ");
}

#[test]
fn the_version() {
    insta::assert_snapshot!(snapshot(&["--version"]), @"
    status: 0
    --- stdout
    bot-bottle 0.1.0
    --- stderr
    ");
}

#[test]
fn help_of_a_command_that_does_not_exist() {
    insta::assert_snapshot!(snapshot(&["help", "strat"]), @"
    status: 2
    --- stdout
    --- stderr
    error: unknown command 'strat'; see: bot-bottle --help
    ");
}
