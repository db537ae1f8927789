//! Help texts of the commands about projects and workstreams.

use super::help;

#[test]
fn interview() {
    insta::assert_snapshot!(help(&["interview"]), @"
    Register a project and describe how it is built and tested

    Asks one question after the other; every question has a flag.

    Usage: wf interview [OPTIONS]

    Options:
          --non-interactive
              Ask nothing; take flags and defaults

          --name <NAME>
              The project's name [default: that of the repository's folder]

          --repo-path <DIR>
              The product repository [default: that of the current directory]

          --ops-path <DIR>
              Where worktrees, runs and locks go [default: <repository>.ops]

          --workflow-repo <DIR>
              The workflow repository [default: the one that is found, or <ops>/workflow]

          --default-branch <BRANCH>
              The branch that workstreams start from and are merged into [default: the one that is
              checked out]

          --branch-prefix <PREFIX>
              What branches of workstreams start with [default: feat]

          --makefile-path <PATH>
              The Makefile, relative to the repository; empty if there is none

          --make-target-unit <TARGET>
              The target of the unit tests; empty to skip them

          --make-target-integration <TARGET>
              The target of the integration tests; empty to skip them

          --make-target-smoke <TARGET>
              The target of the smoke tests; empty to skip them

          --make-target-e2e <TARGET>
              The target of the end-to-end tests; empty to skip them

          --test-cmd-unit <COMMAND>
              The command of the unit tests, instead of a target

          --docs-path <PATH>
              The documentation, relative to the repository

          --hitl-mode <MODE>
              When people are asked: strict, stage-only, exceptions or off

          --raw-requirements-paths <PATHS>
              Where raw requirements are, separated by blanks

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
      wf interview
      wf interview --non-interactive
    ");
}

