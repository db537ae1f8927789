//! The README tells what the program does.

use model::exit::{BottleExit, ExitStatus};

const README: &str = include_str!("../../../../docs/bot-bottle.md");

#[test]
fn the_status_table_is_the_programs_own() {
    for &status in BottleExit::ALL {
        let row = format!("| {} | {} |", status.code(), status.meaning());
        assert!(README.contains(&row), "{row} is not in the README");
    }
}
