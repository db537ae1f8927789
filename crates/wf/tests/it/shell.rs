//! What `wf` shares with the other programs.

use testkit::shell_promises::Shell;

#[test]
fn the_command_line_keeps_the_promises_of_every_program() {
    Shell::new(env!("CARGO_BIN_EXE_wf"), "wf").keeps_its_promises();
}
