//! Rungs that are programs: the fork's own commands that make files anew, and a merger that knows languages, both in boxes.

use testkit::hermetic::Output;
use testkit::part::{Part, missing, require};
use testkit::repo::Fork;

use crate::support::Person;

/// A file that a program makes from another one, in conflict; `rules` is the fork's FORK.md.
fn made_file(rules: &str) -> Option<Person> {
    Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        shared(&fork, &[("names", "b\n"), ("made.lock", "all: b\n")]);
        fork.checkout.write("FORK.md", rules).write("names.fork", "a\n");
        fork.checkout.write("made.lock", "all: a b\n");
        fork.fork_commit("a name of the fork's");
        fork.upstream_commit("names", "b\nc\n", "a name of upstream's");
        fork.upstream_commit("made.lock", "all: b c\n", "made anew");
        fork
    })
}

/// Files that both sides start from.
fn shared(fork: &Fork, files: &[(&str, &str)]) {
    for (path, text) in files {
        fork.upstream_commit(path, text, "a file of both");
    }
    fork.checkout.git(&["fetch", "-q", "upstream"]);
    fork.checkout.git(&["merge", "-q", "--no-edit", "upstream/main"]);
}

fn rule(command: &str) -> String {
    format!("---\nresolve:\n  - path: made.lock\n    regenerate: \"{command}\"\n---\n")
}

fn run(person: &Person, script: &str) -> Output {
    let path = person.hermetic.root().join("agent.toml");
    std::fs::write(&path, script).expect("the script");
    let mut command = person.forklift(&["--provider", "scripted", "--backend", "bwrap"]);
    person.hermetic.run(command.arg("--script").arg(path).arg("--accept-loss"))
}

/// Fails the run if it is started.
const NEVER: &str = "[[step]]\nexit = 9\n";

fn published(person: &Person, path: &str) -> String {
    let branch = person.published().pop().expect("published");
    person.fork.origin.git(&["show", &format!("{branch}:{path}")])
}

#[test]
fn a_file_that_a_program_makes_is_made_anew_in_a_box_and_needs_no_agent() {
    let Some(person) =
        made_file(&rule("echo all: $(cat names names.fork | sort) > made.lock; touch other"))
    else {
        return;
    };
    let output = run(&person, NEVER);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(published(&person, "made.lock"), "all: a b c");
    assert_eq!(person.metadata("/merged_alone"), true);
    let step = person.metadata("/resolver/receipts/0/steps/0");
    assert_eq!((&step["strategy"], &step["version"]), (&"regenerate".into(), &1.into()), "{step}");
    assert!(step["program"].as_str().is_some_and(|line| line.starts_with("echo all:")), "{step}");
    assert_eq!(person.metadata("/regenerate/0/ended/kind"), "exited");
    let run = person.only_run();
    let text = std::fs::read_to_string(run.join("PULL_REQUEST.md")).expect("text");
    assert!(text.contains("made anew by its program (by regenerate/1)"), "{text}");
    assert!(!run.join("regenerate-workspace").exists(), "the copy was to be removed");
    let branch = person.published().pop().expect("published");
    let files = person.fork.origin.git(&["ls-tree", "--name-only", &branch]);
    assert!(!files.contains("other"), "only what was ruled about is taken: {files}");
}

