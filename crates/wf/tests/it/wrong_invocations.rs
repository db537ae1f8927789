//! Wrong command lines: one clear line, the right status, and the next step.

use testkit::refusal::refusals;

use crate::support::{ONE, Person};

fn refused(person: &Person, lines: &[&str]) -> String {
    refusals(&person.hermetic, "wf", lines, |words| person.command(words))
}

#[test]
fn words_that_wf_does_not_know() {
    let person = Person::unregistered();
    insta::assert_snapshot!(refused(&person, &[
        "statsu",
        "list --al",
        "new",
        "new tf",
        "reject tf",
        "run tf --once --loop",
        "log -n many",
        "log -n -3",
        "update tf --trust 2",
        "skip tf nothing",
        "completions tcsh",
        "config get nothing",
        "project add",
    ]), @"
    $ wf statsu
    error: unknown command 'statsu'; did you mean 'stats'? See: wf --help
    [2]
    $ wf list --al
    error: unknown option '--al'; did you mean '--all'? See: wf list --help
    [2]
    $ wf new
    error: <ID>, <TITLE> are missing; see: wf new --help
    [2]
    $ wf new tf
    error: <TITLE> is missing; see: wf new --help
    [2]
    $ wf reject tf
    error: --message <TEXT> is missing; see: wf reject --help
    [2]
    $ wf run tf --once --loop
    error: --once cannot be used with --loop; see: wf run --help
    [2]
    $ wf log -n many
    error: --limit needs a whole number, not 'many'; see: wf log --help
    [2]
    $ wf log -n -3
    error: -n cannot be '-3'; see: wf log --help
    [2]
    $ wf update tf --trust 2
    error: --trust: 2 is not a trust threshold: it must be a number from 0 to 1; see: wf update --help
    [2]
    $ wf skip tf nothing
    error: unexpected word 'nothing'; see: wf skip --help
    [2]
    $ wf completions tcsh
    error: the shell 'tcsh' is not one of bash, elvish, fish, powershell, zsh
    [2]
    $ wf config get nothing
    error: there is no key 'nothing'; the keys are listed by: wf config list
    [2]
    $ wf project add
    error: --repo-path <DIR>, <NAME> are missing; see: wf project add --help
    [2]
    ");
}

#[test]
fn a_machine_without_a_project() {
    let person = Person::unregistered();
    insta::assert_snapshot!(refused(&person, &["list", "run tf", "new tf Title", "watch"]), @"
    $ wf list
    error: no project is registered yet; in a checkout of your product run: wf init, or set AOS_WORKFLOW_REPO
    [2]
    $ wf run tf
    error: no project is registered yet; in a checkout of your product run: wf init, or set AOS_WORKFLOW_REPO
    [2]
    $ wf new tf Title
    error: no project is registered yet; in a checkout of your product run: wf init, or set AOS_WORKFLOW_REPO
    [2]
    $ wf watch
    error: wf watch needs a terminal; elsewhere use: wf list --json
    [2]
    ");
}

#[test]
fn names_that_are_not_there() {
    let person = Person::with_plan(ONE);
    insta::assert_snapshot!(refused(&person, &[
        "--project nothing list",
        "project show nothing",
        "status nothing",
        "show nothing",
        "log nothing",
        "merge nothing",
        "close nothing",
        "delete nothing --confirm",
        "use nothing",
        "conflicts nothing",
        "docs cleanup nothing",
    ]), @"
    $ wf --project nothing list
    error: there is no project 'nothing'; see: wf project list
    [2]
    $ wf project show nothing
    error: there is no project 'nothing'; see: wf project list
    [2]
    $ wf status nothing
    error: there is no workstream 'nothing'; see: wf list
    [2]
    $ wf show nothing
    error: there is no run 'nothing'; see: wf log
    [2]
    $ wf log nothing
    error: there is no workstream 'nothing'; see: wf list
    [2]
    $ wf merge nothing
    error: there is no workstream 'nothing'; see: wf list
    [2]
    $ wf close nothing
    error: there is no workstream 'nothing'; see: wf list
    [2]
    $ wf delete nothing --confirm
    error: there is no workstream 'nothing'; see: wf list
    [2]
    $ wf use nothing
    error: there is no workstream 'nothing'; see: wf list
    [2]
    $ wf conflicts nothing
    error: there is no workstream 'nothing'; see: wf list
    [2]
    $ wf docs cleanup nothing
    error: there is no workstream 'nothing'; see: wf list
    [2]
    ");
}

#[test]
fn ids_and_states_that_do_not_fit() {
    let person = Person::with_plan(ONE);
    insta::assert_snapshot!(refused(&person, &[
        "clarify show CLQ-9",
        "clarify answer CLQ-999 yes",
        "uat pass UAT-999",
        "new Tf Title",
        "new tf Title",
        "approve tf",
        "reject tf --message no",
        "merge tf",
        "plan tf",
        "watch",
    ]), @r#"
    $ wf clarify show CLQ-9
    error: "CLQ-9" is not a valid clarification id: CLQ- and three to nine digits
    [2]
    $ wf clarify answer CLQ-999 yes
    error: there is no question CLQ-999; see: wf clarify list
    [2]
    $ wf uat pass UAT-999
    error: there is no acceptance test UAT-999; see: wf uat list
    [2]
    $ wf new Tf Title
    error: "Tf" is not a valid workstream id: 1 to 64 of a-z, 0-9, '_' and '-', starting with a letter
    [2]
    $ wf new tf Title
    error: the workstream tf exists already; see: wf status tf
    [2]
    $ wf approve tf
    error: tf has accepted no micro-commit yet; make one with: wf run tf
    [2]
    $ wf reject tf --message no
    error: tf has accepted no micro-commit yet; make one with: wf run tf
    [2]
    $ wf merge tf
    error: tf is not merge-ready: its status is planning; write the plan, then: wf run tf
    [8]
    $ wf plan tf
    error: there is no draft; create one: wf plan --from STORY
    [2]
    $ wf watch
    error: wf watch needs a terminal; elsewhere use: wf list --json
    [2]
    "#);
}
