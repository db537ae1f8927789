//! Help texts of the commands about questions and acceptance tests.

use super::help;

#[test]
fn clarify() {
    insta::assert_snapshot!(help(&["clarify"]), @"
    Show, answer and ask questions

    Usage: wf clarify [OPTIONS] <COMMAND>

    Commands:
      list    List pending questions
      show    Show a question
      answer  Answer a question: with an option's number, in words, or in your editor
      ask     Ask a question of your own
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
fn clarify_list() {
    insta::assert_snapshot!(help(&["clarify", "list"]), @"
    List pending questions

    Usage: wf clarify list [OPTIONS]

    Options:
      -w, --workstream <ID>  Only those of this workstream
          --all              Include answered ones
          --project <NAME>   The project [default: AOS_PROJECT, or that of the current directory, or the
                             only one]
          --json             Print events and results as JSON
      -q, --quiet            Print only errors, warnings and the result
      -v, --verbose          Print every program as it is started (git, boxes, tools), and where
                             settings come from, on standard error
      -h, --help             Print help

    Examples:
      wf clarify list
    ");
}

#[test]
fn clarify_show() {
    insta::assert_snapshot!(help(&["clarify", "show"]), @"
    Show a question

    Usage: wf clarify show [OPTIONS] <ID>

    Arguments:
      <ID>  The question, such as CLQ-001

    Options:
      -w, --workstream <ID>  Its workstream, if the id alone is ambiguous
          --project <NAME>   The project [default: AOS_PROJECT, or that of the current directory, or the
                             only one]
          --json             Print events and results as JSON
      -q, --quiet            Print only errors, warnings and the result
      -v, --verbose          Print every program as it is started (git, boxes, tools), and where
                             settings come from, on standard error
      -h, --help             Print help

    Examples:
      wf clarify show CLQ-001
    ");
}

#[test]
fn clarify_answer() {
    insta::assert_snapshot!(help(&["clarify", "answer"]), @"
    Answer a question: with an option's number, in words, or in your editor

    Usage: wf clarify answer [OPTIONS] <ID> [ANSWER]

    Arguments:
      <ID>      The question, such as CLQ-001
      [ANSWER]  The number or id of an option, or words [default: $EDITOR opens]

    Options:
      -w, --workstream <ID>  Its workstream, if the id alone is ambiguous
          --project <NAME>   The project [default: AOS_PROJECT, or that of the current directory, or the
                             only one]
          --json             Print events and results as JSON
      -q, --quiet            Print only errors, warnings and the result
      -v, --verbose          Print every program as it is started (git, boxes, tools), and where
                             settings come from, on standard error
      -h, --help             Print help

    Examples:
      wf clarify answer CLQ-001 2
      wf clarify answer CLQ-001 'use the token of the session'
    ");
}

#[test]
fn clarify_ask() {
    insta::assert_snapshot!(help(&["clarify", "ask"]), @"
    Ask a question of your own

    Usage: wf clarify ask [OPTIONS] --question <TEXT> [ID]

    Arguments:
      [ID]
              The workstream [default: that of the current worktree, or of `wf use`]

    Options:
          --question <TEXT>
              The question

          --option <TEXT>
              An answer to choose from (repeatable)

          --urgency <URGENCY>
              Urgency of the question

              Possible values:
              - blocking:  Work stops until it is answered
              - important: Work continues; answer soon
              - low:       Whenever there is time
              
              [default: blocking]

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
      wf clarify ask login --question 'Which tokens?'
    ");
}

#[test]
fn uat() {
    insta::assert_snapshot!(help(&["uat"]), @"
    Show and judge acceptance tests

    Usage: wf uat [OPTIONS] <COMMAND>

    Commands:
      list  List pending acceptance tests
      show  Show an acceptance test
      pass  Pass an acceptance test
      fail  Fail an acceptance test, with its issues
      help  Print this message or the help of the given subcommand(s)

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
fn uat_list() {
    insta::assert_snapshot!(help(&["uat", "list"]), @"
    List pending acceptance tests

    Usage: wf uat list [OPTIONS]

    Options:
      -w, --workstream <ID>  Only those of this workstream
          --all              Include those with a verdict
          --project <NAME>   The project [default: AOS_PROJECT, or that of the current directory, or the
                             only one]
          --json             Print events and results as JSON
      -q, --quiet            Print only errors, warnings and the result
      -v, --verbose          Print every program as it is started (git, boxes, tools), and where
                             settings come from, on standard error
      -h, --help             Print help

    Examples:
      wf uat list
    ");
}

#[test]
fn uat_show() {
    insta::assert_snapshot!(help(&["uat", "show"]), @"
    Show an acceptance test

    Usage: wf uat show [OPTIONS] <ID>

    Arguments:
      <ID>  The acceptance test, such as UAT-001

    Options:
      -w, --workstream <ID>  Its workstream, if the id alone is ambiguous
          --project <NAME>   The project [default: AOS_PROJECT, or that of the current directory, or the
                             only one]
          --json             Print events and results as JSON
      -q, --quiet            Print only errors, warnings and the result
      -v, --verbose          Print every program as it is started (git, boxes, tools), and where
                             settings come from, on standard error
      -h, --help             Print help

    Examples:
      wf uat show UAT-001
    ");
}

#[test]
fn uat_pass() {
    insta::assert_snapshot!(help(&["uat", "pass"]), @"
    Pass an acceptance test

    Usage: wf uat pass [OPTIONS] <ID>

    Arguments:
      <ID>  The acceptance test, such as UAT-001

    Options:
      -w, --workstream <ID>  Its workstream, if the id alone is ambiguous
          --project <NAME>   The project [default: AOS_PROJECT, or that of the current directory, or the
                             only one]
          --json             Print events and results as JSON
      -q, --quiet            Print only errors, warnings and the result
      -v, --verbose          Print every program as it is started (git, boxes, tools), and where
                             settings come from, on standard error
      -h, --help             Print help

    Examples:
      wf uat pass UAT-001
    ");
}

#[test]
fn uat_fail() {
    insta::assert_snapshot!(help(&["uat", "fail"]), @"
    Fail an acceptance test, with its issues

    Usage: wf uat fail [OPTIONS] --issues <TEXT> <ID>

    Arguments:
      <ID>  The acceptance test, such as UAT-001

    Options:
      -w, --workstream <ID>  Its workstream, if the id alone is ambiguous
          --issues <TEXT>    What is wrong (repeatable)
          --project <NAME>   The project [default: AOS_PROJECT, or that of the current directory, or the
                             only one]
          --json             Print events and results as JSON
      -q, --quiet            Print only errors, warnings and the result
      -v, --verbose          Print every program as it is started (git, boxes, tools), and where
                             settings come from, on standard error
      -h, --help             Print help

    Examples:
      wf uat fail UAT-001 --issues 'the button is hidden'
    ");
}
