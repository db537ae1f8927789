//! Help texts of the commands about runs and plans.

use super::help;

#[test]
fn run() {
    insta::assert_snapshot!(help(&["run"]), @r"
    Take the next micro-commit through all stages

    Usage: wf run [OPTIONS] [ID]

    Arguments:
      [ID]  The workstream [default: that of the current worktree, or of `wf use`]

    Options:
          --once             Run one cycle (the default)
          --loop             Run cycles until something needs you
          --rounds <N>       Tries that a micro-commit gets: failing tests and requested changes go back
                             to the implementer [default: ROUNDS, or 1]
          --guidance <TEXT>  Words for the implementer in this run
          --supervised       Pause after every micro-commit in this run, whatever the profile says
          --autonomous       Pause only at the gates in this run, whatever the profile says
          --detach           Run in the background and survive this terminal; follow it with `wf attach`
          --wait-quota       Wait until the model's quota opens, instead of failing [default:
                             WAIT_QUOTA]
          --ignore-order     Run although a workstream that comes before (--after) is not merged
          --all              Run every workstream that is ready, each until something needs you, in the
                             order of --base, --after and overlaps
          --jobs <N>         Workstreams that run at the same time [default: 2]
          --project <NAME>   The project [default: AOS_PROJECT, or that of the current directory, or the
                             only one]
          --json             Print events and results as JSON
      -q, --quiet            Print only errors, warnings and the result
      -v, --verbose          Print every program as it is started (git, boxes, tools), and where
                             settings come from, on standard error
      -h, --help             Print help

    Examples:
      wf run login
      wf run login --loop --rounds 3
      wf run login --guidance 'keep the old name'
      wf run login --loop --detach
      wf run --all --jobs 4
    ");
}

