//! Help of the commands for keys, provenance and the program itself, whole.

use super::snapshot;

#[test]
fn help_of_key() {
    insta::assert_snapshot!(snapshot(&["key", "--help"]), @"
    status: 0
    --- stdout
    The key that signs statements about runs

    Usage: bot-bottle key [OPTIONS] <COMMAND>

    Commands:
      create  Make a key; done by itself when the first run ends
      show    Show the public key and its id
      rotate  Replace the key by a new one, with a statement that both sign
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
fn help_of_key_create() {
    insta::assert_snapshot!(snapshot(&["key", "create", "--help"]), @"
    status: 0
    --- stdout
    Make a key; done by itself when the first run ends

    Usage: bot-bottle key create [OPTIONS]

    Options:
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help

    Examples:
      bot-bottle key create
    --- stderr
    ");
}

#[test]
fn help_of_key_show() {
    insta::assert_snapshot!(snapshot(&["key", "show", "--help"]), @"
    status: 0
    --- stdout
    Show the public key and its id

    Usage: bot-bottle key show [OPTIONS]

    Options:
          --ssh      As a line of OpenSSH, for forges and `gpg.ssh.allowedSignersFile`: published
                     commits are signed with it where the manifest of their agent has `sign_commits =
                     true`
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help

    Examples:
      bot-bottle key show
      bot-bottle key show --ssh
    --- stderr
    ");
}

#[test]
fn help_of_key_rotate() {
    insta::assert_snapshot!(snapshot(&["key", "rotate", "--help"]), @"
    status: 0
    --- stdout
    Replace the key by a new one, with a statement that both sign

    Usage: bot-bottle key rotate [OPTIONS]

    Options:
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help

    Examples:
      bot-bottle key rotate
    --- stderr
    ");
}

#[test]
fn help_of_provenance() {
    insta::assert_snapshot!(snapshot(&["provenance", "--help"]), @"
    status: 0
    --- stdout
    What a run was: agent, timing, operations, scans, commits; and whether that is true

    Usage: bot-bottle provenance [OPTIONS] <COMMAND>

    Commands:
      show    Show the newest run of a bottle, or the run of this name
      verify  Check the signed statements about a run against its records, offline; 0 if they hold, 1 if
              not
      export  Print a statement about a run in a form that others know, signed with this home's key
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
fn help_of_provenance_show() {
    insta::assert_snapshot!(snapshot(&["provenance", "show", "--help"]), @"
    status: 0
    --- stdout
    Show the newest run of a bottle, or the run of this name

    Usage: bot-bottle provenance show [OPTIONS] <NAME>

    Arguments:
      <NAME>  The bottle, or the run's name or the start of it

    Options:
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help

    Examples:
      bot-bottle provenance show login
    --- stderr
    ");
}

#[test]
fn help_of_provenance_verify() {
    insta::assert_snapshot!(snapshot(&["provenance", "verify", "--help"]), @"
    status: 0
    --- stdout
    Check the signed statements about a run against its records, offline; 0 if they hold, 1 if not

    Usage: bot-bottle provenance verify [OPTIONS] <NAME>

    Arguments:
      <NAME>  A file (provenance.json), the bottle (its newest run), or the run's name or the start of
              it

    Options:
          --key <PEM>  The public key that must have signed, or one that rotations lead from [default:
                       this home's key]
          --json       Print events and results as JSON
      -q, --quiet      Print only errors, warnings and the result
      -v, --verbose    Print every program as it is started (git, boxes, tools), and where settings come
                       from, on standard error
      -h, --help       Print help

    Examples:
      bot-bottle provenance verify login
      bot-bottle provenance verify provenance.json --key host.pem
    --- stderr
    ");
}

#[test]
fn help_of_completions() {
    insta::assert_snapshot!(snapshot(&["completions", "--help"]), @"
    status: 0
    --- stdout
    Print completions for a shell

    Add `source <(bot-bottle completions bash)` to the shell's start-up file.

    Usage: bot-bottle completions [OPTIONS] <SHELL>

    Arguments:
      <SHELL>
              The shell: bash, zsh, fish, elvish or powershell

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

    Examples:
      bot-bottle completions bash
      bot-bottle completions fish
    --- stderr
    ");
}

#[test]
fn help_of_man() {
    insta::assert_snapshot!(snapshot(&["man", "--help"]), @"
    status: 0
    --- stdout
    Print the manual page

    Usage: bot-bottle man [OPTIONS]

    Options:
          --json     Print events and results as JSON
      -q, --quiet    Print only errors, warnings and the result
      -v, --verbose  Print every program as it is started (git, boxes, tools), and where settings come
                     from, on standard error
      -h, --help     Print help

    Examples:
      bot-bottle man
    --- stderr
    ");
}
