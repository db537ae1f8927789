//! `orchestrate`: start, resume and status on behalf of a forge, with right and wrong variables.

use super::{transcript, without_padding, without_times};
use crate::support::{COMMIT, DONE, Person, SLUG, Scene};

const START: [&str; 8] =
    ["orchestrate", "start", "--agent", "worker", "--prompt", "Do it.", "--backend", "bwrap"];

/// Output with the forge's address struck out.
fn shown(scene: &Scene, output: &testkit::Output) -> String {
    output.snapshot().replace(&scene.forge.url(), "[FORGE]")
}

/// Output of a start with one variable changed; an empty value takes it away.
fn start_with(variable: &str, value: &str) -> Option<String> {
    let scene = Scene::new()?;
    scene.person.script(COMMIT);
    let mut command = scene.command(&START);
    match value {
        "" => command.env_remove(variable),
        value => command.env(variable, value),
    };
    Some(shown(&scene, &scene.person.hermetic.run(&mut command)))
}

/// The same for several changes, each under its name.
fn starts_with(changes: &[(&str, &str)]) -> Option<String> {
    let texts: Option<Vec<String>> = changes
        .iter()
        .map(|(variable, value)| {
            Some(format!("{variable}={value}\n{}", start_with(variable, value)?))
        })
        .collect();
    Some(texts?.join("\n"))
}