#[test]
fn plan() {
    insta::assert_snapshot!(help(&["plan"]), @r"
    Draft micro-commits for a story with an agent, review and accept them; or change the plan by hand

    Usage: wf plan [OPTIONS] [ID]
           wf plan <COMMAND>

    Commands:
      add        Add a micro-commit, at the end or at a place
      edit       Change a micro-commit that is not done: its title, or all of it in VISUAL or EDITOR
      move       Move a micro-commit that is not done, to the end or to a place
      drop       Drop a micro-commit that is not done
      supersede  Mark a micro-commit as superseded: it stays in the plan, and is not run
      help       Print this message or the help of the given subcommand(s)

    Arguments:
      [ID]  The workstream [default: that of the current worktree, or of `wf use`]

    Options:
          --from <ISSUE|URL|FILE|TEXT>  The story: an issue (#12 or its address), the address of a page,
                                        a file, - for standard input, or the words themselves
          --text <TEXT>                 The story in words, never the name of a file
          --accept                      Make the draft the plan
          --edit                        Open the draft in VISUAL or EDITOR first
          --project <NAME>              The project [default: AOS_PROJECT, or that of the current
                                        directory, or the only one]
          --json                        Print events and results as JSON
      -q, --quiet                       Print only errors, warnings and the result
      -v, --verbose                     Print every program as it is started (git, boxes, tools), and
                                        where settings come from, on standard error
      -h, --help                        Print help

    Examples:
      wf plan login --from story.md
      wf plan login --from '#12'
      wf plan login --accept
    ");
}

#[test]
fn approve() {
    insta::assert_snapshot!(help(&["approve"]), @"
    Record that you approve the last micro-commit

    Usage: wf approve [OPTIONS] [ID]

    Arguments:
      [ID]  The workstream [default: that of the current worktree, or of `wf use`]

    Options:
          --project <NAME>  The project [default: AOS_PROJECT, or that of the current directory, or the
                            only one]
          --json            Print events and results as JSON
      -q, --quiet           Print only errors, warnings and the result
      -v, --verbose         Print every program as it is started (git, boxes, tools), and where settings
                            come from, on standard error
      -h, --help            Print help

    Examples:
      wf approve login
    ");
}

#[test]
fn reject() {
    insta::assert_snapshot!(help(&["reject"]), @"
    Reject the last micro-commit, with a reason for the agent

    Usage: wf reject [OPTIONS] --message <TEXT> [ID]

    Arguments:
      [ID]  The workstream [default: that of the current worktree, or of `wf use`]

    Options:
      -m, --message <TEXT>  Reason, for the agent
          --project <NAME>  The project [default: AOS_PROJECT, or that of the current directory, or the
                            only one]
          --json            Print events and results as JSON
      -q, --quiet           Print only errors, warnings and the result
      -v, --verbose         Print every program as it is started (git, boxes, tools), and where settings
                            come from, on standard error
      -h, --help            Print help

    Examples:
      wf reject login --message 'the error is swallowed'
    ");
}

#[test]
fn skip() {
    insta::assert_snapshot!(help(&["skip"]), @"
    Mark the next micro-commit as done without doing it

    Usage: wf skip [OPTIONS] [ID]

    Arguments:
      [ID]  The workstream [default: that of the current worktree, or of `wf use`]

    Options:
          --commit <COMMIT>  The micro-commit, instead of the next one
      -m, --message <TEXT>   Reason for the notes
          --project <NAME>   The project [default: AOS_PROJECT, or that of the current directory, or the
                             only one]
          --json             Print events and results as JSON
      -q, --quiet            Print only errors, warnings and the result
      -v, --verbose          Print every program as it is started (git, boxes, tools), and where
                             settings come from, on standard error
      -h, --help             Print help

    Examples:
      wf skip login
    ");
}

#[test]
fn show() {
    insta::assert_snapshot!(help(&["show"]), @"
    Show a run

    Usage: wf show [OPTIONS] [RUN]

    Arguments:
      [RUN]  The run's name, the start of it, or `last` [default: the last one of the current
             workstream]

    Options:
      -w, --workstream <ID>  The workstream whose last run is meant
          --project <NAME>   The project [default: AOS_PROJECT, or that of the current directory, or the
                             only one]
          --json             Print events and results as JSON
      -q, --quiet            Print only errors, warnings and the result
      -v, --verbose          Print every program as it is started (git, boxes, tools), and where
                             settings come from, on standard error
      -h, --help             Print help

    Examples:
      wf show
      wf show -w login
    ");
}

#[test]
fn log() {
    insta::assert_snapshot!(help(&["log"]), @"
    List the runs of a workstream, newest first, or follow the newest one

    Usage: wf log [OPTIONS] [ID]

    Arguments:
      [ID]  The workstream [default: that of the current worktree, or of `wf use`]

    Options:
      -n, --limit <N>       The most runs to show [default: 20]
      -f, --follow          Print what the agents of the newest run print, until the run has ended
          --project <NAME>  The project [default: AOS_PROJECT, or that of the current directory, or the
                            only one]
          --json            Print events and results as JSON
      -q, --quiet           Print only errors, warnings and the result
      -v, --verbose         Print every program as it is started (git, boxes, tools), and where settings
                            come from, on standard error
      -h, --help            Print help

    Examples:
      wf log login
      wf log login -f
    ");
}

#[test]
fn diff() {
    insta::assert_snapshot!(help(&["diff"]), @"
    Show what a run changed, or a whole workstream

    Usage: wf diff [OPTIONS] [RUN]

    Arguments:
      [RUN]  The run's name, the start of it, or `last` [default: the last one of the current
             workstream]

    Options:
      -w, --workstream <ID>  The workstream whose last run is meant
          --branch           Everything that the workstream's branch has and its base has not
          --project <NAME>   The project [default: AOS_PROJECT, or that of the current directory, or the
                             only one]
          --json             Print events and results as JSON
      -q, --quiet            Print only errors, warnings and the result
      -v, --verbose          Print every program as it is started (git, boxes, tools), and where
                             settings come from, on standard error
      -h, --help             Print help

    Examples:
      wf diff -w login
      wf diff --branch -w login
    ");
}

#[test]
fn prune() {
    insta::assert_snapshot!(help(&["prune"]), @"
    Remove the copies that failed runs left, once their micro-commit is accepted

    It lists the copies, asks, and removes them; --yes removes them without a question. Without a
    terminal and without --yes nothing is removed and the status is 2.

    Usage: wf prune [OPTIONS]

    Options:
      -y, --yes
              Delete without asking

          --dry-run
              Show what would be deleted, and delete nothing

          --project <NAME>
              The project [default: AOS_PROJECT, or that of the current directory, or the only one]

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
      wf prune
      wf prune --dry-run
      wf prune --yes
    ");
}

#[test]
fn watch() {
    insta::assert_snapshot!(help(&["watch"]), @"
    Watch all workstreams; answer, approve and reject on one screen

    Usage: wf watch [OPTIONS]

    Options:
          --project <NAME>  The project [default: AOS_PROJECT, or that of the current directory, or the
                            only one]
          --json            Print events and results as JSON
      -q, --quiet           Print only errors, warnings and the result
      -v, --verbose         Print every program as it is started (git, boxes, tools), and where settings
                            come from, on standard error
      -h, --help            Print help

    Examples:
      wf watch
    ");
}

#[test]
fn doctor() {
    insta::assert_snapshot!(help(&["doctor"]), @"
    Check the machine and the project

    Usage: wf doctor [OPTIONS]

    Options:
          --project <NAME>  The project [default: AOS_PROJECT, or that of the current directory, or the
                            only one]
          --json            Print events and results as JSON
      -q, --quiet           Print only errors, warnings and the result
      -v, --verbose         Print every program as it is started (git, boxes, tools), and where settings
                            come from, on standard error
      -h, --help            Print help

    Examples:
      wf doctor
      wf doctor --json
    ");
}

#[test]
fn completions() {
    insta::assert_snapshot!(help(&["completions"]), @"
    Print completions for a shell

    Add `source <(wf completions bash)` to the shell's start-up file.

    Usage: wf completions [OPTIONS] <SHELL>

    Arguments:
      <SHELL>
              The shell: bash, zsh, fish, elvish or powershell

    Options:
          --project <NAME>
              The project [default: AOS_PROJECT, or that of the current directory, or the only one]

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
      wf completions bash
      wf completions fish
    ");
}

#[test]
fn man() {
    insta::assert_snapshot!(help(&["man"]), @"
    Print the manual page

    Usage: wf man [OPTIONS]

    Options:
          --project <NAME>  The project [default: AOS_PROJECT, or that of the current directory, or the
                            only one]
          --json            Print events and results as JSON
      -q, --quiet           Print only errors, warnings and the result
      -v, --verbose         Print every program as it is started (git, boxes, tools), and where settings
                            come from, on standard error
      -h, --help            Print help

    Examples:
      wf man
    ");
}
