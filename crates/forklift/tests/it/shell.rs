//! What `forklift` shares with the other programs.

use testkit::shell_promises::Shell;

use crate::support::Person;

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
