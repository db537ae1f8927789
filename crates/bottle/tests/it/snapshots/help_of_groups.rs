//! Help of the command groups, whole.

use super::snapshot;

#[test]
fn help_of_agent() {
    insta::assert_snapshot!(snapshot(&["agent", "--help"]), @"
    status: 0
    --- stdout
    Agents: who works, with which model, within which limits

    Usage: bot-bottle agent [OPTIONS] <COMMAND>

    Commands:
      list   List the manifests
      show   Show a manifest
      check  Check a manifest against this machine
      new    Write a manifest to start with
      help   Print this message or the help of the given subcommand(s)

    Options:
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help
    --- stderr
    ");
}

#[test]
fn help_of_agent_list() {
    insta::assert_snapshot!(snapshot(&["agent", "list", "--help"]), @"
    status: 0
    --- stdout
    List the manifests

    Usage: bot-bottle agent list [OPTIONS]

    Options:
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help

    Examples:
      bot-bottle agent list
    --- stderr
    ");
}

#[test]
fn help_of_agent_show() {
    insta::assert_snapshot!(snapshot(&["agent", "show", "--help"]), @"
    status: 0
    --- stdout
    Show a manifest

    Usage: bot-bottle agent show [OPTIONS] <NAME>

    Arguments:
      <NAME>  Its name

    Options:
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help

    Examples:
      bot-bottle agent show worker
    --- stderr
    ");
}

#[test]
fn help_of_agent_check() {
    insta::assert_snapshot!(snapshot(&["agent", "check", "--help"]), @"
    status: 0
    --- stdout
    Check a manifest against this machine

    Usage: bot-bottle agent check [OPTIONS] <NAME>

    Arguments:
      <NAME>  Its name

    Options:
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help

    Examples:
      bot-bottle agent check worker
    --- stderr
    ");
}

#[test]
fn help_of_agent_new() {
    insta::assert_snapshot!(snapshot(&["agent", "new", "--help"]), @"
    status: 0
    --- stdout
    Write a manifest to start with

    Usage: bot-bottle agent new [OPTIONS] <NAME>

    Arguments:
      <NAME>  Its name

    Options:
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help

    Examples:
      bot-bottle agent new worker
    --- stderr
    ");
}

#[test]
fn help_of_bottle() {
    insta::assert_snapshot!(snapshot(&["bottle", "--help"]), @"
    status: 0
    --- stdout
    Bottles: what a box is made of

    Usage: bot-bottle bottle [OPTIONS] <COMMAND>

    Commands:
      list   List the manifests
      show   Show a manifest
      check  Check a manifest against this machine
      new    Write a manifest to start with
      help   Print this message or the help of the given subcommand(s)

    Options:
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help
    --- stderr
    ");
}

#[test]
fn help_of_bottle_check() {
    insta::assert_snapshot!(snapshot(&["bottle", "check", "--help"]), @"
    status: 0
    --- stdout
    Check a manifest against this machine

    Usage: bot-bottle bottle check [OPTIONS] <NAME>

    Arguments:
      <NAME>  Its name

    Options:
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help

    Examples:
      bot-bottle bottle check rust
    --- stderr
    ");
}

#[test]
fn help_of_orchestrate() {
    insta::assert_snapshot!(snapshot(&["orchestrate", "--help"]), @"
    status: 0
    --- stdout
    Start and resume on behalf of a forge, from variables

    Usage: bot-bottle orchestrate [OPTIONS] <COMMAND>

    Commands:
      start   Work on an issue in a new bottle: `start --headless` with the forge's wiring
      resume  Resume the bottle of an issue: `resume --headless` with the forge's wiring
      status  List active bottles with the pages of their issues and pull requests
      help    Print this message or the help of the given subcommand(s)

    Options:
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help
    --- stderr
    ");
}

#[test]
fn help_of_orchestrate_start() {
    insta::assert_snapshot!(snapshot(&["orchestrate", "start", "--help"]), @"
    status: 0
    --- stdout
    Work on an issue in a new bottle: `start --headless` with the forge's wiring

    The issue has to be assigned to a member of FORGE_ORG and labelled `bot-bottle:<agent>`. What the
    agent commits is pushed as a branch and opened as a pull request.

    Usage: bot-bottle orchestrate start [OPTIONS] --agent <AGENT> --prompt <PROMPT>

    Options:
          --agent <AGENT>
              The agent's manifest

          --bottle <BOTTLE>...
              A bottle's manifest, in the place of the agent's own (repeatable)

          --prompt <PROMPT>
              What is to be done: a text, @file, or - for standard input

          --label <LABEL>
              What the bottle's name is made from [default: agent and issue]

          --backend <BACKEND>
              Where the box comes from: docker or bwrap

          --json
              Print events and results as JSON

      -q, --quiet
              Print only errors, warnings and the result

      -v, --verbose
              Print every program as it is started (git, boxes, tools), and where settings come from, on
              standard error

      -h, --help
              Print help (see a summary with '-h')

    Variables:
      FORGE_GITEA_API         the API's address, as in https://git.example/api/v1
      FORGE_OWNER             the repository's owner
      FORGE_REPO              the repository's name
      FORGE_ISSUE_NUMBER      the issue; with its pull request, all that the agent may write to
      FORGE_PR_NUMBER         its pull request, if it is not the token's own
      FORGE_ORG               whose members may assign issues [default: bot-bottle]
      FORGE_TRIGGERS          others who may set agents to work, with commas between them
      FORGE_WATCHDOG_TIMEOUT  seconds without a sign of life before the agent is frozen [default: 1800]
      FORGE_KIND, FORGE_URL   github or gitlab, and its front page, in the place of FORGE_GITEA_API
      FORGE_TOKEN             the token; or put it into ~/.bot-bottle/forge-token (mode 0600)

    Examples:
      bot-bottle orchestrate start --agent worker --prompt @task.md
    --- stderr
    ");
}

#[test]
fn help_of_orchestrate_resume() {
    insta::assert_snapshot!(snapshot(&["orchestrate", "resume", "--help"]), @"
    status: 0
    --- stdout
    Resume the bottle of an issue: `resume --headless` with the forge's wiring

    The agent is given what people have said since, and what is new at origin. The variables have to
    name the bottle's own issue.

    Usage: bot-bottle orchestrate resume [OPTIONS] --slug <SLUG> --prompt <PROMPT>

    Options:
          --slug <SLUG>
              The bottle

          --prompt <PROMPT>
              What is to be done: a text, @file, or - for standard input

          --backend <BACKEND>
              Where the box comes from this time: docker or bwrap

          --json
              Print events and results as JSON

      -q, --quiet
              Print only errors, warnings and the result

      -v, --verbose
              Print every program as it is started (git, boxes, tools), and where settings come from, on
              standard error

      -h, --help
              Print help (see a summary with '-h')

    Variables:
      FORGE_GITEA_API         the API's address, as in https://git.example/api/v1
      FORGE_OWNER             the repository's owner
      FORGE_REPO              the repository's name
      FORGE_ISSUE_NUMBER      the issue; with its pull request, all that the agent may write to
      FORGE_PR_NUMBER         its pull request, if it is not the token's own
      FORGE_ORG               whose members may assign issues [default: bot-bottle]
      FORGE_TRIGGERS          others who may set agents to work, with commas between them
      FORGE_WATCHDOG_TIMEOUT  seconds without a sign of life before the agent is frozen [default: 1800]
      FORGE_KIND, FORGE_URL   github or gitlab, and its front page, in the place of FORGE_GITEA_API
      FORGE_TOKEN             the token; or put it into ~/.bot-bottle/forge-token (mode 0600)

    Examples:
      bot-bottle orchestrate resume --slug login --prompt 'Answer the review'
    --- stderr
    ");
}

#[test]
fn help_of_orchestrate_status() {
    insta::assert_snapshot!(snapshot(&["orchestrate", "status", "--help"]), @"
    status: 0
    --- stdout
    List active bottles with the pages of their issues and pull requests

    Usage: bot-bottle orchestrate status [OPTIONS]

    Options:
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help

    Examples:
      bot-bottle orchestrate status
    --- stderr
    ");
}

#[test]
fn help_of_serve() {
    insta::assert_snapshot!(snapshot(&["serve", "--help"]), @"
    status: 0
    --- stdout
    Serve webhooks, the page and the API: issues become pull requests without a person beside them

    Usage: bot-bottle serve [OPTIONS] --config <CONFIG>

    Options:
          --config <CONFIG>  The configuration; see: bot-bottle config show
          --json             Print events and results as JSON
      -q, --quiet            Print only errors, warnings and the result
      -v, --verbose          Print every program as it is started (git, boxes, tools), and where
                             settings come from, on standard error
      -h, --help             Print help

    Examples:
      bot-bottle serve --config serve.toml
    --- stderr
    ");
}

#[test]
fn help_of_config() {
    insta::assert_snapshot!(snapshot(&["config", "--help"]), @"
    status: 0
    --- stdout
    Show or change the shared configuration; show or check that of `serve`

    Usage: bot-bottle config [OPTIONS] <COMMAND>

    Commands:
      show   Print a configuration of `serve` in which every key is explained
      list   Show every setting, and whether it comes from the environment, the file or the default
      get    Print one setting
      set    Write one setting to the file; its comments stay
      unset  Remove one setting from the file
      path   Print the path of the file
      check  Check a configuration of `serve`
      help   Print this message or the help of the given subcommand(s)

    Options:
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help
    --- stderr
    ");
}

#[test]
fn help_of_config_show() {
    insta::assert_snapshot!(snapshot(&["config", "show", "--help"]), @"
    status: 0
    --- stdout
    Print a configuration of `serve` in which every key is explained

    Usage: bot-bottle config show [OPTIONS]

    Options:
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help

    Examples:
      bot-bottle config show
    --- stderr
    ");
}

#[test]
fn help_of_config_check() {
    insta::assert_snapshot!(snapshot(&["config", "check", "--help"]), @"
    status: 0
    --- stdout
    Check a configuration of `serve`

    Usage: bot-bottle config check [OPTIONS] <FILE>

    Arguments:
      <FILE>  The file

    Options:
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help

    Examples:
      bot-bottle config check serve.toml
    --- stderr
    ");
}

#[test]
fn help_of_hook() {
    insta::assert_snapshot!(snapshot(&["hook", "--help"]), @"
    status: 0
    --- stdout
    Webhooks: how a forge reports to `bot-bottle serve`

    Usage: bot-bottle hook [OPTIONS] <COMMAND>

    Commands:
      install  Make the webhook of a repository, with a fresh secret; one that is there is replaced
      list     List the webhooks that were installed from here
      remove   Remove the webhook of a repository and its secret
      help     Print this message or the help of the given subcommand(s)

    Options:
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help
    --- stderr
    ");
}

#[test]
fn help_of_hook_install() {
    insta::assert_snapshot!(snapshot(&["hook", "install", "--help"]), @"
    status: 0
    --- stdout
    Make the webhook of a repository, with a fresh secret; one that is there is replaced

    Usage: bot-bottle hook install [OPTIONS] --url <URL> <REPO>

    Arguments:
      <REPO>  owner/name on the forge of FORGE_GITEA_API, or the repository's whole address

    Options:
          --url <URL>  Where the forge posts to; a server alone stands for `/webhooks/` with the kind of
                       forge behind it
          --json       Print events and results as JSON
      -q, --quiet      Print only errors, warnings and the result
      -v, --verbose    Print every program as it is started (git, boxes, tools), and where settings come
                       from, on standard error
      -h, --help       Print help

    Examples:
      bot-bottle hook install them/project --url https://bottles.example.org
    --- stderr
    ");
}

#[test]
fn help_of_hook_list() {
    insta::assert_snapshot!(snapshot(&["hook", "list", "--help"]), @"
    status: 0
    --- stdout
    List the webhooks that were installed from here

    Usage: bot-bottle hook list [OPTIONS]

    Options:
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help

    Examples:
      bot-bottle hook list
    --- stderr
    ");
}

#[test]
fn help_of_hook_remove() {
    insta::assert_snapshot!(snapshot(&["hook", "remove", "--help"]), @"
    status: 0
    --- stdout
    Remove the webhook of a repository and its secret

    Usage: bot-bottle hook remove [OPTIONS] <REPO>

    Arguments:
      <REPO>  owner/name on the forge of FORGE_GITEA_API, or the repository's whole address

    Options:
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help

    Examples:
      bot-bottle hook remove them/project
    --- stderr
    ");
}
