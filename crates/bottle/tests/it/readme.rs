//! The README tells what the program does.

use model::verdict::BottleStatus;

const README: &str = include_str!("../../../../README.md");

#[test]
fn the_status_table_is_the_programs_own() {
    for status in BottleStatus::ALL {
        let row = format!("| {} | {} |", status.code(), status.meaning());
        assert!(README.contains(&row), "{row} is not in the README");
    }
}
