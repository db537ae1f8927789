//! What `forklift` shares with the other programs.

use testkit::hermetic::Hermetic;
use testkit::shell_promises::Shell;
use testkit::wait::wait_until;

use crate::support::{MERGE, Person};

#[test]
fn the_command_line_keeps_the_promises_of_every_program() {
    Shell::new(env!("CARGO_BIN_EXE_forklift"), "forklift").keeps_its_promises();
}

#[test]
fn following_the_log_of_a_run_that_needed_no_agent_ends() {
    let Some(person) = Person::new() else { return };
    let output = person.hermetic.run(&mut person.alone(&[]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let runs = person.runs();
    let run = runs[0].file_name().expect("a name").to_str().expect("UTF-8");
    for args in [&["log", run][..], &["log", "-f", run]] {
        let output = person.hermetic.run(&mut person.forklift(args));
        assert_eq!((output.status, output.stdout.as_str()), (Some(2), ""), "{}", output.snapshot());
        assert_eq!(
            output.stderr,
            format!("error: the run {run} has no log: no agent was started\n")
        );
    }
}

#[test]
fn following_the_log_of_a_run_that_was_killed_before_its_agent_ends() {
    for phase in ["pinned", "prepared"] {
        let Some(person) = Person::new() else { return };
        let mut command = person.command(MERGE, &[]);
        let output = person.hermetic.run(command.env("BOTTLEWORKS_FAILPOINT", phase));
        assert_eq!(output.signal, Some(9), "{}", output.snapshot());
        let run = person.only_run();
        let run = run.file_name().expect("a name").to_str().expect("UTF-8");
        let output = person.hermetic.run(&mut person.forklift(&["log", "-f", run]));
        assert_eq!((output.status, output.stdout.as_str()), (Some(2), ""), "{}", output.snapshot());
        assert_eq!(
            output.stderr,
            format!(
                "error: the run {run} has no log: no agent was started, and no forklift works on it\n\
                 hint: finish it with: forklift attach {run}\n"
            )
        );
    }
}

#[test]
fn following_the_log_of_a_run_waits_for_its_agent() {
    let Some(person) = Person::new() else { return };
    person.fork.checkout.write("FORK.md", "---\nsetup: sleep 4\n---\n");
    person.fork.fork_commit("a slow set-up");
    let mut child = person.start("[[step]]\nprint = \"hello\"\n", &[]);
    wait_until("the run", || !person.runs().is_empty());
    let run = person.only_run();
    let run = run.file_name().expect("a name").to_str().expect("UTF-8");
    let output = person.hermetic.run(&mut person.forklift(&["log", "-f", run]));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stdout.contains("hello"), "{}", output.snapshot());
    child.wait().expect("ends");
}

#[test]
fn completions_name_the_program_in_their_help() {
    let hermetic = Hermetic::new();
    let mut command = hermetic.command(env!("CARGO_BIN_EXE_forklift"));
    let output = hermetic.run(command.args(["completions", "--help"]));
    let line = "Add `source <(forklift completions bash)` to the shell's start-up file.";
    assert!(output.stdout.contains(line), "{}", output.snapshot());
}
