//! Headless runs, by how they end: status and words of `start`.

use super::{transcript, without_times};
use crate::support::{COMMIT, Person};

/// Output of a headless start that plays `script`.
fn check(script: &str, more: &[&str]) -> Option<String> {
    let person = Person::new()?;
    Some(person.start(script, &[&["--label", "run"], more].concat()).snapshot())
}

/// The same as JSON events.
fn check_json(script: &str) -> Option<String> {
    let shown = check(script, &["--json"])?;
    // Whether gitleaks is installed depends on the machine.
    let lines: Vec<&str> = shown.lines().filter(|line| !line.contains("gitleaks")).collect();
    Some(without_times(&(lines.join("\n") + "\n")))
}

#[test]
fn one_commit() {
    let Some(shown) = check(COMMIT, &[]) else { return };
    insta::assert_snapshot!(shown, @"
    status: 0
    --- stdout
    bottle      run
    run         [ROOT]/home/.bot-bottle/cellar/run/runs/run_[STAMP]
    verdict     the work holds
    commits     [SHA] is kept; look at it with: bot-bottle diff run; take it with: bot-bottle apply run, or bot-bottle checkout run
    --- stderr
    > copying the repository into a workspace of its own
    > starting scripted in a sealed bwrap box, 1800 s
    > importing the agent's commits from the box
    > verifying against the pinned commits
    ");
}

#[test]
fn one_commit_as_events() {
    let Some(shown) = check_json(COMMIT) else { return };
    insta::assert_snapshot!(shown, @r#"
    status: 0
    --- stdout
    {"event":"phase","phase":"prepare","text":"copying the repository into a workspace of its own"}
    {"event":"phase","phase":"launch","text":"starting scripted in a sealed bwrap box, 1800 s"}
    {"event":"progress","kind":"tool","text":"run: echo work >> work.txt && git add -A && git commit -qm 'do the work'"}
    {"ended":{"code":0,"kind":"exited"},"event":"box","ready_ms":…
    {"event":"phase","phase":"import","text":"importing the agent's commits from the box"}
    {"event":"phase","phase":"judge","text":"verifying against the pinned commits"}
    {"engine":"built-in","event":"scan","program_sha256":null,"status":"clean","version":"0.1.0"}
    {"done":null,"event":"end","path":"[ROOT]/home/.bot-bottle/cellar/run/runs/run_[STAMP]","publication":null,"run":"run_[STAMP]","slug":"run","status":0,"verdict":{"kind":"publish"},"watchdog_fired":false}
    --- stderr
    "#);
}

#[test]
fn no_commits() {
    let Some(shown) = check("[[step]]\nprint = \"I looked.\\n\"\n", &[]) else { return };
    insta::assert_snapshot!(shown, @"
    status: 0
    --- stdout
    bottle      run
    run         [ROOT]/home/.bot-bottle/cellar/run/runs/run_[STAMP]
    verdict     no new commits
    --- stderr
    > copying the repository into a workspace of its own
    > starting scripted in a sealed bwrap box, 1800 s
    > importing the agent's commits from the box
    > verifying against the pinned commits
    ");
}

#[test]
fn an_agent_that_fails() {
    let Some(shown) = check("[[step]]\nrun = \"exit 7\"\n", &[]) else { return };
    insta::assert_snapshot!(shown, @"
    status: 7
    --- stdout
    bottle      run
    run         [ROOT]/home/.bot-bottle/cellar/run/runs/run_[STAMP]
    verdict     not finished: status 7
    --- stderr
    > copying the repository into a workspace of its own
    > starting scripted in a sealed bwrap box, 1800 s
    > importing the agent's commits from the box
    > verifying against the pinned commits
    ");
}

#[test]
fn an_agent_that_fails_as_events() {
    let Some(shown) = check_json("[[step]]\nrun = \"exit 7\"\n") else { return };
    insta::assert_snapshot!(shown, @r#"
    status: 7
    --- stdout
    {"event":"phase","phase":"prepare","text":"copying the repository into a workspace of its own"}
    {"event":"phase","phase":"launch","text":"starting scripted in a sealed bwrap box, 1800 s"}
    {"event":"progress","kind":"tool","text":"run: exit 7"}
    {"ended":{"code":7,"kind":"exited"},"event":"box","ready_ms":…
    {"event":"phase","phase":"import","text":"importing the agent's commits from the box"}
    {"event":"phase","phase":"judge","text":"verifying against the pinned commits"}
    {"done":null,"event":"end","path":"[ROOT]/home/.bot-bottle/cellar/run/runs/run_[STAMP]","publication":null,"run":"run_[STAMP]","slug":"run","status":7,"verdict":{"how":"status 7","kind":"unfinished"},"watchdog_fired":false}
    --- stderr
    "#);
}

#[test]
fn a_commit_in_another_name() {
    let script = "[[step]]\nrun = \"echo x > x && git add -A && git -c user.name=Eve -c user.email=eve@example.com commit -qm x --author='Eve <eve@example.com>'\"\n";
    let Some(shown) = check(script, &[]) else { return };
    insta::assert_snapshot!(shown, @"
    status: 0
    --- stdout
    bottle      run
    run         [ROOT]/home/.bot-bottle/cellar/run/runs/run_[STAMP]
    verdict     not to be published: not by the box's own identity: [SHA] by Eve <eve@example.com>
    commits     [SHA] is kept; look at it with: bot-bottle diff run
    --- stderr
    > copying the repository into a workspace of its own
    > starting scripted in a sealed bwrap box, 1800 s
    > importing the agent's commits from the box
    > verifying against the pinned commits
    ");
}

#[test]
fn a_commit_to_a_protected_path() {
    let script = "[[step]]\nrun = \"mkdir -p .github/workflows && echo x > .github/workflows/ci.yml && git add -A && git commit -qm x\"\n";
    let Some(shown) = check(script, &[]) else { return };
    insta::assert_snapshot!(shown, @"
    status: 0
    --- stdout
    bottle      run
    run         [ROOT]/home/.bot-bottle/cellar/run/runs/run_[STAMP]
    verdict     not to be published: protected path: .github/workflows/ci.yml
    commits     [SHA] is kept; look at it with: bot-bottle diff run
    --- stderr
    > copying the repository into a workspace of its own
    > starting scripted in a sealed bwrap box, 1800 s
    > importing the agent's commits from the box
    > verifying against the pinned commits
    ");
}

#[test]
fn a_commit_with_a_secret() {
    let secret = format!("ghp_{}", "aB3dE6gH9jK2mN5pQ8sT");
    let script = format!(
        "[[step]]\nrun = \"echo key={secret} > config && git add -A && git commit -qm config\"\n"
    );
    let Some(shown) = check(&script, &[]) else { return };
    assert!(!shown.contains("aB3dE6"), "the secret itself is not shown");
    insta::assert_snapshot!(shown, @"
    status: 0
    --- stdout
    bottle      run
    run         [ROOT]/home/.bot-bottle/cellar/run/runs/run_[STAMP]
    verdict     not to be published: built-in found 1 secret: [SHA]: key=***
    commits     [SHA] is kept; look at it with: bot-bottle diff run
    --- stderr
    > copying the repository into a workspace of its own
    > starting scripted in a sealed bwrap box, 1800 s
    > importing the agent's commits from the box
    > verifying against the pinned commits
    ");
}

#[test]
fn a_link_that_leads_out() {
    let script =
        "[[step]]\nrun = \"ln -s /etc/passwd link && git add -A && git commit -qm link\"\n";
    let Some(shown) = check(script, &[]) else { return };
    insta::assert_snapshot!(shown, @"
    status: 0
    --- stdout
    bottle      run
    run         [ROOT]/home/.bot-bottle/cellar/run/runs/run_[STAMP]
    verdict     not to be published: a link leads out of the tree: link
    commits     [SHA] is kept; look at it with: bot-bottle diff run
    --- stderr
    > copying the repository into a workspace of its own
    > starting scripted in a sealed bwrap box, 1800 s
    > importing the agent's commits from the box
    > verifying against the pinned commits
    ");
}

#[test]
fn an_agent_that_runs_out_of_time() {
    let Some(person) = Person::new() else { return };
    person.agent("worker", "[limits]\ntimeout_secs = 2\n");
    let output = person.start("[[step]]\nrun = \"sleep 60\"\n", &["--label", "run"]);
    insta::assert_snapshot!(output.snapshot(), @"
    status: 124
    --- stdout
    bottle      run
    run         [ROOT]/home/.bot-bottle/cellar/run/runs/run_[STAMP]
    verdict     not finished: out of time
    --- stderr
    > copying the repository into a workspace of its own
    > starting scripted in a sealed bwrap box, 2 s
    > importing the agent's commits from the box
    > verifying against the pinned commits
    ");
}

#[test]
fn a_set_up_that_fails() {
    let Some(person) = Person::new() else { return };
    person.manifest("bottles", "odd", "setup = \"echo no such tool >&2; exit 4\"\n");
    let output = person.start(COMMIT, &["--label", "run", "--bottle", "odd"]);
    insta::assert_snapshot!(output.snapshot(), @"
    status: 125
    --- stdout
    bottle      run
    run         [ROOT]/home/.bot-bottle/cellar/run/runs/run_[STAMP]
    verdict     the bottle's set-up failed: exited: no such tool
    --- stderr
    > copying the repository into a workspace of its own
    > running the set-up in a box
    ");
}

#[test]
fn a_program_that_the_box_lacks() {
    let Some(person) = Person::new() else { return };
    person.manifest("bottles", "odd", "packages = [\"no-such-program\"]\n");
    let output = person.start(COMMIT, &["--label", "run", "--bottle", "odd"]);
    insta::assert_snapshot!(output.snapshot(), @"
    status: 125
    --- stdout
    bottle      run
    run         [ROOT]/home/.bot-bottle/cellar/run/runs/run_[STAMP]
    verdict     the bottle's set-up failed: exited: missing in the box: no-such-program
    --- stderr
    > copying the repository into a workspace of its own
    > running the set-up in a box
    ");
}

#[test]
fn bottles_that_contradict_each_other() {
    let Some(person) = Person::new() else { return };
    person.manifest("bottles", "one", "image = \"a\"\n");
    person.manifest("bottles", "two", "image = \"b\"\n");
    let output = person.start(COMMIT, &["--bottle", "one", "--bottle", "two"]);
    insta::assert_snapshot!(output.snapshot(), @"
    status: 125
    --- stdout
    --- stderr
    error: image: two of the bottles name an image or a root
    ");
}

#[test]
fn starts_that_cannot_begin() {
    let Some(person) = Person::new() else { return };
    person.script(COMMIT);
    let head = ["start", "worker", "--headless", "--prompt", "x"];
    let outside = person.hermetic.work().display().to_string();
    let lines = [
        [&head[..], &["--backend", "lxc"]].concat(),
        [&head[..], &["--bottle", "nope"]].concat(),
        [&head[..], &["--repo", &outside, "--backend", "bwrap"]].concat(),
        [&head[..], &["--repo", "/nowhere", "--backend", "bwrap"]].concat(),
    ];
    let lines: Vec<&[&str]> = lines.iter().map(Vec::as_slice).collect();
    insta::assert_snapshot!(transcript(&person, &lines), @"
    $ bot-bottle start worker --headless --prompt x --backend lxc
    status: 125
    --- stdout
    --- stderr
    error: unknown backend 'lxc'; use docker or bwrap (podman is reached as docker)

    $ bot-bottle start worker --headless --prompt x --bottle nope
    status: 125
    --- stdout
    --- stderr
    error: there is no bottle 'nope' ([ROOT]/home/.bot-bottle/bottles/nope.toml); make one with: bot-bottle bottle new nope

    $ bot-bottle start worker --headless --prompt x --repo [ROOT]/work --backend bwrap
    status: 125
    --- stdout
    --- stderr
    error: [ROOT]/work is not inside a git repository; run bot-bottle in a checkout, or name one with --repo

    $ bot-bottle start worker --headless --prompt x --repo /nowhere --backend bwrap
    status: 125
    --- stdout
    --- stderr
    error: no git repository at /nowhere
    hint: run bot-bottle in a checkout, or name one with --repo
    ");
}