/// Takes the fork's side of the one file that is left, after finding the reason in its brief.
fn resolves(reason: &str) -> String {
    format!(
        "[[step]]\nrun = '''set -e\ngrep -qF {reason:?} /harness-state/conflicts.md
git merge -q --no-edit upstream/main || true
test \"$(git diff --name-only --diff-filter=U)\" = made.lock
git checkout -q --ours made.lock && git add made.lock && git commit -q --no-edit'''\n"
    )
}

#[test]
fn a_command_that_fails_sends_its_file_to_the_agent_with_the_reason() {
    let Some(person) = made_file(&rule("echo no such tool >&2; exit 3")) else { return };
    let output = run(&person, &resolves("status 3: no such tool"));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(published(&person, "made.lock"), "all: a b");
    assert_eq!(person.metadata("/resolver/receipts").as_array().map(Vec::len), Some(0));
    assert_eq!(person.metadata("/resolver/rest/0"), "made.lock");
}

#[test]
fn what_a_command_made_badly_goes_to_the_agent() {
    let marked =
        rule("printf '<<<<<<< a\\n=======\\n>>>>>>> b\\n' > made.lock").replace('\\', "\\\\");
    let cases = [
        (marked, "conflict markers are left in it"),
        (rule("rm made.lock"), "it took the file away"),
        (rule("ln -sf /etc/passwd made.lock"), "no regular file"),
    ];
    for (rules, reason) in cases {
        let Some(person) = made_file(&rules) else { return };
        let output = run(&person, &resolves(reason));
        assert_eq!(output.status, Some(0), "{reason}: {}", output.snapshot());
        assert_eq!(person.metadata("/resolver/rest/0"), "made.lock", "{reason}");
    }
}

#[test]
fn a_command_that_hangs_is_ended_by_its_own_clock() {
    let rules = rule("sleep 60").replace("---\nresolve", "---\nregenerate-timeout: 1\nresolve");
    let Some(person) = made_file(&rules) else { return };
    let output = run(&person, &resolves("out of time"));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert_eq!(person.metadata("/regenerate/0/ended/kind"), "out-of-time");
}

#[test]
fn a_command_sees_no_secret_and_reaches_nobody() {
    let spies = "env | grep -i canary; ls /root/.ssh; id -u; (echo > /dev/tcp/127.0.0.1/1) 2>&1; cat names > made.lock";
    let Some(person) = made_file(&rule(spies)) else { return };
    let path = person.hermetic.root().join("agent.toml");
    std::fs::write(&path, NEVER).expect("the script");
    let mut command = person.forklift(&["--provider", "scripted", "--backend", "bwrap"]);
    command.arg("--script").arg(path).arg("--accept-loss").env("CANARY_TOKEN", "do-not-tell");
    let output = person.hermetic.run(&mut command);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let tail = person.metadata("/regenerate/0/tail");
    let tail = tail.as_str().expect("text");
    assert!(!tail.contains("do-not-tell") && !tail.lines().any(|line| line == "0"), "{tail}");
    assert!(tail.contains("refused"), "{tail}");
}

/// Imports that both sides added at the same place: a question of lines, but not of the language.
fn code_in_conflict() -> Option<Person> {
    Person::with(|hermetic| {
        let fork = Fork::new(hermetic);
        shared(&fork, &[("src.rs", "fn main() {\n    work();\n}\n")]);
        fork.checkout.write("src.rs", "use std::fs;\nuse std::io;\n\nfn main() {}\n");
        fork.fork_commit("the fork's way");
        fork.upstream_commit(
            "src.rs",
            "use std::fmt;\nuse std::io;\n\nfn main() {}\n",
            "upstream's way",
        );
        fork
    })
}

#[test]
fn mergiraf_is_asked_in_a_box_and_its_answer_reaches_the_agent_with_its_version() {
    let Some(program) = require(Part::Mergiraf) else { return };
    let Some(mut person) = code_in_conflict() else { return };
    let Some(folder) = program.parent() else { return missing("mergiraf", "it has no folder") };
    person.hermetic = person.hermetic.with_path(folder);
    let script = "[[step]]\nrun = '''cp /harness-state/conflicts.md /harness-state/seen
git checkout -q --ours src.rs && git add -A && git commit -q --no-edit || git merge -q --no-edit -X ours upstream/main'''\n";
    let output = run(&person, script);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let seen = person.only_run().join("harness-state/seen");
    let seen = std::fs::read_to_string(seen).expect("the briefs");
    let (_, proposed) =
        seen.split_once("A program that knows the language (mergiraf ").expect("a proposal");
    for words in ["use std::fs;\n", "use std::fmt;\n"] {
        assert!(proposed.contains(words), "{words}: {proposed}");
    }
    for folder in ["structure-workspace", "structure-state", "structure-program"] {
        assert!(!person.only_run().join(folder).exists(), "{folder} was to be removed");
    }
}

#[test]
fn without_mergiraf_nothing_is_asked_and_nothing_fails() {
    let Some(person) = code_in_conflict() else { return };
    let script =
        "[[step]]\nrun = \"git merge -q --no-edit -X ours upstream/main || git commit -qam x\"\n";
    let output = run(&person, script);
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(!person.only_run().join("boxes/structure-1").exists());
}