#[test]
fn project() {
    insta::assert_snapshot!(help(&["project"]), @"
    Register, list and show projects

    Usage: wf project [OPTIONS] <COMMAND>

    Commands:
      add     Register a project, with a profile of defaults
      list    List projects
      show    Show a project and its profile
      remove  Unregister a project without open workstreams and move its files aside
      help    Print this message or the help of the given subcommand(s)

    Options:
          --project <NAME>  The project [default: AOS_PROJECT, or that of the current directory, or the
                            only one]
          --json            Print events and results as JSON
      -q, --quiet           Print only errors, warnings and the result
      -v, --verbose         Print every program as it is started (git, boxes, tools), and where settings
                            come from, on standard error
      -h, --help            Print help
    ");
}

#[test]
fn project_add() {
    insta::assert_snapshot!(help(&["project", "add"]), @"
    Register a project, with a profile of defaults

    Usage: wf project add [OPTIONS] --repo-path <DIR> <NAME>

    Arguments:
      <NAME>  The project's name

    Options:
          --repo-path <DIR>          The product repository
          --ops-path <DIR>           Where worktrees, runs and locks go [default: <repository>.ops]
          --workflow-repo <DIR>      The workflow repository [default: the one that is found, or
                                     <ops>/workflow]
          --default-branch <BRANCH>  The branch that workstreams start from and are merged into
                                     [default: the one that is checked out]
          --branch-prefix <PREFIX>   What branches of workstreams start with [default: feat]
          --project <NAME>           The project [default: AOS_PROJECT, or that of the current
                                     directory, or the only one]
          --json                     Print events and results as JSON
      -q, --quiet                    Print only errors, warnings and the result
      -v, --verbose                  Print every program as it is started (git, boxes, tools), and where
                                     settings come from, on standard error
      -h, --help                     Print help

    Examples:
      wf project add shop --repo-path ~/src/shop
    ");
}

#[test]
fn project_list() {
    insta::assert_snapshot!(help(&["project", "list"]), @"
    List projects

    Usage: wf project list [OPTIONS]

    Options:
          --project <NAME>  The project [default: AOS_PROJECT, or that of the current directory, or the
                            only one]
          --json            Print events and results as JSON
      -q, --quiet           Print only errors, warnings and the result
      -v, --verbose         Print every program as it is started (git, boxes, tools), and where settings
                            come from, on standard error
      -h, --help            Print help

    Examples:
      wf project list
    ");
}

#[test]
fn project_show() {
    insta::assert_snapshot!(help(&["project", "show"]), @"
    Show a project and its profile

    Usage: wf project show [OPTIONS] [NAME]

    Arguments:
      [NAME]  The project [default: the current one]

    Options:
          --project <NAME>  The project [default: AOS_PROJECT, or that of the current directory, or the
                            only one]
          --json            Print events and results as JSON
      -q, --quiet           Print only errors, warnings and the result
      -v, --verbose         Print every program as it is started (git, boxes, tools), and where settings
                            come from, on standard error
      -h, --help            Print help

    Examples:
      wf project show shop
    ");
}

#[test]
fn list() {
    insta::assert_snapshot!(help(&["list"]), @"
    List active workstreams

    Usage: wf list [OPTIONS]

    Options:
      -a, --all             Merged and closed ones too
          --project <NAME>  The project [default: AOS_PROJECT, or that of the current directory, or the
                            only one]
          --json            Print events and results as JSON
      -q, --quiet           Print only errors, warnings and the result
      -v, --verbose         Print every program as it is started (git, boxes, tools), and where settings
                            come from, on standard error
      -h, --help            Print help

    Examples:
      wf list
      wf list --all
      wf list --json
    ");
}

#[test]
fn new() {
    insta::assert_snapshot!(help(&["new"]), @r#"
    Create a workstream: a branch, a worktree and an empty plan

    Usage: wf new [OPTIONS] <ID> <TITLE> [EXPECTED_PATHS]

    Arguments:
      <ID>              Lower-case letters, digits, _ and -, starting with a letter
      <TITLE>           1 to 100 characters
      [EXPECTED_PATHS]  Paths that it is expected to touch, separated by blanks [default: ""]

    Options:
          --prefix <PREFIX>   Start of the branch name, instead of BRANCH_PREFIX
          --base <BRANCH|ID>  The branch or workstream to start from and to be merged into [default:
                              DEFAULT_BRANCH]
          --after <ID>        A workstream that must be merged before `wf run --all` starts this one;
                              may be repeated
          --sparse            Check out only the expected paths, SPARSE_PATHS of the profile and the
                              files beside them
          --project <NAME>    The project [default: AOS_PROJECT, or that of the current directory, or
                              the only one]
          --json              Print events and results as JSON
      -q, --quiet             Print only errors, warnings and the result
      -v, --verbose           Print every program as it is started (git, boxes, tools), and where
                              settings come from, on standard error
      -h, --help              Print help

    Examples:
      wf new login 'Log in with a token' 'src/auth/'
      wf new logout 'Log out' --base login
      wf new admin 'Administer' 'src/admin/' --after login --sparse
    "#);
}

#[test]
fn status() {
    insta::assert_snapshot!(help(&["status"]), @"
    Show a workstream: fields, plan, blockers, last run

    Usage: wf status [OPTIONS] [ID]

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
      wf status login
    ");
}

#[test]
fn use_() {
    insta::assert_snapshot!(help(&["use"]), @"
    Set the default workstream of commands; without one, show it

    Usage: wf use [OPTIONS] [ID]

    Arguments:
      [ID]  The workstream

    Options:
          --clear           Have no default any more
          --project <NAME>  The project [default: AOS_PROJECT, or that of the current directory, or the
                            only one]
          --json            Print events and results as JSON
      -q, --quiet           Print only errors, warnings and the result
      -v, --verbose         Print every program as it is started (git, boxes, tools), and where settings
                            come from, on standard error
      -h, --help            Print help

    Examples:
      wf use login
      wf use
      wf use --clear
    ");
}

#[test]
fn refresh() {
    insta::assert_snapshot!(help(&["refresh"]), @"
    Find out which files workstreams have touched

    Usage: wf refresh [OPTIONS] [ID]

    Arguments:
      [ID]  The workstream [default: all]

    Options:
          --project <NAME>  The project [default: AOS_PROJECT, or that of the current directory, or the
                            only one]
          --json            Print events and results as JSON
      -q, --quiet           Print only errors, warnings and the result
      -v, --verbose         Print every program as it is started (git, boxes, tools), and where settings
                            come from, on standard error
      -h, --help            Print help

    Examples:
      wf refresh login
    ");
}

#[test]
fn conflicts() {
    insta::assert_snapshot!(help(&["conflicts"]), @"
    Show where a workstream overlaps with others, and what merging would bring

    Usage: wf conflicts [OPTIONS] [ID]

    Arguments:
      [ID]  The workstream [default: that of the current worktree, or of `wf use`]

    Options:
          --exit-code       End with status 1 if there is any overlap
          --project <NAME>  The project [default: AOS_PROJECT, or that of the current directory, or the
                            only one]
          --json            Print events and results as JSON
      -q, --quiet           Print only errors, warnings and the result
      -v, --verbose         Print every program as it is started (git, boxes, tools), and where settings
                            come from, on standard error
      -h, --help            Print help

    Examples:
      wf conflicts login
    ");
}

#[test]
fn update() {
    insta::assert_snapshot!(help(&["update"]), @"
    Bring a workstream's branch up to date with its base branch

    Conflicts go through the resolver; the implementer resolves what is left, in a sealed box.

    Usage: wf update [OPTIONS] [ID]

    Arguments:
      [ID]
              The workstream [default: that of the current worktree, or of `wf use`]

    Options:
          --trust <SHARE>
              How sure an answer to a conflict must be, from 0 to 1; at 1 no conflict is resolved
              
              [default: 0.9]

          --no-agent
              Leave what is not resolved automatically to a person instead of the agent

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
      wf update login
      wf update login --no-agent
    ");
}

#[test]
fn close() {
    insta::assert_snapshot!(help(&["close"]), @"
    Archive a workstream: its worktree goes, its branch stays

    Usage: wf close [OPTIONS] [ID]

    Arguments:
      [ID]  The workstream [default: that of the current worktree, or of `wf use`]

    Options:
          --force           Close it although it is not complete, and discard what is not committed
          --project <NAME>  The project [default: AOS_PROJECT, or that of the current directory, or the
                            only one]
          --json            Print events and results as JSON
      -q, --quiet           Print only errors, warnings and the result
      -v, --verbose         Print every program as it is started (git, boxes, tools), and where settings
                            come from, on standard error
      -h, --help            Print help

    Examples:
      wf close login
    ");
}

#[test]
fn delete() {
    insta::assert_snapshot!(help(&["delete"]), @"
    Delete a workstream with its worktree and branch; without --confirm only show what would go

    Usage: wf delete [OPTIONS] <ID>

    Arguments:
      <ID>  The workstream

    Options:
          --confirm         Really delete it
      -y, --yes             The same as --confirm
          --dry-run         Only show what would go, as without a flag
          --keep-remote     Leave the branch on origin
          --project <NAME>  The project [default: AOS_PROJECT, or that of the current directory, or the
                            only one]
          --json            Print events and results as JSON
      -q, --quiet           Print only errors, warnings and the result
      -v, --verbose         Print every program as it is started (git, boxes, tools), and where settings
                            come from, on standard error
      -h, --help            Print help

    Examples:
      wf delete login
      wf delete login --yes
    ");
}

#[test]
fn merge() {
    insta::assert_snapshot!(help(&["merge"]), @"
    Merge a workstream that is merge-ready

    Usage: wf merge [OPTIONS] [ID]

    Arguments:
      [ID]  The workstream [default: that of the current worktree, or of `wf use`]

    Options:
          --push            Push the merged branch to origin
          --untested        Merge although no test can run
          --unreviewed      Merge without the review of the whole branch that BRANCH_REVIEW asks for
          --no-agent        Leave conflicts that are not resolved automatically to a person instead of
                            the agent
          --project <NAME>  The project [default: AOS_PROJECT, or that of the current directory, or the
                            only one]
          --json            Print events and results as JSON
      -q, --quiet           Print only errors, warnings and the result
      -v, --verbose         Print every program as it is started (git, boxes, tools), and where settings
                            come from, on standard error
      -h, --help            Print help

    Examples:
      wf merge login
      wf merge login --push
    ");
}

#[test]
fn docs() {
    insta::assert_snapshot!(help(&["docs"]), @"
    Documentation of a worktree

    Usage: wf docs [OPTIONS] <COMMAND>

    Commands:
      status   Count pages and pictures of a worktree, or of the repository itself; name pictures that
               no page mentions
      cleanup  Remove pictures that no page mentions, in the workstream's worktree; without --yes only
               name them
      help     Print this message or the help of the given subcommand(s)

    Options:
          --project <NAME>  The project [default: AOS_PROJECT, or that of the current directory, or the
                            only one]
          --json            Print events and results as JSON
      -q, --quiet           Print only errors, warnings and the result
      -v, --verbose         Print every program as it is started (git, boxes, tools), and where settings
                            come from, on standard error
      -h, --help            Print help
    ");
}

#[test]
fn docs_status() {
    insta::assert_snapshot!(help(&["docs", "status"]), @"
    Count pages and pictures of a worktree, or of the repository itself; name pictures that no page
    mentions

    Usage: wf docs status [OPTIONS] [ID]

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
      wf docs status login
    ");
}

#[test]
fn docs_cleanup() {
    insta::assert_snapshot!(help(&["docs", "cleanup"]), @"
    Remove pictures that no page mentions, in the workstream's worktree; without --yes only name them

    Usage: wf docs cleanup [OPTIONS] [ID]

    Arguments:
      [ID]  The workstream [default: that of the current worktree, or of `wf use`]

    Options:
      -y, --yes             Delete without asking
          --dry-run         Show what would be deleted, and delete nothing
          --project <NAME>  The project [default: AOS_PROJECT, or that of the current directory, or the
                            only one]
          --json            Print events and results as JSON
      -q, --quiet           Print only errors, warnings and the result
      -v, --verbose         Print every program as it is started (git, boxes, tools), and where settings
                            come from, on standard error
      -h, --help            Print help

    Examples:
      wf docs cleanup login
      wf docs cleanup login --yes
    ");
}
