//! Help of the commands for single bottles, whole.

use super::snapshot;

#[test]
fn help_of_bot_bottle() {
    insta::assert_snapshot!(snapshot(&["--help"]), @r"
    status: 0
    --- stdout
    Run a coding agent in a bottle: sealed while it works, frozen while people review

    A bottle is a workspace of its own and the agent's own files, kept between runs. The agent gets a
    copy of the repository with no remotes, no credentials and no network but its model; what it commits
    is taken out and judged by the host. With a forge (`orchestrate`) the result becomes a pull request.

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
          --json
              Print events and results as JSON

      -q, --quiet
              Print only errors, warnings and the result

      -v, --verbose
              Print every program as it is started (git, boxes, tools), and where settings come from, on
              standard error

      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

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
    --- stderr
    ");
}

#[test]
fn help_of_start() {
    insta::assert_snapshot!(snapshot(&["start", "--help"]), @"
    status: 0
    --- stdout
    Start a new bottle: at your terminal, or headless with one prompt

    Without --headless the agent shows its own interface on this terminal and gets the keys; --prompt is
    then its first message, and may be left out. With --headless it works on --prompt by itself. Either
    way it works in a sealed copy of the checkout's HEAD, and what it commits is taken out and judged
    when it ends: look at it with `bot-bottle diff`, take it with `bot-bottle apply` or `bot-bottle
    checkout`. Returns the agent's status, or 125 if the failure is not the agent's.

    Usage: bot-bottle start [OPTIONS] <AGENT>

    Arguments:
      <AGENT>
              The agent's manifest

    Options:
          --bottle <NAME>
              A bottle's manifest, in the place of the agent's own (repeatable)

          --headless
              Run without a terminal; needs --prompt

          --prompt <TEXT>
              What is to be done: a text, @file, or - for standard input

          --label <LABEL>
              What the bottle's name is made from [default: the agent's name]

          --backend <NAME>
              Where the box comes from: docker or bwrap

          --repo <DIR>
              The checkout to work on [default: the one around the current folder]

          --base <REF>
              What to start from: a branch, a commit, or origin/BRANCH, which is fetched first [default:
              HEAD of the checkout]

          --with-changes
              Take the uncommitted changes of the checkout along, as one more commit; files that git
              ignores stay out

          --json
              Print events and results as JSON

      -q, --quiet
              Print only errors, warnings and the result

      -v, --verbose
              Print every program as it is started (git, boxes, tools), and where settings come from, on
              standard error

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      bot-bottle agent new worker                             write a manifest to begin with
      bot-bottle start worker                                 sit at the agent's own interface
      bot-bottle start worker --headless --prompt @task.md    let it work by itself
      bot-bottle start worker --with-changes                  with what is not committed yet
      git diff | bot-bottle start worker --headless --prompt - --label review
    --- stderr
    ");
}

#[test]
fn help_of_resume() {
    insta::assert_snapshot!(snapshot(&["resume", "--help"]), @"
    status: 0
    --- stdout
    Resume a frozen bottle: at your terminal, or headless with one more prompt

    The workspace, the agent's files and, where the agent can, its conversation are those of the last
    run; what is new in the branch that the bottle started from is brought in first. Returns the agent's
    status, or 125 if the failure is not the agent's.

    Usage: bot-bottle resume [OPTIONS] <SLUG>

    Arguments:
      <SLUG>
              The bottle: its name, the start of its name, or `last`

    Options:
          --headless
              Run without a terminal; needs --prompt

          --prompt <TEXT>
              What is to be done: a text, @file, or - for standard input

          --backend <NAME>
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

    Examples:
      bot-bottle list                                         find the bottle's name
      bot-bottle resume worker                                sit at it again
      bot-bottle resume worker --headless --prompt 'Add tests.'
    --- stderr
    ");
}

#[test]
fn help_of_freeze() {
    insta::assert_snapshot!(snapshot(&["freeze", "--help"]), @"
    status: 0
    --- stdout
    End the agent of a bottle and keep everything, to resume later

    Usage: bot-bottle freeze [OPTIONS] <SLUG>

    Arguments:
      <SLUG>  The bottle: its name, the start of its name, or `last`

    Options:
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help

    Examples:
      bot-bottle freeze login
    --- stderr
    ");
}

#[test]
fn help_of_stop() {
    insta::assert_snapshot!(snapshot(&["stop", "--help"]), @"
    status: 0
    --- stdout
    End the agent of a bottle for good; its work is kept and not published

    Usage: bot-bottle stop [OPTIONS] <SLUG>

    Arguments:
      <SLUG>  The bottle: its name, the start of its name, or `last`

    Options:
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help

    Examples:
      bot-bottle stop login
    --- stderr
    ");
}

#[test]
fn help_of_destroy() {
    insta::assert_snapshot!(snapshot(&["destroy", "--help"]), @"
    status: 0
    --- stdout
    Remove a bottle's workspace and the agent's files; the records of its runs stay

    On a terminal it asks first. Commits that were not published stay in the records of the runs; a
    bottle whose work could not be taken out of it is refused without --force.

    Usage: bot-bottle destroy [OPTIONS] <SLUG>

    Arguments:
      <SLUG>
              The bottle: its name, the start of its name, or `last`

    Options:
      -y, --yes
              Delete without asking

          --dry-run
              Show what would be deleted, and delete nothing

          --force
              Remove them even if work is lost

          --json
              Print events and results as JSON

      -q, --quiet
              Print only errors, warnings and the result

      -v, --verbose
              Print every program as it is started (git, boxes, tools), and where settings come from, on
              standard error

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      bot-bottle destroy login
      bot-bottle destroy login --dry-run
    --- stderr
    ");
}

#[test]
fn help_of_list() {
    insta::assert_snapshot!(snapshot(&["list", "--help"]), @"
    status: 0
    --- stdout
    List bottles

    Usage: bot-bottle list [OPTIONS]

    Options:
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help

    Examples:
      bot-bottle list
      bot-bottle list --json
    --- stderr
    ");
}

#[test]
fn help_of_logs() {
    insta::assert_snapshot!(snapshot(&["logs", "--help"]), @"
    status: 0
    --- stdout
    Show what the agent of the newest run printed

    Usage: bot-bottle logs [OPTIONS] [SLUG]

    Arguments:
      [SLUG]  The bottle: its name, the start of its name, or `last` [default: the newest one]

    Options:
      -f, --follow   Follow the log until the agent has ended
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help

    Examples:
      bot-bottle logs login
      bot-bottle logs -f login
    --- stderr
    ");
}

#[test]
fn help_of_exec() {
    insta::assert_snapshot!(snapshot(&["exec", "--help"]), @"
    status: 0
    --- stdout
    Run a command on a bottle's workspace, in a sealed box of its own; returns its status

    Usage: bot-bottle exec [OPTIONS] <SLUG> <COMMAND>...

    Arguments:
      <SLUG>        The bottle: its name, the start of its name, or `last`
      <COMMAND>...  The command and its arguments

    Options:
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help

    Examples:
      bot-bottle exec login git log --oneline
    --- stderr
    ");
}

#[test]
fn help_of_doctor() {
    insta::assert_snapshot!(snapshot(&["doctor", "--help"]), @"
    status: 0
    --- stdout
    Try what a run needs: git, a box, its egress and limits, agents, the forge, serve.toml

    Ends with a status other than 0 if a run would fail, with the reason and the remedy.

    Usage: bot-bottle doctor [OPTIONS]

    Options:
          --config <FILE>
              The configuration of the server [default: serve.toml here or in ~/.bot-bottle, if there is
              one]

          --json
              Print events and results as JSON

      -q, --quiet
              Print only errors, warnings and the result

      -v, --verbose
              Print every program as it is started (git, boxes, tools), and where settings come from, on
              standard error

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      bot-bottle doctor
      bot-bottle doctor --config serve.toml
    --- stderr
    ");
}
