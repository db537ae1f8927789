//! Headless runs, by how they end: status and words of `start`.

use super::transcript;
use crate::support::{COMMIT, Person};

/// Output of a headless start that plays `script`.
fn check(script: &str, more: &[&str]) -> Option<String> {
    let person = Person::new()?;
    Some(person.start(script, &[&["--label", "run"], more].concat()).snapshot())
}

/// The same as JSON events.
fn check_json(script: &str) -> Option<String> {
    check(script, &["--json"])
}

#[test]
fn one_commit() {
    let Some(shown) = check(COMMIT, &[]) else { return };
    insta::assert_snapshot!(shown, @"");
}

#[test]
fn one_commit_as_events() {
    let Some(shown) = check_json(COMMIT) else { return };
    insta::assert_snapshot!(shown, @"");
}

#[test]
fn no_commits() {
    let Some(shown) = check("[[step]]\nprint = \"I looked.\\n\"\n", &[]) else { return };
    insta::assert_snapshot!(shown, @"");
}

#[test]
fn an_agent_that_fails() {
    let Some(shown) = check("[[step]]\nrun = \"exit 7\"\n", &[]) else { return };
    insta::assert_snapshot!(shown, @"");
}

#[test]
fn an_agent_that_fails_as_events() {
    let Some(shown) = check_json("[[step]]\nrun = \"exit 7\"\n") else { return };
    insta::assert_snapshot!(shown, @"");
}

#[test]
fn a_commit_in_another_name() {
    let script = "[[step]]\nrun = \"echo x > x && git add -A && git -c user.name=Eve -c user.email=eve@example.com commit -qm x --author='Eve <eve@example.com>'\"\n";
    let Some(shown) = check(script, &[]) else { return };
    insta::assert_snapshot!(shown, @"");
}

#[test]
fn a_commit_to_a_protected_path() {
    let script = "[[step]]\nrun = \"mkdir -p .github/workflows && echo x > .github/workflows/ci.yml && git add -A && git commit -qm x\"\n";
    let Some(shown) = check(script, &[]) else { return };
    insta::assert_snapshot!(shown, @"");
}

#[test]
fn a_commit_with_a_secret() {
    let secret = format!("ghp_{}", "aB3dE6gH9jK2mN5pQ8sT");
    let script = format!(
        "[[step]]\nrun = \"echo key={secret} > config && git add -A && git commit -qm config\"\n"
    );
    let Some(shown) = check(&script, &[]) else { return };
    assert!(!shown.contains("aB3dE6"), "the secret itself is not shown");
    insta::assert_snapshot!(shown, @"");
}

#[test]
fn a_link_that_leads_out() {
    let script =
        "[[step]]\nrun = \"ln -s /etc/passwd link && git add -A && git commit -qm link\"\n";
    let Some(shown) = check(script, &[]) else { return };
    insta::assert_snapshot!(shown, @"");
}

#[test]
fn an_agent_that_runs_out_of_time() {
    let Some(person) = Person::new() else { return };
    person.agent("worker", "[limits]\ntimeout_secs = 2\n");
    let output = person.start("[[step]]\nrun = \"sleep 60\"\n", &["--label", "run"]);
    insta::assert_snapshot!(output.snapshot(), @"");
}

#[test]
fn a_set_up_that_fails() {
    let Some(person) = Person::new() else { return };
    person.manifest("bottles", "odd", "setup = \"echo no such tool >&2; exit 4\"\n");
    let output = person.start(COMMIT, &["--label", "run", "--bottle", "odd"]);
    insta::assert_snapshot!(output.snapshot(), @"");
}

#[test]
fn a_program_that_the_box_lacks() {
    let Some(person) = Person::new() else { return };
    person.manifest("bottles", "odd", "packages = [\"no-such-program\"]\n");
    let output = person.start(COMMIT, &["--label", "run", "--bottle", "odd"]);
    insta::assert_snapshot!(output.snapshot(), @"");
}

#[test]
fn bottles_that_contradict_each_other() {
    let Some(person) = Person::new() else { return };
    person.manifest("bottles", "one", "image = \"a\"\n");
    person.manifest("bottles", "two", "image = \"b\"\n");
    let output = person.start(COMMIT, &["--bottle", "one", "--bottle", "two"]);
    insta::assert_snapshot!(output.snapshot(), @"");
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
    insta::assert_snapshot!(transcript(&person, &lines), @"");
}