#[test]
fn no_variables_at_all() {
    let Some(person) = Person::new() else { return };
    let lines: [&[&str]; 3] = [
        &START,
        &["orchestrate", "resume", "--slug", "ghost", "--prompt", "x"],
        &["orchestrate", "status"],
    ];
    insta::assert_snapshot!(transcript(&person, &lines), @"
    $ bot-bottle orchestrate start --agent worker --prompt Do it. --backend bwrap
    status: 125
    --- stdout
    --- stderr
    error: FORGE_GITEA_API is not set; a forge run needs it, see: bot-bottle orchestrate start --help

    $ bot-bottle orchestrate resume --slug ghost --prompt x
    status: 125
    --- stdout
    --- stderr
    error: FORGE_GITEA_API is not set; a forge run needs it, see: bot-bottle orchestrate start --help

    $ bot-bottle orchestrate status
    status: 0
    --- stdout
    No bottle works for a forge. Start one with: bot-bottle orchestrate start, or bot-bottle serve
    --- stderr
    ");
}

#[test]
fn variables_that_are_missing() {
    let names = [
        ("FORGE_GITEA_API", ""),
        ("FORGE_OWNER", ""),
        ("FORGE_REPO", ""),
        ("FORGE_ISSUE_NUMBER", ""),
        ("FORGE_TOKEN", ""),
    ];
    let Some(shown) = starts_with(&names) else { return };
    insta::assert_snapshot!(shown, @"
    FORGE_GITEA_API=
    status: 125
    --- stdout
    --- stderr
    error: FORGE_GITEA_API is not set; a forge run needs it, see: bot-bottle orchestrate start --help

    FORGE_OWNER=
    status: 125
    --- stdout
    --- stderr
    error: FORGE_OWNER is not set; a forge run needs it, see: bot-bottle orchestrate start --help

    FORGE_REPO=
    status: 125
    --- stdout
    --- stderr
    error: FORGE_REPO is not set; a forge run needs it, see: bot-bottle orchestrate start --help

    FORGE_ISSUE_NUMBER=
    status: 125
    --- stdout
    --- stderr
    error: FORGE_ISSUE_NUMBER is not set; a forge run needs it, see: bot-bottle orchestrate start --help

    FORGE_TOKEN=
    status: 125
    --- stdout
    --- stderr
    error: the forge's token is not there: set BOTTLEWORKS_FORGE_TOKEN (or FORGE_TOKEN), or put it into [ROOT]/home/.bot-bottle/forge-token (mode 0600)
    ");
}

#[test]
fn variables_that_cannot_be() {
    let names = [
        ("FORGE_GITEA_API", "ftp://h/api/v1"),
        ("FORGE_GITEA_API", "https://u:p@h/api/v1"),
        ("FORGE_OWNER", "../x"),
        ("FORGE_REPO", "a b"),
        ("FORGE_ISSUE_NUMBER", "zero"),
        ("FORGE_PR_NUMBER", "0"),
        ("FORGE_KIND", "svn"),
        ("FORGE_WATCHDOG_TIMEOUT", "soon"),
    ];
    let Some(shown) = starts_with(&names) else { return };
    insta::assert_snapshot!(shown, @"
    FORGE_GITEA_API=ftp://h/api/v1
    status: 125
    --- stdout
    --- stderr
    error: FORGE_GITEA_API cannot be 'ftp://h/api/v1': give http(s)://host[:port][/path]/api/v1

    FORGE_GITEA_API=https://u:p@h/api/v1
    status: 125
    --- stdout
    --- stderr
    error: FORGE_GITEA_API cannot be 'https://***@h/api/v1': give http(s)://host[:port][/path]/api/v1

    FORGE_OWNER=../x
    status: 125
    --- stdout
    --- stderr
    error: FORGE_OWNER cannot be '../x': letters, digits, '-', '_' and '.'

    FORGE_REPO=a b
    status: 125
    --- stdout
    --- stderr
    error: FORGE_REPO cannot be 'a b': letters, digits, '-', '_' and '.'

    FORGE_ISSUE_NUMBER=zero
    status: 125
    --- stdout
    --- stderr
    error: FORGE_ISSUE_NUMBER cannot be 'zero': give a number from 1

    FORGE_PR_NUMBER=0
    status: 125
    --- stdout
    --- stderr
    error: FORGE_PR_NUMBER cannot be '0': give a number from 1

    FORGE_KIND=svn
    status: 125
    --- stdout
    --- stderr
    error: FORGE_KIND cannot be 'svn': gitea, github, gitlab or folder

    FORGE_WATCHDOG_TIMEOUT=soon
    status: 125
    --- stdout
    --- stderr
    error: FORGE_WATCHDOG_TIMEOUT cannot be 'soon': give a number from 1
    ");
}

#[test]
fn a_token_that_the_forge_refuses() {
    let Some(shown) = start_with("FORGE_TOKEN", "wrong") else { return };
    insta::assert_snapshot!(shown, @"
    status: 125
    --- stdout
    --- stderr
      alice/hooks#1, organisation 'bot-bottle'
    error: 127.0.0.1 does not accept the token (invalid username, password or token); make a new one and store it in its place
    ");
}

#[test]
fn an_issue_that_the_forge_does_not_have() {
    let Some(shown) = start_with("FORGE_ISSUE_NUMBER", "99") else { return };
    insta::assert_snapshot!(shown, @"
    status: 125
    --- stdout
    --- stderr
      alice/hooks#99, organisation 'bot-bottle'
    error: 127.0.0.1 could not read issue #99, because it finds no such thing (not found); check the names of repository and branch, and that the token can see them
    ");
}

#[test]
fn an_organisation_without_members() {
    let Some(shown) = start_with("FORGE_ORG", "strangers") else { return };
    insta::assert_snapshot!(shown, @"
    status: 125
    --- stdout
    --- stderr
      alice/hooks#1, organisation 'strangers'
    error: issue #1 is not for the agent 'worker': none of its assignees is a member of the organisation 'strangers'
    ");
}

#[test]
fn an_agent_that_the_issue_does_not_name() {
    let Some(scene) = Scene::new() else { return };
    scene.person.agent("other", "");
    let args = ["orchestrate", "start", "--agent", "other", "--prompt", "x", "--backend", "bwrap"];
    let output = scene.person.hermetic.run(&mut scene.command(&args));
    insta::assert_snapshot!(shown(&scene, &output), @"
    status: 125
    --- stdout
    --- stderr
      alice/hooks#1, organisation 'bot-bottle'
    error: issue #1 is not for the agent 'other': it has no label 'bot-bottle:other'
    ");
}

#[test]
fn an_issue_becomes_a_pull_request() {
    let Some(scene) = Scene::new() else { return };
    let output = scene.start(&format!("{COMMIT}{DONE}"));
    insta::assert_snapshot!(shown(&scene, &output), @"
    status: 0
    --- stdout
    bottle      worker-issue-1
    run         [ROOT]/home/.bot-bottle/cellar/worker-issue-1/runs/worker-issue-1_[STAMP]
    done        success: all done
    verdict     the work holds
    pull        #2 [FORGE]/alice/hooks/pulls/2
    --- stderr
      alice/hooks#1, organisation 'bot-bottle'
    > fetching origin
    > copying the repository into a workspace of its own
    > starting scripted in a sealed bwrap box, 1800 s
    > importing the agent's commits from the box
    > verifying against the pinned commits
    > pushing the branch and opening the pull request
    ");
}

#[test]
fn the_pull_request_of_an_issue() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let pulls = scene.forge.pulls();
    let pull = pulls.first().expect("a pull request");
    let text = format!("{}\n\n{}", pull.title, pull.body);
    insta::assert_snapshot!(scene.person.hermetic.redact(&text), @"
    Do it

    <!-- bot-bottle: each run writes anew what stands from here to the end mark -->
    What the agent says:

    > all done

    Commits:

    - [SHA] `do the work`

    Size: 1 file, 1 line added, 0 removed.
    Made by the agent `worker` in under a minute.

    Closes #1
    <!-- bot-bottle: end -->
    ");
}

#[test]
fn the_operations_of_a_forge_run() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let text = scene.sentences().join("\n");
    insta::assert_snapshot!(scene.person.hermetic.redact(&text), @"signalled done: success");
}

#[test]
fn the_status_after_a_run() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let lines: [&[&str]; 2] = [&["orchestrate", "status"], &["orchestrate", "status", "--json"]];
    let text = transcript(&scene.person, &lines).replace(&scene.forge.url(), "[FORGE]");
    insta::assert_snapshot!(without_padding(&text), @r#"
    $ bot-bottle orchestrate status
    status: 0
    --- stdout
     SLUG  STATUS  AGENT  ISSUE  PULL REQUEST  LAST CHECK-IN
     worker-issue-1  frozen  worker  [FORGE]/alice/hooks/issues/1  [FORGE]/alice/hooks/pulls/2  [TIME]
    --- stderr

    $ bot-bottle orchestrate status --json
    status: 0
    --- stdout
    [
      {
        "agent": "worker",
        "backend": "bwrap",
        "bottles": [],
        "issue": 1,
        "issue_url": "[FORGE]/alice/hooks/issues/1",
        "last_checkin_at": "[TIME]",
        "owner": "alice",
        "pull": 2,
        "pull_url": "[FORGE]/alice/hooks/pulls/2",
        "repo": "hooks",
        "slug": "worker-issue-1",
        "status": "frozen"
      }
    ]
    --- stderr
    "#);
}

#[test]
fn a_bottle_of_an_issue_is_resumed() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let output = scene.resume(&format!("{COMMIT}{DONE}"));
    insta::assert_snapshot!(without_times(&shown(&scene, &output)), @"
    status: 0
    --- stdout
    bottle      worker-issue-1
    run         [ROOT]/home/.bot-bottle/cellar/worker-issue-1/runs/worker-issue-1_[STAMP]
    done        success: all done
    verdict     the work holds
    pull        #2 [FORGE]/alice/hooks/pulls/2
    --- stderr
      alice/hooks#1, organisation 'bot-bottle'
    > fetching origin
    > starting scripted in a sealed bwrap box, 1800 s
    > importing the agent's commits from the box
    > verifying against the pinned commits
    > pushing the branch and opening the pull request
    ");
}

#[test]
fn a_bottle_is_not_resumed_for_another_issue() {
    let Some(scene) = Scene::new() else { return };
    scene.start_ok(&format!("{COMMIT}{DONE}"));
    let args = ["orchestrate", "resume", "--slug", SLUG, "--prompt", "x"];
    let mut command = scene.command(&args);
    let output = scene.person.hermetic.run(command.env("FORGE_ISSUE_NUMBER", "99"));
    insta::assert_snapshot!(shown(&scene, &output), @"
    status: 125
    --- stdout
    --- stderr
      alice/hooks#99, organisation 'bot-bottle'
    error: the bottle 'worker-issue-1' works on alice/hooks#1, and the variables name another issue
    ");
}

#[test]
fn an_agent_that_is_blocked() {
    let Some(scene) = Scene::new() else { return };
    let blocked = "[[step]]\nrun = [\"forge\", \"done\", \"blocked\", \"which flow is meant?\"]\n";
    let output = scene.start(&format!("{COMMIT}{blocked}"));
    insta::assert_snapshot!(shown(&scene, &output), @"
    status: 0
    --- stdout
    bottle      worker-issue-1
    run         [ROOT]/home/.bot-bottle/cellar/worker-issue-1/runs/worker-issue-1_[STAMP]
    done        blocked: which flow is meant?
    verdict     not finished: the agent waits for a person
    commits     [SHA] is kept; look at it with: bot-bottle diff worker-issue-1
    --- stderr
      alice/hooks#1, organisation 'bot-bottle'
    > fetching origin
    > copying the repository into a workspace of its own
    > starting scripted in a sealed bwrap box, 1800 s
    > importing the agent's commits from the box
    > verifying against the pinned commits
    ");
}

#[test]
fn an_agent_that_does_not_report() {
    let Some(scene) = Scene::new() else { return };
    let output = scene.start(COMMIT);
    insta::assert_snapshot!(shown(&scene, &output), @"
    status: 0
    --- stdout
    bottle      worker-issue-1
    run         [ROOT]/home/.bot-bottle/cellar/worker-issue-1/runs/worker-issue-1_[STAMP]
    watchdog    the agent did not report for itself; the record may be incomplete
    verdict     the work holds
    pull        #2 [FORGE]/alice/hooks/pulls/2
    --- stderr
      alice/hooks#1, organisation 'bot-bottle'
    > fetching origin
    > copying the repository into a workspace of its own
    > starting scripted in a sealed bwrap box, 1800 s
    > importing the agent's commits from the box
    > verifying against the pinned commits
    > pushing the branch and opening the pull request
    ");
}
