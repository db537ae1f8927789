//! The README tells what the program does.

use model::exit::{ExitStatus, ForkliftExit};

const README: &str = include_str!("../../../../docs/forklift.md");

#[test]
fn the_status_table_is_the_programs_own() {
    for &status in ForkliftExit::ALL {
        let row = format!("| {} | {} |", status.code(), status.meaning());
        assert!(README.contains(&row), "{row} is not in the README");
    }
}

#[test]
fn the_two_commands_are_there() {
    let readme = include_str!("../../../../README.md");
    assert!(readme.contains("make demo") && readme.contains("make test"));
}
