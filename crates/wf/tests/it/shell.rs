//! The command line: promises that `wf` shares with the other programs.

use serde_json::Value;
use testkit::hermetic::Hermetic;
use testkit::shell_promises::Shell;

#[test]
fn the_command_line_keeps_the_promises_of_every_program() {
    Shell::new(env!("CARGO_BIN_EXE_wf"), "wf").keeps_its_promises();
}

#[test]
fn a_missing_subcommand_is_a_document_for_scripts() {
    let hermetic = Hermetic::new();
    let mut command = hermetic.command(env!("CARGO_BIN_EXE_wf"));
    let output = hermetic.run(command.args(["--json", "clarify"]));
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    let document: Value = serde_json::from_str(&output.stdout).expect("a document");
    assert_eq!(document["error"]["text"], "a subcommand is required");
}
